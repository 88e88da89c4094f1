"""The choice of the files of one partition that a clean deletes, and the reason why each other file stays.

A pure function of slices. Slices are deleted whole, base file and log files together.
Source: CleanPlanner.getFilesToCleanKeepingLatestCommits and …KeepingLatestVersions of Apache Hudi.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ..model import FileSlice
from ..table.view import FileGroupId
from .retention import Policy


class Gone(Enum):
    """Why a slice is deleted."""

    SUPERSEDED = "superseded before the retained commits"
    SURPLUS = "more versions than are retained"
    REPLACED = "its file group was replaced"


class ReasonToKeep(Enum):
    """Why a slice stays: the first of the reasons that applies."""

    SAVEPOINT = "held by a savepoint"
    NEWEST = "the newest slice"
    LAST_BEFORE = "the last one before the retained commits"
    COMPACTION = "held by a pending compaction"
    PLANNED = "named by a pending plan"
    RETAINED = "written by a retained commit"
    REPLACED_SINCE = "replaced by a retained commit"
    VERSION = "one of the retained versions"


@dataclass(slots=True)
class Tally:
    """The number of files and their bytes."""

    files: int = 0
    bytes: int = 0

    def add(self, files: int, size: int) -> None:
        self.files += files
        self.bytes += size


@dataclass(slots=True)
class PartitionDecision:
    """The decision about the files of one partition."""

    partition: str
    names: list[str] = field(default_factory=list)
    """Names of the files to delete."""
    gone: dict[Gone, Tally] = field(default_factory=dict)
    kept: dict[ReasonToKeep, Tally] = field(default_factory=dict)

    def drop(self, slice_: FileSlice, why: Gone) -> None:
        self.names += [file.name for file in slice_.files]
        self.gone.setdefault(why, Tally()).add(len(slice_.files), slice_.size)

    def keep(self, slice_: FileSlice, why: ReasonToKeep) -> None:
        self.kept.setdefault(why, Tally()).add(len(slice_.files), slice_.size)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a choice: the policy, its horizon ("" for none) or number of versions, and files that must stay."""

    policy: Policy
    earliest: str
    versions: int
    savepointed: Collection[str] = frozenset()
    """Names of the files that savepoints hold."""
    compacting: Mapping[FileGroupId, str] = field(default_factory=dict)
    """Base instants of the slices that pending compactions and log compactions merge."""
    planned: Collection[tuple[str, str]] = frozenset()
    """Partition and name of the files that pending compactions, log compactions and clusterings read."""


def choose(
    partition: str, groups: Mapping[str, Sequence[FileSlice]], replaced: Mapping[str, str], rules: Rules
) -> PartitionDecision:
    """Choose the files to delete in one partition.

    `groups` are all committed slices by file id, oldest first; `replaced` has the instants that replaced file groups.
    """
    choice = PartitionDecision(partition)
    for file_id, slices in groups.items():
        newest_first = list(reversed(slices))
        if file_id in replaced:
            _choose_replaced(choice, newest_first, replaced[file_id], rules)
        elif rules.policy is Policy.FILE_VERSIONS:
            _choose_by_versions(choice, newest_first, rules)
        else:
            _choose_by_commits(choice, newest_first, rules)
    return choice


def _choose_replaced(choice: PartitionDecision, slices: Iterable[FileSlice], at: str, rules: Rules) -> None:
    for one in slices:
        if rules.policy is not Policy.FILE_VERSIONS and at >= rules.earliest:
            choice.keep(one, ReasonToKeep.REPLACED_SINCE)
        elif _is_savepointed(one, rules):
            choice.keep(one, ReasonToKeep.SAVEPOINT)
        elif _is_planned(one, rules):
            choice.keep(one, ReasonToKeep.PLANNED)
        else:
            choice.drop(one, Gone.REPLACED)


def _choose_by_commits(choice: PartitionDecision, slices: Sequence[FileSlice], rules: Rules) -> None:
    newest = slices[0].base_instant
    last_before = next((one.base_instant for one in slices if one.base_instant < rules.earliest), None)
    for one in slices:
        if _is_savepointed(one, rules):
            choice.keep(one, ReasonToKeep.SAVEPOINT)
        elif one.base_instant == newest:
            choice.keep(one, ReasonToKeep.NEWEST)
        elif one.base_instant == last_before:
            choice.keep(one, ReasonToKeep.LAST_BEFORE)
        elif _is_compacting(one, rules):
            choice.keep(one, ReasonToKeep.COMPACTION)
        elif _is_planned(one, rules):
            choice.keep(one, ReasonToKeep.PLANNED)
        elif one.base_instant < rules.earliest:
            choice.drop(one, Gone.SUPERSEDED)
        else:
            choice.keep(one, ReasonToKeep.RETAINED)


def _choose_by_versions(choice: PartitionDecision, slices: Sequence[FileSlice], rules: Rules) -> None:
    group = (slices[0].partition, slices[0].file_id)
    # The slice of the pending compaction counts as one version, whether the compaction completes or not.
    left = rules.versions - (group in rules.compacting)
    for one in slices:
        if _is_compacting(one, rules):
            choice.keep(one, ReasonToKeep.COMPACTION)
        elif left > 0:
            left -= 1
            choice.keep(one, ReasonToKeep.VERSION)
        elif _is_savepointed(one, rules):
            choice.keep(one, ReasonToKeep.SAVEPOINT)
        elif _is_planned(one, rules):
            choice.keep(one, ReasonToKeep.PLANNED)
        else:
            choice.drop(one, Gone.SURPLUS)


def _is_savepointed(file_slice: FileSlice, rules: Rules) -> bool:
    return bool(rules.savepointed) and any(file.name in rules.savepointed for file in file_slice.files)


def _is_planned(file_slice: FileSlice, rules: Rules) -> bool:
    """Whether a pending plan names a file of the slice. A plan may see a log file in another slice than a clean."""
    return bool(rules.planned) and any((file_slice.partition, file.name) in rules.planned for file in file_slice.files)


def _is_compacting(file_slice: FileSlice, rules: Rules) -> bool:
    base = rules.compacting.get((file_slice.partition, file_slice.file_id))
    return base is not None and file_slice.base_instant >= base
