"""What the commits that are there tell: bytes and rows that each has written, the bytes that readers saw after it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..model import CommitMetadata, WriteStat
from ..paths import bare_name
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Instant
from .distributions import Counts

_MOST_COMMITS, _MOST_STATS = 300, 300_000
"""How much of a long timeline is read, the newest commits first."""


@dataclass(frozen=True)
class CommitFacts:
    """The newest completed writes in timeline order, a value for each in every array; sizes in bytes."""

    instants: tuple[Instant, ...]
    operations: tuple[str, ...]
    """As WriteOperationType of Apache Hudi names them."""
    written_bytes: Counts
    written_rows: Counts
    live_bytes: Counts
    """What readers saw after each commit: from what they see now, back by what each commit has added and taken away."""
    older: int
    """Completed writes on the timeline before these."""
    guessed: int
    """Files that these commits took from readers and whose sizes no commit here tells: they count as those that came
    in their place."""
    rows_of: Mapping[str, int]
    """The rows of each base file that these commits have written, by its name."""
    bytes_of: Mapping[str, int]
    """The size of each file that these commits have written, by its name; of a log file, after the last of them."""


@dataclass
class _Sizes:
    """The bytes of file groups as they grow, one commit after the other."""

    groups: dict[FileGroupId, int] = field(default_factory=dict)
    guessed: int = 0

    def change(self, commit: CommitMetadata) -> int:
        """By how many bytes the commit changes what readers see."""
        change, new = 0, 0
        for partition, stats in commit.stats.items():
            for stat in stats:
                group, size = (partition, stat.file_id), _size(stat)
                before = self.groups.get(group)
                if stat.is_log:
                    self.groups[group] = (before or 0) + size
                    change += size
                    continue
                if before is None and stat.prev_commit not in ("", "null"):
                    self.guessed += 1
                    before = size
                new += size
                change += size - (before or 0)
                self.groups[group] = size
        gone = [self.groups.pop(group, None) for group in commit.replaced_groups]
        unknown = sum(size is None for size in gone)
        taken = sum(size for size in gone if size is not None)
        if unknown:
            self.guessed += unknown
            taken = max(taken, new)
        return change - taken


def commit_facts(table: Snapshot, live_bytes: int) -> CommitFacts:
    """Read the newest commits of the active timeline; `live_bytes` are those of readers now.

    Raises CorruptFile and StorageError.
    """
    writes = table.timeline.completed_writes()
    chosen = list[tuple[Instant, CommitMetadata]]()
    stats = 0
    for instant, commit in table.timeline.read_commits(reversed(writes[-_MOST_COMMITS:])):
        stats += sum(map(len, commit.stats.values()))
        if chosen and stats > _MOST_STATS:
            break
        chosen.append((instant, commit))
    # In the order in which readers saw them: a clustering may end after a write that began later.
    chosen.sort(key=lambda pair: pair[0].completion_time or pair[0].ts)
    sizes = _Sizes()
    changes = np.array([sizes.change(commit) for _, commit in chosen], np.int64)
    after = changes[::-1].cumsum()[::-1] - changes
    commits = [commit for _, commit in chosen]
    return CommitFacts(
        instants=tuple(instant for instant, _ in chosen),
        operations=tuple(commit.operation for commit in commits),
        written_bytes=_sums(commits, _size),
        written_rows=_sums(commits, lambda stat: stat.num_writes),
        live_bytes=np.maximum(live_bytes - after, 0),
        older=len(writes) - len(chosen),
        guessed=sizes.guessed,
        rows_of={
            bare_name(stat.path): stat.num_writes for commit in commits for stat in _stats(commit) if not stat.is_log
        },
        bytes_of={
            bare_name(stat.path): stat.file_size or stat.total_write_bytes
            for commit in commits
            for stat in _stats(commit)
        },
    )


def _size(stat: WriteStat) -> int:
    # The size of a log file is that of all blocks in it, also of those of earlier commits.
    return (stat.total_write_bytes if stat.is_log else stat.file_size) or stat.file_size or stat.total_write_bytes


def _stats(commit: CommitMetadata) -> list[WriteStat]:
    return [stat for stats in commit.stats.values() for stat in stats]


def _sums(commits: Sequence[CommitMetadata], value: Callable[[WriteStat], int]) -> Counts:
    return np.array([sum(map(value, _stats(commit))) for commit in commits], np.int64)
