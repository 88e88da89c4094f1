"""Upserts and deletes: we and real Hudi write one table in turns, and it must be as the one that Hudi writes alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_services

from .peer import EACH_DELTA_COMMIT, Peer
from .readers import Refused, hudi_rs_rows, same_values
from .reading import METADATA_OFF, METADATA_ON
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

_WRITE = "hoodie.datasource.write."
_SIZES = {"hoodie.parquet.small.file.limit": "600000", "hoodie.copyonwrite.record.size.estimate": "1000"}
_RECORD_INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
CASES: dict[str, Mapping[str, str]] = {
    "bloom": {f"{_WRITE}precombine.field": "ts", "hoodie.index.type": "BLOOM"},
    "simple, the newest wins": {"hoodie.index.type": "SIMPLE"},
    "rows move": {f"{_WRITE}precombine.field": "ts", "hoodie.index.type": "GLOBAL_BLOOM"},
    "rows stay": {
        f"{_WRITE}precombine.field": "ts",
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "false",
    },
    "record index": {f"{_WRITE}precombine.field": "ts", **_RECORD_INDEX},
    "without the record index": {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "false"},
    "rows move by the record index": {**_RECORD_INDEX, "hoodie.record.index.update.partition.path": "true"},
    "buckets": {f"{_WRITE}precombine.field": "ts", **BUCKETS},
}
# Small files are not filled, and Hudi compacts only when the test says so, so that both tables have the same rows in
# base files and in log files: with an ordering value, what a late row becomes depends on it, of 0.15.0 in hudi-rs, too.
_LOGS = {
    f"{_WRITE}table.type": "MERGE_ON_READ",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline.max.delta.commits": "1000",
}
CASES |= {
    "log files": {f"{_WRITE}precombine.field": "ts", "hoodie.index.type": "BLOOM", **_LOGS},
    "log files, rows move": {f"{_WRITE}precombine.field": "ts", "hoodie.index.type": "GLOBAL_SIMPLE", **_LOGS},
    "log files, record index": {f"{_WRITE}precombine.field": "ts", **_RECORD_INDEX, **_LOGS},
    "log files, parquet blocks": {
        f"{_WRITE}precombine.field": "ts",
        "hoodie.index.type": "BLOOM",
        "hoodie.logfile.data.block.format": "parquet",
        **_LOGS,
    },
    "log files, buckets": {f"{_WRITE}precombine.field": "ts", **BUCKETS, **_LOGS},
    "log files and small files": {"hoodie.index.type": "SIMPLE", f"{_WRITE}table.type": "MERGE_ON_READ"},
}
_QUICK = "log files"
"""The case of the quick run, on one release; test_writing and test_index have writes to copy-on-write tables."""
_WRITE_FILE = """
frame = spark.read.parquet(rows).coalesce(1)
for path in paths:
    frame.write.format("hudi").options(**options).mode("append").save(path)
"""


def batches(seed: int, *, moves: bool, by_ordering: bool) -> Iterator[tuple[str, pa.Table]]:
    """Upserts with new, old and late rows, with duplicates where an ordering value decides, a new column; deletes.

    No two rows of one key have the same ordering value: Hudi takes any of them.
    """
    random = np.random.default_rng(seed)
    for number in range(9):
        if number % 4 == 3:
            chosen = sorted({*random.integers(0, 150, 20).tolist()})
            yield "delete", _rows(chosen, number, [0] * len(chosen), [0] * len(chosen))
            continue
        known = random.integers(0, 40 * (number + 1), 40).tolist()
        pairs = {(n, int(random.integers(-1, 2)) if by_ordering else 0) for n in known}
        chosen = sorted(pairs)
        days = [int(random.integers(0, 2)) if moves else 0 for _ in chosen]
        yield "upsert", _rows([n for n, _ in chosen], number, [3 * number + 2 * late for _, late in chosen], days)


def _rows(numbers: list[int], batch: int, times: list[int], away: list[int]) -> pa.Table:
    found = {
        "id": pa.array([f"k{n:05d}" for n in numbers], pa.string()),
        "day": pa.array([f"d{(n + more) % 3}" for n, more in zip(numbers, away, strict=True)], pa.string()),
        "ts": pa.array(times, pa.int64()),
        "text": pa.array([f"batch {batch} {n}" for n in numbers], pa.string()),
    }
    if batch > 4:
        found["more"] = pa.array([None if n % 5 == 0 else n / 4 for n in numbers], pa.float64())
    return pa.table(found)


class Twins:
    """A table that we write in turns with Hudi, and one that Hudi writes alone."""

    def __init__(
        self,
        peer: Peer,
        folder: Path,
        more: Mapping[str, str],
        given: Callable[[pa.Table], Any] = lambda new: new,
    ) -> None:
        """`given` makes of rows what we write."""
        self.peer = peer
        self._given = given
        self.shared, self.theirs = folder / "shared", folder / "theirs"
        self._folder = folder
        version = peer.table_version
        self._known = {
            "hoodie.table.name": "rides",
            f"{_WRITE}recordkey.field": "id",
            f"{_WRITE}partitionpath.field": "day",
            **more,
        }
        creation = {key: text for key, text in self._known.items() if key.startswith((_WRITE, "hoodie.table."))}
        for path in (self.shared, self.theirs):
            made = hudi_services.create(path, table_version=version.number, options=creation, engine="local")
        self.ours = hudi_services.open(self.shared, engine="local")
        assert made.version == self.ours.version

    def write(self, operation: str, new: pa.Table, *, we: bool, partitions: str = "") -> hudi_services.Result | None:
        """Write `new` to both tables, or delete partitions of both; `we`: of the shared one ourselves."""
        self.by_hudi(operation, new, [self.theirs] if we else [self.theirs, self.shared], partitions)
        if not we:
            return None
        if partitions:
            return self.ours.delete_partitions(partitions.split(","), options=self.ours_options)
        result = getattr(self.ours, operation)(self._given(new), options=self.ours_options)
        assert isinstance(result, hudi_services.Result)
        return result

    def by_hudi(self, operation: str, new: pa.Table, paths: Sequence[Path], partitions: str = "") -> None:
        """Let Hudi write `new` to these tables, or delete partitions of them."""
        file = self._folder / f"{operation}.parquet"
        pq.write_table(new, file)
        options = {**WRITE_DEFAULTS, **SMALL_FILTERS, **_SIZES, **self._known, f"{_WRITE}operation": operation}
        if partitions:
            options[f"{_WRITE}partitions.to.delete"] = partitions
        self.peer.eval(_WRITE_FILE, rows=str(file), options=options, paths=list(map(str, paths)))

    @property
    def ours_options(self) -> dict[str, str]:
        return {**SMALL_FILTERS, **_SIZES, **self._known}

    def compare_buckets(self) -> None:
        """Each key is in the bucket where Hudi has it, and each bucket is one file group."""
        wanted, found = ({_place(row) for row in hudi_rs_rows(path).to_pylist()} for path in (self.theirs, self.shared))
        assert wanted == found
        groups = [(one["partition"], one["file_id"]) for one in self.ours.slices().to_pylist()]
        assert len(groups) == len({(partition, file_id[:8]) for partition, file_id in groups})

    def compare(self, step: object, names: list[str]) -> None:
        keys = ["_hoodie_record_key", "_hoodie_partition_path"]
        wanted = self.peer.rows(self.theirs, METADATA_OFF).select([*keys, *names])
        for options in (METADATA_ON, METADATA_OFF):
            found = self.peer.rows(self.shared, options).select([*keys, *names])
            assert not same_values(wanted, found), step
        # Hudi takes the partition columns from the path, hudi-rs from the rows, which differ where rows stay.
        theirs, shared = (_by_hudi_rs(path, [*keys, *names]) for path in (self.theirs, self.shared))
        assert (theirs is None) == (shared is None), step
        assert theirs is None or shared is None or not same_values(theirs, shared), step

    def compact(self, *, we: bool) -> None:
        """Compact both tables; `we`: the shared one ourselves. 1.0.2 must be told the ordering field."""
        options = {**self._known, **EACH_DELTA_COMMIT}
        self.peer.compact(self.theirs, options=options)
        if we:
            assert self.ours.compact().ok
        else:
            self.peer.compact(self.shared, options=options)


def _by_hudi_rs(path: Path, names: list[str]) -> pa.Table | None:
    """The rows that hudi-rs reads; None when it cannot read the table."""
    try:
        return hudi_rs_rows(path).select(names)
    except Refused:
        return None


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["_hoodie_partition_path"], row["_hoodie_record_key"], row["_hoodie_file_name"][:8]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(one, marks=pytest.mark.deep("1.0.2", "1.2.0") if one == _QUICK else pytest.mark.deep)
        for one in CASES
    ],
)
def test_upserts_and_deletes_in_turns(peer: Peer, case: str, tmp_path: Path) -> None:
    twins = Twins(peer, tmp_path, CASES[case])
    by_ordering = f"{_WRITE}precombine.field" in CASES[case]
    moves = CASES[case]["hoodie.index.type"] not in ("SIMPLE", "BLOOM", "BUCKET")
    names: list[str] = []
    # The first commit is Hudi's, which makes the record index.
    written = []
    of_logs = f"{_WRITE}table.type" in CASES[case]
    for number, (operation, new) in enumerate(batches(len(case), moves=moves, by_ordering=by_ordering)):
        if of_logs:
            # 1.0.2 cannot read a file slice with deletes, and ordering values of another type.
            new = new.set_column(2, "ts", new.column("ts").cast(pa.int32()))
        names = list(dict.fromkeys([*names, *new.column_names]))
        result = twins.write(operation, new, we=number % 3 != 0)
        if number % 3 == 2:
            # After two writes of ours. To read takes longer than to write.
            twins.compare((case, number, operation, result), names)
        if case == "buckets":
            twins.compare_buckets()
        written.append(result)
        if of_logs and number in (4, 6):
            twins.compact(we=number == 4)
            twins.compare((case, number, "compaction"), names)
    assert twins.ours.validate(strict=True).ok
    assert any(one is not None and one.tables["written"].column("updates")[0].as_py() > 0 for one in written)
    last = written[-1]
    assert last is not None
    _check_incremental(twins, last)


def _check_incremental(twins: Twins, last: hudi_services.Result) -> None:
    """The rows of our last commit are what has changed since the commit before it."""
    timeline: list[dict[str, Any]] = [one for one in twins.ours.timeline().to_pylist() if one["state"] == "completed"]
    name = "instant" if twins.ours.version == 6 else "completion_time"
    times = sorted(one[name] for one in timeline)
    later = twins.peer.incremental(twins.shared, times[-2])
    later = later.filter(pc.greater(later.column("_hoodie_commit_time"), str(times[-2])[:17]))
    counts = last.tables["written"].to_pylist()[0]
    assert later.num_rows == counts["inserts"] + counts["updates"]


@pytest.mark.deep
@pytest.mark.parametrize("case", ["record index", "bloom", "buckets"])
def test_overwrites_in_turns(peer: Peer, case: str, tmp_path: Path) -> None:
    """Overwrites, deletes of partitions, and upserts between them, with a clean that deletes what was replaced."""
    twins = Twins(peer, tmp_path, CASES[case])
    names = ["id", "day", "ts", "text"]

    def some(first: int, end: int, batch: int, days: int = 3) -> pa.Table:
        new = _rows(list(range(first, end)), batch, [batch] * (end - first), [0] * (end - first))
        paths = pa.array([f"d{n % days}" for n in range(first, end)], pa.string())
        return new.select(names).set_column(1, "day", paths)

    steps: list[tuple[str, pa.Table, bool, str]] = [
        ("upsert", some(0, 30, 0), False, ""),
        ("insert_overwrite", some(100, 110, 1, days=2), True, ""),
        ("upsert", some(100, 120, 2), False, ""),
        ("delete_partition", some(0, 1, 0), True, "d0"),
        ("upsert", some(0, 40, 3), False, ""),
        ("insert_overwrite", some(200, 210, 4, days=1), False, ""),
        ("upsert", some(200, 230, 5, days=1), True, ""),
        ("delete_partition", some(0, 1, 0), False, "d1"),
        ("upsert", some(300, 330, 6), True, ""),
        ("insert_overwrite_table", some(400, 420, 7, days=2), True, ""),
        ("upsert", some(400, 430, 8), False, ""),
        ("delete", some(410, 415, 8, days=2), True, ""),
    ]
    for number, (operation, new, we, partitions) in enumerate(steps):
        twins.write(operation, new, we=we, partitions=partitions)
        if we:
            twins.compare((case, number, operation), names)
            assert twins.ours.validate().ok, (number, operation)
    assert twins.ours.clean(options={"hoodie.clean.commits.retained": "1"}).ok
    twins.compare((case, "our clean"), names)
    assert twins.ours.validate().ok
