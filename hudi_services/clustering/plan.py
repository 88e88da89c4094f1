"""From a table and rules to a clustering plan, and from a plan to the files to rewrite."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from .._version import __version__
from ..base_files.slices import RECORD_KEY
from ..clock import local_time
from ..codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo
from ..commit.conflicts import touched_groups
from ..concurrency import at_once
from ..errors import ConfigError, CorruptFile, HudiServicesError, UnsupportedTable
from ..file_names import log_order, parse_base_file, parse_log_file
from ..model import BaseFile, FileSlice, LogFile
from ..options import Options, clustering_keys, computed, settings, value_of
from ..options.value_types import is_code
from ..rewriting.execution_strategies import EXECUTIONS, execution_called
from ..rewriting.inputs import TableColumns, Unfit, fitting, refuse_unmerged
from ..rows.row_order import row_order
from ..rows.sort_order import SortColumn, parse_sort_columns, to_strategy_params
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.support import are_buckets
from ..table.view import CHANGE_DATA
from .eligibility import ClusteringReason, Eligibility
from .partitions import ClusteredPartitionRules, select_partitions
from .selection import MOST_OUTPUTS, ClusteringSelection, Fitted, PlannedGroup, SizeRules, select
from .strategies import PlanContext, PlanStrategy, plan_strategy
from .value_ranges import ValueRanges

_MIB = 1024 * 1024
_PLANNED_BY = "hudi_services.version"
"""The key of the extra metadata of a plan that says which program made it; Hudi reads none of it."""
_OWN_EXECUTION = "hudi_services.execution"
"""The key of the extra metadata that names an execution strategy of the operator's own."""


def _sort(options: Options) -> tuple[SortColumn, ...]:
    if options[clustering_keys.LAYOUT_STRATEGY] == clustering_keys.NO_LAYOUT:
        return ()
    return parse_sort_columns(options[clustering_keys.SORT_COLUMNS])


@dataclass(frozen=True, slots=True)
class PlanRules:
    """All rules that decide the content of a plan, together with the table itself.

    `strategy`: a short name or `package.module:Class`; `columns`, `sort_by`, `after`, `seed` and `options` are for the
    strategy, see `PlanContext`. `execution_strategy`: the class of Hudi that the plan names; `own_execution`: the
    operator's own instead of it, "" for none. Raises ConfigError when groups of several files meet an execution
    strategy for single files, as Hudi does, and for an execution strategy that cannot be loaded.
    """

    partitions: ClusteredPartitionRules = settings(ClusteredPartitionRules)
    sizes: SizeRules = settings(SizeRules)
    sort: tuple[SortColumn, ...] = computed(_sort, ())
    execution_strategy: str = value_of(
        clustering_keys.EXECUTION_STRATEGY_CLASS, lambda name: execution_called(name).in_plan
    )
    own_execution: str = value_of(clustering_keys.EXECUTION_STRATEGY_CLASS, lambda name: name if is_code(name) else "")
    layout: str = value_of(clustering_keys.LAYOUT_STRATEGY)
    strategy: str = value_of(clustering_keys.PLAN_STRATEGY_CLASS)
    columns: tuple[str, ...] = value_of(clustering_keys.PLAN_COLUMNS)
    sort_by: tuple[str, ...] = value_of(clustering_keys.FILE_SLICES_SORT_BY)
    after: str = value_of(clustering_keys.EARLIEST_COMMIT)
    seed: int = value_of(clustering_keys.PLAN_SEED)
    options: Mapping[str, str] = computed(Options.texts, {})

    def __post_init__(self) -> None:
        if self.sizes.whole_partitions and (not self.sort or self.strategy == "single_file"):
            scope, columns = clustering_keys.SORT_SCOPE.key, clustering_keys.SORT_COLUMNS.key
            raise ConfigError(
                f"{scope}=partition sorts the files of a partition together, and "
                + (f"the plan strategy {self.strategy} rewrites each by itself" if self.sort else "nothing is sorted"),
                hint=f"set {columns}, or leave {scope} out" if not self.sort else f"leave {scope} out",
            )
        if EXECUTIONS[self.execution_strategy].single_files and self.strategy != "single_file":
            execution, strategy = clustering_keys.EXECUTION_STRATEGY_CLASS, clustering_keys.PLAN_STRATEGY_CLASS
            raise ConfigError(
                f"{execution.key}={self.execution_strategy} rewrites each file by itself, and the plan strategy "
                f"{self.strategy} groups them",
                hint=f"set {strategy.key}=single_file",
            )


@dataclass(frozen=True, slots=True)
class PlannedClustering:
    """A plan, or None and the reason `why_empty`; `files` and `bytes` count the input of the plan."""

    plan: ClusteringPlan | None
    selection: ClusteringSelection
    partitions_considered: int
    why_empty: str = ""
    in_buckets: bool = False
    """Whether each file group is rewritten by itself, because it is a bucket."""

    @property
    def files(self) -> int:
        return sum(len(group.slices) for group in self.selection.groups)

    @property
    def bytes(self) -> int:
        return sum(group.size for group in self.selection.groups)

    @property
    def outputs(self) -> int:
        return sum(group.outputs for group in self.selection.groups)


def build(table: Snapshot, rules: PlanRules, *, explain: bool = False) -> PlannedClustering:
    """Plan a clustering of `table` as it is now. Nothing is written.

    `explain`: every file slice of the table gets a verdict, also in partitions that the filter leaves out. Raises
    ConfigError for a plan strategy that does not exist, or gives groups that are not allowed, and UnsupportedTable or
    CorruptFile for log files that cannot be merged.
    """
    everything = table.view.partitions()
    now = local_time(table.clock.now(), table.timeline.zone)
    chosen = select_partitions(everything, rules.partitions, now)
    try:
        selection, in_buckets = _selected(table, rules, chosen, explain=explain), False
    except _Buckets:
        rules = _within_buckets(rules)
        selection, in_buckets = _selected(table, rules, chosen, explain=explain, in_buckets=True), True
    for partition, view in table.view.each(sorted({*everything} - {*chosen})) if explain else ():
        selection.judge(view.latest_slices(partition), ClusteringReason.FILTERED_OUT.value)
    if not selection.groups:
        return PlannedClustering(None, selection, len(chosen), _why_empty(everything, chosen, selection.reasons))
    left_out = sorted({*everything} - {*chosen} | {*selection.left_out})
    plan = ClusteringPlan(
        groups=tuple(_group(table.storage, group) for group in selection.groups),
        strategy_class=rules.execution_strategy,
        strategy_params=to_strategy_params(rules.sort, rules.layout),
        missing_partitions=tuple(left_out) or None,
        extra={_PLANNED_BY: __version__, **({_OWN_EXECUTION: rules.own_execution} if rules.own_execution else {})},
    )
    return PlannedClustering(plan, selection, len(chosen), in_buckets=in_buckets)


class _Buckets(Exception):
    """A partition has the buckets of an index: the plan is made anew by other rules."""


def _selected(
    table: Snapshot, rules: PlanRules, chosen: Sequence[str], *, explain: bool, in_buckets: bool = False
) -> ClusteringSelection:
    """The groups of the plan, from one partition after the other. Raises _Buckets unless they are expected."""
    columns = TableColumns.of(table)

    def look(group: Sequence[FileSlice]) -> _Looked:
        # A group that cannot be read is no fault of the plan that does not take it.
        try:
            return fitting(table.slices, group, columns)
        except HudiServicesError as error:
            return error

    def fit(groups: Sequence[Sequence[FileSlice]]) -> list[Fitted]:
        return [partial(_fitted, looked) for looked in at_once(look, groups)]

    def judged() -> Iterator[tuple[Sequence[FileSlice], Eligibility]]:
        ledger, is_merged = table.ledger, table.config.is_merge_on_read
        pending = ledger.groups_in_compactions.keys(), ledger.groups_in_clusterings().keys()
        touched = touched_groups(table) if is_merged else frozenset()
        for partition, view in table.view.each(chosen):
            slices = view.latest_slices(partition)
            if not in_buckets and are_buckets(slices):
                raise _Buckets
            half_hidden = {(partition, file_id) for file_id in view.half_hidden(partition)}
            begun = {(partition, file_id) for file_id in view.uncommitted(partition)} if is_merged else ()
            uncommitted = touched.union(begun) if begun else touched
            limit, is_alone = rules.sizes.small_file_limit, in_buckets and not rules.sort
            yield slices, Eligibility(limit, *pending, half_hidden, uncommitted, merges_only=is_alone)

    return select(judged(), _strategy(table, rules), rules.sizes, fit, explain=explain)


_Looked = tuple[list[FileSlice], list[Unfit]] | HudiServicesError


def _fitted(looked: _Looked) -> tuple[list[FileSlice], list[Unfit]]:
    if isinstance(looked, HudiServicesError):
        raise looked
    refuse_unmerged(looked[1])
    return looked


def is_ours(plan: ClusteringPlan) -> bool:
    """Whether this program made the plan."""
    return _PLANNED_BY in plan.extra


def own_execution(plan: ClusteringPlan) -> str:
    """The execution strategy of the operator's own that the plan was made for; "" for none."""
    return plan.extra.get(_OWN_EXECUTION, "")


def _within_buckets(rules: PlanRules) -> PlanRules:
    """The rules for a table with a bucket index: each file group is rewritten by itself, however large, as in Hudi."""
    sizes = replace(rules.sizes, target_file=sys.maxsize)
    return replace(rules, strategy="single_file", sizes=sizes, execution_strategy=clustering_keys.SINGLE_FILE_EXECUTION)


def _strategy(table: Snapshot, rules: PlanRules) -> PlanStrategy:
    config = table.config
    fields = (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields
    context = PlanContext(
        max_group=rules.sizes.largest_group,
        ranges=ValueRanges(table),
        columns=rules.columns or tuple(column.name for column in rules.sort),
        key_column=fields[0] if fields else RECORD_KEY,
        sort_by=rules.sort_by,
        after=rules.after,
        seed=rules.seed,
        options=rules.options,
    )
    return plan_strategy(rules.strategy, context)


def _group(storage: Storage, group: PlannedGroup) -> ClusteringGroup:
    logs = [log for one in group.slices for log in one.log_files]
    log_bytes = sum(one.log_bytes for one in group.slices)
    read = float(sum(one.size for one in group.slices) // _MIB)
    written = float(group.size // _MIB)
    return ClusteringGroup(
        slices=tuple(_slice_info(storage, one) for one in group.slices),
        output_groups=group.outputs,
        metrics={
            "TOTAL_IO_READ_MB": read,
            "TOTAL_IO_WRITE_MB": written,
            "TOTAL_IO_MB": read + written,
            "TOTAL_LOG_FILES": float(len(logs)),
            "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        },
    )


def _slice_info(storage: Storage, file_slice: FileSlice) -> SliceInfo:
    base = storage.full_path(file_slice.base_file.path) if file_slice.base_file else ""
    # Newest first, as Hudi writes them.
    logs = tuple(storage.full_path(log.path) for log in reversed(file_slice.log_files))
    return SliceInfo(file_slice.partition, file_slice.file_id, base, logs)


def _why_empty(everything: Collection[str], chosen: Collection[str], reasons: Mapping[str, int]) -> str:
    if not everything:
        return "the table has no partition"
    if not chosen:
        return f"the partition filter leaves none of {len(everything)} partitions"
    if not reasons:
        return f"there is no file in {len(chosen)} partitions"
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    return f"no file slice to cluster in {len(chosen)} partitions: {counts}"


def sized_slices(table: Snapshot, plan: ClusteringPlan, source: str) -> list[tuple[FileSlice, ...]]:
    """As `input_slices`, with the sizes of the files that the table lists: a plan does not record them."""
    groups = input_slices(plan, source)
    partitions = sorted({one.partition for group in groups for one in group})
    table.view.load(partitions)
    sizes = {partition: table.view.sizes(partition) for partition in partitions}
    return [tuple(one.sized(sizes[one.partition]) for one in group) for group in groups]


def input_slices(plan: ClusteringPlan, source: str) -> list[tuple[FileSlice, ...]]:
    """The file slices of each group of a plan, ours or Hudi's; their sizes are not known. `source` names the plan.

    Raises UnsupportedTable for slices with bootstrap files and for groups over several partitions; CorruptFile for a
    plan without slices, for paths that are not base or log files of the table, for file groups that are named twice,
    and for a group with too many new files.
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
    if planned.bootstrap_file:
        raise UnsupportedTable(
            f"{source}: the slice of {planned.file_id} in {planned.partition} has a bootstrap file",
            hint="let Apache Hudi execute this plan",
        )
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


def check_order(columns: Sequence[SortColumn], layout: str, table: Snapshot) -> None:
    """Raise ConfigError for columns that have no order or do not exist, and for a layout that does not exist."""
    check_columns("sort column", [column.name for column in columns], table)
    if columns:
        row_order(layout, columns)


def check_columns(what: str, columns: Collection[str], table: Snapshot) -> None:
    """Raise ConfigError for a column that the table's base files lack, or that has no order; `what` names its role."""
    schema = table.schema
    if schema is None:
        return
    for column in columns:
        if column.startswith("_hoodie_"):
            continue
        found = schema.type_of(column)
        if found is None:
            known = ", ".join(schema.names[:20])
            raise ConfigError(f"the {what} {column} is not in the table", hint=f"its columns are {known}")
        if column in table.config.dropped_columns:
            raise ConfigError(
                f"the {what} {column} is not in the base files: it is a partition column "
                "(hoodie.datasource.write.drop.partition.columns=true)"
            )
        if found.is_nested:
            raise ConfigError(f"the {what} {column} is a {found.kind.value}, which has no order")
