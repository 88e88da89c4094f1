"""Every service by spark-submit on a standalone cluster whose machines share no file system, on S3 and on HDFS."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from tests.interop.peer import Peer
from tests.interop.reading import METADATA_OFF, METADATA_ON
from tests.servers.hdfs import hdfs_server
from tests.servers.python_environment import SPARK_3, SPARK_4, spark_home, wheel
from tests.servers.spark_standalone import Standalone, standalone
from tests.servers.versitygw import versitygw

from .applications import Application, Lake, conf

pytestmark = pytest.mark.deep

_SMALL = "100000"


@pytest.fixture(
    params=[
        pytest.param(
            (release, store), marks=pytest.mark.server(f"Spark {release[0]} on {store}"), id=f"{release[0]}-{store}"
        )
        for release in (SPARK_3, SPARK_4)
        for store in ("S3", "HDFS")
    ],
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Standalone, Lake]]:
    """A cluster, and a store that all of its machines reach."""
    release, store = request.param
    with ExitStack() as stack:
        for name in ("cluster", "store"):
            (tmp_path / name).mkdir()
        cluster = stack.enter_context(standalone(spark_home(release), tmp_path / "cluster"))
        if store == "S3":
            yield cluster, Lake.of(stack.enter_context(versitygw(tmp_path / "store")))
        else:
            yield cluster, Lake(f"{stack.enter_context(hdfs_server(tmp_path / 'store'))}/lake")


def new_rows(first: int, end: int, text: str) -> pa.Table:
    numbers = range(first, end)
    # Digits in another order than the keys.
    texts = [f"{text} {n * 7919 % 100_003:06d} " + "x" * (n % 40) for n in numbers]
    return pa.table(
        {"id": [f"k{n:06d}" for n in numbers], "day": ["d0"] * len(numbers), "ts": [1] * len(numbers)} | {"text": texts}
    )


def test_every_service(place: tuple[Standalone, Lake], tmp_path: Path) -> None:
    cluster, lake = place
    for machine in ("client", "worker-0", "worker-1"):
        python = cluster.folder.parent / machine / "python/bin/python"
        line = [python, "-c", "import pyarrow, fastavro, hudi_services"]
        found = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
        assert "No module named 'hudi_services'" in found.stderr
    application = Application(cluster, lake, ["--py-files", wheel(tmp_path)])
    name = "rides"
    target = ("--base-path", f"{lake.url}/{name}")
    definition = ("--table-name", "rides", "--record-key", "id", "--partition-by", "day", "--ordering", "ts")
    first, second = new_rows(0, 9000, "first"), new_rows(9000, 15000, "second")
    changed = new_rows(3000, 4000, "changed")

    def write(rows: pa.Table, *words: str) -> None:
        new = lake.put(f"new/{name}-{len(rows)}.parquet", rows)
        done = application.run("write", *target, "--input", new, "--spark-master", cluster.master, *words)
        assert (done["state"], done["rows"]["in"]) == ("completed", len(rows))

    write(first, "--operation", "insert", "--table-type", "MERGE_ON_READ", *definition)
    write(second, "--operation", "insert", *conf(hoodie__parquet__small__file__limit="0"))
    write(changed)
    due = conf(hoodie__compact__inline__max__delta__commits="1")
    done = application.run("compact", *target, "--mode", "scheduleAndExecute", *due)
    assert (done["state"], done["groups"], done["rows"]["out"]) == ("completed", 1, 9000)

    unsorted = conf(hoodie__clustering__plan__strategy__target__file__max__bytes=_SMALL)
    assert application.run("schedule", *target, *unsorted)["groups"] == 1
    done = application.run("execute", *target)
    assert (done["state"], done["rows"]["out"]) == ("completed", 15000) and done["tasks"] == done["files"]["out"] > 2
    by_text = conf(hoodie__clustering__plan__strategy__sort__columns="text")
    done = application.run("execute", *target, "--mode", "scheduleAndExecute", *unsorted, *by_text)
    assert (done["state"], done["rows"]["out"]) == ("completed", 15000) and done["tasks"] > done["files"]["out"] > 2
    (memory,) = done["tables"]["memory"]
    assert memory["limit_bytes"] == (384 - 160) << 20 and memory["peak_bytes"] <= memory["process_limit_bytes"]
    assert application.run("index-bootstrap", *target)["rows"] == {"in": 15000, "out": 15000}
    assert "repeated_tasks" not in done["tables"]

    lake.check(name)
    expected = {row["id"]: row["text"] for rows in (first, second, changed) for row in rows.to_pylist()}
    found = lake.rows(name)
    assert dict(zip(*(found[column].to_pylist() for column in ("id", "text")), strict=True)) == expected
    assert len(found) == len(expected)
    if cluster.home == spark_home(SPARK_3) and lake.url.startswith("hdfs"):
        peer = Peer("1.2.0", tmp_path / "log")
        for options in (METADATA_ON, METADATA_OFF):
            read = peer.rows(target[1], options)  # type: ignore[arg-type]
            assert dict(zip(*(read[column].to_pylist() for column in ("id", "text")), strict=True)) == expected
            assert len(read) == len(expected)
        peer.close()
