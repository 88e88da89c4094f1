"""The record keys of base files, for look-ups by several processes: each file is read once, by one of them.

    Wanted       which keys of the files matter: those that a write has, when they are few, or their range
    keys_of      the keys of one file
    StoredKeys   the keys of the files that one process has got, each from the file that has it

Source: HoodieSimpleIndex, HoodieBloomIndex of Apache Hudi, which join the keys of the files with those of the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.slices import SliceSource
from ..merging.log_records import KEY
from ..model import FileSlice
from ..parquet.footer import using_footer
from ..storage import Storage
from .row_store import Place, RowStore
from .tagging import KeyRange, Tagged, may_hold, positions_of, with_deleted_keys, without_dead

EVERYWHERE = ""
"""The partition of keys that are unique in the table."""


def scope_of(partition: str, *, is_global: bool) -> str:
    """Where the keys of a partition are unique: there, or EVERYWHERE."""
    return EVERYWHERE if is_global else partition


@dataclass(frozen=True, slots=True)
class Wanted:
    """The keys that a write has, by partition, or EVERYWHERE: `keys` are all of them, where they are few.

    Otherwise `ranges`; without a partition, or with None, any key may be wanted.
    """

    is_global: bool
    keys: Mapping[str, pa.Array] | None = None
    ranges: Mapping[str, KeyRange | None] = field(default_factory=dict)


def keys_of(
    storage: Storage, source: SliceSource, file_slice: FileSlice, expected: Wanted, *, by_footer: bool, live: bool
) -> Iterator[pa.Table]:
    """The wanted keys of a slice, in tables of KEY alone; there may be others among them.

    `by_footer` and `live` as for `tag_keys`. Raises CorruptFile and StorageError.
    """
    base, name = file_slice.base_file, scope_of(file_slice.partition, is_global=expected.is_global)
    keys = None if expected.keys is None else expected.keys.get(name, pa.array([], pa.string()))
    if keys is not None and not len(keys):
        return
    bounds = expected.ranges.get(name)
    if by_footer and base is not None and (keys is not None or bounds is not None):
        may_have = bounds.may_meet if bounds is not None else partial(may_hold, keys, base.path)
        if not using_footer(storage, base.path, base.size, may_have):
            return
    reader = source.open(file_slice if live else with_deleted_keys(file_slice))
    for some in reader.record_keys():
        found = some if keys is None else some.filter(pc.is_in(some, value_set=keys))
        if len(found):
            yield pa.table({KEY: found})
    reader.release()


class StoredKeys:
    """The keys in `store`, by the file group that has them."""

    def __init__(self, source: SliceSource, slices: Sequence[FileSlice], store: RowStore, *, live: bool) -> None:
        """`slices` are all that may have keys; `live` as for `tag_keys`."""
        self._source = source
        self._store = store
        self._live = live
        self._slices = [one for one in slices if self.place(one) in store.counts]

    @staticmethod
    def place(file_slice: FileSlice) -> Place:
        """Where the keys of a slice are kept."""
        return Place(file_slice.partition, file_slice.file_id, deletes=True)

    def tag(self, partition: str, keys: pa.Array) -> list[Tagged]:
        """The slices that have any of `keys`, in one partition or EVERYWHERE, as `tag_keys` gives them."""
        tagged = []
        for one in self._slices:
            if partition in (one.partition, EVERYWHERE):
                positions = positions_of((some.column(KEY) for some in self._store.read(self.place(one))), keys)
                if positions.size:
                    tagged.append(Tagged(one, positions))
        return tagged if self._live else without_dead(self._source, keys, tagged)
