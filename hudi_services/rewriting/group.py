"""One group of file slices while it is rewritten: prepared from their footers, then read, written, and compared.

Whoever writes the group (`group_writer`) gets its rows and its new files here, where both are counted: what went in
once for each row of the old files, what came out once for each row that is read back from storage.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa

from ..base_files.new_file import NewFile
from ..base_files.page_copy import needs_recoding
from ..base_files.slices import RECORD_KEY, Segment, SliceReader, StoredRowGroup
from ..calendars.calendar import have_two_calendars
from ..computed_once import cached_property
from ..errors import REPORT_IT, CheckFailed
from ..file_names import new_file_id
from ..model import LogCounts
from ..parquet.chunk_stats import column_stats
from ..process import keep_freed_blocks
from ..rows.conservation import Checksum
from ..rows.file_output import CHECK, Stopwatch
from ..rows.file_sizing import (
    Piece,
    cut_segments,
    even_cuts,
    files_needed,
    needs_no_cut,
    overhead_bytes,
    sampled_slices,
    segments_of,
    stored_row_groups,
    unweighed,
    weighed_slices,
    written_samples,
)
from .counted import CountedSlice
from .inputs import open_group
from .outputs import CopyFile, OutputFile, Outputs
from .task import RewriteTask


class Group:
    """The state of one rewrite. Raises CorruptFile, UnsupportedTable and StorageError for inputs that cannot be read.

    `readers` are the open slices, newest first; `segments` are all their rows, in order; `target` is the schema of the
    new files. `spilled_bytes` counts what its writer has put on the local disk.
    """

    def __init__(self, task: RewriteTask, write_token: str = "") -> None:
        self.task = task
        self.clock = Stopwatch()
        self.spilled_bytes = 0
        self._begun = 0
        """The number of new files that were begun; several may be open at once."""
        with self.clock.phase("read"):
            opened = open_group(task)
            self.readers, self.form = opened.readers, opened.form
            self.target, self.columns = self.form.target, self.form.columns
            if task.memory.is_plenty(sum(reader.encoded_bytes for reader in self.readers)):
                keep_freed_blocks()
        self.outputs = Outputs(task.form(write_token, self.form), self.columns, task.memory, self.clock)

    @cached_property
    def rows(self) -> int:
        """The number of rows; slices with log files are merged to be counted."""
        with self.clock.phase("read"):
            part = self.task.part
            return sum(reader.num_rows for reader in self.readers) if part is None or part.rows is None else part.rows

    @property
    def bytes(self) -> int:
        """Bytes of its old files."""
        return sum(reader.size for reader in self.readers)

    @property
    def logs(self) -> LogCounts:
        """What the log files of the old slices held, and what their records did."""
        return sum((reader.log_counts for reader in self.readers), start=LogCounts())

    @property
    def spilled(self) -> int:
        """Bytes that its writer, and reading the old slices, have put on the local disk."""
        return self.spilled_bytes + sum(reader.spilled_bytes for reader in self.readers)

    @cached_property
    def segments(self) -> list[Segment]:
        found, part = segments_of(self.readers), self.task.part
        return found if part is None or part.rows is None else cut_segments(found, part.start, part.rows)

    @cached_property
    def stored(self) -> list[StoredRowGroup]:
        """The row groups of its rows, of slices whose rows need not be merged or converted."""
        if self._is_window:
            return [one.stored for one in self.segments if one.stored is not None]
        return stored_row_groups(self.readers)

    @property
    def merged_bytes(self) -> int:
        """The bytes, as they will be stored, of its rows that are not in `stored`, about."""
        if self._is_window:
            return sum(one.stored_bytes for one in self.segments if one.stored is None)
        return sum(reader.stored_bytes for reader in self.readers if not reader.stored)

    @property
    def _is_window(self) -> bool:
        """Whether only some rows of the slices are wanted, none of which needs a merge."""
        return self.task.part is not None and self.task.part.rows is not None

    @cached_property
    def pieces(self) -> list[Piece]:
        """The segments, weighed where they are cut; [] for a sorted group, whose sorted rows are weighed, and for a
        part."""
        task = self.task
        if task.sort or task.part is not None:
            return []
        if needs_no_cut(self.readers, len(task.file_ids), task.settings):
            return unweighed(self.readers)
        return self.weighed

    @cached_property
    def weighed(self) -> list[Piece]:
        """The segments of a group that is not sorted, each with its bytes in the new files."""
        with self.clock.phase("cut"):
            codec, sampled = self.task.settings.codec, sampled_slices(len(self.readers))
            written = written_samples(self.readers, sampled, codec, self.task.memory.stored)
            return weighed_slices(self.readers, codec, written)

    def files_needed(self, pieces: Sequence[Piece]) -> int:
        """The number of new files, by all rows in weighed `pieces`."""
        return files_needed(len(self.task.file_ids), pieces, self.readers, self.task.settings)

    def cuts(self, pieces: Sequence[Piece]) -> list[int]:
        """The number of rows of each new file, by all rows in weighed `pieces`."""
        return even_cuts(pieces, self.files_needed(pieces)) if self.task.part is None else [self.rows]

    def sizes(self, files: Sequence[Sequence[Piece]]) -> tuple[int, ...]:
        """The sizes of new files of these pieces, in bytes: their weight, and what a file has besides."""
        return tuple(
            round(sum(weight for _, weight in pieces))
            + overhead_bytes(self.readers, self.task.settings, sum(rows for rows, _ in pieces))
            for pieces in files
        )

    # ---- rows

    @cached_property
    def _slices(self) -> dict[SliceReader, CountedSlice]:
        args = (self.columns, self.target, self.task.memory.stored, self.clock)
        segments: dict[SliceReader, list[Segment]] = {reader: [] for reader in self.readers}
        for one in self.segments:
            segments[one.slice].append(one)
        return {reader: CountedSlice(reader, wanted, *args) for reader, wanted in segments.items()}

    def tables(self) -> Iterator[pa.Table]:
        """All rows, in pieces, in the raw form of the target; may be called again."""
        return chain.from_iterable(self._slices[reader].tables() for reader in self.readers)

    def hashed(self) -> Iterator[pa.Table]:
        """As `tables`, once, with the hash of each row in the column `HASH`."""
        return chain.from_iterable(self._slices[reader].hashed() for reader in self.readers)

    def values(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of all rows, in pieces, for whoever must know them before the rows are written."""
        return chain.from_iterable(self._slices[reader].values(columns) for reader in self.readers)

    def take(self, segment: Segment) -> Iterator[pa.Table]:
        """The rows of one segment; each is taken once, those of a slice in their order. Raises CheckFailed."""
        return self._slices[segment.slice].take(segment)

    # ---- new files

    def file_id(self) -> str:
        """The file id of the next new file; there may be more of them than planned. Raises CheckFailed."""
        number, ids = self._begun, self.task.file_ids
        self._begun += 1
        if number and self.task.keeps_group:
            raise CheckFailed(f"{self.readers[0].full_path}: its file group was to become more than one base file")
        return ids[number] if number < len(ids) else new_file_id()

    def new_file(self, rows: int) -> OutputFile:
        """The next new file, of about `rows` rows, by which its bloom filter is sized."""
        return self.outputs.rows(self.file_id(), rows)

    def copied_file(self, rows: int, created_by: str) -> CopyFile:
        """The next new file, into which row groups may be copied; `created_by`: the writer that the footer names."""
        return self.outputs.copies(self.file_id(), rows, created_by, self._codec)

    @cached_property
    def _codec(self) -> str | None:
        """The codec of copied pages; None to leave them as they are."""
        codec = self.outputs.form.settings.codec
        stored = {one.stored.reader for one in self.segments if one.stored is not None}
        return codec if any(needs_recoding(reader, codec) for reader in stored) else None

    def copy(self, segment: Segment, to: CopyFile) -> None:
        """Copy a segment that is stored as a row group; it is taken as by `take`."""
        source = segment.stored
        assert source is not None, "only what is stored can be copied"
        with source.reader.held(source.index, page_indexes=True):
            fingerprint = to.copy(source, segment.slice)
            needs_keys = to.output.wants_keys and not to.output.add_key_range(_key_range(source))
            for keys in self._slices[segment.slice].copied(segment, int(fingerprint), needs_keys=needs_keys):
                with self.clock.phase("keys"):
                    to.output.add_keys(keys)

    # ---- the comparison

    def counted(self) -> Checksum:
        """The checksum of the rows of the old files, all of which are read at the latest now. Raises CheckFailed."""
        return sum((self._slices[reader].finish() for reader in self.readers), start=Checksum())

    def finish(self) -> tuple[Checksum, Checksum]:
        """The checksums of the rows of the old files, and of those of the new files, read back from storage.

        Raises CheckFailed when they differ, or a file does not say what was meant.
        """
        if self.task.keeps_group and not self.outputs.files:
            # The next slice of a file group is also written without rows.
            with self.new_file(0):
                pass
        before = self.counted()
        with self.clock.phase(CHECK):
            after = sum((self._read_back(new) for new in self.outputs.files), start=Checksum())
        if before != after or after.rows != self.rows:
            raise CheckFailed(
                f"{self.task.storage.full_path(self.task.partition)}: the rewrite of {len(self.readers)} files does "
                f"not hold the same rows ({self.rows} by their footers; {before} before, {after} after)",
                hint=REPORT_IT,
            )
        return before, after

    def _read_back(self, new: NewFile) -> Checksum:
        reader = self.outputs.read_back(new)
        if any(have_two_calendars([reader.calendar, one.calendar], self.target) for one in self.readers):
            raise CheckFailed(f"{reader.path}: its dates would be counted in another calendar than before")
        return self.outputs.checksum(reader)


def _key_range(source: StoredRowGroup) -> tuple[str, str] | None:
    """The least and the greatest record key of a row group, by the footer; None when the footer does not have them."""
    for leaf, chunk in enumerate(source.facts.columns):
        if chunk.path == (RECORD_KEY,) and leaf in source.reader.ordered_leaves and chunk.exact:
            found = column_stats(source.reader.schema, [source.facts])[leaf]
            if found.null_count == 0 and isinstance(found.min, str) and isinstance(found.max, str):
                return found.min, found.max
    return None
