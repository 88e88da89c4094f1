"""Tables for a fleet: small ones of our own, on which services are due, made once and copied."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import hudi_services

from .tables import merged_rows

DUE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.index.bloom.num_entries": "100",
}
"""Options with which services are due on the tables."""
KINDS = {
    "cow": ("clean", "execute"),
    "mor": ("compact", "execute"),
    "plain": ("clean", "archive", "execute"),
}
"""The kinds of tables, and what is due there; `plain` has no metadata table, which would keep commits."""
ROWS = 1_300


def make(folder: Path, kind: str) -> Path:
    """A table of some thirty small files in one partition, of which later commits have rewritten some."""
    options = {
        "hoodie.table.services.enabled": "false",
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.metadata.enable": str(kind != "plain").lower(),
    }
    path = folder / kind
    table = hudi_services.create(
        str(path),
        record_key="k",
        partition_by="p",
        ordering="v",
        table_type="MERGE_ON_READ" if kind == "mor" else "COPY_ON_WRITE",
        options=options,
    )
    rows = pa.table({"k": [f"{number:05d}" for number in range(ROWS)], "v": [0] * ROWS, "p": ["a"] * ROWS})
    table.bulk_insert(rows, options={**options, "hoodie.parquet.max.file.size": "4000"})
    for commit in range(1, 5):
        changed = rows.slice(commit * 200, 20)
        table.upsert(changed.set_column(1, "v", pa.array([commit] * 20)), options=options)
    return path


@dataclass(frozen=True)
class Seeds:
    """The tables that are copied; not to be changed."""

    folder: Path

    def rows(self, kind: str) -> pa.Table:
        return rows_of(self.folder / kind)

    def copy(self, kind: str, target: Path) -> Path:
        shutil.copytree(self.folder / kind, target)
        return target


def rows_of(path: Path) -> pa.Table:
    """All rows as readers see them, by key, without the columns of Hudi."""
    return merged_rows(path).select(["k", "v", "p"]).sort_by("k")
