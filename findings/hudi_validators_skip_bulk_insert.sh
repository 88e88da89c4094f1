#!/bin/bash
# hoodie.precommit.validators do not see every write (Hudi 1.2.0): bulk_insert, and upserts of merge-on-read tables.
# One would guess: a pre-commit validator that fails stops every write of its writer, whatever the operation is.
# Instead: with one and the same validator, whose query must count no row and counts ten, insert and upsert fail, and
#   bulk_insert commits: its row writer, which is on by default, runs no validators (with
#   hoodie.datasource.write.row.writer.enable=false it fails, too). An upsert of a merge-on-read table commits as well:
#   it writes log files alone, and the validator looks at base files.
# Seen 2026-11-27 with Hudi 1.2.0, Spark 3.5.9: "insert: refused, upsert: refused, bulk_insert: committed, bulk_insert
#   without the row writer: refused, upsert of merge-on-read: committed".
# Who meets it: whoever guards a table by validators and loads it by bulk_insert, or has a merge-on-read table.
# Source: BaseDatasetBulkInsertCommitActionExecutor (no call of runPrecommitValidators), SparkValidatorUtils of Apache
#   Hudi; no issue is known to us.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyspark==3.5.9 setuptools
cat > "$work/run.py" <<'PY'
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g")
    .config("spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.ui.enabled", "false").getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
rows = spark.range(10).selectExpr("cast(id as string) as id", "1L as ts")
VALIDATOR = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME> where ts > 0#0",
}
ROW_WRITER, TYPE = "hoodie.datasource.write.row.writer.enable", "hoodie.datasource.write.table.type"
CASES = {
    "insert": ("insert", {}),
    "upsert": ("upsert", {}),
    "bulk_insert": ("bulk_insert", {}),
    "bulk_insert without the row writer": ("bulk_insert", {ROW_WRITER: "false"}),
    "upsert of merge-on-read": ("upsert", {TYPE: "MERGE_ON_READ"}),
}


def write(path, operation, more):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.metadata.enable": "false",
        **more,
    }
    rows.write.format("hudi").options(**options).mode("append").save(path)


def outcome(path, operation, more):
    write(path, "insert", {key: value for key, value in more.items() if key == TYPE})
    try:
        write(path, operation, {**VALIDATOR, **more})
    except Exception as error:
        assert "alidation" in str(error), error
        return "refused"
    return "committed"


seen = {name: outcome(f"{sys.argv[1]}/{n}", *case) for n, (name, case) in enumerate(CASES.items())}
print(", ".join(f"{name}: {found}" for name, found in seen.items()))
sys.exit(0 if list(seen.values()) == ["refused", "refused", "committed", "refused", "committed"] else 1)
PY
"$work/venv/bin/python" "$work/run.py" "$work/tables" 2>"$work/log" || { tail -20 "$work/log"; exit 1; }
