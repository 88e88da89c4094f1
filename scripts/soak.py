"""A long run with a seed: real Hudi writers beside our services, both killed at random, against a model.

soak.py --seed 7 --minutes 30 --release 1.2.0 --folder DIR [--phase occ|single|nbcc|both] [--table COPY_ON_WRITE]

Phase occ: two writers under optimistic concurrency control, with a lock in ZooKeeper that both sides hold. Phase
single: one writer without a lock. Phase nbcc: two writers under non-blocking concurrency control, which append to the
same buckets of a merge-on-read table while we compact and cluster. Each writer owns its keys, so the model is a dict
for each; in phase nbcc they share some more keys, whose rows are decided by their ordering values. Every few minutes
all stop, and real Hudi, hudi-rs and our reader must read what the model says; `validate` must find nothing. Choices
come from the seed; what happens when depends on the clock, too. The exit code is 1 when rows differ, a run of ours
failed, or, with --late-only in phase occ, a writer failed because of us. The folder keeps the table, everything that it
ever had (kept), the batches, a journal, and the logs.
"""

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soak_actors import ROOT, HudiWriter, Services, Soak, end
from soak_table import Witness, differences, our_rows, records

sys.path.insert(0, str(ROOT))

_SPARK = ["--spark-master", "local[1]", "--spark-memory", "512m"]
_REWRITE = [*_SPARK, "--memory-per-task", "128m"]
_HEARTBEAT = {"hoodie.client.heartbeat.interval_in_ms": "3000", "hoodie.client.heartbeat.tolerable.misses": "10"}
_WRITER = {
    "hoodie.table.name": "soak",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.index.bloom.num_entries": "1000",
    "hoodie.bloom.index.filter.dynamic.max.entries": "2000",
    # Cleaning, archiving and the compaction of the metadata table pass over our commits all the time.
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "3",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "7",
    # Two writers that compact inline run into each other; we compact.
    "hoodie.compact.inline": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.async": "true",
    "hoodie.metadata.streaming.write.enabled": "false",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
_BUCKETS = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    # Its check goes by this key, which Spark's writer does not set.
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "3",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.metadata.record.index.enable": "false",
    # A bucket is rewritten by itself.
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
    "hoodie.clustering.plan.strategy.small.file.limit": "100000000",
    "hoodie.clustering.plan.strategy.max.bytes.per.group": "100000000",
}
_SERVICES = {
    "hoodie.clustering.plan.strategy.small.file.limit": "100000",
    "hoodie.clustering.plan.strategy.target.file.max.bytes": "1048576",
    "hoodie.clustering.plan.strategy.max.bytes.per.group": "60000",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
    # Less than the writers: there is something left to clean.
    "hoodie.clean.commits.retained": "2",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.write.lock.wait_time_ms": "20000",
    "hudi.services.abandoned.after.minutes": "1",
}


def main() -> int:
    parser = argparse.ArgumentParser(description="real Hudi writers beside our services, with a model")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=30, help="of all phases together")
    parser.add_argument("--release", default="1.2.0")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--phase", choices=("occ", "single", "nbcc", "both"), default="both")
    parser.add_argument("--table", choices=("COPY_ON_WRITE", "MERGE_ON_READ"), default="COPY_ON_WRITE")
    parser.add_argument("--late-only", action="store_true", help="no plans that keep writers out")
    parser.add_argument("--writer-kills", type=float, default=0.2, help="the share of writes that are killed")
    parser.add_argument("--service-kills", type=float, default=0.2, help="the share of our runs that are killed")
    parser.add_argument("--checkpoint-seconds", type=float, default=150)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    phases = ("occ", "single") if arguments.phase == "both" else (arguments.phase,)
    reports = []
    for phase in phases:
        reports.append(Phase(arguments, phase, arguments.minutes / len(phases)).run())
        if reports[-1]["problems"]:
            break
    (arguments.folder / "report.json").write_text(json.dumps(reports, indent=1))
    print(json.dumps(reports, indent=1) if arguments.format == "json" else "\n".join(map(as_table, reports)))
    return int(any(report["problems"] for report in reports))


class Phase:
    """One table, its writers and our services."""

    def __init__(self, arguments: argparse.Namespace, name: str, minutes: float) -> None:
        self.arguments = arguments
        self.name = name
        self.appends = name == "nbcc"
        """Whether all writes append to the same file groups, without conflicts."""
        self.table = "MERGE_ON_READ" if self.appends else arguments.table
        self.minutes = minutes
        self.folder = (arguments.folder / name).resolve()
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("batches", "scratch"):
            (self.folder / part).mkdir(parents=True)
        self.random = random.Random(f"{arguments.seed} {name}")
        self.checkpoints = 0
        self.begun = time.time()

    def run(self) -> dict[str, Any]:
        with no_lock() if self.name == "single" else zookeeper(self.folder) as lock:
            index = self.random.choice(("SIMPLE", "BLOOM", "RECORD_INDEX"))
            table = {"hoodie.datasource.write.table.type": self.table, "hoodie.index.type": index}
            if self.appends:
                index, table, lock = "BUCKET", {**table, **_BUCKETS}, {**lock, **_BUCKETS}
            props = self.folder / "services.properties"
            props.write_text("".join(f"{k}={v}\n" for k, v in {**_SERVICES, **_HEARTBEAT, **lock}.items()))
            options = {**_WRITER, **_HEARTBEAT, **table, **lock}
            self.soak = Soak(self.folder / "table", self.folder, self.arguments.release, options, props)
            print(f"{self.name}: {index}, {self.folder}", file=sys.stderr)
            names = ("w0",) if self.name == "single" else ("w0", "w1")
            seed, kills = self.arguments.seed, self.arguments.writer_kills
            pause = 4.0 if self.name == "single" else 1.5
            self.writers = [HudiWriter(self.soak, name, seed, pause, kills, appends=self.appends) for name in names]
            kills = self.arguments.service_kills
            self.services = [
                Services(self.soak, "clusterer", seed, 4.0, kills, self.clustering),
                Services(self.soak, "keeper", seed, 8.0, kills, self.keeping),
            ]
            witness = Witness(self.soak.path, self.folder / "kept")
            try:
                self.writers[0].first()
                witness.start()
                self.last()
            finally:
                self.soak.over.set()
                for actor in (*self.writers, *self.services):
                    if actor.is_started:
                        actor.join()
                for writer in self.writers:
                    writer.close()
                witness.stop()
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)
        return self.report()

    def last(self) -> None:
        """Let them act, with checkpoints; then bring the table to rest, and look once more."""
        actors = (*self.writers, *self.services)
        for actor in actors:
            actor.start()
        end_at = self.begun + self.minutes * 60
        while time.time() < end_at and not self.soak.over.is_set():
            self.soak.over.wait(min(self.arguments.checkpoint_seconds, max(1.0, end_at - time.time())))
            if self.soak.over.is_set():
                return
            for actor in actors:
                actor.turn.acquire()
            try:
                self.check()
                if time.time() >= end_at and not self.soak.problems:
                    self.settle()
                    self.check()
            finally:
                if self.soak.problems or time.time() >= end_at:
                    self.soak.over.set()
                for actor in actors:
                    actor.turn.release()

    def check(self) -> None:
        """All readers read what the models say."""
        self.checkpoints += 1
        soak, models = self.soak, self.soak.models
        print(
            f"{time.strftime('%H:%M:%S')} checkpoint {self.checkpoints}: {dict(sorted(soak.figures.items()))}",
            flush=True,
        )
        found: dict[str, Any] = {}
        for flag in ("true", "false"):
            out = self.folder / "scratch" / f"read-{self.checkpoints}-{flag}"
            table = self.writers[0].read({"hoodie.metadata.enable": flag}, out)
            if table is not None:
                found[f"Hudi, metadata {flag}"] = records(table)
        found |= our_rows(soak.path)
        if self.table == "COPY_ON_WRITE":
            from tests.interop.readers import hudi_rs_rows

            found["hudi-rs"] = records(hudi_rs_rows(soak.path))
        for reader, rows in found.items():
            wrong = differences(models, rows)
            if wrong:
                soak.problem(f"checkpoint {self.checkpoints}, {reader}: " + "\n  ".join(wrong))
        soak.figures["rows checked"] = sum(len(model.rows) for model in models)
        validating = self.services[1]
        code = validating.run(["validate"])
        if validating.forgotten:
            validating.run(["validate", "--apply"])
            code = validating.run(["validate"])
        if code != 0:
            soak.problem(f"checkpoint {self.checkpoints}: validate ended with {code} while nobody writes")
        soak.log("soak", "checkpoint", number=self.checkpoints, readers=sorted(found), problems=len(soak.problems))

    def settle(self) -> None:
        """What is left is repaired and finished: by a writer, by `recover`, by `execute`, and cleaned."""
        for writer in self.writers:
            writer.write(writer.batch(), kill=False)
        runner = self.services[0]
        runner.run(["recover", "--apply"])
        runner.run(["execute", *_REWRITE])
        runner.run(["execute", "--mode", "scheduleAndExecute", "--publish", "late", *_REWRITE])
        runner.run(["clean"])

    def clustering(self, actor: Services) -> list[str]:
        draw = actor.random
        choice, sorting = draw.random(), draw.choice(([], ["value"], ["ts", "id"]))
        order = (
            ["--hoodie-conf", f"hoodie.clustering.plan.strategy.sort.columns={','.join(sorting)}"] if sorting else []
        )
        late = ["execute", "--mode", "scheduleAndExecute", "--publish", "late", *order, *_REWRITE]
        index = self.soak.path / ".hoodie/metadata/record_index"
        late_enough = not self.appends and time.time() - self.begun > self.minutes * 12
        if late_enough and not index.exists() and draw.random() < 0.25:
            return ["index-bootstrap", *_SPARK, *(["--resume"] if "index-bootstrap" in actor.was_killed else [])]
        if self.table == "MERGE_ON_READ" and choice < (0.7 if self.appends else 0.35):
            return ["compact", *_REWRITE] if draw.random() < 0.6 else ["schedule", "--service", "compaction"]
        if self.arguments.late_only:
            # A run that was killed after it had shown its plan leaves it pending: somebody has to execute it.
            is_left = any(self.soak.timeline.plans().values())
            return ["execute", *_REWRITE] if is_left else late
        if choice < 0.6 and any(self.soak.timeline.plans().values()):
            return ["execute", *_REWRITE]
        return late if choice > 0.55 else ["schedule", *order]

    @staticmethod
    def keeping(actor: Services) -> list[str]:
        return actor.random.choices((["clean"], ["validate"], ["recover", "--apply"]), (35, 35, 30))[0]

    def report(self) -> dict[str, Any]:
        soak, late_only = self.soak, self.arguments.late_only
        soak.figures["clusterings committed"] = len(soak.clusterings)
        kinds = [refusal.kind(soak) for refusal in soak.refusals]
        soak.figures.update(f"refused: {kind}" for kind in kinds)
        if late_only and self.name == "occ":
            ours = [kind for kind in kinds if " of ours" in kind and "killed run" not in kind]
            soak.problems += [f"a writer failed because of us: {kind}" for kind in ours]
        texts = [f"{one.batch} {one.operation}: {one.kind(soak)}\n{one.error}" for one in soak.refusals]
        (self.folder / "refusals.txt").write_text("\n\n".join(texts))
        return {
            "phase": self.name, "seed": self.arguments.seed, "release": self.arguments.release,
            "table": self.table, "late_only": late_only, "seconds": round(time.time() - self.begun),
            "checkpoints": self.checkpoints, "figures": dict(sorted(soak.figures.items())), "problems": soak.problems,
        }  # fmt: skip


@contextmanager
def no_lock() -> Iterator[Mapping[str, str]]:
    yield {}


@contextmanager
def zookeeper(folder: Path) -> Iterator[Mapping[str, str]]:
    """The ZooKeeper server that comes with Spark, and the options of a lock in it."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "zoo.cfg"
    config.write_text(f"dataDir={folder}/zookeeper\nclientPort={port}\nadmin.enableServer=false\ntickTime=1000\n")
    jars = Path(pyspark.__file__).parent / "jars/*"
    command = [java(), "-Xmx128m", "-cp", str(jars), "org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]
    with (folder / "zookeeper.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, text=True, start_new_session=True)
    try:
        while not is_open(port):
            assert server.poll() is None, "ZooKeeper does not start, see zookeeper.log"
            time.sleep(0.2)
        yield {
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
            "hoodie.write.lock.zookeeper.url": f"127.0.0.1:{port}",
            "hoodie.write.lock.zookeeper.port": str(port),
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": "soak",
            # The lock of a killed holder is free after this.
            "hoodie.write.lock.zookeeper.session_timeout_ms": "10000",
        }
    finally:
        end(server)


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def as_table(report: Mapping[str, Any]) -> str:
    head = ", ".join(f"{k} {v}" for k, v in report.items() if k not in ("figures", "problems"))
    lines = [f"\n{head}\n", "| figure | |", "|---|---|"]
    lines += [f"| {name} | {count} |" for name, count in report["figures"].items()]
    lost = [text for text in report["problems"] if "checkpoint" in text]
    lines.append(f"| rows lost, doubled or changed | {'see below' if lost else 0} |")
    return "\n".join(lines + [f"PROBLEM {text}" for text in report["problems"]])


if __name__ == "__main__":
    sys.exit(main())
