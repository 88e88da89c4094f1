#!/bin/bash
# Guess: the Avro schema that Hudi puts into the footer of a base file (parquet.avro.schema), into log files and commits can
#        be parsed by every Avro library.
# Instead: in a table with two VECTOR columns of one type, the schema defines {"type": "fixed", "name": "vector_float_4",
#        "namespace": ""} in the record of the namespace hoodie.<table>, and the second column is the bare name
#        "vector_float_4". Avro for Java finds the type without a namespace; by the specification the bare name belongs to
#        the namespace around it, and fastavro ends with UnknownType: hoodie.t.vector_float_4. One VECTOR column is fine.
# Seen:  Hudi 1.2.0, Spark 3.5.9, fastavro 1.12.1, on 2026-11-27.
# Who:   anyone who reads log files, commits or footers of such tables without Java.
# Source: HoodieSchema.createVector of Apache Hudi 1.2.0 (no namespace); Schema.Names of Apache Avro for Java.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==3.5.9 pyarrow==21.0.0 fastavro==1.12.1
cat > "$folder/run.py" <<'PYTHON'
import glob
import sys

import fastavro
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[1]")
for key, value in {
    "spark.jars.packages": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.warehouse.dir": folder + "/warehouse",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
found = {}
for columns in (1, 2):
    names = ["e", "f"][:columns]
    path = f"{folder}/t{columns}"
    spark.sql(
        f"create table t{columns} (id bigint, {', '.join(f'{name} vector(2)' for name in names)}) using hudi "
        f"tblproperties (primaryKey = 'id') location '{path}'"
    )
    spark.sql(f"insert into t{columns} select 1L, {', '.join('array(1f, 2f)' for _ in names)}")
    assert spark.table(f"t{columns}").count() == 1
    text = pq.read_metadata(glob.glob(path + "/*.parquet")[0]).metadata[b"parquet.avro.schema"].decode()
    try:
        fastavro.schema.parse_schema(__import__("json").loads(text))
        found[columns] = "parsed"
    except fastavro.schema.UnknownType as error:
        found[columns] = f"unknown type {error.name}"
print(found)
sys.exit(found != {1: "parsed", 2: "unknown type hoodie.t2.vector_float_2"})
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
