import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.codecs.row_hash import row_hashes
from hudi_services.errors import CheckFailed
from hudi_services.rows.conservation import Checksum, check_file_names, checksum


def scalars() -> dict[str, tuple[pa.DataType, st.SearchStrategy]]:
    return {
        "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        "d": (pa.float64(), st.floats(allow_nan=False)),
        "b": (pa.bool_(), st.booleans()),
        "s": (pa.string(), st.text(max_size=40)),
        "y": (pa.binary(), st.binary(max_size=2000)),
        "n": (pa.decimal128(10, 2), st.decimals(-(10**7), 10**7, places=2)),
        "t": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.timezone.utc))),
        "f": (pa.binary(12), st.binary(min_size=12, max_size=12)),
        "a": (pa.list_(pa.string()), st.lists(st.one_of(st.none(), st.text(max_size=9)), max_size=4)),
        "m": (
            pa.map_(pa.string(), pa.int64()),
            st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=3),
        ),
        "r": (
            pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
            st.fixed_dictionaries({"x": st.integers(0, 5), "y": st.lists(st.text(max_size=3), max_size=2)}),
        ),
    }


def rows() -> st.SearchStrategy[list[dict]]:
    row = st.fixed_dictionaries({name: st.one_of(st.none(), values) for name, (_, values) in scalars().items()})
    return st.lists(row, min_size=1, max_size=8)


SCHEMA = pa.schema([(name, kind) for name, (kind, _) in scalars().items()])


def table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(rows(), st.randoms(use_true_random=False))
def test_order_slices_and_chunks_do_not_matter(values: list[dict], random) -> None:
    whole = checksum(table(values))
    shuffled = values[:]
    random.shuffle(shuffled)
    assert checksum(table(shuffled)) == whole
    cut = random.randint(0, len(values))
    full = table(values)
    assert checksum(full.slice(0, cut)) + checksum(full.slice(cut)) == whole
    assert checksum(pa.concat_tables([full.slice(0, cut), full.slice(cut)])) == whole


@settings(max_examples=60, deadline=None)
@given(rows(), st.data())
def test_lost_and_double_rows_and_changed_values_are_seen(values: list[dict], data) -> None:
    whole = checksum(table(values))
    victim = data.draw(st.integers(0, len(values) - 1))
    assert checksum(table(values[:victim] + values[victim + 1 :])) != whole
    assert checksum(table([*values, values[victim]])) != whole
    name = data.draw(st.sampled_from(SCHEMA.names))
    changed = [dict(row) for row in values]
    changed[victim][name] = data.draw(st.one_of(st.none(), scalars()[name][1]))
    same = table(changed).equals(table(values))
    zero = name == "d" and changed[victim][name] == values[victim][name] == 0
    assert zero or (checksum(table(changed)) == whole) == same


def test_values_swapped_between_rows_or_columns_are_seen() -> None:
    base = pa.table({"k": ["a", "b"], "x": [1, 2], "y": [3, 4]})
    assert checksum(pa.table({"k": ["a", "b"], "x": [2, 1], "y": [3, 4]})) != checksum(base)
    assert checksum(pa.table({"k": ["a", "b"], "x": [3, 2], "y": [1, 4]})) != checksum(base)


def test_type_counts() -> None:
    base = pa.table({"x": pa.array([1], pa.int32())})
    assert checksum(pa.table({"x": pa.array([1], pa.int64())})) != checksum(base)


@pytest.mark.parametrize("names", [["f", "g"], ["f", None], [None, None]])
def test_file_names_are_those_of_the_file(names: list[str | None]) -> None:
    for values in (pa.array(names, pa.string()), pa.array(names, pa.string()).dictionary_encode()):
        with pytest.raises(CheckFailed, match="p/f: _hoodie_file_name"):
            check_file_names(pa.chunked_array([values]), "p/f")
    check_file_names(pa.chunked_array([pa.array(["f", "f"]).dictionary_encode()]), "p/f")


@pytest.mark.parametrize("size", [0, 1, 40_000])
def test_dictionary_counts_as_its_values(size: int) -> None:
    values = pa.array([None if i % 7 == 0 else f"name {i % 100}" for i in range(size)], pa.string())
    plain, encoded = pa.table({"x": values}), pa.table({"x": values.dictionary_encode()})
    assert checksum(plain) == checksum(encoded)
    assert checksum(plain).rows == size


def test_many_long_values_overflow_in_silence() -> None:
    # With these sums a single number overflows: numpy says so, and a warning is an error here.
    values = pa.array([f"{n:05d}" * 300 for n in range(64)])
    sums = np.concatenate(list(row_hashes(pa.table({"x": values, "y": values}))))
    assert int(np.bitwise_xor.reduce(sums)) == 0xCAED9A1E45517129
    one_by_one = [next(iter(row_hashes(pa.table({"x": values[n : n + 1], "y": values[n : n + 1]})))) for n in range(64)]
    assert (np.concatenate(one_by_one) == sums).all()


def test_nan_payloads_and_signed_zero_are_values() -> None:
    def bits(value: int) -> pa.Table:
        return pa.table({"d": pa.array(np.array([value], dtype=np.uint64).view(np.float64))})

    assert checksum(bits(0x7FF8000000000001)) != checksum(bits(0x7FF8000000000002))
    assert checksum(pa.table({"d": [0.0]})) != checksum(pa.table({"d": [-0.0]}))


def test_scale_of_decimals_and_empty_table() -> None:
    one, two = decimal.Decimal("1.0"), decimal.Decimal("1.00")
    assert checksum(pa.table({"x": [one]})) != checksum(pa.table({"x": [two]}))
    assert checksum(pa.table({"x": pa.array([], pa.string())})) == Checksum()
