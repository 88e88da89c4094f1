"""The options of commits and rollbacks: extra metadata, other writers, signs of life.

Sources: HoodieWriteConfig, HoodieTimeGeneratorConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from .option import ANY_VALUE, NEVER, Phase, Section, between
from .value_types import CENTURY_MINUTES, DAY_MILLIS, NO_NAMES, choice, integer

_COMMITS = Phase.WRITE | Phase.INGEST

EXTRA_METADATA = Section("Extra metadata of commits", _COMMITS, NEVER)
ROLLING_KEYS = EXTRA_METADATA(
    "hoodie.write.rolling.metadata.keys",
    NO_NAMES,
    "Keys of the extra metadata of commits (comma list) that each commit takes over from the commits before it, for "
    "example the checkpoint of a stream.",
    phase=_COMMITS | Phase.ARCHIVE | Phase.REPAIR,
    in_table=ANY_VALUE,
)
ROLLING_LOOKBACK = EXTRA_METADATA(
    "hoodie.write.rolling.metadata.timeline.lookback.commits",
    10,
    "How many commits are searched for these keys, the one that was completed last first.",
    parse=integer(1),
    in_table=between(1, 10_000),
)

OTHER_WRITERS = Section("Together with other writers", Phase.ANY, NEVER)
HEARTBEAT_INTERVAL_MILLIS = OTHER_WRITERS(
    "hoodie.client.heartbeat.interval_in_ms",
    60_000,
    "Milliseconds between two heartbeats of another writer.",
    parse=integer(1, DAY_MILLIS),
    in_table=between(1_000, 3_600_000),
)
HEARTBEAT_TOLERABLE_MISSES = OTHER_WRITERS(
    "hoodie.client.heartbeat.tolerable.misses",
    2,
    "The number of heartbeats that a writer may miss before it counts as dead.",
    parse=integer(0, 100_000),
    in_table=between(0, 100),
)
CLOCK_SKEW_MILLIS = OTHER_WRITERS(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    200,
    "The largest expected difference between the clocks of two writers, in milliseconds.",
    parse=integer(0, 3_600_000),
    in_table=between(0, 10_000),
)
CONFLICT_RETRIES = OTHER_WRITERS(
    "hoodie.write.num.retries.on.conflict.failures",
    3,
    "How often a write whose file groups another writer has changed meanwhile assigns its rows again. Hudi's default "
    "is 0: such a write fails.",
    parse=integer(0, 1_000),
    phase=Phase.INGEST,
    in_table=between(0, 10),
)
ABANDONED_AFTER_MINUTES = OTHER_WRITERS(
    "hudi.services.abandoned.after.minutes",
    60,
    "Minutes without a sign of life after which a write without a heartbeat counts as abandoned.",
    parse=integer(0, CENTURY_MINUTES),
    in_table=between(0, 10_080),
)
PUBLISH_LATE = OTHER_WRITERS(
    "hudi.services.publish.late",
    "AUTO",
    "How --publish late gets its instant: STAGED (at the commit; new files wait in a staging folder), RESERVED (at the "
    "beginning; Hudi's writers must not cluster), or AUTO: STAGED where a file can be renamed, or where Hudi clusters.",
    parse=choice("AUTO", "STAGED", "RESERVED"),
    phase=Phase.CLUSTERING,
)

ROLLBACK = Section("Rollback", Phase.REPAIR, ANY_VALUE)
ROLLBACK_USING_MARKERS = ROLLBACK(
    "hoodie.rollback.using.markers",
    True,
    "Whether a rollback of a failed write finds the files by markers; when false, by listing every partition.",
)
