"""What each kind of instant says about files is taught in one place, and each judge learns it there."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_services.cleaning.plan import CleanRules, plan_clean
from hudi_services.codecs import avro
from hudi_services.codecs.clean_plan import CleanerPlan, encode_cleaner_plan
from hudi_services.codecs.clustering_plan import ClusteringGroup, ClusteringPlan, SliceInfo, encode_clustering_plan
from hudi_services.codecs.compaction_plan import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_services.codecs.rollback_plan import (
    PartitionRollback,
    RollbackMetadata,
    RollbackPlan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_services.commit.newest_files import check_superseded
from hudi_services.errors import CheckFailed, CorruptFile
from hudi_services.file_names import base_file_name
from hudi_services.file_records.expected_state import ExpectedState
from hudi_services.model import CommitMetadata, WriteStat, path_in
from hudi_services.options import resolve
from hudi_services.orphan_files.find import find_orphan_files
from hudi_services.orphan_files.model import Ages, OrphanKind, ReasonToStay
from hudi_services.stores import open_storage
from hudi_services.table import file_ledger
from hudi_services.table.file_ledger import KINDS, ActionEffect, FileLedger, FileName
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, Instant, State
from hudi_services.timeline.layout import layout_for
from hudi_services.versions import VERSIONS

from .tables import open_local, unpack
from .test_clean import VERSIONS_1, clustered
from .test_layers import PACKAGE
from .test_orphan_files import ID, NOBODYS, plans, put_file
from .test_timeline import FOLDER, commit

__all__ = ["clustered"]

RELEASE = VERSIONS[9].release
TS, TARGET, END = "20260101000000002", "20260101000000001", "20260101000000003"
GROUP = ("p", ID)
FILE = ("p", base_file_name(ID, "0-1-1", TARGET))

PLANNED = {
    Action.COMMIT: {"a write is pending"},
    Action.DELTA_COMMIT: {"a write is pending"},
    Action.REPLACE_COMMIT: {"a write is pending", "planned", "in a clustering"},
    Action.CLUSTERING: {"a write is pending", "planned", "in a clustering"},
    Action.COMPACTION: {"a write is pending", "planned", "in a compaction", "begins a slice"},
    Action.LOG_COMPACTION: {"a write is pending", "planned", "in a compaction"},
    Action.CLEAN: {"going"},
    Action.ROLLBACK: {"going", "its target is being undone"},
    Action.RESTORE: set[str](),
    Action.SAVEPOINT: {"held"},
    Action.INDEXING: set[str](),
}
"""What a pending instant says of a file that its plan names, if it has one."""
DONE = {
    Action.COMMIT: {"written"},
    Action.DELTA_COMMIT: {"written"},
    Action.REPLACE_COMMIT: {"written", "replaced"},
    Action.CLEAN: {"cleaned"},
    Action.ROLLBACK: {"its target was rolled back", "cancels blocks"},
    Action.RESTORE: {"cancels blocks"},
    Action.SAVEPOINT: {"held"},
    Action.INDEXING: set[str](),
}
"""As `PLANNED`, of a completed instant."""


def savepoint() -> bytes:
    files = {"name": "savepointDataFile", "type": {"type": "array", "items": "string"}}
    held = {"type": "map", "values": {"type": "record", "name": "P", "fields": [files]}}
    schema = json.dumps({"type": "record", "name": "S", "fields": [{"name": "partitionMetadata", "type": held}]})
    record = {"partitionMetadata": {FILE[0]: {"savepointDataFile": [FILE[1]]}}}
    return avro.write_container(avro.parse_schema(schema, "f"), record)


def clustering() -> bytes:
    group = ClusteringGroup((SliceInfo(*GROUP, f"hdfs://elsewhere/{path_in(*FILE)}"),))
    return encode_clustering_plan(ClusteringPlan((group,), "S"), RELEASE)


def compaction() -> bytes:
    return encode_compaction_plan(CompactionPlan((CompactionOperation(*GROUP, TARGET, FILE[1]),)), RELEASE)


PLANS: dict[Action, Callable[[], bytes]] = {
    Action.REPLACE_COMMIT: clustering,
    Action.CLUSTERING: clustering,
    Action.COMPACTION: compaction,
    Action.LOG_COMPACTION: compaction,
    Action.CLEAN: lambda: encode_cleaner_plan(CleanerPlan("P", "", "", {"p": (f"s3://b/{FILE[1]}",)}), RELEASE),
    Action.ROLLBACK: lambda: encode_rollback_plan(
        RollbackPlan(TARGET, "commit", (PartitionRollback("p", (f"/t/{path_in(*FILE)}",)),)), RELEASE
    ),
    Action.SAVEPOINT: savepoint,
}


def written(*, replaces: bool = False) -> bytes:
    stat = WriteStat.of_file(path_in(*FILE), 1, 1, ID)
    return commit(9, CommitMetadata("UPSERT", {"p": (stat,)}, replaced={"p": (ID,)} if replaces else None))


RESULTS: dict[Action, Callable[[], bytes]] = {
    Action.COMMIT: written,
    Action.DELTA_COMMIT: written,
    Action.REPLACE_COMMIT: lambda: written(replaces=True),
    Action.CLEAN: lambda: b"not read",
    Action.ROLLBACK: lambda: encode_rollback_metadata(RollbackMetadata(TS, TARGET, "commit", {}), RELEASE),
    Action.SAVEPOINT: savepoint,
}


def ledger(folder: Path, action: Action, states: tuple[State, ...]) -> FileLedger:
    """The ledger of a timeline with the files of one instant in these states, in layout 2."""
    folder.mkdir()
    storage, layout = open_storage(str(folder)), layout_for(VERSIONS[9])
    for state in states:
        made = (RESULTS if state is State.COMPLETED else PLANS).get(action, bytes)()
        name = layout.file_name(TS, action, state, END if state is State.COMPLETED else None)
        storage.create(f"{FOLDER}/{name}", made)
    return FileLedger(Timeline.load(storage, layout, FOLDER, "UTC"))


def said(of: FileLedger) -> set[str]:
    """What a ledger says of FILE, of its group, and of the instant that is being rolled back."""
    facts = {
        "written": TS in of.writes and FILE[1] in (of.names_of(TS) or ()),
        "a write is pending": of.is_written_to,
        "planned": FILE in of.planned,
        "in a clustering": GROUP in of.groups_in_clusterings(),
        "in a compaction": GROUP in of.groups_in_compactions,
        "begins a slice": GROUP in of.compacting and TS in of.begins_slices,
        "held": FILE in of.held,
        "going": FILE in of.going,
        "cleaned": FILE in of.cleaned,
        "replaced": GROUP in of.replaced,
        "its target is being undone": TARGET in of.being_undone,
        "its target was rolled back": TARGET in of.rolled_back,
        "cancels blocks": TS in of.cancels,
    }
    return {fact for fact, is_true in facts.items() if is_true}


@pytest.mark.parametrize("action", Action)
def test_every_kind_of_instant_is_classified(action: Action, tmp_path: Path) -> None:
    assert action in KINDS, f"teach file_ledger.KINDS what {action.value} does to files"
    assert action.completed_as is not action or action in DONE, f"say in DONE what a completed {action.value} does"
    begun = (State.INFLIGHT,) if action is Action.SAVEPOINT else (State.REQUESTED,)
    pending = ledger(tmp_path / "pending", action, begun)
    assert said(pending) == PLANNED[action] and pending.pending == {TS}
    if action in DONE:
        done = ledger(tmp_path / "done", action, (*begun, State.COMPLETED))
        assert said(done) == DONE[action] and not done.pending
        # What it says when its files are no longer new to the ledger that it grows from.
        grown = done.grown(done.timeline)
        assert said(grown) == DONE[action]


def test_a_clean_with_an_empty_file_is_to_be_finished(tmp_path: Path) -> None:
    """The process died while it wrote the completed file: the next clean deletes what is left of the plan's files."""
    timeline = ledger(tmp_path / "t", Action.CLEAN, (State.REQUESTED, State.COMPLETED)).timeline
    assert FILE not in FileLedger(timeline).going
    (tmp_path / "t" / timeline.path(timeline.instants[0].file_name)).write_bytes(b"")
    assert FILE in FileLedger(timeline.reload()).going


FACTS = r"\b(Action\.|read_(savepoint|cleaner_plan|rollback|rollback_plan|plan|requested|compaction_plan)\b)"
JUDGES = (
    "commit/newest_files",
    "orphan_files/known_files",
    "file_records/expected_state",
    "cleaning/choice",
    "table/view",
    "table/facts",
)


@pytest.mark.parametrize("judge", JUDGES)
def test_judges_ask_the_ledger(judge: str) -> None:
    """None of them knows a kind of instant, or reads a plan, by itself."""
    found = re.search(FACTS, (PACKAGE / f"{judge}.py").read_text(encoding="utf-8"))
    assert not found, f"{judge} asks for {found[0]}: the ledger has the fact"


def verdict(path: Path, name: str) -> ReasonToStay | OrphanKind | None:
    """That of orphan_files on one file."""
    found = find_orphan_files(open_local(path), Ages(0, 0), lambda done, total: None)
    reasons = {item.path: item.reason for item in found.items}
    return reasons[name] if name in reasons else next(iter(found.kept), None)


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize("does", ["merges", "rewrites", "holds", "cleans"])
def test_a_kind_that_is_taught_once_is_known_to_all(
    release: str,
    does: str,
    clustered: Callable[[str, Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An index build that holds, reads, or deletes files: no judge is told of it, and each takes it into account."""
    path = clustered(release, tmp_path)
    orphan = put_file(path, NOBODYS)
    rules = resolve([("test", VERSIONS_1)]).of(CleanRules)
    table = open_local(path)
    going = plan_clean(table, rules, lambda done, total: None).plan
    assert going is not None and verdict(path, orphan) is OrphanKind.DEAD_ATTEMPT
    check_superseded(table, going.names)

    old = min(going.named)
    orphan_file = (orphan.rpartition("/")[0], orphan.rpartition("/")[2])

    def merged(timeline: Timeline, instant: Instant) -> list[CompactionOperation]:
        return [CompactionOperation(partition, "any", "", name) for partition, name in (old, orphan_file)]

    def rewritten(timeline: Timeline, instant: Instant) -> list[SliceInfo]:
        return [SliceInfo(partition, "any", name) for partition, name in (old, orphan_file)]

    def names(timeline: Timeline, instant: Instant) -> list[FileName]:
        return [old, orphan_file]

    def clean(timeline: Timeline, instant: Instant) -> CleanerPlan:
        return CleanerPlan("", "", "", {file[0]: (file[1],) for file in (old, orphan_file)})

    kind = {
        "merges": ActionEffect(merges=merged),
        "rewrites": ActionEffect(rewrites=rewritten),
        "holds": ActionEffect(holds=names),
        "cleans": ActionEffect(cleans=clean),
    }[does]
    monkeypatch.setattr(file_ledger, "KINDS", {**KINDS, Action.INDEXING: kind})
    layout = table.timeline.layout
    requested = path / table.timeline.path(layout.file_name(f"{NOBODYS[:-1]}9", Action.INDEXING, State.REQUESTED))
    requested.write_bytes(b"anything")

    now = open_local(path)
    assert verdict(path, orphan) is (ReasonToStay.IN_SAVEPOINT if does == "holds" else ReasonToStay.IN_PLAN)
    assert ExpectedState(now).is_going(*orphan_file) is (does == "cleans")
    if does != "cleans":
        with pytest.raises(CheckFailed, match=re.escape(path_in(*old))):
            check_superseded(now, going.names)
        left = plan_clean(now, rules, lambda done, total: None).plan
        assert left is None or old not in left.named


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_orphan_files_beside_files_that_a_dead_process_left_empty(release: str, tmp_path: Path) -> None:
    """A clean is repeated by its plan; what a savepoint holds is not known."""
    path = unpack(release, tmp_path)
    orphan = put_file(path, NOBODYS)
    table = open_local(path)
    layout, folder = table.timeline.layout, path / table.timeline.folder
    partition, _, name = orphan.rpartition("/")
    ts = f"{NOBODYS[:-1]}9"
    requested = folder / layout.file_name(ts, Action.CLEAN, State.REQUESTED)
    requested.write_bytes(plans(table, partition, name)["clean"])
    done = folder / layout.file_name(ts, Action.CLEAN, State.COMPLETED, ts)
    done.write_bytes(b"")
    assert verdict(path, orphan) is ReasonToStay.IN_PLAN
    done.write_bytes(b"done")
    assert verdict(path, orphan) is OrphanKind.DEAD_ATTEMPT
    saved = layout.file_name(table.timeline.completed_writes()[0].ts, Action.SAVEPOINT, State.COMPLETED, NOBODYS)
    (folder / saved).write_bytes(b"")
    with pytest.raises(CorruptFile, match=saved):
        verdict(path, orphan)
