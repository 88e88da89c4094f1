#!/bin/bash
# Guess: INSERT INTO t (id, b, a, ts) VALUES (...) gives each value to the column that the statement names.
# Instead: Hudi 0.15.0 takes the values in the order of the table, whatever columns the statement names: where types allow
#        it, the values of two columns are swapped, and the statement succeeds. A table in parquet does as the statement says.
# Seen:  Hudi 0.15.0, Spark 3.5.9, on 2026-11-29; 1.0.2 gives the values to the columns that are named.
# Who:   anyone who inserts by SQL into a table of Hudi 0.15, above all after columns were moved or added.
# Source: ResolveReferences and HoodieSpark3Analysis of Apache Hudi 0.15.0.
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
    "spark.jars.packages": "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.warehouse.dir": folder + "/warehouse",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
seen = []
for form in ("parquet", "hudi"):
    more = "tblproperties (primaryKey = 'id', preCombineField = 'ts')" if form == "hudi" else ""
    spark.sql(f"create table t_{form} (id int, a int, b int, ts int) using {form} {more} location '{folder}/{form}'")
    spark.sql(f"insert into t_{form} (id, b, a, ts) values (1, 20, 10, 1)")
    row = spark.sql(f"select a, b from t_{form}").collect()[0]
    seen.append((row.a, row.b))
print(seen)
spark.stop()
sys.exit(seen != [(10, 20), (20, 10)])
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
