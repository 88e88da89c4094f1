"""The names of log files, and what follows from them: every difference between table version 6 and versions 8 and 9.

    BySlice     version 6: named after the base instant of the slice; a file may hold blocks of several delta commits
    ByDelta     versions 8 and 9: named after the delta commit; a file holds blocks of this delta commit only

The metadata table uses the log naming of its table. No other module asks the version about log files.
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
"""The prefix of the instants at which partitions of the metadata table were built."""
INSTANT_DIGITS = 17
"""Digits of an instant of the table; on version 6, instants of the metadata table alone have more."""
_ASYNC_SUFFIX = "004"
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
    """The log naming of a table version, and the rules that follow from it."""

    tells_writers: bool
    """Whether the name of a log file has the instant that wrote it; otherwise only its blocks have it."""

    marker_kind: str
    """The kind of the marker of a new log file."""

    def writer(self, log: LogFile) -> str | None:
        """The instant that wrote the log file; None where only its blocks have it."""
        return log.instant if self.tells_writers else None

    @abstractmethod
    def slice_of(self, log: LogFile, slices: Sequence[str], completion_time: Callable[[str], str | None]) -> str:
        """The base instant of the slice that the log file belongs to; `slices` are the ascending base instants."""

    @abstractmethod
    def instant_for(self, slice_instant: Callable[[], str], delta: str) -> str:
        """The time in the name of a new log file of a slice that the instant `delta` writes."""

    @abstractmethod
    def appended_to(self, group: FileSlice) -> tuple[str, tuple[str, ...]]:
        """Names of the base file and log files that the write stat of a new log file lists before its own; "", ()."""

    @abstractmethod
    def order(self, write: Write) -> str:
        """The time of a write that is compared with the instants of base files: a later base file holds the write."""

    @abstractmethod
    def order_of(self, ts: str, completion_time: Callable[[str], str | None]) -> str:
        """The `order` of the write of `ts`, which may be archived, or a time before it when it is unknown."""

    @abstractmethod
    def is_merged(self, log: LogFile, write: Write, base_instant: str) -> bool:
        """Whether a log file of `write` belongs to a slice older than the slice of the base file."""

    @abstractmethod
    def taken_out(self, cancel: Callable[[], T], delete: Callable[[], T]) -> T:
        """The result of `cancel` or `delete`: a rollback cancels the blocks of its target, or deletes its log files."""

    # ---- instants of the metadata table alone

    @abstractmethod
    def derived(self, ts: str, suffix: str, otherwise: Callable[[], str]) -> str:
        """The instant of an action of the metadata table alone: `ts` with a suffix, or the result of `otherwise`."""

    @abstractmethod
    def is_own(self, ts: str, pending: Collection[str]) -> bool:
        """Whether a completed delta commit is the metadata table's alone; `pending`: the table's pending instants."""

    @abstractmethod
    def is_held(self, ts: str, timeline_has: Callable[[str], bool]) -> bool:
        """Whether the timeline of the metadata table allows blocks of an instant to count."""

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
        """The instants, of those of a partition, that do not show when it was built."""

    @staticmethod
    def is_build(ts: str) -> bool:
        """Whether the delta commit of `ts` built a partition of the metadata table, as far as its digits tell."""
        suffix = ts[INSTANT_DIGITS:]
        return ts.startswith(INITIALISATION) or suffix == _ASYNC_SUFFIX or suffix >= f"{_FIRST_SUFFIX:03d}"

    def counts(self, log: LogFile, is_committed: Callable[[str], bool]) -> bool:
        """Whether the log file is part of its slice: unless its name has a writer that is not committed."""
        writer = self.writer(log)
        return writer is None or is_committed(writer)


class BySlice(LogNaming):
    """Table version 6."""

    tells_writers = False
    marker_kind = "APPEND"

    def slice_of(self, log: LogFile, slices: Sequence[str], completion_time: Callable[[str], str | None]) -> str:
        if log.instant in slices or completion_time(log.instant) is None:
            return log.instant
        # A downgrade leaves log files that are named after their delta commits. Hudi 1.x reads them so, 0.15 without
        # the base file. By the time of the request: layout 1 has no other, but the times of files, which a copy loses.
        older = bisect_right(slices, log.instant)
        return slices[older - 1] if older else log.instant

    def instant_for(self, slice_instant: Callable[[], str], delta: str) -> str:
        return slice_instant()

    def appended_to(self, group: FileSlice) -> tuple[str, tuple[str, ...]]:
        return group.base_name, tuple(log.name for log in group.log_files)

    def order(self, write: Write) -> str:
        return write.ts

    def order_of(self, ts: str, completion_time: Callable[[str], str | None]) -> str:
        return ts

    def is_merged(self, log: LogFile, write: Write, base_instant: str) -> bool:
        return log.instant < base_instant

    def taken_out(self, cancel: Callable[[], T], delete: Callable[[], T]) -> T:
        return cancel()

    def derived(self, ts: str, suffix: str, otherwise: Callable[[], str]) -> str:
        return ts + suffix

    def is_own(self, ts: str, pending: Collection[str]) -> bool:
        # Hudi 0.15 recognises its own delta commits by their suffix; later releases find no such instant in the table.
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
    marker_kind = "CREATE"

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

    def order_of(self, ts: str, completion_time: Callable[[str], str | None]) -> str:
        return completion_time(ts) or ts

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
    """The log naming of a table version."""
    return _BY_DELTA if version.log_files_carry_delta_instant else _BY_SLICE
