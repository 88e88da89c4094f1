"""The column `_hoodie_partition_path` of new rows.

    no fields    "", the table has no partitions
    field        the text of the value; __HIVE_DEFAULT_PARTITION__ for null and for ""
    time         a time by a pattern (`partition_times`)

The parts of several fields are joined by "/". Special characters of a value are encoded when the table says so, and
hive style puts `field=` before each part. Without encoding, a "/" in a value makes folders in folders.

Values are few: each distinct value is looked at once, whatever it costs.
Source: KeyGenUtils.getPartitionPath and getRecordPartitionPath, PartitionPathFormatterBase, PartitionPathEncodeUtils,
CustomAvroKeyGenerator of Apache Hudi.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ..derived_indexes.expression_index.time_functions import Zone
from ..errors import ConfigError, UnsupportedTable
from ..new_tables.definition import PartKind
from ..options.creation_keys import PARTITION_BY, KeyGenerator
from ..paths import ESCAPES, is_addressable, is_partition
from ..table_config import PARTITION_FIELDS, TableConfig
from .key_texts import Field, TimeTexts, in_column, int64, is_micros, texts
from .partition_times import TimePath

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_SLASHES = "hoodie.datasource.write.slash.separated.date.partitioning"
_EXTRACTOR = "hoodie.table.partition_extractor_class"

_Part: TypeAlias = "TextPath | TimePath"


@dataclass(frozen=True, slots=True)
class TextPath:
    """A partition path of the text of a field. `with_slashes`: 2024-01-02 becomes 2024/01/02."""

    field: Field
    with_slashes: bool
    times: TimeTexts | None = None
    """As in `texts`."""

    def texts(self, values: pa.Array) -> pa.Array:
        """The texts of these values, none null."""
        found = texts(values, self.field.name, self.times)
        return pc.if_else(pc.equal(pc.fill_null(found, ""), ""), DEFAULT_PARTITION, found)


@dataclass(frozen=True, slots=True)
class PartitionPaths:
    """Makes the partition paths of rows."""

    parts: tuple[_Part, ...]
    hive_style: bool
    url_encode: bool

    @classmethod
    def of(
        cls, config: TableConfig, generator: KeyGenerator, schema: pa.Schema, sample: str | None, zone: Zone
    ) -> "PartitionPaths":
        """The paths of a table; `sample` is the path of some row. Raises errors as `KeyMaker.of`."""
        fields = [Field.of(schema, name, "partition") for name in config.partition_fields]
        if generator is KeyGenerator.NON_PARTITION:
            return cls((), False, False)
        if generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP) and len(fields) != 1:
            raise ConfigError(f"{generator.value} takes one partition field, and the table has {len(fields)}")
        kinds = part_kinds(config, generator)
        with_slashes = kinds == [PartKind.SIMPLE] and _has_slashes(config, sample)
        if with_slashes and (generator is KeyGenerator.CUSTOM or config.hive_style):
            # Hudi's releases and paths make different ones of them.
            raise UnsupportedTable(
                f"the table has {_SLASHES} with {'hive style' if config.hive_style else generator.value}, for which "
                "the partition paths of Apache Hudi are not settled",
                hint="write to this table with Apache Hudi",
            )
        parts: list[_Part] = [
            TextPath(field, with_slashes) if kind is PartKind.SIMPLE else TimePath.of(config.raw, field, zone)
            for field, kind in zip(fields, kinds, strict=True)
        ]
        return cls(tuple(parts), config.hive_style, config.url_encode)

    def place_of_times(self) -> int | None:
        """The number of the first part that is the text of a timestamp."""
        parts = enumerate(self.parts)
        return next((i for i, one in parts if isinstance(one, TextPath) and is_micros(one.field.type)), None)

    def shown_part(self, path: str, number: int) -> str:
        """The text of a value in the part of this number of a path, which is encoded."""
        names = path.split("/")
        shown = names[number] if len(names) == len(self.parts) else path
        return unquote(shown.removeprefix(f"{self.parts[number].field.name}=") if self.hive_style else shown)

    def with_times(self, times: TimeTexts | None) -> "PartitionPaths":
        """The same with timestamps as `times` says, None for microseconds since 1970."""
        parts = (replace(one, times=times) if isinstance(one, TextPath) else one for one in self.parts)
        return replace(self, parts=tuple(parts))

    def make(self, rows: pa.Table) -> pa.ChunkedArray:
        """The partition path of each row, encoded with a dictionary in which no path is twice.

        Raises ConfigError and UnsupportedTable, see `KeyMaker.partition_paths`.
        """
        indices, paths = pa.repeat(int64(0), rows.num_rows), pa.array([""])
        for number, part in enumerate(self.parts):
            more, distinct = _encoded(part.field.values(rows))
            made = self._made(part, distinct)
            # Pairs of a path so far and a part, as numbers: below 2**62, for both count less than 2**31.
            count = int64(max(1, len(made)))
            pairs = pc.add(pc.multiply(indices, count), more.cast(pa.int64())).dictionary_encode()
            heads = pc.divide(pairs.dictionary, count)
            tails = pc.subtract(pairs.dictionary, pc.multiply(heads, count))
            joined = [paths.take(heads), made.take(tails)] if number else [made.take(tails)]
            paths, indices = pc.binary_join_element_wise(*joined, "/"), pairs.indices.cast(pa.int64())
        # Different values can make one path.
        unique = paths.dictionary_encode()
        used = unique.indices.take(indices)
        if self.parts:
            self._check(unique.dictionary.to_pylist())
        return pa.chunked_array([pa.DictionaryArray.from_arrays(used, unique.dictionary)])

    def _made(self, part: _Part, distinct: pa.Array) -> pa.Array:
        """The parts of distinct values."""
        try:
            found: list[str] = part.texts(distinct).to_pylist()
        except UnsupportedTable as e:
            raise e if part.field.name in e.message else in_column(e, part.field.name) from e
        if self.url_encode:
            found = [one.translate(ESCAPES) for one in found]
        if self.hive_style:
            found = [f"{part.field.name}={one}" for one in found]
        if isinstance(part, TextPath) and part.with_slashes:
            found = [one.replace("-", "/") for one in found]
        return pa.array(found, pa.string())

    def _check(self, paths: Sequence[str]) -> None:
        """Raise ConfigError for a path that no table can have."""
        names = ",".join(part.field.name for part in self.parts)
        for path in paths:
            if not path or not is_partition(path) or not is_addressable(path):
                raise ConfigError(
                    f"rows have the partition path {path!r} by {names}, which is no place in the table",
                    hint=f"correct the values of {names}, or set the partition column to null",
                )
            if ":" in path.partition("/")[0]:
                # Hadoop takes the text before it for the scheme of a URL. HDFS has no colon in any part.
                raise ConfigError(
                    f"rows have the partition path {path!r} by {names}, and Apache Hudi writes no path with a colon in "
                    "its first part",
                    hint="correct the values, or create the table with "
                    "hoodie.datasource.write.partitionpath.urlencode=true, which encodes colons",
                )


def may_have_slashes(config: TableConfig) -> bool:
    """Whether a path of the table must show if the parts of dates are folders."""
    by_class = config.raw.get(_EXTRACTOR, "").endswith(".SlashEncodedDayPartitionValueExtractor")
    return by_class and not config.hive_style


def _has_slashes(config: TableConfig, sample: str | None) -> bool:
    """Whether the parts of dates are folders. Hudi 1.2.0 itself keeps only the class that reads such paths."""
    if may_have_slashes(config):
        return sample is None or "-" not in sample
    return config.raw.get(_SLASHES, "").lower() == "true"


def part_kinds(config: TableConfig, generator: KeyGenerator) -> list[PartKind]:
    """How each partition field makes its part of the path. Raises ConfigError when that is not known."""
    listed = config.listed_partition_fields
    if generator is not KeyGenerator.CUSTOM:
        return [PartKind.TIMESTAMP if generator is KeyGenerator.TIMESTAMP else PartKind.SIMPLE] * len(listed)
    kinds = [one.partition(":")[2].upper() for one in listed]
    unknown = [one for one, kind in zip(listed, kinds, strict=True) if kind not in PartKind.__members__]
    if unknown:
        names = (one.partition(":")[0] for one in listed)
        raise ConfigError(
            f"the table has CustomKeyGenerator, and neither its {PARTITION_FIELDS} nor {PARTITION_BY.key} of the write "
            f"says how {unknown[0]} makes its part of the partition path",
            hint=f"give {PARTITION_BY.key} with each write, as the other writers do: "
            f"{','.join(f'{name}:KIND' for name in names)}, where each KIND is SIMPLE or TIMESTAMP",
        )
    return [PartKind[kind] for kind in kinds]


def _encoded(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """For each row the place of its value in the second array, in which null is a value."""
    chunks = pc.dictionary_encode(values, null_encoding="encode").chunks
    if not chunks:
        return pa.array([], pa.int32()), pa.array([], values.type)
    # All chunks have the same dictionary.
    return pa.chunked_array([chunk.indices for chunk in chunks]).combine_chunks(), chunks[-1].dictionary
