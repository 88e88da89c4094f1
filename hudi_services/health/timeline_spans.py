"""The instants of a timeline as spans of time: what ran, for how long, and what is pending."""

from dataclasses import dataclass
from datetime import datetime

from ..clock import parse_instant
from ..timeline.active import Timeline
from ..timeline.instant import Action, Instant

_MOST_INSTANTS, _MOST_PENDING = 400, 100


@dataclass(frozen=True, slots=True)
class InstantSpan:
    """One instant from its request to its completion; `end` is None for a pending one. Times are epoch milliseconds."""

    ts: str
    action: str
    """What was requested: a compaction, and not the commit that it ends as."""
    begin: float
    end: float | None


@dataclass(frozen=True, slots=True)
class TimelineSpans:
    """The newest instants, oldest first, and all pending ones, up to a limit."""

    spans: tuple[InstantSpan, ...]
    instants: int
    """All of the active timeline."""
    untimed: int
    """Of the newest ones: those whose names are no times."""


def timeline_spans(timeline: Timeline) -> TimelineSpans:
    """The spans of the instants; raises CorruptFile for a requested replacecommit that cannot be read."""
    pending = timeline.pending()[:_MOST_PENDING]
    chosen = sorted({*timeline.instants[-_MOST_INSTANTS:], *pending}, key=lambda instant: instant.order)
    spans = [_span(timeline, instant) for instant in chosen]
    known = tuple(span for span in spans if span is not None)
    return TimelineSpans(known, len(timeline.instants), len(spans) - len(known))


def _span(timeline: Timeline, instant: Instant) -> InstantSpan | None:
    begin = parse_instant(instant.ts, timeline.zone)
    if begin is None:
        return None
    end = parse_instant(instant.completion_time or "", timeline.zone) if instant.is_completed else None
    if instant.is_completed and end is None:
        end = begin
    if instant.action is Action.SAVEPOINT and end is not None:
        # It bears the time of the commit that it keeps, and was not requested then.
        begin = end
    return InstantSpan(instant.ts, _action(timeline, instant), _millis(begin), None if end is None else _millis(end))


def _action(timeline: Timeline, instant: Instant) -> str:
    began = timeline.began_as(instant)
    if began is Action.REPLACE_COMMIT and timeline.is_clustering(instant):
        return Action.CLUSTERING.value
    return began.value


def _millis(moment: datetime) -> float:
    return moment.timestamp() * 1000
