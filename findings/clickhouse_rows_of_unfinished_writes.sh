#!/bin/bash
# ClickHouse's hudi() shows rows of a write that has not been committed, and not the ones that it is to replace.
#
# Expected: a commit of Hudi becomes visible as a whole, when its completed file is on the timeline. Until then, and when
#   the writer dies before, no reader sees anything of it.
# Instead (2026-11-27, chdb 4.4.0 = ClickHouse 26.9.2 on S3 of moto 5.2.5, Hudi 1.2.0 on Spark 3.5.9, copy-on-write):
#   hudi() takes the newest base file of each file group from a listing and does not read the timeline, so that the files
#   of an upsert are seen one by one while it runs, and those of a dead writer until the next writer rolls it back.
#     right before the completed file (and for good, if the writer dies there): Spark: 10 old rows     ClickHouse: 10 new
# Who meets it: whoever queries a Hudi table with ClickHouse beside a writer: a query can see half of a commit.
# Source: src/Storages/ObjectStorage/DataLakes/HudiMetadata.cpp of ClickHouse: it lists the base files and keeps, of each
#   file id, the one with the largest instant in its name.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==3.5.9 chdb==4.4.0 'moto[server]==5.2.5'
cat > "$work/finding.py" <<'PYTHON'
import sys
from pathlib import Path

import boto3
import chdb
from moto.server import ThreadedMotoServer
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
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
endpoint = "http://%s:%s" % server.get_host_and_port()
s3 = boto3.client(
    "s3", endpoint_url=endpoint, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
)
s3.create_bucket(Bucket="lake")


def upsert(value):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
    rows = spark.range(0, 10).selectExpr("cast(id as string) id", "1L ts", f"'{value}' value")
    rows.write.format("hudi").options(**options).mode("append").save(path)


def by_hudi():
    return sorted({row.value for row in spark.read.format("hudi").load(path).collect()})


def by_clickhouse(name):
    for file in Path(path).rglob("*"):
        if file.is_file():
            s3.upload_file(str(file), "lake", f"{name}/{file.relative_to(path)}")
    found = chdb.query(f"SELECT DISTINCT value FROM hudi('{endpoint}/lake/{name}/', 'key', 'secret')", "TSV")
    return sorted(str(found).split())


upsert("old")
upsert("new")
# The writer dies right before this file, which is the atomic step.
newest = sorted(Path(path, ".hoodie/timeline").glob("*.commit"))[-1]
newest.unlink()
newest.with_name(f".{newest.name}.crc").unlink()
found = by_hudi(), by_clickhouse("t")
server.stop()
print("values that Hudi and ClickHouse read:", *found)
assert found == (["old"], ["new"]), "the behaviour has changed"
PYTHON
cd "$work"
"$work/venv/bin/python" "$work/finding.py" "$work"
