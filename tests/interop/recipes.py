"""The tables of the interop tests, as real Hudi writes them: small, each one about one thing.

Values are functions of the row number `id`, so that a table can be made again and compared.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
# Filters of 60,000 keys, Hudi's default, would be nearly all of the small files here, and of the time to write them.
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "1000", "hoodie.bloom.index.filter.dynamic.max.entries": "2000"}
# What a careful person would set on a test machine: two cores, no 200 ms pauses, every insert a new file, and only
# the services that a test asks for.
WRITE_DEFAULTS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.index.type": "BLOOM",
}
# A record index of each partition (1.1 and later).
PARTITIONED_INDEX = {"hoodie.metadata.record.level.index.enable": "true", "hoodie.index.type": "RECORD_LEVEL_INDEX"}
# column name -> SQL expression of `id`
Columns = Mapping[str, str]


class Writer:
    """Writes the commits of one table."""

    def __init__(
        self, spark: "SparkSession", version: str, path: str, options: Mapping[str, str] | None = None
    ) -> None:
        """`options` go into every commit."""
        self.spark = spark
        self.version = version
        self.path = path
        self._options = dict(options or {})

    def write(
        self,
        columns: Columns,
        first: int,
        end: int,
        operation: str,
        *,
        partition: str = "",
        tasks: int = 1,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """One commit of the rows `first` up to `end`; a bulk insert makes `tasks` files per partition at most."""
        known = WRITE_DEFAULTS | {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": operation,
            "hoodie.bulkinsert.sort.mode": "NONE",
            **SMALL_FILTERS,
            **self._options,
        }
        if partition:
            known["hoodie.datasource.write.partitionpath.field"] = partition
        self._frame(columns, first, end, tasks).write.format("hudi").options(**(known | dict(options or {}))).mode(
            "append"
        ).save(self.path)

    def commits(self) -> int:
        """How many the active timeline has."""
        files = (file for file in Path(self.path, ".hoodie").rglob("*.commit") if "metadata" not in file.parts)
        return len(list(files))

    def savepoint(self) -> None:
        """Hold what the table is now."""
        view = "to_hold"
        self.spark.sql(f"create table {view} using hudi location '{self.path}'")
        commits = self.spark.sql(f"call show_commits(table => '{view}', limit => 1)").collect()
        self.spark.sql(f"call create_savepoint(table => '{view}', commit_time => '{commits[0].commit_time}')")
        self.spark.sql(f"drop table {view}")

    def indexes(self, *statements: str) -> None:
        """Run `create index` and `drop index` on the table `to_index`. Hudi builds indexes as if beside writers, and
        asks for a lock."""
        self.spark.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
        self.spark.sql(f"create table to_index using hudi location '{self.path}'")
        for statement in statements:
            self.spark.sql(statement)
        self.spark.sql("drop table to_index")
        self.spark.sql("reset hoodie.write.lock.provider")

    def _frame(self, columns: Columns, first: int, end: int, tasks: int) -> "DataFrame":
        expressions = [f"{sql} as {name}" for name, sql in columns.items()]
        return self.spark.range(first, end, 1, tasks).selectExpr(*expressions)


@dataclass(frozen=True)
class Recipe:
    """How to make a table, by which releases; `sort` names columns to cluster it by."""

    make: Callable[[Writer], None]
    sort: tuple[str, ...] = ()
    releases: tuple[str, ...] = VERSIONS


KEY = "concat('k-', lpad(cast(id as string), 6, '0'))"
TRIP: Columns = {
    "id": KEY,
    "ts": "id * 10",
    "name": "concat('name-', cast(id % 17 as string))",
    "amount": "case when id % 3 = 0 then null else cast(hash(id) % 1000 as double) / 8 end",
    "qty": "hash(id, 7) % 500",
    "at": "timestamp_micros(1700000000123456 + id * 1001)",
    "part": "concat('p', cast(id div 10 % 3 as string))",
}
# Every type that Spark can write, with nulls, empty values and the awkward floating-point numbers.
SCALARS: Columns = {
    "id": KEY,
    "ts": "id * 10",
    "flag": "case when id % 4 = 0 then null else id % 3 = 0 end",
    "num": "hash(id)",
    "big": "case when id % 7 = 0 then null else xxhash64(id) end",
    "real": "case id % 6 when 0 then float('NaN') when 1 then float('-0.0') when 2 then float(0) when 3 then null"
    " when 4 then float('-Infinity') else float(id / 3) end",
    "wide": "case id % 6 when 0 then double('NaN') when 1 then double('-0.0') when 2 then double(0) when 3 then null"
    " when 4 then double('Infinity') else id / 3 end",
    "dec5": "cast(hash(id) % 99999 / 100 as decimal(5,2))",
    "dec18": "case when id % 3 = 0 then null else cast(xxhash64(id) / 100000 as decimal(18,4)) end",
    "dec25": "cast(xxhash64(id) as decimal(25,4))",
    "dec38": "cast(concat(cast(xxhash64(id) as string), '123456789.0123456789') as decimal(38,10))",
    "day": "case when id % 6 = 0 then null else date_add(date'1969-12-01', cast(id % 90 as int)) end",
    "at": "timestamp_micros(hash(id) * 1000003L)",
    "text": "case id % 4 when 0 then null when 1 then '' else concat('é🚀 ', cast(id as string)) end",
    "bin": "case id % 5 when 0 then null when 1 then cast('' as binary) else unhex(hex(xxhash64(id))) end",
}
NESTED: Columns = {
    "tags": "case id % 5 when 0 then null when 1 then cast(array() as array<string>)"
    " else array('a', cast(id as string)) end",
    "longs": "array(id, id + 1)",
    "structs": "case when id % 3 = 0 then null else array(struct(id as x, array(cast(id as int)) as y)) end",
    "counts": "case id % 4 when 0 then null when 1 then cast(map() as map<string,bigint>)"
    " else map('a', id, 'b', null) end",
    "rich": "map('k', struct(cast(id as string) as s, cast(id as decimal(12,3)) as d))",
    "inner": "case when id % 6 = 0 then null else struct(id as x, case when id % 2 = 0 then null"
    " else struct('q' as z, timestamp_micros(id) as w) end as y) end",
}
# Null elements: the Avro path refuses them in its default (two-level) lists.
HOLES: Columns = {
    "tags": "case id % 5 when 0 then null else array('a', null, cast(id as string)) end",
    "structs": "case when id % 3 = 0 then null"
    " else array(struct(id as x, array(cast(id as int), null) as y), null) end",
}
LOCAL: Columns = {"ntz": "cast(timestamp_micros(hash(id, 3) * 100003L) as timestamp_ntz)"}


def _plain(w: Writer) -> None:
    """Hive-style partitions written by inserts (the Avro path), then updates and deletes."""
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    for i in range(3):
        w.write(TRIP, i * 90, i * 90 + 90, "insert", partition="part", options=hive)
    changed = {**TRIP, "ts": "id * 10 + 5", "name": "concat('new-', cast(id as string))"}
    w.write(changed, 40, 55, "upsert", partition="part", options=hive)
    w.write(TRIP, 100, 107, "delete", partition="part", options=hive)


def _plain8(w: Writer) -> None:
    """A table of version 8, as a later release writes it."""
    _plain(
        Writer(w.spark, w.version, w.path, {"hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "false"})
    )


def _bulk(w: Writer) -> None:
    """No partitions, many files of one bulk insert (the row-writer path), then an insert (the Avro path).

    With bloom filters as large as Hudi's default makes them.
    """
    large = {"hoodie.index.bloom.num_entries": "60000", "hoodie.bloom.index.filter.dynamic.max.entries": "100000"}
    w.write(TRIP, 0, 240, "bulk_insert", tasks=6, options=large)
    w.write(TRIP, 240, 300, "insert", options=large)


def _paths(w: Writer) -> None:
    """Two levels of partitions, hive style and url-encoded, with unicode, blanks, slashes and nulls in their values."""
    columns = {
        **TRIP,
        "city": "element_at(array('Zürich', 'a/b=c d', '東京', null), cast(id % 4 + 1 as int))",
        "day": "element_at(array('2026-01-01', '50%'), cast(id div 4 % 2 + 1 as int))",
    }
    keys = {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    for i in range(2):
        w.write(columns, i * 80, i * 80 + 80, "bulk_insert", partition="city,day", tasks=2, options=keys)


def _types_avro(w: Writer) -> None:
    """Every type, as inserts write them: lists of two levels, and of three with null elements."""
    columns = {**SCALARS, **NESTED, **_local(w)}
    for i in range(2):
        w.write({**columns, "kind": "'two'"}, i * 60, i * 60 + 60, "insert", partition="kind")
    old_lists = "parquet.avro.write-old-list-structure"
    hadoop = w.spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(old_lists, "false")
    try:
        for i in range(2, 4):
            w.write({**columns, **HOLES, "kind": "'three'"}, i * 60, i * 60 + 60, "insert", partition="kind")
    finally:
        hadoop.unset(old_lists)


def _types_row(w: Writer) -> None:
    """Every type, as bulk inserts write them: one partition for each way to write timestamps, decimals and lists."""
    kinds = {
        "micros": {},
        "millis": {"hoodie.parquet.outputtimestamptype": "TIMESTAMP_MILLIS"},
        "int96": {"hoodie.parquet.outputtimestamptype": "INT96"},
        "legacy": {"hoodie.parquet.writelegacyformat.enabled": "true"},
    }
    for i, (kind, options) in enumerate(kinds.items()):
        columns = {**SCALARS, **NESTED, **HOLES, **_local(w), "kind": f"'{kind}'"}
        w.write(columns, i * 60, i * 60 + 60, "bulk_insert", partition="kind", tasks=2, options=options)


def _local(w: Writer) -> Columns:
    return LOCAL if w.version == "1.2.0" else {}


def _mixed(w: Writer) -> None:
    """Both write paths into the same partition: the same columns with other physical types and nullability."""
    w.write({**SCALARS, **NESTED}, 0, 60, "bulk_insert", tasks=2)
    w.write({**SCALARS, **NESTED}, 60, 120, "insert")


def _evolved(w: Writer) -> None:
    """A column and a nested field were added, and an int became a long, between inserts."""
    old = {**TRIP, "pair": "struct(id as x)"}
    new = {
        **TRIP,
        "qty": "cast(hash(id, 7) % 500 as bigint) * 10000000000",
        "pair": "struct(id as x, nullif(cast(id as string), '') as y)",
        "extra": "nullif(concat('extra-', cast(id as string)), '')",
    }
    options = {"hoodie.datasource.write.reconcile.schema": "false"}
    w.write(old, 0, 60, "insert", partition="part", options=options)
    w.write(new, 60, 120, "insert", partition="part", options=options)
    w.write(new, 120, 180, "insert", partition="part", options=options)


def _no_meta(w: Writer) -> None:
    """Without the five meta columns (virtual keys)."""
    options = {"hoodie.populate.meta.fields": "false"}
    for i in range(2):
        w.write(TRIP, i * 90, i * 90 + 90, "bulk_insert", partition="part", tasks=2, options=options)


def _no_mdt(w: Writer) -> None:
    """Without a metadata table."""
    options = {"hoodie.metadata.enable": "false"}
    for i in range(3):
        w.write(TRIP, i * 90, i * 90 + 90, "insert", partition="part", options=options)


def _many(w: Writer) -> None:
    """Many commits, so that the metadata table was compacted and has logs on top; column stats in every release."""
    options = {
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    for i in range(8):
        w.write(TRIP, i * 30, i * 30 + 30, "insert", partition="part", options=options)


def _past(w: Writer) -> None:
    """A past to clean: updates of some partitions, one partition overwritten, one dropped, a savepoint in between."""
    for i in range(2):
        w.write(TRIP, i * 60, i * 60 + 60, "insert", partition="part")
    w.write({**TRIP, "part": "'gone'"}, 200, 220, "insert", partition="part")
    changed = {**TRIP, "ts": "id * 10 + 5"}
    w.write(changed, 0, 10, "upsert", partition="part")
    w.savepoint()
    w.write(changed, 0, 20, "upsert", partition="part")
    w.write({**TRIP, "part": "'p1'"}, 300, 330, "insert_overwrite", partition="part")
    drop = {"hoodie.datasource.write.partitions.to.delete": "gone"}
    w.write({**TRIP, "part": "'gone'"}, 200, 220, "delete_partition", partition="part", options=drop)
    for _ in range(2):
        w.write(changed, 20, 25, "upsert", partition="part")


def _beyond(w: Writer) -> None:
    """The archive has just passed a savepoint, whose rows are out of sight since: ten rows by each commit."""
    options = {
        "hoodie.archive.beyond.savepoint": "true",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    columns = {"id": "cast(id as string)", "ts": "id", "part": "'p'"}
    w.write(columns, 0, 10, "insert", partition="part", options=options)
    w.savepoint()
    written = 1
    while w.commits() == written:
        assert written < 12, "nothing is archived"
        w.write(columns, written * 10, written * 10 + 10, "insert", partition="part", options=options)
        written += 1


def _changes(w: Writer) -> None:
    """With change data capture: a log file beside every rewritten base file. No partitions."""
    options = {"hoodie.table.cdc.enabled": "true"}
    w.write(TRIP, 0, 60, "insert", options=options)
    for i in range(4):
        w.write({**TRIP, "ts": f"id * 10 + {i + 1}"}, i * 5, i * 5 + 20, "upsert", options=options)


def _keyed(w: Writer) -> None:
    """With a record index, bloom filters, statistics, in 1.x a secondary index; deletes; keys that came back."""
    options = {
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "4",
        "hoodie.index.type": "RECORD_INDEX",
    }
    # As rows that come back are: 1.0.2 cannot update a secondary index when a column is nullable in the new rows and is
    # not in the files ("incompatible types: required binary id (STRING) != optional binary id (STRING)").
    columns = {name: f"if(id < 0, null, {sql})" for name, sql in TRIP.items()}
    for i in range(3):
        w.write(columns, i * 60, i * 60 + 60, "insert", partition="part", options=options)
    if w.version != "0.15.0":
        w.indexes("create index on_name on to_index (name)")
    w.write({**columns, "ts": "id * 10 + 5"}, 40, 55, "upsert", partition="part", options=options)
    w.write(columns, 100, 112, "delete", partition="part", options=options)
    w.write({**columns, "ts": "id * 10 + 6"}, 104, 107, "upsert", partition="part", options=options)


def _by_partition(w: Writer) -> None:
    """With a record index of each partition: names that its file groups spell in another way, keys in two partitions.

    A partition that comes later, deletes, and keys that came back. Hive style, or Hudi reads `k=v` as `v`. No
    dot: Hudi does not know its own log files then ("Partition record_index should be part of inflight metadata
    partitions here []").
    """
    options = {
        **PARTITIONED_INDEX,
        "hoodie.metadata.record.level.index.min.filegroup.count": "2",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    odd = {**TRIP, "part": "element_at(array('a-b', 'c_d', 'k=v', '50%', '2026/東 京'), cast(id % 5 + 1 as int))"}
    late = {**TRIP, "part": "'later-on'", "name": "concat('late-', cast(id as string))"}
    w.write(odd, 0, 60, "insert", partition="part", options=options)
    w.write(late, 0, 20, "insert", partition="part", options=options)
    w.write(odd, 20, 25, "delete", partition="part", options=options)
    w.write({**odd, "ts": "id * 10 + 6"}, 22, 24, "upsert", partition="part", options=options)


def _by_no_partition(w: Writer) -> None:
    """The same of a table without partitions: the index has the file groups of one partition without a name."""
    w.write(TRIP, 0, 60, "insert", options=PARTITIONED_INDEX)
    w.write({**TRIP, "ts": "id * 10 + 5"}, 0, 12, "upsert", options=PARTITIONED_INDEX)
    w.write(TRIP, 20, 25, "delete", options=PARTITIONED_INDEX)


def _unbounded(w: Writer) -> None:
    """Values that footers tell no range of: some NaN and nulls, NaN alone, nulls alone, texts and bytes above 4,096.

    A file of each kind in three partitions, and a fourth of plain values alone.
    """
    number = "case when id >= 240 then id + 760 when v < 20 then v when v >= 60 or (v < 40 and v % 4 = 1) then null"
    number += " when v >= 40 or v % 4 = 0 then {nan} else v end"
    text = "case when v < 20 then concat('a', v) when v >= 60 or (v < 40 and v % 4 = 1) then null"
    text += " when v = 30 then rpad('b', 5000, 'b') when v < 40 then concat('b', v)"
    text += " else rpad(concat('c', v), 5000, 'é') end"
    columns = {
        "id": KEY,
        "ts": "id",
        "wide": number.format(nan="double('NaN')"),
        "real": f"""cast({number.format(nan="double('NaN')")} as float)""",
        "text": text,
        "bin": f"cast({text} as binary)",
        "part": "element_at(array('decoded', 'copied', 'sorted', 'other'), cast(id div 80 + 1 as int))",
    }
    of_row = {name: re.sub(r"\bv\b", "(id % 80)", sql) for name, sql in columns.items()}
    w.write(of_row, 0, 260, "bulk_insert", partition="part", tasks=13)


EXPRESSIONS = {
    "by_day": "column_stats(ts) options(expr='from_unixtime', format='yyyy-MM-dd')",
    "by_date": "column_stats(at) options(expr='to_date')",
    "lowered": "bloom_filters(name) options(expr='lower', numentries='1000')",
}


def _expressions(w: Writer) -> None:
    """Expression indexes: ranges of texts and of dates, and bloom filters."""
    # With one, 1.0.2 cannot update a table whose columns are nullable in the rows and were not in the files.
    columns = {
        **TRIP,
        "ts": "if(id < 0, null, 1700000000 + id * 4000)",
        "at": "if(id < 0, null, timestamp_micros(1700000000123456 + id * 30000000000))",
        "name": "if(id < 0, null, concat('Name-É', cast(id as string)))",
    }
    for i in range(2):
        w.write(columns, i * 60, i * 60 + 60, "insert", partition="part")
    w.indexes(*(f"create index {name} on to_index using {what}" for name, what in EXPRESSIONS.items()))


_SINCE_1_0 = ("1.0.2", "1.2.0")
RECIPES = {
    "plain": Recipe(_plain, ("name", "ts")),
    "bulk": Recipe(_bulk, ("amount", "id")),
    "paths": Recipe(_paths, ("qty",)),
    "types_avro": Recipe(_types_avro, ("dec18", "wide")),
    "types_row": Recipe(_types_row, ("at",)),
    "mixed": Recipe(_mixed, ("num",)),
    "evolved": Recipe(_evolved, ("qty",)),
    "no_meta": Recipe(_no_meta, ("name",)),
    "no_mdt": Recipe(_no_mdt),
    "many": Recipe(_many, ("at",)),
    "plain8": Recipe(_plain8, releases=("1.2.0",)),
    "past": Recipe(_past),
    "beyond": Recipe(_beyond),
    "changes": Recipe(_changes),
    "keyed": Recipe(_keyed, ("name",)),
    "by_partition": Recipe(_by_partition, ("name",), ("1.2.0",)),
    "by_no_partition": Recipe(_by_no_partition, ("name",), ("1.2.0",)),
    "expressions": Recipe(_expressions, ("name",), _SINCE_1_0),
    "unbounded": Recipe(_unbounded, releases=_SINCE_1_0),
}
