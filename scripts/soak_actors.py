"""The actors of scripts/soak.py: real Hudi writers, and our services as a user runs them. Each is a process, or many,
and is killed at random."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from soak_table import MARK, Batch, Model, Row, Timeline

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("a", "b", "c", "d")
_SHARED = 60
"""How many keys writers share that append."""
_PLANNED = "HoodieClusteringUpdateException"
_CONFLICT = "HoodieWriteConflictException"
_ROLLBACK = "HoodieRollbackException"


@dataclass
class Soak:
    """What the actors share: the table, the options, and the figures."""

    path: Path
    folder: Path
    release: str
    writer_options: Mapping[str, str]
    props: Path
    figures: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    refusals: list["Refusal"] = field(default_factory=list)
    rolled_back: set[str] = field(default_factory=set)
    """Failed writes that our services rolled back."""
    left_plans: set[str] = field(default_factory=set)
    """Instants of pending plans whose run was killed."""
    clusterings: set[str] = field(default_factory=set)
    shared: Model = field(default_factory=Model)
    """The rows of the keys that all writers write."""
    models: list[Model] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.models.append(self.shared)
        self.timeline = Timeline(self.path)
        self._journal = (self.folder / "journal.jsonl").open("a", encoding="utf-8")
        self.lock = threading.Lock()

    def log(self, actor: str, what: str, **more: Any) -> None:
        line = {"at": time.strftime("%H:%M:%S"), "actor": actor, "what": what, **more}
        with self.lock:
            self._journal.write(json.dumps(line) + "\n")
            self._journal.flush()

    def is_forgotten(self, difference: Mapping[str, Any]) -> bool:
        """Whether a difference is the work of Hudi: its record index forgets a key that was deleted and came back, when
        the writer has another index (findings/hudi_record_index_forgets_keys_that_come_back.sh)."""
        place = difference["metadata_partition"], difference["kind"]
        index = self.writer_options.get("hoodie.index.type", "")
        return (
            place == ("record_index", "missing key")
            and index in ("BLOOM", "SIMPLE")
            and any(difference["key"] in one.gone for one in self.models)
        )

    def problem(self, text: str) -> None:
        self.log("soak", "problem", text=text)
        self.problems.append(text)
        print(f"{time.strftime('%H:%M:%S')} PROBLEM {text[:1500]}", file=sys.stderr)


@dataclass(frozen=True)
class Refusal:
    """A write that ended with an exception; `committed` when only what came after its commit failed."""

    batch: str
    operation: str
    error: str
    committed: bool
    planned: str
    """For an update that Hudi's strategy refused: whose plan it was."""

    def kind(self, soak: Soak) -> str:
        """The exception, and who caused it."""
        classes = [line.split(":")[0].rpartition(".")[2] for line in self.error.splitlines()]
        known = [name for name in classes if name in (_PLANNED, _CONFLICT, _ROLLBACK)]
        name = known[0] if known else classes[-1] if classes else "?"
        if name == _PLANNED:
            name += f", {self.planned}"
        elif name == _CONFLICT:
            name += f", {self._opponent(soak)}"
        elif name == _ROLLBACK:
            # Both had seen the same failed write; the second one does not find it any more.
            found = re.search(r"commits (\d{17})", self.error)
            by_us = found is not None and found[1] in soak.rolled_back
            name += ", of a failed write that we rolled back, too" if by_us else ", met the other writer"
        return name + (", after its own commit" if self.committed else "")

    def _opponent(self, soak: Soak) -> str:
        """Whose instant the write met, as Hudi names it."""
        other = self.error.partition("second operation")[2]
        action, ts = (re.search(rf"{name}=(\w+)", other) for name in ("actionType", "instantTime"))
        of_services = {"clustering", "replacecommit", "compaction"}
        if soak.writer_options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
            of_services.add("commit")
        if action is None or action[1] not in of_services:
            return "with the other writer"
        is_left = ts is not None and ts[1] in soak.left_plans
        return "with a plan of a killed run of ours" if is_left else "with a plan or commit of ours"


class Actor:
    """Acts again and again in a thread, until the run is over; whoever holds `turn` keeps it from acting."""

    def __init__(self, soak: Soak, name: str, seed: int, pause: float) -> None:
        self.soak = soak
        self.name = name
        self.random = random.Random(f"{seed} {name}")
        self.turn = threading.Lock()
        self.is_started = False
        self._pause = pause
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self.is_started = True
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def act(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        while not self.soak.over.wait(0.05 + self.random.random() * self._pause):
            with self.turn:
                if self.soak.over.is_set():
                    return
                try:
                    self.act()
                except Exception as e:
                    self.soak.problem(f"{self.name}: {e!r}")
                    self.soak.over.set()
                    raise


class HudiWriter(Actor):
    """A real Hudi writer, which owns its keys, and the partition `own-NAME`. Those that append share some more keys."""

    def __init__(self, soak: Soak, name: str, seed: int, pause: float, kills: float, *, appends: bool = False) -> None:
        """`appends`: only upserts and deletes, which non-blocking concurrency control is for."""
        super().__init__(soak, name, seed, pause)
        self._appends = appends
        self.model = Model()
        soak.models.append(self.model)
        self._kills = kills
        self._dead_keys: dict[str, Row] = {}
        self._numbers = [0, 0]  # of batches, of keys
        self._ends_soon = False
        self._process: subprocess.Popen[str] | None = None
        self._log = (soak.folder / f"{name}.log").open("ab")

    def act(self) -> None:
        batch = self.batch()
        if self._ends_soon and self.random.random() < 0.4:
            self.soak.figures["writers restarted after a refusal"] += 1
            self.close()
        self.write(batch)

    def first(self) -> None:
        """Make the table."""
        self.write(self._new("insert", self._fresh(200, PARTS), {"hoodie.parquet.small.file.limit": "0"}), kill=False)
        assert self.model.rows, "the table could not be made, see the journal"

    def write(self, batch: Batch, *, kill: bool = True) -> None:
        """Write, and find out whether it is committed; the model follows."""
        soak, process = self.soak, self._living()
        source = soak.folder / "batches" / f"{batch.mark}.parquet"
        pq.write_table(batch.table(), source)
        marks = {MARK: batch.mark, "hoodie.datasource.write.commitmeta.key.prefix": "soak."}
        options = {**soak.writer_options, **batch.options, **marks}
        options["hoodie.datasource.write.operation"] = batch.operation
        killing = threading.Timer(self.random.uniform(0, 6), lambda: end(process))
        # Drawn in any case: the choices do not depend on what happened.
        if self.random.random() < self._kills and kill:
            killing.start()
        begun = time.time()
        error = self._ask(process, {"write": str(source), "options": options, "path": str(soak.path)})
        killing.cancel()
        dead = error is not None and error == "dead"
        if dead:
            self.close()
        instant = soak.timeline.commit_of(batch.mark)
        outcome = "unknown" if dead else "acknowledged" if error is None else "refused"
        if outcome == "acknowledged" and instant is None:
            soak.problem(f"{self.name}: batch {batch.mark} was acknowledged, and is not on the timeline")
        if instant is not None or outcome == "acknowledged":
            self._apply(batch, instant or "?")
        soak.figures[f"writes: {outcome}, {'committed' if instant else 'not committed'}"] += 1
        soak.figures["kills: writers"] += dead
        if outcome == "refused":
            self._refused(batch, error or "", instant)
        soak.log(
            self.name, outcome, batch=batch.mark, operation=batch.operation, rows=len(batch.rows), instant=instant,
            seconds=round(time.time() - begun, 1), error=error,
            parts=sorted({row.part for row in batch.rows.values()}), small=options["hoodie.parquet.small.file.limit"],
        )  # fmt: skip

    def read(self, options: Mapping[str, str], out: Path) -> Any:
        """What real Hudi reads, as a table."""
        error = self._ask(self._living(), {"read": str(self.soak.path), "options": dict(options), "out": str(out)})
        if error is not None:
            self.soak.problem(f"real Hudi cannot read the table with {options}: {error}")
            return None
        return pq.read_table(out)

    def close(self) -> None:
        if self._process is not None:
            end(self._process)
        self._process, self._ends_soon = None, False

    def _refused(self, batch: Batch, error: str, instant: str | None) -> None:
        plans = {ts for ts, groups in self.soak.timeline.plans().items() if groups}
        is_left = bool(plans) and plans <= self.soak.left_plans
        planned = "a plan of a killed run of ours" if is_left else "a pending plan of ours"
        refusal = Refusal(batch.mark, batch.operation, error, instant is not None, planned)
        self.soak.refusals.append(refusal)
        # Hudi 1.2.0 leaves a refused delete pending, with a heartbeat that beats as long as this JVM lives: services
        # wait for it. And a JVM that compacted the metadata table first may fail in every write (getInsertValue).
        # A job that failed ends sooner or later.
        if (batch.operation == "delete" and _PLANNED in error) or "ArrayIndexOutOfBounds" in error:
            self._ends_soon = True

    def _living(self) -> "subprocess.Popen[str]":
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "scripts/soak_writer.py"), self.soak.release],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, start_new_session=True,
                env=environment(self.soak.folder),
            )  # fmt: skip
            self._reply(self._process)
        return self._process

    def _ask(self, process: "subprocess.Popen[str]", what: Mapping[str, Any]) -> str | None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()
        except OSError:
            return "dead"
        return self._reply(process)

    @staticmethod
    def _reply(process: "subprocess.Popen[str]") -> str | None:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.endswith("\n"):
            return "dead"
        error = json.loads(line)["error"]
        return None if error is None else str(error)

    def _apply(self, batch: Batch, instant: str) -> None:
        before = self.model.rows.copy()
        self.model.apply(batch, instant)
        with self.soak.lock:
            self.soak.shared.apply_shared(batch, instant)
        if batch.operation == "delete":
            self._dead_keys |= {key: before[key] for key in batch.rows}
        for key in batch.rows.keys() & self.model.rows.keys():
            self._dead_keys.pop(key, None)

    def batch(self) -> Batch:
        draw, alive = self.random, self.model.rows
        choice, size = draw.random(), draw.randint(10, 200)
        parts = draw.sample((*PARTS, f"own-{self.name}"), draw.choice((1, 1, 2, 3)))
        # Small files are filled up, or left for the clustering.
        sizing = {"hoodie.parquet.small.file.limit": draw.choice(("0", "0", "20000"))}
        mine = sorted(key for key, row in alive.items() if row.part in parts)
        if self._appends and len(mine) < 20:
            return self._new("upsert", self._fresh(size, parts), sizing)
        if self._appends and choice < 0.33:
            choice += 0.34
        if len(mine) < 20 or choice < 0.25:
            return self._new(draw.choice(("insert", "insert", "bulk_insert")), self._fresh(size, parts), sizing)
        if choice < 0.33:
            return self._new("insert_overwrite", self._fresh(size, (f"own-{self.name}",)), sizing)
        some = draw.sample(mine, min(size, len(mine), 10 if choice > 0.9 else 200))
        if choice < 0.5 or len(alive) > 3000:
            return self._new("delete", {key: alive[key] for key in some}, sizing)
        rows = {key: self._row(alive[key].part) for key in some}
        if draw.random() < 0.4:
            rows |= self._fresh(draw.randint(1, 30), parts)
        if draw.random() < 0.3:
            dead = sorted(key for key, row in self._dead_keys.items() if row.part in parts)
            rows |= {key: self._row(self._dead_keys[key].part) for key in dead[:20]}
        return self._new("upsert", rows, sizing)

    def _new(self, operation: str, rows: Mapping[str, Row], options: Mapping[str, str]) -> Batch:
        self._numbers[0] += 1
        shared = self._shared_rows() if self._appends and operation == "upsert" else {}
        return Batch(self.name, self._numbers[0], operation, rows, options, shared)

    def _shared_rows(self) -> dict[str, Row]:
        """Half of them are late: their ordering values are drawn, and those of another writer are never the same."""
        numbers = self.random.sample(range(_SHARED), self.random.randint(1, _SHARED // 2))
        mine = int(self.name.removeprefix("w"))
        orders = [self.random.randrange(10**12) * 10 + mine for _ in numbers]
        return {
            f"shared-{number:02}": Row(PARTS[number % len(PARTS)], f"{self.name} at {order}", order)
            for number, order in zip(numbers, orders, strict=True)
        }

    def _fresh(self, count: int, parts: Any) -> dict[str, Row]:
        first = self._numbers[1]
        self._numbers[1] += count
        keys = [f"{self.name}-{number:06}" for number in range(first, first + count)]
        return {key: self._row(self.random.choice(parts)) for key in keys}

    def _row(self, part: str) -> Row:
        number = self._numbers[0] + 1
        return Row(part, f"{self.name} {number} {self.random.randrange(1000)}", number)


class Services(Actor):
    """Runs our commands one after the other; `choose` says which one comes next, with flags."""

    def __init__(
        self, soak: Soak, name: str, seed: int, pause: float, kills: float, choose: Callable[["Services"], list[str]]
    ) -> None:
        super().__init__(soak, name, seed, pause)
        self._kills = kills
        self._choose = choose
        self.was_killed: set[str] = set()
        """The commands whose last run was killed."""
        self.forgotten = False
        """Whether the last run of `validate` found what Hudi had forgotten, and nothing else."""

    def act(self) -> None:
        command = self._choose(self)
        is_long = command[0] in ("execute", "index-bootstrap", "compact")
        after = self.random.uniform(0.2, 12.0 if is_long else 1.5)
        self.run(command, kill_after=after if self.random.random() < self._kills else None)

    def run(self, command: list[str], kill_after: float | None = None) -> int:
        """One process; what its report says is counted."""
        soak = self.soak
        label = command[0] + "".join(f" {word}" for word in command if word in ("late", "compaction"))
        with (soak.folder / f"{self.name}.log").open("a", encoding="utf-8") as log:
            log.write(f"\n== {time.strftime('%H:%M:%S')} {' '.join(command)}\n")
            log.flush()
            flags = ["--verbose", "--base-path", str(soak.path), "--format", "json", "--props", str(soak.props)]
            process = subprocess.Popen(
                [sys.executable, "-m", "hudi_services", *command, *flags],
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=ROOT,
                env=environment(soak.folder),
            )  # fmt: skip
            killing = threading.Timer(kill_after or 0, lambda: end(process))
            if kill_after is not None:
                killing.start()
            begun = time.time()
            output, _ = process.communicate()
            killing.cancel()
            log.write(output)
        code = process.returncode
        was_killed = code < 0 and kill_after is not None
        (self.was_killed.add if was_killed else self.was_killed.discard)(command[0])
        soak.figures["kills: our runs"] += was_killed
        if was_killed:
            soak.left_plans |= soak.timeline.plans().keys()
        self._count(label, command, "killed" if was_killed else f"exit {code}", output)
        soak.log(self.name, "run", command=command, code=code, seconds=round(time.time() - begun, 1))
        soak.clusterings |= soak.timeline.clusterings()
        return code

    def _count(self, label: str, command: list[str], outcome: str, output: str) -> None:
        figures = self.soak.figures
        try:
            report = json.loads(output)
        except ValueError:
            report = {}
        state = report.get("state") if outcome in ("exit 0", "exit 7") else None
        figures[f"runs: {label}: {outcome}{f', {state}' if state else ''}"] += 1
        for warning in report.get("warnings") or []:
            if "rolled back" in warning:
                self.soak.rolled_back |= set(re.findall(r"\d{17}", warning))
        if command[0] == "recover":
            rows = [row for rows in (report.get("tables") or {}).values() for row in rows]
            self.soak.rolled_back |= {row["instant"] for row in rows if "rolled back" in str(row.get("done"))}
        error = report.get("error")
        if error:
            figures[f"errors: {label}: {outcome}: {error['type']}"] += 1
        dropped = (report.get("tables") or {}).get("dropped_groups") or []
        if outcome in ("exit 0", "exit 7") and command[0] == "execute":
            figures["groups: committed"] += (report.get("groups") or 0) if state != "idle" else 0
            figures["groups: salvaged runs"] += bool(dropped)
        figures["groups: left out"] += len(dropped)
        differences = (report.get("tables") or {}).get("differences") or []
        self.forgotten = outcome == "exit 5" and bool(differences) and all(map(self.soak.is_forgotten, differences))
        figures["keys that Hudi's record index forgot"] += len(differences) if self.forgotten else 0
        if outcome not in ("exit 0", "exit 4", "exit 6", "exit 7", "killed") and not self.forgotten:
            self.soak.problem(f"{label} ended with {outcome}: {error} {differences or output[-500:]}")


def environment(folder: Path) -> dict[str, str]:
    """Everything that processes leave behind stays in the folder."""
    scratch = str(folder / "scratch")
    return {**os.environ, "TZ": "UTC", "TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch, "SPARK_LOCAL_IP": "127.0.0.1"}


def end(process: "subprocess.Popen[str]") -> None:
    """Kill the process and its group, and wait until none of them runs any more."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while any(_runs_in(process.pid)):
        time.sleep(0.01)


def _runs_in(group: int) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(file.parent.name))
    return found
