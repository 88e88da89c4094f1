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
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError, UnsupportedTable
from ..options.creation_keys import KeyGenerator
from ..paths import is_addressable, is_partition
from ..table_config import TableConfig
from .definition import PartKind
from .key_texts import Field, TimeTexts, in_column, texts
from .partition_times import TimePath

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
PARTITION_FIELDS = "hoodie.table.partition.fields"
_SLASHES = "hoodie.datasource.write.slash.separated.date.partitioning"
_ENCODED = str.maketrans({one: f"%{ord(one):02X}" for one in [*map(chr, range(1, 0x20)), *"\x7f\"#%'*/:=?\\{[]^"]})

_Part: TypeAlias = "TextPath | TimePath"


@dataclass(frozen=True, slots=True)
class TextPath:
    """A partition path of the text of a field. `with_slashes`: 2024-01-02 becomes 2024/01/02."""

    field: Field
    times: TimeTexts | None
    with_slashes: bool = False

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
        cls, config: TableConfig, generator: KeyGenerator, schema: pa.Schema, times: TimeTexts | None
    ) -> "PartitionPaths":
        """The paths of a table; `times` as in `texts`.

        Raises ConfigError and UnsupportedTable, see `KeyMaker.of`.
        """
        fields = [Field.of(schema, name, "partition") for name in config.partition_fields]
        with_slashes = config.raw.get(_SLASHES, "").lower() == "true"
        if generator is KeyGenerator.NON_PARTITION:
            return cls((), False, False)
        if generator in (KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP) and len(fields) != 1:
            raise ConfigError(f"{generator.value} takes one partition field, and the table has {len(fields)}")
        if with_slashes and (generator is KeyGenerator.CUSTOM or config.hive_style):
            # Hudi's two paths make different ones of them.
            raise UnsupportedTable(
                f"the table has {_SLASHES} with {'hive style' if config.hive_style else generator.value}, for which "
                "the partition paths of Apache Hudi are not settled",
                hint="write to this table with Apache Hudi",
            )
        kinds = [PartKind.TIMESTAMP if generator is KeyGenerator.TIMESTAMP else PartKind.SIMPLE] * len(fields)
        if generator is KeyGenerator.CUSTOM:
            kinds = _kinds(config)
        parts: list[_Part] = []
        for field, kind in zip(fields, kinds, strict=True):
            if kind is PartKind.TIMESTAMP:
                parts.append(TimePath.of(config.raw, field))
            else:
                parts.append(TextPath(field, times, with_slashes and len(fields) == 1))
        return cls(tuple(parts), config.hive_style, config.url_encode)

    def time_field(self) -> Field | None:
        """The first field whose timestamps are shown as texts of values."""
        found = (one.field for one in self.parts if isinstance(one, TextPath))
        return next((field for field in found if pa.types.is_timestamp(field.type)), None)

    def make(self, rows: pa.Table) -> pa.ChunkedArray:
        """The partition path of each row, encoded with a dictionary in which no path is twice.

        Raises ConfigError and UnsupportedTable, see `KeyMaker.partition_paths`.
        """
        indices, paths = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows), pa.array([""])
        for number, part in enumerate(self.parts):
            more, distinct = _encoded(part.field.values(rows))
            made = self._made(part, distinct)
            # Pairs of a path so far and a part, as numbers: below 2**62, for both count less than 2**31.
            pairs = pc.add(pc.multiply(indices, _int64(max(1, len(made)))), more.cast(pa.int64())).dictionary_encode()
            heads = pc.divide(pairs.dictionary, _int64(max(1, len(made))))
            tails = pc.subtract(pairs.dictionary, pc.multiply(heads, _int64(max(1, len(made)))))
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
            found = [one.translate(_ENCODED) for one in found]
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
            if ":" in path:
                raise ConfigError(
                    f"rows have the partition path {path!r} by {names}, and Apache Hudi opens no path with a colon",
                    hint="only tables with hoodie.datasource.write.partitionpath.urlencode=true can have such values",
                )


def _kinds(config: TableConfig) -> list[PartKind]:
    """The kinds of the partition fields of a custom key generator. Raises UnsupportedTable when they are not known."""
    listed = [one.strip() for one in config.raw.get(PARTITION_FIELDS, "").split(",") if one.strip()]
    kinds = [one.partition(":")[2].upper() for one in listed]
    unknown = [one for one, kind in zip(listed, kinds, strict=True) if kind not in PartKind.__members__]
    if unknown:
        raise UnsupportedTable(
            f"the table has CustomKeyGenerator, and its {PARTITION_FIELDS} does not say how {unknown[0]} makes its "
            "part of the partition path",
            hint="write to this table with Apache Hudi, whose writers give the kinds with each write",
        )
    return [PartKind[kind] for kind in kinds]


def _encoded(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """For each row the place of its value in the second array, in which null is a value."""
    chunks = pc.dictionary_encode(values, null_encoding="encode").chunks
    if not chunks:
        return pa.array([], pa.int32()), pa.array([], values.type)
    # All chunks have the same dictionary.
    return pa.chunked_array([chunk.indices for chunk in chunks]).combine_chunks(), chunks[-1].dictionary


def _int64(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.int64())
