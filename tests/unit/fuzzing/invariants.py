"""What holds whatever a file contains, judged by the table as it was before it was damaged."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_services import errors
from hudi_services.errors import HudiServicesError
from hudi_services.table.view import FileSystemView

from ..tables import listed_view, open_local
from .commands import Command, Outcome

Tree: TypeAlias = Mapping[str, tuple[int, int]]
"""Every file by its path: size and inode. Nothing is written in place, so that equal ones have equal bytes."""

_PROPERTIES = ".hoodie/hoodie.properties"
_FAMILY = {
    name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, HudiServicesError)
} | {"StaleInput", "WriterAtWork"}


@dataclass
class ExpectedState:
    """The intact table, and what each command makes of it (`without_damage`, the folder after it)."""

    path: Path
    without_damage: Callable[[Command], Path]
    _after: dict[str, "ExpectedState"] = field(default_factory=dict)

    @cached_property
    def tree(self) -> Tree:
        return tree_of(self.path)

    @cached_property
    def visible(self) -> frozenset[str]:
        found = files_seen(self.path)
        assert found is not None
        return found

    @cached_property
    def rows(self) -> pa.Table:
        found = rows_of(self.path, self.visible)
        assert found is not None
        return found

    @cached_property
    def locations(self) -> dict[str, tuple[str, str]]:
        """Partition and file id of every record key."""
        found = {}
        for path in self.visible:
            partition, _, name = path.rpartition("/")
            keys = pq.read_table(self.path / path, columns=["_hoodie_record_key"], partitioning=None)
            found |= dict.fromkeys(keys["_hoodie_record_key"].to_pylist(), (partition, name.split("_")[0]))
        return found

    def after(self, command: Command) -> "ExpectedState":
        if command.name not in self._after:
            self._after[command.name] = ExpectedState(self.without_damage(command), self.without_damage)
        return self._after[command.name]


def tree_of(path: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            status = os.lstat(file)
            found[os.path.relpath(file, path)] = (status.st_size, status.st_ino)
    return found


def files_seen(path: Path, *, with_metadata: bool = False) -> frozenset[str] | None:
    """The base files that readers see, with the metadata table (where there is one) or without; None: unreadable."""
    try:
        table = open_local(path)
        view: FileSystemView = table.view if with_metadata else listed_view(table)
        slices = [one for partition in view.partitions() for one in view.latest_slices(partition)]
    except HudiServicesError:
        return None
    return frozenset(one.base_file.path for one in slices if one.base_file is not None)


def rows_of(path: Path, visible: frozenset[str] | None) -> pa.Table | None:
    """Their rows, by key; None when they cannot be read, by checksums of pages, too."""
    if visible is None:
        return None
    try:
        tables = [
            pq.read_table(path / file, partitioning=None, page_checksum_verification=True).drop_columns(
                ["_hoodie_file_name"]
            )
            for file in sorted(visible)
        ]
        return pa.concat_tables(tables, promote_options="permissive").sort_by("_hoodie_record_key") if tables else None
    except (OSError, pa.ArrowException, KeyError):
        return None


def violations(
    expected: ExpectedState, damaged: Path, before: Tree, file: str, command: Command, outcome: Outcome, after: Path
) -> list[str]:
    """What must not be.

    `damaged` is the table with the damaged `file`, `after` a copy of it over which the command has run, with the tree
    `before`.
    """
    now = tree_of(after)
    found = [*_untyped(outcome)]
    if command.is_dry and before != now:
        found.append(f"a dry run wrote: {sorted(set(before.items()) ^ set(now.items()))[:4]}")
    if not command.is_dry:
        was = files_seen(damaged)
        found += _lost(expected, was, file, command, before, now)
        found += _other_rows(expected, was, damaged, command, outcome, after)
    if outcome.code == 0:
        found += _wrong_result(expected, damaged, file, command, outcome, after)
    return found


def _untyped(outcome: Outcome) -> Iterator[str]:
    error = outcome.document.get("error") or {}
    if error and error["type"] not in _FAMILY:
        yield f"an error outside the family: {error['type']}: {error['message']}"
    if "Traceback" in outcome.err:
        yield f"a traceback: {outcome.err[-1500:]}"
    if outcome.code not in range(8) or outcome.document.get("exit_code") != outcome.code:
        yield f"exit code {outcome.code}, and {outcome.document.get('exit_code')} in the report"
    if any((character < " " and character != "\n") or character == "\u202e" for character in outcome.err + outcome.out):
        yield "characters that act on a terminal"


def _lost(
    expected: ExpectedState, was: frozenset[str] | None, file: str, command: Command, before: Tree, now: Tree
) -> Iterator[str]:
    """Files that readers need, completed instants and the table's properties are still there, byte for byte.

    What readers of the damaged table do not see (`was`), as of a commit that is gone, is not needed.
    """
    seen = expected.visible if was is None else expected.visible & was
    needed = {path for path in expected.tree if path in seen or _is_history(path)}
    gone = {path for path in needed if path in before and now.get(path) != before[path]}
    if command.takes_back:
        gone -= {path for path in gone if command.takes_back in path}
    if gone:
        yield f"files that readers need are gone or changed: {sorted(gone)[:4]}"
    if file != _PROPERTIES and _PROPERTIES not in now:
        yield "hoodie.properties is gone"


def _is_history(path: str) -> bool:
    """Whether it is a completed write of the table's own timeline."""
    folder, _, name = path.rpartition("/")
    return folder in (".hoodie", ".hoodie/timeline") and name.endswith((".commit", ".replacecommit"))


def _other_rows(
    expected: ExpectedState, was: frozenset[str] | None, damaged: Path, command: Command, outcome: Outcome, after: Path
) -> Iterator[str]:
    """Readers see what they saw, in the intact or the damaged table, or what the command makes of the intact one."""
    visible = files_seen(after)
    if visible is None or visible in (expected.visible, was):
        return
    if command.changes_view and visible == expected.after(command).visible:
        return
    if command.takes_back and (was != expected.visible or expected.after(command).visible == expected.visible):
        # Taken back is something else than in the intact table, or what is refused there, as by a plan that reads it.
        return
    rows = rows_of(after, visible)
    wanted = [expected.rows, rows_of(damaged, was)]
    if command.changes_view:
        wanted.append(expected.after(command).rows)
    if rows is None or not any(rows.equals(one) for one in wanted if one is not None):
        what = "cannot be read" if rows is None else f"are others ({rows.num_rows} of {expected.rows.num_rows})"
        yield f"exit {outcome.code}: the rows {what}"


def _wrong_result(
    expected: ExpectedState, damaged: Path, file: str, command: Command, outcome: Outcome, after: Path
) -> Iterator[str]:
    """What a command says that it did, is done."""
    document = outcome.document
    if command.name == "schedule" and document.get("state") == "requested":
        planned = _planned(after, document["instant"])
        seen = expected.visible | (files_seen(damaged) or frozenset())
        if not planned or not planned <= seen:
            yield f"the plan names files that readers do not see: {sorted((planned or set()) - seen)[:4]}"
    # Without its own file a partition is none for readers that list storage; the metadata table does not care.
    if command.name.startswith("validate") and not file.endswith(".hoodie_partition_metadata"):
        listed, known = files_seen(after) or frozenset(), files_seen(after, with_metadata=True) or frozenset()
        unsure = {row["file"] for row in document["tables"].get("unsure", [])}
        if wrong := [path for path in listed ^ known if path.rsplit("/", 1)[-1] not in unsure]:
            yield f"the metadata table lists others than storage: {sorted(wrong)[:4]}"
    if command.name == "index-lookup" and not file.startswith(".hoodie/metadata/record_index/"):
        rows = document["tables"].get("locations", [])
        told = {row["key"]: (row["partition"], row["file_id"]) for row in rows}
        if told != expected.locations:
            yield f"the index tells {len(told)} locations, of {len(expected.locations)} that there are"


def _planned(path: Path, instant: str) -> set[str] | None:
    timeline = open_local(path).timeline
    found = next((one for one in timeline.pending_clusterings() if one.ts == instant), None)
    if found is None:
        return None
    slices = [one for group in timeline.read_plan(found).groups for one in group.slices]
    return {one.data_file.removeprefix(f"{path}/") for one in slices}
