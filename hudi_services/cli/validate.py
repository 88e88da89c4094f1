"""`hudi-services validate`."""

from collections.abc import Callable

from ..jobs.report import Report
from ..jobs.request import ValidateRequest
from .flags import ValidateFlags, command
from .service import options, run_service


@command(ValidateFlags)
def validate(flags: ValidateFlags) -> int:
    """Compare the metadata table with the files of the table.

    Computes every record anew and tells each difference; ends with exit code 5 when one is harmful. Starts no Spark.
    With --repair: writes the records that are wrong anew, and no others.
    """
    action = "repair" if flags.repair else "validate"

    def read() -> tuple[ValidateRequest, Callable[[ValidateRequest], Report]]:
        from ..jobs import validate as job

        request = ValidateRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            repair=flags.repair,
            drop_missing_partitions=flags.drop_missing_partitions,
            strict=flags.strict,
        )
        return request, job.validate

    return run_service(flags, ("validate", action), read)
