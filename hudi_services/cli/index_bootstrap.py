"""`hudi-services index-bootstrap`."""

from collections.abc import Callable

from ..errors import ConfigError
from ..jobs.report import Report
from ..jobs.request import IndexRequest
from ..options import keys
from .flags import IndexFlags, command
from .service import options, run_service

_RECORD_INDEX = "record_index"


@command(IndexFlags)
def index_bootstrap(flags: IndexFlags) -> int:
    """Build the record-level index of a table.

    Reads the record keys of all base files with Spark, writes the index beside the table, follows what writers do
    meanwhile, and publishes it in one step. Set hoodie.metadata.record.index.enable=true and
    hoodie.metadata.index.async=true in the writers before, or the first of them drops it again.
    """

    def read() -> tuple[IndexRequest, Callable[[IndexRequest], Report]]:
        from ..jobs import index_bootstrap

        return _request(flags), index_bootstrap.index_bootstrap

    return run_service(flags, ("index-bootstrap", "index-bootstrap"), read, flags.retry)


def _request(flags: IndexFlags) -> IndexRequest:
    if flags.index_types.strip().lower() != _RECORD_INDEX:
        raise ConfigError(
            f"--index-types {flags.index_types} cannot be built by this tool", hint=f"it builds {_RECORD_INDEX}"
        )
    least, most = keys.RECORD_INDEX_MIN_GROUPS, keys.RECORD_INDEX_MAX_GROUPS
    numbers = (
        ("--file-group-count", flags.file_group_count, (least, most)),
        ("--min", flags.min_file_group_count, (least,)),
        ("--max", flags.max_file_group_count, (most,)),
        ("--parallelism", flags.parallelism, (keys.MAX_PARALLELISM,)),
    )
    layers = [
        (flag, {option.key: str(number) for option in chosen}) for flag, number, chosen in numbers if number is not None
    ]
    return IndexRequest(
        base_path=flags.base_path,
        options=options(flags, *layers),
        table_name=flags.table_name,
        spark_master=flags.spark_master,
        spark_memory=flags.spark_memory,
        resume=flags.resume,
    )
