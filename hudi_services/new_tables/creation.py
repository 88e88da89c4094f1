"""Creates a table: its folders, then its properties, in one atomic step. The first write makes everything else.

Hudi 1.0 and later list the folder of the timeline, and fail where there is none.
"""

from ..errors import AlreadyExists
from ..paths import TABLE_FOLDER
from ..storage import FOLDER_FILE, Storage, check_creates
from ..table_config import TableConfig
from .definition import TableDefinition


def create_table(storage: Storage, definition: TableDefinition) -> TableConfig:
    """Create the table at the root of `storage`, where other files may be.

    Raises AlreadyExists for a table that exists, also when another process has just created it, and ConfigError where
    the store cannot hold one.
    """
    check_creates(storage, "a new table")
    if has_table_files(storage):
        raise AlreadyExists(
            f"{storage.root} has files of a table in its folder {TABLE_FOLDER}",
            hint="open the table that is there, or take another place",
        )
    config = TableConfig(definition.properties(), definition.version)
    config.make_folders(storage)
    return TableConfig.create(storage, config.raw)


def has_table_files(storage: Storage) -> bool:
    """Whether there are files of a table. A creation that was killed leaves folders alone."""
    return any(file.name != FOLDER_FILE for file in storage.list_tree(TABLE_FOLDER))
