from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.errors import ConfigError
from hudi_services.runs.config_files import default_files, parse_assignments, read_properties


def test_the_form_that_hudi_reads(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text(
        "# comment=1\n\nplain=1\n  spaced  =  a   b \nby.blank  2\nby.tab\t3\nequals=a=b\nempty=\nnothing\nplain=9\n"
    )
    assert read_properties(str(file)) == {
        "plain": "9",
        "spaced": "a b",
        "by.blank": "2",
        "by.tab": "3",
        "equals": "a=b",
        "empty": "",
    }


def test_includes_stand_in_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base.properties").write_text("a=base\nb=base\n")
    (tmp_path / "top.properties").write_text("a=top\ninclude=base.properties\nb=top\n")
    expected = {"a": "base", "b": "top"}
    assert read_properties(str(tmp_path / "top.properties")) == expected
    assert read_properties(f"file://{tmp_path}/top.properties") == expected
    (tmp_path / "mounted.properties").symlink_to("top.properties")
    for location in (f"{tmp_path}/mounted.properties", f"file://{tmp_path}/mounted.properties"):
        assert read_properties(location) == expected
    monkeypatch.chdir(tmp_path)
    assert read_properties("top.properties") == expected


def test_a_loop_of_includes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("include=b\n")
    (tmp_path / "b").write_text("include=a\n")
    with pytest.raises(ConfigError, match="includes itself"):
        read_properties(str(tmp_path / "a"))


def test_what_is_no_properties_file(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, sentence in [("none", "does not exist"), ("binary", "no UTF-8 text"), ("", "is a folder")]:
        with pytest.raises(ConfigError, match=sentence):
            read_properties(f"{tmp_path}/{name}")


def test_default_files(tmp_path: Path) -> None:
    assert default_files({}) == default_files({"HUDI_CONF_DIR": str(tmp_path)})
    (tmp_path / "hudi-defaults.conf").write_text("a 1\n")
    assert default_files({"HUDI_CONF_DIR": str(tmp_path)})[0] == str(tmp_path / "hudi-defaults.conf")


def test_assignments() -> None:
    assert parse_assignments([" a = b=c ", "d="], "--hoodie-conf") == {"a": "b=c", "d": ""}
    for text in ("a", "=b", "", "fs.s3a.secret.key SECRET"):
        with pytest.raises(ConfigError, match="--hoodie-conf number 2 is not of the form KEY=VALUE") as caught:
            parse_assignments(["a=b", text], "--hoodie-conf")
        assert "SECRET" not in caught.value.message + caught.value.hint


@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed.properties"
    file.write_bytes(data)
    try:
        values = read_properties(str(file))
    except ConfigError:
        return
    assert all(key == key.strip() and key for key in values)
