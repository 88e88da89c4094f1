"""Every flag of every command: it has help, it fits the command, and the command reads it."""

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hudi_services.cli import command as cli_command
from hudi_services.cli import service as cli_service
from hudi_services.cli.app import app
from hudi_services.cli.commands import COMMANDS as ROWS
from hudi_services.cli.flags import COMMON, Flags, ServiceWithPlans
from hudi_services.jobs.services import SERVICES
from hudi_services.options import file_keys
from hudi_services.options.registry import OPTIONS
from hudi_services.runs.flag import flags_of
from hudi_services.runs.report import Report
from hudi_services.runs.request import Request
from hudi_services.runs.retries import run_with_retries

from .operator_tables import RECIPES, machine, placed
from .test_danger import CASES, READS, Case

COMMANDS: dict[str, Any] = get_command(app()).commands  # type: ignore[attr-defined]
VALUES = {
    "--bootstrap-source": "elsewhere",
    "--instant-time": "INSTANT",
    "--instant": "INSTANT",
    "--memory-per-task": "123m",
    "--time-limit": "30m",
    "--engine": "local",
    "--parallelism": "3",
    "--spark-master": "local[3]",
    "--spark-memory": "3g",
    "--mode": "scheduleAndExecute",
    "--publish": "first",
    "--strategy": "unbounded",
    "--service": "compaction",
    "--job-max-processing-time-ms": "77",
    "--lock-wait": "7",
    "--longest-query": "7",
    "--metrics": "METRICS",
    "--html": "OTHER_PAGE",
    "--services": "clean",
    "--at-once": "7",
    "--max-bytes": "7g",
    "--max-requests": "7000",
    "--table-time": "7m",
    "--results": "RESULTS",
    "--restore": "20260101T000000000",
    "--delete-older-than": "7",
    "--min-age": "7",
    "--abandoned-after": "7",
    "--index-types": "RECORD_INDEX",
    "--file-group-count": "7",
    "--min": "7",
    "--max": "7",
    "--partition": "p",
    "--keys-file": "KEYS",
    "--executions": "7",
    "--least-gain": "7",
    "--operation": "bulk_insert",
    "--record-key": "a",
    "--ordering": "b",
    "--partition-by": "c",
    "--table-type": "MERGE_ON_READ",
    "--table-version": "6",
    "--input-format": "parquet",
}
OTHER_SEAMS = {
    "--retry": "run_with_retries counts them",
    "--keys-file": "the file is read before there is a request",
    "--predicates": "the file is read before there is a request",
    "--input": "required: it is in every request",
    "--partitions": "of delete_partition, which takes no --input: tests/unit/test_danger.py gives it",
    "--instant": "required: it is in every request",
    "--index-types": "a text that is refused, or changes nothing",
    "--index": "tests/unit/test_secondary_builds.py and test_index_drop.py give it",
    "--spark-master": "runs.running gives it to Spark, which these runs do not start",
    "--spark-memory": "the same",
}
"""Flags that no field of the request holds, or that cannot be left out, and why that is right."""
SAME_EVERYWHERE = {"--spark-master", "--spark-memory"} | {
    option.opts[0]
    for option in COMMANDS["index-lookup"].params
    if option.name in {"base_path", *COMMON} - {"dry_run", "apply"}
}
MORE_IN_WRITE = {"--table-name", "--spark-master", "--spark-memory"}
"""Flags that say more in `write`: it may create the table, and starts Spark only when it is told to."""


def options(command: str, *, hidden: bool = False) -> list[Any]:
    """Those that are listed, or with `hidden` all. Typer may have a copy of click of its own: no types here."""
    found = [one for one in COMMANDS[command].params if hidden or not getattr(one, "hidden", False)]
    assert len(found) > 8
    return found


def long_name(option: Any) -> str:
    return next((str(name) for name in option.opts if name.startswith("--")), str(option.metavar))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_has_help(command: str) -> None:
    assert COMMANDS[command].help
    for option in options(command, hidden=True):
        name = long_name(option)
        assert option.help and (option.help[0].isupper() or name == "--mode") and option.help.endswith("."), name
        assert not {"besides", "mend", "garbage", "take back", "bill", "proof"} & set(option.help.lower().split()), name


def test_the_help_of_a_flag_differs_where_its_meaning_does() -> None:
    texts: dict[str, dict[str, str]] = {}
    for command in COMMANDS:
        for option in options(command):
            texts.setdefault(long_name(option), {})[command] = option.help or ""
    for name in ("--instant-time", "--memory-per-task", "--instant", "--parallelism"):
        assert len(set(texts[name].values())) == len(texts[name]), name
    acting = [name for name, case in CASES.items() if case.acts]
    assert len({texts["--dry-run"][name] for name in acting}) == len(acting)
    assert len({texts["--apply"][name] for name in CASES}) == len(CASES)
    looking = "The command does so without this flag, too."
    for name, case in CASES.items():
        assert texts["--apply"][name].endswith(looking) == case.acts
        assert texts["--dry-run"][name].endswith(looking) != case.acts
    # The other commands have no metrics of the table to print.
    assert "Prometheus's text format" in texts["--format"].pop("doctor")
    assert all("for doctor alone" in one for one in texts["--format"].values())
    assert all(f"the extra {one}" in texts["--metrics"]["clean"] for one in ("metrics", "opentelemetry"))
    for command in ("advise", "report"):
        assert f"extra {command}: pip install '.[{command}]'" in " ".join((COMMANDS[command].help or "").split())
    for name in SAME_EVERYWHERE:
        if name in MORE_IN_WRITE:
            special = texts[name].pop("write")
            assert special.endswith("has another name.") or special.startswith("Let tasks of Spark read and write")
        assert len(set(texts[name].values())) == 1, name
    assert "Spark" not in texts["--retry"]["clean"] and "Spark" in texts["--retry"]["execute"]
    assert "plan to execute" not in texts["--instant-time"]["schedule"]


def test_schedule_lists_no_flag_of_spark() -> None:
    listed = {long_name(option) for option in options("schedule")}
    assert not {"--spark-master", "--spark-memory", "--parallelism", "--mode", "--schedule"} & listed
    accepted = {long_name(option) for option in options("schedule", hidden=True)}
    assert accepted == {long_name(option) for option in options("execute", hidden=True)} | {"--service"}


@dataclass
class Read:
    """What one run asked for."""

    request: Request
    names: set[str]
    """Fields of the request that the job read."""

    @property
    def facts(self) -> dict[str, Any]:
        given = {one.name: getattr(self.request, one.name) for one in fields(self.request)}
        told = given.pop("options")
        del given["progress"], given["on_wait"], given["on_report"]
        in_force = {s.key: s.value for s in told.in_force(self.request.phase)}
        return {name: value for name, value in given.items() if name in self.names} | in_force


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Read]]:
    """Filled with the last run's request, and with the names of the fields that were read from it."""
    last: dict[str, Read] = {}

    def recorded(kind: type[Request]) -> type[Request]:
        class Recorded(kind):  # type: ignore[misc, valid-type]
            def __getattribute__(self, field: str) -> Any:
                frame = sys._getframe(1)
                # A copy reads all fields; what is passed along counts when somebody looks at it.
                if "run" in last and frame.f_globals.get("__name__") != dataclasses.__name__:
                    last["run"].names.add(field)
                return super().__getattribute__(field)

        return Recorded

    services = {name: dataclasses.replace(one, request=recorded(one.request)) for name, one in SERVICES.items()}
    monkeypatch.setattr(cli_command, "SERVICES", services)

    def noting(job: Any, request: Any, retries: int, sleep: Any) -> Report:
        last["run"] = Read(request, set())
        report = run_with_retries(job, request, retries, sleep)
        last["done"] = Read(request, set(last.pop("run").names))
        return report

    monkeypatch.setattr(cli_service, "run_with_retries", noting)
    yield last


@pytest.mark.thorough
@pytest.mark.parametrize(
    # `validate --store` lets processes race.
    "command",
    [pytest.param(one, marks=pytest.mark.threads) if one == "validate" else one for one in COMMANDS],
)
def test_a_command_reads_every_flag_that_it_lists(command: str, tmp_path: Path, reads: dict[str, Read]) -> None:
    """The flag changes a field of the request that the job reads, or an option that is in force for it."""
    others = {
        **READS,
        "rollback": Case("completed-commit", ("--instant", "INSTANT"), acts=True),
        "index-bootstrap": Case("small-files", (), acts=True),
        "index-rescale": Case("indexed", (), acts=True),
    }
    case = others.get(command) or CASES[command]
    table = RECIPES[case.recipe](tmp_path)
    predicates = tmp_path / "queries.sql"
    predicates.write_text("ts > 5\n")

    def asked(*words: str) -> Read:
        known = {
            "INSTANT": table.instant or "20260101000000000",
            "KEYS": str(table.keys_file),
            "ROWS": str(table.rows_file),
            "PREDICATES": str(predicates),
            "METRICS": str(tmp_path / "metrics.prom"),
            "PAGE": str(tmp_path / "page.html"),
            "RESULTS": str(tmp_path / "results.jsonl"),
            "OTHER_PAGE": str(tmp_path / "other.html"),
        }
        given = [known.get(word, word) for word in (*case.words, *words)]
        with machine(table) as run:
            run([command, *placed(command, table), "--dry-run", *given])
        return reads["done"]

    common = {"base_path", "tables_file", *COMMON} - {"lock_wait", "metrics"}
    own = [option for option in options(command) if option.name not in common]
    assert ("--lock-wait" in {long_name(option) for option in own}) == (command not in READS)
    before = asked()
    needed = {
        "--min-age": (),
        "--job-max-processing-time-ms": ("--mode", "scheduleAndExecute", "-rc"),
        "--retry-last-failed-clustering-job": ("--mode", "scheduleAndExecute"),
        "--publish": ("--mode", "scheduleAndExecute"),
        "--strategy": ("--mode", "scheduleAndExecute"),
        **({"--resume": ("--results", "RESULTS")} if command == "fleet" else {}),
    }
    for option in own:
        name = long_name(option)
        if name in OTHER_SEAMS and (name != "--instant" or option.required):
            continue
        with_it = asked(*needed.get(name, ()), name, *([] if option.is_flag else [VALUES[name]]))
        without = asked(*needed[name]).facts if name in needed else before.facts
        assert with_it.facts != without, name


def test_the_options_that_flags_stand_for_are_known() -> None:
    assert {file_keys.MAX_PARALLELISM.key, file_keys.MEMORY_PER_TASK.key} <= {one.key for one in OPTIONS}


def test_every_flag_is_of_a_command() -> None:
    """And what is tried again by the command line is tried again by the Python API."""
    taken = {name for row in ROWS for name in row.takes}
    assert {*taken, *(row.place for row in ROWS), *COMMON} == {
        *flags_of(Flags),
        *(name for row in ROWS for name in flags_of(row.request)),
    }
    assert {row.service for row in ROWS} | {one.value for one in ServiceWithPlans} == set(SERVICES)
    for row in ROWS:
        assert ("retry" in row.takes) == SERVICES[row.service].is_retried, row.name
        assert {*row.helps, *row.hidden, *row.keys} <= {*row.takes, *COMMON}, row.name
        assert {*row.fixed, row.switch} - {""} <= {one.name for one in fields(row.request)}, row.name
