"""One look at a table with all checks of its health: what `doctor`, `report` and `fleet` begin with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..health.all_checks import examine
from ..health.examination import Examination
from ..health.model import CheckOutcome
from ..storage import Storage
from .opening import open_supported
from .report import Report
from .request import HealthRequest
from .run import Run

R = TypeVar("R", bound=HealthRequest)


@dataclass(frozen=True, slots=True)
class TableLook(Generic[R]):
    """The run that opened the table, the facts that were looked up, and what each check has found."""

    run: Run[R]
    seen: Examination
    outcomes: Sequence[CheckOutcome]


def look_at(request: R, storage: Storage | None, report: Report) -> TableLook[R]:
    """Open the table, whatever commands refuse of it, and make every check. Raises what `open_supported` raises."""
    run = open_supported(request, storage, report, repairs=True)
    seen = Examination(run.table, run.options, run.settings, request.longest_query_minutes)
    with report.phase("look"):
        return TableLook(run, seen, examine(seen))
