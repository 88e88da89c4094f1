"""What the documents promise is what the program does."""

import ast
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from hudi_services import errors
from hudi_services.archival.selection import Why
from hudi_services.cleaning import choice
from hudi_services.cli.app import app
from hudi_services.clustering.eligibility import ClusteringReason
from hudi_services.clustering.strategies import STRATEGIES
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.engine import LocalEngine, RepeatedTask
from hudi_services.jobs import (
    archive,
    clean,
    clustering,
    compaction,
    doctor,
    fleet,
    orphan_files,
    recover,
    table_report,
    undo,
    validate,
    writing,
)
from hudi_services.jobs.advise import advise
from hudi_services.jobs.doctor import WARNED
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.jobs.index_lookup import index_lookup
from hudi_services.options import clustering_keys as keys
from hudi_services.options import resolve
from hudi_services.options.option import Phase
from hudi_services.options.registry import KNOWN, OPTIONS
from hudi_services.options.resolve import as_text
from hudi_services.orphan_files import model as garbage_model
from hudi_services.runs.config_files import read_properties
from hudi_services.runs.report import Report, RunState, TableFacts
from hudi_services.runs.request import (
    AdviseRequest,
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    DoctorRequest,
    FleetRequest,
    IndexRequest,
    LookupRequest,
    Mode,
    OrphanFilesMode,
    OrphanFilesRequest,
    RecoverRequest,
    Request,
    RollbackRequest,
    TableReportRequest,
    UndoRequest,
    ValidateRequest,
    WriteOperation,
    WriteRequest,
)
from hudi_services.runs.retries import run_with_retries
from hudi_services.validation import model as validation_model
from scripts.make_option_tables import page

from . import histories
from . import test_salvage as salvage
from .corruptions import do_damage, wrong_listing
from .metadata_tables import begin_metadata_clean
from .operator_tables import RECIPES, rows_of
from .repairs import DEAD_AT_ONCE, P, cluster, fail_newest, repair
from .rides import create
from .tables import request, unpack
from .test_cli import LONG_AND_SHORT
from .test_layers import PACKAGE, ROWS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")]
)
RUNBOOKS = sorted(path.name for path in (ROOT / "docs/runbooks").glob("*.md") if path.name != "README.md")
PARTS_OF_A_RUNBOOK = ["What you see", "Why", "Check", "Do", "Afterwards"]
ANYTHING = "…"
_NO_OPTIONS = "## Keys that are refused, or ignored with a warning"


def document(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def first_column(text: str) -> list[str]:
    return re.findall(r"^\| `?([^`|]+?)`? \|", text, re.MULTILINE)


def test_every_key_that_is_no_option_is_in_the_configuration_page() -> None:
    text = document("docs/configuration.md")
    assert text == page(text), "run: python -m scripts.make_option_tables"
    listed = set(re.findall(r"`(_?hoodie\.[^`]+)`", text.partition(f"\n{_NO_OPTIONS}\n")[2]))
    honoured = {name for option in OPTIONS for name in option.names}
    assert set(KNOWN.whole) - honoured <= listed


def test_every_option_is_in_the_configuration_page() -> None:
    text = document("docs/configuration.md")
    for option in OPTIONS:
        default = as_text(option.default)
        assert (
            f"| `{option.key}` | {f'`{default}`' if default else '–'} | {option.in_table.text} | {option.description} |"
            in text
        )
    listed = first_column(text.partition(f"\n{_NO_OPTIONS}\n")[0])
    assert [name for name in listed if name.startswith(("hoodie.", "_hoodie.", "hudi.", "spark."))] == [
        option.key for option in OPTIONS
    ]


def test_every_field_of_the_report_is_in_its_page() -> None:
    fields = first_column(document("docs/report.md").partition("\n## The lists\n")[0])[1:]
    assert fields == list(Report("clustering", "execute", TableFacts("/t")).document())
    for state in RunState:
        assert f"- `{state.value}`: " in document("docs/report.md")


def test_every_service_and_command_is_in_the_pages() -> None:
    services, actions = (
        next(line for line in document("docs/report.md").splitlines() if line.startswith(f"| `{name}` |"))
        for name in ("service", "action")
    )
    path, options = "/t", resolve([])
    requests: list[Request] = [
        *(ClusteringRequest(base_path=path, options=options, mode=mode) for mode in Mode),
        *(CompactionRequest(base_path=path, options=options, mode=mode) for mode in Mode),
        *(OrphanFilesRequest(base_path=path, options=options, mode=mode) for mode in OrphanFilesMode),
        *(ValidateRequest(base_path=path, options=options, repair=repairs) for repairs in (False, True)),
        *(kind(base_path=path, options=options, instant="1") for kind in (RollbackRequest, UndoRequest)),
        CleanRequest(base_path=path, options=options),
        ArchiveRequest(base_path=path, options=options),
        IndexRequest(base_path=path, options=options),
        LookupRequest(base_path=path, options=options, keys=pa.array([])),
        AdviseRequest(base_path=path, options=options),
        RecoverRequest(base_path=path, options=options),
        *(WriteRequest(base_path=path, options=options, operation=operation) for operation in WriteOperation),
    ]
    for one in requests:
        assert f"`{one.service}`" in services
        assert f"`{one.action}`" in actions or one.action == one.service
    pages = document("docs/exit-codes.md").partition("## 4, 6 and 7 by command")[2]
    assert {one.name for one in app().registered_commands} == set(first_column(pages)) - {"command", "---"}


def test_every_exit_code_is_in_its_page() -> None:
    listed = {int(code) for code in first_column(document("docs/exit-codes.md")) if code.isdecimal()}
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert {one.exit_code for one in classes} | {3, WARNED, 130, 143} == listed


def test_the_example_conf_file_is_good() -> None:
    text = document("conf/hudi-services.properties")
    values = read_properties(str(ROOT / "conf/hudi-services.properties"))
    commented = dict(re.findall(r"^# (hoodie\.\S+)=(.+)$", text, re.MULTILINE))
    assert values and commented
    assert resolve([("example", {**values, **commented})]).warnings == ()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(document(name))):
        parts = urlsplit(target)
        if parts.scheme:
            continue
        file = (ROOT / name).parent / parts.path if parts.path else ROOT / name
        assert file.exists(), target
        if parts.fragment:
            assert parts.fragment in anchors(file.read_text(encoding="utf-8")), target


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_command_is_in_its_page() -> None:
    for command in app().registered_commands:
        assert f"\nhudi-services {command.name} " in document("docs/commands.md"), command.name


def test_a_newcomer_reads_the_readme_in_three_minutes() -> None:
    prose = re.sub(r"\]\([^)]*\)", "]", without_code(document("README.md")))
    assert len(re.findall(r"[A-Za-z]\w*", prose)) < 3 * 230


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            targets = re.findall(r"\]\(([^)#:\s]+)", without_code(page.read_text(encoding="utf-8")))
            waiting += [(page.parent / target).resolve() for target in targets]
    assert {*(ROOT / "docs").rglob("*.md")} <= seen


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """`make docs` says so, too, but is not part of the quick tests."""
    named = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", document("mkdocs.yml").partition("\nnav:\n")[2], re.MULTILINE)
    pages = {name.removeprefix("docs/") for name in DOCUMENTS if name.startswith("docs/")}
    assert sorted(named) == sorted({*pages, "index.md"})


# The flags of Hudi's jobs, 0.15.0 to 1.2.0, from their sources; newer releases alone have --skip-clean and
# --retry-last-failed-job.
OF_CLUSTERING = {
    *LONG_AND_SHORT,
    *LONG_AND_SHORT.values(),
    *("--props", "--hoodie-conf", "--help", "-h", "--skip-clean", "--retry-last-failed-job"),
}
OF_JOBS = {
    ("HoodieClusteringJob", "execute"): OF_CLUSTERING,
    ("HoodieCompactor", "compact"): OF_CLUSTERING - {"--retry-last-failed-clustering-job", "-rc", "-jt"}
    | {"--schema-file", "-sf", "--strategy", "-st"},
    ("HoodieCleaner", "clean"): {"--target-base-path", "--props", "--hoodie-conf", "--spark-master", "--help", "-h"},
}


@pytest.mark.parametrize(("job", "command"), OF_JOBS)
def test_the_flags_of_hudis_jobs_are_in_their_page(job: str, command: str) -> None:
    """Each of them is, and the page says of none that it is the same that the command does not take."""
    flags = OF_JOBS[job, command]
    section = (
        document("docs/from-hoodie-clustering-job.md").partition(f"\n## Flags of {job}\n")[2].partition("\n## ")[0]
    )
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `-")]
    ours = flags_of(command) | {"--help", "-h"}
    listed: dict[str, str] = {flag: row[1] for row in rows for flag in re.findall(r"`(-[\w-]+)`", row[0])}
    assert set(listed) == flags
    assert {flag for flag, here in listed.items() if here == "the same"} == flags & ours
    # Short forms are Hudi's alone: one that the page lacks is a flag of the job. Hudi's cleaner has none.
    assert job == "HoodieCleaner" or {flag for flag in ours if re.fullmatch(r"-\w+", flag)} <= flags


def test_our_flags_on_the_page_of_hudis_jobs_exist() -> None:
    text = document("docs/from-hoodie-clustering-job.md")
    ours = {flag for command in ("schedule", "execute", "compact", "clean", "rollback") for flag in flags_of(command)}
    of_spark_and_hudi = {"--class", "--master", "--target-base-path", "--skip-clean", "--help"}
    assert set(re.findall(r"(?<![\w-])--\w[\w-]*", text)) - of_spark_and_hudi <= ours


def flags_of(command: str) -> set[str]:
    commands = getattr(get_command(app()), "commands", {})
    return {flag for one in commands[command].params for flag in one.opts}


def test_every_runbook_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", document("docs/runbooks/README.md")))
    assert linked == set(RUNBOOKS)


@pytest.mark.parametrize("name", RUNBOOKS)
def test_the_parts_of_a_runbook(name: str) -> None:
    text = without_code(document(f"docs/runbooks/{name}"))
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS_OF_A_RUNBOOK


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("docs/") or name == "README.md"])
def test_commands_in_the_documents_can_be_read(name: str) -> None:
    """Their flags exist."""
    commands = getattr(get_command(app()), "commands", {})
    joined = document(name).replace("\\\n", " ")
    for command, arguments in re.findall(r"hudi-services ([a-z-]+) ([^`\n|#]*)", joined):
        if command not in commands:
            continue
        known = {flag for one in commands[command].params for flag in one.opts}
        assert {word for word in arguments.split() if re.match(r"--\w", word)} - {"--help"} <= known, arguments


def test_options_and_flags_of_operating_clustering_exist() -> None:
    """Those of the script for cron and of the DAG, too, which the pattern of commands does not see."""
    text = document("docs/operating-clustering.md") + document("docs/examples/clustering_dag.py")
    named = set(re.findall(r"\b(?:hoodie|hudi\.services)\.[\w.]*\w", text))
    assert len(named) > 5
    assert named <= {option.key for option in OPTIONS}
    for end in re.findall(r"`…(\.[\w.]*\w)[`=]", text):
        assert any(option.key.endswith(end) for option in OPTIONS), end
    commands = getattr(get_command(app()), "commands", {})
    known = {flag for command in commands.values() for one in command.params for flag in one.opts}
    not_ours = {"--conf", "--master", "--num-executors"}
    assert set(re.findall(r"(?<![\w-])--\w[\w-]*", text)) - not_ours <= known


@pytest.mark.thorough
def test_what_the_index_quotes_is_what_the_program_says() -> None:
    """Each quoted text is a piece of one literal, with anything for what is filled in."""
    said = "\n".join(text for path in PACKAGE.rglob("*.py") for text in literals(path))
    ours = document("docs/runbooks/README.md").partition("## What this program says")[2].partition("\n## ")[0]
    quoted = re.findall(r"^\| `([^`]+)` \|", ours, re.MULTILINE)
    assert len(quoted) > 20
    for text in quoted:
        pattern = ".*".join(re.escape(piece) for piece in text.split(ANYTHING))
        assert re.search(pattern, said), text


def literals(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(v.value) if isinstance(v, ast.Constant) else ANYTHING for v in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def test_every_rule_and_reason_is_in_the_page_of_cleaning() -> None:
    text = document("docs/cleaning.md")
    for value in [one.value for kind in (choice.Gone, choice.ReasonToKeep, garbage_model.OrphanKind) for one in kind]:
        assert f"| `{value}` |" in text
    for reason in garbage_model.ReasonToStay:
        assert f"`{reason.value}`" in text or reason.value.startswith("unknown: ")
    for option in OPTIONS:
        if option.phase is Phase.CLEAN:
            assert all(f"| `{option.key}` | `{alias}` |" in text for alias in option.aliases)


def test_every_rule_that_holds_the_timeline_is_in_the_page_of_archiving() -> None:
    text = document("docs/archiving.md")
    assert all(f"`{why.value}`" in text for why in Why)


def test_every_reason_and_strategy_is_in_the_page_of_clustering() -> None:
    text = document("docs/clustering.md")
    assert all(reason.value in text for reason in ClusteringReason)
    assert all(f"| `{name}` |" in text for name in STRATEGIES)


def test_every_kind_of_difference_is_in_its_runbook() -> None:
    text = document("docs/runbooks/metadata-table.md")
    assert all(f"`{kind.value}`" in text for kind in validation_model.DifferenceKind)


@pytest.mark.thorough
def test_every_list_of_the_reports_is_in_their_page(tmp_path: Path) -> None:
    page = document("docs/report.md").partition("\n## The lists\n")[2]
    sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL))
    seen: dict[str, set[tuple[str, str]]] = {title: set() for title in sections}
    for title, report in made_reports(tmp_path):
        seen[title] |= {(name, field) for name, rows in report.tables.items() for row in rows for field in row}
    for title, text in sections.items():
        listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE)
        assert set(listed) == seen[title], title


class Repeating(LocalEngine):
    """As an engine that has lost an executor."""

    repeated = (RepeatedTask("rewrite file slices", 0, 2, "ExecutorLostFailure"),)


def made_reports(folder: Path) -> list[tuple[str, Report]]:
    """Runs that show every list of every service, each with its heading in the page."""
    quick = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", **DEAD_AT_ONCE}
    cleaning = {"hoodie.clean.fileversions.retained": "1", "hoodie.clean.multiple.enabled": "true"}
    options = resolve([("test", {**quick, **cleaning})])

    clustered = unpack("1.2.0", folder / "clustered")
    planned = clustering.schedule(request(clustered, Mode.SCHEDULE, dry_run=True))
    ts = cluster(clustered)
    plan = encode_cleaner_plan(CleanerPlan("KEEP_LATEST_COMMITS", "", "", {}), "1.2.0")
    (clustered / ".hoodie/timeline/20990101000000000.clean.requested").write_bytes(plan)
    cleaned = clean.clean(CleanRequest(base_path=str(clustered), options=options, dry_run=True))
    undone = undo.undo(repair(clustered, "undo", ts))

    failed = unpack("1.2.0", folder / "failed")
    fail_newest(failed)
    recovered = recover.recover(RecoverRequest(base_path=str(failed), options=options, apply=True))
    file = next(failed.glob("day=*/*.parquet"))
    file_id, _, instant = file.name.split("_")
    for age in (7200, 60):
        stray = shutil.copy(file, file.with_name(f"{file_id}_9-9-{age}_{instant}"))
        os.utime(stray, (time.time() - age,) * 2)
    collected = [
        orphan_files.manage_orphan_files(OrphanFilesRequest(base_path=str(failed), options=options, mode=mode))
        for mode in (OrphanFilesMode.QUARANTINE, OrphanFilesMode.DELETE)
    ]
    indexed = unpack("1.2.0", folder / "indexed")
    index_bootstrap(IndexRequest(base_path=str(indexed), options=options), engine=LocalEngine())
    record_keys = pq.read_table(next(indexed.glob("day=*/*.parquet")), partitioning=None)["_hoodie_record_key"]
    looked_up = index_lookup(
        LookupRequest(base_path=str(indexed), options=options, keys=record_keys.combine_chunks().cast(pa.string()))
    )
    due = {"hoodie.metadata.compact.max.delta.commits": "1", **quick}
    due["hoodie.clustering.plan.strategy.sort.columns"] = "_hoodie_record_key"
    begin_metadata_clean(indexed)
    wanted_late = request(indexed, Mode.SCHEDULE_AND_EXECUTE, due, publish_late=True)
    executed = clustering.schedule_and_execute(wanted_late, engine=Repeating())
    advised = advise(AdviseRequest(base_path=str(indexed), options=options, predicates=((1.0, "ts > 5"),)))
    left = salvage.Planned("1.2.0", folder / "left")
    left.update(left.groups[0][0])
    left_out = left.execute()
    wrong = unpack("1.2.0", folder / "wrong")
    do_damage(wrong, wrong_listing(wrong))
    shutil.copy(next(wrong.glob("day=*/*.parquet")), wrong / P / "f-0_0-0-0_20200101000000000.parquet")
    validated = [
        run_with_retries(
            validate.validate, ValidateRequest(base_path=str(wrong), options=options, repair=repaired), 0, time.sleep
        )
        for repaired in (False, True)
    ]
    logged = histories.MadeHistory("1.2.0", "default_order", folder / "logged").path
    each = resolve([("test", {"hoodie.compact.inline.max.delta.commits": "1"})])
    wanted = CompactionRequest(base_path=str(logged), options=each, mode=Mode.SCHEDULE)
    compactable = compaction.schedule(replace(wanted, dry_run=True))
    compaction.schedule(wanted)
    off = resolve([("test", {"hoodie.metadata.enable": "false"})])
    inserted_to = unpack("1.2.0", folder / "inserted")
    begin_metadata_clean(inserted_to)
    inline = resolve([("test", {**due, "hoodie.clustering.inline": "true", keys.INLINE_MAX_COMMITS.key: "1"})])
    insert = WriteRequest(base_path=str(inserted_to), options=inline, operation=WriteOperation.INSERT)
    inserted = writing.write(insert, rows_of(inserted_to).to_reader)
    long = RECIPES["long-timeline"](folder / "long")
    tables = folder / "tables.txt"
    tables.write_text(f"{long.path}\n")
    looked = fleet.fleet(FleetRequest(base_path=str(tables), options=resolve([("test", long.conf)])))
    archived = archive.archive(ArchiveRequest(base_path=str(long.path), options=resolve([("test", long.conf)])))
    new = pa.table({"id": ["a"], "day": ["d"], "ts": [0]})
    create(folder / "appended", table_type="MERGE_ON_READ").insert(new)
    updates = WriteRequest(base_path=str(folder / "appended"), options=options, operation=WriteOperation.UPSERT)
    appended = writing.write(updates, new.to_reader)
    compacted = compaction.execute(replace(wanted, mode=Mode.EXECUTE, dry_run=True), engine=LocalEngine())
    of_page = TableReportRequest(base_path=str(indexed), options=off, html=str(folder / "page.html"))
    return [
        ("schedule --service compaction", compactable),
        ("compact", compacted),
        ("clean", cleaned),
        ("archive", archived),
        ("schedule", planned),
        ("execute", executed),
        ("execute", left_out),
        ("index-lookup", looked_up),
        ("doctor", doctor.doctor(DoctorRequest(base_path=str(wrong), options=off))),
        ("advise", advised),
        ("report", table_report.table_report(of_page)),
        ("fleet", looked),
        ("write", inserted),
        ("write", appended),
        ("rollback and undo", undone),
        ("recover", recovered),
        *(("orphan-files", report) for report in collected),
        *(("validate", report) for report in validated),
    ]


def test_the_rooms_of_the_architecture() -> None:
    text = document("ARCHITECTURE.md").partition("\n## Words")[0]
    rooms = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in PACKAGE.rglob("[!_]*.py")}
    described = re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE)
    assert {name.rstrip("/") for names in described for name in re.findall(r"`([\w/]+)`", names)} == rooms
    arrows = text.partition("## Arrows")[2].split("```")[1].split("\n")
    listed = [set(line.split()) for line in reversed(arrows) if line.strip()]
    assert listed == [row & rooms for row in ROWS if row & rooms]


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", document("Makefile"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+) ", document("README.md"))) <= targets | {"installs"}
    assert {"install", "demo", "test", "check", "bench", "docs", "help"} <= targets


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["execute", "-sp", "/a b"], ["MAIN", "execute", "-sp", "/a b"]),
        (["--master", "yarn", "--", "execute", "--", "x"], ["--master", "yarn", "MAIN", "execute", "--", "x"]),
        (["--", "schedule"], ["MAIN", "schedule"]),
    ],
)
def test_the_launcher(tmp_path: Path, given: list[str], expected: list[str]) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text('#!/bin/sh\nfor a in "$@"; do echo "$a"; done\n')
    submit.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "scripts" / "hudi-services-submit"), *given],
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    main = str(ROOT / "hudi_services" / "__main__.py")
    assert done.stdout.splitlines() == [main if word == "MAIN" else word for word in expected]
