"""Whether new log files would be the last of their slices: readers merge log files in the order of their names.

On version 6 a log file has the time of its slice in its name. A downgrade leaves log files with the later times of
their delta commits in the slices of pending plans, and what is written after them would be merged before them.
"""

from collections.abc import Iterable

from ..errors import UnsupportedTable
from ..own_commands import own_command
from ..snapshot import Snapshot


def check_last_logs(table: Snapshot, partitions: Iterable[str]) -> None:
    """Raise UnsupportedTable for a file group of the partitions whose new log files would not be the last."""
    if table.log_naming.tells_writers:
        return
    for partition, view in table.view.each(sorted(partitions)):
        for one in view.latest_slices(partition):
            named = table.ledger.compacting.get((partition, one.file_id), one.base_instant)
            if later := [log for log in one.log_files if log.instant > named]:
                raise UnsupportedTable(
                    f"{table.storage.full_path(later[-1].path)} is named after its delta commit, as a downgrade leaves "
                    "it, and readers would merge what is written now before it",
                    hint="nothing was written; execute the pending plans first (compact, execute), and then cluster "
                    f"these log files: {own_command('execute', table.storage.root, '--mode scheduleAndExecute')}",
                )
