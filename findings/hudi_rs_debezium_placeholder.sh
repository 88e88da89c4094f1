#!/bin/bash
# hudi-rs 0.5.0 gives Debezium's placeholder for an unchanged large value as if it were the value (table version 9).
#
# Expected: Postgres sends `__debezium_unavailable_value` for a large column that an update did not touch. Hudi's
#   PostgresDebeziumAvroPayload keeps the old value then, and hudi-rs either does the same or refuses the table: that is
#   what it does on table version 6 and 8 ("merges with a merger of its own, which the merge-on-read reader cannot
#   reproduce").
# Instead (2026-11-27, hudi 0.5.0 of PyPI, Hudi 1.2.0 on Spark 3.5.9): on version 9 Hudi 1.1 and later turn the payload
#   class into a merge mode (EVENT_TIME_ORDERING) and a property of its own, hoodie.table.partial.update.mode =
#   FILL_UNAVAILABLE, with the placeholder beside it; hudi-rs merges by the merge mode alone.
#     Spark, Hudi 1.2.0: old        hudi-rs: __debezium_unavailable_value
# Who meets it: whoever reads by hudi-rs a merge-on-read table that a stream of Debezium from Postgres feeds, between an
#   update and the next compaction.
# Source: hoodie.properties of the table, which the script prints: hoodie.record.merge.mode=EVENT_TIME_ORDERING,
#   hoodie.table.partial.update.mode=FILL_UNAVAILABLE, and the placeholder as
#   hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9 hudi==0.5.0 pyarrow==25.0.1
cat > "$work/finding.py" <<'PYTHON'
import sys
from pathlib import Path

import pyarrow as pa
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

path = sys.argv[1] + "/table"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.driver.memory", "1g")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def upsert(value, lsn, operation):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "_event_lsn",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload",
        "hoodie.compact.inline": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
    columns = "id string, value string, _event_lsn bigint, _change_operation_type string"
    rows = spark.createDataFrame([("a", value, lsn, operation)], columns)
    rows.write.format("hudi").options(**options).mode("append").save(path)


upsert("old", 50, "c")
upsert("__debezium_unavailable_value", 60, "u")
for line in Path(path, ".hoodie/hoodie.properties").read_text().splitlines():
    if "merge" in line or "partial" in line or "payload" in line:
        print(line)
(by_hudi,) = spark.read.format("hudi").load(path).collect()
by_hudi_rs = pa.Table.from_batches(pa.record_batch(b) for b in HudiTableBuilder.from_base_uri(path).build().read())
found = [(by_hudi.value, by_hudi._event_lsn), *zip(*(by_hudi_rs[c].to_pylist() for c in ("value", "_event_lsn")))]
print("Hudi and hudi-rs read:", *found)
assert found == [("old", 60), ("__debezium_unavailable_value", 60)], "the behaviour has changed"
PYTHON
"$work/venv/bin/python" "$work/finding.py" "$work"
