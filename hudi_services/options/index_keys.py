"""The options of record indexes: how they are built, and read.

Source: HoodieMetadataConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from .option import ANY_VALUE, NEVER, Phase, Section, between
from .value_types import factor, fraction, function_name, integer, one_of, size

RECORD_INDEX = Section("The record index", Phase.INDEX, NEVER)
_ADVISED = Phase.INDEX | Phase.PLAN | Phase.REPAIR
"""The phases that tell when the number of file groups is far from these options."""
RECORD_INDEX_MIN_GROUPS = RECORD_INDEX(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    10,
    "The smallest number of file groups of a new record index.",
    ("hoodie.metadata.record.index.min.filegroup.count",),
    parse=integer(1, 10_000),
    phase=_ADVISED,
    in_table=ANY_VALUE,
)
RECORD_INDEX_MAX_GROUPS = RECORD_INDEX(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    10_000,
    "The largest number of file groups of a new record index.",
    ("hoodie.metadata.record.index.max.filegroup.count",),
    parse=integer(1, 10_000),
    phase=_ADVISED,
    in_table=ANY_VALUE,
)
PARTITION_INDEX_MIN_GROUPS = RECORD_INDEX(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    1,
    "The smallest number of file groups that a record index of each partition gets for a partition; a partition that a "
    "write begins gets so many.",
    ("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
    parse=integer(1, 10_000),
    phase=_ADVISED | Phase.INGEST,
    in_table=between(1, 1_000),
)
PARTITION_INDEX_MAX_GROUPS = RECORD_INDEX(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    10,
    "The largest number of file groups that a new record index of each partition gets for a partition.",
    ("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
    parse=integer(1, 10_000),
    phase=_ADVISED,
    in_table=ANY_VALUE,
)
GROUP_COUNTS = (
    RECORD_INDEX_MIN_GROUPS,
    RECORD_INDEX_MAX_GROUPS,
    PARTITION_INDEX_MIN_GROUPS,
    PARTITION_INDEX_MAX_GROUPS,
)
"""The options that have one value where the number of file groups is given."""
RECORD_INDEX_GROWTH = RECORD_INDEX(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    "A new record index has room for this many times the present number of keys.",
    parse=factor,
    phase=_ADVISED,
    in_table=between(1, 100),
)
RECORD_INDEX_GROUP_BYTES = RECORD_INDEX(
    "hoodie.metadata.record.index.max.filegroup.size",
    1 << 30,
    "Bytes that a file group of the record index should not exceed, counted as 48 bytes for each key.",
    parse=size,
    phase=_ADVISED,
    in_table=between(1 << 20, 1 << 40),
)
BLOOM_FILTER_GROUPS = RECORD_INDEX(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    "The file groups of a new index of bloom filters.",
    parse=integer(1, 1_000),
)
EXPRESSION_INDEX_GROUPS = RECORD_INDEX(
    "hoodie.metadata.index.expression.file.group.count",
    2,
    "The file groups of a new expression index.",
    parse=integer(1, 1_000),
)
INDEX_HASH = RECORD_INDEX(
    "hudi.services.index.hash",
    "hudi",
    "The function that maps keys to file groups: Hudi's function (hudi), or package.module:function, which must return "
    "the same values.",
    parse=function_name("hudi"),
)
LOOKUP_ACCESS = RECORD_INDEX(
    "hudi.services.index.lookup.access",
    "auto",
    "How an HFile is read: all blocks (scan), only the blocks that may hold a wanted key (seek), or by the share of "
    "wanted keys (auto).",
    parse=one_of({"auto": "auto", "scan": "scan", "seek": "seek"}, "is none of auto, scan and seek"),
    phase=Phase.LOOKUP,
)
LOOKUP_SCAN_SHARE = RECORD_INDEX(
    "hudi.services.index.lookup.scan.share",
    0.01,
    "With auto: the share of wanted keys from which on all blocks of an HFile are read.",
    parse=fraction,
    phase=Phase.LOOKUP,
)
