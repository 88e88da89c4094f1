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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import CorruptFile, NotFound, SymbolicLink
from ..files.names import OWN_FOLDER, parse_base_file
from ..metadata.index_base import WrittenBase
from ..metadata.index_keys import KeyRunRef
from ..model import BaseFile
from ..storage import Storage

WORK_FOLDER = f"{OWN_FOLDER}/index-bootstrap"
_PLAN = f"{WORK_FOLDER}/plan.json"
_VERSION = 1
_ANEW = "run without --resume, which begins anew"


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
        # A plan of an earlier version does not say which metadata table it is for.
        return BuildPlan(str(content["instant"]), int(content["buckets"]), tasks, str(content.get("metadata", "")))
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptFile(f"{storage.full_path(_PLAN)} is no plan of a build: {e}", hint=_ANEW) from e


def save_runs(storage: Storage, task: int, runs: Sequence[KeyRunRef]) -> None:
    content = [{"path": run.path, "rows": {str(bucket): rows for bucket, rows in run.rows.items()}} for run in runs]
    storage.put(f"{WORK_FOLDER}/keys-{task}.json", json.dumps(content).encode())


def load_runs(storage: Storage) -> dict[int, list[KeyRunRef]]:
    """The runs of the tasks that are done, by task. Raises CorruptFile."""

    def runs(content: Any) -> list[KeyRunRef]:
        return [KeyRunRef(run["path"], {int(b): int(rows) for b, rows in run["rows"].items()}) for run in content]

    return {number: runs(content) for number, content in _load_all(storage, "keys-").items()}


def save_bucket(storage: Storage, written: WrittenBase) -> None:
    storage.put(f"{WORK_FOLDER}/bucket-{written.bucket}.json", json.dumps(asdict(written)).encode())


def load_buckets(storage: Storage) -> dict[int, WrittenBase]:
    """The base files that are done, by bucket. Raises CorruptFile."""
    return {number: _bucket(storage, number, content) for number, content in _load_all(storage, "bucket-").items()}


def _bucket(storage: Storage, number: int, content: Any) -> WrittenBase:
    try:
        written = WrittenBase(**content)
        # What it names is moved to the metadata table.
        if (written.bucket, written.path) != (number, bucket_path(number)):
            raise ValueError(f"it names {written.path} of bucket {written.bucket}")
        return written
    except (ValueError, TypeError) as e:
        raise CorruptFile(
            f"{storage.full_path(WORK_FOLDER)}/bucket-{number}.json is no note of a bucket: {e}", hint=_ANEW
        ) from e


def run_prefix(task: str) -> str:
    return f"{WORK_FOLDER}/run-{task}"


def bucket_path(bucket: int) -> str:
    return f"{WORK_FOLDER}/bucket-{bucket}.hfile"


def log_work_path(bucket: int, version: int) -> str:
    return f"{WORK_FOLDER}/log-{bucket}-{version}"


def forget(storage: Storage) -> None:
    """Delete all of it; the plan first, so that nobody goes on with the rest.

    A link in the folder's place goes itself.
    """
    with suppress(SymbolicLink):
        storage.delete(_PLAN)
    storage.delete_tree(WORK_FOLDER)


def _load_all(storage: Storage, prefix: str) -> Mapping[int, Any]:
    found = {}
    for file in storage.list_dir(WORK_FOLDER)[0]:
        number = file.name.removeprefix(prefix).removesuffix(".json")
        if file.name.startswith(prefix) and number.isdecimal():
            try:
                found[int(number)] = json.loads(storage.read(file.path))
            except ValueError as e:
                raise CorruptFile(f"{storage.full_path(file.path)} is cut off: {e}", hint=_ANEW) from e
    return found


def _file(partition: str, name: str, size: int) -> BaseFile:
    file = parse_base_file(partition, name, size)
    if file is None:
        raise ValueError(f"{name} is no base file")
    return file
