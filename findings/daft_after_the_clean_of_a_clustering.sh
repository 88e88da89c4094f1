#!/bin/bash
# Daft cannot open a table any more after Hudi has cleaned the files that its clustering replaced.
#
# Expected: a clean deletes files that no query of the newest state needs, so that a reader of the newest state does not
#   notice it. Where a reader doubles the rows of replaced files (Daft does, between the clustering and the clean), to
#   clean at once is the way out.
# Instead (2026-11-27, daft 0.7.26, Hudi 0.15.0 on Spark 3.5.9, copy-on-write, version 6): Daft takes the schema from a
#   file of the newest `.commit`; a clustering is a `.replacecommit`, so that this file is one of those that the
#   clean deleted: FileNotFoundError. An ordinary commit after the clean mends it.
#     rows that Hudi and Daft read: fresh 100 100; clustered 100 200; cleaned 100 FileNotFoundError; upserted 100 100
# Who meets it: whoever reads with Daft a table that is clustered and cleaned, until the next write.
# Source: daft/io/hudi/pyhudi/timeline.py, get_latest_commit_schema: only completed instants with the action commit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9 daft==0.7.26 pyarrow==25.0.1 sortedcontainers==2.4.0
cat > "$work/finding.py" <<'PYTHON'
import sys

import daft
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


def write(operation, first, end):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.insert.shuffle.parallelism": "2",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.clean.automatic": "false",
    }
    rows = spark.range(first, end).selectExpr("cast(id as string) id", "1L ts")
    rows.write.format("hudi").options(**options).mode("append").save(path)


def read():
    try:
        by_daft = len(daft.read_hudi(path).to_arrow())
    except Exception as e:
        by_daft = type(e).__name__
    return spark.read.format("hudi").load(path).count(), by_daft


write("insert", 0, 50)
write("insert", 50, 100)
found = [read()]
spark.sql(f"call run_clustering(op => 'scheduleAndExecute', path => '{path}', options => 'hoodie.clean.automatic=false')")
found.append(read())
spark.sql(f"create table t using hudi location '{path}'")
spark.sql("call run_clean(table => 't', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)")
found.append(read())
write("upsert", 0, 10)
# The upsert leaves the older version of the file that it rewrote, which Daft knows how to leave out.
found.append(read())
print("rows that Hudi and Daft read: fresh, clustered, cleaned, upserted:", *found)
assert found == [(100, 100), (100, 200), (100, "FileNotFoundError"), (100, 100)], "the behaviour has changed"
PYTHON
cd "$work"
"$work/venv/bin/python" "$work/finding.py" "$work"
