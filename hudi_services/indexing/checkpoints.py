"""The checkpoints of the build of a record index, so that a killed build can be resumed.

    <folder>/plan.json             what is built, from which file slices
    <folder>/keys-<n>.json         the runs of task n, written when it is done
    <folder>/shard-<n>.json        the base file of shard n, written when it is done
    <folder>/run-*.arrow           runs of keys (`metadata.record_index.key_reading`)
    <folder>/shard-<n>.hfile       the base file of shard n
    <folder>/log-<n>-<v>           log file v of shard n
    <folder>/closed.json           of a rescale: what the files hold when the old file groups are taken out

The folder is .hoodie/.hudi_services/index-bootstrap, or …/index-rescale. Only this program reads it. The files move to
the metadata table at the end, and not earlier, because writers of Hudi may build the index there at any time.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from ..codecs.json_text import parse_json
from ..errors import CorruptFile, NotFound, SymbolicLink
from ..file_names import OWN_FOLDER, base_slice, parse_log_file
from ..metadata.record_index.entry_reading import EntriesRead, SeenBlocks
from ..metadata.record_index.key_reading import KeyRunRef
from ..metadata.record_index.shard_base_file import WrittenBase
from ..metadata.record_index.shards import Shards, is_shard_id
from ..metadata.records.keys import RECORD_INDEX, SECONDARY_INDEX_PREFIX, group_id
from ..model import FileSlice, LogFile
from ..storage import Storage
from .kinds import NAME

WORK_FOLDER = f"{OWN_FOLDER}/index-bootstrap"
RESCALE_FOLDER = f"{OWN_FOLDER}/index-rescale"
_VERSION = 3
_ANEW = "run without --resume, which begins anew"
_MOST_SHARDS = 100_000
"""Ten times Hudi's own limit."""
_INSTANT = re.compile("[0-9]{17,32}")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """One build: the instant of its delta commit, the file ids of its shards, and the file slices by task.

    `metadata` is a digest of the properties of the metadata table for which the index is built.
    """

    instant: str
    file_ids: tuple[str, ...]
    tasks: tuple[tuple[FileSlice, ...], ...]
    metadata: str
    index: str = RECORD_INDEX
    """The partition of the metadata table: record_index, or a secondary index."""

    @property
    def slices(self) -> list[FileSlice]:
        return [one for task in self.tasks for one in task]

    @property
    def shards(self) -> Shards:
        return Shards(self.file_ids)


@dataclass(frozen=True, slots=True)
class Closed:
    """What the files of a rescale hold when the old file groups are taken out: from then on it follows the table.

    `known`: the file slices of the table whose keys are in them. `logs`: bytes of log files by shard and version.
    """

    known: tuple[FileSlice, ...]
    logs: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints in one folder."""

    storage: Storage
    folder: str

    def save_plan(self, plan: BuildPlan) -> None:
        """Write the plan. Raises AlreadyExists when a plan exists."""
        tasks = [[_entry(one) for one in task] for task in plan.tasks]
        content = {"version": _VERSION, "instant": plan.instant, "file_ids": plan.file_ids, "tasks": tasks}
        content |= {"metadata": plan.metadata, "index": plan.index}
        self.storage.create(self._plan, json.dumps(content).encode())

    def load_plan(self) -> BuildPlan | None:
        """The plan of an unfinished build; None without one. Raises CorruptFile."""
        try:
            content = parse_json(self.storage.read(self._plan))
            if content["version"] != _VERSION:
                raise ValueError(f"version {content['version']}")
            tasks = tuple(tuple(_slice(*entry) for entry in task) for task in content["tasks"])
            instant = content["instant"]
            if not _INSTANT.fullmatch(instant):
                raise ValueError(f"{instant!r:.40} is no instant")
            index = str(content["index"])
            return BuildPlan(instant, _file_ids(index, content["file_ids"]), tasks, str(content["metadata"]), index)
        except NotFound:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise CorruptFile(f"{self.storage.full_path(self._plan)} is no plan of a build: {e}", hint=_ANEW) from e

    def save_read(self, task: int, read: EntriesRead) -> None:
        """Write what task `task` has read."""
        seen = [read.seen.count, read.seen.digest]
        content = {"runs": [_of_run(run) for run in read.runs], "seen": seen, "is_split": read.is_split}
        self.storage.put(f"{self.folder}/keys-{task}.json", json.dumps(content).encode())

    def load_read(self) -> dict[int, EntriesRead]:
        """What the tasks that are done have read, by task. Raises CorruptFile."""

        def read(_: int, content: Any) -> EntriesRead:
            count, digest = content["seen"]
            seen = SeenBlocks(_count(count), str(digest))
            runs = tuple(self._run(**one) for one in content["runs"])
            return EntriesRead(runs, seen=seen, is_split=bool(content["is_split"]))

        return self._load_all("keys-", read)

    def save_shard(self, written: WrittenBase) -> None:
        self.storage.put(f"{self.folder}/shard-{written.shard}.json", json.dumps(asdict(written)).encode())

    def load_shards(self) -> dict[int, WrittenBase]:
        """The base files that are done, by shard. Raises CorruptFile."""
        return self._load_all("shard-", self._written)

    def save_closed(self, closed: Closed) -> None:
        logs = [[shard, version, size] for (shard, version), size in closed.logs.items()]
        known = [_entry(one) for one in closed.known]
        self.storage.put(self._closed, json.dumps({"known": known, "logs": logs}).encode())

    def load_closed(self) -> Closed | None:
        """None when the old file groups were not to be taken out. Raises CorruptFile."""
        try:
            content = parse_json(self.storage.read(self._closed))
            logs = {(_count(shard), _count(version)): _count(size) for shard, version, size in content["logs"]}
            known = tuple(_slice(*entry) for entry in content["known"])
            return Closed(known, logs)
        except NotFound:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise CorruptFile(
                f"{self.storage.full_path(self._closed)} is cut off, or was changed: {e}",
                hint="build the index anew with index-bootstrap",
            ) from e

    def run_prefix(self, task: str) -> str:
        return f"{self.folder}/run-{task}"

    def shard_path(self, shard: int) -> str:
        return f"{self.folder}/shard-{shard}.hfile"

    def log_path(self, shard: int, version: int) -> str:
        return f"{self.folder}/log-{shard}-{version}"

    def forget(self) -> None:
        """Delete the work folder; the plan first, so that no process resumes the rest.

        A link in the folder's place is deleted itself; a folder in the plan's place is deleted with the rest.
        """
        with suppress(SymbolicLink):
            self.storage.delete(self._plan)
        self.storage.delete_tree(self.folder)

    def is_of(self, index: str) -> bool:
        """Whether the folder has a build of this index, or the rest of one."""
        try:
            plan = self.load_plan()
            return plan.index == index if plan is not None else bool(self.storage.list_dir(self.folder)[0])
        except (CorruptFile, SymbolicLink):
            return True

    @property
    def _closed(self) -> str:
        return f"{self.folder}/closed.json"

    @property
    def _plan(self) -> str:
        return f"{self.folder}/plan.json"

    def _load_all(self, prefix: str, read: Callable[[int, Any], _T]) -> dict[int, _T]:
        """The checkpoints whose names begin with `prefix`, decoded by `read`, by number. Raises CorruptFile."""
        found = {}
        for file in self.storage.list_dir(self.folder)[0]:
            number = file.name.removeprefix(prefix).removesuffix(".json")
            if file.name.startswith(prefix) and number.isdecimal():
                try:
                    found[int(number)] = read(int(number), parse_json(self.storage.read(file.path)))
                except (ValueError, KeyError, TypeError, AttributeError) as e:
                    raise CorruptFile(
                        f"{self.storage.full_path(file.path)} is cut off, or was changed: {e}", hint=_ANEW
                    ) from e
        return found

    def _written(self, shard: int, content: Any) -> WrittenBase:
        base = WrittenBase(**content)
        if (base.shard, base.path) != (shard, self.shard_path(shard)):
            raise ValueError(f"it is of another shard than {shard}")
        for number in (base.size, base.entries, base.repeated):
            _count(number)
        return base

    def _run(self, path: Any, rows: Any, hashes: Any) -> KeyRunRef:
        if not isinstance(path, str) or not path.startswith(self.run_prefix("")):
            raise ValueError(f"{path!r:.200} is no run of keys")
        if "/" in path[len(self.folder) + 1 :]:
            raise ValueError(f"{path!r:.200} is in another folder")
        counts, sums = ({int(shard): _count(n) for shard, n in some.items()} for some in (rows, hashes))
        return KeyRunRef(path, counts, sums)


def _of_run(run: KeyRunRef) -> dict[str, Any]:
    rows, hashes = ({str(shard): number for shard, number in some.items()} for some in (run.rows, run.hashes))
    return {"path": run.path, "rows": rows, "hashes": hashes}


def _file_ids(index: str, names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not 0 < len(names) <= _MOST_SHARDS:
        raise ValueError("it has no file ids, or too many")
    if index == RECORD_INDEX:
        is_known = all(isinstance(one, str) and is_shard_id(one) for one in names)
    else:
        name = index.removeprefix(SECONDARY_INDEX_PREFIX)
        is_known = name != index and NAME.fullmatch(name) is not None
        is_known = is_known and names == [group_id(index, n) for n in range(len(names))]
    if not is_known:
        raise ValueError("it names something else than file groups of a key index")
    return tuple(names)


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
