"""The columns of the rows of a slice with log files, in types that hold the values of its base file and its records.

How values become values of a wider type differs by release in one place: 0.15.0 and 1.0.2 widen the floats of Avro
blocks to doubles of the same value, and those of base files through their shortest decimal text. So a slice that has
floats only must know, before its rows are merged, whether they are to be doubles.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

from ..base_files.base_file_slice import BaseFileSlice
from ..errors import UnsupportedTable
from ..log_files.log_blocks import BlockPlace, HeaderKey
from ..parquet.file_schema import FileSchema
from ..parquet.footer import Physical
from ..parquet.node_types import parquet_type
from ..parquet.schema_evolution import SourceSchema, resolve_target
from ..schema.schema_history import SchemaHistory
from ..schema.widening import mixes_units, widens_float
from ..table.support import WITH_HUDI
from .log_records import column_with_default, is_data, written_schemas
from .rules import Fill, MergeRule


def merged_schema(
    path: str,
    base: BaseFileSlice | None,
    blocks: Sequence[BlockPlace],
    rule: MergeRule,
    wider: FileSchema | None,
    history: SchemaHistory | None,
) -> FileSchema:
    """The columns of the base file, of the records of `blocks`, oldest first, and of `wider`; `path` names the slice.

    The columns of blocks are those of the newest version of `history`.

    Raises UnsupportedTable where values of the same column would not have the same meaning.
    """
    described = [block for block in reversed(blocks) if is_data(block) or HeaderKey.SCHEMA in block.header]
    schemas = [*([] if base is None else [base.schema]), *written_schemas(described, path, history)]
    if not schemas:
        raise UnsupportedTable(f"{path} has no block with a schema", hint=WITH_HUDI)
    merged = _resolved(_Schemas(tuple(schemas), wider, path, base.full_path if base is not None else path))
    if rule.exact_floats:
        _check_nested_floats(path, schemas)
    if rule.fill is Fill.NULLS and (name := column_with_default(described)):
        _refuse(path, f"the column {name} has a default value, which partial updates take for no value")
    return merged


@dataclass(frozen=True, slots=True)
class _Schemas:
    """The schemas of a slice: of its base file, and of its blocks; `wider` as of `merged_schema`."""

    of_files: tuple[FileSchema, ...]
    wider: FileSchema | None
    slice_path: str = field(compare=False)
    first_path: str = field(compare=False)
    """The path of the first of them."""


@lru_cache(maxsize=64)
def _resolved(schemas: _Schemas) -> FileSchema:
    """The columns of all schemas. Most slices of a table have the same ones. Raises UnsupportedTable."""
    path = schemas.slice_path
    later = [*schemas.of_files[1:], *([schemas.wider] if schemas.wider is not None else [])]
    first = SourceSchema(schemas.first_path, schemas.of_files[0])
    merged = resolve_target([first, *(SourceSchema(path, one) for one in later)], None)
    for name in merged.columns:
        types = [parquet_type(column) for one in schemas.of_files if (column := one.column_of(name)) is not None]
        if mixes_units(types):
            _refuse(path, f"the timestamps of the column {name} are in different units in its files")
    return merged


def widened_floats(path: str, rule: MergeRule, schema: FileSchema, target: FileSchema) -> list[str]:
    """The columns of a slice that must become doubles before its rows are merged. Raises UnsupportedTable."""
    if not rule.exact_floats:
        return []
    _check_nested_floats(path, [schema, target])
    pairs = ((name, schema.column(name), target.column(name)) for name in schema.columns)
    return [
        name for name, own, wanted in pairs if own and wanted and widens_float(parquet_type(own), parquet_type(wanted))
    ]


def _check_nested_floats(path: str, schemas: Iterable[FileSchema]) -> None:
    """1.0.2 widens nested floats of base files, too, to doubles of the same value, but not where it rewrites them."""
    nested = [leaf for one in schemas for leaf in one.leaves if len(leaf.path) > 1]
    floats, doubles = (
        {leaf.path for leaf in nested if leaf.node.physical is kind} for kind in (Physical.FLOAT, Physical.DOUBLE)
    )
    for column in sorted(floats & doubles):
        _refuse(path, f"the nested column {'.'.join(column)} became a double, which Hudi reads in more than one way")


def _refuse(path: str, problem: str) -> NoReturn:
    raise UnsupportedTable(f"{path}: {problem}", hint=WITH_HUDI)
