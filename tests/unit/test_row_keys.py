"""Record keys and partition paths of new rows against a model that looks at one value after the other.

Against real Hudi: tests/interop/test_row_keys.py.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hudi_services.derived_indexes.expression_index.time_functions import Zone
from hudi_services.errors import ConfigError, UnsupportedTable
from hudi_services.keygen.key_forms import shown_form
from hudi_services.keygen.key_maker import KeyMaker
from hudi_services.keygen.key_texts import UTC
from hudi_services.table_config import TableConfig
from hudi_services.versions import table_version

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICRO = timedelta(microseconds=1)
TIME = "hoodie.keygen.timebased."
KEYGEN = "org.apache.hudi.keygen."
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODE = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
INNER = pa.struct({"name": pa.string(), "deep": pa.struct({"at": pa.int16()})})
TYPES: Mapping[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.text(st.sampled_from("aé🚀 \x1f\x7f\"#%'*/:=?\\{}[]^,.-_~"), max_size=4)),
    "large": (pa.large_string(), st.text(max_size=3)),
    "coded": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["", "x", "y/z"])),
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "small": (pa.int16(), st.integers(-(1 << 15), (1 << 15) - 1)),
    "num": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "big": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "price": (
        pa.decimal128(20, 8),
        st.decimals(min_value=-(10**11), max_value=10**11, places=8) | st.just(Decimal("1E-8")),
    ),
    "cost": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "at": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(timezone.utc))),
    "clock": (pa.timestamp("us"), st.datetimes()),
    "inner": (
        INNER,
        st.fixed_dictionaries(
            {
                "name": st.none() | st.sampled_from(["", "n", "ü"]),
                "deep": st.none() | st.fixed_dictionaries({"at": st.none() | st.integers(0, 5)}),
            }
        ),
    ),
}
FIELDS = [*(name for name in TYPES if name != "inner"), "inner.name", "inner.deep.at"]
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in TYPES.items()}), max_size=5)
SCHEMA = pa.schema({name: type for name, (type, _) in TYPES.items()})


def config(
    generator: str, keys: str, partition: str = "", options: Mapping[str, str] | None = None, version: int = 9
) -> TableConfig:
    raw = {
        "hoodie.table.keygenerator.type": generator,
        "hoodie.table.recordkey.fields": keys,
        "hoodie.table.partition.fields": partition,
        **(options or {}),
    }
    return TableConfig(raw, table_version(version, "hoodie.properties"))


def maker(
    *args: Any, schema: pa.Schema = SCHEMA, sample: tuple[str, Mapping[str, Any]] | None = None, **more: Any
) -> KeyMaker:
    """`sample` is a record key that the table has, and its row."""
    of = {name: more.pop(name) for name in ("sample_path", "zone") if name in more}
    of_table = config(*args, **more)
    form = None
    if sample is not None:
        forms = KeyMaker.forms(of_table, schema, of.get("zone", UTC))
        form = shown_form(forms, pa.chunked_array([[sample[0]]]), table([sample[1]], schema))
        assert form is not None, "the row decides"
    return KeyMaker.of(of_table, schema, form, **of)


def table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """The rows in two chunks."""
    half = len(rows) // 2
    parts = [pa.Table.from_pylist(list(part), schema=schema) for part in (rows[:half], rows[half:])]
    return pa.concat_tables(parts)


def value(row: Mapping[str, Any], name: str) -> Any:
    found: Any = row
    for step in name.split("."):
        found = None if found is None else found[step]
    return found


def text(value: Any) -> str | None:
    """Java's text; timestamps in microseconds."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return str((value.replace(tzinfo=timezone.utc) - EPOCH) // MICRO)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        # Python's rules for the exponent are Java's.
        return str(value)
    return None if value is None else str(value)


def key(row: Mapping[str, Any], names: Sequence[str], *, is_named: bool) -> str | None:
    """The record key, None when the row has none."""
    texts = {name: text(value(row, name)) for name in names}
    if not any(texts.values()):
        return None
    if not is_named:
        return texts[names[0]]
    shown = {name: {None: "__null__", "": "__empty__"}.get(one, one) for name, one in texts.items()}
    return ",".join(f"{name}:{one}" for name, one in shown.items())


def path(row: Mapping[str, Any], names: Sequence[str], options: Mapping[str, str]) -> str:
    parts = []
    for name in names:
        part = text(value(row, name)) or DEFAULT
        if options.keys() & ENCODE.keys():
            part = "".join(f"%{ord(c):02X}" if c in "\"#%'*/:=?\\{[]^\x7f" or c < " " else c for c in part)
        parts.append(f"{name}={part}" if options.keys() & HIVE.keys() else part)
    return "/".join(parts)


def is_wrong(path: str) -> bool:
    names = path.split("/")
    controls = any(c < " " or c == "\x7f" for c in path)
    return controls or ":" in names[0] or not {"", ".", ".."}.isdisjoint(names) or names[0] == ".hoodie"


def exact(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with decimals of their type's scale."""
    price = row["price"]
    return {**row, "price": None if price is None else price.quantize(Decimal("1E-8"))}


ONE_FIELD = st.sampled_from(FIELDS).map(lambda name: [name])
SEVERAL = st.lists(st.sampled_from(FIELDS), min_size=2, max_size=4, unique=True)


@pytest.mark.thorough
@given(ROWS, ONE_FIELD | SEVERAL, st.sampled_from(["SIMPLE", "COMPLEX", "NON_PARTITION", "CUSTOM", ""]))
def test_record_keys(rows: list[dict[str, Any]], names: list[str], generator: str) -> None:
    assume(generator != "SIMPLE" or len(names) == 1)
    partition = {"SIMPLE": "num", "COMPLEX": "num", "CUSTOM": "num:simple"}.get(generator, "")
    made = maker(generator, ",".join(names), partition)
    true = [key(exact(row), names, is_named=generator == "COMPLEX" or len(names) > 1) for row in rows]
    if None in true:
        with pytest.raises(ConfigError, match=rf"{names[0]}.* in {true.count(None)} of {len(true)} rows"):
            made.record_keys(table(rows))
    else:
        found = made.record_keys(table(rows))
        assert found.type == pa.string()
        assert found.to_pylist() == true


@pytest.mark.thorough
@given(ROWS, st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3, unique=True), st.sampled_from([{}, HIVE]),
       st.sampled_from([{}, ENCODE]), st.sampled_from(["COMPLEX", "CUSTOM"]))  # fmt: skip
def test_partition_paths(
    rows: list[dict[str, Any]], names: list[str], hive: dict[str, str], encode: dict[str, str], generator: str
) -> None:
    options = {**hive, **encode}
    listed = ",".join(f"{name}:Simple" if generator == "CUSTOM" else name for name in names)
    made = maker(generator, "num", listed, options)
    true = [path(exact(row), names, options) for row in rows]
    if any(map(is_wrong, true)):
        with pytest.raises(ConfigError, match="partition path"):
            made.partition_paths(table(rows))
    else:
        found = made.partition_paths(table(rows))
        assert found.type == pa.dictionary(pa.int32(), pa.string())
        assert found.to_pylist() == true
        assert sorted(found.chunk(0).dictionary.to_pylist()) == sorted({*true})


def test_no_partitions() -> None:
    rows = table([{"num": 1}, {"num": 2}])
    for generator, version in (("NON_PARTITION", 9), ("", 9), (KEYGEN + "NonpartitionedKeyGenerator", 6)):
        made = maker(generator, "num", version=version)
        assert made.partition_paths(rows).to_pylist() == ["", ""]
        assert made.record_keys(rows).to_pylist() == ["1", "2"]
    assert maker("CUSTOM", "num").partition_paths(rows).to_pylist() == ["", ""]


def test_values_that_make_one_path() -> None:
    rows = table([{"text": "a/b", "large": "c"}, {"text": "a", "large": "b/c"}, {"text": None, "large": ""}])
    found = maker("COMPLEX", "num", "text,large").partition_paths(rows)
    assert found.to_pylist() == ["a/b/c", "a/b/c", f"{DEFAULT}/{DEFAULT}"]
    assert found.chunk(0).dictionary.to_pylist() == ["a/b/c", f"{DEFAULT}/{DEFAULT}"]


@pytest.mark.parametrize("name", ["SIMPLE_AVRO", KEYGEN + "SimpleKeyGenerator", KEYGEN + "SimpleAvroKeyGenerator"])
def test_names_of_generators(name: str) -> None:
    assert maker(name, "text", "num").record_keys(table([{"text": "é"}])).to_pylist() == ["é"]


@pytest.mark.parametrize(
    ("key", "of", "true"),
    [
        (None, None, "text:a"),
        ("text:b", "b", "text:a"),
        ("b", "b", "a"),
        ("b:text:", "b:text:", "a"),
        # Values that look like keys.
        ("text:b", "text:b", "a"),
        ("text:text:b", "text:b", "text:a"),
    ],
)
def test_complex_keys_of_one_field(key: str | None, of: str | None, true: str) -> None:
    made = maker("COMPLEX", "text", "num", sample=None if key is None else (key, {"text": of}))
    assert made.record_keys(table([{"text": "a"}])).to_pylist() == [true]


@pytest.mark.thorough
@given(ROWS, st.sampled_from(FIELDS), st.booleans())
def test_the_form_of_a_key_is_that_of_its_row(rows: list[dict[str, Any]], name: str, is_named: bool) -> None:
    """Of every type; rows without a value decide nothing."""
    forms = KeyMaker.forms(config("COMPLEX", name, "num", version=6), SCHEMA)
    true = [key(exact(row), [name], is_named=is_named) for row in rows]
    found = shown_form(forms, pa.chunked_array([pa.array(true, pa.string())]), table(rows))
    if {*true} == {None} or not true:
        assert found is None
    else:
        assert found is not None and (found.is_named, found.times) == (is_named, None)


def test_keys_that_show_no_form() -> None:
    forms = KeyMaker.forms(config("COMPLEX", "text", "num"), SCHEMA)
    rows = table([{"text": "a"}, {"text": "b"}, {"text": None}])

    def shown(*keys: str | None) -> bool | None:
        found = shown_form(forms, pa.chunked_array([pa.array(keys, pa.string())]), rows)
        return None if found is None else found.is_named

    assert shown("x", "text:x", "text:") is shown(None, None, None) is None
    assert shown("x", "b", "a") is False and shown("text:a", "a", None) is True
    with pytest.raises(UnsupportedTable, match=r"record keys of text in two forms, as 'text:b' and 'a',"):
        shown("a", "text:b", None)


def test_a_value_that_looks_like_a_time_of_a_key() -> None:
    """The key of several fields has the text of a time, and before it a text with microseconds."""
    row = {"text": "x,at:5", "at": datetime(2024, 1, 2, tzinfo=timezone.utc)}
    made = maker("COMPLEX", "text,at", "num", sample=("text:x,at:5,at:2024-01-02 00:00:00.0", row))
    assert made.record_keys(table([{**row, "text": "y"}])).to_pylist() == ["text:y,at:2024-01-02 00:00:00.0"]


def test_times_that_are_not_shown_do_not_decide() -> None:
    early, late = datetime(1500, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 2, tzinfo=timezone.utc)
    forms = KeyMaker.forms(config("SIMPLE", "at", "num"), SCHEMA)
    keys = pa.chunked_array([["1500-01-01 00:00:00.0", "2024-01-02 00:00:00.0"]])
    found = shown_form(forms, keys, table([{"at": early}, {"at": late}]))
    assert found is not None and found.times is not None
    assert shown_form(forms, keys[:1], table([{"at": early}])) is None


@pytest.mark.thorough
@given(st.datetimes(datetime(1970, 1, 1) - timedelta(days=25_000), datetime(2037, 1, 1)))
def test_times_as_texts(moment: datetime) -> None:
    rows = table([{"at": moment.replace(tzinfo=timezone.utc), "num": 1, "clock": moment}])
    micros = (moment.replace(tzinfo=timezone.utc) - EPOCH) // MICRO
    millis = abs(micros) // 1000 * (1 if micros >= 0 else -1)
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        shown = (EPOCH + timedelta(milliseconds=millis)).astimezone(ZoneInfo(zone))
        fraction = f"{shown.microsecond // 1000:03d}".rstrip("0") or "0"
        true = f"{shown:%Y-%m-%d %H:%M:%S}.{fraction}".zfill(21)
        for_texts = {"zone": Zone.parse(zone), "options": ENCODE}
        known = datetime(2024, 1, 2, 3, 4, 5, 120_000, tzinfo=ZoneInfo(zone))
        sample = ("2024-01-02 03:04:05.12", {"at": known})
        made = maker("SIMPLE", "at", "clock", sample=sample, sample_path=DEFAULT, **for_texts)
        assert made.record_keys(rows).to_pylist() == [true]
        assert made.partition_paths(rows).to_pylist() == [true.replace(":", "%3A")]
        sample = (f"num:__null__,at:{sample[0]}", {"at": known})
        made = maker("COMPLEX", "num,at", "at", sample=sample, **for_texts)
        assert made.record_keys(rows).to_pylist() == [f"num:1,at:{true}"]
        made = maker("SIMPLE", "num", "at", sample_path="2024-01-02 03%3A04%3A05.0", **for_texts)
        assert made.partition_paths(rows).to_pylist() == [true.replace(":", "%3A")]
    made = maker("SIMPLE", "at", "at", sample=("-5", {"at": EPOCH - 5 * MICRO}))
    assert made.record_keys(rows).to_pylist() == made.partition_paths(rows).to_pylist() == [str(micros)]


def test_the_sample_of_a_path_has_other_parts() -> None:
    rows = table([{"num": 1, "text": "a", "at": EPOCH}])
    path = "text=2%2F2/at=2024-01-02 03%3A04%3A05.0"
    sample = ("num:1", {"num": 1})
    made = maker("COMPLEX", "num", "text,at", HIVE | ENCODE, sample=sample, sample_path=path)
    assert made.partition_paths(rows).to_pylist() == ["text=a/at=1970-01-01 00%3A00%3A00.0"]


UNITS = {
    "NANOSECONDS": -1000, "MICROSECONDS": 1, "MILLISECONDS": 1000, "SECONDS": 10**6, "MINUTES": 60 * 10**6,
    "HOURS": 3600 * 10**6, "DAYS": 86_400 * 10**6,
}  # fmt: skip
PATTERNS = {"yyyy/MM/dd": "%Y/%m/%d", "yyyyMMddHH": "%Y%m%d%H", "yyyy'at'HH-mm-ss": "%Yat%H-%M-%S", "MM": "%m"}


@pytest.mark.thorough
@given(
    st.lists(st.none() | st.datetimes(datetime(1901, 1, 1), datetime(2037, 1, 1)), min_size=1, max_size=5),
    st.sampled_from(["EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "UNIX_TIMESTAMP", *UNITS]),
    st.sampled_from(list(PATTERNS)),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
    st.sampled_from(["timezone", "output.timezone", ""]),
    st.sampled_from([pa.int64(), pa.decimal128(30, 3), pa.timestamp("us", "UTC")]),
)
def test_times_of_numbers(
    moments: list[datetime | None], kind: str, pattern: str, zone: str, zone_key: str, type: pa.DataType
) -> None:
    unit = {"EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS", "UNIX_TIMESTAMP": "SECONDS"}
    scale = UNITS[unit.get(kind, kind)]
    options = {TIME + "timestamp.type": kind} if kind in unit else {TIME + "timestamp.type": "SCALAR"}
    options |= {} if kind in unit else {TIME + "timestamp.scalar.time.unit": kind.lower()}
    options |= {TIME + "output.dateformat": pattern, **({TIME + zone_key: zone} if zone_key else {})}
    micros = [None if one is None else (one.replace(tzinfo=timezone.utc) - EPOCH) // MICRO for one in moments]
    numbers = [None if one is None else (one * 1000 if scale < 0 else one // scale) for one in micros]
    given: list[Any] = [None if one is None else Decimal(one) for one in numbers] if "decimal" in str(type) else numbers
    true = []
    for one in numbers:
        number = 1 if one is None else one
        exact = abs(number) // 1_000_000 if scale < 0 else abs(number) * scale // 1000
        shown = (EPOCH + timedelta(milliseconds=exact if number >= 0 else -exact)).astimezone(ZoneInfo(zone))
        true.append(shown.strftime(PATTERNS[pattern]))
    schema = pa.schema({"id": pa.string(), "t": type})
    rows = pa.table({"id": pa.nulls(len(given), pa.string()), "t": pa.array(given, type)})
    made = maker("TIMESTAMP", "id", "t", options, schema=schema, zone=Zone.parse(zone))
    assert made.partition_paths(rows).to_pylist() == true
    old = {key.replace(TIME, "hoodie.deltastreamer.keygen.timebased."): text for key, text in options.items()}
    made = maker("CUSTOM", "id", "t:timestamp,t:TIMESTAMP", HIVE | old, schema=schema, zone=Zone.parse(zone))
    assert made.partition_paths(rows).to_pylist() == [f"t={one}/t={one}" for one in true]


def test_times_of_dates() -> None:
    options = {TIME + "timestamp.type": "SCALAR", TIME + "output.dateformat": "yyyy-MM-dd"}
    rows = table([{"day": date(1999, 12, 31)}, {"day": None}])
    assert maker("TIMESTAMP", "num", "day", options).partition_paths(rows).to_pylist() == ["1970-01-01"] * 2
    options[TIME + "timestamp.scalar.time.unit"] = "DAYS"
    made = maker("TIMESTAMP", "num", "day", options)
    assert made.partition_paths(rows).to_pylist() == ["1999-12-31", "1970-01-02"]


@given(
    st.lists(st.none() | st.datetimes(datetime(1952, 1, 1), datetime(2037, 1, 1)), min_size=1, max_size=5),
    st.sampled_from(["", "UTC", "Asia/Kolkata", "GMT-3"]),
    st.sampled_from(["", "UTC", "Asia/Tokyo", "GMT+05:30"]),
    st.sampled_from(["", "+0000", "-0330", "+01:00", "Z"]),
)
def test_times_of_strings(moments: list[datetime | None], read: str, shown: str, offset: str) -> None:
    options = {
        TIME + "timestamp.type": "DATE_STRING",
        TIME + "input.dateformat": "dd.MM.yyyy | yyyy-MM-dd'T'HH:mm:ss.SSS" + ("Z" if offset else ""),
        TIME + "input.dateformat.list.delimiter.regex": r" \| ",
        TIME + "output.dateformat": "yyyyMMddHHmmss",
        **({TIME + "input.timezone": read} if read else {}),
        TIME + "output.timezone": shown,
    }
    offsets = {"": None, "UTC": 0, "Asia/Kolkata": 330, "GMT-3": -180, "Asia/Tokyo": 540, "GMT+05:30": 330}
    minutes = {"": None, "+0000": 0, "-0330": -210, "+01:00": 60, "Z": 0}[offset]
    strings, true = [], []
    for i, one in enumerate(moments):
        source, target = offsets[read], offsets[shown]
        if one is None:
            # The first pattern is without an offset: the day of the first millisecond, in the zone of either side.
            own = offsets[read or shown] or 0
            first = datetime(1970, 1, 1) + timedelta(minutes=own)
            clock, at = datetime(first.year, first.month, first.day), source
        elif i % 2:
            clock, at = one.replace(hour=0, minute=0, second=0, microsecond=0), source
        else:
            clock, at = one, source if minutes is None else minutes
        strings.append(None if one is None else one.strftime("%d.%m.%Y") if i % 2 else _iso(one) + offset)
        to = target if target is not None else source
        read_at = at if at is not None else 0
        true.append(f"{clock if to is None else clock + timedelta(minutes=to - read_at):%Y%m%d%H%M%S}")
    rows = table([{"text": one} for one in strings])
    assert maker("TIMESTAMP", "num", "text", options).partition_paths(rows).to_pylist() == true


def _iso(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}"


def test_slashes() -> None:
    rows = table([{"day": date(2024, 1, 2)}, {"day": None}])
    said = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    shown = {"hoodie.table.partition_extractor_class": "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"}
    for options in (said, shown):
        found = maker("SIMPLE", "num", "day", options).partition_paths(rows)
        assert found.to_pylist() == ["2024/01/02", DEFAULT]
    found = maker("SIMPLE", "num", "day", shown, sample_path="2023-01-01").partition_paths(rows)
    assert found.to_pylist() == ["2024-01-02", DEFAULT]
    found = maker("COMPLEX", "num", "day,day", said).partition_paths(rows)
    assert found.to_pylist() == ["2024-01-02/2024-01-02", f"{DEFAULT}/{DEFAULT}"]
    with pytest.raises(ConfigError, match="/5"):
        maker("SIMPLE", "num", "num", said).partition_paths(table([{"num": -5}]))


def test_no_rows() -> None:
    made = maker("COMPLEX", "num,text", "text,num", ENCODE)
    for rows in (SCHEMA.empty_table(), pa.table([pa.chunked_array([], one.type) for one in SCHEMA], schema=SCHEMA)):
        assert made.record_keys(rows).to_pylist() == made.partition_paths(rows).to_pylist() == []


def test_keys_of_several_fields_need_one_value() -> None:
    rows = table([{"num": None, "text": ""}, {"num": 1}, {"text": ""}])
    with pytest.raises(ConfigError, match="num,text is null or empty in 2 of 3 rows"):
        maker("COMPLEX", "num,text", "num").record_keys(rows)


_MILLIS = {TIME + "timestamp.type": "EPOCHMILLISECONDS", TIME + "output.dateformat": "yyyy"}
_STRINGS = {**_MILLIS, TIME + "timestamp.type": "MIXED", TIME + "input.dateformat": "yyyy-MM"}
_AGES = {**_MILLIS, TIME + "timestamp.type": "SCALAR", TIME + "timestamp.scalar.time.unit": "AGES"}
_OTHERS = pa.schema(
    {
        "f": pa.float32(),
        "d": pa.float64(),
        "b": pa.binary(),
        "l": pa.list_(pa.int8()),
        "s": INNER,
        "n": pa.timestamp("ns"),
        "i": pa.int64(),
        "t": pa.string(),
        "u": pa.uint32(),
    }
)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("USER_PROVIDED", "i", "t"), "USER_PROVIDED"),
        (("GLOBAL_DELETE", "i", "t"), "GLOBAL_DELETE"),
        (("com.example.Own", "i", "t"), "com.example.Own"),
        (("SIMPLE", "", "t"), "no record key fields"),
        (("SIMPLE", "i,t", "t"), "one record key field"),
        (("SIMPLE", "i", "t,i"), "one partition field"),
        (("SIMPLE", "x", "t"), "record key field x is not a column"),
        (("SIMPLE", "i", "s.x"), "partition field s.x is not a column"),
        (("SIMPLE", "i", "i.x"), "partition field i.x is not a column"),
        *((("SIMPLE", name, "t"), f"record key field {name} has the type") for name in "fdblsnu"),
        *((("SIMPLE", "i", name), f"partition field {name} has the type") for name in "fdblsnu"),
        (("CUSTOM", "i", "t"), "says how t makes"),
        (("CUSTOM", "i", "t:SIMPLE,i"), "says how i makes"),
        (("CUSTOM", "i", "t:OTHER"), "says how t:OTHER makes"),
        (("CUSTOM", "i", "i:TIMESTAMP"), "timestamp.type"),
        (("TIMESTAMP", "i", "i", {**_MILLIS, TIME + "timestamp.type": "AGES"}), "type=AGES"),
        (("TIMESTAMP", "i", "i", {**_MILLIS, TIME + "output.dateformat": ""}), "output.dateformat"),
        (("TIMESTAMP", "i", "i", {**_MILLIS, TIME + "output.dateformat": "yyyy-ww"}), "yyyy-ww"),
        (("TIMESTAMP", "i", "i", {**_MILLIS, TIME + "timezone": "+08:00"}), "time zone"),
        (("TIMESTAMP", "i", "i", {**_MILLIS, TIME + "timezone": "UTC+8"}), "time zone"),
        (("TIMESTAMP", "i", "i", {**_MILLIS, TIME + "timezone": "No/Where"}), "time zone"),
        (("TIMESTAMP", "i", "t", _MILLIS), "does not read as EPOCHMILLISECONDS"),
        (("TIMESTAMP", "i", "i", _STRINGS), "does not read as MIXED"),
        (("TIMESTAMP", "i", "t", {**_STRINGS, TIME + "input.dateformat": ""}), "input.dateformat"),
        (("TIMESTAMP", "i", "t", {**_STRINGS, TIME + "input.dateformat": "yy-MM"}), "yy-MM"),
        (("TIMESTAMP", "i", "t", {**_STRINGS, TIME + "input.dateformat": "MM-dd"}), "MM-dd"),
        (("TIMESTAMP", "i", "t", {**_STRINGS, TIME + "input.dateformat.list.delimiter.regex": "("}), "regex"),
        (("TIMESTAMP", "i", "i", _AGES), "unit=AGES"),
        (("SIMPLE", "i", "t", {**HIVE, "hoodie.datasource.write.slash.separated.date.partitioning": "true"}), "hive"),
    ],
)
def test_tables_that_are_refused(args: tuple[Any, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        maker(*args, schema=_OTHERS)
    assert "\n" not in error.value.message


def test_a_colon_after_the_first_part_of_a_path_is_one_that_hudi_writes() -> None:
    rows = table([{"num": 1, "text": "2024-01-02 10:00"}])
    assert maker("COMPLEX", "num", "num,text").partition_paths(rows).to_pylist() == ["1/2024-01-02 10:00"]
    formats = {TIME + "timestamp.type": "EPOCHMILLISECONDS", TIME + "output.dateformat": "yyyy/MM/dd HH:mm"}
    found = maker("TIMESTAMP", "num", "big", formats).partition_paths(table([{"big": 36_000_000}]))
    assert found.to_pylist() == ["1970/01/01 10:00"]
    with pytest.raises(
        ConfigError, match="'a:b/1' by text,num, and Apache Hudi writes no path with a colon in its first"
    ):
        maker("COMPLEX", "num", "text,num").partition_paths(table([{"num": 1, "text": "a:b"}]))


def test_times_after_the_first_part_are_in_the_form_of_the_table() -> None:
    """Not encoded, either: hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled=true."""
    rows = table([{"num": 1, "at": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)}])
    sample = "7/2024-01-02 03:04:05.0"
    assert KeyMaker.needs_path(config("COMPLEX", "num", "num,at"), SCHEMA)
    assert not KeyMaker.needs_path(config("SIMPLE", "num", "at"), SCHEMA)
    shown = maker("COMPLEX", "num", "num,at", sample_path=sample).partition_paths(rows)
    assert shown.to_pylist() == ["1/2024-01-02 03:04:05.0"]
    counted = maker("COMPLEX", "num", "num,at", sample_path="7/1704164645000000").partition_paths(rows)
    assert counted.to_pylist() == ["1/1704164645000000"]


def test_a_path_of_no_form() -> None:
    with pytest.raises(UnsupportedTable, match="neither microseconds"):
        maker("SIMPLE", "at", "at", ENCODE, sample_path="x")


def test_a_path_that_shows_nothing() -> None:
    with pytest.raises(UnsupportedTable, match="no partition path shows"):
        maker("SIMPLE", "num", "at", ENCODE, sample_path=DEFAULT)


@pytest.mark.parametrize(
    ("args", "row", "told"),
    [
        (("SIMPLE", "num", "text"), {"text": ".."}, "no place in the table"),
        (("SIMPLE", "num", "text"), {"text": "/a"}, "no place in the table"),
        (("SIMPLE", "num", "text"), {"text": "a/"}, "no place in the table"),
        (("SIMPLE", "num", "text"), {"text": ".hoodie/x"}, "no place in the table"),
        (("SIMPLE", "num", "text"), {"text": "a\0"}, "no place in the table"),
        (("SIMPLE", "num", "text"), {"text": "a:b"}, "colon"),
        (("TIMESTAMP", "num", "big", _MILLIS), {"big": 1 << 62}, "big has values"),
        (("TIMESTAMP", "num", "big", _MILLIS), {"big": -(1 << 46)}, "big"),
        (("TIMESTAMP", "num", "text", _STRINGS), {"text": "2024-1"}, "2024-1"),
        (("TIMESTAMP", "num", "text", _STRINGS), {"text": ""}, "text has 1 values"),
        (("TIMESTAMP", "num", "text", _STRINGS), {"text": "2024-13"}, "no times"),
    ],
)
def test_values_that_are_refused(args: tuple[Any, ...], row: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        maker(*args).partition_paths(table([{"text": "2024-01"}, row]))


def test_times_that_java_shows_in_another_way() -> None:
    early = table([{"at": datetime(1500, 1, 1)}])
    with pytest.raises(UnsupportedTable, match="at: there are times before 1582"):
        known = ("2024-01-02 03:04:05.0", {"at": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)})
        maker("SIMPLE", "at", "num", sample=known).record_keys(early)
    late = pa.table({"day": pa.array([3_000_000], pa.int32()).cast(pa.date32()), "num": [1]})
    with pytest.raises(UnsupportedTable, match="day has dates"):
        maker("SIMPLE", "day", "num", schema=late.schema).record_keys(late)
    with pytest.raises(UnsupportedTable, match="day has dates"):
        maker("SIMPLE", "num", "day", schema=late.schema).partition_paths(late)
