"""The flags of `clean` that are about garbage: what they ask for, and what they print."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from hudi_services.cli.flags import command
from hudi_services.cli.orphan_files import OrphanFilesFlags, orphan_files_request, run_orphan_files
from hudi_services.errors import ConfigError
from hudi_services.jobs import config_files
from hudi_services.jobs.request import OrphanFilesMode

from .archives import unpack_archived

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def no_conf_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_files, "default_files", lambda environment: [])


@pytest.fixture
def run() -> Run:
    """A command with these flags alone."""

    @command(OrphanFilesFlags)
    def clean(flags: OrphanFilesFlags) -> int:
        """Only for this test."""
        return run_orphan_files(flags)

    app = typer.Typer()
    app.command()(clean)
    return lambda *arguments: app(list(arguments), standalone_mode=False)


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, OrphanFilesMode.FIND),
        ({"apply": True}, OrphanFilesMode.QUARANTINE),
        ({"restore": "20260101T000000000"}, OrphanFilesMode.RESTORE),
        ({"delete_older_than": 0}, OrphanFilesMode.DELETE),
    ],
)
def test_what_each_flag_asks_for(fields: dict[str, object], mode: OrphanFilesMode) -> None:
    flags = OrphanFilesFlags(base_path="/t", garbage=True, min_age=7, **fields)  # type: ignore[arg-type]
    assert flags.is_about_garbage
    request = orphan_files_request(flags)
    assert (request.mode, request.min_age_minutes, request.quarantine) == (mode, 7, fields.get("restore"))
    if fields:
        assert OrphanFilesFlags(base_path="/t", **fields).is_about_garbage  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="needs --garbage"):
            orphan_files_request(OrphanFilesFlags(base_path="/t", **fields))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--min-age needs --garbage"):
        orphan_files_request(OrphanFilesFlags(base_path="/t", min_age=7))
    assert not OrphanFilesFlags(base_path="/t").is_about_garbage


def test_flags_that_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--apply and --restore exclude each other"):
        orphan_files_request(OrphanFilesFlags(base_path="/t", garbage=True, apply=True, restore="x"))


def test_a_whole_life_of_garbage(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(unpack_archived(tmp_path) / "1.2.0" / "listed")

    def report(*arguments: str) -> dict[str, object]:
        capsys.readouterr()
        code = run("--base-path", path, "--garbage", "--min-age", "0", "--format", "json", *arguments)
        document: dict[str, object] = json.loads(capsys.readouterr().out)
        assert document["exit_code"] == code == 0
        return document

    dry = report()
    assert (dry["action"], dry["state"], dry["reason"]) == ("find", "completed", "dry run: nothing was moved")
    assert dry["files"] == {"in": 10, "out": None}
    moved = report("--apply")
    assert (moved["action"], moved["files"]) == ("quarantine", {"in": 10, "out": 10})
    name = str(moved["reason"]).rpartition(" ")[2]
    idle = report()
    assert (idle["state"], idle["reason"]) == ("idle", "there is no garbage")
    assert [row["quarantine"] for row in idle["tables"]["quarantines"]] == [name]  # type: ignore[index]
    assert report("--restore", name)["files"] == {"in": 10, "out": 10}
    report("--apply")
    assert report("--delete-older-than", "0")["files"] == {"in": 10, "out": 0}


def test_the_default_minimum_age(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = unpack_archived(tmp_path) / "1.2.0" / "listed"
    for file in path.glob("p?/*.parquet"):
        file.touch()
    assert run("--base-path", str(path), "--garbage", "--fail-if-idle") == 3
    assert "younger than the minimum age" in capsys.readouterr().out


def test_what_is_told_of_a_wrong_quarantine(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = unpack_archived(tmp_path) / "1.2.0" / "listed"
    assert run("--base-path", str(path), "--garbage", "--restore", "20200101T000000000") == 2
    error = capsys.readouterr().err
    assert error == (
        f"error: there is no quarantine 20200101T000000000 in {path}/.hoodie/.hudi_services/quarantine\n"
        "hint: there are: none\n"
    )
