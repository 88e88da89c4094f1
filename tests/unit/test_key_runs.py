import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_services.base_files import key_runs
from hudi_services.base_files.key_runs import KeyRun, write_key_run
from hudi_services.errors import CheckFailed, CorruptFile, NotFound
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

ROWS = st.lists(
    st.tuples(st.integers(0, 5) | st.integers(250, 300) | st.just(70_000), st.text(max_size=8)), max_size=60
)
NOTES = st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3)
READ_ANEW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder: Path, rows: list[tuple[int, str]], notes: dict[str, str] | None = None) -> Storage:
    """`run`, in which the location of a row is its number."""
    (folder / "run").unlink(missing_ok=True)
    storage = open_storage(str(folder))
    shards = np.array([shard for shard, _ in rows], np.int32)
    keys = pa.array([key for _, key in rows], pa.string())
    write_key_run(storage, "run", shards, keys, np.arange(len(rows), dtype=np.int32), notes or {})
    return storage


def read(run: KeyRun, shard: int) -> list[tuple[str, int]]:
    found = []
    for batch in run.read(shard):
        batch.validate(full=True)
        found += list(zip(batch["key"].to_pylist(), batch["location"].to_pylist(), strict=True))
    assert len(found) == run.rows(shard)
    return found


@READ_ANEW
@given(ROWS, NOTES, st.sampled_from([1, 3, 1 << 16]))
def test_round_trip(tmp_path: Path, rows: list[tuple[int, str]], notes: dict[str, str], batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_runs, "_BATCH_ROWS", batch)
        run = KeyRun.open(write(tmp_path, rows, notes), "run")
    assert run.notes == notes
    for wanted in {shard for shard, _ in rows} | {1, 7}:
        assert read(run, wanted) == [(key, i) for i, (shard, key) in enumerate(rows) if shard == wanted]
        assert all(part.num_rows <= batch for part in run.read(wanted))


def test_a_shard_is_one_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = write(tmp_path, [(i % 10, f"key-{i}") for i in range(200_000)])
    reads: list[int] = []
    original = storage.read_range
    monkeypatch.setattr(storage, "read_range", lambda p, start, n: (reads.append(n), original(p, start, n))[1])
    run = KeyRun.open(storage, "run")
    assert len(reads) == 1
    assert read(run, 3) == [(f"key-{i}", i) for i in range(3, 200_000, 10)]
    assert len(reads) == 2
    assert reads[1] < (tmp_path / "run").stat().st_size / 9


@pytest.mark.thorough
def test_a_long_index(tmp_path: Path) -> None:
    run = KeyRun.open(write(tmp_path, [(i, f"k{i}") for i in range(10_000)], {"note": "n" * 100_000}), "run")
    assert len(run.notes["note"]) == 100_000
    assert read(run, 9_999) == [("k9999", 9_999)]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [(i % 3, f"key-{i}") for i in range(100)]
    first = write(tmp_path, rows, {"b": "1", "a": "2"}).read("run")
    assert write(tmp_path, rows, {"a": "2", "b": "1"}).read("run") == first


def test_columns_must_fit_together(tmp_path: Path) -> None:
    storage, three = open_storage(str(tmp_path)), np.zeros(3, np.int32)
    for keys, locations in ((["a", "b"], three), (["a", "b", "c"], three[1:]), (["a", "b", None], three)):
        with pytest.raises(CheckFailed):
            write_key_run(storage, "run", three, pa.array(keys), locations, {})
    assert list(tmp_path.iterdir()) == []


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        KeyRun.open(open_storage(str(tmp_path)), "run")


def is_noticed(storage: Storage) -> bool:
    """Anything but CorruptFile is raised on."""
    try:
        run = KeyRun.open(storage, "run")
        for shard in range(4):
            read(run, shard)
    except CorruptFile as e:
        assert e.message.startswith(storage.full_path("run"))
        return True
    return False


@READ_ANEW
@given(st.data())
def test_damaged_and_truncated_runs(tmp_path: Path, data: st.DataObject) -> None:
    storage = write(tmp_path, [(i % 4, f"key-{i}") for i in range(40)], {"a": "b"})
    whole = storage.read("run")
    damaged = bytearray(whole)
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=3)):
        damaged[at] = byte
    del damaged[data.draw(st.none() | st.integers(0, len(whole))) :]
    storage.put("run", bytes(damaged))
    tracemalloc.start()
    try:
        assert is_noticed(storage) == (damaged != whole)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@READ_ANEW
@given(st.binary(max_size=100))
def test_any_bytes(tmp_path: Path, noise: bytes) -> None:
    storage = open_storage(str(tmp_path))
    for content in (noise, noise + b"KEYRUN01"):
        storage.put("run", content)
        assert is_noticed(storage)
