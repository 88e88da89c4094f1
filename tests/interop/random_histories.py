"""Random histories: what a seeded generator writes to a merge-on-read table, step by step, each key by itself."""

import random
from dataclasses import dataclass
from typing import Any

from .histories import (
    COMPACTS,
    DELETE,
    EVENT_TIME,
    LOG_COMPACTION,
    MODEL,
    ORDERED,
    WIDE,
    Cell,
    History,
    Step,
    call,
    payload,
    writes,
)

_COMPACT = call("call run_compaction(op => 'scheduleandexecute', path => '{path}')")
_SCHEDULE = call("call run_compaction(op => 'schedule', path => '{path}')")
_RUN = call("call run_compaction(op => 'run', path => '{path}')")
_CLUSTER = call("call run_clustering(path => '{path}', op => 'scheduleAndExecute')")
_ROLL_BACK = call("call rollback_to_instant(table => '{t}', instant_time => '{last}')")
_LOGS = {"hoodie.log.compaction.inline": "true"}


@dataclass(frozen=True)
class Kind:
    """What the tables of one kind have in common; `ts` makes a random ordering value."""

    columns: str
    options: dict[str, str]
    has_fields: bool = False
    releases: tuple[str, ...] = ("0.15.0", "1.0.2", "1.2.0")


KINDS = {
    "event time": Kind(ORDERED, EVENT_TIME),
    "commit time": Kind(ORDERED, payload(MODEL + "OverwriteWithLatestAvroPayload")),
    "partial": Kind(WIDE, payload(MODEL + "PartialUpdateAvroPayload"), True, ("0.15.0", "1.2.0")),
    "non defaults": Kind(WIDE, payload(MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"), True, ("0.15.0", "1.2.0")),
    "first value": Kind(ORDERED, payload(MODEL + "FirstValueAvroPayload"), False, ("0.15.0",)),
}


def random_history(kind: str, seed: int, keys: int, release: str) -> History:
    """The history of a table of `keys` keys; the same for the same seed."""
    found, chance = KINDS[kind], random.Random(f"{kind}/{seed}")
    count = chance.randint(4, 7)
    deletes = {number for number in range(1, count) if chance.random() < 0.25}
    cells = {f"k{number:03d}": _cells(found, chance, count, deletes, release) for number in range(keys)}
    # Every step writes something, and never a key for the first time alone.
    for number in range(count):
        cells[f"all{number}"] = [_row(found, 1, 50)] + [None] * (count - 1)
        if number:
            cells[f"all{number}"][number] = DELETE if number in deletes else _row(found, number + 1, 60)
    steps = list(writes(found.columns, cells))
    return History(found.columns, tuple(_between(steps, chance)), _options(found, chance))


def _options(kind: Kind, chance: random.Random) -> dict[str, str]:
    more = chance.choice([{}, {"hoodie.logfile.data.block.format": "parquet"}, {"hoodie.index.type": "SIMPLE"}])
    return {**COMPACTS, **LOG_COMPACTION, **more, **kind.options}


def _cells(kind: Kind, chance: random.Random, count: int, deletes: set[int], release: str) -> list[Cell]:
    row: list[Cell] = [_row(kind, 1, chance.randint(1, 9)) if chance.random() < 0.8 else None]
    dead = False
    for number in range(1, count):
        if chance.random() < 0.5:
            row.append(None)
        elif number in deletes:
            row.append(DELETE)
            dead = True
        elif dead and release == "1.0.2":
            # It cannot read a value after a delete without one.
            row.append(None)
        else:
            gone = not kind.has_fields and chance.random() < 0.2
            row.append(_row(kind, number + 1, chance.randint(1, 9), chance, gone))
    return row


def _row(kind: Kind, number: int, ts: int, chance: random.Random | None = None, gone: bool = False) -> tuple[Any, ...]:
    if not kind.has_fields:
        return f"c{number}", ts, gone
    hole = chance.random() if chance is not None else 1.0
    return (None if hole < 0.3 else f"c{number}"), (None if 0.2 < hole < 0.5 else number), ts


def _between(steps: list[Step], chance: random.Random) -> list[Step]:
    """The steps with services between them."""
    found = steps[:2]
    for step in steps[2:]:
        what = chance.random()
        if what < 0.12:
            found.append(_COMPACT)
        elif what < 0.24:
            # A write between the plan of a compaction and its execution.
            found += [_SCHEDULE, step, _RUN]
            continue
        elif what < 0.32:
            found.append(_CLUSTER)
        elif what < 0.4:
            found += [step, _ROLL_BACK]
            continue
        elif what < 0.5:
            step = Step(step.operation, step.rows, step.columns, options=_LOGS)
        found.append(step)
    return found
