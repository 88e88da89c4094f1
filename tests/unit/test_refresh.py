"""A refreshed snapshot is the table as it is: the same value when nothing has changed, else as if opened anew."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_services
from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.clock import SystemClock
from hudi_services.limits import LARGEST_FILE
from hudi_services.snapshot import Snapshot, open_snapshot, refresh
from hudi_services.storage import FileInfo, Storage
from hudi_services.stores.local import LocalStorage
from hudi_services.table_config import TableConfig

from .counting_storage import CountingStorage
from .metadata_tables import files_by_partition
from .request_scenarios import rows
from .rides import FILTERS, create
from .tables import open_local

_QUIET = {**FILTERS, "hoodie.table.services.enabled": "false"}
_KEEPS_ONE = {**FILTERS, "hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2"}
_KEEPS_ONE |= {"hoodie.keep.max.commits": "3", "hoodie.compact.inline.max.delta.commits": "1"}


def facts(table: Snapshot) -> object:
    """All that a snapshot says of a table."""
    assert table.metadata is not None
    timelines = [table.timeline, table.metadata.timeline]
    return (
        table.config.raw,
        [(timeline.instants, dict(timeline.sizes)) for timeline in timelines],
        files_by_partition(table.metadata),
        {one: table.metadata.found_files(one) for one in table.metadata.partitions},
        table.metadata.index_definitions,
        {one: table.view.latest_slices(one) for one in table.view.partitions()},
        table.view.replaced,
        isinstance(table.slices, BaseFileSlices),
    )


def changes(path: Path, random: random.Random) -> dict[str, Callable[[], object]]:
    """What another process may do to the table."""
    table, stamp = hudi_services.open(path, engine="local"), random.randrange(100, 10_000)
    key = random.randrange(100)
    return {
        "insert": lambda: table.insert(rows(range(1_000 + stamp, 1_001 + stamp), stamp), options=_QUIET),
        "upsert": lambda: table.upsert(rows(range(key, key + 3), stamp), options=_QUIET),
        "plan": lambda: table.plan_clustering(),
        "cluster": lambda: table.cluster(),
        "compact": lambda: table.compact(options=_KEEPS_ONE),
        "clean": lambda: table.clean(options=_KEEPS_ONE),
        "archive": lambda: table.archive(options=_KEEPS_ONE),
        "properties": lambda: _set_property(table._storage, str(stamp)),
        "nothing": lambda: None,
    }


def _set_property(storage: Storage, value: str) -> None:
    TableConfig.load(storage).update(storage, {"hoodie.some.key": value})


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_whatever_another_process_changes(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    version = chosen.choice((6, 8, 9))
    path = tmp_path / "rides"
    create(path, table_type="MERGE_ON_READ", table_version=version).bulk_insert(rows(range(100), 1), options=_QUIET)
    known = open_local(path)
    for _ in range(12):
        before, options = facts(known), changes(path, chosen)
        name = chosen.choice([*options])
        try:
            options[name]()
        except hudi_services.HudiServicesError:
            name += ", refused"
        found, fresh = refresh(known), open_local(path)
        assert facts(found) == facts(fresh), name
        assert (found is known) is (facts(fresh) == before), name
        known = found


class _Changed(LocalStorage):
    """Another process changes the properties right after they were read, and before they are listed, if both are asked
    for at the same time."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._is_changed = threading.Event()

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        data = super().read(path, limit)
        if path == ".hoodie/hoodie.properties" and not self._is_changed.is_set():
            _set_property(LocalStorage(self.root), "changed")
            self._is_changed.set()
        return data

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        if path == ".hoodie":
            self._is_changed.wait(0.3)
        return super().list_dir(path)


@pytest.mark.threads
def test_properties_that_change_while_the_table_is_opened(tmp_path: Path) -> None:
    """A write that did not see a new index under the lock would leave it behind."""
    create(tmp_path / "rides")
    table = open_snapshot(_Changed(tmp_path / "rides"), SystemClock())
    assert refresh(table).config.raw["hoodie.some.key"] == "changed"


def test_an_unchanged_table_is_asked_for_by_three_listings(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    create(path, table_type="MERGE_ON_READ").bulk_insert(rows(range(100), 1), options=_QUIET)
    storage = CountingStorage(str(path))
    table = open_snapshot(storage, SystemClock())
    facts(table)
    storage.forget()
    assert refresh(table) is table
    facts(table)
    assert sorted((one.method, one.path) for one in storage.requests) == [
        ("list", ".hoodie"),
        ("list", ".hoodie/metadata/.hoodie/timeline"),
        ("list", ".hoodie/timeline"),
    ]
