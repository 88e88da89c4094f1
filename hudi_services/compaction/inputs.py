"""The file slices that a compaction merges, and what the compaction expects of them when it is committed.

The input of a compaction is the whole slice that its plan ends. Versions 8 and 9 assign log files to slices by
completion time, so this slice is fixed once the plan is published. On version 6 the writer decides: a write that began
before the plan was published may still append to the old slice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..codecs.compaction_plan import CompactionOperation, CompactionPlan
from ..commit.conflicts import Prospect, pending_writes, prospect, recover_hint
from ..commit.newest_files import check_newest
from ..commit.settings import TransactionSettings
from ..concurrency import at_once
from ..errors import ConflictError, CorruptFile, NeedsRecovery
from ..model import FileSlice
from ..snapshot import Snapshot
from ..timeline.instant import Action, Instant

_AGAIN = "nothing was committed; run compact again"


def compacted_slices(table: Snapshot, plan: CompactionPlan, instant: Instant) -> list[FileSlice]:
    """The slice of each file group of the pending plan, whole; file groups that were replaced since are left out.

    Raises CorruptFile when a file that the plan names is not in its slice, and for a plan that names a file group
    twice.
    """
    source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
    groups = [one.group for one in plan.operations]
    if not groups or len(set(groups)) < len(groups):
        raise CorruptFile(f"{source} names " + ("a file group twice" if groups else "no file group"))
    partitions = sorted({partition for partition, _ in groups})
    table.view.load(partitions)
    slices = {partition: table.view.compacted_slices(partition) for partition in partitions}
    live = [one for one in plan.operations if table.view.replaced_at(*one.group) is None]
    return [_slice(one, slices[one.partition].get(one.file_id), source) for one in live]


def _slice(planned: CompactionOperation, file_slice: FileSlice | None, source: str) -> FileSlice:
    stored = {file.name for file in file_slice.files} if file_slice is not None else set()
    missing = sorted({*planned.names} - stored)
    if file_slice is None or missing:
        raise CorruptFile(
            f"{source} names {missing[0] if missing else planned.file_id} in partition {planned.partition!r}, "
            "and readers do not see this file in its slice",
            hint="find out what happened to it: hudi-services validate",
        )
    if file_slice.base_name != planned.base_file:
        raise CorruptFile(
            f"{source} names {planned.base_file or 'no base file'}, and the base file is {file_slice.base_name}"
        )
    return file_slice


@dataclass(frozen=True, slots=True)
class SlicesComplete:
    """Every input is the whole slice that the plan ends; `seen` are the instants completed when it was read."""

    sentence: ClassVar[str] = "no write has changed, or may still change, a file slice that is merged"
    instant: Instant
    slices: Sequence[FileSlice]
    seen: frozenset[str]
    settings: TransactionSettings

    def check(self, current: Snapshot) -> None:
        """Raise ConflictError when a slice has changed or may still change, and the errors of `check_newest`."""
        check_newest(current, [(one.partition, one.file_id) for one in self.slices])
        partitions = {one.partition for one in self.slices}
        found = {partition: current.view.compacted_slices(partition) for partition in partitions}
        for one in self.slices:
            if found[one.partition].get(one.file_id) != one:
                raise ConflictError(
                    f"{current.storage.full_path(one.files[0].path)}: the file slice has changed since it was read",
                    hint=_AGAIN,
                )
        if not current.log_naming.tells_writers:
            self._check_writers(current)

    def _check_writers(self, current: Snapshot) -> None:
        """Version 6: no write may put blocks into these slices any more."""
        begun, plan = current.timeline.begun, self.instant.ts
        for write in pending_writes(current):
            if write.action is not Action.DELTA_COMMIT or begun[write.ts] > begun[plan]:
                continue
            what = f"{current.storage.root}: the deltacommit {write.ts} ({write.file_name})"
            chance = prospect(current, write, self.settings, plan)
            if chance is Prospect.MAY_COMMIT:
                raise ConflictError(
                    f"{what} began before the compaction {plan} was scheduled, and may still write to the old slices",
                    hint="nothing was committed; run compact again when that write has ended",
                )
            if chance is Prospect.ABANDONED:
                raise NeedsRecovery(
                    f"{what} was abandoned, and may have written to these file slices", hint=recover_hint(current)
                )
        names = {log.path for one in self.slices for log in one.log_files}
        ended = [write for write in current.timeline.completed_writes() if write.ts not in self.seen]
        for write, commit in zip(ended, at_once(current.timeline.read_commit, ended), strict=True):
            path = next((s.path for stats in commit.stats.values() for s in stats if s.path in names), "")
            if path:
                raise ConflictError(f"{path} was written by {write.ts} since it was read", hint=_AGAIN)
