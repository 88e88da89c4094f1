"""How new base files are written: plain values, for the driver and the tasks."""

from dataclasses import dataclass

from ..base_files.bloom import BloomSettings
from ..options import Options, clustering_keys, file_keys, settings, value_of
from ..table_config import TableConfig


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings of new base files. Sizes in bytes, of row groups in memory. `bloom`: None where Hudi writes none."""

    codec: str = value_of(file_keys.PARQUET_CODEC)
    file_bytes: int = value_of(clustering_keys.TARGET_FILE_BYTES)
    row_group_bytes: int = value_of(file_keys.PARQUET_BLOCK_BYTES)
    page_bytes: int = value_of(file_keys.PARQUET_PAGE_BYTES)
    bloom: BloomSettings | None = settings(BloomSettings)


def file_settings(options: Options, config: TableConfig) -> FileSettings:
    """The settings of new base files of a table with this `config`."""
    if config.populate_meta_fields and options[file_keys.PARQUET_BLOOM_ENABLED]:
        return options.of(FileSettings)
    return options.of(FileSettings, bloom=None)
