"""Which file groups a compaction merges: the strategies of Apache Hudi, as functions of the eligible file slices.

    log_file_size    the slices with the most bytes of log files first, up to the megabytes of one plan
    log_file_number  the slices with the most log files first, up to the megabytes of one plan
    bounded_io       the slices in the order of their partitions, up to the megabytes of one plan
    unbounded        all slices
    day_based        the slices of the newest partitions
Sources: LogFileSizeBasedCompactionStrategy, LogFileNumBasedCompactionStrategy, BoundedIOCompactionStrategy,
UnBoundedCompactionStrategy, DayBasedCompactionStrategy of Apache Hudi.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from ..codecs.compaction_plan import planned_io
from ..errors import ConfigError
from ..model import FileSlice
from ..options import compaction_keys, value_of

_KEYS = re.compile(r"(^|/)[^/=]*=")
_DAY = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a plan: megabytes read and written, bytes of input (None for any number), least bytes and number of
    log files, newest partitions."""

    io_megabytes: int = value_of(compaction_keys.COMPACTION_IO)
    budget: int | None = value_of(compaction_keys.COMPACTION_BUDGET)
    log_bytes: int = value_of(compaction_keys.COMPACTION_LOG_BYTES)
    log_files: int = value_of(compaction_keys.COMPACTION_LOG_FILES)
    days: int = value_of(compaction_keys.COMPACTION_DAYS)


@dataclass(frozen=True, slots=True)
class CompactionChoice:
    """The slices of a plan in order, and the other slices by the reason why the plan does not have them."""

    taken: Sequence[FileSlice]
    left: Mapping[str, Sequence[FileSlice]]


BEYOND_IO = "beyond the megabytes of one plan"
BEYOND_BUDGET = "beyond the bytes of one plan"
FEW_BYTES = "below the least bytes of log files"
FEW_FILES = "below the least number of log files"
OLDER_DAY = "not in the newest partitions"


def choose(strategy: str, slices: Sequence[FileSlice], limits: Limits) -> CompactionChoice:
    """Choose from the eligible `slices`, which are in the order of their partitions.

    Raises ConfigError for `day_based` when a partition is not a day.
    """
    choice = _STRATEGIES[strategy](slices, limits)
    return choice if limits.budget is None else _within(choice, limits.budget)


def _within(choice: CompactionChoice, budget: int) -> CompactionChoice:
    """The slices of the choice that fit into the budget, one after the other."""
    taken, beyond = list[FileSlice](), list[FileSlice]()
    for one in choice.taken:
        fits = one.size <= budget
        (taken if fits else beyond).append(one)
        budget -= one.size if fits else 0
    return CompactionChoice(taken, {**choice.left, BEYOND_BUDGET: beyond} if beyond else choice.left)


def _by_log_bytes(slices: Sequence[FileSlice], limits: Limits) -> CompactionChoice:
    enough = [one for one in slices if one.log_bytes >= limits.log_bytes]
    found = _bounded(sorted(enough, key=lambda one: one.log_bytes, reverse=True), limits)
    return CompactionChoice(
        found.taken, {**found.left, FEW_BYTES: [one for one in slices if one.log_bytes < limits.log_bytes]}
    )


def _by_log_files(slices: Sequence[FileSlice], limits: Limits) -> CompactionChoice:
    enough = [one for one in slices if len(one.log_files) >= limits.log_files]
    found = _bounded(sorted(enough, key=lambda one: len(one.log_files), reverse=True), limits)
    few = [one for one in slices if len(one.log_files) < limits.log_files]
    return CompactionChoice(found.taken, {**found.left, FEW_FILES: few})


def _bounded(slices: Sequence[FileSlice], limits: Limits) -> CompactionChoice:
    left = limits.io_megabytes
    for number, one in enumerate(slices):
        # As in Hudi: the slice that reaches the limit is the last one.
        left -= planned_io(one.base_bytes, one.log_bytes)
        if left <= 0:
            return CompactionChoice(slices[: number + 1], {BEYOND_IO: slices[number + 1 :]})
    return CompactionChoice(slices, {})


def _all(slices: Sequence[FileSlice], limits: Limits) -> CompactionChoice:
    return CompactionChoice(slices, {})


def _by_day(slices: Sequence[FileSlice], limits: Limits) -> CompactionChoice:
    newest = sorted({one.partition for one in slices}, key=_day, reverse=True)[: limits.days]
    taken = [one for partition in newest for one in slices if one.partition == partition]
    return CompactionChoice(taken, {OLDER_DAY: [one for one in slices if one.partition not in newest]})


def _day(partition: str) -> date:
    """The day of a partition `2026/01/31` or `year=2026/month=01/day=31`."""
    found = _DAY.match(_KEYS.sub(r"\1", partition))
    try:
        if found is not None:
            return date(*map(int, found.groups()))
    except ValueError:
        pass
    raise ConfigError(
        f"hoodie.compaction.strategy=day_based needs partitions of the form yyyy/MM/dd, and there is {partition!r}",
        hint="choose another strategy",
    )


_STRATEGIES: Mapping[str, Callable[[Sequence[FileSlice], Limits], CompactionChoice]] = {
    "log_file_size": _by_log_bytes,
    "log_file_number": _by_log_files,
    "bounded_io": _bounded,
    "unbounded": _all,
    "day_based": _by_day,
}
