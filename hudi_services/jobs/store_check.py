"""`validate --store`: what the store promises, shown by experiments beside the table, or where there is none yet."""

from ..errors import CheckFailed
from ..runs.report import CheckResult, NamedCheck, Report, TableFacts
from ..runs.request import ValidateRequest
from ..storage import Storage
from ..stores import open_storage
from ..validation.store_promises import show_promises

_RESULTS = {True: CheckResult.PASSED, False: CheckResult.FAILED, None: CheckResult.SKIPPED}


def check_store(request: ValidateRequest, storage: Storage | None = None) -> Report:
    """Try the promises of the store at the base path; no table need be there, and none is read or changed.

    Raises CheckFailed when one is not kept, and the StorageError family.
    """
    report = Report.start(request)
    store = storage or open_storage(request.base_path)
    report.table = TableFacts(store.root)
    with report.phase("look"):
        for number, one in enumerate(show_promises(store), start=1):
            report.checks.append(NamedCheck(one.name, _RESULTS[one.kept], one.detail))
            request.progress("look at the store", number, number)
    broken = [one for one in report.checks if one.result is CheckResult.FAILED]
    if broken:
        raise CheckFailed(
            f"{store.root}: this store does not keep what every change of a table rests on: {broken[0].name} "
            f"({broken[0].detail})",
            hint="keep no table there that anything writes to; docs/stores says what each store promises",
        )
    left_out = [one.name for one in report.checks if one.result is CheckResult.SKIPPED]
    report.reason = "the store keeps what we rely on" + (f"; not offered: {', '.join(left_out)}" if left_out else "")
    return report.completed(None)
