"""What every reader makes of the tables of four releases of Hudi, and of ours, after every service.

    .venv/bin/python -m pip install '.[readers]'
    .venv/bin/python scripts/read_matrix.py --record      # the tables of docs/readers.md, anew: half an hour and more

Prints the tables of the page, or JSON (--format json). With --tables FOLDER the tables of Hudi are kept there for the
next run. Readers: Spark with Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0, hudi-rs (both file group readers), Daft, ClickHouse
(chdb, on S3 that moto serves) and Trino (of Maven, with a Java of its own).
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import matrix_clickhouse
import matrix_trino
import pyarrow.feather as feather

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests import read_matrix  # noqa: E402
from tests.interop.peer import TABLE_VERSIONS, Peer  # noqa: E402
from tests.interop.reader_states import KINDS, MERGE_ON_READ, Kind, states  # noqa: E402
from tests.interop.readers import Read, python_readers  # noqa: E402
from tests.interop.reading import METADATA_OFF, READ_OPTIMISED  # noqa: E402
from tests.read_matrix import Row, measure  # noqa: E402

PAGE = ROOT / "docs/readers.md"


@dataclass(frozen=True)
class Table:
    """One state on disk, and what its own release reads of it."""

    row: Row
    path: Path

    @property
    def snapshot(self) -> Path:
        return self.path.with_suffix(".snapshot.arrow")

    @property
    def read_optimised(self) -> Path:
        return self.path.with_suffix(".read-optimised.arrow")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--tables", type=Path, help="keep the tables here, and take those that are here")
    parser.add_argument("--releases", nargs="+", default=list(TABLE_VERSIONS), help="whose tables are read")
    parser.add_argument("--readers", nargs="+", default=list(READERS), choices=list(READERS), help="beside Spark")
    parser.add_argument("--record", action="store_true", help="write the record and the tables of docs/readers.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = (arguments.tables or Path(folder)).resolve()
        tables: list[Table] = []
        for release in arguments.releases:
            tables = _by_spark(release, tables, root)
        for reader in arguments.readers:
            with READERS[reader](root) as read:
                tables = [_measured(reader, read, table) for table in tables]
    rows = [table.row for table in tables]
    if arguments.record:
        read_matrix.save(rows)
        PAGE.write_text(read_matrix.with_tables(PAGE.read_text(), rows))
    print(
        json.dumps([asdict(row) for row in rows], indent=1) if arguments.format == "json" else read_matrix.render(rows)
    )


def _by_spark(release: str, earlier: list[Table], root: Path) -> list[Table]:
    """The tables of earlier releases, and those of this one, with what Spark with this release reads of them."""
    index = root / f"{release}.json"
    with _peer(release, root) as peer:
        if not index.exists():
            made = [(asdict(t.row), str(t.path.relative_to(root))) for t in _made(peer, root)]
            index.write_text(json.dumps(made))
        own = [Table(Row(**row), root / path) for row, path in json.loads(index.read_text())]
        reader = f"Spark, Hudi {release}"
        asked = [_measured(reader, peer.rows, t) if _is_asked(t.row) else t for t in earlier]
        return asked + [_measured(reader, peer.rows, table) for table in own]


def _is_asked(row: Row) -> bool:
    """Whether later releases are asked: the metadata table is what they may take for something else."""
    return "no-metadata" not in row.table


def _made(peer: Peer, root: Path) -> Iterator[Table]:
    release = peer.version
    for kind in KINDS:
        if not _is_made(release, kind):
            continue
        for state in states(peer, kind, root / release / kind.name):
            table = Table(Row(release, TABLE_VERSIONS[release], kind.name, state.name), state.path)
            print(table.row, file=sys.stderr, flush=True)
            snapshot = peer.rows(state.path, METADATA_OFF)
            feather.write_feather(snapshot, table.snapshot)
            if kind.type == MERGE_ON_READ:
                snapshot = peer.rows(state.path, METADATA_OFF | READ_OPTIMISED)
            feather.write_feather(snapshot, table.read_optimised)
            yield table


def _is_made(release: str, kind: Kind) -> bool:
    """Tables of 1.1.1 are of the version of those of 1.2.0: a part of them is enough."""
    return release != "1.1.1" or (kind.metadata and kind.maker == "hudi")


def _measured(reader: str, read: Read, table: Table) -> Table:
    """The table with a cell more."""
    snapshot, read_optimised = feather.read_table(table.snapshot), feather.read_table(table.read_optimised)
    # Trino rounds instants to milliseconds.
    cell = measure(read, table.path, snapshot, read_optimised, unit="ms" if reader == TRINO else "us")
    print(reader, table.path, cell, file=sys.stderr, flush=True)
    return replace(table, row=replace(table.row, cells={**table.row.cells, reader: cell}))


@contextmanager
def _peer(release: str, root: Path) -> Iterator[Peer]:
    peer = Peer(release, root / f"{release}.log", "--small-tables")
    try:
        yield peer
    finally:
        peer.close()


@contextmanager
def _clickhouse(root: Path) -> Iterator[Read]:
    with matrix_clickhouse.clickhouse() as server:
        yield server.rows


@contextmanager
def _trino(root: Path) -> Iterator[Read]:
    work = root / "trino"
    work.mkdir(exist_ok=True)
    with matrix_trino.trino(root, work) as server:
        yield server.rows


def _plain(read: Read) -> "Reader":
    @contextmanager
    def opened(root: Path) -> Iterator[Read]:
        yield read

    return opened


Reader = Callable[[Path], AbstractContextManager[Read]]
TRINO = f"Trino {matrix_trino.VERSION}"
READERS: dict[str, Reader] = {
    **{name: _plain(read) for name, read in python_readers().items()},
    f"ClickHouse {matrix_clickhouse.VERSION}": _clickhouse,
    TRINO: _trino,
}

if __name__ == "__main__":
    main()
