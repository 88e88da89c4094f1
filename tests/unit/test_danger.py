"""The one rule of what changes a table, for every command, on real tables: a run that only looks writes no byte."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hudi_services.cli.app import app
from hudi_services.cli.flags import RULE

from .operator_tables import RECIPES, OperatorTable, Printed, machine, placed
from .tables import digest
from .test_docs import document

ACTS, LOOKS = True, False


@dataclass(frozen=True)
class Case:
    recipe: str
    words: tuple[str, ...]
    acts: bool
    """Whether it changes the table without --dry-run and --apply."""
    looks_with: int = 0
    """Exit code of a run that only looks."""


CASES = {
    "schedule": Case("small-files", (), ACTS),
    "execute": Case("planned", (), ACTS),
    "compact": Case("planned-compaction", (), ACTS),
    "clean": Case("clustered", (), ACTS),
    "archive": Case("long-timeline", (), ACTS),
    "index-bootstrap": Case("small-files", ("--file-group-count", "1"), ACTS),
    "index-rescale": Case("indexed", ("--file-group-count", "7"), ACTS),
    "index-drop": Case("indexed", ("--index", "record"), ACTS),
    "write": Case("new-rows", ("--input", "ROWS"), ACTS),
    "rollback": Case("abandoned-write", ("--instant", "INSTANT"), ACTS),
    "undo": Case("clustered", ("--instant", "INSTANT"), ACTS),
    "recover": Case("abandoned-write", (), LOOKS),
    "validate": Case("wrong-metadata", (), LOOKS, looks_with=5),
    "orphan-files": Case("orphans", (), LOOKS),
    "fleet": Case("clustered", (), LOOKS),
}
ALSO = {
    "execute --mode scheduleAndExecute": Case("small-files", (), ACTS),
    "execute --schedule": Case("small-files", (), ACTS),
    "schedule --mode execute": Case("planned", (), ACTS),
    "schedule --service compaction": Case("log-files", (), ACTS),
    "compact --mode scheduleAndExecute": Case("log-files", (), ACTS),
    "write --operation delete_partition": Case("small-files", ("--partitions", "day=*"), ACTS),
    "write --operation insert_overwrite_table": Case("new-rows", ("--input", "ROWS"), ACTS),
    "write --operation bulk_insert": Case("new-rows", ("--input", "ROWS"), ACTS),
    "write --record-key id --table-name rides": Case("no-table", ("--input", "ROWS"), ACTS),
    "rollback --completed": Case("completed-commit", ("--instant", "INSTANT"), ACTS),
}
READS: Mapping[str, Case] = {
    "index-lookup": Case("indexed", ("--keys-file", "KEYS"), acts=False),
    "doctor": Case("small-files", (), acts=False),
    "advise": Case("small-files", ("--predicates", "PREDICATES"), acts=False),
    "report": Case("small-files", ("--html", "PAGE"), acts=False),
}


def test_the_rule_names_every_command() -> None:
    names = {one.name for one in app().registered_commands if not one.hidden}
    assert {*CASES, *READS} == names
    lines = [line.split("  ") for line in RULE.splitlines() if line.startswith("  ")]
    told = {name: line[-1].strip() for line in lines for name in line[1].strip().split(", ")}
    assert {name: told[name].startswith(("do ", "does ")) for name in CASES} == {
        name: one.acts for name, one in CASES.items()
    }
    assert all(told[name].startswith("only reads") for name in READS)


def test_the_page_says_the_same() -> None:
    page = "docs/commands.md"
    text = " ".join(document(page).replace("`", "").replace(" (exit code 2)", "").split())
    told = " ".join(RULE.partition("\b")[0].split())
    assert told in text
    table = document(page).partition("| command | without flags |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    without_flags = {name: what.strip() for names, what in rows for name in re.findall("`([a-z-]+)`", names)}
    assert set(without_flags) >= {*CASES, *READS}
    for name, case in CASES.items():
        assert bool(re.match("(only )?looks?", without_flags[name])) != case.acts, name
    assert all(without_flags[name].startswith("only reads") for name in READS)


@pytest.mark.thorough
@pytest.mark.spread(3)
@pytest.mark.parametrize("command", [*CASES, *ALSO])
def test_when_a_command_changes_the_table(command: str, tmp_path: Path) -> None:
    case = {**CASES, **ALSO}[command]
    table = RECIPES[case.recipe](tmp_path / "first")
    before = digest(table.path)

    def printed(where: OperatorTable, *flags: str) -> Printed:
        known = {"INSTANT": where.instant, "ROWS": str(where.rows_file)}
        given = [known.get(word, word) for word in case.words]
        with machine(where) as run:
            return run([*command.split(), *placed(command, where), *given, *flags, "--format", "json"])

    def looks(*flags: str) -> None:
        done = printed(table, *flags)
        report = json.loads(done.out)
        assert (done.code, digest(table.path)) == (case.looks_with, before), done
        assert report["dry_run"] or case.looks_with
        assert not report["reason"] or report["reason"].startswith("dry run: ")

    def acts(*flags: str) -> None:
        folder = tmp_path / f"other{len(list(tmp_path.iterdir()))}"
        shutil.copytree(table.path.parent, folder, symlinks=True)
        other = replace(table, path=folder / table.path.name)
        done = printed(other, *flags)
        report = json.loads(done.out)
        assert (done.code, report["dry_run"]) == (0, False), done
        assert report["state"] in ("requested", "completed")
        assert digest(other.path) != before

    looks("--dry-run")
    (acts if case.acts else looks)()
    acts("--apply")
    both = printed(table, "--dry-run", "--apply")
    assert both.code == 2 and "--dry-run and --apply exclude each other" in both.err
    assert digest(table.path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("command", READS)
def test_a_command_that_reads_changes_nothing(command: str, tmp_path: Path) -> None:
    table = RECIPES[READS[command].recipe](tmp_path)
    before = digest(table.path)
    predicates = tmp_path / "queries.sql"
    predicates.write_text("ts > 5\n")
    files = {"KEYS": table.keys_file, "PREDICATES": predicates, "PAGE": tmp_path / "page.html"}
    given = [str(files.get(word, word)) for word in READS[command].words]
    words = [command, "--base-path", str(table.path), *given]
    with machine(table) as run:
        assert [run([*words, *flags]).code for flags in ((), ("--dry-run",), ("--apply",))] == [0, 0, 0]
        assert run([*words, "--dry-run", "--apply"]).code == 2
    assert digest(table.path) == before


def test_quarantines(tmp_path: Path) -> None:
    """--restore and --delete-older-than look, too, until --apply."""
    table = RECIPES["orphans"](tmp_path)

    def files() -> dict[str, str]:
        """Of the table, but for the leases that were taken."""
        return {name: told for name, told in digest(table.path).items() if not name.startswith(".hoodie/.locks/")}

    first = files()
    with machine(table) as run:

        def manage(*words: str) -> bool:
            """Whether it changed a byte."""
            before = digest(table.path)
            done = run(["orphan-files", "--base-path", str(table.path), *words])
            assert done.code == 0, done
            return digest(table.path) != before

        assert manage("--apply")
        assert not manage("--restore", table.quarantine, "--dry-run")
        assert not manage("--delete-older-than", "0", "--dry-run")
        assert not manage("--restore", table.quarantine)
        assert not manage("--delete-older-than", "0")
        assert manage("--restore", table.quarantine, "--apply")
        assert files() == first
        assert manage("--apply")
        assert manage("--delete-older-than", "0", "--apply")
        assert not table.quarantine
