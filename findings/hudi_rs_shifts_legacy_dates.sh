#!/bin/bash
# One would guess: hudi-rs shows the dates that Spark shows, or refuses a file that it cannot read rightly.
# What happens: Spark writes a date in its mode LEGACY (spark.sql.parquet.datetimeRebaseModeInWrite) as the day of the
# hybrid calendar, and says so in the footer (org.apache.spark.legacyDateTime). hudi-rs does not look at this entry.
# Seen 2026-11-27 with Hudi 1.2.0, Spark 3.5.9, hudi-rs 0.5.0: "Spark shows 1001-01-01, hudi-rs 1001-01-07".
# Who meets it: readers of tables that Spark 2 wrote, or Spark 3 with LEGACY for Hive, with dates before 1582-10-15.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyspark==3.5.9 hudi==0.5.0 pyarrow==25.0.1 setuptools
cat > "$work/run.py" <<'P'
import sys
import pyarrow as pa
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession
path = sys.argv[1]
spark = (SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
    .config("spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
rows = spark.sql("select 'a' id, 1 ts, date'1001-01-01' d")
(rows.write.format("hudi").option("hoodie.table.name", "t").option("hoodie.datasource.write.recordkey.field", "id")
    .option("hoodie.datasource.write.precombine.field", "ts").option("hoodie.datasource.write.operation", "bulk_insert")
    .option("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.NonpartitionedKeyGenerator").save(path))
theirs = spark.read.format("hudi").load(path).selectExpr("cast(d as string) d").collect()[0].d
batches = HudiTableBuilder.from_base_uri(path).build().read()
found = pa.Table.from_batches([pa.record_batch(one) for one in batches]).column("d").to_pylist()[0]
print(f"Spark shows {theirs}, hudi-rs {found}")
sys.exit(0 if theirs == "1001-01-01" and str(found) == "1001-01-07" else 1)
P
"$work/venv/bin/python" "$work/run.py" "$work/table" 2>"$work/log" || { tail -n 5 "$work/log"; exit 1; }
