"""What a command may begin before its job does: the process that workers will be forked from."""

from ..options import file_keys
from ..process import is_this_machine, under_spark_submit
from .request import IndexRequest, Mode, PlanRequest, Request, SparkRequest


def get_ready(request: Request) -> None:
    """Fork that process where tasks may come to this machine, while this process has no threads."""
    if not isinstance(request, PlanRequest | IndexRequest) or request.dry_run:
        return
    if isinstance(request, PlanRequest) and request.mode is Mode.SCHEDULE:
        return
    if is_local(request) or (is_this_machine(request.spark_master) and not under_spark_submit()):
        # Imported here: a command without tasks starts no process.
        from ..preloading import fork_ahead

        fork_ahead()


def is_local(request: SparkRequest) -> bool:
    """Whether processes of this machine run the tasks."""
    has_tasks_for_both = isinstance(request, PlanRequest | IndexRequest)
    return has_tasks_for_both and request.options[file_keys.ENGINE] == file_keys.LOCAL
