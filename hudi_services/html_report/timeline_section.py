"""The section of the page about the timeline: what ran, what is pending, and what holds back archive and clean."""

from collections.abc import Iterator

from ..cleaning.retention import Policy
from ..clock import duration, parse_instant
from ..health.examination import Examination
from ..health.timeline_spans import TimelineSpans
from ..timeline.instant import Action
from ..units import counted
from .charts import NARROW, WIDE, Line, durations_chart, timeline_chart
from .markup import Child, Element, element, table
from .sections import figure, section, sorry
from .table_state import TableState

_ROWS = 20
"""How many pending instants are listed."""


def timeline_section(state: TableState) -> Element:
    """The picture, the lists and the sentences."""
    title, spans = "Timeline", state.spans
    if spans is None:
        return section(title, sorry(f"The timeline could not be read: {state.unable['timeline']}"))
    if not spans.spans:
        return section(title, sorry("The timeline has no instants."))
    return section(title, *_bounds(state), *_pictures(state, spans), _pending(state))


def _pictures(state: TableState, spans: TimelineSpans) -> Iterator[Element]:
    lines = list(_lines(state))
    now = state.seen.now_millis
    count = len(spans.spans)
    which = (
        f"The newest {count:,} of {spans.instants:,} instants."
        if count < spans.instants
        else f"{counted(count, 'instant')}."
    )
    charts = [
        figure(
            "Instants by action",
            "Look for orange: what is pending holds back what comes after it. Each mark is a request, each bar lasts "
            f"until the completion. {which}",
            (timeline_chart(spans.spans, now, lines, WIDE), "wide"),
            (timeline_chart(spans.spans, now, lines, NARROW), "narrow"),
            whole=True,
        )
    ]
    if any(span.end is not None and span.action != Action.SAVEPOINT.value for span in spans.spans):
        charts.append(
            figure(
                "How long instants took",
                "Look for dots far right of the others of their action.",
                (durations_chart(spans.spans), ""),
            )
        )
    yield element("div", *charts, class_="charts")


def _lines(state: TableState) -> Iterator[Line]:
    """Where the archive and cleans stop."""
    seen = state.seen
    held, earliest = seen.archival.held, seen.horizon.earliest
    for ts, label in (
        (held.ts if held is not None else None, "the archive stops here"),
        (earliest.ts if earliest is not None else None, "cleans keep files from here on"),
    ):
        moment = parse_instant(ts or "", seen.table.timeline.zone)
        if moment is not None:
            yield Line(moment.timestamp() * 1000, label)


def _bounds(state: TableState) -> Iterator[Element]:
    yield element("p", element("strong", "Archive: "), _archive(state.seen))
    yield element("p", element("strong", "Cleans: "), _cleans(state.seen))


def _archive(seen: Examination) -> str:
    found = seen.archival
    if found.held is not None:
        since = f", {found.held.ts}" if found.held.ts else ""
        return (
            f"{found.commits} commits are on the timeline, where {found.least} would be enough. They are held by "
            f"{found.held.why.value}{since}."
        )
    if found.instants:
        instants = counted(len(found.instants), "instant")
        return f"An archival would move {instants} to the archive now. Nothing holds it back."
    return f"Nothing holds it back: {found.why_empty}."


def _cleans(seen: Examination) -> str:
    retention, found = seen.retention, seen.horizon
    holder, earliest = found.held_back_by, found.earliest
    if holder is not None:
        kept = f"they keep all files from {earliest.ts} on" if earliest is not None else "they delete nothing"
        age = duration(seen.age_minutes(holder) * 60_000)
        return f"The pending {holder.action.value} {holder.ts}, {age} old, holds them back: {kept}."
    if earliest is not None:
        return f"Nothing holds them back: they keep all files from {earliest.ts} on."
    if retention.policy is Policy.FILE_VERSIONS:
        return f"Nothing holds them back: they keep the newest {retention.versions} versions of each file group."
    return "They would delete nothing now: all commits are among those that they retain."


def _pending(state: TableState) -> Element | None:
    findings = state.seen.pending
    if not findings:
        return element("p", element("strong", "Pending: "), "nothing.")
    rows: list[list[Child]] = [
        [
            element("code", one.instant.ts),
            one.instant.action.value,
            duration(one.age_millis),
            one.decision.value,
            one.why,
        ]
        for one in findings[:_ROWS]
    ]
    left = f" The first {_ROWS} of {len(findings)}." if len(findings) > _ROWS else ""
    return table(
        ("instant", "action", "age", "what recover does", "because"), rows, f"What is pending, the oldest first.{left}"
    )
