import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs import thrift
from hudi_services.codecs.thrift import ListValue, MapValue, Struct, decode_struct, encode_struct
from hudi_services.errors import CorruptFile

I64 = st.integers(-(2**63), 2**63 - 1)
SCALARS = {
    thrift.TRUE: st.booleans(),
    thrift.I8: st.integers(0, 255),
    thrift.I16: st.integers(-(2**15), 2**15 - 1),
    thrift.I32: st.integers(-(2**31), 2**31 - 1),
    thrift.I64: I64,
    thrift.DOUBLE: st.floats(allow_nan=False),
    thrift.BINARY: st.binary(max_size=40),
}


def typed(depth: int) -> st.SearchStrategy:
    """(wire type, value) pairs, nested up to `depth`."""
    choices = [st.tuples(st.just(t), s) for t, s in SCALARS.items()]
    if depth:
        lists = st.sampled_from(sorted(SCALARS)).flatmap(
            lambda t: st.lists(SCALARS[t], max_size=20).map(lambda items: ListValue(t, items))
        )
        structs = st.lists(structure(depth - 1), max_size=4).map(lambda items: ListValue(thrift.STRUCT, items))
        maps = st.lists(st.tuples(st.binary(max_size=5), I64), min_size=1, max_size=4).map(
            lambda items: MapValue(thrift.BINARY, thrift.I64, items)
        )
        choices += [
            st.tuples(st.sampled_from([thrift.LIST, thrift.SET]), lists | structs),
            st.tuples(st.just(thrift.MAP), maps),
            st.tuples(st.just(thrift.STRUCT), structure(depth - 1)),
        ]
    return st.one_of(choices)


def structure(depth: int) -> st.SearchStrategy:
    ids = st.integers(1, 40) | st.integers(-(2**15), 2**15 - 1)
    return st.dictionaries(ids, typed(depth), max_size=6).map(Struct)


@given(structure(3))
def test_round_trip(tree):
    encoded = encode_struct(tree)
    decoded, end = decode_struct(encoded, "x")
    assert end == len(encoded)
    assert decoded == tree
    assert encode_struct(decoded) == encoded


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (Struct(), "00"),
        (Struct({1: (thrift.I32, 1)}), "150200"),
        (Struct({1: (thrift.TRUE, True), 2: (thrift.TRUE, False)}), "111200"),
        (Struct({20: (thrift.BINARY, b"ab")}), "0828026162" + "00"),
        (Struct({3: (thrift.LIST, ListValue(thrift.I32, [-1, 0]))}), "3925010000"),
        (Struct({1: (thrift.MAP, MapValue(0, 0))}), "1b0000"),
    ],
)
def test_bytes(tree, expected):
    assert encode_struct(tree).hex() == expected
    assert decode_struct(bytes.fromhex(expected), "x") == (tree, len(expected) // 2)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_corrupt(data):
    try:
        decode_struct(data, "some/file")
    except CorruptFile as e:
        assert "some/file" in e.message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x19\xfc\xff\xff\xff\xff\x0f\x00",  # a list of 2**32 structs
        b"\x1b\xff\xff\xff\xff\x0f\x88",  # a map of 2**32 entries
        b"\x18\xff\xff\xff\xff\x0f",  # a binary of 4 GiB
        b"\x15" + b"\x80" * 20,  # a varint without end
        b"\x1c" * 5000,  # structs in structs
        b"\x19\x19" * 5000,  # lists in lists
        b"\x1d\x00",  # type 13
        b"\x15\x02\x05\x02\x02",  # field 1 twice
    ],
)
def test_bombs_are_refused(data):
    with pytest.raises(CorruptFile, match="byte"):
        decode_struct(data, "f")


def test_infinity_survives():
    tree = Struct({1: (thrift.DOUBLE, math.inf)})
    assert decode_struct(encode_struct(tree), "x")[0].get(1) == math.inf
