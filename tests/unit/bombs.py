"""Small files that claim to hold very much, and reading them in a child process with little memory and time."""

import json
import os
import resource
import signal
import struct
import traceback
import zlib
from collections.abc import Callable
from dataclasses import replace

from hudi_services.codecs import avro, thrift
from hudi_services.codecs.varint import encode_varint
from hudi_services.errors import HudiServicesError
from hudi_services.hfile import hfile_format
from hudi_services.hfile.hfile_format import BLOCK_HEADER_SIZE, Trailer, encode_trailer

CPU_SECONDS = 20
MEMORY = 700 << 20
HUGE = 1 << 40


def refusal(read: Callable[[], object]) -> str:
    """The error that refuses `read`, as text. A child process runs it, with limited memory and CPU time."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            _limit()
            answer = f"not refused: {read()!r:.100}"
        except HudiServicesError as e:
            answer = f"{type(e).__name__}: {e.message}"
        except BaseException as e:
            answer = f"untyped: {type(e).__name__} {''.join(traceback.format_tb(e.__traceback__))[-600:]}"
        os.write(theirs, answer.encode()[:4000])
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return answer or f"died of signal {signal.Signals(os.WTERMSIG(status)).name}"


def _limit() -> None:
    with open("/proc/self/statm") as file:
        most = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def record(*fields: object, name: str = "R") -> dict[str, object]:
    named = [{"name": f"f{i}", "type": kind} for i, kind in enumerate(fields)]
    return {"type": "record", "name": name, "fields": named}


def array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def container(schema: object, body: bytes, *, deflated: bool = False) -> bytes:
    """An Avro container of one record, which is `body`, as it is in the file."""
    text = (schema if isinstance(schema, str) else json.dumps(schema)).encode()
    codec = b"deflate" if deflated else b"null"
    header = avro._long(2) + b"".join(map(avro._bytes, (b"avro.schema", text, b"avro.codec", codec)))
    sync = b"s" * 16
    return avro.MAGIC + header + b"\0" + sync + avro._long(1) + avro._bytes(body) + sync


def zeros(mib: int, window: int) -> bytes:
    """So many MiB of them, compressed (`window` as zlib has it): the same MiB over and over."""
    stream, piece = zlib.compressobj(1, zlib.DEFLATED, window), bytes(1 << 20)
    start = stream.compress(piece) + stream.flush(zlib.Z_FULL_FLUSH)
    again = stream.compress(piece) + stream.flush(zlib.Z_FULL_FLUSH)
    end = stream.flush() if window < 0 else b"\3\0" + _gzip_trailer(piece, mib)
    return start + again * (mib - 1) + end


def _gzip_trailer(piece: bytes, times: int) -> bytes:
    checksum = 0
    for _ in range(times):
        checksum = zlib.crc32(piece, checksum)
    return struct.pack("<II", checksum, len(piece) * times)


ZERO = {"type": "fixed", "name": "Zero", "size": 0}
_MANY = avro._long(HUGE)


def tower(levels: int) -> dict[str, object]:
    """Records of one record each; in the last one, a byte."""
    found: object = "boolean"
    for level in range(levels):
        found = record(found, name=f"T{level}")
    assert isinstance(found, dict)
    return found


def flat_tower(levels: int) -> dict[str, object]:
    """Records in records by names: the JSON itself is not nested."""
    defined = [record(["null", f"T{level - 1}"] if level else "int", name=f"T{level}") for level in range(levels)]
    return record(*defined)


AVRO = {
    "array of an empty fixed": (container(record(array(ZERO)), _MANY), "a fixed of 0 bytes"),
    "array of a named empty fixed": (container(record(ZERO, "int", array("Zero")), b"\2" + _MANY), "a fixed of 0"),
    "array of records of it": (container(record(ZERO, "int", array(record("Zero", name="Q"))), b"\2" + _MANY), "fixed"),
    "array of null": (container(record(array("null")), _MANY), "an array of values without bytes"),
    "array of null in a record": (
        container(record(array(record("null", record("null", name="P"), name="Q"))), _MANY),
        "a record without bytes",
    ),
    "array of a named record of null": (
        container(record(record("null", name="Q"), array("Q")), _MANY),
        "without bytes",
    ),
    "array of an empty map of null": (
        container(record(array({"type": "map", "values": "null"})), _MANY),
        "broken Avro",
    ),
    "recursion through an array": (container(record(array("R")), b"\2" * 100_000), "R contains itself"),
    "recursion through a union": (container(record(["null", "R"]), b"\2" * 100_000), "R contains itself"),
    "deep by names": (container(flat_tower(2_000), b"\2" * 10_000), "nested more than 64 deep"),
    "deep by unions": (container(record(json.loads("[" * 400 + '"int"' + "]" * 400)), b"\0" * 400), "nested more than"),
    "a record of 30 records of one byte": (
        container(record(array(tower(30))), avro._long(100_000) + b"\0" * 100_001),
        "3 records in 1 bytes",
    ),
    "millions of records of a byte": (
        container(record(array(tower(1))), avro._long(1 << 20) + b"\0" * ((1 << 20) + 1)),
        "many more values",
    ),
    "millions of empty lists": (
        container(record(array(array("int"))), avro._long(1 << 20) + b"\0" * ((1 << 20) + 1)),
        "many more values",
    ),
    "2^40 numbers": (container(record(array("int")), _MANY + b"\2" * 10), "broken Avro"),
    "2^40 bytes": (container(record("bytes"), _MANY), "broken Avro"),
    "a fixed of 10^12 bytes": (container(record({"type": "fixed", "name": "F", "size": 10**12}), b"\0"), "broken Avro"),
    "deflate": (container(record("bytes"), zeros(600, -15), deflated=True), "inflate to more than"),
    "a long schema": (container(record("int") | {"doc": "x" * 300_000}, b"\0"), "characters"),
    "many header entries": (avro.MAGIC + _MANY + b"\0\0" * 100_000, "a header of more than 1000 entries"),
}
"""Plans, and what they are refused with."""


def footer_of_empty_structs(count: int) -> bytes:
    """Thrift bytes: a list of structs without a field, one byte each."""
    return bytes([1 << 4 | thrift.LIST, 0xF0 | thrift.STRUCT]) + encode_varint(count) + bytes(count + 1)


def hfile(data: list[bytes], root: bytes, count: int, info: bytes = b"", levels: int = 1) -> bytes:
    """A file of these blocks, `count` entries in its root index."""
    body = b"".join(data)
    trailer = Trailer(
        load_on_open_offset=len(body),
        file_info_offset=len(body) + len(root),
        data_index_count=count,
        index_levels=levels,
        entry_count=count,
    )
    return body + root + info + encode_trailer(replace(trailer, codec=hfile_format.CODEC_GZ))


def block(magic: bytes, stored: bytes, size: int) -> bytes:
    """A block that says it has `size` bytes."""
    length = BLOCK_HEADER_SIZE + len(stored)
    return magic + struct.pack(">iiqbii", len(stored), size, -1, 0, 16_384, length) + stored


def gzip_block(magic: bytes, payload: bytes) -> bytes:
    stream = zlib.compressobj(1, zlib.DEFLATED, 31)
    return block(magic, stream.compress(payload) + stream.flush(), len(payload))


def index_of(sizes: list[int]) -> bytes:
    """The root index of blocks of these sizes, one after another."""
    entries, at = [], 0
    for size in sizes:
        entries.append(struct.pack(">qi", at, size) + b"\3" + struct.pack(">h", 1) + b"k")
        at += size
    return gzip_block(hfile_format.ROOT_INDEX_MAGIC, b"".join(entries))
