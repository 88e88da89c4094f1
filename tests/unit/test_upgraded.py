"""Tables that Hudi upgraded or downgraded while plans and a failed write were pending: the rows are right after every
command, or the command refuses them and writes nothing. tests/interop/upgrades.py has what was done to them.

Readers of Hudi do not read all of them right: 1.0.2 and 1.2.0 leave the log files of a pending compaction out
(`6_to_…`), and 0.15.0 fails at log files that later releases have written (`8_to_6`, `9_to_6`).
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..interop import layout, ours
from ..interop.upgrades import STORIES
from .tables import digest, merged_rows
from .upgrades import Rows, in_order, right_rows, unpack

_PLANS_END = ("compact", "execute", "execute --mode scheduleAndExecute")
_SOON = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}
_NEW = 1000
_CHANGED = [("b", "b-00"), ("b", "b-01"), ("c", "c-00"), ("c", "c-02"), ("e", "e-00")]
_SERVICES = {
    "execute": ["execute"],
    "compact": ["compact"],
    "all": ["compact", "execute", "clean", "archive", "compact --mode scheduleAndExecute", "orphan-files --min-age 0"],
    "cluster": ["execute --mode scheduleAndExecute"],
    "clean": ["clean"],
    "archive": ["archive"],
    "recover": ["recover --apply --abandoned-after 0"],
    "take the plan back": ["rollback --instant CLUSTERING"],
    "index": ["validate --apply", "index-drop --index record", "index-bootstrap"],
    "index files": ["validate --apply", "index-bootstrap --index files"],
}
_CLUSTERINGS = (".clustering.requested", ".replacecommit.requested")
_NEEDS_METADATA = "has no metadata table, which the record index is a part of"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("upgrades"))


@pytest.fixture(params=STORIES)
def story(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(made: Path, story: str, tmp_path: Path) -> Path:
    """A copy of the table."""
    return Path(shutil.copytree(made / story / "table", tmp_path / "table"))


@pytest.mark.thorough
def test_rows_are_right(made: Path, path: Path, story: str) -> None:
    """At once, by storage; and by the metadata table, too, once it is mended where Hudi left it wrong."""
    before = digest(path)
    assert ours.run("validate", path).code in (0, 5)
    assert digest(path) == before
    assert ours.run("validate", path, "--apply").code == 0
    assert in_order(merged_rows(path)) == right_rows(made, story)


def _run(path: Path, command: str) -> None:
    """What a command does not do, it refuses, and the table stays as it was."""
    plans = [f.name[:17] for f in layout.timeline(path).iterdir() if f.name[17:] in _CLUSTERINGS]
    before = digest(path)
    service, *flags = command.replace("CLUSTERING", plans[0]).split()
    done = ours.run(service, path, *flags, options=None if service == "orphan-files" else _SOON)
    if done.code:
        assert (done.code, digest(path)) == (2, before), (command, done.stderr)
        refused = _NEEDS_METADATA if service.startswith("index") else "only tables of type MERGE_ON_READ"
        assert refused in done.stderr, (command, done.stderr)


@pytest.mark.deep
@pytest.mark.parametrize("commands", _SERVICES.values(), ids=_SERVICES)
def test_rows_stay(made: Path, path: Path, story: str, commands: list[str]) -> None:
    """Also those of the metadata table; what Hudi has left out of it is added first."""
    assert ours.run("validate", path, "--apply").code == 0
    for command in commands:
        _run(path, command)
        assert in_order(merged_rows(path)) == right_rows(made, story), command
        done = ours.run("validate", path)
        assert done.code == 0, (command, done.report, done.stderr)


@pytest.mark.deep
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_rows_are_written(made: Path, path: Path, story: str, operation: str, tmp_path: Path) -> None:
    """Where a new log file would come before older ones, the write is refused until all is clustered."""
    right = right_rows(made, story)
    rows = {
        "id": [key for _, key in _CHANGED],
        "ts": pa.array([_NEW] * len(_CHANGED), pa.int64()),
        "text": ["ours"] * len(_CHANGED),
        "part": [part for part, _ in _CHANGED],
    }
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    write = ("write", path, "--operation", operation, "--input", str(tmp_path / "rows.parquet"))
    assert ours.run("validate", path, "--apply").code == 0
    before = digest(path)
    done = ours.run(*write)
    if STORIES[story].owner == "0.15.0" and STORIES[story].kind == "MERGE_ON_READ":
        assert (done.code, digest(path)) == (2, before)
        assert "is named after its delta commit, as a downgrade leaves it" in done.stderr
        for command in _PLANS_END:
            _run(path, command)
        done = ours.run(*write)
    assert done.code == 0, done.stderr
    assert in_order(merged_rows(path)) == _written(right, operation)
    assert ours.run("validate", path).code == 0


def _written(right: Rows, operation: str) -> Rows:
    keys = {key for _, key in _CHANGED}
    kept = [row for row in right if row[0] not in keys]
    new = [(key, part, _NEW, "ours") for part, key in _CHANGED] if operation == "upsert" else []
    return sorted([*kept, *new])
