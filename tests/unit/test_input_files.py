"""Files as the input of a write: which are found, with which types they are read, and what is refused."""

import bz2
import datetime
import decimal
import gzip
import io
import json
import random
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hudi_services
from hudi_services.cli.app import run
from hudi_services.errors import ConfigError, NothingToDo
from hudi_services.inputs import input_formats
from hudi_services.inputs.input_files import InputFiles, find_files, input_rows
from hudi_services.inputs.input_types import InputTypes
from hudi_services.jobs import writing
from hudi_services.options import resolve
from hudi_services.runs.report import Report
from hudi_services.runs.request import WriteOperation, WriteRequest

from .rides import FILTERS, create
from .tables import both_views

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")
UTC = datetime.timezone.utc


def write(path: Path, *urls: Path | str, operation: str = "upsert", file_format: str = "", **new: str) -> Report:
    """Write files to a table; `new` are the options of one that is made first, without their common prefix."""
    options = {**FILTERS, **{f"hoodie.{key.replace('__', '.')}": value for key, value in new.items()}}
    wanted = WriteRequest(
        base_path=str(path),
        options=resolve([("test", options)]),
        operation=WriteOperation(operation),
        input=tuple(map(str, urls)),
        input_format=file_format,
    )
    return writing.write_files(wanted)


NEW = {
    "table__name": "rides",
    "datasource__write__recordkey__field": "id",
    "datasource__write__partitionpath__field": "day",
}


def rows_of(path: Path, *names: str) -> list[dict[str, Any]]:
    """The rows that readers see, by key, without Hudi's columns."""
    found, listed = both_views(path)
    assert found.equals(listed)
    names = names or tuple(name for name in found.column_names if not name.startswith("_hoodie_"))
    rows: list[dict[str, Any]] = found.sort_by("id").select(list(names)).to_pylist()
    return rows


def values(url: Path | str, types: InputTypes | None = None, file_format: str = "") -> dict[str, list[Any]]:
    """The columns of files."""
    found: dict[str, list[Any]] = input_rows([str(url)], file_format, types).read_all().to_pydict()
    return found


def kinds(url: Path | str, types: InputTypes | None = None) -> dict[str, str]:
    """The types of the columns of files, after all rows have been read."""
    found = input_rows([str(url)], "", types).read_all().schema
    return {field.name: str(field.type) for field in found}


def jsonl(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# ------------------------------------------------------------------------------------------------ which files are found

ROWS = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})


def stored(table: pa.Table, file_format: str, path: Path) -> Path:
    """The table as a file of this format, where "stream" is an Arrow stream."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if file_format == "parquet":
        pq.write_table(table, path)
    elif file_format == "csv":
        pyarrow.csv.write_csv(table, path)
    elif file_format == "json":
        path.write_text(jsonl(*table.to_pylist()))
    else:
        make = pa.ipc.new_stream if file_format == "stream" else pa.ipc.new_file
        with make(path, table.schema) as writer:
            writer.write_table(table)
    return path


FILES = {
    "parquet": "new.parquet",
    "csv": "new.CSV",
    "json": "new.jsonl",
    "arrow": "new.arrow",
    "stream": "new.ipc",
}


@pytest.mark.parametrize("file_format", FILES)
def test_every_format(file_format: str, tmp_path: Path) -> None:
    file = stored(ROWS, file_format, tmp_path / FILES[file_format])
    assert input_rows([str(file)]).read_all().equals(ROWS)
    unnamed = file.rename(tmp_path / "rows")
    with pytest.raises(ConfigError, match="does not say by its name which format it has"):
        input_rows([str(unnamed)])
    given = "arrow" if file_format == "stream" else file_format
    assert input_rows([str(unnamed)], given).read_all().equals(ROWS)


def test_folders_patterns_and_their_order(tmp_path: Path) -> None:
    names = [
        "new/a.csv",
        "new/b.csv",
        "new/b1/c.csv",
        "new/b1/x/d.csv",
        "new/_x/e.csv",
        "new/.f.csv",
        "new/b1/_SUCCESS",
        "new/z.csv",
        "old/a.csv",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"file\n{name}\n")

    def found(*patterns: str) -> list[str]:
        urls = [f"{tmp_path}/{one}" for one in patterns]
        read = [str(text) for text in input_rows(urls).read_all().column("file").to_pylist()]
        return [one.removeprefix("new/") for one in read]

    everything = ["a.csv", "b.csv", "b1/c.csv", "b1/x/d.csv", "z.csv"]
    assert found("new") == found("new/") == found("new/**") == found("new/**.csv") == everything
    assert found("new/*.csv") == found("new/?.csv") == ["a.csv", "b.csv", "z.csv"]
    assert found("new/*/*") == ["b1/c.csv"]
    assert found("new/[ab].csv") == found("new/[a-y].csv") == ["a.csv", "b.csv"]
    assert found("new/[!ab].csv") == found("new/[^ab].csv") == ["z.csv"]
    assert found("new/b1", "new/a.csv") == ["b1/c.csv", "b1/x/d.csv", "a.csv"]
    assert found("*/a.csv") == ["a.csv", "old/a.csv"]
    # A file that is named is read, whatever its name begins with.
    assert found("new/.f.csv") == [".f.csv"]
    for nothing in ("new/*.parquet", "nowhere", "nowhere/*.csv", "new[/]a.csv"):
        with pytest.raises(ConfigError, match="there are no files at "):
            found(nothing)
    with pytest.raises(ConfigError, match=r"\[z-a\].csv is no pattern of file names: bad character range z-a"):
        found("new/[z-a].csv")


def test_a_name_that_looks_like_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of exactly this name is meant, where there is one."""
    for name in ("rows[1].csv", "rows1.csv", "what?.csv", "all*.csv", "open[.csv", "a b/x[ab].csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"file\n{name}\n")
        assert values(tmp_path / name) == {"file": [name]}
    monkeypatch.chdir(tmp_path)
    assert values("rows[1].csv") == {"file": ["rows[1].csv"]}
    assert values("rows[12].csv") == {"file": ["rows1.csv"]}


# --------------------------------------------------------------------------------------------- types of existing tables


def texts_table(path: Path, *rows: tuple[str, str], day: str = "d") -> hudi_services.Table:
    """A table with the text columns id, day and text."""
    table = create(path, ordering=None)
    columns = {"id": [one for one, _ in rows], "day": [day] * len(rows), "text": [one for _, one in rows]}
    table.insert(pa.table(columns, pa.schema([(name, pa.string()) for name in columns])))
    return table


@pytest.mark.thorough
def test_a_delete_deletes_the_row_of_its_key(tmp_path: Path) -> None:
    """The keys 007 and 7 are two keys. Other columns of the file do not matter, whatever is in them."""
    for file_format, content in (
        ("csv", "id,day,text,n\n007,d,1,9\n008,d,x,1.5 km\n"),
        ("json", jsonl({"id": "007", "day": "d", "text": 1, "n": 9}, {"id": "008", "day": "d", "text": 2.5})),
    ):
        path = tmp_path / file_format / "rides"
        path.parent.mkdir()
        texts_table(path, ("007", "bond"), ("7", "seven"))
        file = path.parent / f"del.{file_format}"
        file.write_text(content)
        line = ["write", "--base-path", str(path), "--input", str(file), "--operation", "delete"]
        assert run(line) == 0
        assert rows_of(path, "id", "text") == [{"id": "7", "text": "seven"}]


TEXTS = ["007", "1234", "1.10", "1e5", "2024-01-01", "2024-01-01T10:00:00Z", "true", "NaN", "NULL", "", " x ", "+1"]


@pytest.mark.thorough
@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_text_columns_get_texts(file_format: str, tmp_path: Path) -> None:
    texts_table(tmp_path / "rides", ("x", "y"))
    new = pa.table(
        {"id": [f"0{n}" for n in range(len(TEXTS))], "day": ["2024-01-02"] * len(TEXTS), "text": TEXTS},
    )
    write(tmp_path / "rides", stored(new, file_format, tmp_path / f"new.{file_format}"))
    found = rows_of(tmp_path / "rides")
    assert [one for one in found if one["id"] != "x"] == new.sort_by("id").to_pylist()
    # Whatever the other files have.
    (tmp_path / "more").mkdir()
    stored(new.slice(0, 5), file_format, tmp_path / f"more/a.{file_format}")
    stored(new.slice(5), file_format, tmp_path / f"more/b.{file_format}")
    write(tmp_path / "rides", tmp_path / "more")
    assert rows_of(tmp_path / "rides") == found


TYPED = {
    "id": pa.string(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "b": pa.bool_(),
    "dec": pa.decimal128(20, 3),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "raw": pa.binary(),
    "nested": pa.struct([("x", pa.string()), ("at", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.decimal128(5, 1)))]),
}


def typed_table(path: Path, *, nested: bool) -> None:
    columns = {name: kind for name, kind in TYPED.items() if nested or name != "nested"}
    first = {name: pa.nulls(1, kind) for name, kind in columns.items()} | {
        "id": ["first"],
        "day": [datetime.date(2024, 1, 1)],
    }
    create(path, partition_by="day", ordering=None).insert(pa.table(first, pa.schema(list(columns.items()))))


EXACT = {
    "i": -(1 << 31),
    "l": (1 << 63) - 1,
    "f": 0.10000000149011612,
    "d": 0.30000000000000004,
    "b": True,
    "dec": decimal.Decimal("12345678901234567.890"),
    "day": datetime.date(9999, 12, 31),
    "at": datetime.datetime(2024, 1, 1, 8, 0, 0, 123456, UTC),
    "local": datetime.datetime(1, 2, 3, 4, 5, 6),
    "raw": "ü\n".encode(),
}


@pytest.mark.thorough
def test_csv_values_of_each_type(tmp_path: Path) -> None:
    typed_table(tmp_path / "rides", nested=False)
    (tmp_path / "new.csv").write_text(
        "id,raw,i,l,f,d,b,dec,day,at,local\n"
        'a,"ü\n",-2147483648,9223372036854775807,0.1,0.30000000000000004,true,12345678901234567.890,9999-12-31,'
        "2024-01-01T10:00:00.123456000+02:00,0001-02-03 04:05:06\n"
        "b,,,NULL,null,,NA, 7 ,2024-01-01,,N/A\n",
        encoding="utf-8",
    )
    write(tmp_path / "rides", tmp_path / "new.csv")
    a, b, _ = rows_of(tmp_path / "rides")
    assert a == {"id": "a", **EXACT}
    assert b.pop("raw") == b""
    assert {name: value for name, value in b.items() if value is not None} == {
        "id": "b",
        "dec": decimal.Decimal("7.000"),
        "day": datetime.date(2024, 1, 1),
    }
    # NaN is a double, and no null.
    (tmp_path / "new.csv").write_text("d,i\nNaN,NaN\n-inf,\n,nan\n")
    found = values(tmp_path / "new.csv", InputTypes(known=TYPED))
    assert str(found) == "{'d': [nan, -inf, None], 'i': [None, None, None]}"


def test_json_values_of_each_type(tmp_path: Path) -> None:
    typed_table(tmp_path / "rides", nested=True)
    (tmp_path / "new.json").write_text(
        '{"id": "a", "raw": "ü\\n", "i": -2147483648, "l": 9223372036854775807, "f": 0.1, "d": 0.30000000000000004, '
        '"b": true, "dec": 12345678901234567.890, "day": "9999-12-31", "at": "2024-01-01T10:00:00.123456+02:00", '
        '"local": "0001-02-03 04:05:06", '
        '"nested": {"l": [1.5, null], "x": "2024-01-01", "at": "2024-01-01T00:00:00Z"}}\n'
        '{"dec": 0.001, "id": "b", "day": "2024-01-01", "nested": {"x": "007"}}\n',
        encoding="utf-8",
    )
    write(tmp_path / "rides", tmp_path / "new.json")
    a, b, _ = rows_of(tmp_path / "rides")
    nested = {
        "x": "2024-01-01",
        "at": datetime.datetime(2024, 1, 1, tzinfo=UTC),
        "l": [decimal.Decimal("1.5"), None],
    }
    assert a == {"id": "a", **EXACT, "nested": nested}
    assert {name: value for name, value in b.items() if value is not None} == {
        "id": "b",
        "dec": decimal.Decimal("0.001"),
        "day": datetime.date(2024, 1, 1),
        "nested": {"x": "007", "at": None, "l": None},
    }


WRONG = {
    "i": ("1.5", "2147483648", "x", "+1"),
    "l": ("9223372036854775808", "1e3"),
    "f": ("1e39", "x"),
    "d": ("1e400", "1,5"),
    "b": ("yes", "2"),
    "dec": ("0.0001", "123456789012345678.0", "x"),
    "day": ("2024-02-30", "2024-01-01 00:00:00", "01.02.2024"),
    "at": ("2024-01-01T10:00:00", "2024-01-01", "2024-01-01T10:00:00.1234567Z", "1700000000"),
    "local": ("2024-01-01T10:00:00Z", "noon"),
}


@pytest.mark.parametrize(("column", "value"), [(name, one) for name, some in WRONG.items() for one in some])
def test_values_that_are_none_of_the_type(column: str, value: str, tmp_path: Path) -> None:
    """One sentence that names the file and the column, of whatever format, and nothing is read for the table."""
    known = InputTypes(known=TYPED)
    message = f"column {column} has the type [a-z(].*, and .*"
    rest = f'"{value}"' if "," in value else value
    (tmp_path / "new.csv").write_text(f"id,{column}\na,\nb,{rest}\n")
    with pytest.raises(ConfigError, match=f"new.csv: {message}") as caught:
        values(tmp_path / "new.csv", known)
    assert "correct the values" in caught.value.hint
    as_number = column in ("i", "l", "f", "d", "dec") and value not in ("x", "+1", "1,5")
    (tmp_path / "new.json").write_text(f'{{"{column}": {value if as_number else json.dumps(value)}}}\n')
    with pytest.raises(ConfigError, match=rf"new.json: {message}|new.json cannot be read as json: .*") as caught:
        values(tmp_path / "new.json", known)
    assert "\n" not in caught.value.message


def test_whole_numbers_of_json_for_a_text_column(tmp_path: Path) -> None:
    """They are promoted as those of other formats; numbers that have no one text are refused."""
    texts_table(tmp_path / "rides", ("x", "y"))
    (tmp_path / "new.json").write_text(jsonl({"id": 7, "day": "d", "text": "t"}))
    write(tmp_path / "rides", tmp_path / "new.json")
    assert rows_of(tmp_path / "rides", "id") == [{"id": "7"}, {"id": "x"}]
    (tmp_path / "new.json").write_text(jsonl({"id": "7", "day": "d", "text": 1.5}))
    with pytest.raises(ConfigError, match=r"new.json: column text has the type double, and string in the table"):
        write(tmp_path / "rides", tmp_path / "new.json")


def test_columns_that_the_table_does_not_have(tmp_path: Path) -> None:
    """Their types are found in all rows, beside those of the table."""
    texts_table(tmp_path / "rides", ("x", "y"))
    (tmp_path / "new.csv").write_text(
        "id,day,text,n,_hoodie_is_deleted,_hoodie_commit_time\n1,d,2,3,,5\n4,d,5,6.5,,8\n"
    )
    write(tmp_path / "rides", tmp_path / "new.csv")
    assert rows_of(tmp_path / "rides", "id", "text", "n") == [
        {"id": "1", "text": "2", "n": 3.0},
        {"id": "4", "text": "5", "n": 6.5},
        {"id": "x", "text": "y", "n": None},
    ]


# -------------------------------------------------------------------------------------------------- types of new tables

GUESSED = [
    (["1", "-2", "", "9223372036854775807"], "int64"),
    (["1", "9223372036854775808"], "string"),
    (["1", "1.5", "NULL"], "double"),
    (["1.5", "NaN", "-inf", "1e5", ".5"], "double"),
    (["1", "NaN"], "double"),
    (["9007199254740993", "1.5"], "string"),
    (["123456789012345", "1.5"], "double"),
    (["0.30000000000000004"], "double"),
    (["0.1234567890123456789"], "string"),
    (["1e400"], "string"),
    (["0", "0.5", "-0.5"], "double"),
    (["007", "1"], "string"),
    (["00.5"], "string"),
    (["+7", "1"], "string"),
    (["-0"], "double"),
    (["-07"], "string"),
    ([" 7"], "string"),
    (["0x10"], "string"),
    (["1_000"], "string"),
    (["true", "FALSE", "NA"], "bool"),
    (["true", "1"], "string"),
    (["2024-01-01", "9999-12-31"], "date32[day]"),
    (["2024-01-01", "2024-02-30"], "string"),
    (["2024-01-01", "2024-01-01 10:00:00"], "string"),
    (["2024-01-01 10:00", "2024-01-01T10:00:00.123456000"], "timestamp[us]"),
    (["2024-01-01T10:00:00Z", "9999-01-01T10:00:00.5+02:00"], "timestamp[us, tz=UTC]"),
    (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], "string"),
    (["2024-01-01T10:00:00.1234567Z"], "string"),
    (["10:00:00"], "string"),
    (["", "NULL"], "string"),
    (["1", "x"], "string"),
    (["1", "2024-01-01"], "string"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("texts", "kind"), GUESSED, ids=[",".join(texts) for texts, _ in GUESSED])
def test_types_of_csv(texts: list[str], kind: str, tmp_path: Path) -> None:
    """By all values, in whatever order and in whatever files they are; a text is as it was."""
    for number, order in enumerate((texts, texts[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "all.csv").write_text("id,x\n" + "".join(f"k,{one}\n" for one in order))
        assert kinds(folder) == {"id": "string", "x": kind}
        if kind == "string":
            assert values(folder)["x"] == order
        (folder / "all.csv").unlink()
        for part, one in enumerate(order):
            (folder / f"{part}.csv").write_text(f"id,x\nk,{one}\n")
        assert kinds(folder) == {"id": "string", "x": kind}
        if kind == "string":
            assert values(folder)["x"] == order


@pytest.mark.thorough
def test_keys_and_partitions_of_a_new_table_are_texts(tmp_path: Path) -> None:
    for name, content in (
        ("new.csv", "id,day,n\n7,2024-01-02,1\n1234,2024-01-03,2\n"),
        ("new.json", jsonl({"id": "7", "day": "2024-01-02", "n": 1}, {"id": "1234", "day": "2024-01-03", "n": 2})),
    ):
        path, file = tmp_path / name.replace(".", ""), tmp_path / name
        file.write_text(content)
        assert write(path, file, **NEW).error is None
        assert rows_of(path) == [{"id": "1234", "day": "2024-01-03", "n": 2}, {"id": "7", "day": "2024-01-02", "n": 1}]
        # So that the next file may have other keys.
        file.write_text(content.replace("1234", "0x07"))
        write(path, file)
        assert [one["id"] for one in rows_of(path)] == ["0x07", "1234", "7"]


@pytest.mark.thorough
def test_partition_paths_of_numbers(tmp_path: Path) -> None:
    """A key generator that makes paths of milliseconds gets numbers, one that reads texts gets texts."""
    keygen = {
        "datasource__write__keygenerator__class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "keygen__timebased__output__dateformat": "yyyy-MM-dd",
        "keygen__timebased__timezone": "UTC",
    }
    (tmp_path / "new.csv").write_text("id,day\na,1700000000000\n")
    write(
        tmp_path / "millis",
        tmp_path / "new.csv",
        **NEW,
        **keygen,
        keygen__timebased__timestamp__type="EPOCHMILLISECONDS",
    )
    (tmp_path / "new.csv").write_text("id,day\na,20231114\n")
    by_text = {"keygen__timebased__timestamp__type": "DATE_STRING", "keygen__timebased__input__dateformat": "yyyyMMdd"}
    write(tmp_path / "texts", tmp_path / "new.csv", **NEW, **keygen, **by_text)
    assert rows_of(tmp_path / "millis") == [{"id": "a", "day": 1700000000000}]
    assert rows_of(tmp_path / "texts") == [{"id": "a", "day": "20231114"}]
    for name in ("millis", "texts"):
        assert (tmp_path / name / "2023-11-14").is_dir()


def test_later_files_of_csv_have_a_say(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.csv").write_text("id,n,x,at\na,x,1.10x,never\n")
    (tmp_path / "new/b.csv").write_text("at,id,n,x\n2024-01-01T10:00:00Z,007,1,1.10\n")
    assert values(tmp_path / "new") == {
        "id": ["a", "007"],
        "n": ["x", "1"],
        "x": ["1.10x", "1.10"],
        "at": ["never", "2024-01-01T10:00:00Z"],
    }


def test_types_of_json(tmp_path: Path) -> None:
    """Strings are texts; whole numbers beside others are doubles; fields may come late, and be missing in a file."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.json").write_text(
        jsonl({"id": "7", "at": "2024-01-01", "n": 1, "o": {"x": 1, "at": "2024-01-01T10:00:00Z"}, "e": [], "no": None})
    )
    (tmp_path / "new/b.json").write_text(
        jsonl({"n": 1.5, "id": "8", "o": {"y": [True], "x": 0.5}, "e": [{"z": "2024-01-01"}], "late": 3})
    )
    found = input_rows([str(tmp_path / "new")]).read_all()
    assert found.to_pylist() == [
        {
            "id": "7",
            "at": "2024-01-01",
            "n": 1.0,
            "o": {"x": 1.0, "at": "2024-01-01T10:00:00Z", "y": None},
            "e": [],
            "no": None,
            "late": None,
        },
        {
            "id": "8",
            "at": None,
            "n": 1.5,
            "o": {"x": 0.5, "at": None, "y": [True]},
            "e": [{"z": "2024-01-01"}],
            "no": None,
            "late": 3,
        },
    ]
    assert found.schema.field("late").nullable


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ('{"n": 1}', '{"n": "1"}', "column n has values of several types, as long and string"),
        ('{"n": {"x": [1]}}', '{"n": {"x": [true]}}', "column n.x.element has values of several types"),
        ('{"n": 1}\n{"n": "1"}\n', "{}", r"Column\(/n\) changed from number to string in row 2"),
        ('{"n": 1.5}', '{"n": 9007199254740993}', "column n has whole numbers that are too large for a double"),
        ('{"n": 18446744073709551615}', "{}", "column n has whole numbers that are too large for a double"),
        ('{"o": {"n": [1.5, 12345678901234567]}}', "{}", "column o.n.element has whole numbers that are too large"),
        ('{"n": 1, "n": 2}', "{}", r"Column\(/n\) was specified twice"),
        ('[{"n": 1}]', "{}", "changed from object to array"),
        ('{"n": 1', "{}", "cannot be read as json"),
        ("n,m\n1,2", "{}", "cannot be read as json"),
    ],
)
def test_json_that_is_refused(first: str, second: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(first)
    (tmp_path / "b.json").write_text(second)
    with pytest.raises(ConfigError, match=rf"[ab].json.*{message}"):
        values(tmp_path)


def test_large_doubles_are_no_large_whole_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"n": 1e300, "text": "n\\": 12345678901234567", "id": 12345678901234567}\n{"n": 7}\n'
    )
    assert values(tmp_path / "a.json")["n"] == [1e300, 7.0]
    # Where the table has the type, it decides.
    (tmp_path / "a.json").write_text('{"n": 18446744073709551615}\n')
    known = InputTypes(known={"n": pa.decimal128(20, 0)})
    assert values(tmp_path / "a.json", known)["n"] == [decimal.Decimal("18446744073709551615")]


# ------------------------------------------------------------------------------------------- several files and formats


def test_files_of_several_formats(tmp_path: Path) -> None:
    """The first one has the columns and the types: texts are parsed into them, and other values cast."""
    stored(ROWS.set_column(1, "n", pa.array([1, 2, 3], pa.int32())), "parquet", tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("n,id\n4,007\n")
    (tmp_path / "c.json").write_text(jsonl({"id": "2024-01-01", "n": 5}))
    stored(ROWS, "arrow", tmp_path / "d.arrow")
    found = input_rows([str(tmp_path)]).read_all()
    assert found.schema.types == [pa.string(), pa.int32()]
    assert found.to_pydict() == {
        "id": ["a", "b", "c", "007", "2024-01-01", "a", "b", "c"],
        "n": [1, 2, 3, 4, 5, 1, 2, 3],
    }
    for name, content, message in (
        ("b.csv", "n,id\n4.5,x\n", "b.csv: column n has the type int, and '4.5' is no such value"),
        ("b.csv", "n\n4\n", "b.csv does not have the columns of the first file: id is in only one of them"),
        ("b.csv", "n,id\n4,x\n", ""),
        ("c.json", jsonl({"id": 7, "n": 5}), r"c.json cannot be read as json: .*Column\(/id\) changed"),
        ("c.json", jsonl({"id": "7", "n": 5, "m": 5}), "it has the field m, and the first file does not"),
    ):
        (tmp_path / name).write_text(content)
        if message:
            with pytest.raises(ConfigError, match=message):
                values(tmp_path)


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        (pa.array(["x"]), pa.array([7]), "column v is long here, and string there"),
        (pa.array([7]), pa.array(["7"]), "column v is string here, and long there"),
        (pa.array(["x"]), pa.array([datetime.date(2024, 1, 1)]), "column v is date here, and string there"),
        (pa.array([7]), pa.array([True]), "column v is boolean here, and long there"),
        (
            pa.array([1], pa.timestamp("us")),
            pa.array([1], pa.timestamp("us", "UTC")),
            "column v is timestamp-micros here",
        ),
        (pa.array([["x"]]), pa.array([[7]]), "column v is array<long> here, and array<string> there"),
        (pa.array([{"a": "x"}]), pa.array([{"a": 7}]), "column v is record<a: long> here"),
        (pa.array([1], pa.int32()), pa.array([1 << 40]), "not in range"),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), "column v has values that a float cannot hold"),
        (pa.array([1], pa.int32()), pa.array([7]), ""),
        (pa.array([0.5], pa.float32()), pa.array([0.25, float("nan"), None]), ""),
        (pa.array(["x"]), pa.array(["y", "z"]).dictionary_encode(), ""),
        (pa.array(["x"]), pa.array(["y"], pa.large_string()), ""),
        (pa.array(["x"]), pa.nulls(2), ""),
        (pa.array([1.5]), pa.array([7]), ""),
    ],
)
def test_casts_among_parquet_files(first: pa.Array, later: pa.Array, message: str, tmp_path: Path) -> None:
    """No value changes what it means."""
    stored(pa.table({"v": first}), "parquet", tmp_path / "a.parquet")
    stored(pa.table({"v": later}), "parquet", tmp_path / "b.parquet")
    if message:
        with pytest.raises(ConfigError, match=f"b.parquet does not have the types of the first file: .*{message}"):
            values(tmp_path)
    else:
        assert len(values(tmp_path)["v"]) == len(first) + len(later)


def test_columns_of_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\na,1\n")
    for text in ("id\nb\n", "id,n,m\nb,1,2\n"):
        (tmp_path / "b.csv").write_text(text)
        with pytest.raises(ConfigError, match=r"b.csv does not have the columns of the first file"):
            values(tmp_path)
    (tmp_path / "b.csv").write_text("id,n,id\nb,1,2\n")
    with pytest.raises(ConfigError, match=r"b.csv has several columns called id"):
        values(tmp_path)


# ---------------------------------------------------------------------------------------------------------- large files


def test_json_fields_that_come_late(tmp_path: Path) -> None:
    """After more than one piece of a file: a field, a nested one, a fraction."""
    first = {"id": "k", "n": 1, "o": {"x": 1}, "fill": "x" * 1000}
    last = {"id": "z", "n": 1.5, "o": {"x": 2, "y": "late"}, "late": True}
    (tmp_path / "new.json").write_text(jsonl(*[first] * 9000, last))
    assert (tmp_path / "new.json").stat().st_size > 2 * input_formats._CHUNK
    found = input_rows([str(tmp_path / "new.json")]).read_all()
    assert found.num_rows == 9001
    assert found.slice(9000).to_pylist() == [{**last, "n": 1.5, "fill": None}]
    assert found.slice(0, 1).to_pylist() == [{**first, "n": 1.0, "o": {"x": 1, "y": None}, "late": None}]


@pytest.mark.thorough
@pytest.mark.parametrize("padding", range(4))
def test_line_breaks_within_quotes(padding: int, tmp_path: Path) -> None:
    """Wherever the blocks of a large file end."""
    lines = '\n"",\r\n' * 10
    row = f'{"y" * padding},"{lines}",1\n'
    count = (2 * input_formats._LONGEST_ROW) // len(row) + 9
    (tmp_path / "new.csv").write_text("id,text,n\n" + row * count, newline="")
    found = input_rows([str(tmp_path / "new.csv")], "", InputTypes(known={"text": pa.string()})).read_all()
    assert found.num_rows == count and found.schema.field("n").type == pa.int64()
    assert set(found.column("text").to_pylist()) == {'\n",\r\n' * 10}


def test_rows_and_lines_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_formats, "_LONGEST_ROW", 1 << 20)
    monkeypatch.setattr(input_formats, "_LONGEST_LINE", 1 << 20)
    (tmp_path / "new.csv").write_text("id,text\na,b\nc," + "x" * (3 << 20))
    with pytest.raises(ConfigError, match=r"new.csv cannot be read as csv: a row has more than 1 MiB"):
        values(tmp_path / "new.csv")
    for count, message in (
        (3, "csv: a quote has no end"),
        (300_000, "a quote has no end"),
        (900_000, "MiB, or a quote"),
    ):
        (tmp_path / "new.csv").write_text("id,text\n" + 'a,"b\n' + "a,b\n" * count)
        with pytest.raises(ConfigError, match=message):
            values(tmp_path / "new.csv")
    (tmp_path / "new.csv").write_text("x" * (1 << 17) + ",y\n" + "1,2\n")
    assert values(tmp_path / "new.csv")["y"] == [2]
    (tmp_path / "new.json").write_text('{"text": "' + "x" * (9 << 20) + '"}\n')
    with pytest.raises(ConfigError, match=r"new.json cannot be read as json: a line has more than 1 MiB"):
        values(tmp_path / "new.json")


# --------------------------------------------------------------------------------------- compressed, damaged and empty

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    ".GZ": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
}


@pytest.mark.parametrize("end", COMPRESSIONS)
def test_compressed_files(end: str, tmp_path: Path) -> None:
    for name in ("new.csv", "new.jsonl"):
        content = stored(ROWS, "csv" if "csv" in name else "json", tmp_path / name).read_bytes()
        (tmp_path / f"{name}{end}").write_bytes(COMPRESSIONS[end](content))
        assert input_rows([f"{tmp_path}/{name}{end}"]).read_all().equals(ROWS)
        (tmp_path / f"rows{end}").write_bytes(COMPRESSIONS[end](content))
        given = "csv" if "csv" in name else "json"
        assert input_rows([f"{tmp_path}/rows{end}"], given).read_all().equals(ROWS)
        (tmp_path / f"{name}{end}").write_bytes(COMPRESSIONS[end](content)[:-2])
        with pytest.raises(ConfigError, match=f"{name}{end} cannot be read as {given}: "):
            values(f"{tmp_path}/{name}{end}")


def test_compressed_files_that_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One sentence, and exit code 2."""
    for name, file_format, message in (
        ("new.parquet.gz", None, "is compressed as a whole, and only csv and json files are read so"),
        ("new.gz", "arrow", "is compressed as a whole"),
        ("new.csv", None, "cannot be read as csv: 'utf-8' codec can't decode byte 0x8b"),
        ("new.json", None, "cannot be read as json: 'utf-8' codec can't decode byte 0x8b"),
        ("new.parquet", None, "cannot be read as parquet"),
    ):
        (tmp_path / name).write_bytes(gzip.compress(b"id,n\n1,2\n", mtime=0))
        line = ["write", "--base-path", f"{tmp_path}/t", "--record-key", "id", "--table-name", "t"]
        line += ["--input", f"{tmp_path}/{name}", *(["--input-format", file_format] if file_format else [])]
        assert run(line) == 2
        said = capfd.readouterr().err
        assert f"{name} {message}" in said and "Traceback" not in said and len(said.splitlines()) <= 2
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"\xff\n1\n"),
        ("a.csv", b"id,n\n\xff,1\n"),
        ("a.csv", "id,n\nü,1\n".encode("utf-16")),
        ("a.csv", b"id,n\n1\n"),
        ("a.json", b'{"id": "\xff"}\n'),
        ("a.json", '{"id": "ü"}\n'.encode("utf-16")),
        ("a.json", b'{"\xff": 1}\n'),
        ("a.json", b'{"id": "\\ud800"}\n'),
    ],
)
def test_bytes_that_are_no_text(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=name):
        values(tmp_path / name)


def test_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\nü,1\n", encoding="utf-8-sig")
    (tmp_path / "b.json").write_text(jsonl({"id": "ü", "n": 1}), encoding="utf-8-sig")
    assert values(tmp_path) == {"id": ["ü", "ü"], "n": [1, 1]}


EMPTY = [b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf"]


@pytest.mark.parametrize("name", ["new.csv", "new.json"])
@pytest.mark.parametrize("content", EMPTY)
def test_files_without_content(name: str, content: bytes, tmp_path: Path) -> None:
    """They have no rows, and say nothing about columns; the others are read."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NothingToDo, match="there are no rows to write"):
        values(tmp_path / name)
    with pytest.raises(NothingToDo, match="there are no rows to write"):
        write(tmp_path / "rides", tmp_path / name, **NEW)
    assert not (tmp_path / "rides").exists()
    (tmp_path / "new2.csv").write_text("id,n\na,1\n")
    (tmp_path / name.replace("new", "new3")).write_bytes(content)
    assert values(f"{tmp_path}/new*") == {"id": ["a"], "n": [1]}


def test_files_with_names_alone(tmp_path: Path) -> None:
    for content in ("id,day,text\n", "id,day,text"):
        (tmp_path / "new.csv").write_text(content)
        for path in (tmp_path / "rides", tmp_path / "there"):
            if path.name == "there" and not path.exists():
                texts_table(path, ("x", "y"))
            with pytest.raises(NothingToDo, match="there are no rows to write"):
                write(path, tmp_path / "new.csv", **(NEW if path.name == "rides" else {}))
    (tmp_path / "new.csv").write_text("id,day\n")
    with pytest.raises(ConfigError, match="the rows lack the column text of the table"):
        write(tmp_path / "there", tmp_path / "new.csv")
    (tmp_path / "new.json").write_text("{}\n")
    with pytest.raises(ConfigError, match="the rows have no columns"):
        write(tmp_path / "there", tmp_path / "new.json")


def test_parts_for_tasks_read_by_the_same_types(tmp_path: Path) -> None:
    """What tasks of Spark get: files in parts, and a schema."""
    (tmp_path / "a.csv").write_text("id,n,at\n007,1,2024-01-01T10:00:00Z\n")
    (tmp_path / "b.csv").write_text("n,id,at\n1.5,08,\n")
    found = InputFiles.of(
        find_files([str(tmp_path)]), InputTypes(known={"at": pa.timestamp("us", "UTC")}, texts=frozenset({"id"}))
    )
    batches = [batch for part in found.parts(2) for file in part for batch in file.batches(found.schema)]
    assert pa.Table.from_batches(batches).to_pylist() == [
        {"id": "007", "n": 1.0, "at": datetime.datetime(2024, 1, 1, 10, tzinfo=UTC)},
        {"id": "08", "n": 1.5, "at": None},
    ]


# ----------------------------------------------------------------------------------------------------- generated tests


def odd_text(choose: random.Random) -> str:
    """A text that looks like a value of some type."""
    digits = "".join(choose.choices("0123456789", k=choose.randint(1, 20)))
    day = f"{choose.randint(1, 9999):04}-{choose.randint(1, 12):02}-{choose.randint(1, 28):02}"
    clock = f"{day}{choose.choice(' T')}{choose.randint(0, 23):02}:{choose.randint(0, 59):02}"
    return choose.choice(
        [
            digits,
            digits.lstrip("0") or "0",
            f"-{digits}",
            f"+{digits}",
            f"{digits[:9]}.{digits}",
            f"{digits[:3]}e{digits[:3]}",
            f" {digits}",
            day,
            clock,
            f"{clock}:{choose.randint(0, 59):02}",
            f"{clock}:00.{digits}{choose.choice(['', 'Z', '+02:00', '-0330'])}",
            f"{clock}:00Z",
            choose.choice(
                ["true", "FALSE", "NaN", "inf", "-inf", "null", "NULL", "NA", "N/A", "nan", "0", "1", "0x1F"]
            ),
            "".join(choose.choices(string.printable + "üß€😀", k=choose.randint(1, 6))),
        ]
    )


def odd_rows(choose: random.Random, count: int) -> pa.Table:
    """Texts; some columns have texts of one form alone, as a whole or but for one."""
    columns: dict[str, list[str]] = {"id": [f"{odd_text(choose)}{n}" for n in range(count)]}
    columns["day"] = choose.choices(["2024-01-02", "2024-01-03", "7"], k=count)
    columns["mixed"] = [odd_text(choose) for _ in range(count)]
    for name, make in {
        "days": lambda: f"2024-01-{choose.randint(1, 28):02}",
        "times": lambda: f"2024-01-01T10:00:{choose.randint(0, 59):02}Z",
        "whole": lambda: str(choose.randint(-(1 << 62), 1 << 62)),
        "padded": lambda: f"{choose.randint(0, 99):03}",
        "decimals": lambda: f"{choose.randint(0, 99)}.{choose.randint(0, 9)}0",
    }.items():
        columns[name] = [make() for _ in range(count)]
        if choose.random() < 0.5:
            columns[name][choose.randrange(count)] = odd_text(choose)
    return pa.table(columns, pa.schema([(name, pa.string()) for name in columns]))


def split(rows: pa.Table, choose: random.Random) -> Iterator[pa.Table]:
    """The rows in some pieces."""
    ends = sorted(choose.choices(range(rows.num_rows + 1), k=choose.randint(0, 4)))
    for begin, end in zip([0, *ends], [*ends, rows.num_rows], strict=True):
        yield rows.slice(begin, end - begin)


def stored_in_pieces(rows: pa.Table, file_format: str, folder: Path, choose: random.Random) -> Path:
    for number, piece in enumerate(split(rows, choose)):
        path = folder / f"{number}.{file_format}"
        folder.mkdir(exist_ok=True)
        if file_format == "json":
            stored(piece, "json", path)
        else:
            # As the columns are in any order, quotes are only where they must be.
            names = choose.sample(piece.column_names, k=piece.num_columns)
            options = pyarrow.csv.WriteOptions(quoting_style=choose.choice(["needed", "all_valid"]))
            pyarrow.csv.write_csv(piece.select(names), path, options)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("file_format", ["csv", "json"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2, 3))])
def test_generated_texts_come_back(
    file_format: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table of texts as they were given; in a new one, where CSV may have other types, with the same values."""
    choose = random.Random(f"{file_format} {seed}")
    rows = odd_rows(choose, choose.randint(20, 200))
    # Many small pieces, as those of a large file.
    monkeypatch.setattr(input_formats, "_CHUNK", choose.randint(100, 5000))
    monkeypatch.setattr(input_formats, "_LONGEST_ROW", 1 << 17)
    folder = stored_in_pieces(rows, file_format, tmp_path / "new", choose)
    one_partition = {**NEW, "datasource__write__partitionpath__field": "day"}
    expected = rows.sort_by("id").to_pylist()

    old = tmp_path / "old"
    create(old, ordering=None).insert(rows.slice(0, 1).set_column(0, "id", pa.array(["\x00first"])))
    write(old, folder, operation="bulk_insert")
    assert [one for one in rows_of(old) if one["id"] != "\x00first"] == expected
    write(old, folder, operation="delete")
    assert [one["id"] for one in rows_of(old)] == ["\x00first"]

    write(tmp_path / "made", folder, operation="bulk_insert", **one_partition)
    found, _ = both_views(tmp_path / "made")
    for name in rows.column_names:
        column = found.sort_by("id").column(name)
        same(column, rows.sort_by("id").column(name))
        if file_format == "json" or name in ("id", "day", "padded"):
            assert pa.types.is_string(column.type), name


def same(values: pa.ChunkedArray, texts: pa.ChunkedArray) -> None:
    """Check that values are those of their texts, each by its own; by code that shares nothing with the readers."""
    readers: dict[str, Callable[[str], Any]] = {
        "string": str,
        "int64": int,
        "double": float,
        "date32[day]": datetime.date.fromisoformat,
        "bool": lambda text: text.lower() == "true",
        "timestamp[us]": _moment,
        "timestamp[us, tz=UTC]": _moment,
    }
    read = readers[str(values.type)]
    for value, text in zip(values.to_pylist(), texts.to_pylist(), strict=True):
        if value is None:
            assert text in ("NULL", "null", "NA", "N/A", "") and values.type != pa.string()
        else:
            assert value == read(text) or value != value, (value, text)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text.replace("T", " ").replace("Z", "+0000"), "%Y-%m-%d %H:%M:%S%z")


def _damaged(data: bytes, choose: random.Random) -> bytes:
    changed = bytearray(data)
    if choose.random() < 0.2:
        del changed[choose.randrange(len(changed)) :]
    for _ in range(choose.choice((1, 1, 2, 5, 20))):
        place, how = choose.randrange(len(changed) + 1), choose.random()
        if how < 0.5:
            changed[place : place + 1] = bytes([choose.randrange(256)])
        elif how < 0.7:
            del changed[place : place + choose.randrange(8)]
        else:
            more = (b"\xff", b'"', b",", b"\n", b"{", b"}", b"9" * 30, b"\x00\x00", b"e400", b"null")
            changed[place:place] = choose.choice(more)
    return bytes(changed)


SAMPLE = pa.table(
    {
        "id": [f"k{n}" for n in range(40)],
        "n": list(range(40)),
        "x": [n / 4 for n in range(40)],
        "at": ["2024-01-01T00:00:00Z"] * 40,
        "text": ['ü,"\n'] * 40,
    }
)
NESTED = SAMPLE.append_column("o", pa.array([{"x": [1, None], "y": "z"}] * 40)).append_column(
    "d", pa.array(["a", "b"] * 20).dictionary_encode()
)


def samples(folder: Path) -> Sequence[tuple[str, bytes]]:
    """A file of each format, and its name."""
    made = [
        stored(SAMPLE, "csv", folder / "a.csv"),
        stored(NESTED, "json", folder / "a.json"),
        stored(NESTED, "parquet", folder / "a.parquet"),
        stored(NESTED, "arrow", folder / "a.arrow"),
        stored(NESTED, "stream", folder / "b.arrow"),
    ]
    found = [(one.name, one.read_bytes()) for one in made]
    plain = io.BytesIO()
    pq.write_table(NESTED, plain, compression="none", use_dictionary=False)
    return [*found, *((f"{name}.gz", gzip.compress(data)) for name, data in found[:2]), ("b.parquet", plain.getvalue())]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_damaged_files(seed: int, tmp_path: Path) -> None:
    """Any bytes are rows, or are refused in one sentence that names the file: there is no other error."""
    known = InputTypes(
        known={"n": pa.int32(), "x": pa.decimal128(9, 2), "at": pa.timestamp("us", "UTC"), "d": pa.binary()},
        texts=frozenset({"id"}),
    )
    refused = 0
    for name, data in samples(tmp_path):
        choose = random.Random(f"{seed} {name}")
        for _ in range(40):
            (tmp_path / name).write_bytes(_damaged(data, choose))
            try:
                values(tmp_path / name, choose.choice([None, known]))
            except ConfigError as error:
                assert name in error.message
                refused += 1
            except NothingToDo:
                pass
    assert refused > 100
