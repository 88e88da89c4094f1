"""java.util.Properties text, both ways."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.codecs.properties import format_properties, parse_properties
from hudi_services.errors import CorruptFile

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT))
def test_round_trip(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties, ("Updated", "now")), "f") == properties


@given(st.dictionaries(TEXT, TEXT, min_size=1))
def test_written_bytes_are_printable_ascii(properties: dict[str, str]) -> None:
    assert all(byte == 0x0A or 0x20 <= byte <= 0x7E for byte in format_properties(properties))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b  ", {"a": "b  "}),
        ("a:b\nc d\ne", {"a": "b", "c": "d", "e": ""}),
        ("# comment \\\na=b\n! other\n\n   \n", {"a": "b"}),
        ("a=one,\\\n   two\r\nb=c", {"a": "one,two", "b": "c"}),
        ("a=even\\\\\nb=c", {"a": "even\\", "b": "c"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a==b", {"a": "=b"}),
        ("a=\\u00e4\\t\\q", {"a": "ä\tq"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("", {}),
    ],
)
def test_parses_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode("iso-8859-1"), "f") == expected


def test_high_bytes_are_latin_1() -> None:
    assert parse_properties(b"a=\xe4", "f") == {"a": "ä"}


@pytest.mark.parametrize("data", [b"a=b\x00", b"\x00\x00\x00", b"a=\\u12", b"a=\\u12xy", b"a=\\ud800", b"PAR1\x15\x04"])
def test_garbage_names_the_file(data: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"/t/hoodie\.properties"):
        parse_properties(data, "/t/hoodie.properties")


@given(st.binary())
def test_any_bytes_parse_or_fail_typed(data: bytes) -> None:
    with contextlib.suppress(CorruptFile):
        parse_properties(data, "f")
