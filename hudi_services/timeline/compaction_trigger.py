"""When a compaction is due: hoodie.compact.inline.trigger.strategy, and that of the metadata table.

Source: CompactionTriggerStrategy, ScheduleCompactionActionExecutor.needCompact of Apache Hudi.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..clock import parse_instant
from ..options import compaction_keys, value_of
from .active import Timeline
from .instant import Instant

AFTER_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a plan waits for; `commits` are delta commits."""

    kind: str = value_of(compaction_keys.COMPACTION_TRIGGER)
    commits: int = value_of(compaction_keys.COMPACTION_COMMITS)
    seconds: int = value_of(compaction_keys.COMPACTION_SECONDS)

    def why_not_due(self, timeline: Timeline, deltas: Sequence[Instant], since: Instant | None, now: datetime) -> str:
        """The reason to wait when too few delta commits, or too little time, have passed; else "".

        `deltas` are the completed delta commits after the compaction `since`, or all of them without one.
        """
        begin = since or (deltas[0] if deltas else None)
        if begin is None:
            return "there is no delta commit"
        after = f"since the compaction {since.ts}" if since is not None else "on the timeline"
        few = f"{len(deltas)} of {self.commits} delta commits {after}" if len(deltas) < self.commits else ""
        passed = _seconds_since(timeline, begin, now)
        early = f"{int(passed)} of {self.seconds} seconds since {begin.ts}" if passed < self.seconds else ""
        if self.kind == "TIME_ELAPSED":
            return early
        if self.kind == "NUM_OR_TIME":
            return f"{few}, and {early}" if few and early else ""
        if self.kind == "NUM_AND_TIME":
            return few or early
        return few

    @property
    def counts(self) -> int | None:
        """How many delta commits every plan waits for; None where a plan may be due after fewer, or after a request."""
        return self.commits if self.kind in ("NUM_COMMITS", "NUM_AND_TIME") else None


@dataclass(frozen=True, slots=True)
class MetadataTrigger(Trigger):
    """What a compaction of the metadata table waits for."""

    kind: str = value_of(compaction_keys.METADATA_COMPACT_TRIGGER)
    commits: int = value_of(compaction_keys.METADATA_COMPACT_COMMITS)
    seconds: int = value_of(compaction_keys.METADATA_COMPACT_SECONDS)


def _seconds_since(timeline: Timeline, begin: Instant, now: datetime) -> float:
    """The age of an instant; endless for one that is not a time, as the first ones of a metadata table.

    Instants in a time zone that is not known do not tell their age: then it is that of their oldest file.
    """
    moment = parse_instant(begin.ts, timeline.zone)
    if moment is None:
        return float("inf")
    if timeline.zone != "UTC":
        oldest = min(timeline.written[one.file_name] for one in timeline.files_of(begin.ts, begin.action))
        moment = datetime.fromtimestamp(oldest / 1000, UTC)
    return (now - moment).total_seconds()
