"""What the tasks of one write that make base files have in common; plain data, which is sent to the executors."""

from dataclasses import dataclass

from ..base_files.source_folder import NO_SOURCES, SourceFolder
from ..rows.memory import TaskMemory
from ..rows.settings import FileSettings
from ..rows.sort_order import SortColumn
from ..schema.schema_history import NO_HISTORY, KnownHistory
from ..storage import Storage
from .change_logs import ChangesForm
from .meta_columns import MetaColumns
from .writer_schema import WriterSchema


@dataclass(frozen=True, slots=True)
class WriteForm:
    """`ranged` are the columns whose ranges are needed; `memory` is that of each task.

    `file_bytes` of `settings` is the size at which the file of a new group is closed.
    """

    storage: Storage
    instant: str
    schema: WriterSchema
    dropped_columns: tuple[str, ...]
    """Partition columns that files need not have."""
    settings: FileSettings
    ranged: frozenset[str]
    memory: TaskMemory
    sort: tuple[SortColumn, ...] = ()
    """What the rows of new groups are sorted by; () when they keep their order."""

    history: KnownHistory = NO_HISTORY
    """The versions of the table's schema, in which the columns of older files are found."""
    sources: SourceFolder = NO_SOURCES
    """The folder with the columns of a bootstrapped table."""
    changes: ChangesForm | None = None
    """How changes of rows in base files are logged; None where they are not."""

    def meta(self, partition: str, number: int) -> MetaColumns:
        """The meta columns of the rows of the task with this number."""
        return MetaColumns(self.instant, partition, number)
