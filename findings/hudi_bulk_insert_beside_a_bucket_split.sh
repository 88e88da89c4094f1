#!/bin/bash
# Guess: on a table with a bucket index with consistent hashing, a bulk_insert beside a pending clustering plan, which
#        splits the buckets, either fails or loses nothing when the plan is executed.
# Instead: bulk_insert writes a base file into one of the new buckets of the plan, and the base file is newer than the
#        plan. The execution succeeds; the rows that it moves into this bucket are hidden by that base file from then on.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-29: "21 rows before the execution, 14 after it; gone: [4, 8, 11, 15, 17, 18,
#        19]". 0.15.0 does the same. Upserts into such buckets are rejected, or written
#        twice with SparkConsistentBucketDuplicateUpdateStrategy.
# Who:   anyone who loads rows with bulk_insert into such a table while a clustering plan is pending.
# Source: RDDConsistentBucketBulkInsertPartitioner, ConsistentBucketIndexUtils of Apache Hudi.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==3.5.9
cat > "$folder/run.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[1]")
for key, value in {
    "spark.jars.packages": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.warehouse.dir": folder + "/warehouse",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
path = folder + "/t"
index = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.bucket.index.merge.threshold": "0.0",
    "hoodie.parquet.max.file.size": "100",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
table = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.compact.inline": "false",
}
clustering = ",".join(f"{key}={value}" for key, value in index.items())


def write(operation: str, *ids: int) -> None:
    frame = spark.createDataFrame([(one, 1, "p") for one in ids], "id int, ts int, part string").coalesce(1)
    more = {"hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**index, **table, **more).mode("append").save(path)


def rows() -> list[int]:
    return sorted(row.id for row in spark.read.format("hudi").load(path).select("id").collect())


write("upsert", *range(20))
spark.sql(f"call run_clustering(path => '{path}', op => 'schedule', options => '{clustering}')").collect()
write("bulk_insert", 100)
before = rows()
spark.sql(f"call run_clustering(path => '{path}', op => 'execute', options => '{clustering}')").collect()
after = rows()
print(len(before), "rows before the execution,", len(after), "after it; gone:", sorted({*before} - {*after}))
sys.exit(before != [*range(20), 100] or len(after) >= 21 or 100 not in after)
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
