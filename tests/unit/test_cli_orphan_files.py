"""`orphan-files`: what the flags ask for, and what the runs print."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.cli import command
from hudi_services.cli.app import run
from hudi_services.runs.report import Report
from hudi_services.runs.request import OrphanFilesMode, OrphanFilesRequest

from .archives import unpack_archived

MODES: list[tuple[tuple[str, ...], OrphanFilesMode]] = [
    ((), OrphanFilesMode.FIND),
    (("--apply",), OrphanFilesMode.QUARANTINE),
    (("--restore", "20260101T000000000"), OrphanFilesMode.RESTORE),
    (("--delete-older-than", "0"), OrphanFilesMode.DELETE),
]


pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OrphanFilesRequest]:
    """Gives the request of a command line."""
    requests: list[OrphanFilesRequest] = []

    def job(wanted: OrphanFilesRequest) -> Report:
        requests.append(wanted)
        return Report.start(wanted).completed(None)

    def ask(*words: str) -> OrphanFilesRequest:
        assert run(["orphan-files", "--base-path", "/t", *words]) == 0
        return requests[-1]

    monkeypatch.setattr(command, "job_of", lambda wanted: job)
    return ask


@pytest.mark.parametrize(("words", "mode"), MODES)
def test_what_each_flag_asks_for(
    words: tuple[str, ...], mode: OrphanFilesMode, asked: Callable[..., OrphanFilesRequest]
) -> None:
    request = asked("--min-age", "7", *words)
    assert (request.mode, request.action, request.min_age_minutes) == (mode, mode.value, 7)
    assert (request.quarantine is None) == (mode is not OrphanFilesMode.RESTORE)
    assert request.dry_run != ("--apply" in words)
    acts = asked("--apply", *words)
    assert (acts.dry_run, acts.min_age_minutes) == (False, 60)


def test_flags_that_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: str) -> tuple[str, str]:
        """The sentence, and the action of the report."""
        assert run(["orphan-files", "--base-path", "/t", "--apply", *words, "--format", "json"]) == 2
        document = json.loads(capsys.readouterr().out)
        return document["error"]["message"], document["action"]

    both = refused("--restore", "x", "--delete-older-than", "1")
    assert both == ("--restore and --delete-older-than exclude each other", "restore")
    assert refused("--dry-run") == ("--dry-run and --apply exclude each other", "quarantine")


def test_a_whole_life_of_orphan_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(unpack_archived(tmp_path) / "1.2.0" / "listed")

    def report(*arguments: str) -> dict[str, object]:
        capsys.readouterr()
        code = run(["orphan-files", "--base-path", path, "--min-age", "0", "--format", "json", *arguments])
        document: dict[str, object] = json.loads(capsys.readouterr().out)
        assert document["exit_code"] == code == 0
        assert document["service"] == "orphan-files"
        return document

    dry = report()
    assert (dry["action"], dry["state"], dry["reason"]) == ("find", "completed", "dry run: nothing was moved")
    assert dry["files"] == {"in": 10, "out": None}
    moved = report("--apply")
    assert (moved["action"], moved["files"]) == ("quarantine", {"in": 10, "out": 10})
    name = str(moved["reason"]).rpartition(" ")[2]
    idle = report()
    assert (idle["state"], idle["reason"]) == ("idle", "there are no orphan files")
    assert [row["quarantine"] for row in idle["tables"]["quarantines"]] == [name]  # type: ignore[index]
    look = report("--restore", name, "--dry-run")
    assert (look["action"], look["dry_run"], look["files"]) == ("restore", True, {"in": 10, "out": None})
    assert report("--restore", name, "--apply")["files"] == {"in": 10, "out": 10}
    report("--apply")
    look = report("--delete-older-than", "0", "--dry-run")
    assert (look["action"], look["dry_run"], look["files"]) == ("delete", True, {"in": 10, "out": None})
    assert report("--delete-older-than", "0", "--apply")["files"] == {"in": 10, "out": 0}


def test_the_default_minimum_age(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = unpack_archived(tmp_path) / "1.2.0" / "listed"
    for file in path.glob("p?/*.parquet"):
        file.touch()
    assert run(["orphan-files", "--base-path", str(path), "--fail-if-idle"]) == 3
    assert "younger than the minimum age" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [(), ("--dry-run",), ("--apply",)])
def test_what_is_told_of_a_wrong_quarantine(
    flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = unpack_archived(tmp_path) / "1.2.0" / "listed"
    assert run(["orphan-files", *flags, "--base-path", str(path), "--restore", "20200101T000000000"]) == 2
    error = capsys.readouterr().err
    assert error == (
        f"error: there is no quarantine 20200101T000000000 in {path}/.hoodie/.hudi_services/quarantine\n"
        "hint: the quarantines of the table are: none\n"
    )
