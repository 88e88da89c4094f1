"""Make tests/fixtures/rollbacks_0.15.0.zip with real Apache Hudi 0.15.0: make_fixture_rollbacks.py

Merge-on-read tables of version 6, each before and after Hudi rolled back an upsert that had appended to log files:

    failed       the upsert failed just before its commit      failed_by_hudi       the next write rolled it back
    completed    the upsert is completed                       completed_by_hudi    rollback_to_instant was called
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.interop.peer_server import session  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET = ROOT / "tests" / "fixtures" / "rollbacks_0.15.0"
VALIDATOR = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}


def main() -> None:
    spark = session("0.15.0")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        failed, completed = root / "failed", root / "completed"
        write(spark, failed, 0, 40)
        write(spark, failed, 0, 10)
        shutil.copytree(failed, completed)
        try:
            write(spark, failed, 5, 20, VALIDATOR)
        except Exception as error:
            print("failed as planned:", str(error).splitlines()[0])
        shutil.copytree(failed, root / "failed_by_hudi")
        write(spark, root / "failed_by_hudi", 0, 1)
        write(spark, completed, 5, 20)
        shutil.copytree(completed, root / "completed_by_hudi")
        instant = max(file.name.split(".")[0] for file in (completed / ".hoodie").glob("*.deltacommit"))
        spark.sql(f"create table by_hudi using hudi location '{root}/completed_by_hudi'")
        spark.sql(f"call rollback_to_instant(table => 'by_hudi', instant_time => '{instant}')").collect()
        for twin in root.rglob(".*.crc"):
            twin.unlink()
        shutil.make_archive(str(TARGET), "zip", root)


def write(spark: "SparkSession", path: Path, first: int, end: int, more: dict[str, str] | None = None) -> None:
    options = {
        "hoodie.table.name": "fixture",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "key",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.bloom.index.filter.dynamic.max.entries": "200",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.enable": "true",
        **(more or {}),
    }
    frame = spark.range(first, end, 1, 1).selectExpr(
        "format_string('key-%06d', id) as key",
        f"id * 10 + {end} as ts",
        "concat('p', cast(id % 2 as string)) as part",
    )
    frame.write.format("hudi").options(**options).mode("append").save(str(path))


if __name__ == "__main__":
    main()
