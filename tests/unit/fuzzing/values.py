"""Hostile values in files that are intact: what somebody writes who knows the formats."""

import copy
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from hudi_services.codecs.avro import parse_schema, read_container, read_datum, write_container, write_datum
from hudi_services.codecs.properties import format_properties, parse_properties
from hudi_services.codecs.thrift import ListValue, Struct, decode_struct, encode_struct
from hudi_services.hfile.hfile_reader import HFileReader
from hudi_services.hfile.hfile_writer import write_hfile
from hudi_services.log_files.log_blocks import BlockType, LogBlock
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.log_files.log_writer import encode_block

_TEXTS = (
    "",
    ".",
    "..",
    "../x",
    "../../outside/x",
    "a/../../../outside/x",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://bucket/key",
    "a//b",
    "a\0b",
    "a\nb",
    "\x1b[31m",
    "\u202e",
    "日本",
    "%2e%2e/x",
    "x" * 300,
    "x" * 5000,
    "null",
    "true",
    "-1",
    "0",
    "1e400",
    "NaN",
    "20260101000000000",
    "99999999999999999",
    "2026010100000000",
    "{}",
    "[" * 2000,
    "'",
    "$1\\",
)
_NUMBERS = (0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**31, 2**53, 2**63 - 1, -(2**63), 10**15)
_OTHERS: tuple[Any, ...] = (None, True, 1, 1.5, -0.0, float("inf"), float("nan"), "x", [], {}, [[]], 10**30)
_PROPERTIES = (
    "hoodie.table.version",
    "hoodie.timeline.layout.version",
    "hoodie.table.metadata.partitions",
    "hoodie.table.partition.fields",
    "hoodie.table.name",
    "hoodie.timeline.path",
    "hoodie.timeline.history.path",
    "hoodie.table.timeline.timezone",
    "hoodie.table.cdc.enabled",
    "hoodie.clean.policy",
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    "partitionDepth",
)
_TRIES = 20
_LEVELS = 3000


class Source(Random):
    """Chance, with the texts that it puts into files: hostile ones, and those that other files of the table go by."""

    def __init__(self, seed: str, names: Sequence[str]) -> None:
        super().__init__(seed)
        self._names = names

    def text(self) -> str:
        return self.choice(self._names) if self._names and self.random() < 0.3 else self.choice(_TEXTS)


def change(chance: Source, path: str, data: bytes) -> tuple[str, bytes] | None:
    """One value of the file at `path` changed and the file encoded again; None when nothing in it can be."""
    for _ in range(_TRIES):
        try:
            changed = _changer(path, data)(chance, data)
        except Exception:
            # A value that the format cannot hold: another one.
            continue
        if changed is not None and changed[1] != data:
            return changed
    return None


Changer = Callable[[Source, bytes], tuple[str, bytes] | None]


def _changer(path: str, data: bytes) -> Changer:
    name = path.rsplit("/", 1)[-1]
    if name.startswith("hoodie.properties") or name == ".hoodie_partition_metadata":
        return _properties
    if name.endswith(".hfile"):
        return _hfile
    if name.endswith(".parquet"):
        return _footer
    if ".log." in name:
        return _log
    if data.startswith(b"Obj\x01"):
        return _avro
    if data.lstrip()[:1] in (b"{", b"["):
        return _json
    return _lines


def _avro(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    tree = read_container(data, "fuzz")
    how = _hostile(chance, tree, json_values=False)
    schema = parse_schema(_schema_of(data), "fuzz")
    return how, write_container(schema, tree)


def _schema_of(data: bytes) -> str:
    """The text of the schema in the header: Avro's long, then the bytes."""
    at = data.index(b"avro.schema") + len(b"avro.schema")
    size, shift = 0, 0
    while True:
        byte = data[at]
        at, size, shift = at + 1, size | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            break
    return data[at : at + (size >> 1)].decode()


def _json(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    if chance.random() < 0.05:
        return "nested deeply", b"[" * _LEVELS + data + b"]" * _LEVELS
    holder = {"": json.loads(data)}
    how = _hostile(chance, holder, json_values=True)
    tree = holder.get("")
    if isinstance(tree, dict) and "sum" in tree and not how.startswith("'sum'"):
        rest = {key: value for key, value in tree.items() if key != "sum"}
        tree["sum"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return how, json.dumps(tree).encode()


def _properties(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    values = dict(parse_properties(data, "fuzz"))
    key = chance.choice((*values, *_PROPERTIES))
    if chance.random() < 0.15:
        values.pop(key, None)
        how = f"{key} dropped"
    else:
        values[key] = chance.choice((chance.text(), chance.text(), str(chance.choice(_NUMBERS)), *values.values()))
        how = f"{key} = {values[key]!r:.60}"
    if key != "hoodie.table.checksum" and "hoodie.table.checksum" in values:
        database, name = values.get("hoodie.database.name", ""), values.get("hoodie.table.name", "")
        values["hoodie.table.checksum"] = str(zlib.crc32(f"{database}.{name}".encode()))
    return how, format_properties(values)


def _lines(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    lines = data.decode().split("\n")
    at = chance.randrange(len(lines))
    lines[at] = chance.choice((chance.text(), f"{chance.text()}/{lines[at]}"))
    return f"line {at} = {lines[at]!r:.60}", "\n".join(lines).encode()


def _hfile(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    reader = HFileReader(data, "fuzz")
    schema = parse_schema(reader.file_info[b"schema"].decode(), "fuzz")
    rows = list(reader.scan())
    at = chance.randrange(len(rows))
    key, value = rows.pop(at)
    if chance.random() < 0.1:
        how, entries = f"record {at} dropped", rows
    elif chance.random() < 0.15:
        text = chance.text()
        how, entries = f"key {key!r:.40} -> {text!r:.40}", [*rows, (text.encode(), value)]
    else:
        tree = read_datum(schema, value, "fuzz")
        how = f"record {key!r:.40}: {_hostile(chance, tree, json_values=False)}"
        entries = [*rows, (key, write_datum(schema, tree))]
    return how, write_hfile(sorted(dict(entries).items()), schema.text)


def _log(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    blocks = read_log_blocks(data, "fuzz")
    at = chance.randrange(len(blocks))
    block = blocks[at]
    if block.type is BlockType.HFILE_DATA and chance.random() < 0.75:
        changed = _hfile(chance, block.content)
        if changed is None:
            return None
        how, content = changed
        blocks[at] = LogBlock(block.type, block.header, content)
    else:
        header = dict(block.header)
        key = chance.choice(list(header))
        header[key] = chance.text()
        how = f"header {key.name} = {header[key]!r:.40}"
        blocks[at] = LogBlock(block.type, header, block.content)
    return f"block {at}: {how}", b"".join(map(encode_block, blocks))


def _footer(chance: Source, data: bytes) -> tuple[str, bytes] | None:
    length = int.from_bytes(data[-8:-4], "little")
    pages, footer = data[: -8 - length], data[-8 - length : -8]
    tree, _ = decode_struct(footer, "fuzz")
    places = list(_fields(tree))
    struct, field = chance.choice(places)
    wire, old = struct.fields[field]
    if chance.random() < 0.1:
        struct.drop(field)
        how = f"field {field} dropped"
    else:
        new = _other_field(chance, old)
        struct.set(field, wire, new)
        how = f"field {field}: {old!r:.40} -> {new!r:.40}"
    encoded = encode_struct(tree)
    return how, pages + encoded + len(encoded).to_bytes(4, "little") + b"PAR1"


def _fields(node: object) -> Iterator[tuple[Struct, int]]:
    if isinstance(node, Struct):
        for field, (_, value) in node.fields.items():
            yield node, field
            yield from _fields(value)
    elif isinstance(node, ListValue):
        for item in node.items:
            yield from _fields(item)


def _other_field(chance: Source, old: Any) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return chance.choice((old + 1, old - 1, old * 2, *_NUMBERS))
    if isinstance(old, bytes):
        return chance.choice((old[::-1], old[:-1], old + b"x", b"\xff" * 9, chance.text().encode()))
    if isinstance(old, ListValue):
        return ListValue(old.element_type, _other_list(chance, list(old.items)))
    return Struct()


def _other_list(chance: Source, items: list[Any]) -> list[Any]:
    if items and chance.random() < 0.5:
        at = chance.randrange(len(items))
        return items[:at] + items[at + 1 :] if chance.random() < 0.5 else [*items, copy.deepcopy(items[at])]
    return items[::-1] if chance.random() < 0.5 else []


def _hostile(chance: Source, tree: Any, *, json_values: bool) -> str:
    """Change one value below `tree`, in place; other types where JSON allows all."""
    node, key = chance.choice(list(_places(tree)))
    old = node[key]
    if isinstance(node, dict) and chance.random() < 0.1:
        name = chance.text()
        node[name] = node.pop(key)
        return f"key {key!r:.40} -> {name!r:.40}"
    if isinstance(node, dict) and json_values and chance.random() < 0.1:
        del node[key]
        return f"key {key!r:.40} dropped"
    node[key] = _other(chance, old, json_values)
    return f"{key!r:.40}: {old!r:.40} -> {node[key]!r:.40}"


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below `node`, by what holds it and its key there."""
    keys: Any = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


def _other(chance: Source, old: Any, json_values: bool) -> Any:
    if json_values and chance.random() < 0.3:
        return chance.choice(_OTHERS)
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return chance.choice((*_NUMBERS, old + 1, old - 1))
    if isinstance(old, float):
        return chance.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))
    if isinstance(old, str):
        return chance.choice((chance.text(), chance.text(), chance.text(), f"../{old}", f"{old}x", old[1:]))
    if isinstance(old, bytes):
        return chance.choice((b"", old[:-1], old + b"x", b"\xff" * 8, b"x" * 5000))
    if isinstance(old, list):
        return _other_list(chance, old)
    if isinstance(old, dict):
        return {} if chance.random() < 0.5 else dict(list(old.items())[1:])
    return chance.choice((None, chance.text(), chance.choice(_NUMBERS)))
