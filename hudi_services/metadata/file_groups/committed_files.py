"""The files and bytes that completed writes of the metadata table wrote: a reader must find all of them.

Hudi's readers skip a log block that is not whole, because its writer may have died while writing it, and a file that is
missing. The writer of a completed write did not die: the store has lost data, and a reader that goes on would return an
older state of the table. Files of a partition that Hudi has dropped since are not missed (`earlier_partitions`).
Source: HoodieWriteStat (path, fileSizeInBytes) and HoodieDeltaWriteStat (logOffset) of Apache Hudi.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from ...concurrency import at_once
from ...errors import CorruptFile, Outdated
from ...log_files.log_blocks import LogBlock
from ...model import BaseFile, DataFile, FileSlice, LogFile
from ...own_commands import own_command
from ...table.file_ledger import written_files
from ...table.log_naming import LogNaming
from ...table_config import METADATA_TABLE_FOLDER
from ...timeline.active import Timeline
from ...timeline.instant import Action, Instant
from .earlier_partitions import PresentPartition

REPAIRED_LOGS = "hudi.services.repaired.logs"
"""Key in the commit metadata of a repair: the damaged log files whose losses it repairs, as `<partition>/<name>`,
separated by commas."""
REBUILD_HINT = "let Apache Hudi rebuild it: set hoodie.table.metadata.partitions to nothing and delete .hoodie/metadata"
"""The way out when the metadata table is not whole."""
_WHOLE_GROUP = "is missing, with its whole file group"


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """The part of a file that the completed write `write` wrote: the bytes from `start` to `end`."""

    write: Instant
    file: DataFile
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class DamagedLog:
    """A log file of the metadata partition `partition` that does not hold what the completed `instant` wrote there."""

    partition: str
    name: str
    instant: str
    problem: str


def refuse_damage(root: str, damaged: DamagedLog) -> None:
    """Raise CorruptFile for a damaged log file of the table at `root`, as most readers do."""
    raise CorruptFile(
        f"{root}/{METADATA_TABLE_FOLDER}/{damaged.partition}/{damaged.name} {damaged.problem}, although the "
        f"deltacommit {damaged.instant} that wrote it is completed",
        hint=f"find out what is wrong: {own_command('validate', root)}",
    )


class CommittedFiles:
    """The committed files as of one snapshot of the metadata table's timeline.

    `counts` says whether the log blocks of an instant are read; base files count with their completed compaction.
    """

    def __init__(
        self,
        timeline: Timeline,
        counts: Callable[[str], bool],
        on_damage: Callable[[DamagedLog], None],
        naming: LogNaming,
    ) -> None:
        self._timeline = timeline
        self._on_damage = on_damage
        self._naming = naming
        self._files: dict[str, list[CommittedFile]] = {}
        repaired: set[str] = set()
        writes = [one for one in _needed(timeline, naming) if one.action is Action.COMMIT or counts(one.ts)]
        for write, commit in zip(writes, at_once(timeline.read_commit, writes), strict=True):
            for stat, file in written_files(commit):
                found = CommittedFile(write, file, stat.log_offset, stat.file_size)
                self._files.setdefault(file.partition, []).append(found)
            repaired |= {*filter(None, commit.extra.get(REPAIRED_LOGS, "").split(","))}
        self._repaired = frozenset(repaired)
        self._by_path: dict[str, list[CommittedFile]] = {}
        for one in (one for of_partition in self._files.values() for one in of_partition):
            self._by_path.setdefault(one.file.path, []).append(one)

    def of_logs(self, logs: Iterable[LogFile]) -> "CommittedFiles":
        """The committed files among these log files, to send with a task: `check_blocks` needs no others."""
        found = copy(self)
        found._files, found._by_path = {}, {log.path: self._by_path.get(log.path, []) for log in logs}
        return found

    def check_slices(
        self,
        partition: str,
        slices: Mapping[str, FileSlice],
        instants: Collection[str],
        completion_time: Callable[[str], str | None],
    ) -> None:
        """Check that the newest slices, by file id, have all files that they should have.

        `instants` are those in the names of all committed files of the partition. `completion_time` gives that of a
        committed instant, archived or not.

        Raises CorruptFile for a missing base file, what `on_damage` raises for log files, and Outdated when the
        metadata table has changed since its timeline was read.
        """
        expected = self._files.get(partition, ())
        problems = [(one, problem) for one in expected if (problem := self._problem(one, slices))]
        if not problems:
            return
        written: dict[Instant, set[str]] = {}
        for one in expected:
            written.setdefault(one.write, set()).add(one.file.name)
        present = PresentPartition(self._timeline, self._naming, partition, instants, written, completion_time)
        for one, problem in problems:
            if not present.came_after(one.write):
                self._tell(one, problem)

    def check_blocks(self, blocks_of_logs: Mapping[LogFile, Sequence[LogBlock]], counted: Sequence[LogBlock]) -> None:
        """Check that the blocks of log files hold what was committed; `counted` are the blocks that are read.

        Raises what `on_damage` raises.
        """
        read = {id(block) for block in counted}
        for log, blocks in blocks_of_logs.items():
            for one in self._by_path.get(log.path, ()):
                written = [block for block in blocks if one.start <= block.offset < one.end]
                if not written:
                    self._tell_log(one, "holds no block")
                elif any(id(block) not in read or block.instant != one.write.ts for block in written):
                    self._tell_log(one, "holds a block that is not whole")

    def _problem(self, file: CommittedFile, slices: Mapping[str, FileSlice]) -> str:
        """The problem of a committed file, "" when readers have the file or no longer need it."""
        found = slices.get(file.file.file_id)
        if found is None:
            return _WHOLE_GROUP
        base = found.base_file
        if isinstance(file.file, BaseFile):
            if base is None or base.instant < file.file.instant:
                return "is missing"
            return "is cut off" if base.name == file.file.name and base.size < file.end else ""
        if base is not None and self._naming.is_merged(file.file, file.write, base.instant):
            return ""
        stored = next((log for log in found.log_files if log.name == file.file.name), None)
        if stored is None:
            return "is missing"
        return "is cut off" if stored.size < file.end else ""

    def _tell(self, file: CommittedFile, problem: str) -> None:
        timeline, root = self._timeline, self._timeline.storage.root
        if timeline.storage.head(timeline.path(file.write.file_name)) is None:
            raise Outdated(f"{root}: the metadata table was changed while it was read", hint="run the command again")
        if isinstance(file.file, LogFile) and problem != _WHOLE_GROUP:
            self._tell_log(file, problem)
            return
        raise CorruptFile(
            f"{root}/{METADATA_TABLE_FOLDER}/{file.file.path} {problem}, although the {file.write.action.value} "
            f"{file.write.ts} that wrote it is completed",
            hint=REBUILD_HINT,
        )

    def _tell_log(self, file: CommittedFile, problem: str) -> None:
        if file.file.path not in self._repaired:
            self._on_damage(DamagedLog(file.file.partition, file.file.name, file.write.ts, problem))


def _needed(timeline: Timeline, naming: LogNaming) -> Iterable[Instant]:
    """The completed writes whose files the newest slices may have: all but delta commits that were compacted."""
    last = max((one.ts for one in timeline.completed({Action.COMMIT})), default="")
    for one in timeline.completed_writes():
        if one.action is Action.COMMIT or naming.is_build(one.ts) or naming.order(one) >= last:
            yield one
