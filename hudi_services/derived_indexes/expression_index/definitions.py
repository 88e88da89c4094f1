"""The definitions of expression indexes, and which of them a table has.

`.hoodie/.index_defs/index.json` (table versions 8 and 9) has for each partition `expr_index_<name>`:

    {"indexType": "column_stats" | "bloom_filters", "indexFunction": f, "sourceFields": [column],
     "indexOptions": {"expr": f, ...}, "version": "V1" | "V2"}

Source: HoodieIndexDefinition of Apache Hudi 1.0.2, 1.2.0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import UnsupportedTable
from ...metadata.metadata_table import MetadataTable
from ...metadata.records.keys import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX

_EXPRESSION = "expr"
_BLOOM_OPTIONS = ("filtertype", "numentries", "fpp", "maxentries")
DROP_HINT = "drop the index, or cluster the table with Apache Hudi, where its function can be computed"


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """The definition of one index, in the partition `partition` of the metadata table."""

    partition: str
    kind: str
    """column_stats or bloom_filters."""
    column: str
    function: str
    options: tuple[tuple[str, str], ...]
    """Options of the function."""
    bloom_options: tuple[tuple[str, str], ...]
    typed: bool
    """Whether its statistics have a value type."""


def expression_indexes(metadata: MetadataTable) -> tuple[ExpressionIndex, ...]:
    """The expression indexes of a table, by name. Raises CorruptFile, and UnsupportedTable for unknown definitions."""
    names = [name for name in metadata.partitions if name.startswith(EXPRESSION_INDEX)]
    if not names:
        return ()
    # Few tables have one, and this needs Arrow.
    from ...metadata.index_definitions import read_definitions
    from ...metadata.statistics.indexed_columns import is_typed

    definitions = read_definitions(metadata)
    return tuple(_index(name, definitions.get(name), partial(is_typed, metadata)) for name in names)


def defined_index(metadata: MetadataTable, name: str, definition: Mapping[str, Any]) -> ExpressionIndex:
    """The expression index of the metadata partition `name`, by its definition.

    Raises UnsupportedTable for a definition of an unknown kind.
    """
    # As above.
    from ...metadata.statistics.indexed_columns import is_typed

    return _index(name, definition, partial(is_typed, metadata))


def _index(
    name: str, definition: Mapping[str, Any] | None, is_typed: Callable[[Mapping[str, Any]], bool]
) -> ExpressionIndex:
    if definition is None:
        raise refused(name, "it has no definition in .hoodie/.index_defs/index.json")
    kind, fields = str(definition.get("indexType", "")).lower(), definition.get("sourceFields")
    if kind not in (COLUMN_STATS, BLOOM_FILTERS):
        raise refused(name, f"it is of the type {kind or 'none':.80}")
    if not isinstance(fields, list) or len(fields) != 1:
        raise refused(name, "it is not of one column")
    options = definition.get("indexOptions") or {}
    if not isinstance(options, dict):
        raise refused(name, "its options cannot be read")
    known = _BLOOM_OPTIONS if kind == BLOOM_FILTERS else ()
    pairs = sorted((str(k), str(v)) for k, v in options.items() if k != _EXPRESSION)
    return ExpressionIndex(
        partition=name,
        kind=kind,
        column=str(fields[0]),
        function=str(definition.get("indexFunction", "")),
        options=tuple(pair for pair in pairs if pair[0] not in known),
        bloom_options=tuple(pair for pair in pairs if pair[0] in known),
        typed=is_typed(definition),
    )


def refused(partition: str, why: str) -> UnsupportedTable:
    """The error about an index that cannot be kept in step, because of `why`."""
    return UnsupportedTable(f"the metadata partition {partition} cannot be kept in step: {why}", hint=DROP_HINT)
