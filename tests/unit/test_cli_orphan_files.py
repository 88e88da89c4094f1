"""`orphan-files`: what the flags ask for, and what the runs print."""

import json
from pathlib import Path

import pytest

from hudi_services.cli.app import run
from hudi_services.cli.orphan_files import OrphanFilesFlags, orphan_files_request
from hudi_services.errors import ConfigError
from hudi_services.runs.request import OrphanFilesMode, OrphanFilesRequest

from .archives import unpack_archived

MODES: list[tuple[dict[str, object], OrphanFilesMode]] = [
    ({}, OrphanFilesMode.FIND),
    ({"apply": True}, OrphanFilesMode.QUARANTINE),
    ({"restore": "20260101T000000000"}, OrphanFilesMode.RESTORE),
    ({"delete_older_than": 0}, OrphanFilesMode.DELETE),
]


pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def asked(**fields: object) -> OrphanFilesRequest:
    return orphan_files_request(OrphanFilesFlags(base_path="/t", **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(("fields", "mode"), MODES)
def test_what_each_flag_asks_for(fields: dict[str, object], mode: OrphanFilesMode) -> None:
    request = asked(min_age=7, **fields)
    assert (request.mode, request.min_age_minutes, request.quarantine) == (mode, 7, fields.get("restore"))
    assert request.dry_run != ("apply" in fields)
    assert asked(**{**fields, "apply": True}).dry_run is False
    assert asked().min_age_minutes == 60


def test_flags_that_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--restore and --delete-older-than exclude each other"):
        asked(apply=True, restore="x", delete_older_than=1)
    with pytest.raises(ConfigError, match="--dry-run and --apply exclude each other"):
        asked(apply=True, dry_run=True)


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
