#!/bin/bash
# Guess: on a table with a bucket index with consistent hashing, upserts after an insert_overwrite are read.
# Instead: insert_overwrite writes file groups with ids of their own, and marks those of the ring as replaced. The ring
#        stays, so that the next upsert appends to the replaced file groups: the commit succeeds, and its rows are never
#        read. The same goes for delete_partition and rows that come to the partition afterwards.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-29; 0.15.0 and 1.0.2 do the same.
# Who:   anyone who overwrites partitions of such a table.
# Source: HoodieConsistentBucketIndex, ConsistentBucketIndexUtils.loadMetadata of Apache Hudi.
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
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline": "false",
}
seen = []
for operation, ids in (("upsert", (1, 2)), ("insert_overwrite", (3, 4)), ("upsert", (5, 6))):
    frame = spark.createDataFrame([(one, 1, "p") for one in ids], "id int, ts int, part string")
    more = {"hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**options, **more).mode("append").save(path)
    seen.append(sorted(row.id for row in spark.read.format("hudi").load(path).select("id").collect()))
print(seen)
sys.exit(seen != [[1, 2], [3, 4], [3, 4]])
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
