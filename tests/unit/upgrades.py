"""The tables of tests/interop/upgrades.py, as real Hudi left them."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa

ARCHIVE = Path(__file__).resolve().parent.parent / "fixtures" / "upgrades" / "tables.tar.xz"
Rows = list[tuple[str, str, int, str]]
"""Key, partition, ordering value and text of each row, sorted."""


def unpack(folder: Path) -> Path:
    """All of them, not to be changed: `<story>/table`. Files keep the times that Hudi wrote them at."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def right_rows(made: Path, story: str) -> Rows:
    return in_order(json.loads((made / story / "story.json").read_text())["rows"])


def in_order(rows: pa.Table | list[dict[str, Any]]) -> Rows:
    found = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted((row["id"], row["part"], row["ts"], row["text"]) for row in found)
