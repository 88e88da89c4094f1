"""Histories of small merge-on-read tables that show how real Hudi merges log files: what is written, step by step.

A history has for each key what each step writes: a tuple of values, DELETE (by `operation=delete`), or None. All keys
are in one partition and, with few exceptions, in one file group. Between the writes there may be other steps: a
statement, a procedure, damage.
"""

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

MODEL = "org.apache.hudi.common.model."
DEBEZIUM = MODEL + "debezium."
EVENT_TIME = {"hoodie.datasource.write.payload.class": MODEL + "DefaultHoodieRecordPayload"}
DELETE: Final = "delete"
UNAVAILABLE = "__debezium_unavailable_value"

Cell: TypeAlias = tuple[Any, ...] | str | None

ORDERED = "id string, val string, ts bigint, _hoodie_is_deleted boolean, p string"
WIDE = "id string, val string, num int, ts bigint, p string"


@dataclass(frozen=True)
class Step:
    """One step: a write of `rows` by `operation`, or a `statement`, a `procedure`, or damage (`operation` alone)."""

    operation: str
    rows: tuple[tuple[Any, ...], ...] = ()
    columns: str = ""
    statement: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """`columns` of the table with their SQL types; `ordering` may differ by release."""

    columns: str
    steps: tuple[Step, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    ordering: str | Mapping[str, str] | None = "ts"
    releases: tuple[str, ...] = ("0.15.0", "1.0.2", "1.2.0")

    def ordering_of(self, release: str) -> str | None:
        return self.ordering.get(release) if isinstance(self.ordering, Mapping) else self.ordering


def payload(name: str) -> dict[str, str]:
    return {"hoodie.datasource.write.payload.class": name}


def writes(columns: str, cells: Mapping[str, Sequence[Cell]], first: str = "bulk_insert") -> tuple[Step, ...]:
    """A write for each column of the table of cells; `first` is the operation of the first one.

    The rows of a delete have the values of the first cell there is: writers want an ordering value.
    """
    some = next(cell for row in cells.values() for cell in row if isinstance(cell, tuple))
    steps = []
    for number in range(max(map(len, cells.values()))):
        of_step = {key: row[number] for key, row in cells.items() if number < len(row) and row[number] is not None}
        values = {key: some if cell == DELETE else cell for key, cell in of_step.items()}
        rows = tuple((key, *cell, "p0") for key, cell in values.items() if isinstance(cell, tuple))
        (deletes,) = {cell == DELETE for cell in of_step.values()}
        steps.append(Step("delete" if deletes else "upsert" if number else first, rows, columns))
    return tuple(steps)


def at(number: int, ts: int | None, gone: bool = False) -> tuple[Any, ...]:
    """The row of step `number` in a table of the columns ORDERED; `gone`: a soft delete."""
    return f"c{number}", ts, gone


def call(statement: str) -> Step:
    return Step("call", statement=statement)


def sql(statement: str) -> Step:
    return Step("sql", statement=statement)


ORDERINGS: dict[str, list[Cell]] = {
    "late": [at(1, 50), at(2, 40)],
    "equal": [at(1, 50), at(2, 50)],
    "newer_then_late": [at(1, 50), at(2, 70), at(3, 60)],
    "both_late": [at(1, 50), at(2, 30), at(3, 40)],
    "log_tie": [at(1, 50), at(2, 70), at(3, 70)],
    "soft_newer": [at(1, 50), at(2, 60, True)],
    "soft_late": [at(1, 50), at(2, 40, True)],
    "soft_equal": [at(1, 50), at(2, 50, True)],
    "soft_then_mid": [at(1, 50), at(2, 60, True), at(3, 55)],
    "soft_then_equal": [at(1, 50), at(2, 60, True), at(3, 60)],
    "soft_late_then_late": [at(1, 50), at(2, 40, True), at(3, 45)],
    "mid_then_soft_late": [at(1, 50), at(2, 60), at(3, 55, True)],
    "hard": [at(1, 50), None, None, DELETE],
    "hard_after_newer": [at(1, 50), at(2, 90), None, DELETE],
    "hard_then_small": [at(1, 50), None, None, DELETE, at(5, 1)],
    "hard_then_large": [at(1, 50), None, None, DELETE, at(5, 99)],
    "hard_then_soft": [at(1, 50), None, None, DELETE, at(5, 20, True)],
    "new": [None, at(2, 10), at(3, 5)],
    "new_then_hard": [None, at(2, 10), None, DELETE],
    "untouched": [at(1, 50)],
}
FIELDS: dict[str, list[Cell]] = {
    "fill": [("a", 1, 50), (None, 2, 60)],
    "late": [("a", 1, 50), ("b", None, 40)],
    "late_fills_null": [(None, 1, 50), ("b", 2, 40)],
    "chain": [("a", 1, 50), (None, 2, 60), ("c", None, 70)],
    "chain_late": [("a", 1, 50), (None, 2, 70), ("c", 3, 60)],
    "equal": [("a", 1, 50), (None, 2, 50)],
    "zero": [("a", 1, 50), ("", 0, 60)],
    "new": [None, (None, 7, 5)],
    "new_then_late": [None, (None, 7, 5), ("n", None, 4)],
    "deleted": [("a", 1, 50), None, None, DELETE, (None, 5, 1)],
}
DMS = "id string, val string, ts bigint, Op string, p string"
CHANGES: dict[str, list[Cell]] = {
    "upd": [("c1", 50, "I"), ("c2", 60, "U")],
    "upd_late": [("c1", 50, "I"), ("c2", 40, "U")],
    "del": [("c1", 50, "I"), ("c2", 60, "D")],
    "del_late": [("c1", 50, "I"), ("c2", 40, "D")],
    "del_ins": [("c1", 50, "I"), ("c2", 60, "D"), ("c3", 70, "I")],
    "del_ins_late": [("c1", 50, "I"), ("c2", 60, "D"), ("c3", 55, "I")],
    "null_op": [("c1", 50, "I"), ("c2", 60, None)],
}
POSTGRES = "id string, val string, _event_lsn bigint, _change_operation_type string, p string"
LSN: dict[str, list[Cell]] = {
    "upd": [("c1", 50, "c"), ("c2", 60, "u")],
    "late": [("c1", 50, "c"), ("c2", 40, "u")],
    "equal": [("c1", 50, "c"), ("c2", 50, "u")],
    "toast": [("c1", 50, "c"), (UNAVAILABLE, 60, "u")],
    "toast_chain": [("c1", 50, "c"), ("c2", 60, "u"), (UNAVAILABLE, 70, "u")],
    "toast_late": [("c1", 50, "c"), (UNAVAILABLE, 40, "u")],
    "toast_in_base": [(UNAVAILABLE, 50, "c"), ("c2", 40, "u")],
    "del": [("c1", 50, "c"), ("c2", 60, "d")],
    "del_late": [("c1", 50, "c"), ("c2", 40, "d")],
    "del_ins": [("c1", 50, "c"), ("c2", 60, "d"), ("c3", 70, "c")],
}
MYSQL = "id string, val string, _event_seq string, _event_bin_file string, _event_pos bigint, _change_operation_type string, p string"  # fmt: skip  # noqa: E501


def binlog(val: str, file: int, place: int, op: str = "u") -> tuple[Any, ...]:
    return val, f"{file:06d}.{place}", f"mysql-bin.{file:06d}", place, op


BINLOG: dict[str, list[Cell]] = {
    "upd": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 60)],
    "late": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 40)],
    "equal": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 50)],
    "digits": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 1000)],
    "file": [binlog("c1", 1, 50, "c"), binlog("c2", 2, 7)],
    "del": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 60, "d")],
    "del_late": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 40, "d")],
    "two": [binlog("c1", 1, 50, "c"), binlog("c2", 1, 1000), binlog("c3", 1, 900)],
}


def typed(sql_type: str, old: Any, late: Any, new: Any) -> History:
    """Soft deletes in a table with an ordering field of this type."""
    columns = f"id string, val string, o {sql_type}, _hoodie_is_deleted boolean, p string"
    cells: dict[str, list[Cell]] = {
        "newer": [("c1", old, False), ("c2", new, True)],
        "late": [("c1", old, False), ("c2", late, True)],
        "equal": [("c1", old, False), ("c2", old, True)],
        "log_late": [("c1", old, False), ("c2", new, False), ("c3", old, True)],
        "then_mid": [("c1", old, False), ("c2", new, True), ("c3", old, False)],
        "data_late": [("c1", old, False), ("c2", late, False), ("c3", old, False)],
        "untouched": [("c1", old, False)],
    }
    return History(columns, writes(columns, cells), EVENT_TIME, "o")


def wide(**cells: list[Cell]) -> tuple[Step, ...]:
    return writes(WIDE, cells)


def ordered(first: str = "bulk_insert", **cells: list[Cell]) -> tuple[Step, ...]:
    return writes(ORDERED, cells, first)


BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
IN_MEMORY = {"hoodie.index.type": "INMEMORY", "hoodie.parquet.small.file.limit": "104857600"}
COMPACTS = {**EVENT_TIME, "hoodie.compact.inline.max.delta.commits": "1"}
ALLOWS_UPDATES = {
    **EVENT_TIME,
    "hoodie.clustering.updates.strategy": (
        "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    ),
}
LOG_COMPACTION = {**EVENT_TIME, "hoodie.log.compaction.blocks.threshold": "2"}
MERGE = "merge into {t} t using ({rows}) s on t.id = s.id when matched then update set {set}"


_COLUMN_ADDED = wide(a=[("c1", 1, 50), ("c2", 2, 60)], b=[("c1", 1, 50)], c=[("c1", 1, 50)])
_ADDED = "id string, val string, num bigint, ts bigint, extra string, p string"
_WIDENED = "id string, val string, o int, p string", "id string, val string, o bigint, p string"
_FLOATS = "id string, val float, ts bigint, p string"
_PENDING = ordered(a=[at(1, 50), at(2, 60)], b=[at(1, 50), at(2, 40)], c=[at(1, 50), at(2, 60, True)], d=[at(1, 50)])
_ROLLED_BACK = wide(a=[("c1", 1, 50), ("c2", 2, 60), ("c3", 3, 70)], b=[("c1", 1, 50), None, ("c3", 3, 70)])

INDEXED = {
    **EVENT_TIME,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}
# Writers that insert into log files and keep a record index fail from 1.0 on.
LISTED = {key: value for key, value in INDEXED.items() if "record.index" not in key and key != "hoodie.index.type"}


def _many() -> dict[str, list[Cell]]:
    """Sixty keys: updates, late updates, soft deletes, deletes, deletes that a smaller value takes back, inserts."""
    cells: dict[str, list[Cell]] = {}
    for number in range(60):
        row: list[Cell] = [at(1, 50) if number % 10 < 8 else None, None, None, None, None]
        if number % 3 == 0:
            row[1] = at(2, 40 + number, number % 4 == 1)
        if number % 5 == 1:
            row[2] = at(3, 60 - number)
        if number % 10 == 9:
            row[1] = at(2, number)
        if number % 7 == 2 and number % 10 < 8:
            row[3] = DELETE
        if number % 14 == 2 and number % 10 < 8:
            row[4] = at(5, 1)
        cells[f"key-{number:02d}"] = row
    return cells


HISTORIES: dict[str, History] = {
    "indexed": History(ORDERED, writes(ORDERED, _many()), INDEXED),
    "default_order": History(ORDERED, writes(ORDERED, ORDERINGS)),
    "overwrite_latest": History(ORDERED, writes(ORDERED, ORDERINGS), payload(MODEL + "OverwriteWithLatestAvroPayload")),
    "default_payload": History(ORDERED, writes(ORDERED, ORDERINGS), EVENT_TIME),
    "event_time_payload": History(ORDERED, writes(ORDERED, ORDERINGS), payload(MODEL + "EventTimeAvroPayload")),
    "first_value": History(
        ORDERED, writes(ORDERED, ORDERINGS), payload(MODEL + "FirstValueAvroPayload"), releases=("0.15.0", "1.0.2")
    ),
    "partial_update": History(WIDE, writes(WIDE, FIELDS), payload(MODEL + "PartialUpdateAvroPayload")),
    "non_defaults": History(WIDE, writes(WIDE, FIELDS), payload(MODEL + "OverwriteNonDefaultsWithLatestAvroPayload")),
    "aws_dms": History(DMS, writes(DMS, CHANGES), payload(MODEL + "AWSDmsAvroPayload")),
    "postgres": History(
        POSTGRES, writes(POSTGRES, LSN), payload(DEBEZIUM + "PostgresDebeziumAvroPayload"), "_event_lsn"
    ),
    "mysql": History(
        MYSQL,
        writes(MYSQL, BINLOG),
        payload(DEBEZIUM + "MySqlDebeziumAvroPayload"),
        {"0.15.0": "_event_seq", "1.0.2": "_event_seq", "1.2.0": "_event_bin_file,_event_pos"},
    ),
    "delete_marker": History(
        DMS,
        writes(DMS, CHANGES),
        {**EVENT_TIME, "hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"},
    ),
    "null_in_log": History(
        WIDE,
        wide(null_log=[("c1", 1, 50), ("c2", 1, None)], then=[("c1", 1, 50), ("c2", 1, None), ("c3", 1, 10)]),
        EVENT_TIME,
    ),
    "null_in_base": History(WIDE, wide(a=[("c1", 1, None), ("c2", 1, 10)], b=[("c1", 1, 50)]), EVENT_TIME),
    "null_int": History(
        "id string, val string, ts int, p string",
        writes(
            "id string, val string, ts int, p string",
            {
                "log_null_positive": [("c1", 50), ("c2", None)],
                "log_null_negative": [("c1", -5), ("c2", None)],
                "base_null_negative": [("c1", None), ("c2", -5)],
                "base_null_positive": [("c1", None), ("c2", 5)],
                "both_null": [("c1", None), ("c2", None)],
            },
        ),
        EVENT_TIME,
    ),
    "of_timestamp": typed("timestamp", *(datetime.datetime(2026, 1, day) for day in (5, 4, 6))),
    "of_date": typed("date", *(datetime.date(2026, 1, day) for day in (5, 4, 6))),
    "of_decimal": typed("decimal(10,2)", *(decimal.Decimal(text) for text in ("5.00", "4.00", "16.00"))),
    "of_string": typed("string", "m", "a", "z"),
    "of_double": typed("double", 5.0, 4.0, 16.0),
    "of_int": typed("int", 5, -4, 16),
    "parquet_blocks": History(
        ORDERED,
        ordered(a=[at(1, 50), at(2, 60)], b=[at(1, 50), at(2, 40)], c=[at(1, 50), at(2, 60, True)]),
        {**EVENT_TIME, "hoodie.logfile.data.block.format": "parquet"},
    ),
    "no_ordering": History(
        "id string, val string, p string",
        writes(
            "id string, val string, p string",
            {
                "a": [("c1",), ("c2",)],
                "b": [("c1",), ("c2",), DELETE],
                "c": [("c1",), None, DELETE, ("c4",)],
                "d": [("c1",)],
            },
        ),
        {"hoodie.combine.before.upsert": "false"},
        None,
    ),
    "string_order": History(
        "id string, val string, o string, p string",
        writes(
            "id string, val string, o string, p string",
            {
                "digits": [("c1", "9"), ("c2", "10")],
                "case": [("c1", "a"), ("c2", "B")],
                "astral": [("c1", "\uff5e"), ("c2", "\U0001f600")],
                "empty": [("c1", ""), ("c2", "0")],
            },
        ),
        EVENT_TIME,
        "o",
    ),
    "two_fields": History(
        "id string, val string, a int, b string, p string",
        writes(
            "id string, val string, a int, b string, p string",
            {
                "a_up": [("c1", 5, "m"), ("c2", 6, "m")],
                "a_down": [("c1", 5, "m"), ("c2", 4, "m")],
                "b_up": [("c1", 5, "m"), ("c2", 5, "n")],
                "b_down": [("c1", 5, "m"), ("c2", 5, "l")],
                "a_up_b_down": [("c1", 5, "m"), ("c2", 6, "a")],
                "same": [("c1", 5, "m"), ("c2", 5, "m"), DELETE],
            },
        ),
        EVENT_TIME,
        "a,b",
        ("1.2.0",),
    ),
    "order_widened": History(
        _WIDENED[0],
        (
            *writes(_WIDENED[0], {"newer": [("c1", 50)], "late": [("c1", 50)], "del": [("c1", 50)]}),
            Step("upsert", (("newer", "c2", 60, "p0"), ("late", "c2", 40, "p0"), ("del", "c2", 60, "p0")), _WIDENED[1]),
            Step("delete", (("del", "x", 1, "p0"),), _WIDENED[1]),
        ),
        EVENT_TIME,
        "o",
    ),
    # In p0 a log file has doubles, in p1 none has.
    "floats_widened": History(
        _FLOATS,
        (
            Step("bulk_insert", tuple((f"{key}{p}", 1 / 3, 50, p) for key in "abc" for p in ("p0", "p1")), _FLOATS),
            Step("upsert", tuple((f"{key}{p}", 2 / 3, 60, p) for key in "bc" for p in ("p0", "p1")), _FLOATS),
            Step("upsert", (("cp0", 4 / 3, 70, "p0"),), _FLOATS.replace("float", "double")),
        ),
        EVENT_TIME,
    ),
    "column_added": History(
        WIDE,
        (*_COLUMN_ADDED, Step("upsert", (("b", "c3", 3_000_000_000, 60, "extra", "p0"),), _ADDED)),
        EVENT_TIME,
    ),
    "merge_into": History(
        WIDE,
        (
            *wide(**{key: [("c1", 1, 50)] for key in ("one", "late", "two", "none")}),
            sql(
                MERGE.replace("{set}", "val = s.val, ts = s.ts").replace(
                    "{rows}",
                    "select 'one' id, 'm2' val, cast(60 as bigint) ts, 'p0' p union all select 'late', 'm2',"
                    " cast(40 as bigint), 'p0' union all select 'two', 'm2', cast(60 as bigint), 'p0'",
                )
            ),
            sql(
                MERGE.replace("{set}", "num = s.num, ts = s.ts").replace(
                    "{rows}", "select 'two' id, 33 num, cast(70 as bigint) ts, 'p0' p"
                )
            ),
            sql("update {t} set num = 99 where id = 'none'"),
            Step("upsert", (("one", "c5", 5, 65, "p0"),), WIDE),
        ),  # In 0.15.0 both statements fail.
        releases=("1.0.2", "1.2.0"),
    ),
    "bucket": History(
        ORDERED,
        ordered(
            "upsert",
            a=[at(1, 50), at(2, 40)],
            b=[at(1, 50), at(2, 60, True)],
            c=[at(1, 50), None, DELETE, at(4, 5)],
            d=[None, at(2, 10)],
            ghost=[None, None, DELETE, at(4, 5)],
        ),
        BUCKETS,
    ),
    "log_only": History(
        ORDERED,
        ordered(
            "upsert",
            a=[at(1, 50), at(2, 40)],
            b=[at(1, 50), at(2, 60, True)],
            c=[at(1, 50), None, DELETE, at(4, 5)],
            d=[None, at(2, 10)],
            ghost=[None, None, DELETE],
        ),
        IN_MEMORY,
    ),
    "listed_log_only": History(
        ORDERED,
        ordered(
            "upsert",
            a=[at(1, 50), at(2, 40)],
            b=[at(1, 50), at(2, 60, True)],
            c=[at(1, 50), None, DELETE, at(4, 5)],
            d=[None, at(2, 10)],
        ),
        {**IN_MEMORY, **LISTED},
    ),
    "listed_rolled_back": History(
        WIDE,
        (
            *_ROLLED_BACK,
            call("call rollback_to_instant(table => '{t}', instant_time => '{last}')"),
            Step("upsert", (("b", "c5", 5, 65, "p0"),), WIDE),
        ),
        INDEXED,
    ),
    "listed_pending": History(
        ORDERED,
        (
            *_PENDING,
            call("call run_compaction(op => 'schedule', path => '{path}')"),
            Step("upsert", (("a", *at(4, 55), "p0"), ("c", *at(4, 55), "p0"), ("e", *at(4, 70), "p0")), ORDERED),
        ),
        {**INDEXED, **COMPACTS},
    ),
    "rolled_back": History(
        WIDE,
        (
            *_ROLLED_BACK,
            call("call rollback_to_instant(table => '{t}', instant_time => '{last}')"),
            Step("upsert", (("b", "c5", 5, 65, "p0"),), WIDE),
        ),
    ),
    "uncommitted": History(WIDE, (*_ROLLED_BACK, Step("lose the commit"))),
    "torn_tail": History(
        WIDE,
        (
            *wide(a=[("c1", 1, 50), ("c2", 2, 60)], b=[("c1", 1, 50)]),
            Step("tear the log"),
            Step("upsert", (("b", "c4", 4, 70, "p0"),), WIDE),
        ),
    ),
    "compaction": History(
        ORDERED,
        (
            *_PENDING,
            call("call run_compaction(op => 'schedule', path => '{path}')"),
            Step("upsert", (("a", *at(4, 55), "p0"), ("c", *at(4, 55), "p0"), ("d", *at(4, 70), "p0")), ORDERED),
            call("call run_compaction(op => 'run', path => '{path}')"),
            Step("upsert", (("a", *at(6, 58), "p0"),), ORDERED),
        ),
        COMPACTS,
    ),
    "clustering": History(
        ORDERED,
        (
            *_PENDING,
            Step("upsert", (("b", *at(3, 45), "p0"), ("d", *at(3, 60), "p0")), ORDERED),
            call("call run_clustering(path => '{path}', op => 'schedule')"),
            call("call run_clustering(path => '{path}', op => 'execute')"),
            Step("upsert", (("a", *at(6, 58), "p0"), ("d", *at(6, 70), "p0")), ORDERED),
        ),
        ALLOWS_UPDATES,
    ),
    "log_compaction": History(
        WIDE,
        (
            *wide(
                a=[("c1", 1, 50), ("c2", 2, 60), ("c3", 3, 55)],
                b=[("c1", 1, 50), None, ("c3", 3, 60)],
                c=[("c1", 1, 50), None, None, DELETE],
            ),
            Step("upsert", (("b", "c5", 5, 70, "p0"),), WIDE, options={"hoodie.log.compaction.inline": "true"}),
            Step("upsert", (("a", "c6", 6, 58, "p0"),), WIDE),
        ),
        LOG_COMPACTION,
    ),
    "log_compaction_of_deletes": History(
        ORDERED,
        (
            *writes(
                ORDERED,
                {
                    "a": [at(1, 5), at(2, 7, True), at(3, 4)],
                    "b": [at(1, 5), at(2, 7, True), at(3, 8)],
                    "c": [at(1, 5), at(2, 7), at(3, 4, True)],
                },
            ),
            Step("upsert", (("d", "c4", 5, False, "p0"),), ORDERED, options={"hoodie.log.compaction.inline": "true"}),
            Step("upsert", (("c", "c5", 6, False, "p0"),), ORDERED),
        ),
        LOG_COMPACTION,
    ),
    "positions": History(
        WIDE,
        wide(
            **{key: [("c1", 1, 50)] for key in "ad"},
            b=[("c1", 1, 50), ("c2", 2, 60)],
            e=[("c1", 1, 50), ("c2", 2, 40)],
            c=[("c1", 1, 50), None, DELETE, ("c4", 4, 10)],
            f=[("c1", 1, 50), None, None, ("c4", 4, 70)],
        ),
        {**EVENT_TIME, "hoodie.write.record.positions": "true", "hoodie.index.type": "SIMPLE"},
    ),
}
