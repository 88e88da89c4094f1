"""`import hudi_services`: a table and its methods."""

import dataclasses
import inspect
import logging
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import hudi_services
from hudi_services import errors
from hudi_services.api.table import Table
from hudi_services.commit.lease import Lease
from hudi_services.jobs import clean
from hudi_services.runs import config_files, report_rows
from hudi_services.runs.report import Report
from hudi_services.stores import open_storage

from . import histories
from .corruptions import do_damage, wrong_listing
from .page_examples import LOGS, NEW, PAGE, TABLE, WRITE_PAGE, demo_table, examples, run_examples
from .repairs import DEAD_AT_ONCE, cluster, fail_newest
from .tables import RELEASES, digest, listed_view, open_local, rows, unpack

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": 0}


pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def opened(folder: Path, release: str = "1.2.0", **more: Any) -> Table:
    return hudi_services.open(unpack(release, folder), options=QUICK, engine="local", **more)


def test_what_is_public() -> None:
    assert hudi_services.__all__ == sorted(hudi_services.__all__) == dir(hudi_services)
    for name in hudi_services.__all__:
        found = getattr(hudi_services, name)
        assert getattr(found, "__doc__", None) or issubclass(found, errors.HudiServicesError), name
    family = {name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, Exception)}
    # Nothing to do is a result.
    assert family - {"NothingToDo"} <= set(hudi_services.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'clean'"):
        hudi_services.clean  # noqa: B018
    assert (ROOT / "hudi_services" / "py.typed").exists()


@pytest.mark.thorough
def test_the_import_is_cheap() -> None:
    code = "import sys, hudi_services; print([m for m in sys.modules if m.split('.')[0] in ('pyarrow', 'obstore')])"
    code += "; print([m for m in sys.modules if m.startswith('hudi_services.')]); hudi_services.open"
    code += "; print([m for m in ('pyspark', 'typer', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n['hudi_services._version']\n[]\n", "")


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES)
def test_plan_and_execute(release: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = opened(tmp_path, release)
    path = Path(table.url)
    before, expected = digest(path), rows(open_local(path), listed_view(open_local(path)))
    looked = table.plan_clustering(dry_run=True)
    assert (looked.state, looked.ok, looked.dry_run) == (hudi_services.RunState.COMPLETED, True, True)
    assert digest(path) == before
    picked = looked.tables["file_slices"].filter(pa.compute.equal(looked.tables["file_slices"]["reason"], "picked"))
    assert looked.tables["clustering_groups"]["files"].to_pylist() == [
        picked["group"].to_pylist().count(number) for number in looked.tables["clustering_groups"]["group"].to_pylist()
    ]
    planned = table.plan_clustering(options={"hoodie.clustering.plan.strategy.sort.columns": "_hoodie_record_key"})
    assert (planned.state, planned.exit_code) == ("requested", 0)
    done = table.execute_clustering(planned.instant)
    assert (done.state, done.instant) == ("completed", planned.instant)
    assert [check["result"] for check in done.report["checks"]] == ["passed"]
    assert rows(open_local(path), listed_view(open_local(path))).equals(expected)
    idle = table.execute_clustering()
    assert (idle.state, idle.idle, idle.ok, idle.reason) == ("idle", True, True, "there is no pending clustering plan")
    assert table.cluster().state == "completed"
    assert capfd.readouterr() == ("", "")


def test_a_result_says_what_the_command_line_says(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import json

    from hudi_services.cli.app import run

    table = opened(tmp_path)
    result = table.clean(dry_run=True, options={"hoodie.clean.fileversions.retained": 1})
    words = [word for key, value in QUICK.items() for word in ("--hoodie-conf", f"{key}={value}")]
    words += ["--hoodie-conf", "hoodie.clean.fileversions.retained=1", "--dry-run", "--format", "json"]
    assert run(["clean", "-sp", table.url, *words]) == 0
    told, given = json.loads(capfd.readouterr().out), json.loads(json.dumps(result.report))
    for document in (told, given):
        assert document.pop("seconds")
        # The second run finds files in the cache.
        assert document.pop("requests")["driver"]["list"]
        for option in document["options"]:
            option["source"] = re.sub("options of .*|--hoodie-conf", "", option["source"])
    assert given == told
    assert {name: table.to_pylist() for name, table in result.tables.items()} == told["tables"]


def test_slices_and_files(tmp_path: Path) -> None:
    table = opened(tmp_path)
    view = open_local(Path(table.url)).view
    expected = [one for partition in view.partitions() for one in view.latest_slices(partition)]
    slices, files = table.slices(), table.files()
    assert slices["file_id"].to_pylist() == [one.file_id for one in expected]
    assert slices["log_files"].to_pylist() == [[]] * len(expected)
    assert slices["size"].to_pylist() == [(Path(table.url) / name).stat().st_size for name in files["path"].to_pylist()]
    one = expected[0].partition
    assert table.slices(one).num_rows == sum(found.partition == one for found in expected) < slices.num_rows
    assert table.files(one).schema == files.schema and table.slices(one).schema == slices.schema
    with pytest.raises(hudi_services.ConfigError, match="has no partition 'nowhere'"):
        table.slices("nowhere")


def test_the_log_files_of_a_slice() -> None:
    from hudi_services.api.arrow import files_table, slices_table
    from hudi_services.model import FileSlice, LogFile

    log = LogFile("p", ".a_1.log.1_0-1-2", "a", "1", 1, "0-1-2", "", 7)
    slices = [FileSlice("p", "a", "1", None, (log,))]
    assert slices_table(slices).to_pylist() == [
        {
            "partition": "p",
            "file_id": "a",
            "base_instant": "1",
            "base_file": None,
            "base_size": None,
            "log_files": ["p/.a_1.log.1_0-1-2"],
            "log_size": 7,
            "size": 7,
        }
    ]
    (file,) = files_table(slices).to_pylist()
    assert (file["path"], file["kind"], file["instant"], file["size"]) == (log.path, "log", "1", 7)


def test_what_a_table_tells_of_itself(tmp_path: Path) -> None:
    table = opened(tmp_path)
    assert (table.name, table.version, table.url) == ("fixture", 9, str(tmp_path / "table"))
    assert repr(table) == f"<Table fixture at {tmp_path}/table>"
    assert table.config["hoodie.table.name"] == "fixture"
    assert [field["name"] for field in (table.schema() or {})["fields"]][:2] == ["key", "ts"]
    planned = table.plan_clustering().instant
    *_, last = table.timeline().to_pylist()
    assert last == {"instant": planned, "action": "clustering", "state": "requested", "completion_time": None}


def test_index_and_lookup(tmp_path: Path) -> None:
    table = opened(tmp_path)
    with pytest.raises(hudi_services.ConfigError, match="has no record index"):
        table.look_up(["a"])
    assert table.build_index().state == "completed"
    assert table.build_index().state == "idle"
    there = rows(open_local(Path(table.url)), listed_view(open_local(Path(table.url))))["_hoodie_record_key"]
    keys = [*there.to_pylist()[:3], "nobody"]
    found = table.look_up(keys)
    assert found["key"].to_pylist() == keys[:3] and set(found["file_id"].to_pylist()) <= set(
        table.slices()["file_id"].to_pylist()
    )
    for same in (
        pa.array(keys),
        pa.chunked_array([keys[:1], keys[1:]]),
        pa.array(keys, pa.large_string()),
        tuple(keys),
    ):
        assert table.look_up(same).equals(found)
    assert table.look_up([]).num_rows == 0
    for wrong in ("key", ["a", None], [1], 5):
        with pytest.raises(hudi_services.ConfigError, match="key"):
            table.look_up(wrong)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_differences_come_with_the_error(tmp_path: Path) -> None:
    table = opened(tmp_path)
    assert table.validate().ok
    do_damage(Path(table.url), wrong_listing(Path(table.url)))
    with pytest.raises(hudi_services.CheckFailed) as caught:
        table.validate()
    result = caught.value.result
    assert (result.state, result.exit_code, result.ok) == ("failed", 5, False)
    assert result.tables["differences"].num_rows > 0 and "--apply" in caught.value.hint
    assert table.validate(repair=True).tables["repaired"].num_rows > 0
    assert table.validate(strict=True).ok


def test_failed_and_unwanted_writes(tmp_path: Path) -> None:
    table = hudi_services.open(unpack("1.2.0", tmp_path), options={**QUICK, **DEAD_AT_ONCE}, engine="local")
    failed = fail_newest(Path(table.url))
    judged = table.recover()
    assert judged.dry_run and judged.tables["instants"]["decision"].to_pylist() == ["roll back"]
    assert table.recover(apply=True, instant=failed).tables["instants"]["instant"].to_pylist() == [failed]
    assert table.recover().idle
    assert table.rollback(failed).idle
    done = cluster(Path(table.url))
    assert table.undo(done, dry_run=True).tables["visible_again"]["files"].to_pylist()
    assert table.undo(done).state == "completed"
    newest = table.timeline().filter(pa.compute.field("action") == "commit")["instant"].to_pylist()[-1]
    with pytest.raises(hudi_services.ConfigError) as caught:
        table.rollback(newest)
    assert caught.value.exit_code == 2 and caught.value.hint and caught.value.result.state == "failed"


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call's count most, then those of open(), then conf files, then the table's; unknown ones warn."""
    conf = tmp_path / "a.properties"
    prefix = "hoodie.clustering.plan.strategy"
    conf.write_text(f"{prefix}.max.num.groups=5\n{prefix}.small.file.limit=2\n{prefix}.target.file.max.bytes=1000000\n")
    path = unpack("1.2.0", tmp_path)
    defaults = {f"{prefix}.small.file.limit": 3, "hoodie.colour": True}
    table = hudi_services.open(path, options=defaults, conf_file=str(conf))
    result = table.plan_clustering(dry_run=True, options={f"{prefix}.max.num.groups": 4})
    found = {option["key"]: (option["value"], option["source"]) for option in result.report["options"]}
    assert found[f"{prefix}.max.num.groups"] == ("4", "options of the call")
    assert found[f"{prefix}.small.file.limit"] == ("3", "options of open()")
    assert found[f"{prefix}.target.file.max.bytes"] == ("1000000", f"conf file {conf}")
    assert any("hoodie.colour (from options of open())" in warning for warning in result.warnings)
    with pytest.raises(hudi_services.ConfigError, match=r"groups=x \(from options of the call\) is not a whole number"):
        table.plan_clustering(options={f"{prefix}.max.num.groups": "x"})
    with pytest.raises(hudi_services.ConfigError, match=r"a \(from options of the call\) is of the type list"):
        table.plan_clustering(options={"a": ["SECRET"]})  # type: ignore[dict-item]
    with pytest.raises(hudi_services.ConfigError, match="does not exist"):
        hudi_services.open(path, conf_file=str(tmp_path / "none")).clean()
    # A lock that this machine's conf files name must be taken by a notebook, too.
    (tmp_path / "hudi-defaults.conf").write_text("hoodie.write.concurrency.mode=optimistic_concurrency_control\n")
    monkeypatch.setattr(config_files, "default_files", lambda environment: [str(tmp_path / "hudi-defaults.conf")])
    with pytest.raises(hudi_services.ConfigError, match="needs a lock"):
        hudi_services.open(path).clean()


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    for url, kind, sentence in [
        (str(tmp_path / "none"), hudi_services.TableNotFound, "there is nothing at"),
        (str(tmp_path), hudi_services.TableNotFound, "is no Hudi table"),
        (" ", hudi_services.ConfigError, "is empty"),
        ("s3://key:SECRET@bucket/x", hudi_services.ConfigError, "holds a user name or password"),
        ("ftp://host/x", hudi_services.ConfigError, "is not supported"),
    ]:
        with pytest.raises(kind, match=sentence) as caught:
            hudi_services.open(url)
        assert "SECRET" not in str(caught.value)
    with pytest.raises(hudi_services.ConfigError, match="engine='dask' is neither"):
        hudi_services.open(path, engine="dask")  # type: ignore[arg-type]


def test_somebody_is_at_work(tmp_path: Path) -> None:
    table = opened(tmp_path)
    with Lease(open_storage(table.url), "table", "schedule"), pytest.raises(hudi_services.LockBusy) as caught:
        table.plan_clustering(options={"hoodie.write.lock.wait_time_ms": "100"})
    assert isinstance(caught.value, hudi_services.ConflictError) and caught.value.exit_code == 4


def test_partly_done_is_raised_with_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path)

    def partly(wanted: Any, storage: object) -> Report:
        return Report.start(wanted).partly_done("done, but for one thing", "do that")

    monkeypatch.setattr(clean, "clean", partly)
    with pytest.raises(hudi_services.PartlyDone, match="but for one thing") as caught:
        table.clean()
    assert (caught.value.hint, caught.value.result.state) == ("do that", "partly_done")


def test_errors_that_nobody_expected_are_of_the_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path)

    def broken(wanted: object, storage: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(clean, "clean", broken)
    with pytest.raises(hudi_services.HudiServicesError, match="ZeroDivisionError: oh") as caught:
        table.clean()
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and caught.value.exit_code == 1


def test_ctrl_c_stays_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path)

    def interrupted(wanted: object, storage: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise ImportError("in the middle of an import") from interrupt

    monkeypatch.setattr(clean, "clean", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.clean()


def test_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    table = opened(tmp_path, retries=1)
    calls: list[object] = []
    original = clean.clean

    def second_time(wanted: Any, storage: Any) -> Report:
        calls.append(wanted)
        if len(calls) == 1:
            raise hudi_services.StorageError("the store hiccups")
        return original(wanted, storage)

    monkeypatch.setattr(clean, "clean", second_time)
    logging.getLogger("hudi_services").propagate = True
    assert table.clean().idle and len(calls) == 2
    assert "the store hiccups; trying again (1 of 1)" in caplog.text


def test_progress(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    table = opened(tmp_path / "a", progress=lambda *now: seen.append(now))
    size = table.cluster().report["bytes"]["in"]
    assert ("rewrite", size, size) in seen

    def broken(*now: object) -> None:
        raise ValueError("no screen")

    result = opened(tmp_path / "b", progress=broken).cluster()
    assert result.state == "completed"
    assert "progress raised ValueError, and was not called again: no screen" in result.warnings


@pytest.mark.thorough
def test_threads_on_tables_of_their_own(tmp_path: Path) -> None:
    tables = [opened(tmp_path / release, release) for release in RELEASES]
    before = dict(os.environ), list(sys.path), pa.default_memory_pool().backend_name
    with ThreadPoolExecutor(len(tables)) as pool:
        assert [one.state for one in pool.map(lambda table: table.cluster(), tables)] == ["completed"] * len(tables)
    assert (dict(os.environ), list(sys.path), pa.default_memory_pool().backend_name) == before


@pytest.mark.thorough
def test_nothing_is_printed_without_logging(tmp_path: Path) -> None:
    """Python prints warnings of loggers that nobody listens to."""
    path = unpack("1.2.0", tmp_path)
    code = (
        "import hudi_services, logging;"
        f"hudi_services.open({str(path)!r}, engine='local').cluster();"
        "logging.getLogger('hudi_services.jobs').warning('heard by nobody')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


SECRETS = {"aws_endpoint": "http://127.0.0.1:1", "aws_access_key_id": "AKIA-SECRET", "aws_secret_access_key": "SECRET"}


def test_storage_options_that_are_wrong(tmp_path: Path) -> None:
    for options, sentence in [
        ({"aws_colour": "SECRET"}, "storage_options cannot be used for s3://lake/x: .*aws_colour.* is not valid"),
        ({"allow_http": "SECRET"}, "storage_options cannot be used for s3://lake/x: .*boolean"),
        ({"aws_endpoint": "http://h", "AWS_ENDPOINT_URL": "http://h"}, "Duplicate key aws_endpoint"),
        ({"bucket": "SECRET"}, "storage_options: bucket names a place, and the URL does that"),
        ({"region": ["SECRET"]}, "storage_options: the value of region is of the type list"),
        ({"google_service_account": "SECRET"}, "google_service_account"),
    ]:
        with pytest.raises(hudi_services.ConfigError, match=sentence) as caught:
            hudi_services.open("s3://lake/x", storage_options=options)  # type: ignore[arg-type]
        assert "SECRET" not in str(caught.value) + caught.value.hint
    with pytest.raises(hudi_services.ConfigError, match="storage_options are for stores"):
        hudi_services.open(tmp_path, storage_options=SECRETS)


def test_storage_options_show_no_secret() -> None:
    from hudi_services.stores.options import StorageOptions

    storage = open_storage("s3://lake/x", StorageOptions({**SECRETS, "allow_http": True, "aws_region": "eu-1"}))
    again = pickle.loads(pickle.dumps(storage))
    assert again._options == storage._options and hash(again._options) == hash(storage._options)
    for text in (
        repr(storage),
        repr(again),
        repr(storage._options),
        repr(vars(storage)),
        repr(again.elsewhere("s3://a/b")),
    ):
        assert "SECRET" not in text
    assert storage._options is not None
    assert storage._options.hide("http://127.0.0.1:1 eu-1 AKIA-SECRET SECRET") == "http://127.0.0.1:1 eu-1 … …"
    assert storage._options.client == {"allow_http": True}
    # A lock folder of the same store is reached in the same way, and one elsewhere is not told any of it.
    assert storage.elsewhere("s3a://locks/x")._options == storage._options
    assert storage.elsewhere("gs://locks/x")._options is storage.elsewhere("/locks")._options is None
    with pytest.raises(hudi_services.ConfigError, match="the scheme of nowhere://locks is not supported"):
        storage.elsewhere("nowhere://locks")


@pytest.mark.thorough
def test_the_examples_of_the_page(tmp_path: Path) -> None:
    path = demo_table(tmp_path)
    logged = histories.MadeHistory("1.2.0", "default_order", tmp_path / "logged").path
    assert run_examples(examples(), {TABLE: str(path), LOGS: str(logged), NEW: str(tmp_path / "trips")}) > 20


@pytest.mark.thorough
def test_the_examples_of_writing(tmp_path: Path) -> None:
    changes = {"/data/": f"{tmp_path}/"}
    assert run_examples(examples(page=WRITE_PAGE), changes) > 4
    frames = examples("frames", WRITE_PAGE)
    assert len(frames) == 1
    names = {"trips": hudi_services.open(tmp_path / "trips", engine="local")}
    assert run_examples(frames, changes, names) == 2


@pytest.mark.thorough
def test_the_example_for_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for what it takes of Airflow."""
    airflow = {name: ModuleType(name) for name in ("airflow", "airflow.decorators", "airflow.exceptions")}
    airflow["airflow.decorators"].task = lambda **_: lambda function: function  # type: ignore[attr-defined]
    for name in ("AirflowFailException", "AirflowSkipException"):
        setattr(airflow["airflow.exceptions"], name, type(name, (Exception,), {}))
    for name, module in airflow.items():
        monkeypatch.setitem(sys.modules, name, module)
    path = demo_table(tmp_path)
    names = {"hudi_services": hudi_services}
    assert run_examples(examples("airflow"), {TABLE: str(path)}, names) == 1
    with pytest.raises(airflow["airflow.exceptions"].AirflowFailException, match="there is nothing at"):
        run_examples(examples("airflow"), {TABLE: str(tmp_path / "none")}, names)


def test_every_method_is_in_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    methods = [name for name, one in vars(Table).items() if inspect.isfunction(one) and not name.startswith("_")]
    table = text.partition("\n## Methods and commands\n")[2]
    assert re.findall(r"`(\w+)`(?=[,\s][^|]*\|.*\|$)", table, re.MULTILINE)
    assert {name for name in methods if f"`{name}`" not in table} == set()
    for argument in list(inspect.signature(hudi_services.open).parameters)[1:]:
        assert f"| `{argument}` |" in text
    for field in (*(one.name for one in dataclasses.fields(hudi_services.Result)), "ok", "idle"):
        assert f"`{field}`" in text.partition("\n## Results\n")[2]


def test_the_lists_have_the_columns_of_the_page() -> None:
    page = (ROOT / "docs/report.md").read_text(encoding="utf-8").partition("\n## The lists\n")[2]
    sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL))
    told: set[tuple[str, tuple[str, ...]]] = set()
    for text in sections.values():
        lists: dict[str, list[str]] = {}
        for name, column in re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE):
            lists.setdefault(name, []).append(column)
        told |= {(name, tuple(columns)) for name, columns in lists.items()}
    kinds = [one for one in vars(report_rows).values() if inspect.isclass(one) and issubclass(one, report_rows.Row)]
    bases = [one for one in kinds if one.list_name and one.__base__.list_name != one.list_name]
    assert {(one.list_name, tuple(report_rows.columns(one))) for one in bases} == told
