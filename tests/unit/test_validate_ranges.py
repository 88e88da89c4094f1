"""Which bounds `validate` takes for right: Hudi's, and ours, which hold for two orders of texts."""

import pytest

from hudi_services.metadata.records.model import RecordType, StatsRecord
from hudi_services.metadata.statistics.text_ranges import as_told, in_both_orders
from hudi_services.metadata.statistics.values import BoundType, ValueType
from hudi_services.model import BaseFile, FileSlice
from hudi_services.validation.column_stats import _compare
from hudi_services.validation.footers import Described, Member

FILE = BaseFile("p", "f.parquet", "f", "0-0-0", "20260101000000000", 1)


def record(low: object, high: object) -> StatsRecord:
    return StatsRecord("k", RecordType.COLUMN_STATS, "f", "c", BoundType(ValueType.STRING), low, high, 10, 1, 100, 200)


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


def test_the_greatest_text_stays_where_no_bound_holds_for_both() -> None:
    assert in_both_orders(record("a", "\U0001f600")) == record("a", "\U0001f600")
