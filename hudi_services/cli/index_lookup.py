"""`hudi-services index-lookup`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ..errors import ConfigError
from ..runs.report import Report
from ..runs.request import LookupRequest
from ..urls import check_url
from .flags import ServiceFlags, command
from .service import options, run_service

if TYPE_CHECKING:
    import pyarrow as pa

KeysFile: TypeAlias = Annotated[
    str, typer.Option("--keys-file", metavar="FILE", help="Local text file with one record key on each line.")
]
Partition: TypeAlias = Annotated[
    str,
    typer.Option("--partition", metavar="PATH", help="The partition of all keys, when the index is a partitioned one."),
]


@dataclass(frozen=True, kw_only=True)
class LookupFlags(ServiceFlags):
    """`index-lookup`, which has no work to apply, and takes no lock: it only reads."""

    hidden = ("dry_run", "apply", "lock_wait")

    keys_file: KeysFile
    partition: Partition = ""


@command(LookupFlags)
def index_lookup(flags: LookupFlags) -> int:
    """Look up record keys in the record index.

    Lists partition, file group and instant of each key that the index has. Only reads, and only the metadata table.
    """

    def read() -> tuple[LookupRequest, Callable[[LookupRequest], Report]]:
        from ..jobs import index_lookup

        wanted = LookupRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            keys=_read_keys(flags.keys_file),
            partition=flags.partition,
        )
        return wanted, index_lookup.index_lookup

    return run_service(flags, ("index-lookup", "index-lookup"), read)


def _read_keys(path: str) -> "pa.Array":
    """The keys of a UTF-8 text file with one key on each line; empty lines are skipped."""
    import pyarrow as pa

    check_url(path, "--keys-file")
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(
            f"--keys-file {path} cannot be read: {said}", hint="give a text file with one key on each line"
        ) from None
    return pa.array([line for line in lines if line], pa.string())
