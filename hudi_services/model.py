"""Plain values that all packages share: base files, log files, file slices, write stats."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace


def path_in(partition: str, name: str) -> str:
    """The path of the file `name` in a partition, relative to the table; "" when the table has no partitions."""
    return f"{partition}/{name}" if partition else name


BOOTSTRAP_INSTANT = "00000000000001"
"""That of base files whose columns are in a source file: of a bootstrap by metadata alone
(HoodieTimeline.METADATA_BOOTSTRAP_INSTANT_TS). Base files of a bootstrap with full records are ordinary ones."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file of `size` bytes that has the columns of the rows of a base file, outside of the table.

    `path` is relative to the folder that the table was bootstrapped from, `uri` is that of then. `columns` of the
    partition path have these texts in all rows, None for null, where the file does not have them.
    """

    path: str
    uri: str
    size: int
    columns: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file. `partition` is the path relative to the table, "" when the table has no partitions."""

    partition: str
    name: str
    file_id: str
    write_token: str
    instant: str
    size: int
    content: bytes = field(default=b"", compare=False, repr=False)
    """The whole file, if it is small and was read already."""
    source: SourceFile | None = field(default=None, compare=False)
    """Of a file with the meta columns alone: where the other columns are."""

    @property
    def path(self) -> str:
        return path_in(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file; `instant` is the time in its name (slice base instant in version 6, delta commit in 8 and 9)."""

    partition: str
    name: str
    file_id: str
    instant: str
    version: int
    write_token: str
    suffix: str
    size: int
    content: bytes = field(default=b"", compare=False, repr=False)
    """As that of a base file."""

    @property
    def path(self) -> str:
        return path_in(self.partition, self.name)


DataFile = BaseFile | LogFile
"""A file of a file slice."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file and the log files on top of it, oldest first. `base_instant` names the slice."""

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()

    @classmethod
    def of_base(cls, file: BaseFile) -> "FileSlice":
        """The slice of a base file without log files."""
        return cls(file.partition, file.file_id, file.instant, file)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The base file, if there is one, and the log files."""
        return (*((self.base_file,) if self.base_file is not None else ()), *self.log_files)

    def sized(self, sizes: Mapping[str, int]) -> "FileSlice":
        """The slice with these sizes of its files, by name; a file without one keeps its own."""
        base, logs = self.base_file, self.log_files
        return replace(
            self,
            base_file=base and replace(base, size=sizes.get(base.name, base.size)),
            log_files=tuple(replace(log, size=sizes.get(log.name, log.size)) for log in logs),
        )

    @property
    def base_name(self) -> str:
        """The name of its base file, "" without one."""
        return self.base_file.name if self.base_file is not None else ""

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return self.base_bytes + self.log_bytes

    @property
    def base_bytes(self) -> int:
        """Bytes of its base file, with those of its source file; 0 without one."""
        base = self.base_file
        return 0 if base is None else base.size + (base.source.size if base.source is not None else 0)

    @property
    def log_bytes(self) -> int:
        """Bytes of its log files."""
        return sum(log.size for log in self.log_files)


@dataclass(frozen=True, slots=True)
class LogCounts:
    """What the log files of file slices hold, and what their records do; `+` joins the counts of different slices."""

    blocks: int = 0
    """Blocks of every kind."""
    records: int = 0
    """Records and deletes, in the blocks that count."""
    keys: int = 0
    updates: int = 0
    """Rows of base files that a log record replaces."""
    deletes: int = 0
    """Keys that are deleted in the end."""
    inserts: int = 0
    """Rows that only log records have."""

    def __add__(self, other: "LogCounts") -> "LogCounts":
        return LogCounts(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class MergedLogs:
    """The log files that a compaction merged into one base file; sizes in bytes. `base_file`: the old one, or ""."""

    base_file: str
    files: int
    size: int
    counts: LogCounts

    @classmethod
    def of(cls, merged: FileSlice, counts: LogCounts) -> "MergedLogs":
        """What the compaction of a slice merged; the counts are those of its log files."""
        return cls(merged.base_name, len(merged.log_files), merged.log_bytes, counts)


@dataclass(frozen=True, slots=True)
class WriteStat:
    """HoodieWriteStat: what a write did to one file. `path` is relative to the table; sizes in bytes."""

    partition: str
    file_id: str
    path: str
    prev_commit: str = "null"
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    file_size: int = 0
    create_millis: int = 0
    log_version: int | None = None
    log_offset: int = 0
    """The offset in the log file at which the write began."""
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    cdc_files: tuple[tuple[str, int], ...] = ()
    """Paths of the files with the changes that it made in the base file, each with its size."""
    merged_logs: MergedLogs | None = None
    """Set for a compaction; written, never read."""

    @classmethod
    def of_file(cls, path: str, size: int, rows: int, file_id: str) -> "WriteStat":
        """The stat of a new base file whose rows all count as inserts; `size` in bytes."""
        partition = path.rpartition("/")[0]
        return cls(partition, file_id, path, num_writes=rows, num_inserts=rows, total_write_bytes=size, file_size=size)

    @classmethod
    def forecast(cls, partition: str, group: FileSlice | None, inserts: int = 0, updates: int = 0) -> "WriteStat":
        """What a write is about to do in a partition, or to the file group whose newest slice is `group`."""
        if group is None:
            return cls(partition, "", "", num_inserts=inserts, num_update_writes=updates)
        before = group.base_instant
        return cls(partition, group.file_id, "", before, num_inserts=inserts, num_update_writes=updates)

    def next_of(self, before: FileSlice, counts: LogCounts, merged: MergedLogs | None = None) -> "WriteStat":
        """The stat of the same base file as the next slice of a file group: `before` with the records of `counts`.

        `merged`: of a compaction.
        """
        return replace(
            self,
            prev_commit="null" if before.base_file is None else before.base_instant,
            num_inserts=counts.inserts,
            num_update_writes=counts.updates,
            num_deletes=counts.deletes,
            merged_logs=merged,
        )

    @property
    def files(self) -> tuple[tuple[str, int], ...]:
        """The paths and sizes of the files that it wrote."""
        return ((self.path, self.file_size), *self.cdc_files)

    @property
    def is_log(self) -> bool:
        """Whether the file is a log file."""
        return self.log_version is not None


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """HoodieCommitMetadata, and HoodieReplaceCommitMetadata when `replaced` is not None.

    `stats` and `replaced` (file ids) are keyed by partition path.
    """

    operation: str
    stats: Mapping[str, tuple[WriteStat, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] | None = None
    compacted: bool = False

    @property
    def written_groups(self) -> list[tuple[str, str]]:
        """The file groups (partition path, file id) that it wrote to."""
        return [(partition, stat.file_id) for partition, stats in self.stats.items() for stat in stats]

    @property
    def replaced_groups(self) -> list[tuple[str, str]]:
        """The file groups (partition path, file id) that it replaced."""
        return [(partition, file_id) for partition, ids in (self.replaced or {}).items() for file_id in ids]

    @property
    def touched_groups(self) -> set[tuple[str, str]]:
        """The file groups (partition path, file id) that it wrote to or replaced."""
        return {*self.replaced_groups, *self.written_groups}
