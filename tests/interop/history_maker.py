"""Makes the tables of `histories` with real Hudi, and keeps what Hudi read after each step."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import layout
from .histories import History, Step
from .peer import Peer, PeerError
from .recipes import SMALL_FILTERS, WRITE_DEFAULTS

FOLDER = Path(__file__).parents[1] / "fixtures" / "histories"
_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(10,2)": pa.decimal128(10, 2),
}
_CUT = 20


def by_key(row: dict[str, Any]) -> tuple[str, str]:
    """The order of rows. Hudi's usual indexes do not find keys that are in log files only, and write them again."""
    return str(row["id"]), str(row["_hoodie_commit_seqno"])


class HistoryMaker:
    """One table of `folder`, made by one release."""

    def __init__(self, peer: Peer, folder: Path, history: History) -> None:
        self._peer = peer
        self._folder = folder
        self._history = history
        self.path = folder / "table"

    def make(self) -> None:
        self._folder.mkdir(parents=True)
        steps = []
        for step in self._history.steps:
            error = self._tried(lambda step=step: self._take(step))
            after = self._tried(self._rows)
            steps.append({"operation": step.operation, "error": error, "timeline": self._timeline(), "after": after})
        (self._folder / "steps.json").write_text(json.dumps(steps, indent=1, default=str))

    def _tried(self, call: Any) -> Any:
        try:
            return call()
        except PeerError as e:
            return {"error": str(e).replace(str(self.path), "PATH").splitlines()[-1][:300]}

    def _take(self, step: Step) -> None:
        if step.operation in ("sql", "call"):
            self._run(step.statement)
        elif step.operation == "lose the commit":
            newest = self._completed()[-1]
            newest.unlink()
            newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        elif step.operation == "tear the log":
            logs = [file for file in self.path.rglob("p0/.*.log.*") if file.suffix != ".crc"]
            newest = max(logs, key=lambda file: file.stat().st_mtime)
            newest.write_bytes(newest.read_bytes()[:-_CUT])
            newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        else:
            rows = pa.Table.from_pylist(
                [dict(zip(_names(step.columns), row, strict=True)) for row in step.rows], _schema(step.columns)
            )
            operation = {"hoodie.datasource.write.operation": step.operation}
            self._peer.write(self.path, rows, self._options() | operation | dict(step.options))

    def _options(self) -> dict[str, str]:
        ordering = self._history.ordering_of(self._peer.version)
        return {
            **WRITE_DEFAULTS,
            **SMALL_FILTERS,
            "hoodie.table.name": "history",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            **({"hoodie.datasource.write.precombine.field": ordering} if ordering else {}),
            "hoodie.metadata.enable": "false",
            "hoodie.compact.inline": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            **{f"hoodie.{name}.shuffle.parallelism": "1" for name in ("upsert", "insert", "bulkinsert", "delete")},
            **self._history.options,
        }

    def _run(self, statement: str) -> None:
        """A statement with the options of the writer, on a table that has the name `t_history`."""
        last = self._completed()[-1].name.partition(".")[0].partition("_")[0]
        # SQL takes two ordering fields for the name of one; the table has them in its properties.
        options = {k: v for k, v in self._options().items() if k != "hoodie.table.name" and "," not in v}
        self._peer.sql("drop table if exists t_history")
        self._peer.sql(f"create table t_history using hudi location '{self.path}'")
        try:
            for key, value in options.items():
                self._peer.sql(f"set {key}={value}")
            text = statement.replace("{t}", "t_history").replace("{path}", str(self.path)).replace("{last}", last)
            self._peer.sql(text)
        finally:
            for key in options:
                self._peer.sql(f"reset {key}")

    def _rows(self) -> list[dict[str, Any]]:
        found = self._peer.rows(self.path, {"hoodie.metadata.enable": "false"})
        return sorted(found.to_pylist(), key=by_key)

    def _timeline(self) -> list[str]:
        return sorted(file.name for file in self._timeline_files())

    def _completed(self) -> list[Path]:
        kinds = (".commit", ".deltacommit", ".replacecommit")
        return sorted(file for file in self._timeline_files() if file.name.endswith(kinds))

    def _timeline_files(self) -> list[Path]:
        return [file for file in layout.timeline(self.path).iterdir() if file.is_file() and file.name[0].isdigit()]


def pack(release: str, folder: Path) -> None:
    """Into the archive of the release, without checksum files."""
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(FOLDER / f"{release}.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.suffix != ".crc":
                archive.add(path, str(path.relative_to(folder)), recursive=False)


def unpack(release: str, folder: Path) -> None:
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")


def _schema(columns: str) -> pa.Schema:
    return pa.schema([(part.split()[0], _TYPES[part.split()[1]]) for part in columns.split(", ")])


def _names(columns: str) -> list[str]:
    return [part.split()[0] for part in columns.split(", ")]
