"""The file-system view: which file slices readers see, from names, sizes and the timeline.

A file counts when its instant is completed, or older than the first instant of the active timeline (then it was
completed long ago). An instant that was archived beyond a savepoint is neither, and its files do not count: see
`Timeline.first_ts`. File groups that a completed replacecommit replaced are hidden. Log files join a slice as
`log_naming` says. A pending compaction begins a slice of its file groups without a base file; until it is completed,
readers see this slice and the one before it as one.
Sources: AbstractTableFileSystemView, HoodieFileGroup of Apache Hudi.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

from ..file_names import log_order, parse_base_file, parse_data_file, parse_log_file
from ..model import BOOTSTRAP_INSTANT, BaseFile, DataFile, FileSlice, LogFile, SourceFile
from .log_naming import LogNaming
from .partitions import Files, ListedFiles, Lister

FileGroupId = tuple[str, str]
"""(partition, file id)."""

CHANGE_DATA = ".cdc"
"""The suffix of log files that hold changes for queries of changes, and no rows."""


_BATCH = 256
"""The partitions that are listed at once, where they are wanted in another order than theirs."""


class InstantFacts(Protocol):
    """The facts of the timeline that a view needs."""

    def is_committed(self, instant: str) -> bool:
        """Whether the instant is completed in the active timeline, or older than its start."""

    def completion_time(self, instant: str) -> str | None:
        """The completion time; None when the instant is pending or unknown."""

    @property
    def hides(self) -> bool:
        """Whether `is_hidden` may be true of any instant."""

    def is_hidden(self, instant: str) -> bool:
        """Whether a savepoint, beyond which the instant may have been completed and archived, hides the instant."""


class Sources(Protocol):
    """The source files of a bootstrapped table."""

    def sources(self, partition: str) -> Mapping[str, SourceFile]:
        """Those of one partition of the table, by file id."""


class FileSystemView:
    """Latest committed file slices, one partition at a time; nothing is cached."""

    def __init__(
        self,
        lister: Lister,
        facts: InstantFacts,
        replaced: Mapping[FileGroupId, str],
        naming: LogNaming,
        compacting: Mapping[FileGroupId, str] | None = None,
        sources: Sources | None = None,
    ) -> None:
        """`replaced` has the time of each replaced file group, `compacting` the instant of its pending compaction;
        `sources` the files with the columns of a bootstrapped table."""
        self._lister = lister
        self._facts = facts
        self._replaced = replaced
        self._naming = naming
        self._compacting = compacting or {}
        self._sources = sources

    @property
    def replaced(self) -> Mapping[FileGroupId, str]:
        """The time at which each replaced file group was replaced."""
        return self._replaced

    def of_files(self, lister: Lister) -> "FileSystemView":
        """The same view of the files that another lister lists."""
        return FileSystemView(lister, self._facts, self._replaced, self._naming, self._compacting, self._sources)

    def partitions(self) -> list[str]:
        return self._lister.partitions()

    def load(self, partitions: Sequence[str]) -> None:
        """Prepare for calls for the slices of these partitions."""
        self._lister.load(partitions)

    def sizes(self, partition: str) -> Files:
        """The sizes of all files of a partition, by name, whether readers see them or not."""
        return self._lister.files(partition)

    def each(self, partitions: Sequence[str]) -> Iterator[tuple[str, "FileSystemView"]]:
        """These partitions in their order, each with a view of it alone, one after the other; nothing of them is kept.

        Partitions that do not ascend are read in batches.
        """
        for partition, files in self._each(partitions):
            yield partition, self.of_files(ListedFiles({partition: files}))

    def _each(self, partitions: Sequence[str]) -> Iterator[tuple[str, Files]]:
        if all(before < after for before, after in pairwise(partitions)):
            yield from self._lister.each(partitions)
            return
        for start in range(0, len(partitions), _BATCH):
            batch = partitions[start : start + _BATCH]
            files = dict(self._lister.each(sorted({*batch})))
            yield from ((one, files[one]) for one in batch)

    def latest_slices(self, partition: str) -> list[FileSlice]:
        """The newest committed slice of each live file group, by file id."""
        groups = self._slices(partition)
        live = {file_id: group for file_id, group in groups.items() if (partition, file_id) not in self._replaced}
        return [_as_read(group, self._compacting.get((partition, file_id))) for file_id, group in sorted(live.items())]

    def latest_slices_of(self, partitions: Sequence[str]) -> list[FileSlice]:
        """The latest slices of several partitions, whose files are listed at once."""
        self.load(partitions)
        return [one for partition in partitions for one in self.latest_slices(partition)]

    def live_slices(self, partition: str | None = None) -> list[FileSlice]:
        """The slices that readers see in one partition, or in all of them."""
        partitions = self.partitions() if partition is None else [partition]
        return [one for name, view in self.each(partitions) for one in view.latest_slices(name)]

    def compacted_slices(self, partition: str) -> dict[str, FileSlice]:
        """The slice that each pending compaction merges, with all of its log files, by file id."""
        found: dict[str, FileSlice] = {}
        for file_id, group in self._slices(partition).items():
            compaction = self._compacting.get((partition, file_id))
            older = [one for one in group if compaction is not None and one.base_instant < compaction]
            if older and self.replaced_at(partition, file_id) is None:
                found[file_id] = older[-1]
        return found

    def all_slices(self, partition: str) -> dict[str, list[FileSlice]]:
        """Every committed slice by file id, oldest first; replaced file groups and change-data files too.

        Log files behind a base file that is not committed are in none of these slices, as in Hudi's.
        """
        return self._slices(partition, all_files=True)

    def _slices(self, partition: str, *, all_files: bool = False) -> dict[str, list[FileSlice]]:
        files = self._lister.files(partition)
        found = slices_of(partition, files, self._facts, self._naming, self._compacting, all_files=all_files)
        if self._sources is not None:
            found = self._with_sources(partition, found)
        kept = {file_id: [one for one in group if self._is_slice(one)] for file_id, group in found.items()}
        return {file_id: group for file_id, group in kept.items() if group}

    def _with_sources(self, partition: str, groups: dict[str, list[FileSlice]]) -> dict[str, list[FileSlice]]:
        """The slices, with the source files of base files that have none of the columns."""
        bare = [one for group in groups.values() for one in group if is_bare(one.base_file)]
        if not bare or self._sources is None:
            return groups
        sources = self._sources.sources(partition)
        return {file_id: [_sourced(one, sources) for one in group] for file_id, group in groups.items()}

    def sourced(self, file_slice: FileSlice) -> FileSlice:
        """A slice that a plan names, with the source file of its base file."""
        if not is_bare(file_slice.base_file) or self._sources is None:
            return file_slice
        return _sourced(file_slice, self._sources.sources(file_slice.partition))

    def _is_slice(self, file_slice: FileSlice) -> bool:
        """False for log files alone that are named after a compaction (version 6) that is no longer there."""
        if (
            file_slice.base_file is not None
            or self._compacting.get((file_slice.partition, file_slice.file_id)) == file_slice.base_instant
        ):
            return True
        return self._facts.is_committed(file_slice.base_instant)

    def half_hidden(self, partition: str) -> frozenset[str]:
        """Ids of the file groups with files that a savepoint hides: without it, another slice may be the newest."""
        if not self._facts.hides:
            return frozenset()
        return frozenset(file.file_id for file in self._data_files(partition) if self._facts.is_hidden(file.instant))

    def uncommitted(self, partition: str, *, logs: bool = True) -> frozenset[str]:
        """Ids of the file groups with base files, or `logs`, of writes that are not completed, as far as names tell."""
        files = (file for file in self._data_files(partition) if logs or isinstance(file, BaseFile))
        return frozenset(file.file_id for file in files if not self._counts(file))

    def _counts(self, file: DataFile) -> bool:
        if isinstance(file, LogFile):
            return self._naming.counts(file, self._facts.is_committed)
        return self._facts.is_committed(file.instant)

    def _data_files(self, partition: str) -> Iterator[DataFile]:
        """All listed base and log files, without their sizes."""
        names = self._lister.files(partition)
        files = (parse_data_file(partition, name, 0) for name in names)
        return (file for file in files if file is not None)

    def replaced_at(self, partition: str, file_id: str) -> str | None:
        """The time of the replacecommit that hid a file group, None for a live one."""
        return self._replaced.get((partition, file_id))


def slices_of(
    partition: str,
    files: Files,
    facts: InstantFacts,
    naming: LogNaming,
    compacting: Mapping[FileGroupId, str] | None = None,
    *,
    all_files: bool = False,
) -> dict[str, list[FileSlice]]:
    """All committed slices of a partition by file id, oldest first. Names that are not those of data files are skipped.

    `compacting` has the instant of the pending compaction of a file group, which begins a slice.

    Change-data-capture files are not part of the slices that readers see; `all_files` includes them. It also begins a
    slice at each base file that is not committed, as Hudi does: the slice has no base file here, only log files.
    """
    bases: dict[str, list[BaseFile]] = defaultdict(list)
    begun: dict[str, set[str]] = defaultdict(set)
    logs: dict[str, list[LogFile]] = defaultdict(list)
    for name, size in files.items():
        if base := parse_base_file(partition, name, size):
            if facts.is_committed(base.instant):
                bases[base.file_id].append(base)
            elif all_files:
                begun[base.file_id].add(base.instant)
            continue
        log = parse_log_file(partition, name, size)
        if log is None or (log.suffix == CHANGE_DATA and not all_files):
            continue
        # Version 6 names log files after the compaction that has begun their slice, and an upgrade leaves them so.
        is_of_plan = compacting is not None and compacting.get((partition, log.file_id)) == log.instant
        if is_of_plan or naming.counts(log, facts.is_committed):
            logs[log.file_id].append(log)
    found = sorted(bases.keys() | logs.keys())
    for file_id in found:
        if instant := (compacting or {}).get((partition, file_id)):
            begun[file_id].add(instant)
    return {one: _slices(partition, one, bases[one], logs[one], naming, facts, begun[one]) for one in found}


def _slices(
    partition: str,
    file_id: str,
    bases: Iterable[BaseFile],
    logs: Iterable[LogFile],
    naming: LogNaming,
    facts: InstantFacts,
    begun: Collection[str],
) -> list[FileSlice]:
    """The slices of a file group; those of `begun` have no base file that counts."""
    # Two attempts of one task may both have left a file: the view of Hudi keeps one of them, too.
    by_instant = {base.instant: base for base in sorted(bases, key=lambda base: base.name)}
    if not logs and not begun:
        return [FileSlice(partition, file_id, *one) for one in sorted(by_instant.items())]
    instants = sorted(by_instant)
    members: dict[str, list[LogFile]] = {instant: [] for instant in instants}
    for instant in begun:
        members.setdefault(instant, [])
    for log in sorted(logs, key=log_order):
        slice_instant = naming.slice_of(log, sorted(members), facts.completion_time)
        members.setdefault(slice_instant, []).append(log)
    return [
        FileSlice(partition, file_id, instant, by_instant.get(instant), tuple(members[instant]))
        for instant in sorted(members)
    ]


def is_bare(base: BaseFile | None) -> bool:
    """Whether a base file is one of a bootstrap by metadata alone, by its instant."""
    return base is not None and base.instant == BOOTSTRAP_INSTANT


def _sourced(file_slice: FileSlice, sources: Mapping[str, SourceFile]) -> FileSlice:
    base = file_slice.base_file
    if base is None or not is_bare(base):
        return file_slice
    return replace(file_slice, base_file=replace(base, source=sources.get(base.file_id)))


def _as_read(slices: Sequence[FileSlice], compacting: str | None) -> FileSlice:
    """The newest of the slices of a file group as readers see it: that of a pending compaction with the one before."""
    newest = slices[-1]
    if newest.base_instant != compacting or len(slices) == 1:
        return newest
    return joined(slices[-2], newest)


def joined(before: FileSlice, newest: FileSlice) -> FileSlice:
    """The slice `before` with the log files of the slice after it, which a pending compaction has begun."""
    return replace(before, log_files=before.log_files + newest.log_files)
