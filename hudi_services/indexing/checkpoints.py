"""The checkpoints of a record index build, so that a killed build can be resumed.

    .hoodie/.hudi_services/index-bootstrap/plan.json             what is built, from which file slices
    .hoodie/.hudi_services/index-bootstrap/keys-<n>.json         the runs of task n, written when it is done
    .hoodie/.hudi_services/index-bootstrap/shard-<n>.json        the base file of shard n, written when it is done
    .hoodie/.hudi_services/index-bootstrap/run-*.arrow           runs of keys (`metadata.record_index.key_reading`)
    .hoodie/.hudi_services/index-bootstrap/shard-<n>.hfile       the base file of shard n
    .hoodie/.hudi_services/index-bootstrap/log-<n>-<v>           log file v of shard n

Only this service reads the folder. The files move to the metadata table at the end, and not earlier, because writers of
Hudi may build the index there at any time.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from ..codecs.json_text import parse_json
from ..errors import CorruptFile, NotFound, SymbolicLink
from ..file_names import OWN_FOLDER, base_slice, parse_log_file
from ..metadata.record_index.key_reading import KeyRunRef
from ..metadata.record_index.shard_base_file import WrittenBase
from ..model import FileSlice, LogFile
from ..storage import Storage

WORK_FOLDER = f"{OWN_FOLDER}/index-bootstrap"
_PLAN = f"{WORK_FOLDER}/plan.json"
_VERSION = 2
_ANEW = "run without --resume, which begins anew"
_MOST_SHARDS = 100_000
"""Ten times Hudi's own limit."""
_INSTANT = re.compile("[0-9]{17,32}")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """One build: the instant of its delta commit, its number of shards, and the file slices by task.

    `metadata` is a digest of the properties of the metadata table for which the index is built.
    """

    instant: str
    shards: int
    tasks: tuple[tuple[FileSlice, ...], ...]
    metadata: str

    @property
    def slices(self) -> list[FileSlice]:
        return [one for task in self.tasks for one in task]


def save_plan(storage: Storage, plan: BuildPlan) -> None:
    """Write the plan. Raises AlreadyExists when a plan exists."""
    tasks = [[_entry(one) for one in task] for task in plan.tasks]
    content = {"version": _VERSION, "instant": plan.instant, "shards": plan.shards, "tasks": tasks}
    content["metadata"] = plan.metadata
    storage.create(_PLAN, json.dumps(content).encode())


def load_plan(storage: Storage) -> BuildPlan | None:
    """The plan of an unfinished build; None without one. Raises CorruptFile."""
    try:
        content = parse_json(storage.read(_PLAN))
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']}")
        tasks = tuple(tuple(_slice(*entry) for entry in task) for task in content["tasks"])
        # Plans of earlier versions have no digest of the metadata table.
        instant = content["instant"]
        if not _INSTANT.fullmatch(instant):
            raise ValueError(f"{instant!r:.40} is no instant")
        return BuildPlan(instant, _shards(content), tasks, str(content.get("metadata", "")))
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorruptFile(f"{storage.full_path(_PLAN)} is no plan of a build: {e}", hint=_ANEW) from e


def save_runs(storage: Storage, task: int, runs: Sequence[KeyRunRef]) -> None:
    content = [{"path": run.path, "rows": {str(shard): rows for shard, rows in run.rows.items()}} for run in runs]
    storage.put(f"{WORK_FOLDER}/keys-{task}.json", json.dumps(content).encode())


def load_runs(storage: Storage) -> dict[int, list[KeyRunRef]]:
    """The runs of the tasks that are done, by task. Raises CorruptFile."""

    def runs(_: int, content: Any) -> list[KeyRunRef]:
        if not isinstance(content, list):
            raise ValueError("it is no list of runs")
        return [KeyRunRef(_run(one["path"]), {int(b): _count(n) for b, n in one["rows"].items()}) for one in content]

    return _load_all(storage, "keys-", runs)


def save_shard(storage: Storage, written: WrittenBase) -> None:
    storage.put(f"{WORK_FOLDER}/shard-{written.shard}.json", json.dumps(asdict(written)).encode())


def load_shards(storage: Storage) -> dict[int, WrittenBase]:
    """The base files that are done, by shard. Raises CorruptFile."""
    return _load_all(storage, "shard-", _written)


def run_prefix(task: str) -> str:
    return f"{WORK_FOLDER}/run-{task}"


def shard_path(shard: int) -> str:
    return f"{WORK_FOLDER}/shard-{shard}.hfile"


def log_work_path(shard: int, version: int) -> str:
    return f"{WORK_FOLDER}/log-{shard}-{version}"


def forget(storage: Storage) -> None:
    """Delete the work folder; the plan first, so that no process resumes the rest.

    A link in the folder's place is deleted itself; a folder in the plan's place is deleted with the rest.
    """
    with suppress(SymbolicLink):
        storage.delete(_PLAN)
    storage.delete_tree(WORK_FOLDER)


def _load_all(storage: Storage, prefix: str, read: Callable[[int, Any], _T]) -> dict[int, _T]:
    """The checkpoints whose names begin with `prefix`, decoded by `read`, by number. Raises CorruptFile."""
    found = {}
    for file in storage.list_dir(WORK_FOLDER)[0]:
        number = file.name.removeprefix(prefix).removesuffix(".json")
        if file.name.startswith(prefix) and number.isdecimal():
            try:
                found[int(number)] = read(int(number), parse_json(storage.read(file.path)))
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise CorruptFile(f"{storage.full_path(file.path)} is cut off, or was changed: {e}", hint=_ANEW) from e
    return found


def _written(shard: int, content: Any) -> WrittenBase:
    base = WrittenBase(**content)
    if (base.shard, base.path) != (shard, shard_path(shard)):
        raise ValueError(f"it is of another shard than {shard}")
    for number in (base.size, base.entries, base.repeated):
        _count(number)
    return base


def _run(path: Any) -> str:
    if not isinstance(path, str) or not path.startswith(run_prefix("")) or "/" in path[len(WORK_FOLDER) + 1 :]:
        raise ValueError(f"{path!r:.200} is no run of keys")
    return path


def _shards(content: Mapping[str, Any]) -> int:
    shards = _count(content["shards"])
    if not 0 < shards <= _MOST_SHARDS:
        raise ValueError(f"{shards} shards")
    return shards


def _count(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise TypeError(f"{number!r:.40} is no count")
    return number


def _entry(file_slice: FileSlice) -> list[Any]:
    logs = [[log.name, log.size] for log in file_slice.log_files]
    if file_slice.base_file is None:
        return [file_slice.partition, file_slice.base_instant, None, logs]
    return [file_slice.partition, file_slice.base_file.name, file_slice.base_file.size, logs]


def _slice(partition: Any, name: Any, size: Any, logs: Any) -> FileSlice:
    """A slice with a base file of this name and size; without a size, `name` is the base instant of log files alone."""
    if not isinstance(partition, str):
        raise TypeError(f"{partition!r:.40} is no partition")
    own = tuple(_log(partition, *log) for log in logs)
    if size is not None:
        return replace(base_slice(partition, name, _count(size)), log_files=own)
    if not own or not _INSTANT.fullmatch(name):
        raise ValueError(f"{name!r:.40} is no slice of log files")
    return FileSlice(partition, own[0].file_id, name, None, own)


def _log(partition: str, name: Any, size: Any) -> LogFile:
    log = parse_log_file(partition, name, _count(size))
    if log is None:
        raise ValueError(f"{name} is no log file")
    return log
