"""Files of older versions of a schema in the columns of today: random histories of ALTER TABLE against a model."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.errors import CorruptFile, UnsupportedTable
from hudi_services.file_names import base_file_name, parse_base_file
from hudi_services.model import FileSlice
from hudi_services.schema.column_type import ColumnType, Kind
from hudi_services.schema.evolved_values import changed_values, java_texts
from hudi_services.schema.internal_types import parse_columns
from hudi_services.schema.schema_history import KnownHistory, SchemaHistory
from hudi_services.schema.widening import altered
from hudi_services.stores import open_storage

LEAVES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "decimal(10, 2)": pa.decimal128(10, 2),
    "decimal(20, 4)": pa.decimal128(20, 4),
}
WIDER = {
    "int": ["long", "float", "double", "string", "decimal(20, 4)"],
    "long": ["double", "string", "decimal(20, 4)"],
    "float": ["double", "string", "decimal(20, 4)"],
    "double": ["string", "decimal(20, 4)"],
    "date": ["string"],
    "decimal(10, 2)": ["decimal(20, 4)", "string"],
}


@dataclass
class Field:
    """A column, or a field of a struct; `inside` has the fields of a struct, of the items of a list, or of a map."""

    id: int
    name: str
    kind: str
    inside: "list[Field]" = field(default_factory=list)
    ids: tuple[int, ...] = ()
    """Those of items, keys and values."""

    def copy(self) -> "Field":
        return Field(self.id, self.name, self.kind, [one.copy() for one in self.inside], self.ids)

    def tree(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "optional": True, "type": self._type()}

    def _type(self) -> Any:
        record = {"type": "record", "fields": [one.tree() for one in self.inside]}
        if self.kind == "struct":
            return record
        if self.kind == "list":
            return {"type": "array", "element_id": self.ids[0], "element": record, "element_optional": True}
        if self.kind == "map":
            ids = {"key_id": self.ids[0], "value_id": self.ids[1]}
            return {"type": "map", **ids, "key": "string", "value": record, "value_optional": True}
        return self.kind

    def arrow(self) -> pa.DataType:
        record = pa.struct([(one.name, one.arrow()) for one in self.inside])
        nested = {"struct": lambda: record, "list": lambda: pa.list_(record), "map": lambda: pa.map_("string", record)}
        return nested[self.kind]() if self.kind in nested else LEAVES[self.kind]


class History:
    """Versions of a schema, each made of the one before by one ALTER TABLE."""

    def __init__(self, seed: int) -> None:
        self.random, self.numbers = random.Random(seed), count()
        self.columns = [self.new(self.random.choice(["struct", "list", "map", *LEAVES])) for _ in range(6)]
        self.versions: list[tuple[int, list[Field]]] = [(0, self.copy())]
        self.names: list[str] = []

    def copy(self) -> list[Field]:
        return [one.copy() for one in self.columns]

    def new(self, kind: str, name: str = "", depth: int = 0) -> Field:
        number = next(self.numbers)
        name = name or f"c{number}"
        if kind not in ("struct", "list", "map"):
            return Field(number, name, kind)
        ids = tuple(next(self.numbers) for _ in range({"struct": 0, "list": 1, "map": 2}[kind]))
        kinds = [self.random.choice([*LEAVES, *(["struct"] if depth < 2 else [])]) for _ in range(3)]
        return Field(number, name, kind, [self.new(one, depth=depth + 1) for one in kinds], ids)

    def records(self) -> Iterator[list[Field]]:
        """The lists of fields of all records."""
        waiting = [self.columns]
        while waiting:
            fields = waiting.pop()
            yield fields
            waiting += [one.inside for one in fields if one.inside]

    def alter(self) -> None:
        fields = self.random.choice(list(self.records()))
        one, what = self.random.choice(fields), self.random.choice(["rename", "drop", "add", "retype", "move"])
        if what == "rename":
            self.names.append(one.name)
            one.name = self._name(fields)
        elif what == "drop" and len(fields) > 1:
            self.names.append(one.name)
            fields.remove(one)
        elif what == "add":
            fields.insert(
                self.random.randrange(len(fields) + 1), self.new(self.random.choice([*LEAVES]), self._name(fields))
            )
        elif what == "retype" and one.kind in WIDER:
            one.kind = self.random.choice(WIDER[one.kind])
        elif what == "move":
            self.random.shuffle(fields)
        self.versions.append((self.versions[-1][0] + 10, self.copy()))

    def _name(self, fields: list[Field]) -> str:
        """A name that no field has now; often one that another one had before."""
        free = [name for name in self.names if name not in {one.name for one in fields}]
        return self.random.choice(free) if free and self.random.random() < 0.7 else f"n{next(self.numbers)}"

    def parsed(self) -> SchemaHistory:
        most, trees = -1, []
        for version, columns in self.versions:
            fields = [one.tree() for one in columns]
            most = max(most, self._most(columns))
            trees.append({"max_column_id": most, "version_id": version, "type": "record", "fields": fields})
        return SchemaHistory.parse(json.dumps({"schemas": trees[::-1]}), "a history")

    def _most(self, fields: list[Field]) -> int:
        return max([max([one.id, *one.ids, self._most(one.inside)]) for one in fields], default=-1)

    def value(self, one: Field) -> Any:
        """A value by the ids of fields."""
        if self.random.random() < 0.15:
            return None
        record = {inner.id: self.value(inner) for inner in one.inside}
        number = self.random.randrange(-9999, 9999)
        match one.kind:
            case "struct":
                return record
            case "list":
                return [record] * self.random.randrange(3)
            case "map":
                return {f"k{n}": record for n in range(self.random.randrange(3))}
            case "float" | "double":
                return number / 8
            case "string":
                return f"text {number}"
            case "date":
                return date(2020, 1, 1 + abs(number) % 28)
            case "decimal(10, 2)" | "decimal(20, 4)":
                return Decimal(number).scaleb(-2 if one.kind == "decimal(10, 2)" else -4)
        return number


def stored(value: Any, one: Field) -> Any:
    """A value as pyarrow writes it, under the names of a version."""
    if value is None or not one.inside:
        return value
    if one.kind == "list":
        return [_named(item, one.inside) for item in value]
    if one.kind == "map":
        return [(key, _named(item, one.inside)) for key, item in value.items()]
    return _named(value, one.inside)


def _named(record: dict[int, Any], fields: list[Field]) -> dict[str, Any]:
    return {one.name: stored(record[one.id], one) for one in fields}


def shown(value: Any, then: Field, now: Field) -> Any:
    """A value of an older version as readers have to see it."""
    if value is None:
        return None
    if now.kind == "list":
        return [_shown_record(item, then.inside, now.inside) for item in value]
    if now.kind == "map":
        return [(key, _shown_record(item, then.inside, now.inside)) for key, item in value.items()]
    if now.kind == "struct":
        return _shown_record(value, then.inside, now.inside)
    if then.kind == now.kind:
        return value
    if now.kind.startswith("decimal"):
        return Decimal(str(value)).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return {"long": int, "float": float, "double": float, "string": str}[now.kind](value)


def _shown_record(record: dict[int, Any], then: list[Field], now: list[Field]) -> dict[str, Any]:
    before = {one.id: one for one in then}
    return {one.name: shown(record[one.id], before[one.id], one) if one.id in before else None for one in now}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(6, 24))])
def test_a_model(seed: int, tmp_path: Path) -> None:
    history = History(seed)
    files = []
    for version in range(12):
        if version:
            history.alter()
        at, columns = history.versions[-1]
        rows = [{one.id: history.value(one) for one in columns} for _ in range(5)]
        schema = pa.schema([(one.name, one.arrow()) for one in columns])
        table = pa.Table.from_pylist([_named(row, columns) for row in rows], schema)
        instant = f"{at + 3:017}"
        name = base_file_name(f"f{version}-0", "0-0-0", instant)
        pq.write_table(table, tmp_path / name, row_group_size=2)
        files.append((name, rows, columns))
    known = history.parsed()
    assert SchemaHistory.parse(known.text, "its own text") == known
    today = history.columns
    slices = BaseFileSlices(open_storage(str(tmp_path)), KnownHistory(lambda: known))
    for name, rows, columns in files:
        base = parse_base_file("", name, 0)
        assert base is not None
        reader = slices.open(FileSlice.of_base(base))
        names = {one.name for one in today}
        read = pa.concat_tables(table for _, table in reader.tables([*reader.schema.columns]))
        assert names >= set(read.column_names)
        found = read.to_pylist()
        wanted = [_shown_record(row, columns, today) for row in rows]
        assert [_full(row, today) for row in found] == wanted, name


def _full(row: dict[str, Any], fields: list[Field]) -> dict[str, Any]:
    """A row with nulls for the columns and fields that a file does not have, and in the order of today."""
    return {one.name: _full_value(row.get(one.name), one) for one in fields}


def _full_value(value: Any, one: Field) -> Any:
    if value is None or not one.inside:
        return value
    if one.kind == "list":
        return [None if item is None else _full(item, one.inside) for item in value]
    if one.kind == "map":
        return [(key, None if item is None else _full(item, one.inside)) for key, item in value]
    return _full(value, one.inside)


def test_a_struct_without_its_fields(tmp_path: Path) -> None:
    """It is null, as Spark reads it; in a list it cannot be left out."""
    one = [Field(0, "a", "int"), Field(1, "s", "struct", [Field(2, "x", "int")])]
    one += [Field(3, "l", "list", [Field(5, "x", "int")], (4,))]
    history = History(0)
    history.versions, history.columns = [(0, [field.copy() for field in one])], one
    name = base_file_name("f-0", "0-0-0", f"{1:017}")
    table = pa.Table.from_pylist(
        [{"a": 7, "s": {"x": 1}, "l": [{"x": 2}]}], pa.schema([(f.name, f.arrow()) for f in one])
    )
    pq.write_table(table, tmp_path / name)
    base = parse_base_file("", name, 0)
    assert base is not None

    def read() -> dict[str, Any]:
        known = history.parsed()
        slices = BaseFileSlices(open_storage(str(tmp_path)), KnownHistory(lambda: known))
        return slices.open(FileSlice.of_base(base)).read_row_group(0).to_pylist()[0]

    def alter(fields: list[Field]) -> None:
        """Add a field, and drop the one before it."""
        fields.append(Field(max(7, history._most(one) + 1), "y", "int"))
        history.versions.append((history.versions[-1][0] + 10, history.copy()))
        del fields[0]
        history.versions.append((history.versions[-1][0] + 10, history.copy()))

    alter(one[1].inside)
    assert read() == {"a": 7, "l": [{"x": 2}]}
    alter(one[2].inside)
    with pytest.raises(UnsupportedTable, match=r"has none of the fields of l\.element"):
        read()


def _java(value: float) -> str:
    """Double.toString by its rules, from the shortest digits."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    number = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)
    minus = "-" if sign else ""
    if number == "0":
        return f"{minus}0.0"
    if -3 < point <= 7:
        padded = "0" * max(0, 1 - point) + number.ljust(point, "0")
        whole = max(point, 1)
        return f"{minus}{padded[:whole]}.{padded[whole:] or '0'}"
    return f"{minus}{number[0]}.{number[1:] or '0'}E{point - 1}"


def test_texts_of_floats() -> None:
    """As Java makes them: 1.5, 1.0E7, 1.0E-4."""
    drawn = random.Random(3)
    values = [0.0, -0.0, 1.5, 1e7, 9999999.0, 1e-3, 9.99e-4, 123456789.125, 1e10, 1e22, 1.5e300, -2.5e-8, 100.0]
    values += [float("nan"), float("inf"), float("-inf")]
    values += [drawn.choice([-1, 1]) * drawn.random() * 10.0 ** drawn.randrange(-30, 30) for _ in range(3000)]
    assert java_texts(pa.array(values)).to_pylist() == [_java(one) for one in values]
    floats = pa.array(values, pa.float32())
    assert java_texts(floats).to_pylist() == [_java(float(text)) for text in floats.cast(pa.string()).to_pylist()]


@pytest.mark.parametrize(
    ("values", "then", "now", "wanted"),
    [
        (pa.array([2147483647, -5]), "long", "decimal(20, 3)", [Decimal("2147483647.000"), Decimal("-5.000")]),
        (pa.array([0.125, -0.125]), "double", "decimal(10, 2)", [Decimal("0.13"), Decimal("-0.13")]),
        (pa.array([" -12.345 ", "1E3"]), "string", "decimal(12, 2)", [Decimal("-12.35"), Decimal("1000.00")]),
        (pa.array([Decimal("0.00")], pa.decimal128(10, 2)), "decimal(10, 2)", "string", ["0.00"]),
        (pa.array([Decimal("1E-9")], pa.decimal128(12, 9)), "decimal(12, 9)", "string", ["1E-9"]),
        (pa.array(["2020-1-2", "1969-12-31"]), "string", "date", [date(2020, 1, 2), date(1969, 12, 31)]),
        (pa.array([date(1969, 12, 31)]), "date", "string", ["1969-12-31"]),
    ],
)
def test_changed_values(values: pa.Array, then: str, now: str, wanted: list[Any]) -> None:
    types = [parse_columns([{"id": 1, "name": "a", "optional": True, "type": one}])[0].type for one in (then, now)]
    change = changed_values(*types)
    assert change is not None and altered(*types)
    assert change(values).to_pylist() == wanted
    with pytest.raises(pa.ArrowInvalid):
        bad = changed_values(ColumnType(Kind.STRING), ColumnType(Kind.DECIMAL, precision=4, scale=2))
        assert bad is not None
        bad(pa.array(["100.00"]))


def test_text_that_is_no_history() -> None:
    """Every cut of a history, and every change of a byte, is refused or is a history."""
    text = History(1).parsed().text
    drawn = random.Random(5)
    for _ in range(400):
        at = drawn.randrange(len(text))
        broken = text[:at] if drawn.random() < 0.3 else text[:at] + chr(drawn.randrange(32, 127)) + text[at + 1 :]
        with suppress(CorruptFile, UnsupportedTable):
            SchemaHistory.parse(broken, "a history")
