"""Opens a base file of a table, whatever it takes: in the columns of today, and with its source file."""

from ..errors import CorruptFile
from ..model import BOOTSTRAP_INSTANT, BaseFile
from ..parquet.schema_versions import evolved_schema
from ..schema.schema_history import KnownHistory
from ..schema.table_schema import META_COLUMNS
from ..storage import Storage
from .base_file_slice import BaseFileSlice
from .bootstrapped_slice import open_with_source
from .source_folder import SourceFolder

_META_COLUMNS_ALONE = frozenset(META_COLUMNS)


def open_base(storage: Storage, base: BaseFile, history: KnownHistory, sources: SourceFolder) -> BaseFileSlice:
    """The open base file, in the columns that the newest version of `history` has; in `sources` are those of a file
    with the meta columns alone.

    Raises CorruptFile, UnsupportedTable and StorageError.
    """
    if base.source is not None:
        return open_with_source(storage, base, base.source, sources)
    found = BaseFileSlice.open(storage, base.path, base.size or None, base.content)
    if base.instant == BOOTSTRAP_INSTANT and _META_COLUMNS_ALONE.issuperset(found.schema.columns):
        raise CorruptFile(
            f"{found.full_path} has the meta columns alone, and the bootstrap index of the table names no file with "
            "the other ones",
            hint="restore the folder .hoodie/.aux/.bootstrap: readers of Hudi take all columns for null",
        )
    return found.evolved(evolved_schema(found.schema, history.value, base.instant, found.full_path))
