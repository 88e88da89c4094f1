#!/bin/bash
# Guess: with hoodie.schema.on.read.enable=true, a filter on a renamed column finds the rows of files from before the rename,
#        as a query without a filter does.
# Instead: the ranges of whole partitions in the metadata table (partition_stats) go by the names of columns. The first write
#        into a partition after the rename stores the range of its own file alone under the new name; from then on filters
#        skip the partition, and miss the rows of its older files. A query that reads all rows still shows them.
# Seen:  Hudi 1.2.0, Spark 3.5.9, with its defaults for statistics and data skipping, on 2026-11-29.
# Who:   anyone who renames columns of a partitioned table with a metadata table.
# Source: PartitionStatsIndexSupport, HoodieTableMetadataUtil of Apache Hudi.
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
# A new file for the second write, as in a partition whose files are large.
spark.sql("set hoodie.parquet.small.file.limit=0")
path = folder + "/t"
spark.sql(
    f"create table t (id int, fare int, ts int, city string) using hudi "
    f"tblproperties (primaryKey = 'id', preCombineField = 'ts') partitioned by (city) location '{path}'"
)
spark.sql("insert into t values (1, 10, 1, 'oslo')")
spark.sql("alter table t rename column fare to price")
read = "select id from t where price = 10"
spark.sql("refresh table t")
seen = [spark.sql(read).count()]
spark.sql("insert into t values (2, 90, 1, 'oslo')")
spark.sql("refresh table t")
seen += [spark.sql(read).count(), spark.sql("select * from t").where("id = 1").first().price]
print(seen)
spark.stop()
sys.exit(seen != [1, 0, 10])
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
