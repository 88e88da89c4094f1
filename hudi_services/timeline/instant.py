"""Instants: one action of the timeline in one state, and the grammar of their file names.

A file is called `<ts>[_<completion time>].<action>[.requested|.inflight]`. The suffixes are the same in both timeline
layouts except for clustering; the inflight file of a commit lacks the action: `<ts>.inflight`. Anything else in the
folder is not an instant.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum


class State(IntEnum):
    """The states of an instant, in the order it goes through them."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


class Action(str, Enum):
    """Actions by the name in their file names. Source: HoodieTimeline of Apache Hudi."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"

    @property
    def completed_as(self) -> "Action":
        """The action of the completed file: a compaction ends as a commit, a clustering as a replacecommit."""
        return _COMPLETED_AS.get(self, self)

    @property
    def writes_data(self) -> bool:
        """Whether completing it adds or replaces files of the table."""
        return self.completed_as in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}


@dataclass(frozen=True, slots=True)
class Instant:
    """`ts` is the requested time, `completion_time` the completion time or None until then, both as instant text.

    Table version 6 does not record completion times: there it is the completed file's modification time.
    """

    ts: str
    action: Action
    state: State
    completion_time: str | None
    file_name: str

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def order(self) -> tuple[str, str, State]:
        """Timeline order: requested time, then the completed action's name, then state."""
        return (self.ts, self.action.completed_as.value, self.state)


_NAME = re.compile(r"([0-9]+)(?:_([0-9]+))?(\.[a-z]+(?:\.[a-z]+)?)")
_STATE_SUFFIX = {State.REQUESTED: ".requested", State.INFLIGHT: ".inflight"}

Suffixes = Mapping[str, tuple[Action, State]]


def suffix(action: Action, state: State) -> str:
    """The part of the file name after the times, for an instant in this state."""
    if state is State.COMPLETED:
        return f".{action.completed_as.value}"
    if action is Action.COMMIT and state is State.INFLIGHT:
        return ".inflight"
    return f".{action.value}{_STATE_SUFFIX[state]}"


def suffixes(actions: frozenset[Action]) -> Suffixes:
    """All suffixes of these actions; a completed compaction has the suffix of a commit."""
    table = {suffix(a, s): (a, s) for a in actions for s in (State.REQUESTED, State.INFLIGHT)}
    return table | {suffix(a, State.COMPLETED): (a.completed_as, State.COMPLETED) for a in actions}


def split_name(name: str, known: Suffixes) -> tuple[str, str | None, tuple[Action, State]] | None:
    """(ts, completion time, (action, state)) of a file name, None when it is not the name of an instant file."""
    match = _NAME.fullmatch(name)
    if match is None or match[3] not in known:
        return None
    return match[1], match[2], known[match[3]]
