"""The newest completed clusterings of the active timeline: the file slices that each replaced, and its new ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..codecs.clustering_plan import CLUSTER, ClusteringPlan
from ..errors import CorruptFile, HudiServicesError
from ..file_names import parse_base_file
from ..model import CommitMetadata, FileSlice
from ..paths import bare_name
from ..rows.sort_order import LINEAR, from_strategy_params, layout_of
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant
from .planned_slices import sized_slices

_MOST, _MOST_SLICES = 5, 20_000
"""How many are looked at, and after how many replaced file slices no further one."""
_MIB = 1 << 20


@dataclass(frozen=True)
class CompletedClustering:
    """What a clustering has done. Files have the sizes that the table lists; that of a file that is gone is 0."""

    instant: Instant
    layout: str
    """"" where nothing was sorted."""
    columns: tuple[str, ...]
    """The names of its sort columns."""
    old: tuple[FileSlice, ...]
    new: tuple[FileSlice, ...]
    """As the clustering wrote them, also where later writes have replaced them."""
    planned_bytes: int
    """The bytes of the old files by the plan, which counts whole MiB of each group; 0 where it does not tell."""
    written_bytes: Mapping[str, int]
    """The sizes of the new files by its commit, by name."""

    @property
    def deleted_files(self) -> str:
        """Which files are gone: "old", "new" or ""."""
        sides = {"old": self.old, "new": self.new}
        return next((name for name, slices in sides.items() if not all(one.size for one in slices)), "")


@dataclass(frozen=True)
class UnreadableClustering:
    """One that is committed, and cannot be read."""

    instant: Instant
    why: str


def newest_clusterings(table: Snapshot) -> Iterator[CompletedClustering | UnreadableClustering]:
    """Up to five, the newest first; fewer where plans are very large. One that was rolled back, or undone, is not
    completed.

    Raises CorruptFile and StorageError where it cannot be known whether an instant is one.
    """
    left, slices = _MOST, 0
    for instant in reversed(table.timeline.completed({Action.REPLACE_COMMIT})):
        found = _clustering(table, instant)
        if found is None:
            continue
        yield found
        left -= 1
        slices += len(found.old) if isinstance(found, CompletedClustering) else 0
        if not left or slices >= _MOST_SLICES:
            return


def _clustering(table: Snapshot, instant: Instant) -> CompletedClustering | UnreadableClustering | None:
    """None for another write that replaces."""
    timeline, plan, why = table.timeline, None, "its requested file is lost"
    try:
        requested = timeline.read_requested(instant)
        if timeline.has_plan(instant) and not requested.is_clustering:
            return None
        plan = requested.plan
    except CorruptFile as error:
        why = error.line
    if plan is None:
        # The commit tells the operation, too.
        is_one = timeline.read_commit(instant).operation == CLUSTER
        return UnreadableClustering(instant, f"its plan cannot be read: {why}") if is_one else None
    try:
        return _completed(table, instant, plan)
    except HudiServicesError as error:
        return UnreadableClustering(instant, f"it cannot be read: {error.line}")


def _completed(table: Snapshot, instant: Instant, plan: ClusteringPlan) -> CompletedClustering:
    old = sized_slices(table, plan, f"the plan of {instant.ts}")
    commit = table.timeline.read_commit(instant)
    columns = tuple(column.name for column in from_strategy_params(plan.strategy_params))
    return CompletedClustering(
        instant,
        layout=(layout_of(plan.strategy_params) or LINEAR) if columns else "",
        columns=columns,
        old=tuple(one for group in old for one in group),
        new=tuple(_new_slices(table, commit)),
        planned_bytes=round(sum(group.metrics.get("TOTAL_IO_READ_MB", 0.0) for group in plan.groups) * _MIB),
        written_bytes={bare_name(stat.path): stat.file_size for stats in commit.stats.values() for stat in stats},
    )


def _new_slices(table: Snapshot, commit: CommitMetadata) -> Iterator[FileSlice]:
    table.view.load(sorted(commit.stats))
    for partition, stats in commit.stats.items():
        sizes = table.view.sizes(partition)
        for stat in stats:
            name = bare_name(stat.path)
            base = parse_base_file(partition, name, sizes.get(name, 0))
            if base is not None:
                yield FileSlice.of_base(base)
