"""The client of `peer_server`: real Apache Hudi of one release as a Python object."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_services.versions import VERSIONS, TableVersion

from .recipes import PARTITIONED_INDEX, SMALL_FILTERS, WRITE_DEFAULTS

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_PROPERTIES_TO_PASS = {
    "hoodie.table.name": "hoodie.table.name",
    "hoodie.table.recordkey.fields": "hoodie.datasource.write.recordkey.field",
    "hoodie.table.partition.fields": "hoodie.datasource.write.partitionpath.field",
    "hoodie.table.precombine.field": "hoodie.datasource.write.precombine.field",
    "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
    "hoodie.datasource.write.hive_style_partitioning": "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode": "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.populate.meta.fields": "hoodie.populate.meta.fields",
}


TABLE_VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
"""The version of the tables that each release writes."""
EACH_DELTA_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}


class PeerError(Exception):
    """Real Hudi refused or failed; the message starts with its own."""


class Peer:
    """Real Apache Hudi of `version`, in its own process, which logs to `log`. Close it: it holds a JVM."""

    def __init__(self, version: str, log: Path, *server_options: str) -> None:
        self.version = version
        self._log = log
        self._work = Path(tempfile.mkdtemp(prefix=f"peer-{version}-"))
        self._sizes = SMALL_FILTERS if "--small-tables" in server_options else {}
        self._count = 0
        self._log_file = log.open("ab")
        package = __package__ or "interop"
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{package}.peer_server", version, *server_options],
            cwd=Path(__file__).parents[package.count(".") + 1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log_file,
            text=True,
        )
        self._reply()

    @property
    def table_version(self) -> TableVersion:
        """That of the tables which it writes."""
        return VERSIONS[TABLE_VERSIONS[self.version]]

    def close(self) -> None:
        """End the JVM, by force when it does not go by itself."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log_file.close()
        shutil.rmtree(self._work, ignore_errors=True)

    def make(self, recipe: str, path: Path) -> None:
        """Write the table of `recipes.RECIPES[recipe]` into the new folder `path`."""
        self._call("make", recipe=recipe, path=str(path))

    def rows(self, path: Path, options: Mapping[str, str] | None = None, where: str | None = None) -> pa.Table:
        """A snapshot read. `metadata` is on or off as Hudi's own default says unless `options` says it."""
        return self._table("rows", path=str(path), options=dict(options or {}), where=where)

    def incremental(self, path: Path, begin: str, end: str | None = None) -> pa.Table:
        """Rows written after `begin`, up to and with `end`: completion times, in version 6 requested times."""
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        if end is not None:
            options["hoodie.datasource.read.end.instanttime"] = end
        return self.rows(path, options)

    def as_of(self, path: Path, instant: str) -> pa.Table:
        """The table as it was right after `instant` (a requested time)."""
        return self.rows(path, {"as.of.instant": instant})

    def metadata(
        self,
        path: Path,
        columns: Mapping[str, Sequence[str]],
        *,
        keys: Mapping[str | None, Sequence[str]] | None = None,
        values: Mapping[str, Sequence[str]] | None = None,
    ) -> dict[str, Any]:
        """The content of the metadata table, see `peer_server.Server.metadata`; `keys` by data partition."""
        asked = list((keys or {}).items())
        found = self._call("metadata", path=str(path), columns=columns, keys=asked, values=values or {})
        assert isinstance(found, dict)
        return found

    def record_locations(
        self, path: Path, keys: Sequence[str], partition: str | None = None
    ) -> dict[str, tuple[str, str, str]]:
        """Partition, file id and instant of the keys that the record index has; of a partitioned one, `partition`'s."""
        found = self._call("record_locations", path=str(path), keys=list(keys), partition=partition)
        return {key: (partition, file_id, instant) for key, (partition, file_id, instant) in found.items()}

    def secondary_keys(self, path: Path, index: str, values: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs of secondary key and record key that the metadata partition `index` has of `values`."""
        found = self._call("secondary_keys", path=str(path), index=index, values=list(values))
        return [(value, key) for value, key in found]

    def live_files(self, path: Path) -> list[str]:
        """The names of the base files that a snapshot read opens, without the metadata table."""
        found = self._call("live_files", path=str(path))
        assert isinstance(found, list)
        return found

    def query(self, text: str) -> pa.Table:
        return self._table("query", text=text)

    def sql(self, text: str) -> list[dict[str, Any]]:
        found = self._call("sql", text=text)
        assert isinstance(found, list)
        return found

    def eval(self, source: str, **variables: Any) -> Any:
        """Run Python in the server, where `spark` and `jvm` are; the name `result` comes back."""
        return self._call("eval", source=source, variables=variables)

    def upsert(self, path: Path, rows: pa.Table, **options: str) -> None:
        self._write(path, rows, "upsert", options)

    def insert(self, path: Path, rows: pa.Table, **options: str) -> None:
        self._write(path, rows, "insert", options)

    def bulk_insert(self, path: Path, rows: pa.Table, **options: str) -> None:
        self._write(path, rows, "bulk_insert", options)

    def insert_overwrite(self, path: Path, rows: pa.Table, **options: str) -> None:
        """The rows take the place of all others in their partitions."""
        self._write(path, rows, "insert_overwrite", options)

    def delete(self, path: Path, rows: pa.Table, **options: str) -> None:
        self._write(path, rows, "delete", options)

    def cluster(
        self,
        path: Path,
        op: str = "scheduleAndExecute",
        *,
        order: str | None = None,
        instants: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Hudi's `run_clustering` procedure; option values must hold no comma."""
        # Without these the procedure drops the metadata partitions that are on by default in writes (seen in 1.x).
        keep = metadata_options(path) | {"hoodie.clean.automatic": "false"} | self._sizes | dict(options or {})
        text = ",".join(f"{k}={v}" for k, v in keep.items())
        arguments = [f"path => '{path}'", f"op => '{op}'", f"options => '{text}'"]
        if order:
            arguments.append(f"order => '{order}'")
        if instants:
            arguments.append(f"instants => '{','.join(instants)}'")
        return self.sql(f"call run_clustering({', '.join(arguments)})")

    def compact(
        self,
        path: Path,
        op: str = "scheduleAndExecute",
        *,
        instant: str = "",
        options: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Hudi's `run_compaction` procedure, after each delta commit."""
        given = {**metadata_options(path), "hoodie.clean.automatic": "false"} | EACH_DELTA_COMMIT | dict(options or {})
        text = ",".join(f"{k}={v}" for k, v in given.items())
        arguments = [f"path => '{path}'", f"op => '{op}'", f"options => '{text}'"]
        if instant:
            arguments.append(f"timestamp => {instant}")
        return self.sql(f"call run_compaction({', '.join(arguments)})")

    def clean(self, path: Path, *, retain: int = 1, policy: str = "KEEP_LATEST_COMMITS") -> list[dict[str, Any]]:
        """Hudi's `run_clean` procedure; `retain` commits, or file versions."""
        kept = {"KEEP_LATEST_COMMITS": "retain_commits", "KEEP_LATEST_FILE_VERSIONS": "file_versions_retained"}[policy]
        options = ",".join(f"{k}={v}" for k, v in metadata_options(path).items())
        return self.procedure(
            path, "run_clean", f"clean_policy => '{policy}', {kept} => {retain}, options => '{options}'"
        )

    def procedure(self, path: Path, name: str, arguments: str) -> list[dict[str, Any]]:
        """Call one of Hudi's SQL procedures that take a table."""
        table = f"called_{self._next()}"
        self.sql(f"create table {table} using hudi location '{path}'")
        try:
            return self.sql(f"call {name}(table => '{table}', {arguments})")
        finally:
            self.sql(f"drop table {table}")

    def write(self, path: Path, rows: pa.Table, options: Mapping[str, str]) -> None:
        """Write rows with these options and no others."""
        source = self._work / f"{self._next()}.parquet"
        kept = rows.drop_columns([c for c in META_COLUMNS if c in rows.column_names])
        pq.write_table(kept, source)
        self._call("write", path=str(path), rows=str(source), options=dict(options))

    def _write(self, path: Path, rows: pa.Table, operation: str, options: Mapping[str, str]) -> None:
        known = write_options(path) | {"hoodie.datasource.write.operation": operation} | self._sizes | dict(options)
        self.write(path, rows, known)

    def _table(self, name: str, **args: Any) -> pa.Table:
        out = self._work / str(self._next())
        self._call(name, out=str(out), **args)
        found = pq.read_table(out)
        shutil.rmtree(out)
        return found

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _call(self, name: str, **args: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": name, "args": args}) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"Hudi {self.version} ended, see {self._log}: {self._log.read_text()[-2000:]}")
        reply = json.loads(line)
        if "error" in reply:
            raise PeerError(reply["error"])
        return reply["ok"]


def table_properties(path: Path) -> dict[str, str]:
    """`hoodie.properties` of a table that Hudi wrote; good enough for the values that tests need."""
    lines = (path / ".hoodie/hoodie.properties").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {k: v.replace("\\:", ":").replace("\\=", "=") for k, v in pairs}


def write_options(path: Path) -> dict[str, str]:
    """The options of a writer that knows the table at `path`."""
    properties = table_properties(path)
    passed = {option: properties[key] for key, option in _PROPERTIES_TO_PASS.items() if key in properties}
    # Custom key generators store `field:TYPE`; the plain ones are all that the recipes use.
    field = "hoodie.datasource.write.partitionpath.field"
    if field in passed:
        passed[field] = ",".join(part.split(":")[0] for part in passed[field].split(","))
    return WRITE_DEFAULTS | passed | metadata_options(path)


def metadata_options(path: Path) -> dict[str, str]:
    """The options that keep table version and metadata table: Hudi drops a partition that a writer does not ask for."""
    properties = table_properties(path)
    on = properties.get("hoodie.table.metadata.partitions", "").split(",")
    of_partitions = has_partitioned_index(path)
    # Or a later release lifts the table to its own version.
    stay = {"hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "false"}
    return {
        **(stay if properties.get("hoodie.table.version") == "8" else {}),
        "hoodie.metadata.enable": str("files" in on).lower(),
        "hoodie.metadata.index.column.stats.enable": str("column_stats" in on).lower(),
        "hoodie.metadata.index.partition.stats.enable": str("partition_stats" in on).lower(),
        "hoodie.metadata.index.bloom.filter.enable": str("bloom_filters" in on).lower(),
        "hoodie.metadata.record.index.enable": str("record_index" in on and not of_partitions).lower(),
        "hoodie.metadata.index.expression.enable": str(any(n.startswith("expr_index_") for n in on)).lower(),
        **({"hoodie.index.type": "RECORD_INDEX"} if "record_index" in on else {}),
        **(PARTITIONED_INDEX if of_partitions else {}),
        # With it, upserts find their keys by the filters there, and fail where one is missing.
        "hoodie.bloom.index.use.metadata": str("bloom_filters" in on).lower(),
    }


def index_definitions(path: Path) -> dict[str, Any]:
    """Hudi's definitions of the metadata partitions, by name; none at all before version 8."""
    file = path / ".hoodie/.index_defs/index.json"
    return dict(json.loads(file.read_text())["indexDefinitions"]) if file.exists() else {}


def has_partitioned_index(path: Path) -> bool:
    """Whether the table has a record index of each partition."""
    options = index_definitions(path).get("record_index", {}).get("indexOptions") or {}
    return bool(options.get("isPartitioned") == "true")
