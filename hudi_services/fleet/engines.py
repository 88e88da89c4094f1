"""The engines of a run over many tables: one Spark application, or processes of this machine that tables share."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from ..engine import Engine
from ..options import file_keys
from ..process import usable_cores
from ..runs.ahead import is_local
from ..runs.request import FleetRequest
from .model import FleetTable


@dataclass(frozen=True, slots=True)
class FleetEngines:
    """What runs the tasks of services that rewrite data."""

    lent: Callable[[FleetTable], AbstractContextManager[Engine | None]]
    """A context with an engine that nobody else has meanwhile; None for Spark, whose session all share."""
    tasks: int = 0
    """How many tasks run at the same time, in other processes than this one."""
    cancel: Callable[[], object] = lambda: None
    """End what Spark runs."""


@contextmanager
def engines_of(request: FleetRequest, at_once: int, tables: Callable[[], int]) -> Iterator[FleetEngines]:
    """The engines for `at_once` tables at a time. `tables` counts those that still need one: where there are fewer,
    each has more of the cores; nothing is started where there is none."""
    if not tables():
        yield FleetEngines(lambda table: nullcontext())
    elif is_local(request):
        with _local(at_once, tables) as engines:
            yield engines
    else:
        with _spark(request) as engines:
            yield engines


@contextmanager
def _local(at_once: int, tables: Callable[[], int]) -> Iterator[FleetEngines]:
    # Imported here: Spark's engine needs no processes.
    from ..processes.process_engine import ProcessEngine

    cores = usable_cores()
    idle = defaultdict[int, SimpleQueue[ProcessEngine]](SimpleQueue)
    with ExitStack() as ends:

        @contextmanager
        def lent(table: FleetTable) -> Iterator[Engine]:
            share = max(1, cores // min(at_once, max(1, tables())))
            share = min(share, table.listed.options[file_keys.MAX_PARALLELISM] or share)
            try:
                engine = idle[share].get_nowait()
            except Empty:
                # Where tables last long, there are more than at once: their tasks share the cores, as the system says.
                engine = ProcessEngine(share, engines=at_once)
                ends.callback(engine.close)
            try:
                yield engine
            finally:
                idle[share].put(engine)

        # Those that began with a smaller share may go on beside one with all cores.
        yield FleetEngines(lent, tasks=2 * max(cores, at_once))


@contextmanager
def _spark(request: FleetRequest) -> Iterator[FleetEngines]:
    # Imported here: a run without such services must not load Spark.
    from ..spark.session import spark

    # Jobs of one table would else have all cores until they end, however many other tables wait.
    fair = {"spark.scheduler.mode": "FAIR"}
    with spark("hudi_services fleet", request.spark_master, request.spark_memory, fair) as there:
        context = there.context

        @contextmanager
        def lent(table: FleetTable) -> Iterator[None]:
            context.setLocalProperty("spark.scheduler.pool", table.listed.url)
            yield None

        def cancel() -> None:
            # The Java process may be gone, too.
            with suppress(Exception):
                context.cancelAllJobs()

        yield FleetEngines(lent, context.defaultParallelism, cancel)
