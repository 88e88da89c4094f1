"""The options of cleans.

Source: HoodieCleanConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from .option import ANY_VALUE, NEVER, Option, Phase, Section, between
from .value_types import CENTURY_HOURS, CENTURY_MINUTES, NO_NAMES, choice, integer, pattern

_RETAINING = Phase.CLEAN | Phase.ARCHIVE | Phase.WRITE | Phase.INGEST

CLEANING = Section("Cleaning", Phase.CLEAN, ANY_VALUE)
CLEAN_POLICY = CLEANING(
    "hoodie.clean.policy",
    "KEEP_LATEST_COMMITS",
    "The cleaning policy; when it is not set, and only one of the three numbers below is set, the policy of that "
    "number.",
    ("hoodie.cleaner.policy",),
    parse=choice("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    phase=_RETAINING,
)
CLEAN_COMMITS_RETAINED = CLEANING(
    "hoodie.clean.commits.retained",
    10,
    "KEEP_LATEST_COMMITS: the number of latest commits that keep all their files.",
    ("hoodie.cleaner.commits.retained",),
    parse=integer(1),
    phase=_RETAINING,
)
CLEAN_HOURS_RETAINED = CLEANING(
    "hoodie.clean.hours.retained",
    24,
    "KEEP_LATEST_BY_HOURS: the number of hours, back from now; commits that began since then keep all their files.",
    ("hoodie.cleaner.hours.retained",),
    parse=integer(1, CENTURY_HOURS),
    phase=_RETAINING,
)
CLEAN_FILE_VERSIONS_RETAINED = CLEANING(
    "hoodie.clean.fileversions.retained",
    3,
    "KEEP_LATEST_FILE_VERSIONS: the number of file slices kept in each file group.",
    ("hoodie.cleaner.fileversions.retained",),
    parse=integer(1),
    phase=_RETAINING,
)
CLEAN_INCREMENTAL = CLEANING(
    "hoodie.clean.incremental.enabled",
    True,
    "Plan only for partitions that changed since the last clean.",
    ("hoodie.cleaner.incremental.mode",),
)
CLEAN_TRIGGER_STRATEGY = CLEANING(
    "hoodie.clean.trigger.strategy",
    "NUM_COMMITS",
    "What a new plan waits for; NUM_COMMITS, a number of commits, is the only choice.",
    parse=choice("NUM_COMMITS"),
)
CLEAN_TRIGGER_COMMITS = CLEANING(
    "hoodie.clean.trigger.max.commits",
    1,
    "The number of completed commits since the last clean that a new clean needs.",
    ("hoodie.clean.max.commits",),
    parse=integer(0),
)
CLEAN_MULTIPLE = CLEANING(
    "hoodie.clean.multiple.enabled",
    False,
    "Plan a new clean even when a clean is pending; otherwise only the pending clean is finished.",
    ("hoodie.clean.allow.multiple",),
)
CLEAN_FAILED_WRITES = CLEANING(
    "hoodie.clean.failed.writes.policy",
    "EAGER",
    "LAZY: a clean first rolls back writes whose heartbeat has ended; with several writers it always does so. A write "
    "rolls them back before it begins, unless this is NEVER; with a lock provider it refuses EAGER.",
    ("hoodie.cleaner.policy.failed.writes",),
    parse=choice("EAGER", "LAZY", "NEVER"),
    phase=Phase.CLEAN | Phase.INGEST,
)
CLUSTERING_EXPIRES = CLEANING(
    "hoodie.clustering.enable.expirations",
    False,
    "Whether a clean that rolls failed writes back does so with pending clusterings, too, plan and all, when they give "
    "no sign of life.",
)
CLUSTERING_EXPIRY_MINUTES = CLEANING(
    "hoodie.clustering.expiration.threshold.mins",
    60,
    "The least age of a clustering that is rolled back in this way, in minutes.",
    parse=integer(0, CENTURY_MINUTES),
    in_table=between(1, 10_080),
)
CLEAN_MAX_COMMITS: Option[int | None] = CLEANING(
    "hoodie.clean.max.commits.to.clean",
    None,
    "The number of commits by which one clean may advance the earliest commit to retain; when not set, no limit.",
    parse=integer(1),
)
CLEAN_PARTITION_REGEX = CLEANING(
    "hoodie.clean.partition.filter.regex",
    "",
    "With incremental cleaning off: clean only partitions whose whole path matches this regular expression.",
    ("hoodie.cleaner.partition.filter.regex",),
    parse=pattern,
    in_table=NEVER,
)
CLEAN_PARTITIONS_SELECTED = CLEANING(
    "hoodie.clean.partition.filter.selected",
    NO_NAMES,
    "With incremental cleaning off: clean only these partitions (comma list); overrides the regular expression.",
    ("hoodie.cleaner.partition.filter.selected",),
)
EMPTY_CLEAN_HOURS = CLEANING(
    "hoodie.write.empty.clean.interval.hours",
    -1,
    "Above 0: when nothing can be deleted and the last clean is more than this many hours ago, write a clean without "
    "files, so that the next clean lists less.",
    parse=integer(-1, CENTURY_HOURS),
)
