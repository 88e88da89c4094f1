#!/bin/bash
# Guess: a table that was bootstrapped by metadata alone gets a record index as any other table, when a write switches it on.
# Instead: the index is built of base files of the instant 00000000000001, which Hudi cannot parse as a time: the write fails,
#        and so does each later one with the index. Without it, writes go on.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-29; 0.15.0 fails in the same way.
# Who:   anyone who bootstraps a table, and then wants upserts by the record index.
# Source: HoodieTimeline.METADATA_BOOTSTRAP_INSTANT_TS, HoodieMetadataPayload.createRecordIndexUpdate of Apache Hudi.
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
source, path = folder + "/source", folder + "/t"
spark.sql("select 1 as id, 'one' as name, 1 as ts").repartition(1).write.parquet(source + "/city=oslo")
known = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
}
bootstrap = {
    **known,
    "hoodie.datasource.write.operation": "bootstrap",
    "hoodie.bootstrap.base.path": source,
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
}
spark.createDataFrame([], "id int").select().write.format("hudi").options(**bootstrap).mode("overwrite").save(path)
row = spark.sql("select 2 as id, 'two' as name, 1 as ts, 'oslo' as city")
index = {"hoodie.metadata.record.index.enable": "true"}
seen = []
for more in (index, {}):
    try:
        row.write.format("hudi").options(**known, **more).mode("append").save(path)
        seen.append("written")
    except Exception as error:
        seen.append("failed" if "00000000000001" in str(error) else str(error)[:300])
print(seen, spark.read.format("hudi").load(path).count())
spark.stop()
sys.exit(seen != ["failed", "written"])
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
