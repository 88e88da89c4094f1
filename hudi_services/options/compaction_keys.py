"""The options of compactions: those of the table, and of its metadata table.

Sources: HoodieCompactionConfig, HoodieMetadataConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from .option import ANY_VALUE, Option, Phase, Section
from .value_types import choice, integer, one_of, size

_COMPACTION_PACKAGE = "org.apache.hudi.table.action.compact.strategy"
_COMPACTION_NAMES = {
    "log_file_size": "LogFileSizeBased",
    "log_file_number": "LogFileNumBased",
    "bounded_io": "BoundedIO",
    "unbounded": "UnBounded",
    "day_based": "DayBased",
}
_COMPACTION_CLASSES = {name: name for name in _COMPACTION_NAMES} | {
    f"{_COMPACTION_PACKAGE}.{of_class}CompactionStrategy": name for name, of_class in _COMPACTION_NAMES.items()
}

TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME")
"""The names of CompactionTriggerStrategy."""


def _compaction(value: str) -> str:
    if "," in value:
        raise ValueError("are several strategies one after the other, which only Apache Hudi takes: name one")
    return _one_compaction(value)


_one_compaction = one_of(
    _COMPACTION_CLASSES,
    f"is none of {', '.join(_COMPACTION_NAMES)}, and no class of Hudi's for one of these",
    {
        f"{_COMPACTION_PACKAGE}.{name}CompactionStrategy": "chooses partitions by a rule that only Apache Hudi has: "
        "use day_based"
        for name in ("BoundedPartitionAware", "UnBoundedPartitionAware", "PartitionRegexBased")
    },
)


METADATA_TABLE = Section("Clustering: the metadata table", Phase.WRITE | Phase.INGEST | Phase.ARCHIVE, ANY_VALUE)
METADATA_COMPACT_COMMITS = METADATA_TABLE(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    "`execute` and `compact` compact the metadata table after this many delta commits since its last compaction.",
    parse=integer(1),
)
METADATA_COMPACT_TRIGGER = METADATA_TABLE(
    "hoodie.metadata.compact.trigger.strategy",
    "NUM_COMMITS",
    "When the metadata table is compacted: after delta commits, after a time, or after one of them or both.",
    parse=choice(*TRIGGERS),
)
METADATA_COMPACT_SECONDS = METADATA_TABLE(
    "hoodie.metadata.compact.max.delta.seconds",
    7_200,
    "TIME_ELAPSED, NUM_OR_TIME, NUM_AND_TIME: the metadata table is compacted only after this many seconds since its "
    "last compaction.",
    parse=integer(1),
    phase=Phase.WRITE | Phase.INGEST,
)
METADATA_CLEANS_FOLLOW = METADATA_TABLE(
    "hoodie.metadata.derive.from.datatable.clean.policy",
    True,
    "Whether the metadata table is cleaned by the policy of the table's cleans; otherwise two file slices of each file "
    "group are kept.",
)

COMPACTION = Section("Compaction", Phase.COMPACTION, ANY_VALUE)
COMPACTION_STRATEGY = COMPACTION(
    "hoodie.compaction.strategy",
    "log_file_size",
    "Which file groups are compacted: log_file_size (those with the most log bytes first), log_file_number, "
    "bounded_io, unbounded, day_based, or Hudi's class for one of these.",
    parse=_compaction,
)
COMPACTION_TRIGGER = COMPACTION(
    "hoodie.compact.inline.trigger.strategy",
    "NUM_COMMITS",
    "When a plan is written: after delta commits, after a time, or after one of them or both.",
    parse=choice(*TRIGGERS),
    phase=Phase.COMPACTION | Phase.ARCHIVE,
)
COMPACTION_COMMITS = COMPACTION(
    "hoodie.compact.inline.max.delta.commits",
    5,
    "Write a plan only after this many delta commits since the last compaction.",
    parse=integer(1),
    phase=Phase.COMPACTION | Phase.ARCHIVE,
)
COMPACTION_SECONDS = COMPACTION(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    "TIME_ELAPSED, NUM_OR_TIME, NUM_AND_TIME: write a plan only after this many seconds since the last compaction.",
    parse=integer(1),
)
COMPACTION_IO = COMPACTION(
    "hoodie.compaction.target.io",
    500 * 1024,
    "log_file_size, log_file_number, bounded_io: megabytes that one compaction reads and writes.",
    parse=integer(0),
)
COMPACTION_BUDGET: Option[int | None] = COMPACTION(
    "hudi.services.compaction.plan.max.bytes",
    None,
    "Bytes of base and log files for a whole plan, whatever the strategy; file groups that do not fit are left for the "
    "next plan.",
    parse=size,
)
COMPACTION_LOG_BYTES = COMPACTION(
    "hoodie.compaction.logfile.size.threshold",
    0,
    "log_file_size: the least bytes of log files of a file group.",
    parse=integer(0),
)
COMPACTION_LOG_FILES = COMPACTION(
    "hoodie.compaction.logfile.num.threshold",
    0,
    "log_file_number: the least number of log files of a file group.",
    parse=integer(0),
)
COMPACTION_DAYS = COMPACTION(
    "hoodie.compaction.daybased.target.partitions", 10, "day_based: the number of newest partitions.", parse=integer(1)
)
