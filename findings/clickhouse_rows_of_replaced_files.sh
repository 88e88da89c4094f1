#!/bin/bash
# ClickHouse's hudi() gives each row twice between a clustering of Hudi and the clean of the files that it replaced.
#
# Expected: the table has the same rows before and after a clustering: readers leave out the file groups that a completed
#   replace commit names, as every query of Hudi does.
# Instead (2026-11-27, chdb 4.4.0 = ClickHouse 26.9.2 on S3 of moto 5.2.5, Hudi 0.15.0 on Spark 3.5.9): hudi() lists the
#   base files, takes the newest of each file group, and does not read the timeline. Old and new file groups are both
#   there until a clean deletes the old ones; by Hudi's default, that is after ten more commits. No error, no warning.
#     Spark: 100 rows     ClickHouse: 200 rows; after Hudi's clean 100
#   insert_overwrite leaves replaced file groups in the same way.
# Who meets it: whoever queries a Hudi table with ClickHouse where somebody clusters or
#   overwrites it: sums and counts are too large.
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
    .config("spark.jars.packages", "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0")
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


def by_hudi():
    return spark.read.format("hudi").load(path).count()


def by_clickhouse(name):
    for file in Path(path).rglob("*"):
        if file.is_file():
            s3.upload_file(str(file), "lake", f"{name}/{file.relative_to(path)}")
    return int(str(chdb.query(f"SELECT count() FROM hudi('{endpoint}/lake/{name}/', 'key', 'secret')", "TSV")))


for first in (0, 50):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.insert.shuffle.parallelism": "2",
    }
    rows = spark.range(first, first + 50).selectExpr("cast(id as string) id", "1L ts")
    rows.write.format("hudi").options(**options).mode("append").save(path)
found = [(by_hudi(), by_clickhouse("fresh"))]
spark.sql(f"call run_clustering(op => 'scheduleAndExecute', path => '{path}', options => 'hoodie.clean.automatic=false')")
found.append((by_hudi(), by_clickhouse("clustered")))
spark.sql(f"create table t using hudi location '{path}'")
spark.sql("call run_clean(table => 't', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)")
found.append((by_hudi(), by_clickhouse("cleaned")))
server.stop()
print("rows that Hudi and ClickHouse read: fresh, clustered, cleaned:", *found)
assert found == [(100, 100), (100, 200), (100, 100)], "the behaviour has changed"
PYTHON
cd "$work"
"$work/venv/bin/python" "$work/finding.py" "$work"
