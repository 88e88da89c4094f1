"""The readers of the development extras, on every state of our tables and Hudi's: as recorded for docs/readers.md.

scripts/read_matrix.py has more readers: ClickHouse, Trino, and Spark with other releases than the table's.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from ..read_matrix import Cell, load, measure
from .peer import META_COLUMNS, Peer
from .reader_states import KINDS, Kind, states
from .readers import Read, python_readers, same_rows
from .reading import METADATA_OFF, READ_OPTIMISED


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_readers_do_what_the_page_says(peer: Peer, kind: Kind, tmp_path: Path) -> None:
    """The services change no row. Readers of releases that were not measured are not compared."""
    recorded = {row.state: row.cells for row in load() if (row.release, row.table) == (peer.version, kind.name)}
    readers: dict[str, Read] = {f"Spark, Hudi {peer.version}": peer.rows, **python_readers()}
    snapshots: dict[str, pa.Table] = {}
    wanted: dict[str, dict[str, Cell]] = {}
    found: dict[str, dict[str, Cell]] = {}
    for state in states(peer, kind, tmp_path):
        rows = snapshots[state.name] = peer.rows(state.path, METADATA_OFF).drop_columns(list(META_COLUMNS))
        if state.rows_of is not None:
            assert same_rows(snapshots[state.rows_of], rows) == [], state.name
        base_files = peer.rows(state.path, METADATA_OFF | READ_OPTIMISED)
        cells = recorded[state.name]
        wanted[state.name] = {name: cell for name, cell in cells.items() if name in readers}
        found[state.name] = {
            name: measure(read, state.path, rows, base_files) for name, read in readers.items() if name in cells
        }
    assert found == wanted
    assert found.keys() == recorded.keys()
