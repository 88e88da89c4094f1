"""Checks of the files that readers open: their sizes, their log files, and how much their ranges overlap."""

from collections.abc import Iterator

import numpy as np

from ..errors import ConfigError
from ..options import clustering_keys, writing_keys
from ..own_commands import setting
from ..table.support import are_buckets
from ..units import counted, size_text
from .examination import Examination
from .model import HealthFinding, Level
from .range_facts import depth, known_layout
from .service_checks import compaction_command

_LEAST_FILES = 10
"""In a partition of fewer files an overlap costs little."""


def small_files(seen: Examination) -> Iterator[HealthFinding]:
    """Small files that a clustering would join: each costs a request and a footer in every query."""
    files = seen.files
    key, target = writing_keys.SMALL_FILE_BYTES, seen.options[writing_keys.MAX_FILE_BYTES]
    small = (files.base_bytes > 0) & (files.base_bytes < seen.options[key])
    count, bases = int(small.sum()), int(np.count_nonzero(files.base_bytes))
    seen.measures |= {
        "partitions": len(files.partitions),
        "file_slices": files.slices,
        "live_files": files.live_files,
        "live_bytes": files.live_bytes,
        "small_files": count,
    }
    # A clustering takes files below a limit of its own.
    taken = small & (files.base_bytes < seen.options[clustering_keys.SMALL_FILE_LIMIT])
    counts = np.bincount(files.partition[taken], minlength=len(files.partitions))
    joined = np.zeros(len(files.partitions), np.int64)
    np.add.at(joined, files.partition[taken], files.base_bytes[taken])
    saves = counts - np.ceil(joined / target).astype(np.int64)
    saved, in_plan = int(saves.sum()), seen.options[clustering_keys.MAX_NUM_GROUPS]
    if saved < seen.limits.files_to_save or saved < count / 2 or _has_buckets(seen):
        return
    plans = -(-int(np.count_nonzero(saves)) // in_plan)
    how = "a clustering" if plans == 1 else f"{plans:,} clusterings of {counted(in_plan, 'group')} each"
    yield HealthFinding(
        Level.WARNING,
        "",
        f"{count:,} of {counted(bases, 'base file')} are below {size_text(seen.options[key])} ({key.key}), "
        f"{size_text(int(files.base_bytes[small].sum()))} in all: {how} would leave "
        f"{counted(saved, 'fewer file')}",
        {"files": count, "bytes": int(files.base_bytes[small].sum()), "files_to_save": saved, "plans": plans},
        "execute --mode scheduleAndExecute",
    )


def oversized_files(seen: Examination) -> Iterator[HealthFinding]:
    """Base files far above the size that writers aim at: one task reads each row group, and upserts rewrite all."""
    files, target = seen.files, seen.options[writing_keys.MAX_FILE_BYTES]
    if seen.table.timeline.last_clustering() is not None:
        target = max(target, seen.options[clustering_keys.TARGET_FILE_BYTES])
    large = files.base_bytes > seen.limits.times_too_large * target
    if large.any():
        largest = int(files.base_bytes.max())
        # A clustering takes files below its limit alone, and makes larger ones than writers do.
        limits = {clustering_keys.SMALL_FILE_LIMIT: largest + 1, clustering_keys.TARGET_FILE_BYTES: target}
        flags = " ".join(setting(option.key, value) for option, value in limits.items())
        in_buckets = _has_buckets(seen)
        why = "; the number of buckets decides how large they are" if in_buckets else ""
        yield HealthFinding(
            Level.WARNING,
            "",
            f"of {counted(files.slices, 'file slice')}, {int(large.sum()):,} have base files of more than "
            f"{seen.limits.times_too_large} times {size_text(target)}, the largest {size_text(largest)}{why}",
            {"files": int(large.sum()), "bytes": int(files.base_bytes[large].sum()), "target_bytes": target},
            "" if in_buckets else f"execute --mode scheduleAndExecute {flags}",
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
            f"{largest} has {size_text(int(sizes.max()))}, and the median partition {size_text(int(median))}: "
            f"{counted(int(skewed.sum()), 'partition')} of more than {seen.limits.times_the_median} times that",
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
            f"more than {seen.limits.log_files} log files in {counted(int(many.sum()), 'file slice')}, "
            f"{int(files.log_files.max())} at most: {size_text(int(files.log_bytes[many].sum()))} to compact",
            {
                "slices": int(many.sum()),
                "log_files": int(files.log_files[many].sum()),
                "bytes": int(files.log_bytes[many].sum()),
            },
            compaction_command(seen),
        )


def overlap(seen: Examination) -> Iterator[HealthFinding]:
    """Files whose ranges of the first sort column overlap: a filter on it opens nearly all of them. A sample."""
    layout = known_layout(seen.table.timeline, seen.options)
    if layout is None or _has_buckets(seen):
        return
    column = layout.column
    # Only here: it loads Arrow's readers, and most tables are not sorted.
    from ..clustering.value_ranges import ValueRanges

    ranges = ValueRanges(seen.table)
    depths, counts, largest = list[float](), list[int](), 0
    for partition, view in seen.table.view.each(list(seen.sample)):
        live = view.latest_slices(partition)
        if len(live) < _LEAST_FILES:
            continue
        try:
            found = [one for one in ranges(live, column) if one is not None]
        except ConfigError:
            continue
        if not found:
            # A column of nulls, or without statistics.
            continue
        depths.append(depth(found))
        counts.append(len(found))
        largest = max(largest, *(one.base_bytes for one in live))
    if not counts:
        return
    average, files = float(np.average(depths, weights=counts)), sum(counts)
    seen.measures["overlap_depth"] = round(average, 2)
    if average > max(3.0, files / len(counts) / 2):
        key = clustering_keys.SMALL_FILE_LIMIT
        limit = setting(key.key, largest + 1) if largest >= seen.options[key] else ""
        yield HealthFinding(
            Level.WARNING,
            column,
            f"a value of {column}, by which the table is to be clustered, is in the ranges of {average:.1f} files of a "
            f"partition on average, of {files / len(counts):.0f} files: a filter on it skips few of them",
            {"depth": round(average, 2), "files": files, "sampled_partitions": len(counts)},
            " ".join(filter(None, ("execute --mode scheduleAndExecute", layout.flags, limit))),
        )


def _has_buckets(seen: Examination) -> bool:
    """Whether the table has a bucket index, whose file groups stay as they are."""
    first = next(iter(seen.sample), None)
    return first is not None and are_buckets(seen.table.view.latest_slices(first))
