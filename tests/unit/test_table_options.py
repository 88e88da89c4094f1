"""What `hoodie.properties` and plans of a table may ask of the tool: no code, nothing outside, nothing without end."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_services.cli.app import run
from hudi_services.codecs.clustering_plan import decode_requested_replace, encode_clustering_plan
from hudi_services.errors import ConfigError
from hudi_services.jobs import clustering
from hudi_services.options import Option, clean_keys, commit_keys, file_keys, index_keys, lock_keys, resolve
from hudi_services.options import clustering_keys as keys
from hudi_services.options.option import Phase
from hudi_services.options.registry import OPTIONS
from hudi_services.options.resolve import as_text
from hudi_services.rows.row_order import RowOrder
from hudi_services.runs.request import Mode

from .tables import RELEASES, digest, open_local, request, rows, unpack

pytestmark = pytest.mark.usefixtures("without_spark")

CODE = "hostile_module:Hostile"
NO_FUNCTION = "hostile_module:number"
TABLE = "from table"


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that Python finds, and that makes this file when it is imported."""
    trace = tmp_path / "imported"
    (tmp_path / "hostile_module.py").write_text(f"open({str(trace)!r}, 'w').close()\nclass Hostile: pass\nnumber = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("hostile_module", None)
    return trace


def set_in_table(path: Path, **properties: str) -> None:
    with (path / ".hoodie/hoodie.properties").open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in properties.items())


def refused(capfd: pytest.CaptureFixture[str], path: Path, *arguments: str) -> str:
    before = digest(path)
    assert run([arguments[0], "--base-path", str(path), *arguments[1:]]) == 2
    assert digest(path) == before
    said = capfd.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("key", "command"),
    [
        (keys.PLAN_STRATEGY_CLASS.key, ["schedule", "--dry-run"]),
        (keys.EXECUTION_STRATEGY_CLASS.key, ["schedule", "--dry-run"]),
        (keys.LAYOUT_STRATEGY.key, ["schedule", "--hoodie-conf", f"{keys.SORT_COLUMNS.key}=_hoodie_record_key"]),
        (index_keys.INDEX_HASH.key, ["index-bootstrap"]),
    ],
)
def test_a_table_names_no_code(
    key: str, command: list[str], imported: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = unpack("1.2.0", tmp_path / "t")
    code = NO_FUNCTION if key == index_keys.INDEX_HASH.key else CODE
    set_in_table(path, **{key: code})
    said = refused(capfd, path, *command)
    assert f"{key}={code} (from table) cannot be set by a table" in said and "--hoodie-conf" in said
    assert not imported.exists()
    # Named by the operator it is loaded, and found wrong.
    refused(capfd, path, *command, "--hoodie-conf", f"{key}={code}")
    assert imported.exists()


@pytest.mark.thorough
def test_no_module_comes_from_the_tables_folder(tmp_path: Path) -> None:
    """Not even those that this tool asks for."""
    path = unpack("1.2.0", tmp_path)
    for name in ("typer", "obstore", "hostile_module"):
        (path / f"{name}.py").write_text("raise SystemExit(99)")
    flags = ["schedule", "--dry-run", "--base-path", ".", "--hoodie-conf", f"{keys.PLAN_STRATEGY_CLASS.key}={CODE}"]
    done = subprocess.run([sys.executable, "-m", "hudi_services", *flags], cwd=path, capture_output=True, text=True)
    assert done.returncode == 2 and f"the plan strategy {CODE} cannot be loaded: No module named" in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_plan_names_no_code(
    release: str, imported: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(release, tmp_path / "t")
    clustering.schedule(request(path, Mode.SCHEDULE, {keys.SORT_COLUMNS.key: "_hoodie_record_key"}))
    table = open_local(path)
    instant = table.timeline.pending_clusterings()[0]
    file = path / table.timeline.path(instant.file_name)
    plan = decode_requested_replace(file.read_bytes(), file.name).plan
    assert plan is not None
    params = {**plan.strategy_params, keys.LAYOUT_STRATEGY.key: CODE}
    file.write_bytes(encode_clustering_plan(replace(plan, strategy_params=params), table.config.version.release))
    said = refused(capfd, path, "execute")
    assert f"the plan of {instant.ts} names the layout {CODE}, which is code" in said
    assert f"; if not: hudi-services rollback --base-path {path} --instant {instant.ts}\n" in said
    assert not imported.exists()
    # One that somebody trusts is named by him, too.
    before = rows(open_local(path), open_local(path).view)
    monkeypatch.setattr("hudi_services.rows.row_order.load_class", lambda *_: Descending)
    code = run(["execute", "--base-path", str(path), "--hoodie-conf", f"{keys.LAYOUT_STRATEGY.key}={CODE}"])
    assert code == 0
    assert rows(open_local(path), open_local(path).view).equals(before)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_a_plan_names_no_code_that_writes_rows(
    release: str, imported: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = unpack(release, tmp_path / "t")
    clustering.schedule(request(path, Mode.SCHEDULE))
    table = open_local(path)
    instant = table.timeline.pending_clusterings()[0]
    file = path / table.timeline.path(instant.file_name)
    plan = decode_requested_replace(file.read_bytes(), file.name).plan
    assert plan is not None
    for named in (replace(plan, extra={"hudi_services.execution": CODE}), replace(plan, strategy_class=CODE)):
        file.write_bytes(encode_clustering_plan(named, table.config.version.release))
        if named.extra != plan.extra:
            said = refused(capfd, path, "execute")
            assert f"the plan of {instant.ts} names the execution strategy {CODE}, which is code" in said
            assert f"--hoodie-conf {keys.EXECUTION_STRATEGY_CLASS.key}={CODE}" in said
    # A class that is not known here is that of whoever wrote the plan; ours rewrites the group.
    assert run(["execute", "--base-path", str(path)]) == 0
    assert not imported.exists()


def test_a_plan_for_millions_of_files_is_dropped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    table = open_local(path)
    instant = table.timeline.pending_clusterings()[0]
    file = path / table.timeline.path(instant.file_name)
    plan = decode_requested_replace(file.read_bytes(), file.name).plan
    assert plan is not None
    groups = (replace(plan.groups[0], output_groups=(1 << 31) - 1), *plan.groups[1:])
    file.write_bytes(encode_clustering_plan(replace(plan, groups=groups), table.config.version.release))
    assert run(["execute", "--base-path", str(path)]) == 1
    assert "asks for 2,147,483,647 new files" in capfd.readouterr().err
    assert run(["recover", "--apply", "--base-path", str(path)]) == 0
    assert not open_local(path).timeline.pending()


class Descending(RowOrder):
    def learn(self, sample: Any) -> None:
        return None

    def places(self, given: Any) -> Any:
        import numpy as np

        return -np.arange(len(given[0]), dtype=np.int64)


HELD_UP = {
    keys.PARTITION_REGEX: ("(([a-z0-9=-])+)+X", "schedule"),
    clean_keys.CLEAN_PARTITION_REGEX: ("(([a-z0-9=-])+)+X", "clean"),
    file_keys.MEMORY_PER_TASK: ("1t", "execute"),
    file_keys.MAX_PARALLELISM: ("1000000", "execute"),
    commit_keys.CLOCK_SKEW_MILLIS: ("100000", "schedule"),
    lock_keys.LOCK_WAIT_MILLIS: ("600001", "clean"),
    lock_keys.LOCK_RETRY_WAIT_MILLIS: ("60001", "clean"),
    file_keys.BLOOM_ENTRIES: ("2147483647", "execute"),
    file_keys.BLOOM_FPP: ("1e-300", "execute"),
    file_keys.BLOOM_MAX_ENTRIES: ("1", "execute"),
    file_keys.PARQUET_BLOCK_BYTES: ("1", "execute"),
    keys.TARGET_FILE_BYTES: ("1", "schedule"),
    index_keys.RECORD_INDEX_GROWTH: ("1000", "index-bootstrap"),
    lock_keys.LOCK_FOLDER: ("/somewhere/else", "schedule"),
}


@pytest.mark.parametrize("option", HELD_UP, ids=lambda option: option.key)
def test_a_table_neither_holds_us_up_nor_sends_us_elsewhere(
    option: Option[Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value, command = HELD_UP[option]
    path = unpack("1.2.0", tmp_path)
    set_in_table(path, **{option.key: value})
    said = refused(capfd, path, command)
    assert f"{option.key}={value} (from table) cannot be set by a table" in said


def test_a_lock_folder_of_the_table_is_not_touched(tmp_path: Path) -> None:
    path, folder = unpack("1.2.0", tmp_path / "t"), tmp_path / "operators"
    folder.mkdir()
    (folder / "lock").write_text("mine")
    lock = {
        lock_keys.LOCK_PROVIDER.key: lock_keys.FILE_SYSTEM_LOCK,
        lock_keys.LOCK_FOLDER.key: str(folder),
        lock_keys.LOCK_EXPIRE_MINUTES.key: "1",
    }
    set_in_table(path, **lock)
    for command in (["schedule"], ["clean"], ["recover", "--apply"]):
        assert run([*command, "--base-path", str(path)]) == 2
    assert (folder / "lock").read_text() == "mine"
    given = [f for key, value in lock.items() for f in ("--hoodie-conf", f"{key}={value}")]
    (folder / "lock").unlink()
    assert run(["schedule", "--base-path", str(path), *given]) == 0


WRONG = [one for one in OPTIONS if one not in lock_keys.LOCKING and one.parse.__name__ not in ("text", "names")]


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_wrong_values_of_a_table_do_not_block_its_repair(
    release: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = unpack(release, tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    set_in_table(path, **{one.key: ":" for one in WRONG})
    table = open_local(path)
    ts = table.timeline.pending_clusterings()[0].ts
    assert run(["recover", "--base-path", str(path)]) == 0
    said = capfd.readouterr().err
    repaired = [one.key for one in WRONG if one.phase & Phase.REPAIR]
    assert repaired and all(f"{key}=: (from table)" in said for key in repaired)
    assert run(["rollback", "--instant", ts, "--base-path", str(path)]) == 0
    assert not open_local(path).timeline.pending()
    for command in ("schedule", "clean", "index-bootstrap"):
        assert f"{TABLE})" in refused(capfd, path, command)


@pytest.mark.parametrize(
    ("option", "value"),
    [(lock_keys.LOCK_PROVIDER, "nonsense"), (lock_keys.CONCURRENCY_MODE, "OPTIMISTIC_CONCURRENCY_CONTROL")],
)
def test_nobody_repairs_without_the_lock_that_a_table_asks_for(
    option: Option[str], value: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = unpack("1.2.0", tmp_path)
    clustering.schedule(request(path, Mode.SCHEDULE))
    set_in_table(path, **{option.key: value})
    assert option.key in refused(capfd, path, "recover", "--apply")
    overridden = ["--hoodie-conf", f"{option.key}={option.default}"]
    assert run(["recover", "--base-path", str(path), *overridden]) == 0


def test_the_operators_value_counts_and_the_tables_is_not_looked_at() -> None:
    table = {one.key: ":" for one in OPTIONS}
    operator = {
        one.key: "" if one.default is None else as_text(one.default) for one in OPTIONS if one.default is not None
    }
    options = resolve([("--hoodie-conf", operator)]).over_table(table)
    for one in OPTIONS:
        if one.default is not None:
            assert options[one] == one.default and options.source(one) == "--hoodie-conf"
        else:
            with pytest.raises(ConfigError, match=TABLE):
                options[one]


EXTREMES = ["9223372036854775807", "-9223372036854775808", "1e308", "-1", "0", "1", "\u0663", "99999999999999999999"]


@pytest.mark.spread(6)
@pytest.mark.parametrize("extreme", EXTREMES)
def test_extreme_numbers_are_values_or_sentences(
    extreme: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of the operator: a century is enough for every time, and nothing overflows."""
    path = unpack("1.2.0", tmp_path)
    numbers = [one for one in OPTIONS if one.parse.__name__ in ("parse", "size", "factor", "fraction", "memory")]
    commands = {
        Phase.PLAN: ["schedule", "--dry-run"],
        Phase.WRITE: ["schedule", "--dry-run"],
        Phase.CLEAN: ["clean", "--dry-run"],
        Phase.REPAIR: ["recover"],
        Phase.INDEX: ["orphan-files"],
    }
    for phase, command in commands.items():
        for one in numbers:
            if not one.phase & phase:
                continue
            code = run([*command, "--base-path", str(path), "--hoodie-conf", f"{one.key}={extreme}"])
            said = capfd.readouterr().err
            assert code in (0, 2, 6) and "Error" not in said, (command, one.key, said)
