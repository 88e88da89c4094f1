import base64
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.base_files.bloom import DYNAMIC, SIMPLE, BloomFilter, parse
from hudi_services.base_files.file_reader import open_base_file
from hudi_services.base_files.record_keys import (
    BLOOM_FILTER,
    BLOOM_FILTER_TYPE,
    MAX_KEY,
    MIN_KEY,
    RecordKeys,
)
from hudi_services.errors import ConfigError, CorruptFile
from hudi_services.parquet.footer import read_footer

from .parquet_samples import REAL_FILES, real_file

MASK = 0xFFFFFFFF


def murmur(key: bytes, seed: int) -> int:
    """MurmurHash.hash of Hudi, written down word by word."""
    h = (seed ^ len(key)) & MASK
    whole = len(key) // 4 * 4
    for i in range(0, whole, 4):
        w = int.from_bytes(key[i : i + 4], "little") * 0x5BD1E995 & MASK
        w ^= w >> 24
        h = (h * 0x5BD1E995 & MASK) ^ (w * 0x5BD1E995 & MASK)
    rest = [b - 256 if b > 127 else b for b in key[whole:]]
    for i, signed in enumerate(reversed(rest)):
        h ^= (signed << (8 * i)) & MASK
    if rest:
        h = h * 0x5BD1E995 & MASK
    h ^= h >> 13
    h = h * 0x5BD1E995 & MASK
    return h ^ h >> 15


def bits_of(key: str, hashes: int, bits: int) -> set[int]:
    iv, found = 0, set()
    for _ in range(hashes):
        iv = murmur(key.encode(), iv)
        signed = iv - 2**32 if iv >= 2**31 else iv
        found.add(abs(int(math.fmod(signed, bits))))
    return found


def rows_of(keys: list[str], row_keys: int, max_keys: int) -> tuple[list[list[str]], int]:
    """Keys per row as InternalDynamicBloomFilter.add spreads them one by one, and the count it stores."""
    rows: list[list[str]] = [[]]
    current, turn, reached = 0, 0, False
    for key in keys:
        if reached:
            rows[turn % len(rows)].append(key)
            turn += 1
        elif current < row_keys:
            rows[-1].append(key)
        elif len(rows) * row_keys < max_keys:
            rows.append([key])
            current = 0
        else:
            reached = True
            rows[0].append(key)
        current += 1
    return rows, current


@given(st.lists(st.text(min_size=1, max_size=30), max_size=60), st.integers(1, 8))
def test_simple_filter_sets_the_bits_of_its_keys(keys, entries):
    made = BloomFilter.for_config(entries, 0.01, 0, SIMPLE)
    made.add(pa.array(keys, pa.string()))
    made._settle()
    expected = set().union(*(bits_of(k, made._hashes, made._bits) for k in keys))
    assert set(np.flatnonzero(made._rows[0])) == expected


@given(st.lists(st.integers(1, 40), max_size=4), st.integers(1, 9), st.integers(0, 40))
def test_dynamic_filter_spreads_keys_as_java_does(batches, row_keys, max_keys):
    made = BloomFilter.for_config(row_keys, 0.1, max_keys, DYNAMIC)
    keys = [f"key-{i}" for i in range(sum(batches))]
    at = 0
    for count in batches:
        made.add(pa.array(keys[at : at + count]))
        at += count
    made._settle()
    rows, current = rows_of(keys, row_keys, max_keys)
    assert made._in_row == current
    assert len(made._rows) == len(rows)
    for row, of_row in zip(made._rows, rows, strict=True):
        assert set(np.flatnonzero(row)) == set().union(*(bits_of(k, made._hashes, made._bits) for k in of_row))


@pytest.mark.parametrize("name", REAL_FILES)
def test_footers_of_real_files_are_reproduced(tmp_path, name):
    file = real_file(tmp_path, name)
    reader, key_values = open_base_file(*file), read_footer(*file)[0].key_values
    keys = RecordKeys(BloomFilter.for_config(60000, 1e-9, 100000, DYNAMIC))
    for i in range(len(reader.row_groups)):
        keys.add(reader.read_row_group(i, ["_hoodie_record_key"]).column(0))
    footer = keys.footer()
    assert set(footer) == {BLOOM_FILTER, BLOOM_FILTER_TYPE, MIN_KEY, MAX_KEY}
    assert footer == {k: key_values[k] for k in footer}
    real = parse(key_values[BLOOM_FILTER], name)
    assert real.might_contain(footer[MIN_KEY])
    assert not real.might_contain("no such key")


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=30), st.sampled_from([SIMPLE, DYNAMIC]))
def test_text_round_trip(keys, kind):
    made = BloomFilter.for_config(10, 0.01, 20, kind)
    made.add(pa.array([*keys, None, ""], pa.string()))
    again = parse(made.serialize(), "f")
    assert again.type_code == kind
    assert again.serialize() == made.serialize()
    assert all(again.might_contain(k) for k in keys)


def test_sliced_dictionary_and_chunked_keys_are_the_same_keys():
    keys = [f"k{i % 7}" for i in range(50)]
    plain, other = (BloomFilter.for_config(100, 0.01, 100, SIMPLE) for _ in range(2))
    plain.add(pa.array(keys[10:40]))
    other.add(pa.chunked_array([pa.array(keys).slice(10, 20), pa.array(keys).slice(30, 10)]).dictionary_encode())
    assert other.serialize() == plain.serialize()


def test_a_filter_that_could_say_no_to_nothing_is_all_ones():
    made = BloomFilter.for_config(60000, 1e-9, 100000, DYNAMIC, expected_keys=1_500_000)
    made.add(pa.array([f"k{i}" for i in range(70000)]))
    assert made.might_contain("anything")
    assert len(parse(made.serialize(), "f")._rows) == 2
    useful = BloomFilter.for_config(60000, 1e-9, 100000, DYNAMIC, expected_keys=500_000)
    assert not useful.might_contain("anything")


@pytest.mark.parametrize(
    ("entries", "fpp", "kind"), [(0, 0.1, SIMPLE), (10, 0.0, SIMPLE), (10, 1.0, DYNAMIC), (10, 0.1, "FAST")]
)
def test_impossible_configurations(entries, fpp, kind):
    with pytest.raises(ConfigError):
        BloomFilter.for_config(entries, fpp, 100, kind)


@given(st.binary(max_size=80))
def test_any_bytes_parse_or_are_corrupt(data):
    for text in (data.decode("latin-1"), base64.b64encode(data).decode()):
        try:
            parse(text, "dir/f.parquet").might_contain("k")
        except CorruptFile as e:
            assert "dir/f.parquet" in e.message


@pytest.mark.parametrize("cut", [1, 12, 13, 24, 40])
def test_truncated_and_lying_filters(cut):
    made = BloomFilter.for_config(10, 0.01, 20, DYNAMIC)
    data = base64.b64decode(made.serialize())
    for bad in (data[:cut], data + b"\0" * cut, struct.pack(">iibi", -1, 3, 1, 2**31 - 1) + data[13:]):
        with pytest.raises(CorruptFile):
            parse(base64.b64encode(bad).decode(), "f")


def test_keys_that_repeat_may_come_as_a_dictionary():
    keys = pa.array(["b", "a", "b", None])
    plain, encoded = RecordKeys(None), RecordKeys(None)
    plain.add(keys)
    encoded.add(keys.dictionary_encode())
    assert plain.footer() == encoded.footer() == {MIN_KEY: "a", MAX_KEY: "b"}
