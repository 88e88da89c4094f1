"""Clustering merge-on-read tables: the rows stay, with the metadata table and without, and Hudi's rules decide."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, CorruptFile, NothingToDo, UnsupportedTable
from hudi_services.jobs import clustering
from hudi_services.jobs.report import State
from hudi_services.jobs.request import Mode
from hudi_services.merging import merged_logs
from hudi_services.merging.fold import Facts, Merged, Numbers
from hudi_services.merging.rules import MergeRule

from . import histories
from .tables import RELEASES, digest, open_local, request
from .test_merge_histories import CUSTOM, comparable, merged_rows

REFUSED = {"torn_tail", "bucket"}
# In some of these a write of Hudi failed, and nobody has rolled it back.
ELSEWHERE = REFUSED | {"null_in_log", "null_in_base", "null_int", "of_date", "uncommitted"}
CASES = [
    (release, name)
    for release in RELEASES
    for name in histories.names(release)
    if name not in ELSEWHERE and not (release == "1.0.2" and name in CUSTOM)
]
MEMORY = 1 << 20
SORT = {"hoodie.clustering.plan.strategy.sort.columns": "val desc"}


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize(("release", "name"), CASES)
def test_the_rows_stay(release: str, name: str, sort: bool, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(merged_rows(open_local(path), MEMORY))
    dry = clustering.schedule(request(path, Mode.SCHEDULE, SORT if sort else {}, dry_run=True))
    assert dry.rows.before == len(before)
    options = SORT if sort else {}
    planned = clustering.schedule(request(path, Mode.SCHEDULE, options))
    assert planned.state is State.REQUESTED, planned
    done = clustering.execute(request(path, Mode.EXECUTE, options), engine=LocalEngine())
    assert done.state is State.COMPLETED
    table = open_local(path)
    assert comparable(merged_rows(table, MEMORY)) == before
    assert done.rows.after == len(before)
    for one in table.view.live_slices():
        assert one.log_files == () and one.base_file is not None and one.base_instant == done.instant


def always(*_: Any) -> Any:
    """Every log record is preferred."""
    return np.ones(_[3].record.size, np.bool_)


def first(rule: MergeRule, facts: Facts, groups: Sequence[Numbers]) -> Merged:
    """The oldest log record of each key."""
    return Merged(groups[0].copy(), {name: groups[0].copy() for name in facts.holes})


def high(holes: Any, base: Any, log: Any, wins: Any) -> Any:
    """Nothing is filled."""
    return np.where(wins, log, base)


@pytest.mark.parametrize(
    ("release", "name", "place", "lie"),
    [
        ("1.2.0", "default_order", "log_wins", always),
        ("0.15.0", "default_payload", "log_wins", always),
        ("1.2.0", "overwrite_latest", "fold", first),
        ("1.0.2", "default_order", "fold", first),
        ("0.15.0", "mysql", "log_wins", always),
        ("0.15.0", "partial_update", "filled", high),
        ("1.2.0", "partial_update", "filled", high),
        ("1.2.0", "merge_into", "fold", first),
        ("1.2.0", "postgres", "fold", first),
    ],
)
def test_a_merge_that_lies_is_found(
    release: str, name: str, place: str, lie: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = histories.MadeHistory(release, name, tmp_path).path
    before = comparable(merged_rows(open_local(path), MEMORY))
    clustering.schedule(request(path, Mode.SCHEDULE))
    with monkeypatch.context() as patched:
        patched.setattr(merged_logs, place, lie)
        with pytest.raises(CheckFailed, match="does not hold the same rows"):
            clustering.execute(request(path, Mode.EXECUTE), engine=LocalEngine())
    assert comparable(merged_rows(open_local(path), MEMORY)) == before


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", sorted(REFUSED | CUSTOM))
def test_what_is_refused(release: str, name: str, tmp_path: Path) -> None:
    if name not in histories.names(release) or (name in CUSTOM and release != "1.0.2"):
        return
    path = histories.MadeHistory(release, name, tmp_path).path
    before = digest(path)
    with pytest.raises((UnsupportedTable, CorruptFile)):
        clustering.schedule(request(path, Mode.SCHEDULE))
    assert digest(path) == before


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_files_of_a_write_that_is_not_completed(release: str, tmp_path: Path) -> None:
    path = histories.MadeHistory(release, "uncommitted", tmp_path).path
    with pytest.raises(NothingToDo, match="1 has files of a write that is not completed"):
        clustering.schedule(request(path, Mode.SCHEDULE))
