#!/bin/bash
# Guess: a table that is partitioned by a timestamp column gives the column back as it was written: the base files have it.
# Instead: with the key generator of Hudi's choice the partition path is the number of microseconds since 1970
#        (1609495200000000), and readers take the column from the path: they cannot parse the number as a timestamp, and
#        show another value, without an error. The base file has the right one.
# Seen:  Hudi 1.2.0, Spark 3.5.9, on 2026-11-27: 1970-01-01 00:00, also with
#        hoodie.datasource.read.extract.partition.values.from.path=false. (null in a session with Hudi's SQL extension.)
# Who:   anyone who gives a timestamp column as hoodie.datasource.write.partitionpath.field.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==3.5.9 pyarrow==21.0.0
cat > "$folder/run.py" <<'PYTHON'
import glob
import sys

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[1]")
for key, value in {
    "spark.jars.packages": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "t",
}
rows = spark.sql("select 1 as id, timestamp '2021-01-01 10:00:00' as t")
rows.write.format("hudi").options(**options).save(folder + "/t")
stored = pq.ParquetFile(glob.glob(folder + "/t/*/*.parquet")[0]).read(["t"])["t"].to_pylist()
read = [row.t for row in spark.read.format("hudi").load(folder + "/t").collect()]
again = spark.read.format("hudi").option("hoodie.datasource.read.extract.partition.values.from.path", "false")
other = [row.t for row in again.load(folder + "/t").collect()]
print("stored", stored, "read", read, "with the option", other)
true = stored[0].replace(tzinfo=None)
sys.exit(not (true.year == 2021 and read[0] != true and other[0] != true))
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
