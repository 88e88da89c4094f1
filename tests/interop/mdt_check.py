"""The metadata table as real Hudi reads it, against a recomputation from the files that are there.

`check_metadata` compares the files partition with a listing, column stats with the parquet footers (pyarrow's reading
of them), and partition stats with the union of the column stats. It returns sentences; none means that all is well.
"""

import math
import struct
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from .peer import Peer, has_partitioned_index, index_definitions, table_properties

_PARTITION_FILE = ".hoodie_partition_metadata"
_RECORD = "org.apache.hudi.avro.model."
# typeOrdinal of a version 9 value -> the wrapper that holds it (metadata table format, column stats values).
_WRAPPER_OF_ORDINAL = {
    2: "BooleanWrapper",
    3: "IntWrapper",
    4: "LongWrapper",
    5: "FloatWrapper",
    6: "DoubleWrapper",
    7: "StringWrapper",
    8: "BytesWrapper",
    9: "BytesWrapper",
    10: "BytesWrapper",
    12: "IntWrapper",
    15: "LongWrapper",
    16: "LongWrapper",
    18: "LongWrapper",
    19: "LongWrapper",
}
_DECIMAL = 10
_BLOOM = b"org.apache.hudi.bloomfilter"
_Key = TypeVar("_Key", str, tuple[str, str], tuple[str | None, str])
_Group = TypeVar("_Group", str, str | None)


@dataclass(frozen=True)
class Stats:
    """One stats record, or what it should be; `wrapper` and `ordinal` say how the values are typed ("" and 0: unknown).

    `unsure`: the footer has no usable range (INT96, or a NaN among the values), so that a record may say anything.
    """

    low: Any
    high: Any
    values: int
    nulls: int
    size: int
    uncompressed: int
    wrapper: str = ""
    ordinal: int = 0
    unsure: bool = False
    millis: bool = False
    """Times in milliseconds: without a type, our records hold them in microseconds, too."""

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return (self.values, self.nulls, self.size, self.uncompressed)


class Footer:
    """Column statistics of one base file, recomputed from its parquet footer."""

    def __init__(self, path: Path) -> None:
        self._metadata = pq.read_metadata(path)

    @cached_property
    def columns(self) -> dict[str, Stats]:
        """By name, for the columns that are no struct, list or map. A range that the footer lacks is None.

        Without rows there are no row groups, and Hudi records no statistics.
        """
        if not self._metadata.num_row_groups:
            return {}
        names = self._metadata.schema.to_arrow_schema().names
        return {name: self._stats(i) for i, name in self._leaves() if name in names}

    def _leaves(self) -> Iterator[tuple[int, str]]:
        schema = self._metadata.schema
        return ((i, schema.column(i).path) for i in range(len(schema)))

    def _stats(self, index: int) -> Stats:
        groups = [self._metadata.row_group(g) for g in range(self._metadata.num_row_groups)]
        chunks = [g.column(index) for g in groups]
        known = [c.statistics for c in chunks if c.statistics is not None]
        ranges = [s for s in known if s.has_min_max]
        kind = self._metadata.schema.to_arrow_schema().types[self._position(index)]
        lows, highs = ([_plain(getattr(s, side), kind) for s in ranges] for side in ("min_raw", "max_raw"))
        rows, nulls = sum(g.num_rows for g in groups), sum(s.null_count or 0 for s in known)
        bare = any(
            c.num_values > (c.statistics.null_count or 0 if c.statistics else 0) for c in chunks if not _ranged(c)
        )
        return Stats(
            min(lows, default=None),
            max(highs, default=None),
            rows,
            nulls,
            sum(c.total_compressed_size for c in chunks),
            sum(c.total_uncompressed_size for c in chunks),
            unsure=bare or any(_is_nan(v) for v in lows + highs),
            millis=pa.types.is_timestamp(kind) and kind.unit == "ms",
        )

    def _position(self, index: int) -> int:
        name = self._metadata.schema.column(index).path
        return int(self._metadata.schema.to_arrow_schema().get_field_index(name))


def _ranged(chunk: Any) -> bool:
    return chunk.statistics is not None and bool(chunk.statistics.has_min_max)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _plain(raw: Any, kind: pa.DataType) -> Any:
    """A physical value of parquet as numbers count them: decimals unscaled, dates as days, times in file units."""
    if pa.types.is_decimal(kind):
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return Decimal(unscaled).scaleb(-kind.scale)
    if pa.types.is_string(kind):
        return raw.decode() if isinstance(raw, bytes) else raw
    return raw


def check_metadata(peer: Peer, path: Path) -> list[str]:
    """What is wrong with the metadata table of the table at `path`, which no one is writing to."""
    properties = table_properties(path)
    on = {p for p in properties.get("hoodie.table.metadata.partitions", "").split(",") if p}
    if "files" not in on:
        return [f"partitions {sorted(on)} without files"] if on else []
    indexed = _indexed_columns(path)
    partitions = ("column_stats", "partition_stats", "bloom_filters")
    listing = {partition: dict(_data_files(path / partition)) for partition in _partitions(path)}
    bases = [path / p / name for p, names in listing.items() for name in names if name.endswith(".parquet")]
    locations = _locations(path, bases) if "record_index" in on else []
    pairs = {index: _pairs(path, index, bases) for index in sorted(on) if index.startswith("secondary_index_")}
    found = peer.metadata(
        path,
        {name: indexed for name in partitions if name in on},
        keys=_grouped((one.asked, one.key) for one in locations),
        values=_grouped((index, value) for index, some in pairs.items() for _, value, _ in some),
    )
    problems = _compare_files(found["files"], listing)
    if problems or "column_stats" not in on:
        return problems
    footers = {file.name: Footer(file) for file in bases}
    names = set(found["live"])
    live = {partition: sorted(names & files.keys()) for partition, files in listing.items()}
    # An index that was upgraded with its table stays as it was.
    typed = index_definitions(path).get("column_stats", {}).get("version") == "V2"
    problems = _compare_column_stats(found, footers, indexed, typed=typed)
    if "partition_stats" in on:
        problems += _compare_partition_stats(found, footers, live, indexed)
    if "bloom_filters" in on:
        problems += _compare_blooms(found["blooms"], bases)
    if "record_index" in on:
        problems += _compare_locations(found["locations"], locations, names)
    for index, some in pairs.items():
        problems += _compare_secondary(index, found["secondary"][index], some, names)
    return problems


def _grouped(pairs: Iterable[tuple[_Group, str]]) -> dict[_Group, list[str]]:
    """The different values of each group, in order."""
    found: dict[_Group, set[str]] = defaultdict(set)
    for group, value in pairs:
        found[group].add(value)
    return {group: sorted(values) for group, values in found.items()}


def _partitions(path: Path) -> list[str]:
    folders = (
        f.parent.relative_to(path) for f in path.rglob(_PARTITION_FILE) if ".hoodie" not in f.relative_to(path).parts
    )
    return ["" if str(f) == "." else str(f) for f in folders]


def _data_files(folder: Path) -> Iterator[tuple[str, int]]:
    for file in folder.iterdir():
        if file.is_file() and file.name != _PARTITION_FILE and not file.name.endswith(".crc"):
            yield file.name, file.stat().st_size


def _compare_files(found: Mapping[str, Mapping[str, int]], listing: Mapping[str, Mapping[str, int]]) -> list[str]:
    problems = [f"partition {p!r} is {where}" for p, where in _one_sided(found, listing)]
    for partition in found.keys() & listing.keys():
        there, real = found[partition], listing[partition]
        problems += [f"{partition}/{name} is {where}" for name, where in _one_sided(there, real)]
        problems += [
            f"{partition}/{name} has {real[name]} bytes, the metadata table says {there[name]}"
            for name in there.keys() & real.keys()
            if there[name] != real[name]
        ]
    return problems


def _one_sided(found: Iterable[_Key], listing: Iterable[_Key]) -> Iterator[tuple[_Key, str]]:
    left, right = set(found), set(listing)
    yield from ((key, "in the metadata table only") for key in sorted(left - right))
    yield from ((key, "on storage only") for key in sorted(right - left))


def _indexed_columns(path: Path) -> list[str]:
    """The columns of the index definition; version 6 has none, there every column of a supported type is indexed."""
    known = index_definitions(path)
    if known:
        return list(known["column_stats"]["sourceFields"]) if "column_stats" in known else []
    names: dict[str, None] = {}
    for file in path.rglob("*.parquet"):
        names |= dict.fromkeys(Footer(file).columns)
    return list(names)


def _compare_column_stats(
    found: Mapping[str, Any], footers: Mapping[str, Footer], indexed: list[str], *, typed: bool
) -> list[str]:
    scanned = {(_value(r["fileName"]), _value(r["columnName"])): _read(r) for r in found["column_stats"]}
    looked_up = {(name, column) for name, column in found["looked_up"]}
    asked = set(found["asked"])
    wanted = {(name, c): f.columns[c] for name, f in footers.items() for c in indexed if c in f.columns}
    # A column without a range in the footer may be left out: a record without one would hide the file from filters.
    needed = {key: stats for key, stats in wanted.items() if not stats.unsure or key in scanned}
    problems = [f"column stats of {n}:{c} are {where}" for (n, c), where in _one_sided(scanned, needed)]
    problems += [f"column stats of {n}:{c} are not found by key" for n, c in scanned.keys() - looked_up if c in asked]
    if scanned and not looked_up:
        problems.append("no column stats are found by key")
    for key in scanned.keys() & wanted.keys():
        problems += [f"column stats of {key[0]}:{key[1]}: {p}" for p in _differences(scanned[key], wanted[key], typed)]
    return problems


def _differences(there: Stats, wanted: Stats, typed: bool) -> Iterator[str]:
    if there.numbers != wanted.numbers:
        yield f"counts and sizes {there.numbers}, the footer says {wanted.numbers}"
    for side, value, truth in (("min", there.low, wanted.low), ("max", there.high, wanted.high)):
        in_micros = wanted.millis and not typed and value == (min if side == "min" else max)(truth, truth * 1000)
        is_right = wanted.unsure or in_micros or _equal(value, truth) or _holds_in_both_orders(value, truth, side)
        if not is_right:
            yield f"{side} {value!r}, the footer says {truth!r}"
    if typed and there.wrapper and _WRAPPER_OF_ORDINAL.get(there.ordinal) != there.wrapper:
        yield f"type {there.ordinal} in a {there.wrapper}"
    if not typed and there.ordinal:
        yield f"a value type in a table version that has none: {there.ordinal}"


def _equal(there: Any, wanted: Any) -> bool:
    return type(there) is type(wanted) and bool(there == wanted)


def _holds_in_both_orders(there: Any, wanted: Any, side: str) -> bool:
    """Whether a bound that is no value is one of ours: cut off before a character that Java orders otherwise than
    Spark does, and, as a maximum, raised."""
    if not isinstance(there, str) or not isinstance(wanted, str) or max(wanted, default="") < "\ue000":
        return False
    if side == "min":
        return wanted.startswith(there) and "\ue000" <= wanted[len(there)] <= "\uffff"
    kept = len(there) - 1
    raised = wanted.startswith(there[:kept]) and ord(there[kept]) in (ord(wanted[kept]) + 1, 0xE000)
    return raised and wanted[kept + 1 :].lstrip("\uffff") > "\uffff"


def _compare_partition_stats(
    found: Mapping[str, Any], footers: Mapping[str, Footer], live: Mapping[str, list[str]], indexed: list[str]
) -> list[str]:
    """A partition's range must hold the ranges of its live files: a narrower one makes filtered reads lose rows."""
    scanned = {(_value(r["fileName"]), _value(r["columnName"])): _read(r) for r in found["partition_stats"]}
    wanted: dict[tuple[str, str], list[Stats]] = defaultdict(list)
    for partition, names in live.items():
        for name in names:
            for column in indexed:
                if column in footers[name].columns:
                    wanted[partition, column].append(footers[name].columns[column])
    problems = [f"partition stats of {p}:{c} are missing" for p, c in wanted.keys() - scanned.keys()]
    for key in scanned.keys() & wanted.keys():
        # Java orders byte arrays by signed bytes, parquet by unsigned ones: nobody can tell which range is right.
        sure = [s for s in wanted[key] if s.low is not None and not s.unsure and not isinstance(s.low, bytes)]
        lows, highs = [s.low for s in sure], [s.high for s in sure]
        there = scanned[key]
        if lows and (there.low is None or there.low > min(lows) or there.high < max(highs)):
            problems.append(
                f"partition stats of {key[0]}:{key[1]} hold {there.low!r} to {there.high!r},"
                f" its files {min(lows)!r} to {max(highs)!r}"
            )
    return problems


def _compare_blooms(found: Mapping[str, str], files: Iterable[Path]) -> list[str]:
    footers = {file.name: pq.read_metadata(file).metadata or {} for file in files}
    wanted = {name: notes[_BLOOM].decode() for name, notes in footers.items() if _BLOOM in notes}
    problems = [f"the bloom filter of {name} is {where}" for name, where in _one_sided(found, wanted)]
    return problems + [f"the bloom filter of {n} is another" for n in found.keys() & wanted if found[n] != wanted[n]]


class _Location(NamedTuple):
    """A key of a base file, and where that is; `asked` is the partition whose index has it, None for one of all."""

    asked: str | None
    key: str
    partition: str
    file: str


def _locations(path: Path, files: Iterable[Path]) -> list[_Location]:
    of_partitions = has_partitioned_index(path)
    found = []
    for file in files:
        folder = str(file.parent.relative_to(path))
        partition = "" if folder == "." else folder
        keys = pq.read_table(file, columns=["_hoodie_record_key"], partitioning=None)["_hoodie_record_key"]
        asked = partition if of_partitions else None
        found += [_Location(asked, key, partition, file.name) for key in keys.to_pylist()]
    return found


def _compare_locations(
    by_partition: Iterable[tuple[str | None, Mapping[str, Sequence[str]]]],
    stored: Iterable[_Location],
    live: Container[str],
) -> list[str]:
    """Every key of a live file is found where it is, and no key that only older files have is found at all.

    Each partition has keys of its own when the index is partitioned.
    """
    wanted = {(one.asked, one.key): (one.partition, one.file.split("_")[0]) for one in stored if one.file in live}
    found = {(asked, key): tuple(at[:2]) for asked, some in by_partition for key, at in some.items()}
    problems = [f"the key {key} is {where}" for key, where in _one_sided(found, wanted)]
    return problems + [f"the key {k} is found in {found[k]}" for k in found.keys() & wanted if found[k] != wanted[k]]


def _pairs(path: Path, index: str, files: Iterable[Path]) -> list[tuple[str, str, str]]:
    """File name, secondary key and record key of each row."""
    (column,) = index_definitions(path)[index]["sourceFields"]
    found = []
    for file in files:
        rows = pq.read_table(file, columns=[column, "_hoodie_record_key"], partitioning=None)
        pairs = zip(*(rows[name].to_pylist() for name in (column, "_hoodie_record_key")), strict=True)
        found += [(file.name, value if value is None else str(value), key) for value, key in pairs]
    return found


def _compare_secondary(
    index: str, found: Iterable[Sequence[str]], stored: Iterable[tuple[str, str, str]], live: Container[str]
) -> list[str]:
    """Every value of a live file leads to its record keys, and no value of an older file to those that had it."""
    wanted = {(value, key) for file, value, key in stored if file in live}
    there = {(value, key) for value, key in found}
    return [f"{index}: {pair} is {where}" for pair, where in _one_sided(there, wanted)]


def _read(record: Mapping[str, Any]) -> Stats:
    """A record in Avro's JSON form."""
    kind = record.get("valueType")
    info = _value(kind) if kind else {"typeOrdinal": 0, "additionalInfo": None}
    wrappers = {w for side in ("minValue", "maxValue") for w in (record[side] or ())}
    assert len(wrappers) < 2, f"min and max are of different types: {record}"
    low, high = (_unwrap(record[side], info) for side in ("minValue", "maxValue"))
    names = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    values, nulls, size, uncompressed = (_value(record[name]) for name in names)
    wrapper = next(iter(wrappers), "").removeprefix(_RECORD)
    return Stats(low, high, values, nulls, size, uncompressed, wrapper, info["typeOrdinal"])


def _unwrap(side: Mapping[str, Any] | None, info: Mapping[str, Any]) -> Any:
    if side is None:
        return None
    (wrapper, record), *_ = side.items()
    name, value = wrapper.removeprefix(_RECORD), record["value"]
    if name == "DecimalWrapper":
        return Decimal(_unscaled(value)).scaleb(-15)
    if name == "BytesWrapper" and info["typeOrdinal"] == _DECIMAL:
        _, scale = _value(info["additionalInfo"]).split(",")
        return Decimal(_unscaled(value)).scaleb(-int(scale))
    if name == "BytesWrapper":
        return value.encode("latin-1")
    if name == "FloatWrapper":
        # The shortest text that tells singles apart: as a double it would be another number.
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    if name == "DoubleWrapper":
        return float(value)
    return value


def _unscaled(text: str) -> int:
    return int.from_bytes(text.encode("latin-1"), "big", signed=True)


def _value(union: Mapping[str, Any] | None) -> Any:
    """The value of a union in Avro's JSON form."""
    return None if union is None else next(iter(union.values()))
