"""Keys that are read by file, and looked up by others: the same slices as those of a look-up by one process."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_services.writing.keys_of_files import EVERYWHERE, StoredKeys, Wanted, keys_of
from hudi_services.writing.row_store import RowStore
from hudi_services.writing.tagging import KeyRange, Tagged, tag_keys

from .rides import FILTERS, create
from .tables import open_local
from .test_upserts import rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def by_slice(tagged: list[Tagged]) -> dict[tuple[str, str], list[int]]:
    return {(one.slice.partition, one.slice.file_id): one.positions.tolist() for one in tagged}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with ranges of keys, some keys in two of them, and log files that delete some."""
    path = tmp_path_factory.mktemp("keys") / "rides"
    table = create(path, table_type="MERGE_ON_READ", partition_by="day")
    small = {**FILTERS, "hoodie.parquet.small.file.limit": "0"}
    for first in (0, 40, 80, 100, 20):
        table.bulk_insert(rows(first, first + 30), options=small)
    table.delete(rows(45, 60), options=small)
    table.delete(rows(25, 28), options={**small, "hoodie.index.type": "GLOBAL_SIMPLE"})
    return path


@pytest.mark.spread(3)
@pytest.mark.parametrize("by_footer", [True, False])
@pytest.mark.parametrize("is_global", [True, False])
def test_the_same_slices(path: Path, is_global: bool, by_footer: bool) -> None:
    table = open_local(path)
    random = np.random.default_rng(3)
    for size in (1, 5, 60):
        keys = pa.array([f"k{n:05d}" for n in sorted({*random.integers(0, 150, size).tolist()})])
        for partition in [EVERYWHERE] if is_global else table.view.partitions():
            slices = table.view.live_slices(partition or None)
            expected = by_slice(
                tag_keys(table.storage, table.slices, slices, keys, by_footer=by_footer, live=is_global)
            )
            for wanted in (
                Wanted(is_global),
                Wanted(is_global, keys={partition: keys}),
                Wanted(is_global, ranges={partition: KeyRange.of(keys)}),
                Wanted(is_global, ranges={partition: None}),
            ):
                read = 0
                with RowStore(1 << 20) as store:
                    for one in slices:
                        tables = keys_of(table.storage, table.slices, one, wanted, by_footer=by_footer, live=is_global)
                        for found in tables:
                            read += found.num_rows
                            store.add(StoredKeys.place(one), found)
                    stored = StoredKeys(table.slices, slices, store, live=is_global)
                    assert by_slice(stored.tag(partition, keys)) == expected
                if wanted.keys is not None:
                    assert read <= 3 * len(keys)
                elif by_footer and wanted.ranges == {partition: KeyRange.of(keys)} and size == 1:
                    assert read < sum(table.slices.open(one).num_rows for one in slices)


def test_ranges_of_keys() -> None:
    one = KeyRange.of(pa.array(["b", "a"]))
    assert one == KeyRange("a", "b") and one is not None
    assert one.joined(KeyRange("c", "d")) == KeyRange("a", "d")
    # Java orders them in another way.
    assert KeyRange.of(pa.array(["a", "\U0001f600", "\uffff"])) is None
