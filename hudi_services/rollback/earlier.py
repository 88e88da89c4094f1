"""The file slices that readers see when an instant is gone, and those that they saw when it was the newest instant.

Both come from a listing of storage and the timeline, by the rules of the view; the metadata table has the last word
only on whether a file is listed.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ..computed_once import cached_property
from ..metadata.metadata_table import MetadataLister
from ..model import FileSlice
from ..snapshot import Snapshot
from ..table.facts import AssumedFacts
from ..table.partitions import StorageLister
from ..table.view import FileGroupId, FileSystemView
from ..timeline.instant import Action, Instant


@dataclass(frozen=True)
class Earlier:
    """The file slices in `partitions` that readers see when `target` is no longer completed."""

    table: Snapshot
    target: Instant
    partitions: Collection[str]

    @cached_property
    def slices(self) -> dict[FileGroupId, FileSlice]:
        """The slices that readers see, by file group."""
        timeline, target = self.table.timeline, self.target
        compacting = {**self.table.ledger.compacting}
        if timeline.began_as(target) is Action.COMPACTION:
            # Its plan stays.
            operations = timeline.read_compaction_plan(target).operations
            compacting |= {one.group: target.ts for one in operations}
        replaced = self.table.ledger.replaced_without(target.ts)
        facts = AssumedFacts(timeline, target.ts, is_completed=False)
        view = FileSystemView(self._lister, facts, replaced, self.table.log_naming, compacting)
        return {(one.partition, one.file_id): one for p in self.partitions for one in view.latest_slices(p)}

    def has(self, partition: str, name: str) -> bool:
        """Whether the file is stored, with more than zero bytes, and the metadata table, if there is one, knows it."""
        is_listed = self._listed is None or name in self._listed.files(partition)
        return is_listed and bool(self._lister.files(partition).get(name))

    @cached_property
    def _lister(self) -> StorageLister:
        lister = StorageLister(self.table.storage)
        lister.load(sorted(self.partitions))
        return lister

    @cached_property
    def _listed(self) -> MetadataLister | None:
        if self.table.metadata is None:
            return None
        listed = MetadataLister(self.table.metadata)
        listed.load(sorted(self.partitions))
        return listed


def slices_with(table: Snapshot, ts: str, groups: Collection[FileGroupId]) -> list[FileSlice]:
    """The slices of `groups` that readers saw while the instant `ts`, which is pending now, was the newest completed
    one; those of its files that are deleted already are missing."""
    compacting = {group: other for group, other in table.ledger.compacting.items() if other != ts}
    lister = StorageLister(table.storage)
    partitions = sorted({partition for partition, _ in groups})
    lister.load(partitions)
    facts = AssumedFacts(table.timeline, ts, is_completed=True)
    view = FileSystemView(lister, facts, {}, table.log_naming, compacting)
    return [one for p in partitions for one in view.latest_slices(p) if (p, one.file_id) in groups]
