"""File sizing: which file groups the inserts of a partition go to, and how many each of them takes.

First the small files are filled up to the largest file size, then new file groups get the rest. Sizes are in bytes, and
become numbers of rows by the average record size, which the newest commits tell.
Source: UpsertPartitioner, AverageRecordSizeUtils (0.15.0), AverageRecordSizeEstimator (1.0 and later) of Apache Hudi.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..concurrency import at_once
from ..model import CommitMetadata, FileSlice
from ..options import value_of, writing_keys
from ..paths import bare_name
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Action

_READ_AT_ONCE = 8
"""Commits: mostly the first of them tells."""


@dataclass(frozen=True, slots=True)
class SizingRules:
    """Sizes in bytes. `small_file` 0: no file is small. `split_rows` holds unless `auto_split`."""

    max_file: int = value_of(writing_keys.MAX_FILE_BYTES)
    small_file: int = value_of(writing_keys.SMALL_FILE_BYTES)
    split_rows: int = value_of(writing_keys.INSERT_SPLIT_ROWS)
    auto_split: bool = value_of(writing_keys.INSERT_AUTO_SPLIT)
    record_estimate: int = value_of(writing_keys.RECORD_BYTES_ESTIMATE)
    """The average record size until a commit tells it."""
    threshold: float = value_of(writing_keys.RECORD_BYTES_THRESHOLD)
    """A commit tells the record size when it wrote more bytes than this many times `small_file`."""
    file_overhead: int = value_of(writing_keys.FILE_METADATA_BYTES)
    """Bytes of each file that are no records."""
    candidates: int | None = None
    """Merge-on-read: of the small files of a partition only so many are filled, the smallest ones."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Inserts for one file group: the small file, or the group of a bucket index, `filled`, or a new group (None)."""

    filled: FileSlice | None
    inserts: int


def telling_commits(table: Snapshot, most: int) -> Iterator[CommitMetadata]:
    """The commits that may tell the average record size, newest first; `most` limits them from version 8 on."""
    writes = list(table.timeline.completed_writes())
    if not table.config.version.all_commits_tell_record_size:
        writes = [one for one in writes if one.action is not Action.REPLACE_COMMIT][-most:]
    newest = writes[::-1]
    for start in range(0, len(newest), _READ_AT_ONCE):
        yield from at_once(table.timeline.read_commit, newest[start : start + _READ_AT_ONCE])


def average_record_bytes(commits: Iterable[CommitMetadata], rules: SizingRules) -> int:
    """The average record size by the first of `commits` that is large enough, newest first; at least 1."""
    for commit in commits:
        stats = [one for of in commit.stats.values() for one in of if not bare_name(one.path).startswith(".")]
        written = sum(one.total_write_bytes for one in stats) - rules.file_overhead * len(stats)
        rows = sum(one.num_writes for one in stats)
        if written > rules.threshold * rules.small_file and rows > 0:
            return -(-written // rows)
    return rules.record_estimate


def small_files(slices: Iterable[FileSlice], planned: Collection[FileGroupId], rules: SizingRules) -> list[FileSlice]:
    """The small files among the newest slices of a partition, in the order in which they are filled.

    Those of pending plans are not filled, nor those with log files.
    """
    found = (one for one in slices if one.base_file is not None and not one.log_files)
    small = (one for one in found if one.base_bytes < rules.small_file and (one.partition, one.file_id) not in planned)
    by_size = rules.candidates is not None
    return sorted(small, key=lambda one: (one.base_bytes if by_size else 0, one.file_id))[: rules.candidates]


def insert_buckets(inserts: int, small: Sequence[FileSlice], record_bytes: int, rules: SizingRules) -> list[Bucket]:
    """The buckets of a number of inserts into one partition, in order; `small` are its small files."""
    buckets, left = [], inserts
    for one in small:
        rows = min((rules.max_file - one.base_bytes) // record_bytes, left)
        if rows > 0:
            buckets.append(Bucket(one, rows))
            left -= rows
    each = -(-rules.max_file // record_bytes) if rules.auto_split else rules.split_rows
    while left > 0:
        buckets.append(Bucket(None, min(each, left)))
        left -= each
    return buckets
