"""How log files are named, and what follows from it: all that tells those of table version 6 from those of 8 and 9.

    BySlice     version 6: named after the base instant of their slice; one may hold blocks of several delta commits
    ByDelta     versions 8 and 9: named after their delta commit; it writes each of its log files alone

The metadata table is named as its table is. Nobody else asks the version about log files.
Sources: HoodieLogFile, HoodieFileGroup, HoodieTableMetadataUtil of Apache Hudi 0.15.0 and 1.2.0.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import Protocol, TypeVar

from ..model import FileSlice, LogFile
from ..versions import TableVersion

INITIALISATION = "00000000000000"
"""What the instants begin with under which the metadata table's partitions were built."""
INSTANT_DIGITS = 17
"""Of an instant that the table has, too; on version 6, what belongs to the metadata table alone has more."""
_FIRST_SUFFIX = 10
_MOST_SUFFIX = 1000

T = TypeVar("T")


class Write(Protocol):
    """An instant."""

    @property
    def ts(self) -> str: ...

    @property
    def completion_time(self) -> str | None: ...


class LogNaming(ABC):
    """What a table version makes of the names of log files."""

    tells_writers: bool
    """Whether the name of a log file tells the instant that wrote it; else only its blocks do."""

    def writer(self, log: LogFile) -> str | None:
        """The instant that wrote the log file; None where only its blocks tell."""
        return log.instant if self.tells_writers else None

    @abstractmethod
    def slice_of(self, log: LogFile, slices: Sequence[str], completion_time: Callable[[str], str | None]) -> str:
        """The base instant of the slice that the log file belongs to, of the ascending base instants `slices`."""

    @abstractmethod
    def instant_for(self, slice_instant: Callable[[], str], delta: str) -> str:
        """The time in the name of a new log file of a slice that the instant `delta` writes."""

    @abstractmethod
    def appended_to(self, group: FileSlice) -> tuple[str, tuple[str, ...]]:
        """Names of the base file and log files that the write stat of a new log file lists before its own; "", ()."""

    @abstractmethod
    def order(self, write: Write) -> str:
        """What is compared with the instants of base files, to know whether they hold what the write did."""

    @abstractmethod
    def is_merged(self, log: LogFile, write: Write, base_instant: str) -> bool:
        """Whether a log file that `write` wrote belongs to a slice before that of the base file."""

    @abstractmethod
    def taken_out(self, cancel: Callable[[], T], delete: Callable[[], T]) -> T:
        """What a rollback does to blocks of its target: `cancel` them by a command block, or `delete` the log files."""

    # ---- instants of the metadata table's own

    @abstractmethod
    def derived(self, ts: str, suffix: str, otherwise: Callable[[], str]) -> str:
        """The instant of an action that the metadata table alone has: `ts` with a suffix, or one of `otherwise`."""

    @abstractmethod
    def is_own(self, ts: str, pending: Collection[str]) -> bool:
        """Whether a completed delta commit belongs to the metadata table alone; `pending` are instants of the table."""

    @abstractmethod
    def is_held(self, ts: str, timeline_has: Callable[[str], bool]) -> bool:
        """Whether blocks of an instant count for the timeline of the metadata table."""

    @abstractmethod
    def halts_readers(self, ts: str) -> bool:
        """Whether readers stop at the blocks of the incomplete delta commit `ts`, whatever follows it."""

    @abstractmethod
    def may_begin_anew(self, first: str | None) -> bool:
        """Whether a new partition may have one of `initial_instants`, on a timeline that begins with `first`."""

    @abstractmethod
    def initial_instants(self, latest: str) -> Iterable[str]:
        """Instants for the delta commit that builds a partition; `latest` is the table's latest completed one."""

    @abstractmethod
    def undated(self, instants: Iterable[str]) -> list[str]:
        """Those of a partition's instants that do not tell when it was built."""

    def counts(self, log: LogFile, is_committed: Callable[[str], bool]) -> bool:
        """Whether the log file belongs to its slice; whether its blocks are committed, only their headers may tell."""
        writer = self.writer(log)
        return writer is None or is_committed(writer)


class BySlice(LogNaming):
    """Table version 6."""

    tells_writers = False

    def slice_of(self, log: LogFile, slices: Sequence[str], completion_time: Callable[[str], str | None]) -> str:
        return log.instant

    def instant_for(self, slice_instant: Callable[[], str], delta: str) -> str:
        return slice_instant()

    def appended_to(self, group: FileSlice) -> tuple[str, tuple[str, ...]]:
        return (group.base_file.name if group.base_file else ""), tuple(log.name for log in group.log_files)

    def order(self, write: Write) -> str:
        return write.ts

    def is_merged(self, log: LogFile, write: Write, base_instant: str) -> bool:
        return log.instant < base_instant

    def taken_out(self, cancel: Callable[[], T], delete: Callable[[], T]) -> T:
        return cancel()

    def derived(self, ts: str, suffix: str, otherwise: Callable[[], str]) -> str:
        return ts + suffix

    def is_own(self, ts: str, pending: Collection[str]) -> bool:
        # Hudi 0.15 knows its own delta commits by their suffix; later releases by the table not knowing them.
        return len(ts) > INSTANT_DIGITS

    def is_held(self, ts: str, timeline_has: Callable[[str], bool]) -> bool:
        return timeline_has(ts)

    def halts_readers(self, ts: str) -> bool:
        # Delta commits that build a partition (their instants have more digits) are left to Hudi.
        return len(ts) == INSTANT_DIGITS

    def may_begin_anew(self, first: str | None) -> bool:
        return True

    def initial_instants(self, latest: str) -> Iterable[str]:
        return (f"{latest}{number:03d}" for number in range(_FIRST_SUFFIX, _MOST_SUFFIX))

    def undated(self, instants: Iterable[str]) -> list[str]:
        return []


class ByDelta(LogNaming):
    """Table versions 8 and 9."""

    tells_writers = True

    def slice_of(self, log: LogFile, slices: Sequence[str], completion_time: Callable[[str], str | None]) -> str:
        completed = completion_time(log.instant)
        if completed is None:
            return slices[-1] if slices else log.instant
        older = bisect_right(slices, completed)
        # No base at or before it: the log file's own time names the slice (HoodieFileGroup.getBaseInstantTime).
        return slices[older - 1] if older else log.instant

    def instant_for(self, slice_instant: Callable[[], str], delta: str) -> str:
        return delta

    def appended_to(self, group: FileSlice) -> tuple[str, tuple[str, ...]]:
        return "", ()

    def order(self, write: Write) -> str:
        return write.completion_time or ""

    def is_merged(self, log: LogFile, write: Write, base_instant: str) -> bool:
        return self.order(write) < base_instant

    def taken_out(self, cancel: Callable[[], T], delete: Callable[[], T]) -> T:
        return delete()

    def derived(self, ts: str, suffix: str, otherwise: Callable[[], str]) -> str:
        return otherwise()

    def is_own(self, ts: str, pending: Collection[str]) -> bool:
        return ts not in pending

    def is_held(self, ts: str, timeline_has: Callable[[str], bool]) -> bool:
        return True

    def halts_readers(self, ts: str) -> bool:
        return False

    def may_begin_anew(self, first: str | None) -> bool:
        return first is None or first.startswith(INITIALISATION)

    def initial_instants(self, latest: str) -> Iterable[str]:
        return (f"{number:017d}" for number in count())

    def undated(self, instants: Iterable[str]) -> list[str]:
        return [ts for ts in instants if ts.startswith(INITIALISATION)]


_BY_SLICE, _BY_DELTA = BySlice(), ByDelta()


def log_naming(version: TableVersion) -> LogNaming:
    """That of a table version."""
    return _BY_DELTA if version.log_files_carry_delta_instant else _BY_SLICE
