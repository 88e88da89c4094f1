"""Another number of file groups for a record index: `index-rescale` against both rebuilds, in one run.

The table is that of bench.py, with an index of 10 file groups, which gets 40. Ours are whole processes, and `job` is
that without starting and stopping Spark. Hudi drops the index and builds it anew in a warm session.
"""

import sys
import time
from pathlib import Path

from bench import ROOT, VERSION, Bench, command, job_seconds
from bench_index import table_arguments

sys.path.insert(0, str(ROOT))

from tests.interop.peer import Peer, table_properties

_BEFORE, _AFTER = 10, 40
_BOUNDS = [f"hoodie.metadata.record.index.{bound}.filegroup.count" for bound in ("min", "max")]


def main() -> None:
    arguments, bench = table_arguments("index-rescale against building the index anew.", rows=10_000_000)
    table = bench.table(arguments.rows, arguments.partitions, arguments.files)
    print(f"\n{arguments.rows:,} keys, {_BEFORE} to {_AFTER} file groups; seconds\n")
    print("| | whole process | job |\n|---|---|---|")
    with bench.copy(table) as path:
        command("index-bootstrap", path, "--file-group-count", str(_BEFORE))
        for name, flags in (("Spark", ()), ("--engine local", ("--engine", "local"))):
            for count in (_AFTER, _BEFORE):
                _tell(f"index-rescale to {count}, {name}", path, "index-rescale", str(count), flags)
        _tell("index-rescale to 41, --engine local", path, "index-rescale", "41", ("--engine", "local"))
    for name, flags in (("Spark", ()), ("--engine local", ("--engine", "local"))):
        with bench.copy(table) as path:
            _tell(f"index-bootstrap, {name}", path, "index-bootstrap", str(_AFTER), flags)
    print(f"| Hudi {VERSION}, warm: drop, and build anew | | {_hudi(bench, table, arguments.memory):.1f} |")


def _tell(what: str, path: Path, name: str, count: str, flags: tuple[str, ...]) -> None:
    whole, seconds = command(name, path, "--file-group-count", count, *flags)
    print(f"| {what} | {whole:.1f} | {job_seconds(seconds):.1f} |", flush=True)


def _hudi(bench: Bench, table: Path, memory: str) -> float:
    peer = Peer(VERSION, table.parent / "hudi.log", "--memory", memory, "--java-options", "")
    try:
        _rebuilt(peer, bench, bench.table(10_000, 1, 2), "small")
        return _rebuilt(peer, bench, table, "large")
    finally:
        peer.close()


def _rebuilt(peer: Peer, bench: Bench, table: Path, name: str) -> float:
    with bench.copy(table) as path:
        command("index-bootstrap", path, "--file-group-count", str(_BEFORE))
        peer.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
        for bound in _BOUNDS:
            peer.sql(f"set {bound}={_AFTER}")
        peer.sql(f"create table {name} using hudi location '{path}'")
        start = time.perf_counter()
        peer.sql(f"drop index record_index on {name}")
        peer.sql(f"create index record_index on {name} ({table_properties(path)['hoodie.table.recordkey.fields']})")
        seconds = time.perf_counter() - start
        folder = path / ".hoodie/metadata/record_index"
        groups = {file.name.lstrip(".").partition("_")[0] for file in folder.iterdir() if "record-index" in file.name}
        assert len(groups) == _AFTER, sorted(groups)
        peer.sql(f"drop table {name}")
        return seconds


if __name__ == "__main__":
    main()
