"""All that the page shows of one table, gathered once; what cannot be told is told with the reason."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import HudiServicesError
from ..health.clustering_gains import ClusteringGain, clustering_gains
from ..health.commit_facts import CommitFacts, commit_facts
from ..health.examination import Examination
from ..health.file_facts import FileFacts
from ..health.range_facts import RangeFacts, range_facts
from ..health.row_facts import RowFacts, row_facts
from ..health.timeline_spans import TimelineSpans, timeline_spans

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableState:
    """The facts about a table; None where they could not be had.

    `unable` has the reason, by the name of the fact.
    """

    seen: Examination
    files: FileFacts | None
    commits: CommitFacts | None
    rows: RowFacts | None
    ranges: RangeFacts | None
    clusterings: list[ClusteringGain] | None
    spans: TimelineSpans | None
    unable: dict[str, str] = field(default_factory=dict)


def table_state(seen: Examination) -> TableState:
    """Gather them: the checks of doctor share what they have looked up."""
    table, unable = seen.table, dict[str, str]()

    def gathered(name: str, gather: Callable[[], T]) -> T | None:
        try:
            return gather()
        except HudiServicesError as error:
            unable[name] = error.line
            return None

    files = gathered("files", lambda: seen.files)
    commits = rows = None
    if files is not None:
        live, slices = files.live_bytes, files.slices
        commits = gathered("commits", lambda: commit_facts(table, live))
        known = commits.rows_of if commits is not None else {}
        rows = gathered("rows", lambda: row_facts(table, slices, known))
    ranges = gathered("ranges", lambda: range_facts(table, seen.options, seen.sample))
    bytes_of = commits.bytes_of if commits is not None else {}
    clusterings = gathered("clusterings", lambda: clustering_gains(table, bytes_of))
    spans = gathered("timeline", lambda: _spans(seen))
    return TableState(seen, files, commits, rows, ranges, clusterings, spans, unable)


def _spans(seen: Examination) -> TimelineSpans:
    """The spans; and what the section of the timeline tells beside them is looked up here, where it may fail."""
    _ = seen.archival, seen.horizon, seen.pending
    return timeline_spans(seen.table.timeline)
