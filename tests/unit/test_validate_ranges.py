"""Which bounds `validate` takes for right: Hudi's, and ours, which hold for two orders of texts."""

import math
from dataclasses import replace

import pytest

from hudi_services.file_records.footers import Described
from hudi_services.file_records.members import Member
from hudi_services.metadata.records.model import RecordType, StatsRecord
from hudi_services.metadata.statistics.text_ranges import as_told, in_both_orders
from hudi_services.model import BaseFile, FileSlice
from hudi_services.schema.column_type import ColumnType, Kind
from hudi_services.validation import causes
from hudi_services.validation.column_stats import _compare

FILE = BaseFile("p", "f.parquet", "f", "0-0-0", "20260101000000000", 1)


def record(low: object, high: object) -> StatsRecord:
    return StatsRecord("k", RecordType.COLUMN_STATS, "f", "c", ColumnType(Kind.STRING), low, high, 10, 1, 100, 200)


@pytest.mark.parametrize(
    ("stored", "wrong"),
    [
        (record("k\uff71", "k\U0001f600"), []),
        (record("k", "l"), []),
        (record("", "l"), ["minimum"]),
        (record("k", "k\U0001f5ff"), ["maximum"]),
        (record("k\uff72", "m"), ["minimum", "maximum"]),
    ],
)
def test_a_range_of_texts(stored: StatsRecord, wrong: list[str]) -> None:
    true = record("k\uff71", "k\U0001f600")
    described = Described(Member(FILE, FileSlice.of_base(FILE), True), 1, [true], None)
    found = _compare(described, stored, as_told(true, stored))
    assert [one.kind.name.removeprefix("WRONG_").lower() for one in found] == wrong


def a_range(kind: Kind, low: object, high: object) -> StatsRecord:
    return replace(record(low, high), bound=ColumnType(kind))


@pytest.mark.parametrize(
    ("stored", "true", "from_values", "cause"),
    [
        # As Hudi 1.0.2 and 1.2.0 wrote them, in tables of tests/interop/recipes.py.
        (a_range(Kind.FLOAT, 0.0, 0.0), a_range(Kind.FLOAT, -0.0, math.inf), True, causes.NAN),
        (a_range(Kind.DOUBLE, 0.0, 0.0), a_range(Kind.DOUBLE, -math.inf, math.inf), True, causes.NAN),
        (a_range(Kind.DOUBLE, None, None), a_range(Kind.DOUBLE, 1.5, math.inf), True, causes.NAN_AS_NULL),
        (a_range(Kind.LONG, None, None), a_range(Kind.LONG, -205, 200), True, causes.NOT_RECORDED),
        (record(None, None), record("a", "b"), True, causes.NOT_RECORDED),
        (a_range(Kind.LONG, -197, 211), a_range(Kind.LONG, -197000, 211000), True, causes.MILLISECONDS),
        (a_range(Kind.LONG, 197, 211), a_range(Kind.LONG, 197, 211000), True, causes.MILLISECONDS),
        (
            a_range(Kind.BYTES, b"", b"\xf1\x1a0\x1f"),
            a_range(Kind.BYTES, b"", b"\xf1\xba\xd0\xe2"),
            False,
            causes.SIGNED_BYTES,
        ),
        # What the values do not tell: an infinity, a wrong bound, a record that somebody damaged.
        (a_range(Kind.DOUBLE, 0.0, 0.0), a_range(Kind.DOUBLE, 1.5, math.inf), False, None),
        (a_range(Kind.DOUBLE, 0.0, 1.0), a_range(Kind.DOUBLE, 0.0, math.inf), True, None),
        (a_range(Kind.LONG, None, None), a_range(Kind.LONG, 1, 2), False, None),
        (a_range(Kind.LONG, 3, 4), a_range(Kind.LONG, 1, 5000), True, None),
        (record("b", "c"), record("a", "d"), True, None),
        (a_range(Kind.BYTES, b"b", b"c"), a_range(Kind.BYTES, b"a", b"d"), True, None),
    ],
)
def test_the_cause_of_a_wrong_range(
    stored: StatsRecord, true: StatsRecord, from_values: bool, cause: str | None
) -> None:
    assert causes.cause_of_range(stored, true, from_values=from_values) == cause
    of_all = frozenset({"c"}) if from_values else frozenset()
    described = Described(Member(FILE, FileSlice.of_base(FILE), True), 1, [true], None, of_all)
    assert {one.cause for one in _compare(described, stored, true)} == {cause}


def test_the_greatest_text_stays_where_no_bound_holds_for_both() -> None:
    assert in_both_orders(record("a", "\U0001f600")) == record("a", "\U0001f600")
