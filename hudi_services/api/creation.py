"""Creating a table from Python."""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ConfigError
from ..ingest import creation
from ..options import Option, creation_keys, effects
from ..options.option import Phase
from ..stores.options import Value
from .arguments import EngineName, OptionValues, layer_of, options_over, storage_at
from .call import Progress
from .table import Table
from .table import open as open_table

_log = logging.getLogger("hudi_services")


def create(
    url: "str | os.PathLike[str]",
    *,
    name: str | None = None,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_type: str | None = None,
    table_version: int | None = None,
    storage_options: Mapping[str, Value] | None = None,
    options: OptionValues | None = None,
    conf_file: str | None = None,
    engine: EngineName | None = None,
    metrics: str | None = None,
    retries: int = 0,
    progress: Progress | None = None,
) -> Table:
    """Create an empty table at a path or URL, as Hudi of the release that owns the version does; returns it.

    `name`, `record_key` (columns), `partition_by` (columns, or none), `ordering` (the columns that decide between two
    rows of one key), `table_type` and `table_version` (6, 8 or 9) are Hudi's options by shorter names; everything else
    comes from `options`. Without a `name` the table is named after its folder. The other arguments are those of `open`.

    Raises AlreadyExists where there is a table, and ConfigError for arguments that are wrong: then nothing was written.
    """
    storage = storage_at(os.fspath(url), storage_options)
    given: dict[Option[Any], str | int | Sequence[str] | None] = {
        creation_keys.TABLE_NAME: name,
        creation_keys.RECORD_KEY: record_key,
        creation_keys.PARTITION_BY: partition_by,
        creation_keys.ORDERING: ordering,
        creation_keys.TABLE_TYPE: table_type,
        creation_keys.TABLE_VERSION: table_version,
    }
    texts = {one.key: _text(one.key, value) for one, value in given.items() if value is not None}
    found = options_over([("arguments of create()", texts), layer_of("options of create()", options)], conf_file)
    for warning in (*found.warnings, *effects.warnings(found, Phase.CREATE, ())):
        _log.warning("%s", warning)
    creation.create(storage, found)
    return open_table(
        url,
        storage_options=storage_options,
        options=options,
        conf_file=conf_file,
        engine=engine,
        metrics=metrics,
        retries=retries,
        progress=progress,
    )


def _text(key: str, value: str | int | Sequence[str]) -> str:
    if isinstance(value, str | int):
        return str(value)
    if not all(isinstance(one, str) and one and "," not in one for one in value):
        raise ConfigError(f"create(): {key} takes the names of columns, which have no commas")
    return ",".join(value)
