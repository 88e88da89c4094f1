"""Ask Hudi's own parsers which texts they take for enumerated options: python -m scripts.list_hudi_values RELEASE...

Each release runs in a JVM. It is asked for every name of its enum, in upper, lower and mixed case, and for the class
names and other spellings below. What it takes is written to tests/unit/hudi_values.json; tests/unit/test_values.py
holds it against the options here. A release that lacks a parser takes nothing.
"""

import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.interop.peer import Peer

TABLE = Path(__file__).resolve().parent.parent / "tests" / "unit" / "hudi_values.json"
_CLUSTERING = "org.apache.hudi.client.clustering"
_COMPACTION = "org.apache.hudi.table.action.compact.strategy"
_KEYGEN = "org.apache.hudi.keygen"
_MODEL = "org.apache.hudi.common.model"
ASKED: dict[str, tuple[str, str, list[str]]] = {
    # The key: its parser (of HoodieWriteConfig, or a static method), its enum, other spellings.
    "hoodie.clustering.plan.partition.filter.mode": (
        "getClusteringPlanPartitionFilterMode",
        "org.apache.hudi.table.action.cluster.ClusteringPlanPartitionFilterMode",
        [],
    ),
    "hoodie.layout.optimize.strategy": (
        "getLayoutOptimizationStrategy",
        "org.apache.hudi.config.HoodieClusteringConfig$LayoutOptimizationStrategy",
        ["z-order", "Z-ORDER", "Z-Order", "z_order"],
    ),
    "hoodie.compact.inline.trigger.strategy": (
        "getInlineCompactTriggerStrategy",
        "org.apache.hudi.table.action.compact.CompactionTriggerStrategy",
        [],
    ),
    "hoodie.clean.policy": ("getCleanerPolicy", f"{_MODEL}.HoodieCleaningPolicy", []),
    "hoodie.cleaner.policy": ("getCleanerPolicy", f"{_MODEL}.HoodieCleaningPolicy", []),
    "hoodie.clean.trigger.strategy": (
        "getCleaningTriggerStrategy",
        "org.apache.hudi.table.action.clean.CleaningTriggerStrategy",
        [],
    ),
    "hoodie.clean.failed.writes.policy": (
        "getFailedWritesCleanPolicy",
        f"{_MODEL}.HoodieFailedWritesCleaningPolicy",
        [],
    ),
    "hoodie.write.concurrency.mode": ("getWriteConcurrencyMode", f"{_MODEL}.WriteConcurrencyMode", []),
    "hoodie.index.type": ("getIndexType", "org.apache.hudi.index.HoodieIndex$IndexType", []),
    "hoodie.index.bucket.engine": (
        "getBucketIndexEngineType",
        "org.apache.hudi.index.HoodieIndex$BucketIndexEngineType",
        [],
    ),
    "hoodie.bulkinsert.sort.mode": (
        "getBulkInsertSortMode",
        "org.apache.hudi.execution.bulkinsert.BulkInsertSortMode",
        [],
    ),
    "hoodie.table.type": ("getTableType", f"{_MODEL}.HoodieTableType", ["cow", "mor"]),
    "hoodie.datasource.write.operation": (
        f"{_MODEL}.WriteOperationType.fromValue",
        f"{_MODEL}.WriteOperationType",
        ["bulk-insert", "insert-overwrite"],
    ),
    "hoodie.write.record.merge.mode": (
        "org.apache.hudi.common.config.RecordMergeMode.getValue",
        "org.apache.hudi.common.config.RecordMergeMode",
        [],
    ),
    "hoodie.table.timeline.timezone": (
        f"{_MODEL}.HoodieTimelineTimeZone.valueOf",
        f"{_MODEL}.HoodieTimelineTimeZone",
        [],
    ),
    "hoodie.parquet.compression.codec": (
        "org.apache.parquet.hadoop.metadata.CompressionCodecName.fromConf",
        "org.apache.parquet.hadoop.metadata.CompressionCodecName",
        [],
    ),
    "hoodie.logfile.data.block.format": (
        "org.apache.hudi.common.table.log.block.HoodieLogBlock$HoodieLogBlockType.fromId",
        "org.apache.hudi.common.table.log.block.HoodieLogBlock$HoodieLogBlockType",
        ["avro", "parquet", "hfile", "AVRO", "PARQUET", "HFILE"],
    ),
    "hoodie.bloom.index.filter.type": (
        "bloom",
        "org.apache.hudi.common.bloom.BloomFilterTypeCode",
        [],
    ),
    "hoodie.datasource.write.keygenerator.type": (
        "org.apache.hudi.keygen.factory.HoodieSparkKeyGeneratorFactory.inferKeyGeneratorType",
        "org.apache.hudi.keygen.constant.KeyGeneratorType",
        [],
    ),
    "hoodie.clustering.plan.strategy.file.slices.sort.by": (
        "org.apache.hudi.table.action.cluster.ClusteringFileSliceSortByField.valueOf",
        "org.apache.hudi.table.action.cluster.ClusteringFileSliceSortByField",
        [],
    ),
    "hoodie.compaction.strategy": (
        "getCompactionStrategy",
        "",
        [
            f"{_COMPACTION}.{name}CompactionStrategy"
            for name in (
                *("LogFileSizeBased", "LogFileNumBased", "BoundedIO", "UnBounded", "DayBased"),
                *("BoundedPartitionAware", "UnBoundedPartitionAware", "PartitionRegexBased", "Composite"),
            )
        ]
        + [f"{_COMPACTION}.DayBasedCompactionStrategy,{_COMPACTION}.BoundedIOCompactionStrategy"],
    ),
    "hoodie.clustering.plan.strategy.class": (
        "plan",
        "",
        [
            f"{_CLUSTERING}.plan.strategy.{name}"
            for name in (
                *("SparkSizeBasedClusteringPlanStrategy", "SparkSingleFileSortPlanStrategy"),
                *("SparkStreamCopyClusteringPlanStrategy", "SparkConsistentBucketClusteringPlanStrategy"),
                *("SparkRecentDaysClusteringPlanStrategy", "SparkSelectedPartitionsClusteringPlanStrategy"),
                *("JavaRecentDaysClusteringPlanStrategy", "JavaSizeBasedClusteringPlanStrategy"),
            )
        ]
        + ["org.apache.hudi.table.action.cluster.strategy.CommitBasedClusteringPlanStrategy"],
    ),
    "hoodie.clustering.execution.strategy.class": (
        "class",
        "",
        [
            f"{_CLUSTERING}.run.strategy.{name}ExecutionStrategy"
            for name in (
                *("SparkSortAndSize", "SparkSingleFileSort", "SparkStreamCopyClustering", "SparkBinaryCopyClustering"),
                *("SparkConsistentBucketClustering", "SingleSparkJobConsistentHashing", "SparkExternalFileClustering"),
            )
        ],
    ),
    "hoodie.datasource.write.keygenerator.class": (
        "class",
        "",
        [
            f"{_KEYGEN}.{name}KeyGenerator"
            for name in (
                *("Simple", "SimpleAvro", "Complex", "ComplexAvro", "Custom", "CustomAvro", "TimestampBased"),
                *("TimestampBasedAvro", "Nonpartitioned", "NonpartitionedAvro", "GlobalDelete", "GlobalAvroDelete"),
                *("AutoRecordGenWrapper", "AutoRecordGenWrapperAvro"),
            )
        ]
        + [f"org.apache.spark.sql.hudi.command.{name}KeyGenerator" for name in ("Sql", "Uuid", "MergeInto")],
    ),
}
_ASK = """
def names(enum):
    try:
        return [one.name() for one in jvm.java.lang.Class.forName(enum).getEnumConstants()] if enum else []
    except Exception:
        return []

def spellings(name):
    return dict.fromkeys([name, name.lower(), name.title()])

def config(key, text):
    properties = jvm.java.util.Properties()
    properties.setProperty(key, text)
    return jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath("/t").withProperties(properties).build()

def loaded(name):
    return jvm.java.lang.Class.forName(name)

def static(name, text):
    owner, _, method = name.rpartition(".")
    one = jvm
    for part in owner.split("."):
        one = getattr(one, part)
    return getattr(one, method)(text)

def takes(key, parser, text):
    try:
        if parser == "class":
            return loaded(text) is not None
        if parser == "plan":
            name = jvm.org.apache.hudi.table.action.cluster.strategy.ClusteringPlanStrategy
            return loaded(name.checkAndGetClusteringPlanStrategy(config(key, text))) is not None
        if parser == "bloom":
            return jvm.org.apache.hudi.common.bloom.BloomFilterFactory.createBloomFilter(9, 0.1, 9, text) is not None
        if parser.endswith("inferKeyGeneratorType"):
            jvm.org.apache.hudi.keygen.constant.KeyGeneratorType.valueOf(text.upper())
            return True
        if "." in parser:
            return static(parser, text) is not None
        return getattr(config(key, text), parser)() is not None
    except Exception:
        return False

result = {}
for key, (parser, enum, others) in asked.items():
    texts = [text for name in names(enum) for text in spellings(name)]
    result[key] = [text for text in dict.fromkeys([*texts, *others]) if takes(key, parser, text)]
"""


def ask(release: str) -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder, closing(Peer(release, Path(folder) / "log")) as peer:
        found: dict[str, list[str]] = peer.eval(_ASK, asked=ASKED)
    return found


def table(releases: list[str]) -> dict[str, dict[str, list[str]]]:
    """By key and release, the texts that are taken."""
    found: dict[str, dict[str, Any]] = {key: {} for key in ASKED}
    for release in releases:
        for key, texts in ask(release).items():
            found[key][release] = texts
    return found


if __name__ == "__main__":
    TABLE.write_text(json.dumps(table(sys.argv[1:]), indent=1) + "\n", encoding="utf-8")
