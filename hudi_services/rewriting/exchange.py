"""Sorting a group by several tasks: sources send each row to the task of its range of keys, which writes one new file.

A source counts the rows that it reads, as an undivided rewrite does. The hash of a row stays with it until it is sent:
a source adds them up for each file, and all that it has sent must be what it has read. It tells each file what it was
sent, after all rows. The task of the file compares that with the rows which it reads back from storage, and knows how
many sources there are: so nothing is lost, doubled or changed on the way unseen.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from ..base_files.row_selection import gathered
from ..engine import Labelled
from ..errors import REPORT_IT, CheckFailed
from ..model import LogCounts
from ..process import peak_bytes, reset_peak
from ..rows.conservation import Checksum, sum_of
from ..rows.external_sort import ExternalSort, with_own_dictionaries
from ..rows.file_output import CHECK, Stopwatch
from ..rows.key_ranges import KeyRanges
from .counted import HASH
from .data_skipping import column_bounds
from .group import Group
from .key_sample import first_number
from .outputs import Outputs
from .rewrite import RewriteResult
from .task import RewriteTask

_SENT_BYTES = 256 << 20
"""Bytes of rows that a source sorts and sends at once, at most."""


@dataclass(frozen=True, slots=True)
class SortedGroup:
    """A group that is sorted by several tasks: its `sources` become `files`, one for each of the `ranges`.

    Its files have the numbers from `first` on among all files of the exchange; those of `written` are finished already.
    """

    ranges: KeyRanges
    sources: tuple[RewriteTask, ...]
    files: tuple[RewriteTask, ...]
    first: int
    written: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Exchange:
    """All groups of one exchange; the labels of its sources are pairs of the numbers of a group and of a source."""

    groups: tuple[SortedGroup, ...]

    @property
    def labels(self) -> list[tuple[int, int]]:
        return [(at, number) for at, group in enumerate(self.groups) for number in range(len(group.sources))]

    @property
    def files(self) -> int:
        """The number of new files."""
        return sum(len(group.files) for group in self.groups)

    def file(self, number: int) -> tuple[SortedGroup, int]:
        """The group of a file, and the number of the file in it."""
        group = next(one for one in reversed(self.groups) if one.first <= number)
        return group, number - group.first


@dataclass(frozen=True, slots=True)
class Sent:
    """What a source has sent to one file; with the first file it tells what it has done, too. `seconds` by phase."""

    source: int
    checked: Checksum
    seconds: Mapping[str, float]
    logs: LogCounts
    spilled: int
    peak: int


def send_rows(exchange: Exchange, sources: Labelled, token: str) -> Labelled:
    """The rows of sources, which are labels, by the number of their file; at the end a `Sent` for each file.

    Raises CheckFailed when other rows are sent than were read, and the errors of `rewrite_group`.
    """
    for (at, number), _ in sources:
        group = exchange.groups[at]
        yield from _send(group, group.sources[number])


def _send(to: SortedGroup, task: RewriteTask) -> Labelled:
    reset_peak()
    group, sent = Group(task), [Checksum()] * to.ranges.count
    assert task.part is not None, "a source is a part"
    number, first = task.part.number, first_number(task)
    read = (table for table in group.hashed() if table.num_rows)
    for tables in gathered(read, lambda table: table, sys.maxsize, min(task.memory.run, _SENT_BYTES)):
        rows = sum(table.num_rows for table in tables)
        with group.clock.phase("sort"):
            divided = to.ranges.divided(tables, first)
        first += rows
        for at, table in enumerate(divided):
            if not table.num_rows:
                continue
            with group.clock.phase(CHECK):
                sent[at] += sum_of(table.column(HASH).to_numpy())
            if at not in to.written:
                with group.clock.phase("send"):
                    own = with_own_dictionaries(table.drop_columns([HASH]))
                yield (to.first + at, number), own
    before = group.counted()
    if sum(sent, start=Checksum()) != before:
        raise CheckFailed(
            f"{task.storage.full_path(task.partition)}: the rows that were sorted are not those that were read",
            hint=REPORT_IT,
        )
    done = Sent(number, before, group.clock.seconds, group.logs, group.spilled, peak_bytes())
    for at, checked in enumerate(sent):
        told = replace(done, checked=checked) if not at else Sent(number, checked, {}, LogCounts(), 0, 0)
        yield (to.first + at, told), pa.table({})


def write_range(group: SortedGroup, number: int, rows: Labelled, token: str) -> RewriteResult:
    """Write one new file of a group, of rows that sources have sent.

    Raises CheckFailed for other rows than they tell, or another file than was meant, and StorageError.
    """
    reset_peak()
    task, clock, sent = group.files[number], Stopwatch(), list[Sent]()
    part = task.part
    assert part is not None, "a file of an exchange is a part"
    form = task.form(token, part.form)
    outputs = Outputs(form, part.form.columns, task.memory, clock)
    with ExternalSort(group.ranges.sorter, 0, task.memory) as sort:
        for label, table in clock.each("receive", rows):
            if isinstance(label, Sent):
                sent.append(label)
            else:
                with clock.phase("sort"):
                    sort.add(table)
        before = sum((one.checked for one in sent), start=Checksum())
        if sorted(one.source for one in sent) != list(range(len(group.sources))) or sort.rows != before.rows:
            raise CheckFailed(f"{task.storage.full_path(task.partition)}: rows were lost between the tasks of a sort")
        with clock.phase("sort"):
            sort.complete()
        if sort.rows:
            with outputs.rows(task.file_ids[0], sort.rows) as file:
                for table in clock.each("sort", sort.tables()):
                    file.write(table)
        spilled = sort.spilled_bytes
    with clock.phase(CHECK):
        after = sum((outputs.checksum(outputs.read_back(new)) for new in outputs.files), start=Checksum())
    if before != after:
        raise CheckFailed(
            f"{task.storage.full_path(task.partition)}: a new file does not hold the rows that it was to have "
            f"({before} before, {after} after)",
            hint=REPORT_IT,
        )
    for one in sent:
        for phase, seconds in one.seconds.items():
            clock.seconds[phase] = clock.seconds.get(phase, 0.0) + seconds
    return RewriteResult(
        partition=task.partition,
        files=tuple(outputs.files),
        rows_in=before.rows,
        bytes_in=0,
        before=before,
        after=after,
        seconds=clock.seconds,
        decoded=part.decoded,
        logs=sum((one.logs for one in sent), start=LogCounts()),
        spilled=spilled + sum(one.spilled for one in sent),
        peak=max([peak_bytes(), *(one.peak for one in sent)]),
        bounds=column_bounds([column.name for column in task.sort], [], [new.columns for new in outputs.files]),
    )
