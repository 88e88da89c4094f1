"""Commands that an operator is told to run next have the options of the run that tells them."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_services
from hudi_services.cli.app import run
from hudi_services.cli.commands import COMMANDS
from hudi_services.options import resolve
from hudi_services.own_commands import own_command
from hudi_services.runs import next_command as module
from hudi_services.runs.next_command import next_command, with_options

ROOT, KEY = "/data/rides", "hoodie.keep.max.commits"


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


@settings(max_examples=50)
@given(st.data())
def test_commands_in_sentences(data: st.DataObject) -> None:
    """Each command of a hint, wherever it is, is one that can be copied; told again, it stays as it is."""
    roots = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)
    keys = st.sampled_from(["hoodie.write.lock.zookeeper.url", "hoodie.table.name"])
    values = st.dictionaries(keys, roots, max_size=2)
    root, given_values = data.draw(roots), {KEY: "7", **data.draw(values)}
    flags = data.draw(st.sampled_from(["", "--apply", "--instant 2026", f"--hoodie-conf {KEY}=9"]))
    place = data.draw(st.sampled_from(["", root]))
    bare = own_command("clean", place, flags) if place else f"hudi-services clean {flags}".rstrip()
    before, after = data.draw(
        st.sampled_from([("", ""), ("run: ", "; then again"), ("(", ")"), ("or (see ", ", or x)")])
    )
    options = resolve([("--hoodie-conf", given_values)])
    told = with_options(f"{before}{bare}{after}", options, root)
    command = told[len(before) :].removesuffix(after)
    shown = [f"{one.key}={one.value}" for one in options.of_run() if f"{one.key}=" not in flags]
    ours = [word for one in shown for word in ("--hoodie-conf", one)]
    assert shlex.split(command) == ["hudi-services", "clean", "--base-path", root, *ours, *shlex.split(flags)]
    assert with_options(told, options, root) == told


def test_what_is_no_command_stays() -> None:
    options = resolve([("--hoodie-conf", {KEY: "9"})])
    for text in ("install it: pip install 'hudi-services[java]'", "/opt/hudi-services schedule", "hudi_services clean"):
        assert with_options(text, options, ROOT) == text
    both = with_options("hudi-services recover, or hudi-services clean --apply", options, ROOT)
    ours = f"--base-path {ROOT} --hoodie-conf {KEY}=9"
    assert both == f"hudi-services recover {ours}, or hudi-services clean {ours} --apply"


def test_a_file_is_named_once() -> None:
    options = resolve([("--props /my files/a", {KEY: "4"})])
    told = with_options("run: hudi-services clean; then again", options, ROOT)
    assert told == f"run: hudi-services clean --base-path {ROOT} --props /my\\ files/a; then again"
    assert with_options(told, options, ROOT) == told
    another = with_options("hudi-services clean --props /my\\ files/ab", options, ROOT)
    assert another.count("--props") == 2


def test_commands_in_the_source_exist() -> None:
    names = {command.name for command in COMMANDS}
    files = Path(module.__file__).parents[1].rglob("*.py")
    found = {name for file in files for name in re.findall(r"hudi-services ([a-z][a-z-]+)", file.read_text())}
    assert len(found) >= 5 and found <= names


def test_hints_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As an operator meets it: the command that mends takes the lock that this one was given."""
    hudi_services.create(str(tmp_path / "my rides"), record_key="k")
    lock = "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    flags = ["--base-path", str(tmp_path / "my rides"), "--hoodie-conf", lock]
    (tmp_path / "keys").write_text("1\n")
    assert run(["index-lookup", *flags, "--keys-file", str(tmp_path / "keys"), "--verbose"]) == 2
    told = capsys.readouterr().err.partition("build it: ")[2].splitlines()[0]
    assert shlex.split(told) == ["hudi-services", "index-bootstrap", *flags]
