#!/bin/bash
# hudi-rs 0.5.0 does not read log files that were written while a compaction plan is pending (table version 6).
#
# Expected: a snapshot query gives the rows of every completed delta commit, or an error. A pending plan is a file on
#   the timeline: it changes no data. Hudi's own snapshot queries join the log files that come after the plan to the
#   file slice before it.
# Instead (2026-11-27, hudi 0.5.0 of PyPI beside Hudi 0.15.0 on Spark 3.5.9): the rows are those of before the plan,
#   without an error, with file group reader 1 and with 2, until the compaction has been executed. On table version 8,
#   where the names of log files have the instant of the writer, the rows are right.
#     Spark, Hudi 0.15.0: 10 updated rows     hudi-rs: 0
# Who meets it: whoever reads a merge-on-read table with asynchronous compaction by hudi-rs: until each compaction ends,
#   all that came after its plan is out of sight.
# Source: Hudi's HoodieTableFileSystemView merges the slices of a pending compaction (getLatestMergedFileSlice);
#   hudi-rs takes the last file slice of a file group that has a base file.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9 hudi==0.5.0 pyarrow==25.0.1
cat > "$work/finding.py" <<'PYTHON'
import sys

import pyarrow as pa
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

path = sys.argv[1] + "/table"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.driver.memory", "1g")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def upsert(first, end, value):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.compact.inline": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
    rows = spark.range(first, end).selectExpr("cast(id as string) id", f"{value}L ts", f"'v{value}' value")
    rows.write.format("hudi").options(**options).mode("append").save(path)


def by_hudi():
    return spark.read.format("hudi").load(path).where("value = 'v3'").count()


def by_hudi_rs(reader):
    table = HudiTableBuilder.from_base_uri(path).with_hudi_option("hoodie.read.file.group.reader.version", reader).build()
    rows = pa.Table.from_batches(pa.record_batch(batch) for batch in table.read())
    return rows["value"].to_pylist().count("v3")


upsert(0, 100, 1)
upsert(0, 50, 2)
spark.sql(f"call run_compaction(op => 'schedule', path => '{path}', options => 'hoodie.compact.inline.max.delta.commits=1')")
upsert(0, 10, 3)
pending = (by_hudi(), by_hudi_rs("1"), by_hudi_rs("2"))
spark.sql(f"call run_compaction(op => 'run', path => '{path}')")
after = (by_hudi(), by_hudi_rs("1"), by_hudi_rs("2"))
print("updated rows that Hudi, hudi-rs (reader 1), hudi-rs (reader 2) see: plan pending", pending, "- compacted", after)
assert pending == (10, 0, 0), "the behaviour has changed"
assert after == (10, 10, 10), "the behaviour has changed"
PYTHON
"$work/venv/bin/python" "$work/finding.py" "$work"
