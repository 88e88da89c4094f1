#!/bin/bash
# A key that was deleted and upserted again is missing in Hudi's record index, and queries by key do not find its row.
#
# Expected: a merge-on-read table with a record index, written with the index type SIMPLE (Spark's default) or BLOOM:
#   delete a key, upsert it later, ask for it: what a scan finds, a query by key finds, too.
# Instead (2026-11-27, Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0 on Spark 3.5.9): until a compaction, "where id = '2'", which the
#   record index answers (hoodie.enable.data.skipping, the default of 1.x), has no row. Nothing fails.
#     1.2.0, BLOOM: rows 10, with id 2: by a scan 1, by the record index 0
#     1.2.0, SIMPLE: rows 10, with id 2: by a scan 1, by the record index 0
#     1.2.0, RECORD_INDEX: rows 10, with id 2: by a scan 1, by the record index 1
# Who meets it: whoever builds a record index to make queries by key quick, and goes on writing with another index type;
#   deleted keys come back every day (a customer who returns). Writers with RECORD_INDEX are not concerned.
# Source: BLOOM and SIMPLE look keys up in base files, which still have the key, because the delete is in a log file: so
#   the row has a current location, and rows that have one are left out of the record index
#   (HoodieBackedTableMetadataWriter.getRecordIndexUpserts, in 1.1 and later MetadataIndexGenerator and RecordIndexMapper).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9
cat > "$work/finding.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

version, folder = sys.argv[1:]
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


def write(path, index, operation, first, end, ts):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.compact.inline": "false",
        "hoodie.index.type": index,
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
    }
    rows = spark.range(first, end).selectExpr("cast(id as string) id", f"cast({ts} as int) ts")
    rows.write.format("hudi").options(**options).mode("append").save(path)


def found(index):
    path = f"{folder}/{version}-{index}"
    write(path, index, "insert", 0, 10, 1)
    write(path, index, "delete", 0, 5, 2)
    write(path, index, "upsert", 0, 5, 3)
    by_scan = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(path)
    with_index = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    by_index = spark.read.format("hudi").options(**with_index).load(path)
    return by_scan.count(), by_scan.where("id = '2'").count(), by_index.where("id = '2'").count()


expected = {"BLOOM": (10, 1, 0)}
if version == "1.2.0":
    expected |= {"SIMPLE": (10, 1, 0), "RECORD_INDEX": (10, 1, 1)}
seen = {index: found(index) for index in expected}
for index, (rows, scanned, indexed) in seen.items():
    print(f"{version}, {index}: rows {rows}, with id 2: by a scan {scanned}, by the record index {indexed}")
assert seen == expected, "the behaviour has changed"
PYTHON
cd "$work"
for version in 0.15.0 1.0.2 1.1.1 1.2.0; do
    "$work/venv/bin/python" finding.py "$version" "$work" 2> /dev/null
done
