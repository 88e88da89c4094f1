"""What flags mean together: the fields of requests that more than one flag gives, by service."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ConfigError
from ..options import writing_keys
from ..process import under_spark_submit
from ..runs.request import Mode, OrphanFilesMode, WriteOperation
from ..urls import check_url
from .flags import Flags, Publish

if TYPE_CHECKING:
    import pyarrow as pa

Given: TypeAlias = dict[str, Any]
"""Fields of a request that are known."""

_RECORD_INDEX = "record_index"


def chosen_mode(flags: Flags, command: Mode) -> Mode:
    """What to do with plans: --mode, else --schedule, else the command. Raises ConfigError for an unknown mode."""
    if flags.mode:
        for mode in Mode:
            if mode.value.lower() == flags.mode.lower():
                return mode
        raise ConfigError(f"--mode {flags.mode} is none of {', '.join(mode.value for mode in Mode)}")
    return Mode.SCHEDULE if flags.schedule_only else command


def _of_plan(flags: Flags, given: Given) -> Given:
    mode = chosen_mode(flags, given["mode"])
    # As HoodieClusteringJob: scheduling and executing makes an instant of its own.
    instant = None if mode is Mode.SCHEDULE_AND_EXECUTE else given["instant"]
    return {**given, "mode": mode, "instant": instant}


def _of_clustering(flags: Flags, given: Given) -> Given:
    found = _of_plan(flags, given)
    at_once = found["mode"] is Mode.SCHEDULE_AND_EXECUTE
    if flags.publish is Publish.LATE and not at_once:
        raise ConfigError(
            "--publish late needs --mode scheduleAndExecute: a plan that is written by itself is seen by everybody",
            hint="run: hudi-services execute --mode scheduleAndExecute --publish late",
        )
    return {**found, "publish_late": at_once and flags.publish is not Publish.FIRST}


def _of_orphan_files(flags: Flags, given: Given) -> Given:
    if given["quarantine"] is not None and given["delete_older_than_days"] is not None:
        raise ConfigError("--restore and --delete-older-than exclude each other", hint="run one after the other")
    return {**given, "mode": _orphan_files_mode(given, changes=not given["dry_run"])}


def _orphan_files_mode(given: Given, *, changes: bool) -> OrphanFilesMode:
    if given["quarantine"] is not None:
        return OrphanFilesMode.RESTORE
    if given["delete_older_than_days"] is not None:
        return OrphanFilesMode.DELETE
    return OrphanFilesMode.QUARANTINE if changes else OrphanFilesMode.FIND


def _of_index(flags: Flags, given: Given) -> Given:
    if flags.index_types.strip().lower() != _RECORD_INDEX:
        raise ConfigError(
            f"--index-types {flags.index_types} cannot be built by this tool", hint=f"it builds {_RECORD_INDEX}"
        )
    return given


def _of_lookup(flags: Flags, given: Given) -> Given:
    return {**given, "keys": _read_keys(flags.keys_file)}


def _read_keys(path: str) -> "pa.Array":
    """The keys of a UTF-8 text file with one key on each line; empty lines are skipped."""
    import pyarrow as pa

    lines = _text_lines("--keys-file", path, "give a text file with one key on each line")
    return pa.array([line for line in lines if line], pa.string())


def _text_lines(name: str, path: str, hint: str) -> list[str]:
    """The lines of the UTF-8 text file that a flag names. Raises ConfigError."""
    check_url(path, name)
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            return file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(f"{name} {path} cannot be read: {said}", hint=hint) from None


def _of_advise(flags: Flags, given: Given) -> Given:
    from ..advising.event_log import is_event_log
    from ..advising.workload import clauses

    path = flags.predicates_file
    check_url(path, "--predicates")
    if "://" in path or is_event_log(path, _begin(path)):
        return {**given, "event_log": path}
    lines = _text_lines("--predicates", path, "give a text file with one WHERE clause on each line, or an event log")
    return {**given, "predicates": tuple(clauses(lines, f"--predicates {path}"))}


def _begin(path: str) -> bytes:
    """The first bytes of a file, none of one that cannot be read."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(64)
    return b""


def _of_fleet(flags: Flags, given: Given) -> Given:
    if given["resume"] and given["results"] is None:
        raise ConfigError("--resume needs --results", hint="name the file of the run that is to go on")
    files = [flags.report_file, given["results"]]
    if None not in files and len({*map(os.path.realpath, files)}) == 1:
        raise ConfigError("--report and --results name one file", hint="give each a file of its own")
    return {**given, "retries": flags.retry}


def _of_write(flags: Flags, given: Given) -> Given:
    for url in flags.input or ():
        check_url(url, "--input")
    operation = WriteOperation(given["options"][writing_keys.OPERATION].lower())
    master, memory = given["spark_master"], given["spark_memory"]
    if operation.needs_rows:
        if not flags.input:
            raise ConfigError("--input is missing", hint="name the files with the rows, as --input new.parquet")
        _refuse(operation, {"--partitions": flags.partitions})
    else:
        if flags.input:
            raise ConfigError("delete_partition takes no --input", hint="name the partitions with --partitions")
        others = {"--input-format": flags.input_format, "--spark-master": master, "--spark-memory": memory}
        _refuse(operation, others)
    return {
        **given,
        "operation": operation,
        "input": tuple(flags.input or ()),
        "input_format": flags.input_format.value if flags.input_format is not None else "",
        "on_spark": under_spark_submit() or master is not None or memory is not None,
    }


def _refuse(operation: WriteOperation, flags: Mapping[str, object]) -> None:
    """Raise ConfigError when a flag is given that the operation does not take."""
    for name, value in flags.items():
        if value is not None:
            raise ConfigError(f"{operation.value} takes no {name}")


READERS: Mapping[str, Callable[[Flags, Given], Given]] = {
    "clustering": _of_clustering,
    "compaction": _of_plan,
    "orphan-files": _of_orphan_files,
    "index-bootstrap": _of_index,
    "index-lookup": _of_lookup,
    "advise": _of_advise,
    "fleet": _of_fleet,
    "write": _of_write,
}
"""By service: all fields of the request, from those that single flags give. They raise ConfigError."""


def _action_of_plan(flags: Flags, given: Given) -> str:
    try:
        return chosen_mode(flags, given["mode"]).value
    except ConfigError:
        mode: Mode = given["mode"]
        return mode.value


ACTIONS: Mapping[str, Callable[[Flags, Given], str]] = {
    "clustering": _action_of_plan,
    "compaction": _action_of_plan,
    "orphan-files": lambda flags, given: _orphan_files_mode(given, changes=flags.apply).value,
    "fleet": lambda flags, given: "run" if flags.apply else "look",
    "validate": lambda flags, given: "repair" if flags.apply else "validate",
    "write": lambda flags, given: flags.operation.value if flags.operation is not None else "write",
}
"""By service: the action in the report of a run whose flags are wrong; elsewhere it is the service."""
