"""Which writes of the metadata table wrote to an earlier partition of the same name: their files are gone on purpose.

Hudi drops a partition of the metadata table by deleting its folder, and builds it anew by a bulk insert into new file
groups (HoodieTableMetadataUtil.deleteMetadataTablePartition, HoodieBackedTableMetadataWriter.initializeFileGroups,
which deletes what a dead drop has left). The timeline goes on naming the files of the earlier partition. Such a file is
not lost. That its write came before the partition that is there shows in one of two ways:

*By order*: it comes before each write that has a file in the folder, and before the write that the partition metafile
names: the first one that wrote records (HoodiePartitionMetadata.trySave). The metafile alone proves nothing: a later
write makes a lost one again. Versions 8 and 9 order by the completion times in the names of instants, and in the
archive. Version 6 orders by requested times: there a completion time is a modification time, which copies lose.

*By descent*, for a build that has an earlier time than what was before it. On version 6 Hudi names it after the newest
instant of the table (`<instant>010`), and a compaction of the days of version 8 or 9 has a time of its own: a downgrade
from 9 to 6 compacts, drops column_stats, and builds it again (NineToEightDowngradeHandler, UpgradeDowngrade.run). What
was written since a build is linked with it: log files bear the instant of their slice (HoodieLogFile), and compaction
plans name the files of the slices that they end (HoodieCompactionOperation). So a write came before when the files that
are there are linked with a build on the active timeline, and the write is not. A log file that bears the instant of its
own write, as on versions 8 and 9, tells nothing of its slice: of it, only the order counts.

Of a write with a file that is there, or that merged such a file, neither is true. When neither can be shown, a missing
file is lost.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ...computed_once import cached_property
from ...errors import NotFound
from ...file_names import PARTITION_METAFILE, instant_in
from ...limits import SMALL_FILE
from ...table.log_naming import LogNaming
from ...table_config import METADATA_TABLE_FOLDER
from ...timeline.active import Timeline
from ...timeline.instant import Action, Instant


@dataclass(frozen=True)
class PresentPartition:
    """The partition that is there, beside the completed writes to all partitions that had its name."""

    timeline: Timeline
    naming: LogNaming
    name: str
    instants: Collection[str]
    """Those in the names of the committed files in the folder."""
    written: Mapping[Instant, Collection[str]]
    """The names of the files that each completed write wrote."""
    completion_time: Callable[[str], str | None]
    """The completion time of a committed instant, archived or not; None when it is unknown, or pending."""

    def came_after(self, write: Instant) -> bool:
        """Whether `write` wrote to an earlier partition. Raises CorruptFile for a compaction plan that is broken."""
        return self._is_ordered_before(write) or self._is_no_descendant(write)

    def _is_ordered_before(self, write: Instant) -> bool:
        orders = (self.naming.order_of(one, self.completion_time) for one in {self._first, *self.instants})
        return self.naming.order(write) < min(orders)

    def _is_no_descendant(self, write: Instant) -> bool:
        links = self._links(write)
        return bool(links) and self._is_of_known_build and write.ts not in self._linked and not links & self._linked

    @cached_property
    def _first(self) -> str:
        """The instant of the first write of records, which the metafile names; "" when it is unknown."""
        path = f"{METADATA_TABLE_FOLDER}/{self.name}/{PARTITION_METAFILE}"
        try:
            lines = self.timeline.storage.read(path, SMALL_FILE).decode(errors="replace").splitlines()
        except NotFound:
            return ""
        times = (line.partition("=")[2].strip() for line in lines if line.startswith("commitTime="))
        return next(times, "")

    @cached_property
    def _is_of_known_build(self) -> bool:
        builds = (one for one in self.timeline.completed({Action.DELTA_COMMIT}) if self.naming.is_build(one.ts))
        return any(one.ts in self._linked for one in builds)

    @cached_property
    def _linked(self) -> frozenset[str]:
        """The instants that the files of the folder are linked with: of slices, builds and compactions."""
        found = {*self.instants}
        compactions = self.timeline.pending({Action.COMPACTION})
        left = {write.ts: self._links(write) for write in (*self.written, *compactions)}
        while near := [ts for ts, links in left.items() if ts in found or links & found]:
            for ts in near:
                found |= {ts, *left.pop(ts)}
        return frozenset(found)

    def _links(self, write: Instant) -> frozenset[str]:
        """The instants of the slices that a write continued, or began by a build; empty when nothing tells them."""
        if write.action is not Action.DELTA_COMMIT:
            return self._merged(write)
        found = frozenset(map(instant_in, self.written[write]))
        return found if self.naming.is_build(write.ts) else found - {write.ts}

    def _merged(self, compaction: Instant) -> frozenset[str]:
        """The instants in the names of the files of this partition that a compaction merges; empty without its plan."""
        if self.timeline.requested_name(compaction) not in self.timeline.sizes:
            return frozenset()
        operations = self.timeline.read_compaction_plan(compaction).operations
        return frozenset(instant_in(name) for one in operations if one.partition == self.name for name in one.names)
