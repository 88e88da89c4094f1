#!/bin/bash
# Guess: with hoodie.schema.on.read.enable=true, the procedure run_clustering rewrites files by the ids of their columns, as
#        readers do: all rows stay as they are read.
# Instead: the client of the procedure does not know the schema history, and reads old files by the names of today. A column
#        that was renamed after a file was written becomes null in the new file, for good; the commit succeeds.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-29; 1.0.2 does the same. Clusterings inside of a write keep the values.
# Who:   anyone who renames columns by ALTER TABLE, and clusters by the procedure.
# Source: RunClusteringProcedure, HoodieWriteConfig.INTERNAL_SCHEMA_STRING of Apache Hudi.
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
spark.sql("set hoodie.schema.on.read.enable=true")
spark.sql("set hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true")
path = folder + "/t"
spark.sql(
    f"create table t (id int, before string, ts int) using hudi "
    f"tblproperties (primaryKey = 'id', preCombineField = 'ts') location '{path}'"
)
spark.sql("insert into t values (1, 'kept', 1)")
spark.sql("alter table t rename column before to after")
read = "select after from t where id = 1"
seen = [spark.sql(read).collect()[0].after]
spark.sql("call run_clustering(table => 't', op => 'scheduleAndExecute')").collect()
spark.sql("refresh table t")
seen.append(spark.sql(read).collect()[0].after)
print(seen)
sys.exit(seen != ["kept", None])
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
