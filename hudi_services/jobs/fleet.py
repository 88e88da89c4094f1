"""The job over many tables: look at each, rank what is due, and run it within a budget."""

from ..errors import ConfigError
from ..fleet.discovery import find_tables
from ..fleet.fleet_run import FleetRun
from ..fleet.tables_file import TablesLine, read_tables_file
from ..runs.report import Report
from ..runs.request import FleetRequest
from ..runs.running import check_engine
from ..urls import without_secrets
from .services import job_of


def fleet(request: FleetRequest) -> Report:
    """Look at all tables of the list, and with `apply` run what is due; the report tells each table and service.

    Raises ConfigError for a list, or for options in it, that are wrong: before any table is touched. What is wrong with
    a table is told with it, and the others go on.
    """
    report = Report.start(request)
    if request.apply:
        check_engine(request, None)
    run = FleetRun(request, report, job_of)
    with report.phase("find tables"):
        listed = find_tables(read_tables_file(request.base_path), request.options.below)
    if not listed.tables and not listed.failed:
        raise ConfigError(
            f"there is no table at the places in {request.base_path}",
            hint="a pattern stands for folders with a folder .hoodie in them: end it with ** for any depth",
        )
    report.warn(listed.warnings)
    report.warn(f"{one.source}: {_nothing_at(one)}" for one in listed.without_table)
    return run.over(listed)


def _nothing_at(line: TablesLine) -> str:
    place = without_secrets(line.place)
    return (
        f"no table of the list is at {place}, and none is left out"
        if line.is_excluded
        else f"there is no table at {place}"
    )
