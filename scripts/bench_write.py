"""`make bench-write`: real Apache Hudi 1.2.0 and this tool write the same rows to copies of one table, in one run.

bulk_insert of ROWS rows into a new table, in the order of their keys, shuffled, and shuffled rows to be sorted; then
into copies of the table that Hudi made of the sorted rows: upserts of 5 % of the rows by BLOOM and by RECORD_INDEX, an
insert of 100,000 rows into small files, and the same upsert into a merge-on-read table, which appends log files. The
codec is zstd for both. Both run as whole processes, which start, write and end (Hudi with Spark, ours by the command
`write`, which starts no Spark), and warm, in processes that have written before: Hudi in a session of Spark; ours once
without Spark, from the file, as the command does, and once a data frame in a session of Spark. Rows and tables are kept
in FOLDER for the next run.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench import CODEC, ROOT, VERSION, conf, run

sys.path.insert(0, str(ROOT))

import hudi_services
from hudi_services.inputs.input_files import input_rows
from tests.interop.peer import Peer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRITE = "hoodie.datasource.write."
_TABLE = {
    "hoodie.table.name": "rides",
    f"{_WRITE}recordkey.field": "id",
    f"{_WRITE}precombine.field": "ts",
    f"{_WRITE}partitionpath.field": "city",
    CODEC: "zstd",
}
_LOGS = {f"{_WRITE}table.type": "MERGE_ON_READ"}
_RECORD_INDEX = {"hoodie.metadata.global.record.level.index.enable": "true"}
_OF_HUDI = {
    "hoodie.clean.automatic": "false",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.insert.shuffle.parallelism": "4",
    "hoodie.bulkinsert.shuffle.parallelism": "4",
}
_BY_HUDI = """
spark.read.parquet(rows).write.format("hudi").options(**options).mode("append").save(path)
"""


@dataclass(frozen=True)
class Case:
    """`base` is the table that is copied: "" for none; `rows` the file of rows."""

    name: str
    operation: str
    rows: str
    base: str
    options: Mapping[str, str]

    @property
    def of_hudi(self) -> Mapping[str, str]:
        """The options with what Hudi needs to keep the record index of the table."""
        return {**self.options, **(_RECORD_INDEX if self.base == "indexed" else {})}

    def flags(self, folder: Path) -> list[str]:
        """The flags of our `write`; `folder` has the file of rows."""
        flags = ["--operation", self.operation, "--input", str(folder / f"{self.rows}.parquet")]
        return [*flags, *conf({**_TABLE, **self.options})]


CASES = (
    Case("bulk_insert, sorted", "bulk_insert", "sorted", "", {}),
    Case("bulk_insert, shuffled", "bulk_insert", "shuffled", "", {}),
    Case("bulk_insert, GLOBAL_SORT", "bulk_insert", "shuffled", "", {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}),
    Case("upsert of 5 %, BLOOM", "upsert", "updates", "table", {"hoodie.index.type": "BLOOM"}),
    Case("upsert of 5 %, RECORD_INDEX", "upsert", "updates", "indexed", {"hoodie.index.type": "RECORD_INDEX"}),
    Case("insert of 100,000 into small files", "insert", "inserts", "table", {}),
    Case("append of 5 % to merge-on-read, BLOOM", "upsert", "updates", "logs", {"hoodie.index.type": "BLOOM", **_LOGS}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writing: real Apache Hudi 1.2.0 against hudi-services.")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--memory", default="8g", help="of Hudi's JVM")
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve() / f"write-{arguments.rows}"
    folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(folder, arguments.memory)
    make_rows(folder, arguments.rows)
    cases = [case for case in CASES if arguments.only in case.name]
    peer = runs.peer()
    try:
        runs.make_tables(peer)
        for case in cases:
            runs.of_hudi(peer, case, "few")
        warm = {case.name: runs.of_hudi(peer, case) for case in cases}
    finally:
        peer.close()
    files, frames = runs.of_files(cases), runs.of_frames(cases)
    print(f"\n{arguments.rows:,} rows in 4 partitions; Hudi {VERSION}; zstd; seconds, and bytes of the new files\n")
    print("| run | whole: ours | Hudi | | warm: ours | Hudi | | ours, data frame | | bytes, ours to Hudi's |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        whole, (hudi, hudi_bytes), ours = runs.of_hudi_whole(case), warm[case.name], runs.of_ours(case)
        file, (frame, frame_bytes) = files[case.name], frames[case.name]
        ratios = f"{ours[0]:.1f} | {whole:.1f} | {whole / ours[0]:.1f}x | {file:.1f} | {hudi:.1f} | {hudi / file:.1f}x"
        sizes = f"{ours[1] / hudi_bytes:.2f}, {frame_bytes / hudi_bytes:.2f}"
        print(f"| {case.name} | {ratios} | {frame:.1f} | {hudi / frame:.1f}x | {sizes} |", flush=True)


def make_rows(folder: Path, count: int) -> None:
    """The files of rows: all of them sorted and shuffled, updates of 5 %, inserts, and few rows to warm up with."""
    if (folder / "few.parquet").exists():
        return
    random = np.random.default_rng(7)
    pq.write_table(_rows(np.arange(count), 1, random), folder / "sorted.parquet")
    pq.write_table(_rows(random.permutation(count), 1, random), folder / "shuffled.parquet")
    chosen = random.choice(count, count // 20, replace=False)
    pq.write_table(_rows(chosen, 2, random), folder / "updates.parquet")
    pq.write_table(_rows(np.arange(count, count + 100_000), 2, random), folder / "inserts.parquet")
    pq.write_table(_rows(np.arange(1000), 2, random), folder / "few.parquet")


def _rows(numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]", ts: int, random: np.random.Generator) -> pa.Table:
    count = len(numbers)
    cities = pa.array(["amsterdam", "berlin", "paris", "rome"])
    return pa.table(
        {
            "id": pa.array(np.char.add("ride-", np.char.zfill(numbers.astype(str), 10))),
            "city": cities.take(pa.array(numbers % 4)),
            "ts": pa.array(np.full(count, ts, np.int64)),
            "driver": pa.array(np.char.add("driver ", random.integers(0, 50_000, count).astype(str))),
            "fare": pa.array(np.round(random.random(count) * 90, 2)),
            "distance": pa.array(random.integers(100, 40_000, count).astype(np.int32)),
            "paid": pa.array(random.random(count) < 0.9),
            "note": pa.array(np.char.add("note ", random.integers(0, 1 << 30, count).astype(str))),
        }
    )


class Runs:
    """The runs of one bench below `folder`."""

    def __init__(self, folder: Path, memory: str) -> None:
        self._folder = folder
        self._memory = memory

    def peer(self) -> Peer:
        return Peer(VERSION, self._folder / "hudi.log", "--memory", self._memory, "--java-options", "")

    def make_tables(self, peer: Peer) -> None:
        """The tables that upserts and inserts are written to, by Hudi: plain, with a record index, merge-on-read."""
        for name, more in (("table", {}), ("indexed", _RECORD_INDEX), ("logs", _LOGS)):
            path = self._folder / name
            if not path.exists():
                part = path.with_suffix(".part")
                shutil.rmtree(part, ignore_errors=True)
                self._hudi(peer, part, "bulk_insert", "sorted", more)
                part.rename(path)

    def of_hudi(self, peer: Peer, case: Case, rows: str = "") -> tuple[float, int]:
        """Seconds of the write, and bytes of the files that it wrote."""
        with self._table(case) as path:
            start = time.perf_counter()
            self._hudi(peer, path, case.operation, rows or case.rows, case.of_hudi)
            seconds = time.perf_counter() - start
            return seconds, self._written(case, path)

    def of_hudi_whole(self, case: Case) -> float:
        """Seconds of the write with the start and the end of a session."""
        with self._table(case) as path:
            start = time.perf_counter()
            peer = self.peer()
            try:
                self._hudi(peer, path, case.operation, case.rows, case.of_hudi)
            finally:
                peer.close()
            return time.perf_counter() - start

    def of_ours(self, case: Case) -> tuple[float, int]:
        with self._table(case) as path:
            seconds, _ = run("write", path, *case.flags(self._folder))
            return seconds, self._written(case, path)

    def of_files(self, cases: Sequence[Case]) -> dict[str, float]:
        """Seconds of our writes of files in this process, by case."""
        for case in cases:
            self._of_rows(case, input_rows([f"{self._folder}/few.parquet"]))
        return {
            case.name: self._of_rows(case, input_rows([f"{self._folder}/{case.rows}.parquet"]))[0] for case in cases
        }

    def of_frames(self, cases: Sequence[Case]) -> dict[str, tuple[float, int]]:
        """Seconds of our writes of data frames in one warm session, and bytes of the files, by case."""
        session = _session(self._memory)
        try:
            for case in cases:
                self._of_frame(session, case, "few")
            return {case.name: self._of_frame(session, case, case.rows) for case in cases}
        finally:
            session.stop()

    def _of_frame(self, session: "SparkSession", case: Case, rows: str) -> tuple[float, int]:
        return self._of_rows(case, session.read.parquet(f"{self._folder}/{rows}.parquet"))

    def _of_rows(self, case: Case, rows: object) -> tuple[float, int]:
        with self._table(case) as path:
            options = {**_TABLE, **case.options}
            start = time.perf_counter()
            table = hudi_services.open(path) if case.base else hudi_services.create(path, options=options)
            result = getattr(table, case.operation)(rows, options=options)
            assert result.ok, result
            return time.perf_counter() - start, self._written(case, path)

    def _hudi(self, peer: Peer, path: Path, operation: str, rows: str, more: Mapping[str, str]) -> None:
        options = {**_TABLE, **_OF_HUDI, f"{_WRITE}operation": operation, **more}
        peer.eval(_BY_HUDI, rows=str(self._folder / f"{rows}.parquet"), options=options, path=str(path))

    def _table(self, case: Case) -> "_Copy":
        return _Copy(self._folder / case.base if case.base else None, self._folder / "run")

    def _written(self, case: Case, path: Path) -> int:
        old = {file.name for file in (self._folder / case.base).glob("*/*")} if case.base else set()
        new = [*path.glob("*/*.parquet"), *path.glob("*/.*.log.*")]
        return sum(file.stat().st_size for file in new if file.name not in old)


def _session(memory: str) -> "SparkSession":
    """A session of Spark without Hudi, with as much memory as Hudi's has."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    return made.config("spark.ui.enabled", "false").getOrCreate()


class _Copy:
    """A copy of a table, or no table, at `path`; it is deleted at the end."""

    def __init__(self, table: Path | None, path: Path) -> None:
        self._table = table
        self._path = path

    def __enter__(self) -> Path:
        shutil.rmtree(self._path, ignore_errors=True)
        if self._table is not None:
            shutil.copytree(self._table, self._path)
        return self._path

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


if __name__ == "__main__":
    main()
