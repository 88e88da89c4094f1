"""The function of the Python API that looks after many tables."""

import os

from ..jobs.services import job_of
from ..runs.request import FleetRequest
from .arguments import EngineName, OptionValues, engine_layer, layer_of, metrics_layer, options_over
from .call import Progress, call
from .result import Result


def run_fleet(
    tables_file: "str | os.PathLike[str]",
    *,
    apply: bool = False,
    results: str | None = None,
    resume: bool = False,
    longest_query_minutes: int | None = None,
    options: OptionValues | None = None,
    conf_file: str | None = None,
    engine: EngineName | None = None,
    metrics: str | None = None,
    retries: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Look at all tables of a list, and with `apply` run the services that are due, those first that gain most.

    `tables_file` is a path or URL of the list, as docs/fleet.md describes it. `results`: a local file that gets one
    JSON line for each table; with `resume` those that have a finished line there are left out. Limits are options:
    hudi.services.fleet.max.bytes, hudi.services.time.limit and hudi.services.fleet.requests.per.second. The other
    arguments are those of `open`.

    The result has the lists `tables` and `services`. Raises PartlyDone when a table cannot be read, or a service failed
    or met another writer, after all others: the `result` of the error has these lists, too. Raises ConfigError for a
    list that is wrong, before anything else.
    """
    request = FleetRequest(
        base_path=os.fspath(tables_file),
        options=options_over(
            [
                engine_layer("engine of run_fleet()", engine),
                metrics_layer("metrics of run_fleet()", metrics),
                layer_of("options of run_fleet()", options),
            ],
            conf_file,
        ),
        apply=apply,
        results=results,
        resume=resume,
        longest_query_minutes=longest_query_minutes,
        retries=retries,
    )
    return call(request, job_of(request), progress)
