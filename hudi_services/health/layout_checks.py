"""Checks of the files that readers open: their sizes, their log files, and how much their ranges overlap."""

from collections.abc import Iterator

import numpy as np

from ..errors import ConfigError
from ..options import clustering_keys, writing_keys
from ..table.support import are_buckets
from ..units import size_text
from .examination import Examination
from .model import HealthFinding, Level
from .range_facts import depth, sort_column

_LEAST_FILES = 10
"""In a partition of fewer files an overlap costs little."""


def small_files(seen: Examination) -> Iterator[HealthFinding]:
    """Small files that a clustering would join: each costs a request and a footer in every query."""
    files = seen.files
    limit, target = seen.options[writing_keys.SMALL_FILE_BYTES], seen.options[writing_keys.MAX_FILE_BYTES]
    small = (files.base_bytes > 0) & (files.base_bytes < limit)
    count = int(small.sum())
    seen.measures |= {
        "partitions": len(files.partitions),
        "file_slices": files.slices,
        "live_files": files.live_files,
        "live_bytes": files.live_bytes,
        "small_files": count,
    }
    joined = np.zeros(len(files.partitions), np.int64)
    np.add.at(joined, files.partition[small], files.base_bytes[small])
    saved = count - int(np.ceil(joined / target).sum())
    if saved < seen.limits.files_to_save or saved < count / 2 or _has_buckets(seen):
        return
    yield HealthFinding(
        Level.WARNING,
        "",
        f"{count} of {files.slices} base files are below {size_text(limit)} ({writing_keys.SMALL_FILE_BYTES.key}), "
        f"{size_text(int(joined.sum()))} in all: a clustering would leave {saved} files less",
        {"files": count, "bytes": int(joined.sum()), "files_to_save": saved},
        "execute --mode scheduleAndExecute",
    )


def oversized_files(seen: Examination) -> Iterator[HealthFinding]:
    """Base files far above the size that writers aim at: one task reads each row group, and upserts rewrite all."""
    files, target = seen.files, seen.options[writing_keys.MAX_FILE_BYTES]
    if seen.table.timeline.last_clustering() is not None:
        target = max(target, seen.options[clustering_keys.TARGET_FILE_BYTES])
    large = files.base_bytes > seen.limits.times_too_large * target
    if large.any():
        yield HealthFinding(
            Level.WARNING,
            "",
            f"{int(large.sum())} base files are more than {seen.limits.times_too_large} times as large as "
            f"{size_text(target)}, the largest {size_text(int(files.base_bytes.max()))}",
            {"files": int(large.sum()), "bytes": int(files.base_bytes[large].sum()), "target_bytes": target},
            "execute --mode scheduleAndExecute",
        )


def skewed_partitions(seen: Examination) -> Iterator[HealthFinding]:
    """Partitions with far more bytes than the others: their tasks run when all others have ended."""
    sizes = seen.files.partition_bytes
    filled = sizes[sizes > 0]
    if len(filled) < 3:
        return
    median, target = float(np.median(filled)), seen.options[writing_keys.MAX_FILE_BYTES]
    skewed = (sizes > seen.limits.times_the_median * median) & (sizes > 10 * target)
    seen.measures["median_partition_bytes"] = int(median)
    if skewed.any():
        largest = seen.files.partitions[int(sizes.argmax())]
        yield HealthFinding(
            Level.WARNING,
            largest,
            f"{int(skewed.sum())} partitions have more than {seen.limits.times_the_median} times the bytes of the "
            f"median one; {largest or 'the table'} has {size_text(int(sizes.max()))}, the median "
            f"{size_text(int(median))}",
            {"partitions": int(skewed.sum()), "bytes": int(sizes.max()), "median_bytes": int(median)},
        )


def many_log_files(seen: Examination) -> Iterator[HealthFinding]:
    """File slices with many log files: each read of them opens and merges all."""
    files = seen.files
    many = files.log_files > seen.limits.log_files
    if many.any():
        yield HealthFinding(
            Level.WARNING,
            files.partitions[int(files.partition[int(files.log_files.argmax())])],
            f"{int(many.sum())} file slices have more than {seen.limits.log_files} log files, the most "
            f"{int(files.log_files.max())}: {size_text(int(files.log_bytes[many].sum()))} to compact",
            {
                "slices": int(many.sum()),
                "log_files": int(files.log_files[many].sum()),
                "bytes": int(files.log_bytes[many].sum()),
            },
            "compact --mode scheduleAndExecute",
        )


def overlap(seen: Examination) -> Iterator[HealthFinding]:
    """Files whose ranges of the first sort column overlap: a filter on it opens nearly all of them. A sample."""
    column = sort_column(seen.table.timeline, seen.options)
    if not column:
        return
    # Only here: it loads Arrow's readers, and most tables are not sorted.
    from ..clustering.value_ranges import ValueRanges

    ranges = ValueRanges(seen.table)
    depths, counts = list[float](), list[int]()
    for partition, view in seen.table.view.each(list(seen.sample)):
        live = view.latest_slices(partition)
        if len(live) < _LEAST_FILES:
            continue
        try:
            found = [one for one in ranges(live, column) if one is not None]
        except ConfigError:
            continue
        depths.append(depth(found))
        counts.append(len(found))
    if not counts:
        return
    average, files = float(np.average(depths, weights=counts)), sum(counts)
    seen.measures["overlap_depth"] = round(average, 2)
    if average > max(3.0, files / len(counts) / 2):
        yield HealthFinding(
            Level.WARNING,
            column,
            f"a value of {column}, by which the table is clustered, is in the ranges of {average:.1f} files of a "
            f"partition on average, of {files / len(counts):.0f} files: a filter on it skips few of them",
            {"depth": round(average, 2), "files": files, "sampled_partitions": len(counts)},
            "execute --mode scheduleAndExecute",
        )


def _has_buckets(seen: Examination) -> bool:
    """Whether the table has a bucket index, whose file groups stay as they are."""
    first = next(iter(seen.sample), None)
    return first is not None and are_buckets(seen.table.view.latest_slices(first))
