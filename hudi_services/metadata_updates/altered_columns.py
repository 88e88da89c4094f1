"""Columns of which the range of a whole data partition is not known, because ALTER TABLE has changed them.

Statistics of files go by the names of columns when the files were written. After a rename, older files have no record
under the new name, and the range of their partition would be that of the newer files alone: Hudi 1.2.0 writes such
ranges, and its filters then miss the rows of the older files (findings/hudi_filters_miss_rows_after_a_rename.sh). A
partition without a range is always read; so here it gets none, until its older files are rewritten.
"""

from collections.abc import Collection, Iterable, Mapping

from ..file_names import instant_in
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import PARTITION_STATS
from ..metadata.records.model import StatsRecord
from ..metadata.statistics.partition_ranges import range_key
from ..model import BOOTSTRAP_INSTANT
from ..table.bootstrap_index import BASE_PATH

Altered = Mapping[str, frozenset[str]]
"""The names of top-level columns by data partition."""


def altered_columns(metadata: MetadataTable, live: Mapping[str, Iterable[str]]) -> Altered:
    """The columns that were changed since some of the `live` files (names by data partition) were written, and those
    that some of them do not have, because the table was bootstrapped by metadata alone.

    Empty for other tables. Raises what reads the history.
    """
    history, schema = metadata.slices.history.value, metadata.data_timeline.schema
    if metadata.table_config.raw.get(BASE_PATH) and schema is not None:
        bare = {one for one, names in live.items() if any(instant_in(name) == BOOTSTRAP_INSTANT for name in names)}
        return dict.fromkeys(bare, frozenset(schema.names))
    if history is None:
        return {}
    found = {one: history.altered_since({instant_in(name) for name in names}) for one, names in live.items()}
    return {partition: names for partition, names in found.items() if names}


def is_altered(altered: Altered, partition: str, column: str) -> bool:
    """Whether a column (dotted path) of a data partition is one of them."""
    return column.partition(".")[0] in altered.get(partition, ())


def ranges_to_delete(metadata: MetadataTable, altered: Altered, columns: Collection[str]) -> list[str]:
    """The keys of ranges that are stored of altered columns, of `columns`, in partition_stats."""
    keys = {
        range_key(PARTITION_STATS, column, partition)
        for partition in altered
        for column in columns
        if is_altered(altered, partition, column)
    }
    if not keys:
        return []
    stored = metadata.reader(PARTITION_STATS).stored(keys)
    return [key for key, one in stored if isinstance(one.merged, StatsRecord) and not one.merged.deleted]
