"""Checks of what is begun and not finished: plans, writers, services, locks, and what dead processes leave."""

from collections import defaultdict
from collections.abc import Iterator

from ..clock import duration
from ..commit.liveness import is_clustering
from ..options import lock_keys
from ..orphan_files.leftovers import list_leftovers
from ..orphan_files.model import Ages, OrphanKind
from ..paths import TABLE_FOLDER
from ..recovery.findings import Decision, Finding
from ..timeline.instant import Action
from ..units import counted
from .examination import Examination
from .model import HealthFinding, Level

_LOCK_FILE = f"{TABLE_FOLDER}/lock"
_MINUTE = 60_000
_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_SIGNS = {
    OrphanKind.HEARTBEAT: "heartbeat",
    OrphanKind.MARKERS: "marker",
    OrphanKind.LEASE: "lease",
    OrphanKind.CHECKPOINTS: "checkpoint",
    OrphanKind.STAGED: "staged file",
}


def pending_plans(seen: Examination) -> Iterator[HealthFinding]:
    """Plans that wait for longer than a write may be silent: they keep writers, cleans and the archive back."""
    waiting = [one for one in _plans(seen) if one.decision is Decision.WAIT]
    seen.measures["pending_plans"] = len(waiting)
    seen.measures["oldest_pending_plan_seconds"] = max((round(one.age_millis / 1000) for one in waiting), default=0)
    for one in waiting:
        if one.age_millis >= seen.settings.abandoned_millis:
            yield HealthFinding(
                Level.WARNING,
                one.instant.ts,
                f"the plan of {_what(seen, one)} waits for its execution since {duration(one.age_millis)}; it blocks "
                f"{one.blocks}",
                {"age_minutes": _minutes(one)},
                seen.way_out(one.instant.ts),
            )


def plans_given_up(seen: Examination) -> Iterator[HealthFinding]:
    """Plans that nobody can execute any more, that nobody has executed for long, or whose execution died."""
    for one in _plans(seen):
        if one.decision is not Decision.WAIT:
            yield HealthFinding(
                Level.WARNING,
                one.instant.ts,
                f"recover would give up {_what(seen, one)}: {one.why}; it blocks {one.blocks}",
                {"age_minutes": _minutes(one)},
                seen.way_out(one.instant.ts),
            )


def dead_writers(seen: Examination) -> Iterator[HealthFinding]:
    """Writes whose process is dead: everything after them waits."""
    dead = [one for one in _writes(seen) if one.decision is not Decision.WAIT]
    seen.measures["dead_writes"] = len(dead)
    for one in dead:
        yield HealthFinding(
            Level.WARNING,
            one.instant.ts,
            f"the {one.instant.action.value} {one.instant.ts} was begun {duration(one.age_millis)} ago and is dead: "
            f"{one.why}; it blocks {one.blocks}",
            {
                "age_minutes": _minutes(one),
                "silent_minutes": round(one.silent_millis / _MINUTE),
                "files": one.files or 0,
            },
            seen.way_out(one.instant.ts),
        )


def long_writers(seen: Examination) -> Iterator[HealthFinding]:
    """Writers that are at work for hours: cleans and archivals wait for them."""
    alive = [one for one in _writes(seen) if one.decision is Decision.WAIT]
    seen.measures["live_writes"] = len(alive)
    for one in alive:
        if one.age_millis >= seen.limits.alive_hours * 60 * _MINUTE:
            yield HealthFinding(
                Level.WARNING,
                one.instant.ts,
                f"the {one.instant.action.value} {one.instant.ts} is pending since {duration(one.age_millis)}, and its "
                f"writer counts as alive: {one.why}",
                {"age_minutes": _minutes(one), "silent_minutes": round(one.silent_millis / _MINUTE)},
                seen.way_out(one.instant.ts),
            )


def half_done_services(seen: Examination) -> Iterator[HealthFinding]:
    """Cleans, rollbacks, restores, savepoints and index builds that are begun and not finished."""
    for one in seen.pending:
        if one.instant.action in _WRITES or seen.is_plan(one.instant):
            continue
        if one.decision is not Decision.WAIT or one.age_millis >= seen.settings.abandoned_millis:
            yield HealthFinding(
                Level.WARNING,
                one.instant.ts,
                f"the {one.instant.action.value} {one.instant.ts} was begun {duration(one.age_millis)} ago and is not "
                f"finished: {one.why}",
                {"age_minutes": _minutes(one)},
                seen.way_out(one.instant.ts),
            )


def lock_left(seen: Examination) -> Iterator[HealthFinding]:
    """A lock file that its holder has not released: every writer that takes this lock waits for it in vain."""
    file = seen.table.storage.head(_LOCK_FILE)
    if file is None:
        return
    expires = seen.options[lock_keys.LOCK_EXPIRE_MINUTES] * _MINUTE
    age = seen.now_millis - file.mtime_millis
    if age < (expires or seen.settings.abandoned_millis):
        return
    after = f", and expires {duration(expires)} after it was written" if expires else ", and never expires"
    yield HealthFinding(
        Level.WARNING,
        _LOCK_FILE,
        f"the lock file was written {duration(age)} ago{after}: delete it, if no writer holds it",
        {"age_minutes": round(age / _MINUTE)},
    )


def signs_left(seen: Examination) -> Iterator[HealthFinding]:
    """Heartbeats, markers, leases and checkpoints of attempts that have ended."""
    ages = Ages(seen.limits.orphan_minutes * _MINUTE, seen.settings.heartbeat_expires_millis)
    at_work = {one.ts for one in seen.table.timeline.pending()}
    found: dict[str, list[int]] = defaultdict(list)
    for left in list_leftovers(seen.table.storage):
        is_old = seen.now_millis - left.mtime_millis >= left.least_age(ages)
        if left.attempt not in at_work and is_old:
            found[_SIGNS.get(left.reason, "file")] += [file.size for file in left.files]
    if found:
        kinds = ", ".join(counted(len(sizes), kind) for kind, sizes in sorted(found.items()))
        numbers = {f"{kind.replace(' ', '_')}s": len(sizes) for kind, sizes in found.items()}
        yield HealthFinding(
            Level.WARNING,
            "",
            f"attempts that have ended left {kinds}; no reader needs them",
            {**numbers, "bytes": sum(map(sum, found.values()))},
            "orphan-files --apply",
        )


def _plans(seen: Examination) -> list[Finding]:
    return [finding for finding in seen.pending if seen.is_plan(finding.instant)]


def _writes(seen: Examination) -> list[Finding]:
    return [found for found in seen.pending if found.instant.action in _WRITES and not seen.is_plan(found.instant)]


def _what(seen: Examination, finding: Finding) -> str:
    service = "clustering" if is_clustering(seen.table, finding.instant) else finding.instant.action.value
    return f"the {service} {finding.instant.ts}"


def _minutes(finding: Finding) -> int:
    return round(finding.age_millis / _MINUTE)
