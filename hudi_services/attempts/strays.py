"""The new files of an attempt that its commit does not name: readers would take them for committed ones."""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

from ..commit.checkpoints import checkpointed_files
from ..commit.markers import Marker, read_markers
from ..concurrency import at_once
from ..file_names import parse_data_file
from ..model import BaseFile
from ..snapshot import Snapshot, refresh
from ..table.view import CHANGE_DATA
from ..timeline.instant import Instant


def committed_files(table: Snapshot, completed: Instant) -> frozenset[str]:
    stats = table.timeline.read_commit(completed).stats
    return frozenset(path for of_partition in stats.values() for stat in of_partition for path, _ in stat.files)


def claimed_files(table: Snapshot, instant: Instant) -> frozenset[str]:
    """Base files in the commit of the instant, or, while it is pending, files that another attempt may commit.

    Read anew, because this process may have been stopped for long since `table` was opened. Checkpoints are read first:
    the process that completes the instant deletes them only afterwards, so that one of the two reads finds the files.
    """
    claimed = checkpointed_files(table.storage, instant.ts)
    current = refresh(table)
    found = current.timeline.find(instant.ts, instant.action)
    return committed_files(current, found) if found is not None and found.is_completed else claimed


def marked_files(table: Snapshot, ts: str) -> list[Marker]:
    """The markers of the instant."""
    return read_markers(table.storage, ts)


def remove_marked_strays(table: Snapshot, ts: str, paths: Collection[str]) -> None:
    """As `remove_strays` at an instant that no earlier attempt had: every stray file has a marker."""
    _remove(table, ts, paths, {(marker.partition, marker.file_name) for marker in marked_files(table, ts)})


def remove_strays(table: Snapshot, ts: str, paths: Collection[str], marked: Iterable[Marker] | None = None) -> None:
    """Delete the files of the instant that are not in `paths`: readers that list would see rows of base files twice.

    Log files stay, but for those with the changes of base files.

    Files of repeated tasks are found by their markers, which are `marked` if they were read already. Files of earlier
    attempts, written after the rollback by tasks that outlived their driver, have no markers any more: they are found
    by listing the partitions of `paths`.
    """
    partitions = sorted({path.rpartition("/")[0] for path in paths})
    with ThreadPoolExecutor(1) as pool:
        listed = pool.submit(table.stored.load, partitions)
        marked = marked_files(table, ts) if marked is None else marked
        listed.result()
    found = {(marker.partition, marker.file_name) for marker in marked}
    found |= {(partition, name) for partition in partitions for name in table.stored.files(partition)}
    _remove(table, ts, paths, found)


def _remove(table: Snapshot, ts: str, paths: Collection[str], files: Iterable[tuple[str, str]]) -> None:
    found = (parse_data_file(partition, name, 0) for partition, name in files)
    own = (one for one in found if isinstance(one, BaseFile) or (one is not None and one.suffix == CHANGE_DATA))
    strays = sorted(one.path for one in own if one.instant == ts and one.path not in paths)
    at_once(table.storage.delete_output, strays)
