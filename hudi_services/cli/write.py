"""`hudi-services write`."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeAlias

import typer

from ..errors import ConfigError
from ..options import Option, creation_keys, writing_keys
from ..process import under_spark_submit
from ..runs.report import Report
from ..runs.request import WriteOperation, WriteRequest
from ..urls import check_url
from .flags import ServiceFlags, SparkMaster, SparkMemory, command
from .service import options, run_service


class InputFormat(str, Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


Input: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="URL",
        help="The rows: a file, a folder, or a pattern such as 'new/*.parquet'; may be repeated.",
    ),
]
Kind: TypeAlias = Annotated[
    WriteOperation | None,
    typer.Option(
        "--operation",
        help="What is done with the rows. Default: upsert, which updates rows whose keys are there, and inserts the "
        "others. insert and bulk_insert look for no rows of the same keys; insert fills small files first, "
        "bulk_insert writes new files alone. delete needs only the columns of record key and partition path. "
        "insert_overwrite replaces all rows of the partitions of the rows, insert_overwrite_table those of the table. "
        "delete_partition deletes all rows of --partitions, and takes no --input.",
    ),
]
FormatFlag: TypeAlias = Annotated[
    InputFormat | None,
    typer.Option("--input-format", help="The format of the files. Default: by their names."),
]
RecordKey: TypeAlias = Annotated[
    str | None,
    typer.Option("--record-key", metavar="COLUMNS", help="Where there is no table: create it, with this record key."),
]
Ordering: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ordering", metavar="COLUMNS", help="Of a new table: the columns that decide between two rows of one key."
    ),
]
PartitionBy: TypeAlias = Annotated[
    str | None, typer.Option("--partition-by", metavar="COLUMNS", help="Of a new table: the columns of its partitions.")
]
TableType: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--table-type", metavar="TYPE", help="Of a new table: COPY_ON_WRITE, which is the default, or MERGE_ON_READ."
    ),
]
TableVersion: TypeAlias = Annotated[
    int | None,
    typer.Option("--table-version", metavar="6|8|9", help="Of a new table. Default: 9, for Hudi 1.1 and 1.2."),
]

Partitions: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--partitions",
        metavar="PATHS",
        help="With --operation delete_partition: the partitions to delete; * stands for any text.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class WriteFlags(ServiceFlags):
    """`write`."""

    acts = True
    helps: ClassVar[Mapping[str, str]] = {
        "dry_run": "Write nothing. Read the rows, and say to how many files they would go; where there is no table, "
        "say only that it would be created.",
        "spark_master": "Let tasks of Spark read and write the rows, with this master. They do so under spark-submit, "
        "too. Otherwise this process reads and writes them.",
        "spark_memory": "Let tasks of Spark read and write the rows, with this memory, such as 4g, for the driver and "
        "each executor.",
        "table_name": "The name of a new table. Default: the name of its folder. Stop with exit code 2 when the table "
        "that is there has another name.",
    }

    input: Input = None
    operation: Kind = None
    input_format: FormatFlag = None
    record_key: RecordKey = None
    ordering: Ordering = None
    partition_by: PartitionBy = None
    table_type: TableType = None
    table_version: TableVersion = None
    partitions: Partitions = None
    spark_master: SparkMaster = None
    spark_memory: SparkMemory = None


@command(WriteFlags)
def write(flags: WriteFlags) -> int:
    """Write rows to a table, or delete rows, in one commit.

    The rows are those of files; a delete takes their keys. With --record-key the table is created where there is none.
    This process reads and writes the rows, and starts no Spark, unless you run the command by spark-submit, or give
    --spark-master or --spark-memory: use Spark for more rows than one machine writes. Rows that do not fit into memory
    wait on the local disk.
    """

    def read() -> tuple[WriteRequest, Callable[[WriteRequest], Report]]:
        from ..jobs import writing

        for url in flags.input or ():
            check_url(url, "--input")
        given: dict[str, tuple[Option[Any], object]] = {
            "--table-name": (creation_keys.TABLE_NAME, flags.table_name),
            "--record-key": (creation_keys.RECORD_KEY, flags.record_key),
            "--ordering": (creation_keys.ORDERING, flags.ordering),
            "--partition-by": (creation_keys.PARTITION_BY, flags.partition_by),
            "--table-type": (creation_keys.TABLE_TYPE, flags.table_type),
            "--table-version": (creation_keys.TABLE_VERSION, flags.table_version),
            "--partitions": (writing_keys.PARTITIONS_TO_DELETE, flags.partitions),
        }
        if flags.operation is not None:
            given["--operation"] = (writing_keys.OPERATION, flags.operation.value)
        own = [(flag, {option.key: str(value)}) for flag, (option, value) in given.items() if value is not None]
        known = options(flags, *own)
        request = WriteRequest(
            base_path=flags.base_path,
            options=known,
            table_name=flags.table_name,
            operation=WriteOperation(known[writing_keys.OPERATION].lower()),
            dry_run=not flags.changes,
            spark_master=flags.spark_master,
            spark_memory=flags.spark_memory,
            on_spark=under_spark_submit() or flags.spark_master is not None or flags.spark_memory is not None,
        )
        if not request.operation.needs_rows:
            if flags.input:
                raise ConfigError("delete_partition takes no --input", hint="name the partitions with --partitions")
            _refuse(request, "--input-format", flags.input_format)
            _refuse(request, "--spark-master", flags.spark_master)
            _refuse(request, "--spark-memory", flags.spark_memory)
            return request, writing.delete_partitions
        if not flags.input:
            raise ConfigError("--input is missing", hint="name the files with the rows, as --input new.parquet")
        _refuse(request, "--partitions", flags.partitions)
        file_format = flags.input_format.value if flags.input_format is not None else ""
        return request, functools.partial(writing.write_files, urls=flags.input, file_format=file_format)

    return run_service(flags, ("write", flags.operation.value if flags.operation is not None else "write"), read)


def _refuse(request: WriteRequest, flag: str, value: object) -> None:
    """Raise ConfigError when a flag is given that the operation does not take."""
    if value is not None:
        raise ConfigError(f"{request.operation.value} takes no {flag}")
