"""What earlier clusterings have changed for predicates: their old files against the new ones, where both can be read.

The old files of a clustering go with a clean. The new ones are compared as the clustering wrote them, also when later
writes have replaced them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..clustering.planned_slices import sized_slices
from ..errors import CorruptFile, HudiServicesError, NotFound
from ..file_names import parse_base_file
from ..model import FileSlice
from ..rows.sort_order import LINEAR, from_strategy_params, layout_of
from ..snapshot import Snapshot
from ..timeline.instant import Instant
from .file_ranges import SliceRanges
from .layout_search import Floats, Read, read_of
from .predicates import Predicate

_MOST = 5
"""The newest clusterings that are looked at."""


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
    completed = [one for one in table.timeline.completed_writes() if table.timeline.is_clustering(one)]
    return [_measured(table, one, predicates, reader) for one in reversed(completed[-_MOST:])]


def _measured(
    table: Snapshot, instant: Instant, predicates: Sequence[Predicate], reader: SliceRanges
) -> EarlierClustering:
    try:
        plan = table.timeline.read_plan(instant)
        old = [one for group in sized_slices(table, plan, f"the plan of {instant.ts}") for one in group]
        new = list(_new_slices(table, instant))
    except HudiServicesError as error:
        return EarlierClustering(instant.ts, "", (), 0, 0, None, None, f"its plan cannot be read: {error.message}")
    sort = from_strategy_params(plan.strategy_params)
    columns = tuple(column.name for column in sort)
    layout = layout_of(plan.strategy_params) if columns else ""
    counts = (len(old), len(new))
    for what, slices in (("old", old), ("new", new)):
        if not all(one.size for one in slices):
            return EarlierClustering(
                instant.ts, layout, columns, *counts, None, None, f"a clean has deleted {what} files of it"
            )
    try:
        before, after = (read_of(predicates, reader.read(slices)) for slices in (old, new))
    except (NotFound, CorruptFile) as error:
        return EarlierClustering(instant.ts, layout, columns, *counts, None, None, error.message)
    return EarlierClustering(instant.ts, layout or LINEAR * bool(columns), columns, *counts, before, after)


def _new_slices(table: Snapshot, instant: Instant) -> Iterator[FileSlice]:
    """The new files of a clustering, with the sizes of those that are still there."""
    stats = table.timeline.read_commit(instant).stats
    table.view.load(sorted(stats))
    for partition, of_partition in stats.items():
        sizes = table.view.sizes(partition)
        for stat in of_partition:
            name = stat.path.rpartition("/")[2]
            base = parse_base_file(partition, name, sizes.get(name, 0))
            if base is not None:
                yield FileSlice.of_base(base)
