"""Avro containers and bare records."""

import contextlib
import io
import json
import random
import struct
import time
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import avro
from hudi_services.errors import CorruptFile

SIMPLE = avro.parse_schema(
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "s", "type": "string"},
                {"name": "l", "type": ["null", "long"]},
                {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "bytes"}}},
                {"name": "d", "type": "double"},
            ],
        }
    ),
    "test",
)
RECORDS = st.fixed_dictionaries(
    {
        "s": st.text(st.characters(exclude_categories=["Cs"])),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "m": st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.binary())),
        "d": st.floats(allow_nan=False),
    }
)
RELEASES = ("0.15.0", "1.0.2", "1.2.0")


@given(RECORDS)
def test_round_trip(record: dict[str, Any]) -> None:
    data = avro.write_container(SIMPLE, record)
    assert avro.read_container(data, "f") == record
    assert avro.write_container(SIMPLE, record) == data
    assert avro.read_datum(SIMPLE, avro.write_datum(SIMPLE, record), "f") == record


@given(RECORDS)
def test_fastavro_reads_our_container_and_we_read_its(record: dict[str, Any]) -> None:
    reader = fastavro.reader(io.BytesIO(avro.write_container(SIMPLE, record)))
    assert list(reader) == [record]
    assert set(reader.metadata) == {"avro.schema"}
    for codec in ("null", "deflate"):
        out = io.BytesIO()
        fastavro.writer(out, SIMPLE.parsed, [record], codec=codec)
        assert avro.read_container(out.getvalue(), "f") == record


@pytest.mark.parametrize("release", RELEASES)
def test_wrapped_values_keep_their_type(release: str) -> None:
    schema = avro.load_schema("HoodieMetadataRecord", release)
    package = "org.apache.hudi.avro.model."
    for wrapper, value in (("IntWrapper", 1), ("LongWrapper", 1), ("DecimalWrapper", b"\x01"), ("DateWrapper", 5)):
        stats = {"minValue": (package + wrapper, {"value": value}), "isDeleted": False}
        data = avro.write_datum(
            schema, {"key": "k", "type": 3, "ColumnStatsMetadata": stats, "filesystemMetadata": None}
        )
        record = avro.read_datum(schema, data, "f")
        assert record["ColumnStatsMetadata"]["minValue"] == (package + wrapper, {"value": value})
        assert record["ColumnStatsMetadata"]["maxValue"] is None


def test_times_beyond_pythons_dates_stay_numbers() -> None:
    schema = avro.load_schema("HoodieMetadataRecord", "1.2.0")
    far = ("org.apache.hudi.avro.model.TimestampMicrosWrapper", {"value": 2**62})
    record = {
        "key": "",
        "type": 3,
        "filesystemMetadata": None,
        "ColumnStatsMetadata": {"maxValue": far, "isDeleted": True},
    }
    read = avro.read_datum(schema, avro.write_datum(schema, record), "f")
    assert read["ColumnStatsMetadata"]["maxValue"] == far


def test_schemas_differ_where_the_releases_do() -> None:
    def fields(record: str, release: str) -> list[str]:
        return [field["name"] for field in json.loads(avro.load_schema(record, release).text)["fields"]]

    assert "compacted" not in fields("HoodieCommitMetadata", "0.15.0")
    assert "compacted" in fields("HoodieCommitMetadata", "1.0.2")
    assert avro.load_schema("HoodieCommitMetadata", "1.0.2") == avro.load_schema("HoodieCommitMetadata", "1.2.0")
    assert "SecondaryIndexMetadata" not in fields("HoodieMetadataRecord", "0.15.0")
    assert "ArrayWrapper" not in avro.load_schema("HoodieMetadataRecord", "1.0.2").text
    assert "ArrayWrapper" in avro.load_schema("HoodieMetadataRecord", "1.2.0").text
    with pytest.raises(LookupError):
        avro.load_schema("Nonsense", "1.2.0")


def _container(header: dict[str, bytes], body: bytes) -> bytes:
    def long(value: int) -> bytes:
        out, rest = bytearray(), value << 1
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        return bytes([*out, rest])

    pairs = b"".join(long(len(k)) + k.encode() + long(len(v)) + v for k, v in header.items())
    return avro.MAGIC + long(len(header)) + pairs + b"\0" + b"s" * 16 + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Obj",
        b"{}",
        avro.MAGIC + b"\0",
        avro.MAGIC + b"\xff" * 30,
        _container({}, b""),
        _container({"avro.schema": b"\xff"}, b""),
        _container({"avro.schema": b"{"}, b""),
        _container({"avro.schema": b'"string"'}, b"\x02\x04\x02a" + b"s" * 16),
        _container({"avro.schema": b'{"type":"nonsense"}'}, b""),
        _container({"avro.schema": SIMPLE.text.encode(), "avro.codec": b"snappy"}, b"\x02\x00" + b"s" * 16),
        _container({"avro.schema": SIMPLE.text.encode(), "avro.codec": b"deflate"}, b"\x02\x02x" + b"s" * 16),
        _container({"avro.schema": SIMPLE.text.encode()}, b""),
        _container({"avro.schema": SIMPLE.text.encode()}, b"\x04\x00" + b"s" * 16),
    ],
)
def test_garbage_names_the_file(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"/t/x\.clean"):
        avro.read_container(data, "/t/x.clean")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "A", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]},
        {
            "type": "record",
            "name": "A",
            "fields": [
                {"name": "e", "type": {"type": "record", "name": "E", "fields": []}},
                {"name": "a", "type": {"type": "array", "items": "E"}},
            ],
        },
        {"type": "record", "name": "A", "fields": [{"name": "next", "type": ["null", "A"]}]},
    ],
)
def test_a_schema_that_would_not_end_is_refused(schema: dict[str, Any]) -> None:
    forever = _container(
        {"avro.schema": json.dumps(schema).encode()}, b"\x02\x14" + b"\xfe\xff\xff\xff\x0f" * 2 + b"s" * 16
    )
    with pytest.raises(CorruptFile):
        avro.read_container(forever, "f")


def test_a_deeply_nested_schema_is_refused() -> None:
    with pytest.raises(CorruptFile):
        avro.parse_schema("[" * 100_000, "f")
    with pytest.raises(CorruptFile):
        avro.parse_schema('{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000, "f")


@given(st.binary(max_size=60))
def test_any_datum_reads_or_fails_typed(data: bytes) -> None:
    with contextlib.suppress(CorruptFile):
        avro.read_datum(avro.load_schema("HoodieMetadataRecord", "1.2.0"), data, "f")


def test_any_change_of_a_container_reads_or_fails_typed() -> None:
    record = {"s": "text", "l": 5, "m": {"k": [b"a", b"bb"]}, "d": 1.5}
    good = avro.write_container(SIMPLE, record)
    rng = random.Random(1)
    start = time.monotonic()
    for _ in range(1500):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        bad = bad[: rng.choice([len(bad), rng.randrange(len(bad))])]
        with contextlib.suppress(CorruptFile):
            assert isinstance(avro.read_container(bytes(bad), "f"), dict)
    assert time.monotonic() - start < 10


def test_a_truncated_container_never_reads() -> None:
    good = avro.write_container(SIMPLE, {"s": "text", "l": None, "m": {}, "d": struct.unpack("<d", b"\1" * 8)[0]})
    for length in range(len(good)):
        with pytest.raises(CorruptFile):
            avro.read_container(good[:length], "f")


def test_a_type_without_a_namespace_is_found_from_inside_of_one() -> None:
    """As Avro for Java finds it, which writes such schemas: two VECTOR columns of one type in Hudi 1.2.0."""
    bare = {"type": "fixed", "name": "v", "namespace": "", "size": 2}
    inner = {"type": "record", "name": "b", "namespace": "", "fields": [{"name": "x", "type": "v"}]}
    own = {"type": "fixed", "name": "w", "size": 1}
    types: list[Any] = [bare, ["null", "v"], {"type": "array", "items": "v"}, inner, {"type": "map", "values": "b"}]
    types += [own, "w", {"type": "fixed", "name": "w", "namespace": "", "size": 3}, "w", "long"]
    fields = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(types)]
    schema = avro.parse_schema(json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": fields}), "f")
    values = [b"ab", b"cd", [b"ef"], {"x": b"gh"}, {"k": {"x": b"ij"}}, b"k", b"l", b"mno", b"p", 7]
    record = {f"c{number}": value for number, value in enumerate(values)}
    data = avro.write_datum(schema, record)
    assert avro.read_datum(schema, data, "f") == record
    assert fastavro.schemaless_reader(io.BytesIO(data), schema.counted, None) == record
    with pytest.raises(CorruptFile, match="no valid Avro schema"):
        avro.parse_schema(
            json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": "unknown"}]}), "f"
        )
