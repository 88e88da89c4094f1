#!/usr/bin/env bash
# Guess:  hoodie.write.rolling.metadata.keys=_hudi_streaming_sink_checkpoint makes a streaming sink safer: a clustering carries
#         the newest checkpoint on, so that a micro-batch that is replayed after a crash is found and skipped.
# Seen:   Hudi 1.2.0 on Spark 3.5.9, 2026-11-27. A clustering that is requested after a micro-batch has begun, and completed
#         before it, carries the checkpoint of the batch before. The sink takes the newest checkpoint by requested time
#         (CommitUtils.getValidCheckpointForCurrentWriter), which is that of the clustering; the newer one is hidden until the
#         next batch. The replayed batch is written again:
#           with the rolling key:    checkpoint 1 after batch 2, 30 rows become 40
#           without it (control):    checkpoint 2 after batch 2, 30 rows stay 30
# Who:    a continuous streaming query beside clusterings (a batch is nearly always in progress when one commits), whose
#         driver dies between Hudi's commit and Spark's own.
# Source: apache/hudi#18421 (rolling extra metadata).
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9
cat > "$work/sink.py" <<'PY'
import os
import sys
import threading
import time

from pyspark.sql import SparkSession

work = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
KEY = "_hudi_streaming_sink_checkpoint"
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
# The write waits between its data files and its commit.
HELD = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select reflect('java.lang.Thread', 'sleep', 100000L)#null",
}


def checkpoint(path):
    jvm = spark._jvm
    conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark.sparkContext._jsc.hadoopConfiguration())
    client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(path).build()
    find = jvm.org.apache.hudi.common.util.CommitUtils.getValidCheckpointForCurrentWriter
    return find(client.getActiveTimeline(), KEY, "query").get()


def run(name, clustering):
    path, source, where = (f"{work}/{name}/{part}" for part in ("table", "source", "checkpoint"))

    def stream(**more):
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.clean.automatic": "false",
            "hoodie.datasource.write.streaming.checkpoint.identifier": "query",
            "checkpointLocation": where,
            **LOCKED,
            **more,
        }
        frame = spark.readStream.schema("id string, v bigint").parquet(source)
        query = frame.writeStream.format("hudi").options(**options).trigger(availableNow=True).start(path)
        query.awaitTermination()

    def batch(k):
        frame = spark.range(k * 10, k * 10 + 10).coalesce(1).selectExpr("cast(id as string) id", "id v")
        frame.write.mode("append").parquet(source)

    for k in range(2):
        batch(k)
        stream()
    batch(2)
    held = threading.Thread(target=stream, kwargs=HELD)
    held.start()
    while sum(name.endswith(".inflight") for name in os.listdir(f"{path}/.hoodie/timeline")) < 3:
        time.sleep(0.2)
    options = ",".join(f"{key}={value}" for key, value in {**LOCKED, **clustering}.items())
    spark.sql(f"call run_clustering(path => '{path}', op => 'scheduleAndExecute', options => '{options}')").collect()
    completed = [name for name in os.listdir(f"{path}/.hoodie/timeline") if name.endswith(".replacecommit")]
    assert held.is_alive(), "the clustering took longer than the write: run again on a quiet machine"
    held.join()
    found, before = checkpoint(path), spark.read.format("hudi").load(path).count()
    # The driver died before Spark had noted the batch.
    for note in ("2", ".2.crc"):
        if os.path.exists(f"{where}/commits/{note}"):
            os.remove(f"{where}/commits/{note}")
    stream()
    after = spark.read.format("hudi").load(path).count()
    print(f"{name}: clusterings {len(completed)}, checkpoint {found}, rows {before} -> {after}")
    return len(completed), found, before, after


control = run("control", {})
rolling = run("rolling", {"hoodie.write.rolling.metadata.keys": KEY})
sys.exit((control, rolling) != ((1, "2", 30, 30), (1, "1", 30, 40)))
PY
"$work/venv/bin/python" "$work/sink.py" "$work" 2> "$work/log" || { tail -n 30 "$work/log"; echo "the behaviour has changed"; exit 1; }
