"""What earlier clusterings have changed for predicates: their old files against the new ones, where both can be read.

The old files of a clustering go with a clean. The new ones are compared as the clustering wrote them, also when later
writes have replaced them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..clustering.completed_clusterings import CompletedClustering, UnreadableClustering, newest_clusterings
from ..errors import CorruptFile, NotFound
from ..snapshot import Snapshot
from .file_ranges import SliceRanges
from .layout_search import Floats, Read, read_of
from .predicates import Predicate


@dataclass(frozen=True)
class EarlierClustering:
    """A completed clustering; `before` and `after` are None, with a reason `why`, where files are gone."""

    instant: str
    layout: str
    columns: tuple[str, ...]
    old_files: int
    new_files: int
    before: Read | None
    after: Read | None
    why: str = ""

    def totals(self, weights: Floats) -> tuple[float, float, float, float] | None:
        """Files before and after, and bytes before and after, of a run of the predicates; None where unknown."""
        if self.before is None or self.after is None:
            return None
        sides = (self.before.files, self.after.files, self.before.bytes, self.after.bytes)
        files_before, files_after, bytes_before, bytes_after = (float(weights @ one) for one in sides)
        return files_before, files_after, bytes_before, bytes_after


def earlier_clusterings(
    table: Snapshot, predicates: Sequence[Predicate], reader: SliceRanges
) -> list[EarlierClustering]:
    """The newest completed clusterings of the active timeline, the newest first."""
    return [_measured(one, predicates, reader) for one in newest_clusterings(table)]


def _measured(
    done: CompletedClustering | UnreadableClustering, predicates: Sequence[Predicate], reader: SliceRanges
) -> EarlierClustering:
    if isinstance(done, UnreadableClustering):
        return EarlierClustering(done.instant.ts, "", (), 0, 0, None, None, done.why)
    known = partial(EarlierClustering, done.instant.ts, done.layout, done.columns, len(done.old), len(done.new))
    if done.deleted_files:
        return known(None, None, f"a clean has deleted {done.deleted_files} files of it")
    try:
        before, after = (read_of(predicates, reader.read(slices)) for slices in (done.old, done.new))
    except (NotFound, CorruptFile) as error:
        return known(None, None, error.message)
    return known(before, after)
