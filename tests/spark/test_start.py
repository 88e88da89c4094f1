"""How a session of our own starts: the archive of classes, and the process that workers are forked from."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_services.spark import class_archive
from tests.unit.page_examples import demo_table

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
WORKERS = """
import json, os, sys
from hudi_services.rewriting import rewrite
from hudi_services.spark import session, worker_host
from hudi_services.spark.spark_engine import SparkEngine

def look(_):
    return [one in sys.modules for one in ("hudi_services.rewriting.rewrite", "pyarrow.parquet")]

hosts = []
session.WorkerHost = lambda folder: hosts.append(worker_host.WorkerHost(folder)) or hosts[-1]
with session.spark("look", "local[2]", None) as there:
    if sys.argv[1] == "without":
        os.unlink(hosts[0].place)
    found = there.context.parallelize([0, 1], 2).map(look).collect()
    from tests.engine_contract import Sized, squared
    made = SparkEngine(there.context).map(squared, [Sized(2, 1), Sized(3, 1)], "square", lambda *told: None)
print(json.dumps([found, [number for number, _ in made], "PYTHONPATH" in os.environ]))
"""


@pytest.mark.parametrize("host", ["with", pytest.param("without", marks=pytest.mark.deep)])
def test_workers_have_what_tasks_need(host: str) -> None:
    """Where the process is gone that they are forked from, Spark's own daemon starts them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", WORKERS, host], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found, made, is_changed = json.loads(done.stdout)
    assert found == [[host == "with"] * 2] * 2 and made == [4, 9] and not is_changed


def clustered(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    path = str(demo_table(folder))
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    line = [sys.executable, "-m", "hudi_services", "execute", "--mode", "scheduleAndExecute", "--base-path", path]
    return subprocess.run(
        [*line, "--format", "json"], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.thorough
def test_an_archive_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java does without it, and says nothing of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = class_archive.place()
    assert place is not None and place.parent == tmp_path / "cache/hudi_services"
    for one in (place, class_archive.of_launcher(place)):
        one.write_bytes(bytes(range(256)) * 64)
    of_java, of_launcher = class_archive.archive_options()
    assert str(place) in of_java and str(class_archive.of_launcher(place)) in of_launcher
    done = clustered(tmp_path / "table", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "completed"
    assert "rchive" not in done.stderr.replace("Picked up JAVA_TOOL_OPTIONS", "")


def in_own_process(program: str, *arguments: str) -> None:
    """Other tests have left a session of Spark in this one, whose Java has its options already."""
    whole = f"import sys\nfrom hudi_services.spark import archive_making\n{program}"
    subprocess.run([sys.executable, "-c", whole, *arguments], cwd=ROOT, check=True, timeout=300)


@pytest.mark.deep
def test_the_archive_is_made_once_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = class_archive.place()
    assert place is not None
    in_own_process("from pathlib import Path; archive_making.make(Path(sys.argv[1]))", str(place))
    made = {place, class_archive.of_launcher(place)}
    assert {*place.parent.iterdir()} == made and place.stat().st_size > 10 << 20
    loaded = {one: tmp_path / one.name for one in (place, class_archive.of_launcher(place))}
    options = [
        class_archive.options_of(one).replace(class_archive.QUIET, f"-Xlog:disable -Xlog:class+load:file={file}")
        for one, file in loaded.items()
    ]
    in_own_process("archive_making.start_and_stop(*sys.argv[1:])", *options)
    counted = [file.read_text().count("source: shared objects file (top)") for file in loaded.values()]
    assert counted[0] > 3000 and counted[1] > 20
    assert {*place.parent.iterdir()} == made


@dataclass(frozen=True)
class Marked:
    """Runs of `execute` on a table, whose processes have a mark, and whose Java tells when it starts."""

    folder: Path

    @property
    def told(self) -> Path:
        return self.folder / "java"

    def start(self, path: Path, *flags: str) -> "subprocess.Popen[str]":
        """With a folder for temporary files, whose name is the mark."""
        temporary = self.folder / "temporary"
        java = Path(shutil.which("java") or "")
        home = self.folder / "home"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        temporary.mkdir(exist_ok=True)
        (home / "bin/java").write_text(f'#!/bin/sh\ntouch {self.told}\nexec {os.path.realpath(java)} "$@"\n')
        (home / "bin/java").chmod(0o755)
        line = [sys.executable, "-m", "hudi_services", "execute", "--base-path", str(path), "--format", "json"]
        environment = {**os.environ, "JAVA_HOME": str(home), "TMPDIR": str(temporary)}
        return subprocess.Popen([*line, *flags], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    def processes(self) -> list[Path]:
        mark = f"TMPDIR={self.folder / 'temporary'}".encode()
        return [process for process in Path("/proc").glob("[0-9]*") if mark in read(process / "environ")]

    def wait_for_the_end(self) -> None:
        """Until no process has the mark."""
        end = time.monotonic() + 60
        while self.processes():
            assert time.monotonic() < end
            time.sleep(0.1)


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


_BOTH = ("--mode", "scheduleAndExecute")


@pytest.mark.thorough
def test_java_that_was_begun_in_vain(tmp_path: Path) -> None:
    """It leaves no process and no file; and it does not start where nothing was written since the last plan."""
    path, runs = demo_table(tmp_path / "table"), Marked(tmp_path)
    nothing = ("--hoodie-conf", "hoodie.clustering.plan.strategy.small.file.limit=1")
    states = []
    idle = (*_BOTH, *nothing)
    for flags, starts in ((("--mode", "execute"), False), (idle, True), (_BOTH, True), (idle, False)):
        runs.told.unlink(missing_ok=True)
        done = runs.start(path, *flags)
        states.append(json.loads(done.communicate(timeout=300)[0])["state"])
        assert runs.told.exists() == starts
        runs.wait_for_the_end()
        assert [*(tmp_path / "temporary").iterdir()] == []
    assert states == ["idle", "idle", "completed", "idle"]


SLOW = """
import time
from pathlib import Path
from hudi_services.rows.row_order import RowOrder

class Slow(RowOrder):
    def learn(self, sample):
        pass

    def places(self, keys):
        Path(__file__).with_name("at work").touch()
        time.sleep(600)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["java", pytest.param("Spark starts", marks=pytest.mark.deep), "at work"])
def test_java_ends_with_a_command_that_is_killed(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the processes that were forked from the command, workers among them, keeps the stdin of Java open."""
    path, runs = demo_table(tmp_path / "table"), Marked(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sort = "hoodie.clustering.plan.strategy.sort.columns=_hoodie_record_key"
    slow = ("--hoodie-conf", sort, "--hoodie-conf", "hoodie.layout.optimize.strategy=slow:Slow")
    begun = runs.start(path, *_BOTH, *slow)
    seen = runs.told if moment == "Spark starts" else tmp_path / moment
    while not seen.exists():
        assert begun.poll() is None
        time.sleep(0.01)
    if moment == "Spark starts":
        time.sleep(1.5)
    begun.kill()
    begun.wait()
    runs.wait_for_the_end()


def test_where_no_archive_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that others may write to, or whose name Java's options cannot have; and beside an old Java."""
    for folder, mode in (("open", 0o777), ("a b", 0o700)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / folder))
        (tmp_path / folder / "hudi_services").mkdir(parents=True)
        (tmp_path / folder / "hudi_services").chmod(mode)
        assert class_archive.place() is None and class_archive.archive_options() == ("", "")
        class_archive.make_archive_later()
        assert [*(tmp_path / folder / "hudi_services").iterdir()] == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    for release, has in (('JAVA_VERSION="11.0.2"\n', False), ('JAVA_VERSION="1.8.0_401"\n', False), ("", False)):
        java = tmp_path / f"java{len(release)}"
        (java / "bin").mkdir(parents=True)
        (java / "bin/java").touch()
        if release:
            (java / "release").write_text(release)
        monkeypatch.setenv("JAVA_HOME", str(java))
        assert (class_archive.place() is not None) == has
    (java / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.1"\n')
    found = class_archive.place()
    (java / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.2"\n')
    assert found is not None and class_archive.place() not in (found, None)
