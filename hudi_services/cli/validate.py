"""`hudi-services validate`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..runs.report import Report
from ..runs.request import ValidateRequest
from .flags import ServiceFlags, command
from .service import options, run_service

DropMissingPartitions: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--drop-missing-partitions",
        help="Treat a partition without any stored file as deleted: with --apply, its files leave the file listing.",
    ),
]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="End with exit code 5 for harmless differences, too.")
]


@dataclass(frozen=True, kw_only=True)
class ValidateFlags(ServiceFlags):
    """`validate`."""

    helps: ClassVar[Mapping[str, str]] = {
        "apply": "Repair: write the wrong records again, in one commit of the metadata table, and no others."
    }

    drop_missing_partitions: DropMissingPartitions = False
    strict: Strict = False


@command(ValidateFlags)
def validate(flags: ValidateFlags) -> int:
    """Compare the metadata table with the files of the table.

    Computes every record of the metadata table from the files, lists each difference, and ends with exit code 5 when
    one is harmful. Changes nothing until you add --apply. Starts no Spark.
    """

    def read() -> tuple[ValidateRequest, Callable[[ValidateRequest], Report]]:
        from ..jobs import validate as job

        request = ValidateRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            repair=flags.changes,
            drop_missing_partitions=flags.drop_missing_partitions,
            strict=flags.strict,
        )
        return request, job.validate

    return run_service(flags, ("validate", "repair" if flags.apply else "validate"), read)
