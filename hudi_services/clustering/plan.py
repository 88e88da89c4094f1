"""From a table and rules to a clustering plan."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .._version import __version__
from ..base_files.slices import RECORD_KEY
from ..bucket_index.signs import has_rings
from ..clock import local_time
from ..codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo
from ..commit.conflicts import touched_groups
from ..concurrency import at_once
from ..errors import ConfigError, HudiServicesError
from ..model import FileSlice
from ..options import Options, clustering_keys, computed, settings, value_of
from ..options.clustering_keys import BUCKET_EXECUTIONS
from ..options.value_types import is_code
from ..rewriting.execution_strategies import EXECUTIONS, execution_called
from ..rewriting.inputs import TableColumns, Unfit, fitting, refuse_unmerged
from ..rows.row_order import row_order
from ..rows.sort_order import SortColumn, parse_sort_columns, to_strategy_params
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.support import are_buckets
from .bucket_plan import BucketRules, PlannedBuckets, select_buckets, why_no_buckets
from .eligibility import ClusteringReason, Eligibility
from .partitions import ClusteredPartitionRules, select_partitions
from .planned_slices import OWN_EXECUTION, PLANNED_BY
from .selection import ClusteringSelection, Fitted, PlannedGroup, SizeRules, select
from .strategies import PlanContext, PlanStrategy, plan_strategy
from .value_ranges import ValueRanges

_MIB = 1024 * 1024


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
    buckets: BucketRules = settings(BucketRules)
    """For a table with consistent hashing."""

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
    if has_rings(table):
        return _of_buckets(table, rules, everything, chosen, explain=explain)
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
        extra={PLANNED_BY: __version__, **({OWN_EXECUTION: rules.own_execution} if rules.own_execution else {})},
    )
    return PlannedClustering(plan, selection, len(chosen), in_buckets=in_buckets)


def _of_buckets(
    table: Snapshot, rules: PlanRules, everything: Sequence[str], chosen: Sequence[str], *, explain: bool
) -> PlannedClustering:
    """The plan of a table with consistent hashing, see `bucket_plan`."""
    selection = ClusteringSelection(verdicts=[] if explain else None)
    groups: list[PlannedBuckets] = []
    budget = sys.maxsize if rules.sizes.budget is None else rules.sizes.budget
    why = why_no_buckets(table)
    ledger = table.ledger
    pending = ledger.groups_in_compactions.keys(), ledger.groups_in_clusterings().keys()
    for partition, view in table.view.each(chosen) if not why else ():
        half_hidden = {(partition, file_id) for file_id in view.half_hidden(partition)}
        eligibility, slices = Eligibility(sys.maxsize, *pending, half_hidden), view.latest_slices(partition)
        found = select_buckets(table, partition, slices, rules.buckets, eligibility, selection, sorts=bool(rules.sort))
        # A partition is taken whole: see `bucket_plan`.
        size = sum(one.group.input for one in found)
        fits = (not groups or len(groups) + len(found) <= rules.sizes.max_groups) and size <= budget
        beyond = ClusteringReason.GROUP_CAP if size <= budget else ClusteringReason.BUDGET
        budget -= size if fits else 0
        for one in found:
            if fits:
                selection.judge(one.group.slices, ClusteringReason.PICKED.value, len(groups))
                groups.append(one)
            else:
                selection.judge(one.group.slices, beyond.value)
    selection.groups = tuple(one.group for one in groups)
    if not groups:
        why = why or _why_empty(everything, chosen, selection.reasons)
        return PlannedClustering(None, selection, len(chosen), why)
    partitions = {one.ring.partition for one in groups}
    plan = ClusteringPlan(
        groups=tuple(replace(_group(table.storage, one.group), extra=one.extra) for one in groups),
        strategy_class=BUCKET_EXECUTIONS[0],
        strategy_params=to_strategy_params(rules.sort, rules.layout),
        missing_partitions=tuple(sorted({*everything} - partitions)) or None,
        extra={PLANNED_BY: __version__},
    )
    return PlannedClustering(plan, selection, len(chosen))


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
    source = file_slice.base_file.source if file_slice.base_file is not None else None
    return SliceInfo(file_slice.partition, file_slice.file_id, base, logs, "" if source is None else source.uri)


def _why_empty(everything: Collection[str], chosen: Collection[str], reasons: Mapping[str, int]) -> str:
    if not everything:
        return "the table has no partition"
    if not chosen:
        return f"the partition filter leaves none of {len(everything)} partitions"
    if not reasons:
        return f"there is no file in {len(chosen)} partitions"
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    return f"no file slice to cluster in {len(chosen)} partitions: {counts}"


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
