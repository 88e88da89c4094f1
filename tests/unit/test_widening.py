"""What may become what: the relations of `schema.widening`, and the code that converts values by them."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.errors import UnsupportedTable
from hudi_services.metadata.statistics.values import NoPromotion, bound_type, promote
from hudi_services.parquet.conversion import convert_column
from hudi_services.parquet.file_schema import REQUIRED, FileSchema, Node, node
from hudi_services.parquet.node_types import build_node
from hudi_services.schema.arrow_types import arrow_type, column_type
from hudi_services.schema.column_type import UNITS, Column, ColumnType, Kind
from hudi_services.schema.widening import (
    FileType,
    bound_becomes,
    common_type,
    fits_json,
    grows,
    is_computed_as,
    is_converted,
    joined,
    misfit,
    promotable,
    would_round,
)

PLAIN = [
    ColumnType(kind)
    for kind in (
        Kind.BOOLEAN,
        Kind.INT,
        Kind.LONG,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.STRING,
        Kind.ENUM,
        Kind.BYTES,
        Kind.DATE,
    )
]
DECIMALS = [ColumnType(Kind.DECIMAL, precision=p, scale=s) for p, s in ((4, 0), (4, 2), (6, 2), (30, 5))]
TIMES = [ColumnType(Kind.TIMESTAMP, unit=unit, utc=utc) for unit in UNITS for utc in (True, False)]
LEAVES = [*PLAIN, *DECIMALS, *TIMES, *(ColumnType(Kind.TIME, unit=unit) for unit in UNITS)]
BOUNDS = [one for one in map(bound_type, (*LEAVES, ColumnType(Kind.FIXED, size=2))) if one is not None]
NUMBERS = {Kind.INT: np.int32, Kind.LONG: np.int64, Kind.FLOAT: np.float32, Kind.DOUBLE: np.float64}
KINDS = [*dict.fromkeys(one.kind for one in LEAVES)]


@pytest.mark.parametrize("source", LEAVES, ids=str)
def test_values_are_converted_where_the_relation_says_so(source: ColumnType) -> None:
    """And files are read together by the same relation."""
    for target in LEAVES:
        fits = promotable(source, target)
        assert (misfit("c", source, target) is None) is fits
        files = [FileType("a", source)]
        if fits:
            assert convert_column(_nulls(source), *_nodes(source, target), _raw(target)).type == _raw(target)
            assert promotable(source, common_type("c", target, files))
        elif (source.kind, target.kind) in _STORED_ALIKE or source.kind is target.kind is not Kind.DECIMAL:
            # Under its own name, or in the finer unit.
            assert common_type("c", target, files).kind is source.kind
        else:
            with pytest.raises(UnsupportedTable, match=r"column c is .* in a and .* in the table"):
                common_type("c", target, files)


def _nodes(*types: ColumnType) -> list[Node]:
    return [build_node("c", one) for one in types]


def _raw(kind: ColumnType) -> pa.DataType:
    return FileSchema(node("r", REQUIRED, children=_nodes(kind))).arrow.field(0).type


def _nulls(kind: ColumnType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(3, _raw(kind))])


_STORED_ALIKE = {
    pair
    for group in (
        (Kind.INT, Kind.DATE, Kind.TIME),
        (Kind.LONG, Kind.TIMESTAMP, Kind.TIME),
        (Kind.STRING, Kind.ENUM),
        (Kind.BYTES, Kind.DECIMAL),
    )
    for pair in itertools.permutations(group, 2)
}
"""Types of one table whose stored values are the same."""


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.parametrize("target", NUMBERS)
@given(st.data())
def test_a_table_grows_only_where_no_value_is_rounded(source: Kind, target: Kind, data: st.DataObject) -> None:
    """Hudi lets it grow in the same direction where large numbers are."""
    becomes = is_converted(ColumnType(source), ColumnType(target))
    assert (grows(source, target) or would_round(source, target)) is becomes
    if grows(source, target) and source is not Kind.FLOAT:
        limits = np.iinfo(NUMBERS[source])
        number = data.draw(st.integers(int(limits.min), int(limits.max)))
        assert int(NUMBERS[target](NUMBERS[source](number))) == number
    elif would_round(source, target):
        wrong = (1 << 53) + 1 if source is Kind.LONG else (1 << 24) + 1
        assert int(NUMBERS[target](NUMBERS[source](wrong))) != wrong


@pytest.mark.parametrize("source", BOUNDS, ids=str)
def test_bounds_are_promoted_where_the_relation_says_so(source: ColumnType) -> None:
    value = {Kind.STRING: "a", Kind.BYTES: b"\0", Kind.FIXED: b"a", Kind.BOOLEAN: True}.get(source.kind, 0)
    for target in BOUNDS:
        becomes = bound_becomes(source, target)
        if becomes:
            promote(value, source, target)
        else:
            with pytest.raises(NoPromotion):
                promote(value, source, target)
        # What the values of a file may become, its statistics may, too: but texts, which nothing is rendered to.
        assert becomes or not promotable(source, target) or target.kind is Kind.STRING


def test_the_relations_of_json_and_of_expressions_are_within_that_of_files() -> None:
    for one, other in itertools.product(KINDS, KINDS):
        wider = joined(one, other)
        assert wider is joined(other, one)
        for kind in (one, other) if wider is not None else ():
            assert promotable(ColumnType(kind), ColumnType(wider))
        assert one is other or not is_computed_as(one, other) or grows(one, other)
        # JSON has no other values.
        assert one in (Kind.BOOLEAN, Kind.LONG, Kind.DOUBLE, Kind.STRING) or not fits_json(one, other)


def _lists(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    return inner.map(lambda one: ColumnType(Kind.LIST, element=one))


def _maps(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    return inner.map(lambda one: ColumnType(Kind.MAP, key=ColumnType(Kind.STRING), value=one))


def _structs(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    fields = st.lists(inner, min_size=1, max_size=3)
    return fields.map(
        lambda of: ColumnType(Kind.STRUCT, fields=tuple(Column(f"f{n}", one) for n, one in enumerate(of)))
    )


def _nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    return st.one_of(_lists(inner), _maps(inner), _structs(inner))


@given(st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=6))
def test_every_type_is_one_of_its_own(kind: ColumnType) -> None:
    assert misfit("c", kind, kind) is None
    assert common_type("c", kind, [FileType("a", kind), FileType("b", kind)]) == kind
    arrow = arrow_type(kind)
    if arrow is not None and all(one.unit in ("", "micros") and one.kind is not Kind.ENUM for one in _all(kind)):
        assert column_type("c", arrow, nullable=False).required() == kind


def _all(kind: ColumnType) -> list[ColumnType]:
    return [kind, *(leaf for part in kind.parts for leaf in _all(part))]
