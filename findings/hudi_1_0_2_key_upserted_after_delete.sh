#!/bin/bash
# Hudi 1.0.2 cannot read its own merge-on-read table after a key was deleted and upserted again, until a compaction.
#
# Expected: delete a key by the operation `delete`, upsert it again later: an everyday sequence, and the row is there.
# Instead (2026-11-27, Hudi 1.0.2 on Spark 3.5.9, table version 8, an ordering field of type bigint): every snapshot query
#   of the file group ends with
#     ClassCastException: class java.lang.Integer cannot be cast to class java.lang.Long
#   The write itself reports success. Hudi 1.2.0 reads the same table, and the rows are there.
#     rows that Hudi 1.0.2 reads: 5, then ClassCastException      Hudi 1.2.0: 10
# Who meets it: whoever runs 1.0.x with merge-on-read tables whose ordering field is a bigint, and deletes keys that come
#   back before the next compaction.
# Source: not known; the sentence is that of a comparison of an int, as a delete without an ordering value has it (0),
#   with the long of the row that came later.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9
cat > "$work/finding.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

step, version, path = sys.argv[1], sys.argv[2], sys.argv[3] + "/table"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.driver.memory", "1g")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")


def write(operation, first, end, ts):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.compact.inline": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
    }
    rows = spark.range(first, end).selectExpr("cast(id as string) id", f"{ts}L ts")
    rows.write.format("hudi").options(**options).mode("append").save(path)


def read():
    try:
        return len(spark.read.format("hudi").load(path).collect())
    except Exception as e:
        return "ClassCastException" if "Integer cannot be cast to class java.lang.Long" in str(e) else str(e)


found = []
if step == "write":
    write("upsert", 0, 10, 1)
    write("delete", 0, 5, 2)
    found.append(read())
    write("upsert", 0, 5, 3)
found.append(read())
print("rows that Hudi", version, "reads:", *found)
assert found == ([5, "ClassCastException"] if step == "write" else [10]), "the behaviour has changed"
PYTHON
cd "$work"
"$work/venv/bin/python" "$work/finding.py" write 1.0.2 "$work"
"$work/venv/bin/python" "$work/finding.py" read 1.2.0 "$work"
