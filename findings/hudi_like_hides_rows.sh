#!/bin/bash
# Guess: WHERE city LIKE 'os%' finds the same rows with data skipping, which is on by default, as without it.
# Instead: it asks whether the text before the % lies between the least and the greatest value of a file. A file whose least
#        value is longer, as oslo, is skipped: its rows are missing, without an error. Files with narrow ranges, as after a
#        sort, lose more. The same as a range (city >= 'os' AND city < 'ot') finds all rows.
# Seen:  Hudi 1.2.0, Spark 3.5.9, plain SQL with its defaults, on 2026-11-29: ids [3] of [1, 2, 3]. 1.0.2 does the same.
# Who:   anyone who filters a text column by a prefix in Spark. 0.15.0 has all rows by its defaults, and misses the same
#        where it skips files (statistics of columns, and hoodie.metadata.enable=true for the reader).
# Source: DataSkippingUtils, the case of StartsWith; https://github.com/apache/hudi/issues/18791 is open.
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
# A file for each write.
spark.sql("set hoodie.parquet.small.file.limit=0")
spark.sql(
    f"create table t (id int, city string, ts int) using hudi "
    f"tblproperties (primaryKey = 'id', preCombineField = 'ts') location '{folder}/t'"
)
spark.sql("insert into t values (1, 'oslo', 1), (2, 'osaka', 1)")
spark.sql("insert into t values (3, 'oslo', 1), (4, 'bergen', 1)")
spark.sql("refresh table t")


def ids(where):
    return sorted(row.id for row in spark.sql("select id from t where " + where).collect())


seen = [ids("city like 'os%'"), ids("city >= 'os' and city < 'ot'")]
print(seen)
spark.stop()
sys.exit(seen != [[3], [1, 2, 3]])
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
