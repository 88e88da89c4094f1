#!/bin/bash
# Guess: with hoodie.schema.on.read.enable=true, columns have ids, so that a column which ALTER TABLE adds is null in all rows
#        that are there, whatever columns the table had before.
# Instead: after the newest column was dropped, any other ALTER TABLE (here a rename) lowers the largest id. The next column
#        that is added, of any name, gets the id of the dropped one, and old files give it the values of that.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-29; 1.0.2 and 0.15.0 do the same, copy-on-write and merge-on-read.
# Who:   anyone who drops columns by ALTER TABLE, and adds others later.
# Source: InternalSchema.getMaxColumnId, SchemaChangeUtils of Apache Hudi.
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
    f"create table t (id int, name string, ts int) using hudi "
    f"tblproperties (primaryKey = 'id', preCombineField = 'ts') location '{path}'"
)
spark.sql("alter table t add columns (salary string)")
spark.sql("insert into t values (1, 'ann', 1, 'secret')")
spark.sql("alter table t drop column salary")
spark.sql("alter table t rename column name to first_name")
spark.sql("alter table t add columns (hobby string)")
spark.sql("refresh table t")
seen = spark.sql("select hobby from t where id = 1").collect()[0].hobby
print(seen)
spark.stop()
sys.exit(seen != "secret")
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
