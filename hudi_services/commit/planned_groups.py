"""The groups of a plan: writers may change some of them while the plan is executed, and the others are still committed.

A completed replacecommit may cover fewer groups than its plan: readers, writers, cleans and archives look at the
completed file alone. A group is dropped when its inputs are no longer the newest slices, when a write has ended that
changed them, when a write in progress updates them, or when a commit that wrote them is being rolled back.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from ..errors import ConflictError, HudiServicesError
from ..model import FileSlice
from ..snapshot import Snapshot
from .conflicts import Problems, StaleInput, ended_updates, input_changes, pending_rollbacks, pending_updates
from .settings import TransactionSettings


class GroupsDropped(ConflictError):
    """Groups were dropped, and others are left: what was computed for all of them must be computed for these."""


class PlannedGroups:
    """The groups of the plan of `instant` that have slices, by number, and why some of them were dropped.

    `plan` is the instant as far as writers know of the plan: that of the plan, or NEW_PLAN.

    `seen` are the instants that were completed when the inputs were read: on version 6 a plan may name the log file of
    a write in progress, whose name is the same when the write has ended. `all_or_nothing`: no group is dropped.
    """

    sentence: ClassVar[str] = "no other writer has changed, or changes, the file groups of the plan"

    def __init__(
        self,
        groups: Sequence[Sequence[FileSlice]],
        seen: frozenset[str],
        settings: TransactionSettings,
        *,
        instant: str,
        plan: str,
        all_or_nothing: bool,
    ) -> None:
        # A writer of Hudi may make groups without slices.
        self._groups = [group for group in groups if group]
        self._seen = seen
        self._settings = settings
        self.instant = instant
        self._plan = plan
        self._all_or_nothing = all_or_nothing
        self.dropped: dict[int, HudiServicesError] = {}

    @property
    def kept(self) -> list[int]:
        """The numbers of the groups that are left."""
        return [number for number in range(len(self._groups)) if number not in self.dropped]

    def inputs(self, numbers: Iterable[int]) -> list[FileSlice]:
        """The file slices of some groups."""
        return [one for number in numbers for one in self._groups[number]]

    def check(self, current: Snapshot) -> None:
        """Drop groups that writers have changed, or change; raises GroupsDropped when it dropped one.

        Raises ConflictError, StaleInput or NeedsRecovery when no group is left.
        """
        inputs = self.inputs(self.kept)
        problems = pending_updates(current, inputs, self._settings, self._plan)
        problems |= self._other_plans(current, inputs)
        problems |= pending_rollbacks(current, inputs, self._settings)
        problems |= ended_updates(current, inputs, self._seen)
        problems |= input_changes(current, inputs)
        if self.drop(problems):
            raise GroupsDropped(f"{len(self.dropped)} groups of the plan were changed by other writers")

    def _other_plans(self, current: Snapshot, inputs: Sequence[FileSlice]) -> Problems:
        """Inputs that another pending plan names, too: whoever executes it would bring their rows back."""
        named = [current.ledger.groups_in_clusterings(but=self.instant), current.ledger.groups_in_compactions]
        return {
            (one.partition, one.file_id): ConflictError(
                f"{current.storage.full_path(one.files[0].path)} is in the pending plan {ts}, too",
                hint="nothing was committed; run again when that plan has been executed",
            )
            for one in inputs
            for plans in named
            if (ts := plans.get((one.partition, one.file_id))) is not None
        }

    def drop(self, problems: Problems) -> bool:
        """Whether a group is dropped; raises its problem when it must not be, or when none is left."""
        found: dict[int, HudiServicesError] = {}
        for number in self.kept:
            for one in self._groups[number]:
                if (one.partition, one.file_id) in problems:
                    found[number] = problems[one.partition, one.file_id]
        if found and (self._all_or_nothing or len(found) == len(self.kept)):
            # StaleInput drops the plan: it can never be executed, whole or in part. Otherwise another attempt may.
            all_found = [*found.values(), *self.dropped.values()]
            raise min(all_found, key=lambda error: isinstance(error, StaleInput) is not self._all_or_nothing)
        self.dropped |= found
        return bool(found)

    def leave_out(self, why: Mapping[int, HudiServicesError]) -> None:
        """Drop groups that are not rewritten; raises one of the errors when none must be, or none is left."""
        if self._all_or_nothing or not set(self.kept) - set(why):
            raise next(iter(why.values()))
        self.dropped |= why


class InputsOfGroups:
    """The expectation with which an attempt at a plan begins: groups whose inputs were changed are dropped."""

    sentence: ClassVar[str] = "every input of some group is still the whole newest slice of a live file group"

    def __init__(self, groups: PlannedGroups) -> None:
        self._groups = groups

    def check(self, current: Snapshot) -> None:
        """Raise StaleInput when no group is left, because the plan can never be executed."""
        self._groups.drop(input_changes(current, self._groups.inputs(self._groups.kept)))
