"""Looking keys up in record indexes that real Hudi wrote: what its own reader finds, and nothing else."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_services.clock import SystemClock, instant_of_millis
from hudi_services.metadata.metadata_table import MetadataTable
from hudi_services.metadata.record_index.lookup import Access, AccessRule, look_up
from hudi_services.snapshot import open_snapshot
from hudi_services.stores import open_storage

from . import ours
from .conftest import Tables
from .peer import Peer
from .reading import newer

_Found = dict[str, tuple[str, str, str]]
_COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
_NEVER_THERE = ["", "k-", "k-0000000", "nobody", "zürich 🚀", "\U0001f680"]


def metadata_of(path: Path) -> MetadataTable:
    metadata = open_snapshot(open_storage(str(path)), SystemClock()).metadata
    assert metadata is not None
    return metadata


def found(path: Path, keys: Iterable[str], access: Access, partition: str = "") -> _Found:
    """Partition, file id and instant by key, as our Python API gives them."""
    wanted = list(keys)
    got = look_up(metadata_of(path), pa.array(wanted, pa.string()), AccessRule(access), partition)
    at = [(place.partition, place.file_id, instant_of_millis(place.instant_millis, "UTC")) for place in got.locations]
    return {key: at[i] for key, i in zip(wanted, got.positions.tolist(), strict=True) if i >= 0}


def told(path: Path, keys: Iterable[str], access: Access, *flags: str) -> _Found:
    """As `found`, by the command."""
    file = path.with_name("keys.txt")
    file.write_text("".join(f"{key}\n" for key in keys if key))
    options = {"hudi.services.index.lookup.access": access.value}
    report = ours.run("index-lookup", path, "--keys-file", str(file), *flags, options=options).ok().report
    rows = report["tables"]["locations"]
    return {row["key"]: (row["partition"], row["file_id"], row["instant"]) for row in rows}


def is_as_hudi_finds_it(peer: Peer, path: Path, keys: list[str], access: Access) -> _Found:
    """All of `keys`, few of them, and the command; gives what is there."""
    theirs = peer.record_locations(path, keys)
    for way in Access:
        assert found(path, keys, way) == theirs, way
        assert found(path, keys[::29], way) == {key: theirs[key] for key in keys[::29] if key in theirs}, way
    assert told(path, keys, access) == theirs
    return theirs


@pytest.mark.deep
def test_what_hudi_finds(peer: Peer, table: Tables) -> None:
    path = table("keyed")
    """Keys that were inserted, updated, moved, deleted and inserted anew, in log files and in compacted files."""
    keys = [f"k-{i:06d}" for i in range(180)] + _NEVER_THERE
    rows = peer.rows(path).sort_by("id")
    index = path / ".hoodie/metadata/record_index"
    assert is_as_hudi_finds_it(peer, path, keys, Access.AUTO).keys() == set(rows["id"].to_pylist())

    clustering = ours.cluster(path, sort=("name",))
    moved = is_as_hudi_finds_it(peer, path, keys, Access.SCAN)
    assert {at[2] for at in moved.values()} == {clustering}

    compacted = set(index.glob("*.hfile"))
    peer.delete(path, rows.slice(20, 6))
    peer.upsert(path, newer(rows.slice(0, 7)), **_COMPACT)
    assert set(index.glob("*.hfile")) - compacted
    # What comes back is in log files, on top of files that have it no more.
    peer.upsert(path, newer(rows.slice(22, 3)))
    assert is_as_hudi_finds_it(peer, path, keys, Access.SEEK).keys() == set(peer.rows(path)["id"].to_pylist())
