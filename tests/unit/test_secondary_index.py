"""Keys of secondary indexes, against Hudi's rules character by character."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.metadata.secondary_index import SecondaryIndex, placing_parts, secondary_keys

TEXTS = st.text("ab\\\\$\0ü", max_size=6)


def escaped(text: str | None) -> str:
    if text is None:
        return "\0"
    return "".join("\\" + c if c in "\\$\0" else c for c in text)


@given(st.lists(st.tuples(st.none() | TEXTS, TEXTS)))
def test_keys_and_where_they_lie(pairs: list[tuple[str | None, str]]) -> None:
    values, records = (pa.array([pair[at] for pair in pairs], pa.string()) for at in (0, 1))
    keys = secondary_keys(values, records)
    assert keys.to_pylist() == [f"{escaped(value)}${escaped(record)}" for value, record in pairs]
    by_value = placing_parts(keys, SecondaryIndex("c", by_value=True))
    assert by_value.to_pylist() == [f"{escaped(value)}$" for value, _ in pairs]
    assert placing_parts(keys, SecondaryIndex("c", by_value=False)) is keys


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_whole_numbers(kind: pa.DataType) -> None:
    keys = secondary_keys(pa.array([1, -20, None], kind), pa.array(["a", "b", "c"]))
    assert keys.to_pylist() == ["1$a", "-20$b", "\0$c"]
