"""Whether pending plans that nobody executes can be executed here at all, and how they are taken back.

Properties of the table, and file groups that a plan puts together, may be refused. What a task would refuse after it
has read footers and the headers of log blocks is found by reading them: requests for each file of the plan. What only
values show (a null in an ordering field) is not found.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ..clustering.planned_slices import input_slices
from ..compaction.inputs import compacted_slices
from ..errors import CorruptFile, HudiServicesError, NotFound, SymbolicLink, UnsupportedTable
from ..own_commands import own_command
from ..snapshot import Snapshot
from ..table.support import Operation, check_group, check_support
from ..table.view import is_bare
from ..timeline.instant import Action, Instant


def why_unfit(table: Snapshot, instant: Instant) -> HudiServicesError | None:
    """The error with which execute or compact would refuse a pending plan by its files; None where there is none.

    Raises StorageError where the store refuses or fails.
    """
    # Whoever has no such plan does without Arrow.
    from ..rewriting.inputs import TableColumns, fitting

    is_compaction = instant.action is Action.COMPACTION
    try:
        check_support(Operation.COMPACT if is_compaction else Operation.EXECUTE, table)
        if is_compaction:
            plan = table.timeline.read_compaction_plan(instant)
            groups = [[one] for one in compacted_slices(table, plan, instant)]
        else:
            source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
            groups = [list(group) for group in input_slices(table.timeline.read_plan(instant), source)]
            for group in groups:
                check_group(group, table.storage)
        columns = TableColumns.of(table)
    except (CorruptFile, UnsupportedTable) as error:
        return error
    for group in groups:
        if any(is_bare(one.base_file) for one in group):
            # Whoever executes the plan says where the columns of a bootstrapped table may be read.
            continue
        try:
            _, unfit = fitting(table.slices, group, columns)
        except (NotFound, SymbolicLink):
            # The group was changed since, or validate tells of it.
            continue
        if unfit:
            return unfit[0].error
    return None


@contextmanager
def telling_way_out(table: Snapshot, instant: Instant) -> Iterator[None]:
    """A context that executes a pending plan: what refuses a file of it says also how the plan is taken back."""
    try:
        yield
    except (CorruptFile, UnsupportedTable) as error:
        error.hint = "; or ".join(filter(None, (error.hint, way_out(table, instant))))
        raise


def way_out(table: Snapshot, instant: Instant) -> str:
    """How a pending plan is taken back."""
    if instant.action is not Action.COMPACTION:
        return f"take the plan back: {own_command('rollback', table.storage.root, f'--instant {instant.ts}')}"
    if table.log_naming.tells_writers:
        return (
            f"let Apache Hudi execute the plan, or hudi-cli take it back: compaction unschedule --instant {instant.ts}"
        )
    return "let Apache Hudi execute the plan: it must stay, because log files may be named after it"
