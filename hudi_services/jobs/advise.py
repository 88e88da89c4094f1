"""The advise job: which clustering would let the predicates of queries read less, and whether it pays. Only reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..advising.earlier_clusterings import EarlierClustering, earlier_clusterings
from ..advising.event_log import logged_predicates
from ..advising.file_ranges import RangedSlice, SliceRanges
from ..advising.layout_search import (
    ERROR,
    KINDS,
    Floats,
    GroupSize,
    LayoutSearch,
    Prediction,
    Read,
    read_of,
    simplest_of,
)
from ..advising.predicates import Predicate
from ..advising.sampled_groups import RowLayout, Sampler
from ..advising.sql_clauses import NamedColumns
from ..advising.verdict import Gain, PayRule
from ..advising.workload import most_weighty, predicates_of
from ..bucket_index.signs import has_rings
from ..clustering.plan import PlannedClustering, PlanRules, build
from ..clustering.planned_slices import sized_slices
from ..computed_once import cached_property
from ..errors import ConfigError, HudiServicesError, NothingToDo
from ..file_names import new_file_id
from ..model import FileSlice
from ..options import clustering_keys as keys
from ..own_commands import setting
from ..rewriting.rewrite import estimate_group
from ..rewriting.task import RewriteTask
from ..runs.next_command import next_command
from ..runs.opening import open_supported
from ..runs.report import InOut, Report
from ..runs.report_rows import EarlierClusteringRow, LayoutRow, PredicateRow
from ..runs.request import AdviseRequest, ClusteringRequest, Mode
from ..runs.run import Run
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.support import are_buckets
from ..table.view import FileGroupId
from ..units import counted, size_text
from .clustering_tasks import rewrite_tasks

_LEAST_TARGET = 32 << 20
_TARGET_STEP = 4
"""Where no target size is set, that of the default is tried, and smaller ones, down to the least."""
_ESTIMATED_GROUPS = 3
"""The groups, the largest ones, of which rows are written to memory to know their new size."""
_RUNNERS_UP = 2
"""Layouts of each kind that are looked at closely."""
_IN_BUCKETS = "the file groups are the buckets of an index, so the key of a row decides its file, and no layout can"


def advise(request: AdviseRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Give advice in the report. Starts no JVM, and writes nothing.

    Raises ConfigError for predicates that cannot be read, and NothingToDo for a table without rows.
    """
    run = open_supported(request, storage, Report.start(request), reads_rows=True)
    return _Advice(run).give()


@dataclass(frozen=True)
class _Advice:
    """One run of advise."""

    run: Run[AdviseRequest]

    def give(self) -> Report:
        report, predicates = self.run.report, self.predicates
        with report.phase("look"):
            before = read_of(predicates, self.slices)
            self._warn()
            earlier = earlier_clusterings(self.run.table, predicates, self.reader)
            plan = self.planned
        report.show(EarlierClusteringRow, map(self._earlier_row, earlier))
        is_bucketed = has_rings(self.run.table) or are_buckets([one.slice for one in self.slices])
        in_buckets = _IN_BUCKETS if is_bucketed else ""
        if plan.plan is None or in_buckets:
            self._show(before, [], None)
            return self._ended(f"do not cluster: {in_buckets or plan.why_empty}")
        with report.phase("sample"):
            search = self._search()
        with report.phase("search"):
            outcomes = self._closely(search, self._finalists(search))
        best = self._best(outcomes)
        gain = self._gain(before, best)
        why_not = gain.why_not(PayRule(self.run.request.least_percent, self.run.request.executions))
        report.groups = len(plan.selection.groups)
        report.files = InOut(plan.files, best.new_files)
        report.bytes = InOut(plan.bytes, round(best.new_bytes))
        self._show(before, outcomes, best, is_advised=not why_not)
        return self._ended(f"do not cluster: {why_not}" if why_not else self._advice(before, best, gain))

    # ---- what is given

    @cached_property
    def predicates(self) -> list[Predicate]:
        request, schema = self.run.request, self.run.table.schema
        if schema is None:
            raise NothingToDo(f"{self.run.table.storage.root} has no schema yet: nothing was written to it")
        if request.event_log and request.predicates:
            raise ConfigError("predicates and an event log exclude each other", hint="give one of them")
        columns = NamedColumns(schema.types)
        if request.event_log:
            return most_weighty(logged_predicates(request.event_log, self.run.table.storage.root, columns))
        return most_weighty(predicates_of(request.predicates, columns))

    @cached_property
    def weights(self) -> Floats:
        return np.array([one.weight for one in self.predicates])

    @cached_property
    def reader(self) -> SliceRanges:
        schema = self.run.table.schema
        assert schema is not None, "the predicates were read by it"
        columns = sorted({column for one in self.predicates for column in one.columns})
        return SliceRanges(self.run.table, {column: schema.types[column] for column in columns})

    @cached_property
    def slices(self) -> list[RangedSlice]:
        """The slices that readers see. Raises NothingToDo for a table without any."""
        live = self.run.table.view.live_slices()
        if not live:
            raise NothingToDo(f"{self.run.table.storage.root} has no files")
        return self.reader.read(live)

    @cached_property
    def planned(self) -> PlannedClustering:
        """The groups of a clustering by the options in force; rows are sorted within groups whatever the layout."""
        rules = self.run.options.of(PlanRules)
        return build(self.run.table, replace(rules, sort=()) if not rules.sizes.whole_partitions else rules)

    # ---- the search

    def _search(self) -> LayoutSearch:
        by_group: dict[FileGroupId, RangedSlice] = {
            (one.slice.partition, one.slice.file_id): one for one in self.slices
        }
        groups = [
            [by_group[one.partition, one.file_id] for one in _newest_first(group.slices)]
            for group in self.planned.selection.groups
        ]
        taken = {(one.slice.partition, one.slice.file_id) for group in groups for one in group}
        kept = [one for one in self.slices if (one.slice.partition, one.slice.file_id) not in taken]
        sampled = Sampler(self.run.table, tuple(self.reader.columns)).draw(groups)
        self.run.report.rows = InOut(round(sum(one.rows for one in sampled)), None)
        return LayoutSearch(sampled, self.predicates, read_of(self.predicates, kept))

    @property
    def targets(self) -> list[int]:
        """The target sizes to try, the one in force first."""
        option, options = keys.TARGET_FILE_BYTES, self.run.options
        found = [options[option]]
        while not options.is_set(option) and found[-1] // _TARGET_STEP >= _LEAST_TARGET:
            found.append(found[-1] // _TARGET_STEP)
        return found

    def _finalists(self, search: LayoutSearch) -> list[Prediction]:
        """The best layouts of each kind at the best target size of the best of all, and that one at other sizes."""
        sizes = {target: search.planned_sizes(target) for target in self.targets}
        # Targets that give the same files are one.
        targets = {tuple(one.files for one in of_target): target for target, of_target in reversed(sizes.items())}
        tried = [
            search.outcome(layout, target, sizes[target])
            for layout in search.candidates()
            for target in sorted(targets.values(), reverse=True)
        ]
        best = self._best(tried)
        found = []
        for kind in KINDS:
            of_kind = [one for one in tried if one.layout.name == kind and one.target_bytes == best.target_bytes]
            found += sorted(of_kind, key=lambda one: float(self.weights @ one.read.bytes))[:_RUNNERS_UP]
        return found + [one for one in tried if one.layout == best.layout and one.target_bytes != best.target_bytes]

    def _closely(self, search: LayoutSearch, finalists: Sequence[Prediction]) -> list[Prediction]:
        """The finalists with the sizes that their new files would have, as far as that can be known."""
        found = []
        for number, one in enumerate(finalists):
            self.run.progress("search")(number, len(finalists))
            sizes = self._sizes(search, one.layout, one.target_bytes)
            found.append(search.outcome(one.layout, one.target_bytes, sizes))
        return found

    def _best(self, outcomes: Sequence[Prediction]) -> Prediction:
        """The outcome that reads least: by bytes for one target size, and between these by cost, which counts files.

        The target size in force wins where others are no better.
        """
        sizes = dict.fromkeys(one.target_bytes for one in outcomes)
        found = [simplest_of([one for one in outcomes if one.target_bytes == size], self.weights) for size in sizes]
        return min(found, key=lambda one: (one.cost(self.weights), -one.target_bytes))

    @cached_property
    def tasks(self) -> list[RewriteTask]:
        """The tasks of the plan, by the code that executes it; [] where no estimate can be made."""
        plan, run = self.planned.plan, self.run
        assert plan is not None, "there is a plan"
        request = ClusteringRequest(base_path=run.request.base_path, options=run.options, mode=Mode.SCHEDULE)
        try:
            clustering: Run[ClusteringRequest] = Run(request, run.table, run.report)
            return rewrite_tasks(clustering, "", plan, sized_slices(run.table, plan, "the plan"))
        except HudiServicesError as error:
            run.report.warn([f"no estimate of new files, so old bytes count: {error.message}"])
            return []

    def _sizes(self, search: LayoutSearch, layout: RowLayout, target_bytes: int) -> list[GroupSize]:
        planned = search.planned_sizes(target_bytes)
        largest = sorted(range(len(planned)), key=lambda at: -planned[at].bytes)[:_ESTIMATED_GROUPS]
        known: dict[int, GroupSize] = {}
        for at in largest if self.tasks else ():
            task = replace(
                self.tasks[at],
                sort=layout.sort,
                layout=layout.name,
                file_ids=tuple(new_file_id() for _ in range(planned[at].files)),
                settings=replace(self.tasks[at].settings, file_bytes=target_bytes),
            )
            try:
                estimate = estimate_group(task)
            except HudiServicesError as error:
                self.run.report.warn([f"no estimate of new files, so old bytes count: {error.message}"])
                return planned
            if estimate is not None and estimate.new_files:
                rows = sum(estimate.new_rows)
                shares = tuple(one / rows for one in estimate.new_rows) if rows else ()
                known[at] = GroupSize(len(estimate.new_files), float(sum(estimate.new_files)), shares)
        old = sum(planned[at].bytes for at in known)
        share = sum(one.bytes for one in known.values()) / old if old else 1.0
        return [known.get(at, GroupSize(one.files, one.bytes * share)) for at, one in enumerate(planned)]

    # ---- what is said

    def _gain(self, before: Read, after: Prediction) -> Gain:
        cost = self.planned.bytes + after.new_bytes
        return Gain(float(self.weights @ before.bytes), float(self.weights @ after.read.bytes), cost)

    def _advice(self, before: Read, best: Prediction, gain: Gain) -> str:
        saved = f"a run of the predicates then reads {size_text(round(gain.after))} where it reads "
        saved += f"{size_text(round(gain.before))} ({gain.percent:.0f} % less), and the cost of "
        saved += f"{size_text(round(gain.cost))} is saved after {counted(gain.executions or 0, 'run')}"
        worse = int((best.read.bytes * (1 - ERROR) > before.bytes).sum())
        if worse:
            of_all = f"{worse:,} of {counted(len(self.predicates), 'predicate')}"
            saved += f"; {of_all} then read{'s' * (worse == 1)} more than now"
        return f"cluster {_shown(best.layout)}: {saved}"

    def _command(self, outcome: Prediction) -> str:
        """The command that plans this clustering."""
        settings = []
        if outcome.layout.columns:
            settings.append((keys.SORT_COLUMNS.key, ",".join(outcome.layout.columns)))
        settings.append((keys.LAYOUT_STRATEGY.key, outcome.layout.name))
        if outcome.target_bytes != keys.TARGET_FILE_BYTES.default:
            settings.append((keys.TARGET_FILE_BYTES.key, str(outcome.target_bytes)))
        flags = " ".join(setting(key, value) for key, value in settings)
        return next_command(self.run.options, "schedule", self.run.table.storage.root, flags)

    def _ended(self, reason: str) -> Report:
        report = self.run.report
        report.completed(None)
        report.reason = reason
        return report

    def _show(
        self, before: Read, outcomes: Sequence[Prediction], best: Prediction | None, *, is_advised: bool = False
    ) -> None:
        read, total = (float(self.weights @ one) for one in (before.files, before.bytes))
        rows = [LayoutRow("as it is", "", None, len(self.slices), round(read, 1), round(total), 0.0, None, False, None)]
        for one in outcomes:
            gain = self._gain(before, one)
            rows.append(
                LayoutRow(
                    layout=one.layout.name,
                    columns=", ".join(one.layout.columns),
                    target_bytes=one.target_bytes,
                    new_files=one.new_files,
                    files_read=round(float(self.weights @ one.read.files), 1),
                    read_bytes=round(gain.after),
                    saved_percent=round(gain.percent, 1),
                    pays_after=gain.executions,
                    is_advised=is_advised and one is best,
                    command=self._command(one),
                )
            )
        self.run.report.show(LayoutRow, rows)
        after = before if best is None else best.read
        self.run.report.show(
            PredicateRow,
            (
                PredicateRow(
                    predicate=one.text,
                    weight=one.weight,
                    unknown=len(one.unknown),
                    files_before=round(float(before.files[at]), 1),
                    files_after=round(float(after.files[at]), 1),
                    before_bytes=round(float(before.bytes[at])),
                    after_bytes=round(float(after.bytes[at])),
                )
                for at, one in enumerate(self.predicates)
            ),
        )

    def _earlier_row(self, clustering: EarlierClustering) -> EarlierClusteringRow:
        totals = clustering.totals(self.weights)
        files_before, files_after, bytes_before, bytes_after = totals or (None, None, None, None)
        saved = None
        if bytes_before is not None and bytes_after is not None:
            saved = round(Gain(bytes_before, bytes_after, 0).percent, 1)
        return EarlierClusteringRow(
            instant=clustering.instant,
            layout=clustering.layout or keys.NO_LAYOUT,
            columns=", ".join(clustering.columns),
            old_files=clustering.old_files,
            new_files=clustering.new_files,
            files_before=None if files_before is None else round(files_before, 1),
            files_after=None if files_after is None else round(files_after, 1),
            before_bytes=None if bytes_before is None else round(bytes_before),
            after_bytes=None if bytes_after is None else round(bytes_after),
            saved_percent=saved,
            why=clustering.why or None,
        )

    def _warn(self) -> None:
        report, table = self.run.report, self.run.table
        unknown = sum(len(one.unknown) for one in self.predicates)
        if unknown:
            first = next(part for one in self.predicates for part in one.unknown)
            report.warn([f"statistics cannot decide {counted(unknown, 'part')} of the predicates, such as: {first}"])
        prefixes = [one for one in self.predicates if one.searches_prefix]
        if prefixes:
            report.warn(
                [
                    f"Hudi 1.x misses rows of {counted(len(prefixes), 'predicate')} when it skips files by statistics, "
                    f"such as of {prefixes[0].text}: for LIKE 'abc%' it leaves files out whose least value is longer "
                    "than abc (https://github.com/apache/hudi/issues/18791); a range has all rows, as x >= 'abc' AND "
                    "x < 'abd'"
                ]
            )
        if self.reader.from_footers:
            counts = ", ".join(
                f"{name} ({counted(files, 'file')})" for name, files in sorted(self.reader.from_footers.items())
            )
            index = "column_stats" if table.metadata is not None else "files,column_stats"
            report.warn(
                [
                    f"the metadata table has no statistics of {counts}: footers tell the ranges here, but Spark with "
                    f"Hudi reads these files whatever a predicate says of the columns (index-bootstrap --index {index} "
                    "adds statistics)"
                ]
            )


def _newest_first(slices: Sequence[FileSlice]) -> list[FileSlice]:
    return sorted(slices, key=lambda one: one.base_instant, reverse=True)


def _shown(layout: RowLayout) -> str:
    if not layout.columns:
        return "without a sort"
    name = {"ZORDER": "z-order", "HILBERT": "hilbert order"}.get(layout.name, "linear order")
    return f"in {name} by {', '.join(layout.columns)}"
