"""`hudi-services index-bootstrap`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..errors import ConfigError
from ..options import keys
from ..runs.report import Report
from ..runs.request import IndexRequest
from .flags import Parallelism, Retry, ServiceFlags, SparkMaster, SparkMemory, command
from .service import options, run_service

_RECORD_INDEX = "record_index"

IndexTypes: TypeAlias = Annotated[
    str, typer.Option("--index-types", "-ixt", metavar="TYPES", help="The index to build: only record_index exists.")
]
FileGroupCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--file-group-count",
        min=1,
        max=10_000,
        metavar="N",
        help="Give the index exactly N file groups. Default: by the number of keys. It cannot be changed later.",
    ),
]
MinFileGroupCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min",
        min=1,
        max=10_000,
        metavar="N",
        help="Give the index at least N file groups (hoodie.metadata.global.record.level.index.min.filegroup.count).",
    ),
]
MaxFileGroupCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max",
        min=1,
        max=10_000,
        metavar="N",
        help="Give the index at most N file groups (hoodie.metadata.global.record.level.index.max.filegroup.count).",
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    typer.Option("--resume", help="Continue a build that was killed. What it had finished is kept, not built again."),
]


@dataclass(frozen=True, kw_only=True)
class IndexFlags(ServiceFlags):
    """`index-bootstrap`."""

    acts = True
    helps: ClassVar[Mapping[str, str]] = {
        "retry": "Try again up to N times, when the store, the lock or Spark fails.",
        "dry_run": "Build nothing. Say how many files and keys would be read, and how many file groups the index would "
        "have.",
        "apply": "Build the index. The command does so without this flag, too.",
    }

    index_types: IndexTypes = _RECORD_INDEX
    file_group_count: FileGroupCount = None
    min_file_group_count: MinFileGroupCount = None
    max_file_group_count: MaxFileGroupCount = None
    resume: Resume = False
    parallelism: Parallelism = None
    spark_master: SparkMaster = None
    spark_memory: SparkMemory = None
    retry: Retry = 0


@command(IndexFlags)
def index_bootstrap(flags: IndexFlags) -> int:
    """Build the record-level index of a table.

    Spark reads the record keys of all base files and writes the index. Writers may work meanwhile. The index becomes
    visible in one step at the end. Before you start, set hoodie.metadata.record.index.enable=true and
    hoodie.metadata.index.async=true in every writer: a writer without them drops the index.
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
        dry_run=not flags.changes,
        resume=flags.resume,
    )
