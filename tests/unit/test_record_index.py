import random
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs.avro import read_datum, write_datum
from hudi_services.errors import CorruptFile, UnsupportedTable
from hudi_services.metadata.record_index.locations import (
    Location,
    decode_location,
    decode_locations,
    encode_location,
    millis_of,
)
from hudi_services.metadata.records.record_schema import stored_schema

from .tables import RELEASES

UUID = "7fee3d44-90b1-48bd-a01f-6e5d0f0a3c11"
FILE_IDS = (
    st.uuids().map(str)
    | st.tuples(st.uuids(), st.integers(0, 999_999_999)).map(lambda pair: f"{pair[0]}-{pair[1]}")
    | st.sampled_from([UUID.upper() + "-0", UUID + "-00", UUID + "--1", UUID + "-", "1-2-3-4-5-0", UUID[1:] + "-0", ""])
    | st.text(max_size=50)
)
LOCATIONS = st.builds(Location, st.text(max_size=30), FILE_IDS, st.integers(-(2**63), 2**63 - 1))
HERE = Location("day=2026-01-01", UUID + "-0", 1_767_225_600_000)


@given(LOCATIONS, st.sampled_from(RELEASES))
def test_round_trip(location: Location, release: str) -> None:
    schema = stored_schema(release)
    assert decode_location(encode_location(location, schema), schema, "f") == location


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("file_id", "high", "low", "index", "text", "encoding"),
    [
        (UUID + "-12", 0x7FEE3D4490B148BD, 0xA01F6E5D0F0A3C11 - 2**64, 12, "", 0),
        (UUID, 0x7FEE3D4490B148BD, 0xA01F6E5D0F0A3C11 - 2**64, -1, "", 0),
        ("file 7", -1, -1, -1, "file 7", 1),
        (UUID + "-012", -1, -1, -1, UUID + "-012", 1),
    ],
)
def test_fields(release: str, file_id: str, high: int, low: int, index: int, text: str, encoding: int) -> None:
    schema = stored_schema(release)
    tree = read_datum(schema, encode_location(Location("", file_id, 5), schema), "f")
    info = tree.pop("recordIndexMetadata")
    assert info.pop("position", None) is None
    assert list(info.values()) == ["", high, low, index, text, 5, encoding]
    assert {name: value for name, value in tree.items() if value is not None} == {"key": "", "type": 5}


@pytest.mark.parametrize(
    ("release", "value", "file_id", "millis"),
    [
        (
            "0.15.0",
            "0000000000000a00000002021c6461793d323032362d30312d303102"
            "9bc9ade1e2b2f3e03b02c3f3afd9eab5dcf4f1010200020002b6c5a4f9bf6800",
            "e21f1934-e9ea-4db2-870b-4728aa6a031e-0",
            1_795_289_289_051,
        ),
        (
            "1.0.2",
            "0000000000000a00000002021c6461793d323032362d30312d303102"
            "87dbcdf7a1dcfeb2c201029bccb9a7a9f4f4b7ba010200020002fe8eb0f9bf68000000",
            "9ecd028e-f086-493c-a2c8-162eb588ccf2-0",
            1_795_289_383_871,
        ),
        (
            "1.2.0",
            "0000000000000a00000002021c6461793d323032362d30312d303102"
            "d7fcdd8be4c9ba8d7502f99dca9d86f982a2a9010200020002ca9b93f9bf68000000",
            "c5728ad8-df44-40d4-ab5d-fa1bce26b883-0",
            1_795_289_147_109,
        ),
    ],
)
def test_values_of_hudi_come_back_byte_for_byte(release: str, value: str, file_id: str, millis: int) -> None:
    schema = stored_schema(release)
    location = decode_location(bytes.fromhex(value), schema, "f")
    assert location == Location("day=2026-01-01", file_id, millis)
    assert encode_location(location, schema).hex() == value


def test_columns() -> None:
    schema = stored_schema("1.2.0")
    known = [Location("p", f"{UUID}-{i}", i) for i in range(7)]
    encoded = [encode_location(location, schema) for location in known]
    picks = random.Random(1).choices(range(7), k=500)
    indices, found = decode_locations(pa.array([encoded[i] for i in picks]), schema, "f")
    assert indices.type == pa.int32()
    assert [found[i] for i in indices.to_pylist()] == [known[i] for i in picks]
    assert sorted(found, key=lambda one: one.instant_millis) == known
    with pytest.raises(CorruptFile, match="f/x"):
        decode_locations(pa.array([encoded[0], b"no"]), schema, "f/x")


@given(st.binary(max_size=80), st.integers(0, 60), st.integers(0, 255))
def test_any_bytes_are_a_location_or_corrupt(noise: bytes, at: int, byte: int) -> None:
    schema = stored_schema("1.2.0")
    damaged = bytearray(encode_location(HERE, schema))
    damaged[at] = byte
    for value in (noise, bytes(damaged)):
        try:
            assert isinstance(decode_location(value, schema, "dir/f"), Location)
        except CorruptFile as e:
            assert "dir/f" in e.message


@pytest.mark.parametrize(
    "change",
    [
        {"partitionName": None},
        {"instantTime": None},
        {"fileIdHighBits": None},
        {"fileIdLowBits": None},
        {"fileIndex": None},
        {"fileIdEncoding": 1, "fileId": None},
        {"fileIdEncoding": 2},
    ],
)
def test_what_is_missing(change: dict[str, object]) -> None:
    schema = stored_schema("1.2.0")
    tree = read_datum(schema, encode_location(HERE, schema), "f")
    tree["recordIndexMetadata"] |= change
    with pytest.raises(CorruptFile, match="record index"):
        decode_location(write_datum(schema, tree), schema, "f")


def test_records_of_other_types() -> None:
    schema = stored_schema("1.2.0")
    for tree in ({"key": "", "type": 5}, {"key": "", "type": 2, "filesystemMetadata": {}}):
        with pytest.raises(CorruptFile, match="record index"):
            decode_location(write_datum(schema, tree), schema, "f")


@given(st.datetimes(datetime(1971, 1, 2), datetime(9000, 1, 1), timezones=st.just(timezone.utc)))
def test_milliseconds(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    text = moment.strftime("%Y%m%d%H%M%S").rjust(14, "0")
    assert millis_of(f"{text}{moment.microsecond // 1000:03d}", "UTC") == round(moment.timestamp() * 1000)
    assert millis_of(text, "UTC") == round(moment.replace(microsecond=999_000).timestamp() * 1000)


def test_the_zone_of_the_process() -> None:
    local = datetime(2026, 7, 1, 12, 30, 15, 7000).astimezone()
    assert millis_of("20260701123015007", "LOCAL") == round(local.timestamp() * 1000)


def test_instants_that_are_no_time() -> None:
    with pytest.raises(UnsupportedTable, match="00000000000001"):
        millis_of("00000000000001", "UTC")
