"""The partition columns that base files do not have, as records of log files have them: texts of the partition path.

Readers of Hudi take these columns of the rows of base files from the path, as texts, and those of log records from the
records. So the records need them, with the same texts; Hudi's own upserts write them, too.
Source: HoodieSparkSqlWriter, PartitionUtils (Spark), SparkHoodieTableFileIndex.
"""

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa

from ..errors import UnsupportedTable
from ..keygen.partition_paths import DEFAULT_PARTITION
from ..table_config import TableConfig

PathColumns = tuple[tuple[str, str | None], ...]
"""Names of columns, each with its text; None for null."""


def path_columns(config: TableConfig, partition: str) -> PathColumns:
    """The dropped columns of a table in a partition; () for a table whose files have all columns.

    Raises UnsupportedTable for a path that does not tell one text for each column.
    """
    names = config.dropped_columns
    if not names:
        return ()
    parts = [partition] if len(names) == 1 else partition.split("/")
    if len(parts) != len(names):
        raise UnsupportedTable(
            f"the partition {partition!r} of the table {config.name} does not tell a value for each of "
            f"{', '.join(names)}, which its files do not have",
            hint="write to this partition with Apache Hudi",
        )
    return tuple((name, _text(name, part, config)) for name, part in zip(names, parts, strict=True))


def _text(name: str, part: str, config: TableConfig) -> str | None:
    shown = part.removeprefix(f"{name}=") if config.hive_style else part
    found = unquote(shown) if config.url_encode else shown
    return None if found == DEFAULT_PARTITION else found


def with_path_columns(rows: pa.Table, columns: Sequence[tuple[str, str | None]]) -> pa.Table:
    """Rows with these columns behind their own."""
    for name, text in columns:
        rows = rows.append_column(name, pa.repeat(pa.scalar(text, pa.string()), rows.num_rows))
    return rows
