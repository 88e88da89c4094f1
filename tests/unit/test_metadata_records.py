import dataclasses
import json
import random
from pathlib import Path

import pytest

from hudi_services.codecs.avro import AvroSchema, parse_schema
from hudi_services.errors import CorruptFile, HudiServicesError
from hudi_services.hfile.hfile_reader import HFileReader
from hudi_services.log_files.log_blocks import BlockType, HeaderKey
from hudi_services.log_files.log_reader import read_log_blocks
from hudi_services.metadata.records.codec import decode_record, encode_record
from hudi_services.metadata.records.model import FileEntry, FilesRecord, RecordType, StatsRecord, merge_records
from hudi_services.metadata.records.record_schema import stored_schema, writer_schema
from hudi_services.schema.column_type import ColumnType, Kind

from .tables import RELEASES, unpack, without_docs

LONG = ColumnType(Kind.LONG)


def stored_rows(release: str, folder: Path) -> list[tuple[str, bytes, str]]:
    """(key, value, schema) of every row in the log files of a real metadata table."""
    rows = []
    for path in sorted(unpack(release, folder).glob(".hoodie/metadata/*/.*.log.*")):
        for block in read_log_blocks(path.read_bytes(), path.name):
            if block.type is BlockType.HFILE_DATA:
                schema = block.header[HeaderKey.SCHEMA]
                rows += [(k.decode(), v, schema) for k, v in HFileReader(block.content, path.name).scan()]
    return rows


@pytest.mark.parametrize("release", RELEASES)
def test_records_of_hudi_come_back_byte_for_byte(release: str, tmp_path: Path) -> None:
    schema = stored_schema(release)
    rows = stored_rows(release, tmp_path)
    assert rows
    # Blocks of a later release are followed by blocks with its schema.
    assert writer_schema(RELEASES[0], parse_schema(rows[0][2], "f")).text == schema.text
    for key, value, text in rows:
        assert without_docs(json.loads(text)) == without_docs(json.loads(schema.text)) and '"doc"' not in schema.text
        record = decode_record(key, value, schema, "f")
        again = encode_record(record, schema, typed=release == "1.2.0")
        # Maps and types without V1 information have more than one form: what is read must be the same.
        assert decode_record(key, again, schema, "f") == record
        if isinstance(record, FilesRecord) and len(record.entries) < 2:
            assert again == value


def files(**entries: int | None) -> FilesRecord:
    """size, or None for a deletion."""
    listed = {n: FileEntry(0, True) if size is None else FileEntry(size) for n, size in entries.items()}
    return FilesRecord("p", RecordType.FILES, listed)


@pytest.mark.parametrize(
    ("older", "newer", "merged"),
    [
        (files(a=1), files(b=2), files(a=1, b=2)),
        (files(a=1), files(a=None), files()),
        (files(), files(a=None), files(a=None)),
        (files(a=None), files(a=None), files(a=None)),
        (files(a=5), files(a=3), files(a=5)),
        (files(a=None), files(a=3), files(a=3)),
    ],
)
def test_listings_merge_by_name(older: FilesRecord, newer: FilesRecord, merged: FilesRecord) -> None:
    assert merge_records(older, newer) == merged


def stats(low: int | None, high: int | None, **changes: object) -> StatsRecord:
    record = StatsRecord("k", RecordType.PARTITION_STATS, "p", "c", LONG, low, high, 10, 1, 100, 200)
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


def test_a_range_that_is_not_tight_widens_the_older_one() -> None:
    merged = merge_records(stats(1, 5), stats(3, 9))
    assert merged == stats(1, 9, value_count=20, null_count=2, total_size=200, total_uncompressed_size=400)


@pytest.mark.parametrize("newer", [stats(3, 4, tight=True), stats(None, None, deleted=True)])
def test_tight_ranges_and_deletions_replace_the_older_one(newer: StatsRecord) -> None:
    assert merge_records(stats(1, 5), newer) == newer
    assert merge_records(newer, stats(7, 8)) == (
        stats(7, 8)
        if newer.deleted
        else stats(3, 8, value_count=20, null_count=2, total_size=200, total_uncompressed_size=400)
    )


def test_widening_promotes_the_older_range_and_skips_nulls() -> None:
    older = stats(1, 5, bound=ColumnType(Kind.INT))
    merged = merge_records(older, stats(2.5, 7.5, bound=ColumnType(Kind.DOUBLE)))
    assert isinstance(merged, StatsRecord)
    assert (merged.minimum, merged.maximum) == (1.0, 7.5)
    nothing = stats(None, None, bound=ColumnType(Kind.NULL))
    for pair in ((older, nothing), (nothing, older)):
        merged = merge_records(*pair)
        assert isinstance(merged, StatsRecord)
        assert (merged.minimum, merged.maximum, merged.bound) == (1, 5, ColumnType(Kind.INT))


def test_a_type_that_no_longer_fits_leaves_the_newer_range() -> None:
    merged = merge_records(stats("a", "b", bound=ColumnType(Kind.STRING)), stats(2, 3))
    assert isinstance(merged, StatsRecord)
    assert (merged.minimum, merged.maximum) == (2, 3)


def damaged(value: bytes, schema: AvroSchema, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(value)
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    try:
        decode_record("k", bytes(data[: rng.randint(0, len(data))]), schema, "damaged")
    except HudiServicesError as e:
        assert isinstance(e, CorruptFile) and "damaged" in e.message


def test_damaged_records_are_corrupt_files(tmp_path: Path) -> None:
    schema = stored_schema("1.2.0")
    values = [value for _, value, _ in stored_rows("1.2.0", tmp_path)][:40]
    for seed, value in enumerate(values * 20):
        damaged(value, schema, seed)


def test_record_types_that_we_do_not_read_are_refused() -> None:
    value = encode_record(files(a=1), stored_schema("1.2.0"), typed=True)
    # Five null meta columns, the empty key, then the type.
    with pytest.raises(CorruptFile, match="key 'p'"):
        decode_record("p", value.replace(b"\0\0\0\0\0\0\x04", b"\0\0\0\0\0\0\x0a", 1), stored_schema("1.2.0"), "f")


def test_a_later_writers_schema_is_kept() -> None:
    """Hudi 1.2 writes tables of version 6 and 8 with its own schema, and hudi-rs reads all blocks by one."""
    early, late = stored_schema("1.0.2"), stored_schema("1.2.0")
    assert writer_schema("1.0.2", late) == late
    assert writer_schema("1.0.2", early) == writer_schema("1.0.2", None) == early
    assert writer_schema("1.2.0", early) == late
