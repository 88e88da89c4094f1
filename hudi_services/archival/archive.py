"""Moves instants from the active timeline to the archive, in rounds, each in a critical section of its own.

    select     under the lock, the instants that go; a round takes the first of them
    add        to the archive (`timeline.archive_writer`): the step from which on the archive has them
    delete     leftover markers, then requested and inflight files, then the completed files, oldest first, as Hudi
    compact    the archive, in the last round

A kill after the second step leaves instants that are in both places; the next archival only deletes them. The completed
file goes last, because an instant without it would look pending. The metadata table's timeline follows in the same way.
Source: TimelineArchiverV1, TimelineArchiverV2 of Apache Hudi.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from ..cleaning.metadata_table import metadata_retention
from ..commit.critical_section import critical_section
from ..commit.settings import TransactionSettings
from ..concurrency import at_once
from ..errors import ConfigError, ConflictError, HudiServicesError
from ..limits import MIB
from ..options import Options, archive_keys
from ..paths import bare_name
from ..snapshot import Snapshot
from ..table_config import TableConfig
from ..timeline.active import Timeline
from ..timeline.archive_writer import ArchiveForm, ArchiveWriter, StoredInstant, StoredState
from ..timeline.compaction_trigger import MetadataTrigger
from ..timeline.instant import Instant
from .selection import ArchivalSelection, ArchiveRules, archive_rules, bounds_of_metadata, bounds_of_table, select

_ROUND_BYTES, _ROUND_INSTANTS = 64 * MIB, 100
"""What one round reads at most, unless a single instant is larger: writers wait for the lock meanwhile."""

_LOOK_SECONDS = 1.0
"""So often a long row of deletions looks at the lock. Every instant among them is in the archive."""

Place: TypeAlias = tuple[TableConfig, Timeline]


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The rules for a table and for its metadata table, and the form of an archive by its zone and release."""

    table: ArchiveRules
    metadata: ArchiveRules
    form: Callable[[str, str], ArchiveForm] = ArchiveForm


def archive_plan(options: Options, config: TableConfig) -> ArchivePlan:
    """The rules of an archival of a table with this `config`.

    Raises ConfigError when so few commits would start it that none could go.
    """
    table = archive_rules(options, config)
    if table.most <= table.least:
        most, least = archive_keys.ARCHIVE_MOST, archive_keys.ARCHIVE_LEAST
        raise ConfigError(
            f"{most.key}={table.most} is not more than {least.key}={table.least}",
            hint=f"set {most.key} to at least {table.least + 1}",
        )
    # As Hudi writes its metadata table.
    metadata = ArchiveRules(
        most=table.most + 1,
        least=table.least + 1,
        retention=metadata_retention(options),
        compaction_commits=options.of(MetadataTrigger).counts,
        beyond_checkpoint=True,
    )
    return ArchivePlan(table, metadata, lambda zone, release: options.of(ArchiveForm, zone, release))


@dataclass(slots=True)
class Archived:
    """What an archival did to one timeline. `first` is what it found at first."""

    first: ArchivalSelection
    instants: list[Instant] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """The names of the new archive files; some may be merged into others."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The table's timeline, or that of its metadata table."""

    place: Callable[[Snapshot], Place]
    select: Callable[[Snapshot, bool], ArchivalSelection]


def look(table: Snapshot, plan: ArchivePlan) -> list[ArchivalSelection]:
    """What would go now: of the table, and of its metadata table where it has one."""
    return [side.select(table, False) for side in _sides(table, plan)]


def archive(table: Snapshot, plan: ArchivePlan, settings: TransactionSettings) -> list[Archived]:
    """Archive what may go; the results are in the order of `look`.

    Raises what a critical section raises, CorruptFile for an instant file or an archive that cannot be read, and
    StorageError.
    """
    return [_archive_side(table, side, plan, settings) for side in _sides(table, plan)]


def _sides(table: Snapshot, plan: ArchivePlan) -> list[_Side]:
    def of_table(now: Snapshot, is_due: bool) -> ArchivalSelection:
        return select(now.timeline, plan.table, bounds_of_table(now.timeline, now.metadata), is_due=is_due)

    def of_metadata(now: Snapshot, is_due: bool) -> ArchivalSelection:
        bounds = bounds_of_metadata(now.timeline, beyond_savepoint=plan.table.beyond_savepoint)
        return select(_metadata(now)[1], plan.metadata, bounds, is_due=is_due)

    own = _Side(lambda now: (now.config, now.timeline), of_table)
    return [own] if table.metadata is None else [own, _Side(_metadata, of_metadata)]


def _metadata(table: Snapshot) -> Place:
    if table.metadata is None:
        raise ConflictError(f"{table.storage.root}: another process has dropped the metadata table", hint="run again")
    return table.metadata.config, table.metadata.timeline


def _archive_side(table: Snapshot, side: _Side, plan: ArchivePlan, settings: TransactionSettings) -> Archived:
    first = side.select(table, False)
    done = Archived(first)
    wanted = set(map(_key, first.instants))
    if wanted:
        # Before anything is written: not every store can hold an archive.
        _writer(side.place(table), plan)
    while wanted:
        _read_ahead(side.place(table)[1], [one for one in first.instants if _key(one) in wanted])
        with critical_section(table, "archive", settings) as current:
            # What has come since may hold some of them back; the commits that have come may go next time.
            going = [one for one in side.select(current, True).instants if _key(one) in wanted]
            config, timeline = side.place(current)
            batch = _first_round(timeline, going)
            wanted = set(map(_key, going)) - set(map(_key, batch))
            writer = _writer(side.place(current), plan)
            if batch:
                done.files += writer.add(_read(timeline, batch), current.check_held)
                _delete(config, timeline, batch, current.check_held)
                done.instants += batch
            if done.instants and not wanted:
                done.files += writer.compact(current.check_held)
    return done


def _read_ahead(timeline: Timeline, instants: Sequence[Instant]) -> None:
    """Read the files of the next round before the lock is taken, as far as they are kept."""
    with suppress(HudiServicesError):
        _read(timeline, _first_round(timeline, instants))


def _writer(place: Place, plan: ArchivePlan) -> ArchiveWriter:
    config, timeline = place
    form = plan.form(timeline.zone, config.version.release)
    return timeline.layout.archive_writer(timeline.storage, config.history_path, form)


def _key(instant: Instant) -> tuple[str, str]:
    return instant.ts, instant.action.value


def _first_round(timeline: Timeline, instants: Sequence[Instant]) -> list[Instant]:
    batch: list[Instant] = []
    size = 0
    for one in instants[:_ROUND_INSTANTS]:
        size += sum(timeline.sizes[file.file_name] for file in timeline.files_of(one.ts, one.action))
        if batch and size > _ROUND_BYTES:
            break
        batch.append(one)
    return batch


def _read(timeline: Timeline, instants: Sequence[Instant]) -> list[StoredInstant]:
    files = [timeline.files_of(one.ts, one.action) for one in instants]
    names = [file.file_name for of_one in files for file in of_one]
    contents = dict(zip(names, at_once(timeline.read_details, names), strict=True))
    return [
        StoredInstant(
            one,
            tuple(StoredState(file, contents[file.file_name], timeline.written[file.file_name]) for file in of_one),
        )
        for one, of_one in zip(instants, files, strict=True)
    ]


def _delete(
    config: TableConfig, timeline: Timeline, instants: Sequence[Instant], check_held: Callable[[], None]
) -> None:
    storage, seen = timeline.storage, time.monotonic()
    temporary = f"{config.meta_path}/.temp"
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(storage.list_dir, temporary)
        check_held()
    marked = {bare_name(folder) for folder in listing.result()[1]}
    files = [file for one in instants for file in timeline.files_of(one.ts, one.action)]
    lower = [timeline.path(file.file_name) for file in files if not file.is_completed]
    for ts in [one.ts for one in instants if one.ts in marked]:
        storage.delete_tree(f"{temporary}/{ts}")
    if lower:
        storage.delete_all(lower, lambda count: None)
    # One after the other: a newer instant that is gone before an older one would hide its files.
    for file in files:
        if file.is_completed:
            if time.monotonic() - seen > _LOOK_SECONDS:
                check_held()
                seen = time.monotonic()
            storage.delete(timeline.path(file.file_name))
