"""How a session of our own starts: the archive of classes, and the process that workers are forked from."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hudi_services.spark import class_archive

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


@pytest.mark.parametrize("host", ["with", "without"])
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
    with zipfile.ZipFile(ROOT / "scripts/demo_table.zip") as archive:
        archive.extractall(folder)
    path = str(next(folder.rglob(".hoodie")).parent)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    line = [sys.executable, "-m", "hudi_services", "execute", "--mode", "scheduleAndExecute", "--base-path", path]
    return subprocess.run(
        [*line, "--format", "json"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_an_archive_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java does without it, and says nothing of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = class_archive.place()
    assert place is not None and place.parent == tmp_path / "cache/hudi_services"
    place.write_bytes(bytes(range(256)) * 64)
    assert str(place) in class_archive.archive_options()
    done = clustered(tmp_path / "table", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "completed"
    assert "rchive" not in done.stderr.replace("Picked up JAVA_TOOL_OPTIONS", "")


def in_own_process(program: str, argument: str) -> None:
    """Other tests have left a session of Spark in this one, whose Java has its options already."""
    whole = f"import sys\nfrom hudi_services.spark import archive_making\n{program}"
    subprocess.run([sys.executable, "-c", whole, argument], cwd=ROOT, check=True, timeout=300)


@pytest.mark.deep
def test_the_archive_is_made_once_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = class_archive.place()
    assert place is not None
    in_own_process("from pathlib import Path; archive_making.make(Path(sys.argv[1]))", str(place))
    assert [file.name for file in place.parent.iterdir()] == [place.name] and place.stat().st_size > 10 << 20
    loaded = tmp_path / "loaded"
    options = class_archive.archive_options().replace(class_archive.QUIET, f"-Xlog:class+load:file={loaded}")
    in_own_process("archive_making.start_and_stop(sys.argv[1])", options)
    assert loaded.read_text().count("source: shared objects file (top)") > 3000
    assert [file.name for file in place.parent.iterdir()] == [place.name]


def test_where_no_archive_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that others may write to, or whose name Java's options cannot have; and beside an old Java."""
    for folder, mode in (("open", 0o777), ("a b", 0o700)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / folder))
        (tmp_path / folder / "hudi_services").mkdir(parents=True)
        (tmp_path / folder / "hudi_services").chmod(mode)
        assert class_archive.place() is None and class_archive.archive_options() == ""
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
