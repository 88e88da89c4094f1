"""Random histories: what a seeded generator writes to a merge-on-read table, step by step, each key by itself.

Between the writes there are services: compactions, log compactions, clusterings and rollbacks of Hudi, compactions,
clusterings and cleans of ours; and the schema may change.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .histories import (
    BUCKETS,
    DEBEZIUM,
    DELETE,
    DMS,
    EVENT_TIME,
    LISTED,
    LOG_COMPACTION,
    MODEL,
    MYSQL,
    ORDERED,
    POSTGRES,
    UNAVAILABLE,
    WIDE,
    Cell,
    History,
    Step,
    binlog,
    call,
    payload,
    writes,
)
from .peer import EACH_DELTA_COMMIT

Row = tuple[Any, ...]

_COMPACT = call("call run_compaction(op => 'scheduleandexecute', path => '{path}')")
_SCHEDULE = call("call run_compaction(op => 'schedule', path => '{path}')")
_RUN = call("call run_compaction(op => 'run', path => '{path}')")
_CLUSTER = call("call run_clustering(path => '{path}', op => 'scheduleAndExecute')")
_ROLL_BACK = call("call rollback_to_instant(table => '{t}', instant_time => '{last}')")
_OURS_COMPACT, _OURS_PLAN = Step("ours compact"), Step("ours plan")
_OURS_CLUSTER, _OURS_CLEAN = Step("ours cluster"), Step("ours clean")
_LOGS = {"hoodie.log.compaction.inline": "true"}
_FORMATS: tuple[dict[str, str], ...] = (
    {},
    {"hoodie.logfile.data.block.format": "parquet"},
    {"hoodie.index.type": "SIMPLE"},
    {**LISTED, "hoodie.index.type": "SIMPLE"},
)
# 1.2.0 compares text of parquet blocks with what else was in its buffer.
_NOT_PARQUET = (_FORMATS[0], *_FORMATS[2:])
_BOTH = ("0.15.0", "1.2.0")
_ALL = ("0.15.0", "1.0.2", "1.2.0")


def _ordered(chance: random.Random, number: int, ts: Any) -> Row:
    return f"c{number}", ts, chance.random() < 0.2


def _fields(chance: random.Random, number: int, ts: Any) -> Row:
    hole = chance.random() if number > 1 else 1.0
    return (None if hole < 0.3 else f"c{number}"), (None if 0.2 < hole < 0.5 else number), ts


def _dms(chance: random.Random, number: int, ts: Any) -> Row:
    return f"c{number}", ts, chance.choice("IUUD" if number > 1 else "I")


def _postgres(chance: random.Random, number: int, ts: Any) -> Row:
    gone = number > 1 and chance.random() < 0.2
    value = UNAVAILABLE if number > 1 and chance.random() < 0.3 else f"c{number}"
    return value, ts, "d" if gone else "u" if number > 1 else "c"


def _mysql(chance: random.Random, number: int, ts: Any) -> Row:
    gone = number > 1 and chance.random() < 0.2
    return binlog(f"c{number}", chance.randint(1, 2), int(ts) * 7, "d" if gone else "u")


def _two_fields(chance: random.Random, number: int, ts: Any) -> Row:
    return f"c{number}", int(ts) // 4, chance.choice("lmn")


@dataclass(frozen=True)
class Kind:
    """What the tables of one kind have in common; `row` makes a random row of a step, after its key."""

    columns: str
    options: dict[str, str]
    row: Callable[[random.Random, int, Any], Row] = _ordered
    releases: tuple[str, ...] = _ALL
    ordering: str | dict[str, str] | None = "ts"
    order: Callable[[int], Any] = int
    """An ordering value of a small number."""
    formats: tuple[dict[str, str], ...] = _FORMATS
    has_hudi_clustering: bool = True
    widens: str = ""
    """An int column that a change of the schema makes a bigint."""


def _by(sql_type: str, order: Callable[[int], Any]) -> Kind:
    columns = f"id string, val string, o {sql_type}, _hoodie_is_deleted boolean, p string"
    return Kind(columns, EVENT_TIME, ordering="o", order=order, widens="o" if sql_type == "int" else "")


KINDS = {
    "event time": Kind(ORDERED, EVENT_TIME),
    "commit time": Kind(ORDERED, payload(MODEL + "OverwriteWithLatestAvroPayload")),
    "text order": replace(_by("string", str), formats=_NOT_PARQUET),
    "double order": _by("double", lambda n: n / 4),
    "int order": _by("int", int),
    "buckets": Kind(
        ORDERED,
        {**EVENT_TIME, **BUCKETS, "hoodie.bucket.index.num.buckets": "3"},
        formats=_FORMATS[:2],
        has_hudi_clustering=False,
    ),
    "fields": Kind(WIDE, EVENT_TIME, _fields, widens="num"),
    "partial": Kind(WIDE, payload(MODEL + "PartialUpdateAvroPayload"), _fields, _BOTH),
    "non defaults": Kind(WIDE, payload(MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"), _fields, _BOTH),
    "dms": Kind(DMS, payload(MODEL + "AWSDmsAvroPayload"), _dms, _BOTH),
    "postgres": Kind(POSTGRES, payload(DEBEZIUM + "PostgresDebeziumAvroPayload"), _postgres, _BOTH, "_event_lsn"),
    "mysql": Kind(
        MYSQL,
        payload(DEBEZIUM + "MySqlDebeziumAvroPayload"),
        _mysql,
        _BOTH,
        {"0.15.0": "_event_seq", "1.2.0": "_event_bin_file,_event_pos"},
        formats=_NOT_PARQUET,
    ),
    "first value": Kind(ORDERED, payload(MODEL + "FirstValueAvroPayload"), releases=("0.15.0",)),
    "two fields": Kind(
        "id string, val string, a int, b string, p string",
        EVENT_TIME,
        _two_fields,
        ("1.2.0",),
        "a,b",
        formats=_NOT_PARQUET,
        widens="a",
    ),
}


@dataclass(frozen=True)
class RandomHistory:
    """A history, and what it was made from."""

    kind: str
    seed: int
    history: History


def random_history(seed: int, keys: int, release: str) -> RandomHistory:
    """The history of a table of `keys` keys; the same for the same seed. The kinds take turns."""
    names = [name for name, kind in KINDS.items() if release in kind.releases]
    name = names[seed % len(names)]
    kind, chance = KINDS[name], random.Random(f"{name}/{seed}")
    count = chance.randint(4, 7)
    deletes = {number for number in range(1, count) if chance.random() < 0.25}
    cells = {f"k{number:03d}": _cells(kind, chance, count, deletes, release) for number in range(keys)}
    # Every step writes something, and never a key for the first time alone.
    for number in range(count):
        cells[f"all{number}"] = [kind.row(chance, 1, kind.order(5))] + [None] * (count - 1)
        if number:
            row = DELETE if number in deletes else kind.row(chance, number + 1, kind.order(6))
            cells[f"all{number}"][number] = row
    steps = _evolved(kind, list(writes(kind.columns, cells)), chance)
    # 0.15.0 cannot read its own parquet blocks of an int column that became a bigint.
    formats = _NOT_PARQUET if kind.widens and release == "0.15.0" else kind.formats
    options = {**EACH_DELTA_COMMIT, **LOG_COMPACTION, **chance.choice(formats), **kind.options}
    return RandomHistory(
        name, seed, History(kind.columns, tuple(_between(kind, steps, chance)), options, kind.ordering)
    )


def _cells(kind: Kind, chance: random.Random, count: int, deletes: set[int], release: str) -> list[Cell]:
    row: list[Cell] = [kind.row(chance, 1, kind.order(chance.randint(1, 9))) if chance.random() < 0.8 else None]
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
            row.append(kind.row(chance, number + 1, kind.order(chance.randint(1, 9))))
    return row


def _evolved(kind: Kind, steps: list[Step], chance: random.Random) -> list[Step]:
    """The steps; from some step on, perhaps, with one more column, and an int column that became a bigint."""
    if chance.random() < 0.6:
        return steps
    start = chance.randrange(1, len(steps))
    columns = kind.columns.removesuffix("p string") + "extra string, p string"
    if kind.widens:
        columns = columns.replace(f"{kind.widens} int,", f"{kind.widens} bigint,")
    later = [
        replace(
            step,
            rows=tuple(
                (*row[:-1], chance.choice((None, f"x{number}")), row[-1]) for number, row in enumerate(step.rows)
            ),
            columns=columns,
        )
        for step in steps[start:]
    ]
    return steps[:start] + later


def _between(kind: Kind, steps: list[Step], chance: random.Random) -> list[Step]:
    """The steps with services between them; the first of two that share a plan may be Hudi's, the other ours."""
    found = steps[:2]
    for step in steps[2:]:
        what = chance.random()
        if what < 0.1:
            found += [_COMPACT, step]
        elif what < 0.2:
            found += [_OURS_COMPACT, step]
        elif what < 0.4:
            # A write between the plan of a compaction and its execution.
            plan = chance.choice((_SCHEDULE, _OURS_PLAN))
            found += [plan, step, chance.choice((_RUN, _OURS_COMPACT))]
        elif what < 0.5:
            found += [_CLUSTER if kind.has_hudi_clustering else _OURS_CLUSTER, step]
        elif what < 0.6:
            found += [_OURS_CLUSTER, step]
        elif what < 0.68:
            found += [step, _ROLL_BACK]
        elif what < 0.75:
            found += [step, _OURS_CLEAN]
        elif what < 0.85:
            found.append(replace(step, options=_LOGS))
        else:
            found.append(step)
    return found
