"""Predictions of `advise` against what Spark with real Hudi 1.2.0 reads after each of four layouts: docs/advise.md.

Ten tables with a workload each. `advise` predicts; then each of the four layouts, with the columns and the target size
that `advise` has for it, is carried out on a copy of the table by this program's own clustering, and Spark plans and
runs the predicates with data skipping: the number and the bytes of the files of its scan are what was read. `--only
NAME` measures one workload (or several: a comma list), `--json FILE` keeps all numbers, and `--render FILE` only prints
the table of docs/advise.md from such a file.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from math import nan
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa

import hudi_services
from hudi_services.advising.layout_search import ERROR
from tests.interop.peer import Peer

SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "1000", "hoodie.bloom.index.filter.dynamic.max.entries": "2000"}
TARGET = "hoodie.clustering.plan.strategy.target.file.max.bytes"
SORT_COLUMNS, LAYOUT = "hoodie.clustering.plan.strategy.sort.columns", "hoodie.layout.optimize.strategy"
KINDS = ("NONE", "LINEAR", "ZORDER", "HILBERT")
WITHIN = 0.10
TIE = 0.01
"""Layouts that read so little more than the best one count as the best, too."""
EPOCH = datetime(2024, 1, 1, tzinfo=timezone.utc)

MEASURE = """
spark.conf.set("spark.sql.adaptive.enabled", "false")
frame = spark.read.format("hudi").option("hoodie.metadata.enable", "true").option("hoodie.enable.data.skipping", "true")
table = frame.load(path)
result = []
for clause in clauses:
    execution = table.where(clause)._jdf.queryExecution()
    rows = execution.toRdd().count()
    metrics = execution.executedPlan().collectLeaves().apply(0).metrics()
    result.append([rows, metrics.apply("numFiles").value(), metrics.apply("filesSize").value()])
"""

Random = np.random.Generator
Batches = Iterator[pa.Table]


@dataclass(frozen=True)
class Workload:
    """A table, written in several commits, and the predicates of its queries with their weights."""

    name: str
    batches: Callable[[Random], Batches]
    predicates: Sequence[tuple[float, str]]
    target: int = 512 << 10
    partition_by: str | None = None
    others: str = ""
    """The columns of the curves, where `advise` finds only one column worth sorting by, and tries no curve."""
    options: dict[str, str] = field(default_factory=dict)


def times(seconds: Any) -> pa.Array:
    base = int(EPOCH.timestamp() * 1e6)
    return pa.array((np.asarray(seconds) * 1e6).astype(np.int64) + base, pa.timestamp("us", "UTC"))


def days(numbers: Any) -> pa.Array:
    base = (EPOCH.date() - date(1970, 1, 1)).days
    return pa.array(np.asarray(numbers).astype(np.int32) + base, pa.int32()).cast(pa.date32())


def at(seconds: float) -> str:
    return f"TIMESTAMP'{(EPOCH + timedelta(seconds=seconds)):%Y-%m-%d %H:%M:%S}'"


def on(day: int) -> str:
    return f"DATE'{(EPOCH + timedelta(days=day)):%Y-%m-%d}'"


def keys(batch: int, rows: int) -> list[str]:
    return [f"{batch:02d}-{n:07d}" for n in range(rows)]


def skewed(random: Random, values: int, rows: int, power: float = 1.3) -> Any:
    shares = 1.0 / np.arange(1, values + 1) ** power
    return random.choice(values, rows, p=shares / shares.sum())


def nulled(random: Random, values: Any, share: float) -> pa.Array:
    return pa.array(values, mask=random.random(len(values)) < share)


def rides(random: Random) -> Batches:
    """Rides in the order of their days: skewed cities, and fares."""
    for batch in range(12):
        rows = 15_000
        yield pa.table(
            {
                "id": keys(batch, rows),
                "city": [f"city-{n:03d}" for n in skewed(random, 200, rows)],
                "fare": np.round(random.lognormal(2.5, 0.8, rows), 2),
                "ts": times(batch * 86_400 + random.random(rows) * 86_400),
                "distance": random.random(rows) * 30,
            }
        )


def places(random: Random) -> Batches:
    """Points on a map, uniform: boxes are asked for."""
    for batch in range(10):
        rows = 30_000
        yield pa.table(
            {
                "id": keys(batch, rows),
                "lat": random.random(rows) * 180 - 90,
                "lon": random.random(rows) * 360 - 180,
                "height": pa.array(random.integers(0, 4000, rows), pa.int32()),
            }
        )


def ordered(random: Random) -> Batches:
    """Orders that come in the order of their times, by which they are asked for."""
    for batch in range(20):
        rows = 8_000
        yield pa.table(
            {
                "id": keys(batch, rows),
                "ts": times(batch * 36_000 + np.sort(random.random(rows)) * 36_000),
                "amount": np.round(random.gamma(2.0, 40.0, rows), 2),
                "customer": pa.array(random.integers(0, 40_000, rows), pa.int64()),
            }
        )


def users(random: Random) -> Batches:
    """Accounts with texts of high cardinality."""
    for batch in range(10):
        rows = 12_000
        yield pa.table(
            {
                "id": keys(batch, rows),
                "login": [f"u{n:08x}" for n in random.integers(0, 1 << 32, rows)],
                "country": [f"C{n:02d}" for n in skewed(random, 60, rows)],
                "created": days(random.integers(0, 1000, rows)),
                "score": random.normal(100, 15, rows),
            }
        )


def regional(random: Random) -> Batches:
    """Sales in partitions by region, of different sizes."""
    for batch in range(8):
        rows = 30_000
        yield pa.table(
            {
                "id": keys(batch, rows),
                "region": [("north", "east", "south", "west")[n] for n in skewed(random, 4, rows, 0.9)],
                "day": days(random.integers(0, 365, rows)),
                "amount": np.round(random.exponential(80, rows), 2),
                "product": pa.array(random.integers(0, 5000, rows), pa.int32()),
            }
        )


def logs(random: Random) -> Batches:
    """Log lines: rare levels, nulls, services of low cardinality."""
    for batch in range(10):
        rows = 25_000
        latency = random.exponential(120, rows)
        yield pa.table(
            {
                "id": keys(batch, rows),
                "level": np.array(["ERROR", "INFO", "WARN"])[random.choice(3, rows, p=[0.004, 0.9, 0.096])].tolist(),
                "service": [f"svc-{n:02d}" for n in skewed(random, 25, rows, 0.8)],
                "latency": nulled(random, latency, 0.3),
                "code": nulled(random, random.choice([200, 301, 404, 500], rows, p=[0.93, 0.04, 0.025, 0.005]), 0.05),
                "ts": times(batch * 3600 + random.random(rows) * 3600),
            }
        )


def sensors(random: Random) -> Batches:
    """Measurements of devices: temperature follows the time of the day."""
    for batch in range(10):
        rows = 40_000
        moment = random.random(rows) * 30 * 86_400
        hours = moment / 3600 % 24
        yield pa.table(
            {
                "id": keys(batch, rows),
                "device": pa.array(random.integers(0, 2000, rows), pa.int32()),
                "ts": times(moment),
                "temperature": 15 + 8 * np.sin((hours - 9) / 24 * 2 * np.pi) + random.normal(0, 1, rows),
                "battery": nulled(random, 100 - moment / 86_400 * 2 + random.normal(0, 3, rows), 0.1),
            }
        )


def shops(random: Random) -> Batches:
    """Receipts that are asked for by wide ranges alone: no layout saves much."""
    from decimal import Decimal

    for batch in range(8):
        rows = 15_000
        price = [Decimal(int(n)) / 100 for n in random.integers(100, 20_000, rows)]
        yield pa.table(
            {
                "id": keys(batch, rows),
                "shop": pa.array(random.integers(0, 40, rows), pa.int32()),
                "day": days(random.integers(0, 700, rows)),
                "price": pa.array(price, pa.decimal128(9, 2)),
                "note": nulled(random, [f"n{n}" for n in random.integers(0, 1000, rows)], 0.6),
            }
        )


def clicks(random: Random) -> Batches:
    """Clicks of skewed users in the order of their days: asked for by user, and by time."""
    for batch in range(15):
        rows = 20_000
        yield pa.table(
            {
                "id": keys(batch, rows),
                "user": pa.array(skewed(random, 30_000, rows, 1.1), pa.int64()),
                "ts": times(batch * 43_200 + random.random(rows) * 43_200),
                "page": [f"/p/{n}" for n in skewed(random, 3000, rows)],
                "seconds": pa.array(random.integers(0, 600, rows), pa.int32()),
            }
        )


def stocks(random: Random) -> Batches:
    """Prices whose volume is correlated with them, in partitions by year: two and three columns together."""
    for batch in range(10):
        rows = 36_000
        price = random.gamma(3.0, 30.0, rows)
        yield pa.table(
            {
                "id": keys(batch, rows),
                "year": pa.array(2020 + random.integers(0, 3, rows), pa.int32()),
                "symbol": [f"S{n:04d}" for n in random.integers(0, 900, rows)],
                "price": np.round(price, 3),
                "volume": pa.array((price * 100 * random.lognormal(0, 0.5, rows)).astype(np.int64)),
                "day": days(random.integers(0, 250, rows)),
            }
        )


WORKLOADS = (
    Workload(
        "rides",
        rides,
        [
            (4, "city = 'city-000'"),
            (3, "city = 'city-017'"),
            (2, "city IN ('city-003', 'city-120', 'city-199')"),
            (1, "fare > 60 AND fare <= 90"),
            (1, "city >= 'city-050' AND city < 'city-060'"),
            (1, f"ts >= {at(3 * 86_400)} AND ts < {at(3.5 * 86_400)}"),
        ],
    ),
    Workload(
        "places",
        places,
        [
            (2, "lat BETWEEN 10 AND 20 AND lon BETWEEN 30 AND 60"),
            (2, "lat > 70 AND lon < -150"),
            (1, "lat BETWEEN -35 AND -5 AND lon BETWEEN -20 AND 0"),
            (1, "lon BETWEEN 100 AND 104 AND lat BETWEEN -60 AND -20"),
            (1, "lat < -80"),
            (1, "lon > 175"),
        ],
        target=384 << 10,
    ),
    Workload(
        "ordered",
        ordered,
        [
            (3, f"ts >= {at(100_000)} AND ts < {at(110_000)}"),
            (2, f"ts >= {at(650_000)}"),
            (2, f"ts BETWEEN {at(300_000)} AND {at(330_000)}"),
            (1, f"ts < {at(5_000)}"),
        ],
        target=256 << 10,
        others="ts, amount",
    ),
    Workload(
        "users",
        users,
        [
            (5, "login = 'u7fffffff'"),
            (2, "login IN ('u00000001', 'u10000000', 'uf0000000')"),
            (2, "login >= 'uab' AND login < 'uac'"),
            (1, "login IN ('u01', 'u12', 'u23', 'u34', 'u45', 'u56', 'u67', 'u78', 'u89', 'u9a', 'uab', 'ubc')"),
            (1, f"created = {on(500)}"),
        ],
        target=256 << 10,
    ),
    Workload(
        "regional",
        regional,
        [
            (2, f"region = 'north' AND day BETWEEN {on(100)} AND {on(110)}"),
            (2, f"day >= {on(350)}"),
            (1, f"region IN ('east', 'west') AND day = {on(42)}"),
            (1, "product = 1234"),
            (1, f"amount > 500 AND day < {on(90)}"),
        ],
        target=256 << 10,
        partition_by="region",
    ),
    Workload(
        "logs",
        logs,
        [
            (3, "level = 'ERROR'"),
            (2, "level = 'ERROR' AND service = 'svc-03'"),
            (2, "latency > 900"),
            (1, "code = 500"),
            (1, "service = 'svc-11' AND level = 'WARN'"),
            (1, "code IS NULL AND level <> 'INFO'"),
        ],
    ),
    Workload(
        "sensors",
        sensors,
        [
            (3, f"device = 77 AND ts >= {at(10 * 86_400)} AND ts < {at(12 * 86_400)}"),
            (2, "device BETWEEN 500 AND 520"),
            (2, f"ts >= {at(29 * 86_400)}"),
            (1, f"temperature > 26 AND ts < {at(3 * 86_400)}"),
            (1, "device IN (1, 999, 1999)"),
        ],
        target=768 << 10,
    ),
    Workload(
        "shops",
        shops,
        [
            (2, f"day > {on(20)}"),
            (2, "price > 5.00"),
            (1, "shop <> 7"),
            (1, "note IS NOT NULL"),
            (1, f"price BETWEEN 2.50 AND 190.00 OR day < {on(600)}"),
        ],
        target=256 << 10,
    ),
    Workload(
        "clicks",
        clicks,
        [
            (2, "user = 12345"),
            (2, "user IN (7, 20111, 29000)"),
            (2, f"ts >= {at(400_000)} AND ts < {at(420_000)}"),
            (1, f"user BETWEEN 5000 AND 9000 AND ts < {at(100_000)}"),
            (1, f"ts >= {at(640_000)} AND user > 25000"),
        ],
    ),
    Workload(
        "stocks",
        stocks,
        [
            (2, "price BETWEEN 100 AND 120 AND volume > 20000"),
            (2, f"symbol = 'S0420' AND day BETWEEN {on(30)} AND {on(60)}"),
            (1, f"symbol >= 'S0850' AND price > 150 AND day > {on(200)}"),
            (1, "year = 2021 AND symbol IN ('S0001', 'S0500')"),
            (1, "volume < 500"),
        ],
        partition_by="year",
    ),
)


def made(workload: Workload, path: Path) -> hudi_services.Table:
    options = SMALL_FILTERS | {"hoodie.parquet.max.file.size": str(400 << 10)} | workload.options
    table = hudi_services.create(
        path, name=workload.name, record_key="id", partition_by=workload.partition_by, engine="local", options=options
    )
    random = np.random.default_rng(sum(map(ord, workload.name)))
    for batch in workload.batches(random):
        table.bulk_insert(batch)
    return table


def measured(peer: Peer, path: Path, workload: Workload) -> tuple[np.ndarray, np.ndarray, list[int]]:
    found = peer.eval(MEASURE, path=str(path), clauses=[clause for _, clause in workload.predicates])
    rows, files, sizes = zip(*found, strict=True)
    return np.array(files, float), np.array(sizes, float), list(rows)


def measure(workload: Workload, peer: Peer, folder: Path) -> dict[str, Any]:
    """All numbers of a workload: sums over its predicates by their weights."""
    path = folder / workload.name / "table"
    table = made(workload, path)
    target = {TARGET: str(workload.target)}
    advice = table.advise(workload.predicates, options=target)
    layouts = advice.report["tables"]["layouts"]
    weights = np.array([weight for weight, _ in workload.predicates])
    files, sizes, rows = measured(peer, path, workload)
    now = layouts[0]
    result: dict[str, Any] = {
        "workload": workload.name,
        "reason": advice.reason,
        "before": {
            "files": float(weights @ files),
            "bytes": float(weights @ sizes),
            "predicted_files": now["files_read"],
            "predicted_bytes": now["read_bytes"],
        },
        "layouts": {},
        "seconds": advice.report["seconds"],
    }
    for kind in KINDS:
        of_kind = [one for one in layouts if one["layout"] == kind]
        untried = {"columns": workload.others, "files_read": None, "read_bytes": None, "new_files": None}
        best = min(of_kind, key=lambda one: one["read_bytes"], default=untried)
        copy = folder / workload.name / kind.lower()
        shutil.copytree(path, copy)
        options = target | SMALL_FILTERS | {LAYOUT: kind} | ({SORT_COLUMNS: best["columns"]} if best["columns"] else {})
        clustered = hudi_services.open(copy, options=options, engine="local")
        clustered.cluster()
        files, sizes, again = measured(peer, copy, workload)
        assert again == rows, f"{workload.name}, {kind}: other rows"
        result["layouts"][kind] = {
            "columns": best["columns"],
            "predicted_files": best["files_read"],
            "predicted_bytes": best["read_bytes"],
            "predicted_new_files": best["new_files"],
            "files": float(weights @ files),
            "bytes": float(weights @ sizes),
            "new_files": clustered.files().num_rows,
            "by_predicate": [[clause, int(n)] for (_, clause), n in zip(workload.predicates, files, strict=True)],
        }
        if kind == "LINEAR":
            # What the next advice says of this clustering, which is now an earlier one.
            again_advice = clustered.advise(workload.predicates, options=target)
            result["earlier"] = again_advice.report["tables"]["earlier_clusterings"]
        shutil.rmtree(copy)
    least = min(one["read_bytes"] for one in layouts[1:])
    equal = [one for one in layouts[1:] if one["read_bytes"] * (1 - ERROR) <= least]
    result["chosen"] = min(equal, key=lambda one: (KINDS.index(one["layout"]), one["read_bytes"]))["layout"]
    shutil.rmtree(path)
    return result


def off(predicted: float, real: float) -> float:
    return abs(predicted - real) / real if real else float(predicted != real)


def judged(result: dict[str, Any]) -> dict[str, Any]:
    """Whether the prediction for the chosen layout is near, and whether the choice is the best."""
    of_kind = result["layouts"]
    chosen = of_kind[result["chosen"]]
    least = min(one["bytes"] for one in of_kind.values())
    return {
        "files_off": off(chosen["predicted_files"], chosen["files"]),
        "bytes_off": off(chosen["predicted_bytes"], chosen["bytes"]),
        "is_best": chosen["bytes"] <= least * (1 + TIE),
        "best": min(of_kind, key=lambda kind: of_kind[kind]["bytes"]),
    }


def rendered(results: Sequence[dict[str, Any]]) -> str:
    """The table of the page: for each workload the chosen layout, predicted and measured, and the others."""
    lines = [
        "| workload | before | chosen | files, predicted | files, read | MB, predicted | MB, read | off by | best |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        chosen, as_judged, before = one["layouts"][one["chosen"]], one["judged"], one["before"]
        columns = f" {chosen['columns']}" if chosen["columns"] else ""
        lines.append(
            f"| {one['workload']} | {before['files']:.0f} files, {before['bytes'] / 1e6:.1f} MB | "
            f"{one['chosen']}{columns} | {chosen['predicted_files']:.1f} | {chosen['files']:.0f} | "
            f"{chosen['predicted_bytes'] / 1e6:.2f} | {chosen['bytes'] / 1e6:.2f} | "
            f"{as_judged['files_off']:.1%}, {as_judged['bytes_off']:.1%} | {as_judged['best']} |"
        )
    lines += [
        "",
        "All four layouts, as predicted → as read (files; MB):",
        "",
        "| workload | NONE | LINEAR | ZORDER | HILBERT |",
        "|---|---|---|---|---|",
    ]
    for one in results:
        cells = [_cell(one["layouts"][kind]) for kind in KINDS]
        lines.append(f"| {one['workload']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(layout: dict[str, Any]) -> str:
    files, sizes = layout["predicted_files"], layout["predicted_bytes"]
    if files is None:
        return f"not tried → {layout['files']:.0f}; {layout['bytes'] / 1e6:.2f}"
    return f"{files:.1f} → {layout['files']:.0f}; {sizes / 1e6:.2f} → {layout['bytes'] / 1e6:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--render", default="")
    given = parser.parse_args()
    if given.render:
        print(rendered(json.loads(Path(given.render).read_text())))
        return
    results = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer("1.2.0", Path(folder) / "log")
        try:
            for workload in WORKLOADS:
                if not given.only or workload.name in given.only.split(","):
                    result = measure(workload, peer, Path(folder))
                    result["judged"] = judged(result)
                    results.append(result)
                    _print(result)
                    if given.json:
                        Path(given.json).write_text(json.dumps(results, indent=1))
        finally:
            peer.close()
    near = sum(max(one["judged"]["files_off"], one["judged"]["bytes_off"]) <= WITHIN for one in results)
    best = sum(one["judged"]["is_best"] for one in results)
    print(
        f"predicted within {WITHIN:.0%}: {near} of {len(results)}; "
        f"best of four layouts chosen: {best} of {len(results)}"
    )


def _print(result: dict[str, Any]) -> None:
    judged_as, before = result["judged"], result["before"]
    print(f"\n{result['workload']}: {result['reason']}")
    print(
        f"  before   {before['predicted_files']:8.1f} of {before['files']:8.1f} files, "
        f"{before['predicted_bytes'] / 1e6:8.2f} of {before['bytes'] / 1e6:8.2f} MB"
    )
    for kind, one in result["layouts"].items():
        print(
            f"  {kind:8s} {one['predicted_files'] or nan:8.1f} of {one['files']:8.1f} files, "
            f"{(one['predicted_bytes'] or nan) / 1e6:8.2f} of {one['bytes'] / 1e6:8.2f} MB, "
            f"{one['predicted_new_files']} of {one['new_files']} new files  {one['columns']}"
        )
    print(
        f"  chosen {result['chosen']}, best {judged_as['best']}; off by {judged_as['files_off']:.1%} of files, "
        f"{judged_as['bytes_off']:.1%} of bytes; seconds {result['seconds']['total']:.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
