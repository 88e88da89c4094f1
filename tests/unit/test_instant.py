"""Instants and their file names in both layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.timeline.instant import Action, Instant, State
from hudi_services.timeline.layout import Layout, layout_for
from hudi_services.versions import VERSIONS

V1, V2 = layout_for(VERSIONS[6]), layout_for(VERSIONS[8])
TIMES = st.text("0123456789", min_size=14, max_size=20)
T = "20261121055358586"
C = "20261121055409780"


def test_layouts_by_version() -> None:
    assert [layout_for(VERSIONS[n]).number for n in (6, 8, 9)] == [1, 2, 2]


@pytest.mark.parametrize(
    ("layout", "action", "state", "name"),
    [
        (V1, Action.COMMIT, State.REQUESTED, f"{T}.commit.requested"),
        (V1, Action.COMMIT, State.INFLIGHT, f"{T}.inflight"),
        (V1, Action.COMMIT, State.COMPLETED, f"{T}.commit"),
        (V1, Action.CLUSTERING, State.REQUESTED, f"{T}.replacecommit.requested"),
        (V1, Action.CLUSTERING, State.INFLIGHT, f"{T}.replacecommit.inflight"),
        (V1, Action.CLUSTERING, State.COMPLETED, f"{T}.replacecommit"),
        (V1, Action.COMPACTION, State.INFLIGHT, f"{T}.compaction.inflight"),
        (V1, Action.COMPACTION, State.COMPLETED, f"{T}.commit"),
        (V1, Action.SAVEPOINT, State.INFLIGHT, f"{T}.savepoint.inflight"),
        (V2, Action.COMMIT, State.INFLIGHT, f"{T}.inflight"),
        (V2, Action.DELTA_COMMIT, State.INFLIGHT, f"{T}.deltacommit.inflight"),
        (V2, Action.CLUSTERING, State.REQUESTED, f"{T}.clustering.requested"),
        (V2, Action.CLUSTERING, State.COMPLETED, f"{T}_{C}.replacecommit"),
        (V2, Action.LOG_COMPACTION, State.COMPLETED, f"{T}_{C}.deltacommit"),
        (V2, Action.ROLLBACK, State.COMPLETED, f"{T}_{C}.rollback"),
    ],
)
def test_names(layout: Layout, action: Action, state: State, name: str) -> None:
    assert layout.file_name(T, action, state, C) == name


@given(TIMES, TIMES, st.sampled_from(list(Action)), st.sampled_from(list(State)), st.sampled_from([V1, V2]))
def test_round_trip(ts: str, completion: str, action: Action, state: State, layout: Layout) -> None:
    name = layout.file_name(ts, action, state, completion)
    instant = layout.parse(name, 0, "UTC")
    assert instant is not None
    shown = layout.clustering_action if action is Action.CLUSTERING else action
    expected = action.completed_as if state is State.COMPLETED else shown
    time = {State.COMPLETED: completion if layout is V2 else "19700101000000000"}.get(state)
    assert instant == Instant(ts, expected, state, time, name)


@given(st.text())
def test_any_name_parses_or_is_none(name: str) -> None:
    for layout in (V1, V2):
        layout.parse(name, 0, "UTC")


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        f".{T}.commit.crc",
        f"{T}.commit.3f0c",
        f"{T}.commit.requested.tmp",
        f"{T}",
        f"{T}.",
        f"{T}.requested",
        f"x{T}.commit",
        f"{T}.parquet",
        f"{T}_x.commit",
        f"_{C}.commit",
        "٢٠٢٦.commit",
        f"{T}.COMMIT",
    ],
)
def test_what_is_no_instant(name: str) -> None:
    assert V1.parse(name, 0, "UTC") is None
    assert V2.parse(name, 0, "UTC") is None


def test_what_is_no_instant_in_one_layout() -> None:
    assert V1.parse(f"{T}_{C}.commit", 0, "UTC") is None
    assert V1.parse(f"{T}.clustering.requested", 0, "UTC") is None
    assert V2.parse(f"{T}_{C}.clustering", 0, "UTC") is None
    assert V2.parse(f"{T}.clustering", 0, "UTC") is None
    assert V2.parse(f"{T}_{C}.commit.requested", 0, "UTC") is None


def test_a_completed_file_of_layout_1_in_layout_2() -> None:
    instant = V2.parse(f"{T}.commit", 1_700_000_000_123, "UTC")
    assert instant == Instant(T, Action.COMMIT, State.COMPLETED, "20231114221320123", f"{T}.commit")


def test_order_of_one_time() -> None:
    names = [f"{T}.commit.requested", f"{T}.inflight", f"{T}_{C}.commit", f"{T}.rollback.requested"]
    instants = [V2.parse(name, 0, "UTC") for name in reversed(names)]
    assert [i.file_name for i in sorted(filter(None, instants), key=lambda i: i.order)] == names
