"""The common part of the checks of key indexes: the keys of all live files against all entries of the index."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from ..codecs.avro import AvroSchema
from ..errors import CorruptFile, UnsupportedTable
from ..file_records.doubts import Doubt
from ..file_records.footers import Described
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shard_entries import Places, ShardEntries
from ..metadata.record_index.shards import Shards
from ..model import FileSlice
from ..table.view import FileGroupId
from .key_sets import Comparison, Mismatch, Part, PlacedKeys, compare, compare_keys
from .model import Difference, Finding, Unsure

Progress = Callable[[int, int], None]

_LOG_MEMORY = 64 << 20
"""Bytes of log records that each thread holds; more of them go to the local disk."""


class KeyIndexCheck(ABC):
    """Compares all keys of the metadata partition `index`, or only the keys in `only`.

    `progress` is called with the number of files and file groups done, and the number of all of them.
    """

    def __init__(
        self, metadata: MetadataTable, index: str, progress: Progress, only: frozenset[str] | None = None
    ) -> None:
        self._metadata = metadata
        self._source = metadata.slices.as_of(None, _LOG_MEMORY)
        self._index = index
        self._progress = progress
        self._only = only
        self._live: dict[FileGroupId, FileSlice] = {}
        self._groups: Sequence[FileSlice] = ()
        self.checked = 0
        self.is_whole = True
        """Whether all differences are reported."""

    def at(self, files: Sequence[Described]) -> Iterator[Difference]:
        """Only keep the slices that readers see: a key may be in any of them."""
        for one in files:
            if one.is_live and one.row_groups:
                self._live[one.file.partition, one.file.file_id] = one.member.slice
        return iter(())

    @property
    def _slices(self) -> list[FileSlice]:
        return list(self._live.values())

    def at_end(self) -> Iterator[Finding]:
        """All differences."""
        self._groups = self._metadata.file_groups(self._index)
        shards = Shards.of_groups(self._groups)
        slices: list[Part] = [partial(self._of_slice, one, shards) for one in self._slices]
        groups: list[Part] = [partial(self._of_shard, shard) for shard in range(len(self._groups))]
        try:
            found = self._compare(slices, groups)
        except Unjudged as one:
            # The index may be right about the keys of that slice.
            yield Unsure(self._index, one.slice.partition, one.slice.files[0].name, one.doubt)
            return
        self.checked, self.is_whole = found.entries, found.is_whole
        yield from self.differences(found.mismatches)

    @abstractmethod
    def of_slice(self, file_slice: FileSlice, shards: Shards) -> Iterator[PlacedKeys]:
        """The entries that a file slice should have; called in any thread. Raises CorruptFile and Unjudged."""

    @abstractmethod
    def decode(self, values: pa.Array, schema: AvroSchema, path: str) -> Places:
        """The places in values of the index, see `shard_entries.Decode`; called in any thread. Raises CorruptFile."""

    @abstractmethod
    def differences(self, mismatches: Sequence[Mismatch]) -> Iterator[Difference]:
        """The mismatches as differences for an operator."""

    def judged(self, entries: PlacedKeys) -> PlacedKeys:
        """The entries, of either side, without those of which it is unknown whether they should exist."""
        return entries

    def _compare(self, slices: Sequence[Part], groups: Sequence[Part]) -> Comparison:
        if self._only is None:
            return compare(slices, groups, self._progress)
        return compare_keys(slices, groups, pa.array([key.encode() for key in self._only], pa.binary()))

    def _of_slice(self, file_slice: FileSlice, shards: Shards) -> Iterator[PlacedKeys]:
        try:
            yield from map(self.judged, self.of_slice(file_slice, shards))
        except CorruptFile as error:
            raise Unjudged(file_slice, Doubt.BROKEN_FILE) from error
        except UnsupportedTable as error:
            raise Unjudged(file_slice, Doubt.NOT_MERGED) from error

    def _of_shard(self, shard: int) -> Iterator[PlacedKeys]:
        for some in ShardEntries(self._metadata.open_group(self._groups[shard]), self.decode).read():
            yield self.judged(PlacedKeys(some.keys, np.full(len(some.keys), shard, np.int32), some.places))


class Unjudged(Exception):
    """The keys of a file slice cannot be determined."""

    def __init__(self, file_slice: FileSlice, doubt: Doubt) -> None:
        super().__init__(file_slice.file_id)
        self.slice = file_slice
        self.doubt = doubt
