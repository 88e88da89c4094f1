"""Make tests/fixtures/tables/{vectors,variant}_1.2.0.zip with real Apache Hudi 1.2.0.

vectors    merge-on-read; VECTOR columns, two of one type, and a BLOB column; a base file, and a log file with updates
variant    the same with a VARIANT column, which Hudi on Spark 3.5 writes, and does not read
"""

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "fixtures" / "tables"
VERSION = "1.2.0"

_VECTORS = """
spark.sql("set hoodie.bloom.index.filter.dynamic.max.entries=100")
spark.sql("set hoodie.index.bloom.num_entries=100")
spark.sql("create table vectors (id bigint, ts bigint, e vector(4), f vector(4), d vector(3, double),"
    " i vector(5, int8), b blob, p string) using hudi"
    " tblproperties (primaryKey='id', preCombineField='ts', type='mor')"
    f" partitioned by (p) location '{path}'")
blob = ("named_struct('type', 'INLINE', 'data', cast('abc' as binary), 'reference',"
    " cast(null as struct<external_path: string, offset: bigint, length: bigint, managed: boolean>))")
values = ("array(cast(id as float), 0.5f, 1.5f, -1f), array(0f, 0f, 0f, cast(id as float)),"
    " array(cast(id as double), 0.1d, 2d), array(1Y, -128Y, 127Y, 0Y, cast(id as tinyint))")
spark.sql(f"insert into vectors select id, 1L, {values}, {blob}, 'a' from range(6)")
spark.sql("update vectors set e = array(9f, 8f, 7f, 6f), f = null, ts = 2L where id = 3")
"""
_VARIANT = """
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType
parts = StructType([StructField("metadata", BinaryType(), False), StructField("value", BinaryType(), False)])
fields = [StructField("id", LongType()), StructField("ts", LongType()), StructField("p", StringType())]
schema = StructType([*fields, StructField("v", parts, True, {"hudi_type": "VARIANT"})])
number = (bytearray(b"\\x01\\x00\\x00"), bytearray(b"\\x0c\\x07"))
options = {
    "hoodie.table.name": "variant",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    "hoodie.index.bloom.num_entries": "100",
}
for rows in ([(i, 1, "a", number) for i in range(6)], [(1, 2, "a", number), (3, 2, "a", None)]):
    spark.createDataFrame(rows, schema).write.format("hudi").options(**options).mode("append").save(path)
"""


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.interop.peer import Peer

    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(VERSION, Path(folder) / "log", "--small-tables")
        try:
            for name, source in {"vectors": _VECTORS, "variant": _VARIANT}.items():
                peer.eval(source, path=str(Path(folder) / name / "table"))
        finally:
            peer.close()
        for twin in Path(folder).rglob(".*.crc"):
            twin.unlink()
        for name in ("vectors", "variant"):
            shutil.make_archive(str(TARGET / f"{name}_{VERSION}"), "zip", Path(folder) / name)


if __name__ == "__main__":
    main()
