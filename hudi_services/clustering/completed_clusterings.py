"""The newest completed clusterings of the active timeline: the file slices that each replaced, and its new ones."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from ..codecs.clustering_plan import CLUSTER
from ..errors import CorruptFile
from ..file_names import parse_base_file
from ..model import CommitMetadata, FileSlice
from ..paths import bare_name
from ..rows.sort_order import LINEAR, from_strategy_params, layout_of
from ..snapshot import Snapshot
from ..timeline.active import Timeline
from ..timeline.instant import Action, Instant
from .planned_slices import sized_slices

UNREADABLE = "its plan or its commit cannot be read"
_MOST = 5
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


def newest_clusterings(timeline: Timeline) -> list[Instant]:
    """Up to five, the newest first; those that were rolled back, or undone, are not completed.

    Raises CorruptFile and StorageError where it cannot be known whether an instant is one.
    """
    return list(islice((one for one in reversed(timeline.completed_writes()) if _is_clustering(timeline, one)), _MOST))


def read_clustering(table: Snapshot, instant: Instant) -> CompletedClustering:
    """Read the plan and the commit of a completed clustering. Raises HudiServicesError where one cannot be read."""
    plan = table.timeline.read_plan(instant)
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


def _is_clustering(timeline: Timeline, instant: Instant) -> bool:
    if instant.action.completed_as is not Action.REPLACE_COMMIT:
        return False
    with suppress(CorruptFile):
        if timeline.has_plan(instant):
            return timeline.is_clustering(instant)
    # The requested file is lost or broken: the commit tells the operation, too.
    return timeline.read_commit(instant).operation == CLUSTER


def _new_slices(table: Snapshot, commit: CommitMetadata) -> Iterator[FileSlice]:
    table.view.load(sorted(commit.stats))
    for partition, stats in commit.stats.items():
        sizes = table.view.sizes(partition)
        for stat in stats:
            name = bare_name(stat.path)
            base = parse_base_file(partition, name, sizes.get(name, 0))
            if base is not None:
                yield FileSlice.of_base(base)
