"""The options of new base files, and of the tasks that write them.

Sources: HoodieStorageConfig, HoodieIndexConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from ..limits import LEAST_BLOOM_RATE, MOST_BLOOM_ENTRIES
from .option import ANY_VALUE, NEVER, Option, Phase, Section, between
from .value_types import choice, fraction, integer, memory, seconds, size, url

_PARQUET_CODECS = {
    "": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
}


def _codec(value: str) -> str:
    if value.lower() not in _PARQUET_CODECS:
        known = ", ".join(sorted(filter(None, _PARQUET_CODECS)))
        raise ValueError(f"is no codec that every Hudi reader has: the choice is {known}")
    return _PARQUET_CODECS[value.lower()]


LOCAL = "local"


def _engine(value: str) -> str:
    if value.lower() not in ("spark", LOCAL):
        raise ValueError("is neither spark nor local")
    return value.lower()


_COMMITS = Phase.WRITE | Phase.INGEST

FILES = Section("Clustering: new files", _COMMITS, ANY_VALUE)
MAX_PARALLELISM: Option[int | None] = FILES(
    "hoodie.clustering.max.parallelism",
    None,
    "The largest number of groups, or of tasks of an index build, that run at once; when not set, no limit.",
    parse=integer(1, 1_000_000),
    phase=Phase.WRITE | Phase.INDEX | Phase.FLEET,
    in_table=NEVER,
)
ENGINE = FILES(
    "hudi.services.engine",
    "spark",
    "What runs the tasks: spark; or local: processes of this machine, one for each core, without Java.",
    parse=_engine,
    phase=Phase.WRITE | Phase.INDEX | Phase.FLEET,
    in_table=NEVER,
)
TIME_LIMIT: Option[int | None] = FILES(
    "hudi.services.time.limit",
    None,
    "Time after which a clustering or compaction begins no more groups, and `fleet` no service, for example 30m, from "
    "the start of the run on; when not set, no limit.",
    parse=seconds,
    phase=Phase.WRITE | Phase.FLEET,
    in_table=NEVER,
)
MEMORY_PER_TASK: Option[int | None] = FILES(
    "hudi.services.memory.per.task",
    None,
    "Memory for the data of one task, for example 512m or 4g; when not set, the memory that Spark's settings leave for "
    "Python.",
    parse=memory,
    phase=Phase.CLUSTERING | Phase.INGEST | Phase.FLEET,
    in_table=NEVER,
)
BOOTSTRAP_SOURCE = FILES(
    "hudi.services.bootstrap.source",
    "",
    "The folder outside of a bootstrapped table that may be read: the one that the table was bootstrapped from, or a "
    "copy of it; when not set, none is.",
    parse=url,
    phase=Phase.CLUSTERING | Phase.COMPACTION | Phase.INGEST | Phase.INDEX,
    in_table=NEVER,
)
PARQUET_CODEC = FILES(
    "hoodie.parquet.compression.codec", "zstd", "Codec of new files: uncompressed, snappy, gzip or zstd.", parse=_codec
)
PARQUET_BLOCK_BYTES = FILES(
    "hoodie.parquet.block.size",
    120 << 20,
    "Bytes of a row group; in unsorted groups, row groups of a sixteenth (on average) to twice this size are copied, "
    "not decoded.",
    parse=size,
    in_table=between(1 << 20, 1 << 30),
)
PARQUET_PAGE_BYTES = FILES(
    "hoodie.parquet.page.size",
    1 << 20,
    "Bytes of a page; copied pages keep their size.",
    parse=size,
    in_table=between(1 << 10, 64 << 20),
)
PARQUET_BLOOM_ENABLED = FILES("hoodie.parquet.bloom.filter.enabled", True, "Whether footers carry Hudi's bloom filter.")
BLOOM_ENTRIES = FILES(
    "hoodie.index.bloom.num_entries",
    60_000,
    "The number of keys that the bloom filter is sized for.",
    parse=integer(1, (1 << 31) - 1),
    in_table=between(1_000, MOST_BLOOM_ENTRIES),
)
BLOOM_FPP = FILES(
    "hoodie.index.bloom.fpp",
    1e-9,
    "False-positive rate of the bloom filter.",
    parse=fraction,
    in_table=between(LEAST_BLOOM_RATE, 1),
)
BLOOM_MAX_ENTRIES = FILES(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    100_000,
    "The number of keys up to which a dynamic bloom filter grows.",
    parse=integer(1, (1 << 31) - 1),
    in_table=between(1_000, MOST_BLOOM_ENTRIES),
)
BLOOM_TYPE = FILES(
    "hoodie.bloom.index.filter.type", "DYNAMIC_V0", "Kind of bloom filter.", parse=choice("SIMPLE", "DYNAMIC_V0")
)
SESSION_TIME_ZONE = FILES(
    "spark.sql.session.timeZone",
    "",
    "Time zone in which the writers' Spark sessions compute expression indexes; when empty, the zone of this process.",
    phase=Phase.CLUSTERING | Phase.REPAIR | Phase.INGEST,
    in_table=NEVER,
)
