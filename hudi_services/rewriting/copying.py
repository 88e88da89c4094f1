"""Rewriting a group without decoding it: its row groups are copied into the new files as they are."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ..files.column_stats import column_stats
from ..files.parquet_copy import RowGroupCopier, can_be_copied, needs_recoding, row_group_fingerprint
from ..files.parquet_schema import FileSchema
from ..files.slices import SliceReader, StoredRowGroup
from ..rows.conservation import Checksum
from ..rows.file_sizing import Piece, files_needed, stored_row_groups
from ..rows.output import RECORD_KEY_FIELD, Form, NewFile, Output, Stopwatch
from .task import RewriteTask

_SMALLEST_PART = 16
"""Row groups are copied when their average size is at least the wanted size divided by this: smaller row groups make
reading slow, and are merged."""
_LARGEST_TIMES = 2
"""Row groups larger than this many times the wanted size are decoded and cut."""
_UNEVEN = 0.05
"""The share of a file's bytes by which a cut between row groups may differ from an even cut."""


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Which row groups go into which new file."""

    files: tuple[tuple[StoredRowGroup, ...], ...]


def copy_plan(
    task: RewriteTask, readers: Sequence[SliceReader], target: FileSchema, pieces: Sequence[Piece]
) -> CopyPlan | str:
    """How to copy the group, or the reason why its rows must be decoded; `pieces` are its weighed row groups."""
    if task.sort:
        return "sorted"
    if any(reader.schema != target for reader in readers):
        return "schemas differ"
    if any(reader.num_rows and not reader.stored for reader in readers):
        return "log files"
    files = {source.reader for reader in readers for source in reader.stored}
    if len({file.created_by for file in files}) > 1:
        return "different parquet writers"
    if not all(can_be_copied(file) for file in files):
        return "unknown codec"
    sources = stored_row_groups(readers)
    if not sources:
        return "no rows"
    sizes = [source.facts.uncompressed_bytes for source in sources]
    wanted = task.settings.row_group_bytes
    if sum(sizes) * _SMALLEST_PART < wanted * len(sizes):
        return "small row groups"
    if max(sizes) > wanted * _LARGEST_TIMES:
        return "large row groups"
    if max(source.facts.compressed_bytes for source in sources) > task.memory.stored:
        return "row groups too large for the memory"
    count = files_needed(len(task.file_ids), pieces, readers, task.settings)
    cut = _cut(sources, [weight for _, weight in pieces], count)
    return CopyPlan(cut) if cut is not None else "large row groups"


def _cut(
    sources: Sequence[StoredRowGroup], weights: Sequence[float], count: int
) -> tuple[tuple[StoredRowGroup, ...], ...] | None:
    """`sources` in `count` runs of about equal weight; None when row groups are too large for even runs."""
    ends = [0.0, *itertools.accumulate(weights)]
    total = ends[-1]
    cuts = [0]
    for i in range(1, count):
        wanted = total * i / count
        cut = min(range(len(ends)), key=lambda at: abs(ends[at] - wanted))
        if abs(ends[cut] - wanted) > _UNEVEN * total / count:
            return None
        cuts.append(cut)
    cuts.append(len(sources))
    return tuple(tuple(sources[low:high]) for low, high in itertools.pairwise(cuts))


def _key_range(source: StoredRowGroup) -> tuple[str, str] | None:
    """The least and the greatest record key of a row group, by the footer; None when the footer does not have them."""
    for leaf, chunk in enumerate(source.facts.columns):
        if chunk.path == (RECORD_KEY_FIELD,) and leaf in source.reader.ordered_leaves and chunk.exact:
            found = column_stats(source.reader.schema, [source.facts])[leaf]
            if found.null_count == 0 and isinstance(found.min, str) and isinstance(found.max, str):
                return found.min, found.max
    return None


class CopiedGroup:
    """The state of one rewrite that copies."""

    spilled_bytes = 0

    def __init__(self, task: RewriteTask, form: Form, plan: CopyPlan, clock: Stopwatch) -> None:
        self._task = task
        self._form = form
        self._plan = plan
        self._clock = clock
        readers = {source.reader for file in plan.files for source in file}
        codec = form.settings.codec
        self._codec = codec if any(needs_recoding(reader, codec) for reader in readers) else None
        self.before = Checksum()

    def write(self) -> list[NewFile]:
        """Copy every row group, and add it to the checksum `before`."""
        files = self._plan.files
        pairs = zip(self._task.ids_of(len(files)), files, strict=True)
        return [self._write_file(file_id, sources) for file_id, sources in pairs]

    def _write_file(self, file_id: str, sources: Sequence[StoredRowGroup]) -> NewFile:
        output = Output(self._form, file_id, sum(source.rows for source in sources))
        with RowGroupCopier(
            self._form.storage,
            output.path,
            self._form.target,
            file_name=output.file_name,
            codec=self._codec,
            created_by=sources[0].reader.created_by,
            ranged=self._form.ranged,
        ) as copier:
            for source in sources:
                self._copy(source, output, copier)
            with self._clock.phase("write"):
                return output.close(copier)

    def _copy(self, source: StoredRowGroup, output: Output, copier: RowGroupCopier) -> None:
        with source.reader.held(source.index, page_indexes=True):
            with self._clock.phase("copy"):
                fingerprint = copier.append(source.reader, source.index)
            self._clock.move("copy", "proof", fingerprint.seconds)
            self.before += Checksum(source.rows, int(fingerprint))
            if output.wants_keys and not output.add_key_range(_key_range(source)):
                with self._clock.phase("keys"):
                    output.add_keys(source.reader.read_row_group(source.index, [RECORD_KEY_FIELD]))
        if source.index + 1 == len(source.reader.row_groups):
            source.reader.release()

    def checksum_of(self, new: SliceReader) -> Checksum:
        """The checksum of the row groups of a new file."""
        name = new.path.rpartition("/")[2] if self._form.meta_fields else None
        result = Checksum()
        for one in new.stored:
            found = row_group_fingerprint(one.reader, one.index, file_name=name, recoded=self._codec is not None)
            result += Checksum(one.rows, found)
        return result
