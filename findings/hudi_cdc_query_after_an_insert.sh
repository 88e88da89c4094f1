#!/bin/bash
# Guess: on a table with change data capture, a CDC query tells the rows of every insert.
# Instead: an insert that fills a small file (the default, hoodie.parquet.small.file.limit) rewrites that file and writes no
#        change log, and every CDC query over its commit fails while it is planned: "There should be a cdc log file".
#        An upsert of the same new rows is told. So is an insert with hoodie.merge.allow.duplicate.on.inserts=false.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-29; 0.15.0 and 1.0.2 do the same.
# Who:   anyone who appends to such a table with the operation insert, and reads its changes.
# Source: HoodieConcatHandle, HoodieCDCExtractor.parseWriteStat of Apache Hudi.
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
found = {}
for operation in ("insert", "upsert"):
    path = f"{folder}/{operation}"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.datasource.write.operation": operation,
    }
    for row in ((1, 1), (2, 1)):
        frame = spark.createDataFrame([row], "id int, ts int")
        frame.write.format("hudi").options(**options).mode("append").save(path)
    query = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "20200101000000000",
    }
    try:
        found[operation] = spark.read.format("hudi").options(**query).load(path).count()
    except Exception as error:
        found[operation] = "no cdc log file" if "There should be a cdc log file" in str(error) else str(error)[:300]
print(found)
sys.exit(found != {"insert": "no cdc log file", "upsert": 2})
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
