"""What the checks of key indexes have in common: the keys of all live files on one side, all entries on the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from ..codecs.avro import AvroSchema
from ..errors import CorruptFile
from ..metadata.record_index.shard_entries import Places, ShardEntries
from ..metadata.record_index.shards import Shards
from ..metadata.table import MetadataTable
from ..model import FileSlice
from .footers import Described
from .key_sets import Comparison, Entries, Mismatch, Part, compare, compare_keys
from .model import Difference, Doubt, Finding, Unsure

Progress = Callable[[int, int], None]


class KeyIndexCheck(ABC):
    """Compares all keys of the metadata partition `index`, or those of `only`.

    `progress` gets files and file groups done, and all of them.
    """

    def __init__(
        self, metadata: MetadataTable, index: str, progress: Progress, only: frozenset[str] | None = None
    ) -> None:
        self._metadata = metadata
        self._index = index
        self._progress = progress
        self._only = only
        self._slices: list[FileSlice] = []
        self._groups: Sequence[FileSlice] = ()
        self.checked = 0
        self.is_whole = True
        """All differences were told."""

    def at(self, files: Sequence[Described]) -> Iterator[Difference]:
        """Only remembers the slices that readers see: a key may be anywhere."""
        self._slices += [FileSlice.of_base(one.file) for one in files if one.is_live and one.row_groups]
        return iter(())

    def at_end(self) -> Iterator[Finding]:
        """All differences."""
        self._groups = self._metadata.file_groups(self._index)
        shards = Shards.of_groups(self._groups)
        slices: list[Part] = [partial(self._of_slice, one, shards) for one in self._slices]
        groups: list[Part] = [partial(self._of_shard, shard) for shard in range(len(self._groups))]
        try:
            found = self._compare(slices, groups)
        except Unjudged as one:
            # Whatever the index says of its keys may be right.
            yield Unsure(self._index, one.slice.partition, one.slice.files[0].name, one.doubt)
            return
        self.checked, self.is_whole = found.entries, found.is_whole
        yield from self.differences(found.mismatches)

    @abstractmethod
    def of_slice(self, one: FileSlice, shards: Shards) -> Iterator[Entries]:
        """The entries that a file slice should have; in any thread. Raises CorruptFile and Unjudged."""

    @abstractmethod
    def decode(self, values: pa.Array, schema: AvroSchema, path: str) -> Places:
        """The places in values of the index, as `shard_entries.Decode` has them; in any thread. Raises CorruptFile."""

    @abstractmethod
    def differences(self, mismatches: Sequence[Mismatch]) -> Iterator[Difference]:
        """Each as an operator reads it."""

    def judged(self, entries: Entries) -> Entries:
        """Without those, on either side, of which nobody can say whether they should be there."""
        return entries

    def _compare(self, slices: Sequence[Part], groups: Sequence[Part]) -> Comparison:
        if self._only is None:
            return compare(slices, groups, self._progress)
        return compare_keys(slices, groups, pa.array([key.encode() for key in self._only], pa.binary()))

    def _of_slice(self, one: FileSlice, shards: Shards) -> Iterator[Entries]:
        try:
            yield from map(self.judged, self.of_slice(one, shards))
        except CorruptFile as error:
            raise Unjudged(one, Doubt.BROKEN_FILE) from error

    def _of_shard(self, shard: int) -> Iterator[Entries]:
        for some in ShardEntries(self._metadata.open_group(self._groups[shard]), self.decode).read():
            yield self.judged(Entries(some.keys, np.full(len(some.keys), shard, np.int32), some.places))


class Unjudged(Exception):
    """A file slice whose keys cannot be told."""

    def __init__(self, one: FileSlice, doubt: Doubt) -> None:
        super().__init__(one.file_id)
        self.slice = one
        self.doubt = doubt
