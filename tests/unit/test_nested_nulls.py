"""Nulls inside of values are found before anything is written, and only those that a reader would see."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_services.errors import ConfigError
from hudi_services.parquet.nested_nulls import has_required, relaxed
from hudi_services.writing.writer_schema import WriterSchema

from .rides import create
from .tables import digest, merged_rows

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")


def required(kind: pa.DataType, name: str = "element") -> pa.Field:
    return pa.field(name, kind, nullable=False)


INNER = pa.struct([required(pa.string(), "t"), pa.field("n", pa.int32())])
KINDS = {
    "l": pa.list_(required(pa.int32())),
    "s": pa.struct([required(pa.int32(), "a"), pa.field("b", pa.string())]),
    "m": pa.map_(pa.string(), required(pa.string(), "value")),
    "ls": pa.list_(pa.field("element", INNER)),
    "sl": pa.struct([required(pa.list_(required(INNER)), "x"), required(pa.map_(pa.string(), pa.int64()), "y")]),
    "ss": pa.struct([required(pa.struct([required(INNER, "i")]), "o"), pa.field("f", INNER)]),
    "lm": pa.list_(required(pa.map_(pa.string(), required(INNER, "value")))),
}
PLAIN = {name: relaxed(kind) for name, kind in KINDS.items()}


def values(kind: pa.DataType, nulls: bool) -> st.SearchStrategy[Any]:
    """Values of a type; `nulls`: also where it allows none."""
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: of(field, nulls) for field in kind})
    if pa.types.is_map(kind):
        items = st.dictionaries(st.text("ab", max_size=2), of(kind.item_field, nulls), max_size=2)
        return items.map(lambda one: list(one.items()))
    if pa.types.is_list(kind):
        return st.lists(of(kind.value_field, nulls), max_size=2)
    return st.text("ab", max_size=2) if pa.types.is_string(kind) else st.integers(0, 5)


def of(field: pa.Field, nulls: bool) -> st.SearchStrategy[Any]:
    found = values(field.type, nulls)
    return st.none() | found if field.nullable or nulls else found


def is_right(value: Any, kind: pa.DataType, nullable: bool = True) -> bool:
    if value is None:
        return nullable
    if pa.types.is_struct(kind):
        return all(is_right(value[field.name], field.type, field.nullable) for field in kind)
    if pa.types.is_map(kind):
        return all(is_right(one, kind.item_type, kind.item_field.nullable) for _, one in value)
    if pa.types.is_list(kind):
        return all(is_right(one, kind.value_type, kind.value_field.nullable) for one in value)
    return True


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[Any], int]:
    name = draw(st.sampled_from(sorted(KINDS)))
    rows = draw(st.lists(of(pa.field(name, KINDS[name]), draw(st.booleans())), max_size=8))
    return name, rows, draw(st.integers(0, 8))


def given_rows(name: str, rows: list[Any], cut: int) -> pa.Table:
    """The rows in two slices of one array: offsets count, and what is behind a null."""
    whole = pa.array(rows, PLAIN[name])
    return pa.table({name: pa.chunked_array([whole[:cut], whole[cut:]], PLAIN[name])})


def writer(name: str) -> WriterSchema:
    schema = pa.schema([(name, KINDS[name])])
    return WriterSchema.deduce(schema, None, table_name="t", has_meta=True, local_timestamps=True)


@pytest.mark.thorough
@settings(deadline=None, max_examples=300)
@given(cases())
def test_nulls_where_none_may_be(case: tuple[str, list[Any], int]) -> None:
    name, rows, _ = case
    schema, table = writer(name), given_rows(*case)
    assert schema.arrow.field(name).type == KINDS[name]
    if not all(is_right(row, KINDS[name]) for row in rows):
        with pytest.raises(
            ConfigError, match=rf"column {name}(\.\w+)+ has [1-9]\d* nulls, and the table allows none in it"
        ):
            schema.conform(table)
        return
    found = schema.conform(table)
    found.validate(full=True)
    assert found.schema.field(name).type == KINDS[name]
    assert found.column(name).to_pylist() == table.column(name).to_pylist()
    assert schema.conform(found).equals(found)


def behind_nulls() -> dict[str, pa.Array]:
    """Values whose parts are null where they themselves are null, as readers of parquet give them."""
    none, mask = pa.array([None, None, 1], pa.int32()), pa.array([True, True, False])
    inner = pa.StructArray.from_arrays([none, pa.array(["x", None, "y"])], names=["a", "b"], mask=mask)
    texts = pa.array([None, None, "v"])
    return {
        "s": inner,
        "l": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), none, mask=mask),
        "ls": pa.ListArray.from_arrays(
            pa.array([0, 2, 2, 3], pa.int32()),
            pa.StructArray.from_arrays([texts, none], names=["t", "n"], mask=mask),
        ),
    }


def test_nulls_that_no_reader_sees() -> None:
    for name, array in behind_nulls().items():
        found = writer(name).conform(pa.table({name: array})).column(name)
        assert found.to_pylist() == array.to_pylist() and found.type == KINDS[name]


def test_names_of_the_parts() -> None:
    wrong = {
        "l": ([[1, None], [None]], "l.element has 2 nulls"),
        "m": ([[("k", None)]], "m.value has 1 nulls"),
        "ls": ([[{"t": None, "n": 1}]], "ls.element.t has 1 nulls"),
        "lm": ([[[("k", {"t": None, "n": 1})]]], "lm.element.value.t has 1 nulls"),
        "ss": ([{"o": {"i": None}, "f": None}], "ss.o.i has 1 nulls"),
    }
    for name, (rows, message) in wrong.items():
        with pytest.raises(ConfigError, match=message) as error:
            writer(name).conform(given_rows(name, rows, 2))
        assert error.value.hint
    # The type says that there are none.
    rows = pa.table({"l": pa.array([[1, None]], KINDS["l"])})
    with pytest.raises(ConfigError, match=r"l.element has 1 nulls"):
        writer("l").conform(rows)


def test_types_with_required_parts() -> None:
    assert all(map(has_required, KINDS.values())) and not any(map(has_required, PLAIN.values()))
    assert not has_required(pa.map_(pa.string(), pa.list_(pa.string()))) and not has_required(pa.int32())


def test_a_write(tmp_path: Path) -> None:
    """Values with required parts are written and read; others leave the table as it was."""
    rows = {
        "l": [[1], None, []],
        "s": [{"a": 1, "b": None}, None, {"a": 2, "b": "x"}],
        "m": [[("k", "v")], None, []],
        "ls": [[None, {"t": "x", "n": None}], None, []],
        "sl": [{"x": [{"t": "x", "n": 1}], "y": [("k", None)]}, None, {"x": [], "y": []}],
        "ss": [{"o": {"i": {"t": "x", "n": 1}}, "f": None}, None, {"o": {"i": {"t": "", "n": None}}, "f": None}],
        "lm": [[[("k", {"t": "x", "n": 1})], []], None, []],
    }
    keys = {"id": ["a", "b", "c"], "day": ["d"] * 3, "ts": [1, 1, 1]}
    columns = {name: pa.array(of_name, KINDS[name]) for name, of_name in rows.items()}
    table = create(tmp_path / "rides")
    table.upsert(pa.table(keys | columns))
    plain = {name: pa.array(of_name, PLAIN[name]) for name, of_name in rows.items()}
    table.upsert(pa.table(keys | plain | behind_nulls()))
    found = merged_rows(tmp_path / "rides").select(list(rows)).to_pydict()
    seen = {name: array.to_pylist() for name, array in (plain | behind_nulls()).items()}
    assert found == seen and table.validate(strict=True).ok
    before = digest(tmp_path)
    with pytest.raises(ConfigError, match=r"l\.element has 1 nulls"):
        table.upsert(pa.table(keys | plain | {"l": pa.array([[None], [], []], PLAIN["l"])}))
    assert digest(tmp_path) == before
