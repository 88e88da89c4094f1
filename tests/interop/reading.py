"""What every reader sees in one table at one time."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .peer import Peer
from .readers import Refused, hudi_rs_rows, same_rows

METADATA_ON = {"hoodie.metadata.enable": "true"}
READ_OPTIMISED = {"hoodie.datasource.query.type": "read_optimized"}
METADATA_OFF = {"hoodie.metadata.enable": "false"}


@dataclass(frozen=True)
class Reading:
    """The rows by reader. A reader that cannot read the table is not in it."""

    rows: dict[str, pa.Table]

    @classmethod
    def of(cls, peer: Peer, path: Path) -> "Reading":
        rows = {
            "Hudi, metadata on": peer.rows(path, METADATA_ON),
            "Hudi, metadata off": peer.rows(path, METADATA_OFF),
        }
        return cls(rows | _of_hudi_rs(path))

    @classmethod
    def known(cls, rows: pa.Table, path: Path) -> "Reading":
        """Hudi reads these `rows` of the table at `path`, with metadata table and without; hudi-rs is asked."""
        return cls({"Hudi, metadata on": rows, "Hudi, metadata off": rows} | _of_hudi_rs(path))

    @property
    def hudi(self) -> pa.Table:
        return self.rows["Hudi, metadata on"]

    def differences(self, after: "Reading") -> list[str]:
        """What any reader sees differently `after`; a reader that no longer can read the table counts."""
        found = [f"{reader} cannot read it any more" for reader in self.rows.keys() - after.rows.keys()]
        for reader in self.rows.keys() & after.rows.keys():
            found += [f"{reader}: {d}" for d in same_rows(self.rows[reader], after.rows[reader])]
        return found


def _of_hudi_rs(path: Path) -> dict[str, pa.Table]:
    with contextlib.suppress(Refused):
        return {"hudi-rs": hudi_rs_rows(path)}
    return {}


def newer(rows: pa.Table) -> pa.Table:
    """The same rows with a later value of their ordering field."""
    column = rows.column_names.index("ts")
    return rows.set_column(column, rows.schema.field("ts"), pc.add(rows["ts"], 1))
