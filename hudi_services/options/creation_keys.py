"""The options that say what a new table is.

Sources: DataSourceOptions, HoodieTableConfig and HoodieWriteConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

import enum

from .option import NEVER, KeptProperty, Phase, Section
from .value_types import NO_NAMES, choice

KEY_GENERATORS = "org.apache.hudi.keygen."
"""The package of Hudi's key generators."""


class KeyGenerator(enum.Enum):
    """How record key and partition path of a row are made; the name is Hudi's type, the value its class."""

    SIMPLE = "SimpleKeyGenerator"
    COMPLEX = "ComplexKeyGenerator"
    NON_PARTITION = "NonpartitionedKeyGenerator"
    TIMESTAMP = "TimestampBasedKeyGenerator"
    CUSTOM = "CustomKeyGenerator"


_BY_CLASS = {
    KEY_GENERATORS + name: kind.name
    for kind in KeyGenerator
    for name in (kind.value, kind.value.replace("KeyGenerator", "AvroKeyGenerator"))
}
_UNDONE = ("GLOBAL_DELETE", "AUTO_RECORD", "HOODIE_TABLE_METADATA", "SPARK_SQL", "USER_PROVIDED", "STREAMER_TEST")
_UNDONE_CLASSES = ("GlobalDelete", "GlobalAvroDelete", "AutoRecordGenWrapper", "SqlKey", "UuidKey", "MergeIntoKey")
_AVRO = "_AVRO"
"""The end of the types of generators for Avro records, which make the same keys."""


def _generator(value: str) -> str:
    """The name of a `KeyGenerator`; "" for none."""
    found = key_generator_type(value)
    if found.startswith(_UNDONE) or value.rpartition(".")[2].startswith(_UNDONE_CLASSES):
        raise ValueError("is a key generator that only Apache Hudi has")
    if value and found not in KeyGenerator.__members__:
        known = ", ".join(KeyGenerator.__members__)
        raise ValueError(f"is none of {known}, and no class of these key generators")
    return found


def key_generator_type(named: str) -> str:
    """The type of a key generator that a table names by type or class; a name that is not known as it is."""
    return _BY_CLASS.get(named, named.upper()).removesuffix(_AVRO)


TIME_PREFIX = "hoodie.keygen.timebased."
TIME_PREFIXES = (TIME_PREFIX, "hoodie.deltastreamer.keygen.timebased.")
"""Of the options of partition paths that are times; the second one is older, and counts less."""
TIME_PROPERTIES = tuple(KeptProperty(prefix, Phase.CREATE | Phase.INGEST) for prefix in TIME_PREFIXES)

CREATION = Section("A new table", Phase.CREATE, NEVER)
TABLE_NAME = CREATION("hoodie.table.name", "", "The name of a new table; when empty, the name of its folder.")
DATABASE_NAME = CREATION("hoodie.database.name", "", "The database of a new table.")
TABLE_TYPE = CREATION(
    "hoodie.datasource.write.table.type",
    "COPY_ON_WRITE",
    "The type of a new table.",
    ("hoodie.table.type", "hoodie.datasource.write.storage.type"),
    parse=choice("COPY_ON_WRITE", "MERGE_ON_READ"),
)
TABLE_VERSION = CREATION(
    "hoodie.write.table.version",
    "9",
    "The version of a new table: 6 for Hudi 0.14 and 0.15, 8 for 1.0, 9 for 1.1 and 1.2.",
    parse=choice("6", "8", "9"),
)
RECORD_KEY = CREATION(
    "hoodie.datasource.write.recordkey.field",
    NO_NAMES,
    "The columns of the record key.",
    ("hoodie.table.recordkey.fields",),
)
PARTITION_BY = CREATION(
    "hoodie.datasource.write.partitionpath.field",
    NO_NAMES,
    "The columns of the partition path; for a custom key generator with a kind, as `day:SIMPLE` or `ts:TIMESTAMP`: "
    "tables of version 6 do not store the kinds, and each write gives them.",
    ("hoodie.table.partition.fields",),
)
ORDERING = CREATION(
    "hoodie.table.ordering.fields",
    NO_NAMES,
    "The columns that decide between two rows of one key; several only from version 9 on.",
    ("hoodie.datasource.write.precombine.field", "hoodie.table.precombine.field", "hoodie.payload.ordering.field"),
)
KEY_GENERATOR = CREATION(
    "hoodie.datasource.write.keygenerator.class",
    "",
    "The key generator, by Hudi's class or type; when empty, it goes by the numbers of columns.",
    ("hoodie.datasource.write.keygenerator.type", "hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"),
    parse=_generator,
)
SHORT_COMPLEX_KEYS = CREATION(
    "hoodie.write.complex.keygen.new.encoding",
    "",
    "Table versions 6 and 8: whether the complex key generator makes `5` of a single record key field, and not `id:5`; "
    "when empty, it does. Where the table has rows, they decide.",
    parse=choice("", "TRUE", "FALSE"),
)
HIVE_STYLE = CREATION(
    "hoodie.datasource.write.hive_style_partitioning",
    False,
    "Whether partition paths have the names of the columns (`day=2026-01-01`).",
)
URL_ENCODE = CREATION(
    "hoodie.datasource.write.partitionpath.urlencode",
    False,
    "Whether special characters in partition paths are encoded.",
)
META_FIELDS = CREATION("hoodie.populate.meta.fields", True, "Whether the rows of a new table have Hudi's columns.")
DROP_COLUMNS = CREATION(
    "hoodie.datasource.write.drop.partition.columns",
    False,
    "Whether files do not have the partition columns: readers get their values from the partition paths, as texts.",
)
METAFILE_IN_BASE_FORMAT = CREATION(
    "hoodie.partition.metafile.use.base.format", False, "Whether the metadata files of partitions are parquet files."
)
TIMELINE_ZONE = CREATION(
    "hoodie.table.timeline.timezone",
    "LOCAL",
    "The time zone of the instants of a new table.",
    parse=choice("LOCAL", "UTC"),
)
CHANGE_DATA = CREATION(
    "hoodie.table.cdc.enabled", False, "Change data capture: whether merges into base files log the changes of rows."
)
CHANGE_DATA_MODE = CREATION(
    "hoodie.table.cdc.supplemental.logging.mode",
    "DATA_BEFORE_AFTER",
    "What change data capture logs of a change beside the key: nothing, the row before it, or both rows.",
    parse=choice("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"),
)
MERGE_MODE = CREATION(
    "hoodie.write.record.merge.mode",
    "",
    "Which of two rows of one key counts: the one with the greater ordering value, or the newer one; when empty, the "
    "first with an ordering column, else the second.",
    ("hoodie.record.merge.mode",),
    parse=choice(
        *("", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"),
        undone={"CUSTOM": "merges rows by a class of users, which only Apache Hudi runs"},
    ),
)
PAYLOAD_CLASS = CREATION(
    "hoodie.datasource.write.payload.class",
    "",
    "The payload class, in place of the merge mode: DefaultHoodieRecordPayload or OverwriteWithLatestAvroPayload.",
    ("hoodie.compaction.payload.class",),
)
