"""Commands that an operator is told to run next have the options of the run that tells them."""

import shlex
from pathlib import Path

import pytest

from hudi_services.options import resolve
from hudi_services.runs import next_command as module
from hudi_services.runs.next_command import next_command

ROOT = "/data/rides"


def words(options: list[tuple[str, dict[str, str]]], flags: str = "") -> list[str]:
    program, name, base_path, root, *rest = shlex.split(next_command(resolve(options), "clean", ROOT, flags))
    assert (program, name, base_path, root) == ("hudi-services", "clean", "--base-path", ROOT)
    return rest


def test_options_of_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "default_files", lambda environment: ["/etc/hudi/conf/hudi-defaults.conf"])
    assert words(
        [
            ("--engine", {"hudi.services.engine": "local"}),
            ("--hoodie-conf", {"hoodie.clean.commits.retained": "3", "hoodie.keep.max.commits": "9"}),
            ("--props /my files/a.properties", {"hoodie.keep.min.commits": "4", "hoodie.clean.commits.retained": "5"}),
            ("conf file /tmp/own.conf", {"hoodie.clean.policy": "KEEP_LATEST_COMMITS"}),
            ("conf file /etc/hudi/conf/hudi-defaults.conf", {"hoodie.parquet.small.file.limit": "7"}),
            ("table", {"hoodie.parquet.max.file.size": "8"}),
        ],
        "--dry-run --hoodie-conf hoodie.keep.max.commits=20",
    ) == shlex.split(
        "--dry-run --hoodie-conf hoodie.keep.max.commits=20 --hoodie-conf hoodie.clean.commits.retained=3 "
        "--conf-file /tmp/own.conf --props '/my files/a.properties'"
    )


def test_options_of_a_line_of_a_fleet_and_of_python() -> None:
    assert words(
        [
            ("tables.txt:3", {"hoodie.clean.commits.retained": "3", "hudi.services.fleet.services": "clean"}),
            ("options of open()", {"hoodie.keep.max.commits": "9"}),
        ]
    ) == ["--hoodie-conf", "hoodie.clean.commits.retained=3", "--hoodie-conf", "hoodie.keep.max.commits=9"]


def test_secrets_are_left_out(tmp_path: Path) -> None:
    options = {"hoodie.write.lock.zookeeper.url": "https://me:secret@host/x", "hoodie.keep.max.commits": "9"}
    assert words([("--hoodie-conf", options)]) == ["--hoodie-conf", "hoodie.keep.max.commits=9"]
    assert next_command(None, "clean", "/a b") == "hudi-services clean --base-path /a\\ b"
