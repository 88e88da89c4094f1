"""What a write of rows expects of the file groups that it writes the next slices of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ConflictError
from ..file_names import bucket_digits
from ..model import FileSlice
from ..own_commands import own_command
from ..schema.table_schema import TableSchema
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from .conflicts import StaleInput, ended_updates, input_changes, pending_rollbacks, raise_first
from .settings import TransactionSettings


@dataclass(frozen=True, slots=True)
class SchemaUnchanged:
    """The table had the schema `known`, None for none, when that of the write was made."""

    sentence: ClassVar[str] = "no other writer has changed the schema of the table"
    known: TableSchema | None

    def check(self, current: Snapshot) -> None:
        """Raise ConflictError when the table has another schema, which the commit would take back."""
        if current.schema != self.known:
            raise ConflictError(
                f"another writer has changed the schema of {current.storage.root} since the rows were read",
                hint="nothing was committed; run again",
            )


def refuse_planned(table: Snapshot, slices: Sequence[FileSlice], change: str, *, compactions: bool = True) -> None:
    """Raise ConflictError when a pending plan is to rewrite one of the slices, whose commit would undo the write.

    `change` says what is to happen to them; `compactions`: whether pending compactions count, beside which log files
    may be written.
    """
    for one, instant, command in _planned(table, slices, compactions=compactions):
        raise ConflictError(
            f"{table.storage.full_path(one.files[0].path)} {change}, and the pending plan {instant} is to rewrite it",
            hint=f"run: {own_command(command, table.storage.root)}, or roll the plan back: "
            f"{own_command('rollback', table.storage.root, f'--instant {instant}')}; then write again",
        )


def _planned(
    table: Snapshot, slices: Sequence[FileSlice], *, compactions: bool = True
) -> Iterator[tuple[FileSlice, str, str]]:
    """The slices in pending plans, each with the plan's instant and the command that executes it."""
    compacted = table.ledger.groups_in_compactions if compactions else {}
    for command, plans in (("execute", table.ledger.groups_in_clusterings()), ("compact", compacted)):
        for one in slices:
            if (one.partition, one.file_id) in plans:
                yield one, plans[one.partition, one.file_id], command


@dataclass(frozen=True, slots=True)
class AppendedGroups:
    """Log files may be written to `slices`, which were the newest of their file groups as `GroupsUnchanged` says.

    `compacting` are the file groups that a pending compaction had then, with its instant. Elsewhere than in table
    version 6, where log files are named after slices, a compaction that began or ended since leaves the new log files
    in the newest slice. There they are in the slice that the compaction known by then has begun, and no other one may
    have begun a slice.
    """

    sentence: ClassVar[str] = "no other writer has written to, or replaced, a file group with new log files"
    slices: Sequence[FileSlice]
    seen: frozenset[str]
    compacting: Mapping[FileGroupId, str]
    settings: TransactionSettings

    def check(self, current: Snapshot) -> None:
        """Raise StaleInput, or the errors of pending rollbacks, for the first file group of which this is not true."""
        if not self.slices:
            return
        for one, instant, _ in _planned(current, self.slices, compactions=False):
            raise _planned_meanwhile(current, one, instant)
        raise_first(pending_rollbacks(current, self.slices, self.settings))
        raise_first(ended_updates(current, self.slices, self.seen, compactions=False))
        latest = current.view.latest_slices_of(sorted({one.partition for one in self.slices}))
        live = {(one.partition, one.file_id): one for one in latest}
        planned = current.ledger.groups_in_compactions
        for one in self.slices:
            group = one.partition, one.file_id
            now = live.get(group)
            if now is None:
                raise StaleInput(
                    f"{current.storage.full_path(one.files[0].path)} was replaced or removed since it was read",
                    hint="nothing was committed; run again",
                )
            known = self.compacting.get(group, "")
            # The slice that log files are written to now, where they are named after slices.
            slice_now = planned.get(group, now.base_instant)
            if not current.log_naming.tells_writers and slice_now != (known or one.base_instant):
                raise _planned_meanwhile(current, one, slice_now)


def _planned_meanwhile(current: Snapshot, file_slice: FileSlice, instant: str) -> StaleInput:
    return StaleInput(
        f"{current.storage.full_path(file_slice.files[0].path)} is in the plan {instant}, which was made while "
        "it was written to",
        hint="nothing was committed; run again",
    )


@dataclass(frozen=True, slots=True)
class GroupsUnchanged:
    """`slices` were the newest of their file groups when the instants `seen` were completed."""

    sentence: ClassVar[str] = "no other writer has changed, or plans to replace, a file group of the write"
    slices: Sequence[FileSlice]
    seen: frozenset[str]
    settings: TransactionSettings

    def check(self, current: Snapshot) -> None:
        """Raise StaleInput, or the errors of pending rollbacks, for the first file group of which this is not true."""
        for one, instant, _ in _planned(current, self.slices):
            raise _planned_meanwhile(current, one, instant)
        raise_first(pending_rollbacks(current, self.slices, self.settings))
        raise_first(ended_updates(current, self.slices, self.seen))
        raise_first(input_changes(current, self.slices))


@dataclass(frozen=True, slots=True)
class GroupsNotBegun:
    """The file groups `begun` are new."""

    sentence: ClassVar[str] = "no other writer has begun a file group that the write begins"
    begun: Sequence[FileGroupId]

    def check(self, current: Snapshot) -> None:
        """Raise StaleInput for a file group that is there: its first rows would be merged in another order."""
        there = {
            (one.partition, one.file_id)
            for one in current.view.latest_slices_of(sorted({partition for partition, _ in self.begun}))
        }
        for partition, file_id in self.begun:
            if (partition, file_id) in there:
                raise StaleInput(
                    f"{current.storage.root}: another writer has begun the file group {file_id} of the partition "
                    f"{partition!r} meanwhile",
                    hint="nothing was committed; run again",
                )


@dataclass(frozen=True, slots=True)
class BucketsFree:
    """The new file groups `begun` are the only ones of their buckets, but for those that are `replaced`."""

    sentence: ClassVar[str] = "no other writer has begun a file group of the same bucket"
    begun: Sequence[FileGroupId]
    replaced: frozenset[FileGroupId]

    def check(self, current: Snapshot) -> None:
        """Raise StaleInput for a bucket with another file group: writers of Hudi fail when they find two."""
        new = {(partition, bucket_digits(file_id)): file_id for partition, file_id in self.begun}
        for one in current.view.latest_slices_of(sorted({partition for partition, _ in self.begun})):
            mine = new.get((one.partition, bucket_digits(one.file_id)))
            if mine is not None and (one.partition, one.file_id) not in self.replaced:
                raise StaleInput(
                    f"another writer has begun the file group {one.file_id} of the partition {one.partition!r} of "
                    f"{current.storage.root}, and the write the file group {mine} of the same bucket",
                    hint="nothing was committed; run again",
                )
