#!/bin/bash
# Guess: with hoodie.datasource.write.drop.partition.columns=true, a bulk_insert writes its rows, as an insert does.
# Instead: by the row writer, the default of bulk_insert, the commit succeeds, and the new files have no rows: the write stat
#        counts each row as an error (totalWriteErrors), which nobody looks at. An insert of the same rows is fine, and so is
#        a bulk_insert with hoodie.datasource.write.row.writer.enable=false.
# Seen:  Hudi 1.0.2, Spark 3.5.9, on 2026-11-29; 0.15.0 does the same, and 1.2.0 fails with a ClassCastException.
# Who:   anyone who loads a table that keeps the partition columns out of its files.
# Source: BulkInsertDataInternalWriterHelper, HoodieRowCreateHandle of Apache Hudi.
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
    "spark.jars.packages": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.warehouse.dir": folder + "/warehouse",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
found = {}
for name, more in {
    "insert": {"hoodie.datasource.write.operation": "insert"},
    "bulk_insert": {"hoodie.datasource.write.operation": "bulk_insert"},
}.items():
    path = f"{folder}/{name}"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.drop.partition.columns": "true",
    }
    frame = spark.createDataFrame([(1, 5, 1, "a"), (2, 5, 1, "b")], "id int, day int, ts int, text string")
    frame.write.format("hudi").options(**options, **more).mode("append").save(path)
    found[name] = spark.read.format("hudi").load(path).count()
print(found)
sys.exit(found != {"insert": 2, "bulk_insert": 0})
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
