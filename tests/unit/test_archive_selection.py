"""Which instants are archived, compared with a small model of Hudi's rules on random timelines of both layouts."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_services.archival.selection import (
    ArchivalSelection,
    ArchiveRules,
    Why,
    bounds_of_metadata,
    bounds_of_table,
    select,
)
from hudi_services.cleaning.retention import Policy, Retention
from hudi_services.codecs.clean_plan import CleanerPlan, CleanMetadata, encode_clean_metadata, encode_cleaner_plan
from hudi_services.codecs.rollback_plan import RollbackPlan, encode_rollback_plan
from hudi_services.model import CommitMetadata
from hudi_services.stores import open_storage
from hudi_services.timeline.active import Timeline
from hudi_services.timeline.instant import Action, State
from hudi_services.timeline.layout import Layout, layout_for
from hudi_services.versions import VERSIONS

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_RELEASE = "1.2.0"


def at(number: int) -> str:
    return f"20260101{number // 3600:02d}{number // 60 % 60:02d}{number % 60:02d}000"


@dataclass
class Made:
    """One instant: what a random timeline consists of."""

    ts: str
    action: Action
    """What it began as."""
    done: str | None
    """The completion time."""
    earliest: str = ""
    held: str = ""
    """Cleans: the earliest commit to retain, and a savepoint that they saw."""
    target: str = ""
    """Rollbacks: what they roll back."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Writes: the extra metadata."""

    @property
    def ended_as(self) -> Action:
        return self.action.completed_as


def random_instants(seed: int) -> list[Made]:
    """Writes in all states, cleans, rollbacks and savepoints; the longer, the rarer are those that hold others."""
    dice = random.Random(seed)
    of_log_files = dice.random() < 0.5
    rare = dice.choice([0.0, 0.02, 0.15])
    made: list[Made] = []
    clock = 0
    streams = _random_streams(seed)
    for _ in range(dice.randrange(70)):
        clock += dice.randrange(1, 4)
        ts, done = at(clock), at(clock + dice.randrange(0, 9))
        known = [one.ts for one in made if one.ended_as in _WRITES and one.done]
        what = dice.random()
        if what < 0.6:
            action = Action.DELTA_COMMIT if of_log_files else Action.COMMIT
            made.append(Made(ts, action, None if dice.random() < rare else done, extra=next(streams)))
        elif what < 0.68:
            action = Action.COMPACTION if of_log_files else Action.COMMIT
            made.append(Made(ts, action, done, extra=next(streams)))
        elif what < 0.73 and dice.random() < 0.3 + rare:
            made.append(Made(ts, Action.CLUSTERING, None if dice.random() < rare else done))
        elif what < 0.85 and known:
            held = dice.choice(["", "", dice.choice(known)])
            made.append(Made(ts, Action.CLEAN, done, dice.choice(["", *known[-9:], *known[-9:]]), held))
        elif what < 0.95 and known:
            pending = dice.random() < rare
            made.append(Made(ts, Action.ROLLBACK, None if pending else done, target=dice.choice(known)))
        elif known and dice.random() < 0.1 + rare:
            made.append(Made(dice.choice(known), Action.SAVEPOINT, done))
    return [one for n, one in enumerate(made) if one.action is not Action.SAVEPOINT or _is_first(made, n)]


def _random_streams(seed: int) -> Iterator[Mapping[str, str]]:
    """The extra metadata of writes: in every third timeline some have checkpoints, of streams that may have ended."""
    dice = random.Random(seed + 1_000_000)
    values = {
        "_hudi_streaming_sink_checkpoint": ['{"a":"1"}', '{"b":"7","a":"2"}', "no JSON", ""],
        "deltastreamer.checkpoint.key": ["topic,0:5", ""],
        "streamer.checkpoint.key.v2": ["20260101000000000"],
        "kafka.commit.offsets": ["0=5"],
        "mine": ["x"],
    }
    rate = 0.0 if seed % 3 else dice.choice([0.05, 0.4])
    while True:
        yield {key: dice.choice(texts) for key, texts in values.items() if dice.random() < rate}


def _is_first(made: list[Made], number: int) -> bool:
    return all(one.ts != made[number].ts or one.action is not Action.SAVEPOINT for one in made[:number])


def written(made: Iterable[Made], folder: Path, version: int) -> Timeline:
    """The instants as files; contents where the selection reads them."""
    layout = layout_for(VERSIONS[version])
    folder.mkdir(parents=True)
    for one in made:
        contents = _contents(one, layout)
        for state, data in contents.items():
            if state is State.COMPLETED and one.done is None:
                continue
            action = one.action
            if layout.clustering_action is Action.REPLACE_COMMIT and action is Action.CLUSTERING:
                action = Action.REPLACE_COMMIT
            (folder / layout.file_name(one.ts, action, state, one.done)).write_bytes(data)
    return Timeline.load(open_storage(str(folder)), layout, "", "UTC")


def _contents(one: Made, layout: Layout) -> dict[State, bytes]:
    found = dict.fromkeys(State, b"")
    if one.extra:
        found[State.COMPLETED] = layout.encode_commit(CommitMetadata("UPSERT", {}, one.extra), _RELEASE)
    if one.action is Action.CLEAN:
        extra = {"savepointed_timestamps": one.held} if one.held else {}
        plan = CleanerPlan("KEEP_LATEST_COMMITS", one.earliest, "", {}, extra=extra, earliest_action="commit")
        found[State.REQUESTED] = encode_cleaner_plan(plan, _RELEASE)
        found[State.COMPLETED] = encode_clean_metadata(
            CleanMetadata(one.ts, one.earliest, "", {}, extra=extra), _RELEASE
        )
    if one.action is Action.ROLLBACK:
        found[State.REQUESTED] = encode_rollback_plan(RollbackPlan(one.target, "commit", ()), _RELEASE)
    if one.action is Action.SAVEPOINT:
        del found[State.REQUESTED]
    return found


def model(made: list[Made], rules: ArchiveRules, *, layout: int, last: str | None = None) -> set[tuple[str, str]]:
    """Requested times and actions that Hudi archives; `last` is the metadata table's last compaction, None without it.

    Written from TimelineArchiverV1 and V2, but for two instants that we leave: the last clean of layout 2, and what a
    pending rollback of a completed commit keeps.
    """
    done = sorted((one for one in made if one.done and one.ended_as in _WRITES), key=lambda one: one.ts)
    least, most = rules.least, rules.most
    earliest = None
    if rules.retention.policy is Policy.COMMITS and len(done) > rules.retention.commits:
        candidate = done[len(done) - rules.retention.commits]
        pending = [one for one in made if not one.done and one.action in (*_WRITES, Action.CLUSTERING)]
        first = min(pending, key=lambda one: one.ts, default=None)
        if first is None or candidate.ts <= first.ts:
            earliest = candidate
        else:
            earliest = next((one for one in reversed(done) if one.ts < first.ts), None)
    if earliest is not None:
        needed = len([one for one in done if one.ts > earliest.ts]) + 2
        if least < needed:
            least, most = needed, needed + most - least
    stay: list[str] = []
    pending_writes = sorted(one.ts for one in made if not one.done and one.ended_as in _WRITES)
    if pending_writes:
        before = [one.ts for one in done if one.ts < pending_writes[0]]
        stay.append(before[-1] if before else pending_writes[0])
    if rules.compaction_commits is not None:
        commits = [one for one in done if one.ended_as is Action.COMMIT]
        deltas = sorted((one for one in made if one.ended_as is Action.DELTA_COMMIT), key=lambda one: one.ts)
        if commits and layout == 2:
            deltas = [one for one in deltas if one.done and one.done > commits[-1].ts]
        elif commits:
            deltas = [one for one in deltas if one.ts > commits[-1].ts]
        if commits or deltas:
            few = len(deltas) < rules.compaction_commits
            begin = commits[-1] if commits else deltas[0]
            stay.append(begin.ts if few else deltas[len(deltas) - rules.compaction_commits].ts)
    cleans = [one for one in made if one.action is Action.CLEAN and one.done]
    replacing = sorted((one for one in made if one.ended_as is Action.REPLACE_COMMIT), key=lambda one: one.ts)
    if replacing:
        bound = ""
        if cleans:
            bound = cleans[-1].earliest or cleans[-1].ts
            between = [one for one in replacing if one.done and cleans[-1].held <= one.ts <= cleans[-1].earliest]
            if cleans[-1].held and cleans[-1].earliest > cleans[-1].held and between:
                bound = cleans[-1].held
        stay += [one.ts for one in replacing if one.ts >= bound][:1]
    if rules.keeps_retained and cleans and cleans[-1].earliest:
        stay.append(cleans[-1].earliest)
    targets = {one.target for one in made if one.action is Action.ROLLBACK and not one.done}
    stay += [one.ts for one in done if one.ts in targets][:1]
    if last is not None:
        stay += [one.ts for one in done if (one.done or "") > last][:1] if layout == 2 else [last]
    savepoints = {one.ts for one in made if one.action is Action.SAVEPOINT}
    free = [one for one in done if not stay or one.ts < min(stay)]
    if rules.beyond_savepoint:
        free = [one for one in free if one.ts not in savepoints]
    elif savepoints:
        free = [one for one in free if one.ts < min(savepoints)]
    going = free[: len(done) - least] if len(done) > most else []
    if not rules.beyond_checkpoint:
        needed_by = [newest.ts for newest in newest_checkpoints(done, rules.checkpoint_keys).values()]
        going = [one for one in going if one.ts < min((ts for ts in needed_by if ts <= going[-1].ts), default="9")]
    found = {(one.ts, one.ended_as.value) for one in going}
    for action in (Action.CLEAN, Action.ROLLBACK):
        ended = [one for one in made if one.action is action and one.done]
        if layout == 2:
            kept = ended[-1:] if action is Action.CLEAN else []
            more = [one for one in ended if going and one.ts < going[-1].ts and one not in kept]
        else:
            more = ended[: len(ended) - least] if len(ended) > most else []
            more = [one for one in more if last is None or one.ts < last]
        found |= {(one.ts, one.action.value) for one in more}
    return found


def newest_checkpoints(done: list[Made], named: tuple[str, ...]) -> dict[str, Made]:
    """The completed write (of `done`, oldest first) in which each stream finds its checkpoint when it starts again."""
    newest: dict[str, Made] = {}
    deltas = [one for one in done if one.ended_as is Action.DELTA_COMMIT]
    for one in done:
        sink = one.extra.get("_hudi_streaming_sink_checkpoint", "")
        for query in "ab" if "{" in sink else [sink]:
            if query and query in sink:
                newest["sink " + query] = one
        for key in named:
            if one.extra.get(key):
                newest[key] = one
    for one in deltas or done:
        if one.extra.get("deltastreamer.checkpoint.key") or one.extra.get("streamer.checkpoint.key.v2"):
            newest["streamer"] = one
    for one in deltas or [one for one in done if one.ended_as is Action.COMMIT]:
        if "kafka.commit.offsets" in one.extra:
            newest["kafka"] = one
    return newest


def random_rules(seed: int) -> ArchiveRules:
    dice = random.Random(-seed)
    least = dice.randrange(1, 12)
    return ArchiveRules(
        most=least + dice.randrange(1, 8),
        least=least,
        retention=Retention(dice.choice([Policy.COMMITS, Policy.COMMITS, Policy.FILE_VERSIONS]), dice.randrange(1, 14)),
        compaction_commits=dice.choice([None, None, 3]),
        beyond_savepoint=dice.random() < 0.3,
        keeps_retained=dice.random() < 0.3,
        beyond_checkpoint=dice.random() < 0.1,
        checkpoint_keys=dice.choice([(), ("mine",), ("mine", "deltastreamer.checkpoint.key")]),
    )


def named(found: ArchivalSelection) -> set[tuple[str, str]]:
    assert list(found.instants) == sorted(found.instants, key=lambda one: one.order)
    return {(one.ts, one.action.value) for one in found.instants}


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 9])
def test_the_choice_is_that_of_hudi(version: int, tmp_path: Path) -> None:
    layout, gone, held = VERSIONS[version].timeline_layout, 0, set()
    for seed in range(400):
        made, rules = random_instants(seed), random_rules(seed)
        if rules.retention.policy is Policy.FILE_VERSIONS:
            # Hudi's guard for savepoints of old cleans does not count with this policy.
            made = [one for one in made if not one.held]
        timeline = written(made, tmp_path / str(seed), version)
        writes = [one.ts for one in timeline.completed_writes()]
        for last in (None, *writes[len(writes) // 2 :][:1]):
            known = None if last is None else metadata_compacted_at(last)
            found = select(timeline, rules, bounds_of_table(timeline, known))
            assert named(found) == model(made, rules, layout=layout, last=last), (seed, last)
            gone += len(found.instants)
            held |= {found.held.why} if found.held else set()
    assert gone > 2_000
    assert held == set(Why) - {Why.NO_METADATA_COMPACTION, Why.TABLE}


def metadata_compacted_at(ts: str) -> Any:
    """As much of a metadata table as the selection looks at."""
    compaction = SimpleNamespace(ts=ts)
    return SimpleNamespace(timeline=SimpleNamespace(completed=lambda actions: (compaction,) if ts else ()))


def test_nothing_goes_before_the_first_compaction_of_the_metadata_table(tmp_path: Path) -> None:
    made = [Made(at(n), Action.COMMIT, at(n)) for n in range(9)]
    timeline = written(made, tmp_path / "t", 9)
    rules = ArchiveRules(most=3, least=2, retention=Retention(Policy.FILE_VERSIONS))
    found = select(timeline, rules, bounds_of_table(timeline, metadata_compacted_at("")))
    assert not found.instants and found.held is not None and found.held.why is Why.NO_METADATA_COMPACTION
    assert found.why_empty == "all 9 commits stay on the timeline: the metadata table was never compacted"
    assert len(select(timeline, rules, bounds_of_table(timeline, None)).instants) == 7


def test_the_metadata_table_keeps_what_the_table_has(tmp_path: Path) -> None:
    """All since the first write, or the first pending action of any kind."""
    table = [Made(at(5), Action.COMMIT, at(5)), Made(at(9), Action.COMMIT, at(9))]
    first = written(table, tmp_path / "a", 9)
    assert [one.ts for one in bounds_of_metadata(first, beyond_savepoint=False)] == [at(5)]
    pending = written([*table, Made(at(3), Action.CLEAN, None)], tmp_path / "b", 9)
    assert [one.ts for one in bounds_of_metadata(pending, beyond_savepoint=False)] == [at(3)]
    held = written([*table, Made(at(5), Action.SAVEPOINT, at(7))], tmp_path / "c", 9)
    assert [one.ts for one in bounds_of_metadata(held, beyond_savepoint=True)] == [at(9)]
    assert bounds_of_metadata(written([], tmp_path / "d", 9), beyond_savepoint=False) == []


def test_an_emptied_clean_stays_for_the_next_clean(tmp_path: Path) -> None:
    cleans = [Made(at(n), Action.CLEAN, at(n), at(1)) for n in range(1, 30)]
    timeline = written(cleans, tmp_path / "t", 6)
    rules = ArchiveRules(most=5, least=4)
    assert len(select(timeline, rules, []).instants) == 25
    (tmp_path / "t" / f"{at(3)}.clean").write_bytes(b"")
    left = named(select(timeline.reload(), rules, []))
    assert len(left) == 24 and (at(3), "clean") not in left
