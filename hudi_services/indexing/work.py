"""What a build of the record index has done so far, kept beside the table, so that a killed one can be gone on with.

    .hoodie/.hudi_services/index-bootstrap/plan.json         what is built, from which base files
    .hoodie/.hudi_services/index-bootstrap/keys-<n>.json     the runs of task n, written when it is done
    .hoodie/.hudi_services/index-bootstrap/bucket-<n>.json   the base file of bucket n, written when it is done
    .hoodie/.hudi_services/index-bootstrap/run-*.arrow       runs of keys (`metadata.index_keys`)
    .hoodie/.hudi_services/index-bootstrap/bucket-<n>.hfile  the base file of bucket n
    .hoodie/.hudi_services/index-bootstrap/log-<n>-<v>       log file v of bucket n

Nobody but this service looks here. The files go to the metadata table at the end: writers of Hudi may build the index
there at any time.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from ..errors import CorruptFile, NotFound
from ..files.names import OWN_FOLDER, parse_base_file
from ..metadata.index_base import WrittenBase
from ..metadata.index_keys import KeyRunRef
from ..model import BaseFile
from ..storage import Storage

WORK_FOLDER = f"{OWN_FOLDER}/index-bootstrap"
_PLAN = f"{WORK_FOLDER}/plan.json"
_VERSION = 1
_MOST_BUCKETS = 100_000
"""Hudi's own limit is a tenth of it."""
_INSTANT = re.compile("[0-9]{17,32}")
_BEGIN_ANEW = "run without --resume, which begins anew"
# What json and the checks of its values raise.
_INVALID = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)

_Note = TypeVar("_Note")


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """One build: the instant of its delta commit, its number of buckets, and the base files by task.

    `metadata` is a digest of the properties of the metadata table that it is for.
    """

    instant: str
    buckets: int
    tasks: tuple[tuple[BaseFile, ...], ...]
    metadata: str

    @property
    def files(self) -> list[BaseFile]:
        return [file for task in self.tasks for file in task]


def save_plan(storage: Storage, plan: BuildPlan) -> None:
    """Raises AlreadyExists when there is one."""
    tasks = [[[file.partition, file.name, file.size] for file in task] for task in plan.tasks]
    content = {"version": _VERSION, "instant": plan.instant, "buckets": plan.buckets, "tasks": tasks}
    content["metadata"] = plan.metadata
    storage.create(_PLAN, json.dumps(content).encode())


def load_plan(storage: Storage) -> BuildPlan | None:
    """The plan of a build that was not finished, None when there is none. Raises CorruptFile."""
    try:
        content = json.loads(storage.read(_PLAN))
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']}")
        tasks = tuple(tuple(_file(*entry) for entry in task) for task in content["tasks"])
        instant, buckets = content["instant"], _number(content["buckets"])
        if not _INSTANT.fullmatch(instant) or not 0 < buckets <= _MOST_BUCKETS:
            raise ValueError(f"{buckets} buckets at {instant}")
        # A plan of an earlier version does not say which metadata table it is for.
        return BuildPlan(instant, buckets, tasks, str(content.get("metadata", "")))
    except NotFound:
        return None
    except _INVALID as e:
        raise CorruptFile(f"{storage.full_path(_PLAN)} is no plan of a build: {e}", hint=_BEGIN_ANEW) from e


def save_runs(storage: Storage, task: int, runs: Sequence[KeyRunRef]) -> None:
    content = [{"path": run.path, "rows": {str(bucket): rows for bucket, rows in run.rows.items()}} for run in runs]
    storage.put(f"{WORK_FOLDER}/keys-{task}.json", json.dumps(content).encode())


def load_runs(storage: Storage) -> Mapping[int, list[KeyRunRef]]:
    """The runs of the tasks that are done, by task. Raises CorruptFile."""

    def run_of(entry: Any) -> KeyRunRef:
        path, rows = entry["path"], {int(bucket): _number(rows) for bucket, rows in entry["rows"].items()}
        if not path.startswith(run_prefix("")) or "/" in path.removeprefix(run_prefix("")):
            raise ValueError(f"{path} is no run of keys")
        return KeyRunRef(path, rows)

    def runs_of(_: int, content: Any) -> list[KeyRunRef]:
        if not isinstance(content, list):
            raise ValueError("it is no list of runs")
        return [run_of(entry) for entry in content]

    return _load_all(storage, "keys-", runs_of)


def save_bucket(storage: Storage, written: WrittenBase) -> None:
    storage.put(f"{WORK_FOLDER}/bucket-{written.bucket}.json", json.dumps(asdict(written)).encode())


def load_buckets(storage: Storage) -> Mapping[int, WrittenBase]:
    """The base files that are done, by bucket. Raises CorruptFile."""

    def base_of(bucket: int, content: Any) -> WrittenBase:
        size, entries, repeated = (_number(content[name]) for name in ("size", "entries", "repeated"))
        written = WrittenBase(bucket, bucket_path(bucket), size, entries, repeated)
        # The file will be moved to the metadata table: a note may name no other.
        if asdict(written) != content:
            raise ValueError(f"it names the bucket {content['bucket']} and the file {content['path']}")
        return written

    return _load_all(storage, "bucket-", base_of)


def run_prefix(task: str) -> str:
    return f"{WORK_FOLDER}/run-{task}"


def bucket_path(bucket: int) -> str:
    return f"{WORK_FOLDER}/bucket-{bucket}.hfile"


def log_work_path(bucket: int, version: int) -> str:
    return f"{WORK_FOLDER}/log-{bucket}-{version}"


def forget(storage: Storage) -> None:
    """Delete all of it; the plan first, so that nobody goes on with the rest."""
    storage.delete(_PLAN)
    storage.delete_all([file.path for file in storage.list_tree(WORK_FOLDER)], lambda _: None)
    storage.remove_empty_dirs(WORK_FOLDER)


def _load_all(storage: Storage, prefix: str, decode: Callable[[int, Any], _Note]) -> Mapping[int, _Note]:
    """The notes by their number. Raises CorruptFile."""
    found = {}
    for file in storage.list_dir(WORK_FOLDER)[0]:
        number = file.name.removeprefix(prefix).removesuffix(".json")
        if file.name.startswith(prefix) and number.isdecimal():
            try:
                found[int(number)] = decode(int(number), json.loads(storage.read(file.path)))
            except _INVALID as e:
                problem = f"{storage.full_path(file.path)} is cut off, or was changed: {e}"
                raise CorruptFile(problem, hint=_BEGIN_ANEW) from e
    return found


def _number(value: Any) -> int:
    """A count or a size."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _file(partition: str, name: str, size: int) -> BaseFile:
    file = parse_base_file(partition, name, _number(size))
    if file is None:
        raise ValueError(f"{name} is no base file")
    return file
