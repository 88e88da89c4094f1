"""From a clustering plan to the files to rewrite, and who has made it."""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from ..codecs.clustering_plan import ClusteringPlan, SliceInfo
from ..errors import CorruptFile, UnsupportedTable
from ..file_names import log_order, parse_base_file, parse_log_file
from ..model import BaseFile, FileSlice, LogFile
from ..snapshot import Snapshot
from ..table.view import CHANGE_DATA

MOST_OUTPUTS = 100_000
"""The most new files of one group."""
PLANNED_BY = "hudi_services.version"
"""The key of the extra metadata of a plan that says which program made it; Hudi reads none of it."""
OWN_EXECUTION = "hudi_services.execution"
"""The key of the extra metadata that names an execution strategy of the operator's own."""


def is_ours(plan: ClusteringPlan) -> bool:
    """Whether this program made the plan."""
    return PLANNED_BY in plan.extra


def own_execution(plan: ClusteringPlan) -> str:
    """The execution strategy of the operator's own that the plan was made for; "" for none."""
    return plan.extra.get(OWN_EXECUTION, "")


def sized_slices(table: Snapshot, plan: ClusteringPlan, source: str) -> list[tuple[FileSlice, ...]]:
    """As `input_slices`, with the sizes of the files that the table lists: a plan does not record them."""
    groups = input_slices(plan, source)
    partitions = sorted({one.partition for group in groups for one in group})
    table.view.load(partitions)
    sizes = {partition: table.view.sizes(partition) for partition in partitions}
    sized = [[one.sized(sizes[one.partition]) for one in group] for group in groups]
    return [tuple(map(table.view.sourced, group)) for group in sized]


def input_slices(plan: ClusteringPlan, source: str) -> list[tuple[FileSlice, ...]]:
    """The file slices of each group of a plan, ours or Hudi's; their sizes are not known. `source` names the plan.

    Raises UnsupportedTable for groups over several partitions; CorruptFile for a plan without slices, for paths that
    are not base or log files of the table, for file groups that are named twice, and for a group with too many new
    files.
    """
    groups = [tuple(_input(one, source) for one in group.slices) for group in plan.groups]
    outputs = max((group.output_groups for group in plan.groups), default=0)
    if outputs > MOST_OUTPUTS:
        raise CorruptFile(f"{source} asks for {outputs:,} new files of one group, and {MOST_OUTPUTS:,} is the most")
    ids = Counter((one.partition, one.file_id) for group in groups for one in group)
    if not ids:
        raise CorruptFile(f"{source} names no file slice")
    (partition, file_id), count = ids.most_common(1)[0]
    if count > 1:
        # The group's rows would be written twice, and the row conservation check of each rewrite would pass.
        raise CorruptFile(f"{source} names the file group {file_id} in partition {partition!r} {count} times")
    for group in groups:
        if len({one.partition for one in group}) > 1:
            raise UnsupportedTable(
                f"{source} has a group over the partitions {group[0].partition!r} and others, which is not supported",
                hint="let Apache Hudi execute this plan",
            )
    return groups


def _input(planned: SliceInfo, source: str) -> FileSlice:
    base = _named(planned, planned.data_file, source, parse_base_file) if planned.data_file else None
    named = (_named(planned, path, source, parse_log_file) for path in planned.log_files)
    logs = tuple(sorted((log for log in named if log.suffix != CHANGE_DATA), key=log_order))
    if base is None and not logs:
        raise CorruptFile(
            f"{source} names no file of {planned.file_id} in partition {planned.partition!r}", hint=_DROP_HINT
        )
    instant = base.instant if base is not None else logs[0].instant
    return FileSlice(planned.partition, planned.file_id, instant, base, logs)


_DROP_HINT = "drop this plan with Apache Hudi and schedule a new one"
Named = TypeVar("Named", BaseFile, LogFile)


def _named(planned: SliceInfo, path: str, source: str, parse: Callable[[str, str, int], Named | None]) -> Named:
    """The file at `path`, which a plan names in the slice `planned`. Raises CorruptFile."""
    # By partition and name: a plan has full paths, and the table may have another path now (a link, s3 for s3a).
    folder, _, name = path.rpartition("/")
    file = parse(planned.partition, name, 0)
    if (
        file is None
        or not f"/{folder}".endswith(f"/{planned.partition}".rstrip("/"))
        or file.file_id != planned.file_id
    ):
        raise CorruptFile(
            f"{source} names {path}, which is not a file of {planned.file_id} in partition {planned.partition!r}",
            hint=_DROP_HINT,
        )
    return file
