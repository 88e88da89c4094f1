"""The predicates of a workload from an event log of Spark: the filters of the scans of one table.

A log has one JSON object on each line, and is compressed as its name says: .zstd or .zst, .lz4 (the blocks of
LZ4BlockOutputStream of lz4-java), .gz, or not at all. Plans are in the events of executions: when one starts, and when
adaptive execution has changed its plan. A scan counts once for each execution. A rolled log is a folder
eventlog_v2_APP of files events_NUMBER_APP, of which a compacted one (.compact) stands for all up to its number. The log
of an application that runs, or was killed (.inprogress), may end anywhere.

    LZ4 block := "LZ4Block", token (0x10 stored, 0x20 compressed, in the high half), compressed length, length,
                 checksum (32 bits each, little endian), bytes; a block of length 0 ends a stream

Sources: EventLogFileWriters, EventLogFileReaders, SparkPlanInfo, SQLListener of Apache Spark 3.5; LZ4BlockOutputStream
of lz4-java 1.8.
"""

import io
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ..codecs.json_text import parse_json
from ..errors import ConfigError, HudiServicesError
from ..schemes import SCHEMES
from ..stores import open_storage
from ..urls import message_without_secrets
from .filter_texts import expression_sql, pushed_sql
from .predicates import AllOf, Predicate, Unknown
from .scan_filters import expression_condition, listed_filters, pushed_condition
from .sql_clauses import NamedColumns

_PLANS = (b"SparkListenerSQLExecutionStart", b"SparkListenerSQLAdaptiveExecutionUpdate")
_CODECS = {".zstd": "zstd", ".zst": "zstd", ".gz": "gzip", ".lz4": "lz4"}
_OTHERS = (".snappy", ".lzf")
_ROLLED_FOLDER, _OPEN, _COMPACTED = "eventlog_v2_", ".inprogress", ".compact"
_ROLLED_FILE = re.compile(r"/events_(\d+)_[^/]+$")
_NO_CODEC = re.compile(r"(\.inprogress|\.compact)$")
_LZ4_BLOCK = struct.Struct("<8sBIII")
_LZ4_MAGIC = b"LZ4Block"
_STORED, _COMPRESSED = 0x10, 0x20
_MOST_BLOCK = 32 << 20
_LOCATION = re.compile(r"\[(.*?)(?:, .*)?\]", re.DOTALL)
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*):(?://)?")

_Scan = tuple[str, str, str]
"""The partition filters, pushed filters and data filters of a scan."""


def is_event_log(name: str, begin: bytes) -> bool:
    """Whether a file of this name is an event log and not SQL, by its name or the bytes at its begin."""
    plain = _NO_CODEC.sub("", name.rstrip("/"))
    is_rolled = plain.rpartition("/")[2].startswith(_ROLLED_FOLDER)
    return is_rolled or plain.endswith((*_CODECS, *_OTHERS)) or begin.lstrip().startswith(b'{"Event"')


def logged_predicates(url: str, root: str, columns: NamedColumns) -> list[Predicate]:
    """The predicates of the scans of the table at `root`, each once, with the number of executions as its weight.

    Raises ConfigError for a log that cannot be read, or has no scan of the table with a filter.
    """
    try:
        scans = scans_of(_all_lines(url), root)
    except HudiServicesError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"the event log {url} cannot be read: {error.message}") from error
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"{url} is no event log of Spark that can be read: {said}") from error
    found = [_predicate(scan, count, columns) for scan, count in scans.items() if any(map(listed_filters, scan))]
    if not found:
        raise ConfigError(
            f"the event log {url} has no scan of {root} with a filter",
            hint="give a log of queries on this table, under this path, or the predicates as SQL",
        )
    return found


def scans_of(lines: Iterable[bytes], root: str) -> "Counter[_Scan]":
    """The scans of the table at `root`, each with the number of executions. Raises ValueError for what is no JSON."""
    executions: dict[int, Counter[_Scan]] = {}
    for line in lines:
        if not any(name in line[:200] for name in _PLANS):
            continue
        event = parse_json(line)
        plan, number = (event.get(key) for key in ("sparkPlanInfo", "executionId"))
        if isinstance(plan, dict) and isinstance(number, int):
            seen = Counter(_scan(one) for one in _nodes(plan) if _reads(one, root))
            # The plans of an execution show the same scans again.
            executions[number] = executions.get(number, Counter()) | seen
    return sum(executions.values(), Counter())


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(one for one in node.get("children") or () if isinstance(one, dict))


def _reads(node: Mapping[str, Any], root: str) -> bool:
    location = str((node.get("metadata") or {}).get("Location", ""))
    match = _LOCATION.search(location)
    return match is not None and _place(match[1]) == _place(root)


def _place(url: str) -> str:
    """A location without what its writers may choose: a scheme for the same store, a slash at the end."""
    match = _SCHEME.match(url)
    rest = url if match is None else url[match.end() :]
    scheme = "" if match is None or match[1] == "file" else match[1].lower()
    store = SCHEMES[scheme].opened_as if scheme in SCHEMES else scheme
    return f"{store}:{'/' + rest.strip('/')}"


def _scan(node: Mapping[str, Any]) -> _Scan:
    metadata = node["metadata"]
    keys = ("PartitionFilters", "PushedFilters", "DataFilters")
    partition, pushed, data = (str(metadata.get(key, "[]")) for key in keys)
    return partition, pushed, data


def _predicate(scan: _Scan, count: int, columns: NamedColumns) -> Predicate:
    partition, pushed, data = map(listed_filters, scan)
    parts = [expression_condition(one, columns) for one in partition]
    parts += [pushed_condition(one, columns) for one in pushed]
    # Spark pushes no other expressions, and Hudi does not take them for its data skipping.
    hidden = len(data) - len(pushed) if not any(" INSET " in one for one in data) else 0
    parts += [Unknown("a filter that Spark does not push down")] * max(0, hidden)
    shown = [expression_sql(one, columns) for one in partition if not one.startswith("isnotnull(")]
    shown += [pushed_sql(one, columns) for one in pushed if not one.startswith("IsNotNull(")]
    return Predicate(" AND ".join(shown or [*partition, *pushed, *data]), float(count), AllOf(tuple(parts)))


def _all_lines(url: str) -> Iterator[bytes]:
    """The lines of all files of a log, one file after the other."""
    folder, _, name = url.rstrip("/").rpartition("/")
    storage = open_storage(folder or ("/" if url.startswith("/") else "."))
    if not name.startswith(_ROLLED_FOLDER):
        lines = _lines(name, storage.read(name))
        yield from _whole(lines) if name.endswith(_OPEN) else lines
        return
    paths = [file.path for file in storage.list_dir(name)[0]]
    found = sorted((int(match[1]), path) for path in paths if (match := _ROLLED_FILE.search(path)))
    compacted = max((number for number, path in found if path.endswith(_COMPACTED)), default=0)
    used = [path for number, path in found if number > compacted or (path.endswith(_COMPACTED) and number == compacted)]
    is_open = any(path.endswith(_OPEN) for path in paths)
    for path in used:
        lines = _lines(path, storage.read(path))
        yield from _whole(lines) if is_open and path == used[-1] else lines


def _whole(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines up to where their file was cut."""
    with suppress(ValueError, OSError, EOFError, pa.ArrowException):
        for line in lines:
            if line.endswith(b"\n"):
                yield line


def _lines(name: str, content: bytes) -> Iterator[bytes]:
    """The lines of a log. Raises ConfigError for a codec that is not read, ValueError for a damaged log."""
    plain = _NO_CODEC.sub("", name)
    if plain.endswith(_OTHERS):
        raise ConfigError(
            f"the event log {message_without_secrets(name)} is compressed by {plain.rpartition('.')[2]}, which is not "
            "read",
            hint="read it with Spark's history server, or log with spark.eventLog.compression.codec=zstd",
        )
    codec = next((codec for ending, codec in _CODECS.items() if plain.endswith(ending)), "")
    if codec == "lz4":
        return iter(io.BufferedReader(_Lz4Blocks(content)))
    if not codec:
        return iter(io.BytesIO(content))
    return iter(io.BufferedReader(_Decompressed(pa.CompressedInputStream(pa.py_buffer(content), codec))))


class _Decompressed(io.RawIOBase):
    """A stream of Arrow as one of Python."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Lz4Blocks(io.RawIOBase):
    """The bytes in the blocks of lz4-java."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and self._at < len(self._content):
            self._rest = self._block()
        data, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _block(self) -> bytes:
        begin = self._at + _LZ4_BLOCK.size
        if begin > len(self._content):
            raise ValueError("it ends within a block")
        magic, token, compressed, length, _ = _LZ4_BLOCK.unpack_from(self._content, self._at)
        data = self._content[begin : begin + compressed]
        method = token & 0xF0
        if magic != _LZ4_MAGIC or method not in (_STORED, _COMPRESSED) or length > _MOST_BLOCK:
            raise ValueError(f"there is no LZ4 block at byte {self._at}")
        if len(data) < compressed:
            raise ValueError("it ends within a block")
        self._at = begin + compressed
        if method == _STORED:
            return data
        return bytes(pa.Codec("lz4_raw").decompress(data, length, asbytes=True))
