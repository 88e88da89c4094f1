"""How long the tasks of a Spark job would take on more cores than this machine has, from those that it measured.

Spark's event log tells when each task began and ended. As Spark does, a free core takes the next task of the stage, in
their order, and a stage begins when those before it have ended. The start of a Python worker, which the first task of
each core waits for, counts once, before all tasks; what the driver does between the stages stays as it was measured.
"""

import heapq
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True)
class MeasuredStage:
    """The seconds of the tasks of a stage in the order of their start, the first ones without the workers' start."""

    tasks: Sequence[float]

    def on(self, cores: int) -> float:
        """The seconds of the stage on so many cores."""
        busy = [0.0] * cores
        for seconds in self.tasks:
            heapq.heappushpop(busy, busy[0] + seconds)
        return max(busy)


@dataclass(frozen=True)
class MeasuredTasks:
    """What the event log of a job tells; `start`: seconds of the start of a worker."""

    stages: Sequence[MeasuredStage]
    start: float
    span: float
    """Seconds between the first task's begin and the last one's end."""
    cores: int

    @property
    def work(self) -> float:
        return sum(sum(one.tasks) for one in self.stages)

    def on(self, cores: int) -> float:
        """The seconds of all stages on so many cores, without the start of workers and the driver."""
        return sum(one.on(cores) for one in self.stages)

    @property
    def between(self) -> float:
        """The seconds of the driver between stages."""
        return max(0.0, self.span - self.start - self.on(self.cores))

    def line(self, title: str, cores: Sequence[int]) -> str:
        """A row of a Markdown table: for each number of cores the seconds, and the share of linear."""
        cells = []
        for count in cores:
            seconds = self.on(count)
            whole = seconds + self.start + self.between
            cells.append(f"{seconds:.1f} ({self.work / count / seconds:.0%}; {whole:.1f})")
        tasks = " + ".join(str(len(one.tasks)) for one in self.stages)
        return f"| {title} | {tasks} | {self.work:.1f} | {' | '.join(cells)} |"


@contextmanager
def event_log() -> Iterator[tuple[Mapping[str, str], Path]]:
    """Gives the variables of a process whose Spark writes an event log, and the folder of the log."""
    with TemporaryDirectory(prefix="event-log-") as folder:
        log = Path(folder) / "log"
        log.mkdir()
        settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri()}
        lines = [f"{key} {value}\n" for key, value in {**settings, "spark.eventLog.compress": "false"}.items()]
        (Path(folder) / "spark-defaults.conf").write_text("".join(lines))
        yield {"SPARK_CONF_DIR": folder}, log


def measured(log: Path, cores: int) -> MeasuredTasks:
    """The tasks in the one event log of a folder, of a session with so many cores."""
    (file,) = (one for one in log.rglob("*") if one.is_file())
    stages: dict[int, list[tuple[float, float]]] = {}
    with file.open() as lines:
        for line in lines:
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd":
                continue
            if event["Task End Reason"]["Reason"] != "Success":
                raise SystemExit(f"a task of stage {event['Stage ID']} failed: the seconds are not those of the job")
            info = event["Task Info"]
            stages.setdefault(event["Stage ID"], []).append((info["Launch Time"] / 1000, info["Finish Time"] / 1000))
    ordered = [sorted(tasks) for _, tasks in sorted(stages.items())]
    start = _start(ordered, cores)
    begun, found = 0, []
    for tasks in ordered:
        seconds = [end - begin for begin, end in tasks]
        # Each core's first task waits for its worker.
        for at in range(min(len(seconds), cores - begun)):
            seconds[at] = max(0.0, seconds[at] - start)
        begun = min(cores, begun + len(seconds))
        found.append(MeasuredStage(seconds))
    span = max(end for tasks in ordered for _, end in tasks) - min(begin for tasks in ordered for begin, _ in tasks)
    return MeasuredTasks(found, start, span, cores)


def _start(stages: Sequence[Sequence[tuple[float, float]]], cores: int) -> float:
    """The seconds of the start of a worker: by how much the last core's first task was longer than others like it."""
    begun = 0
    for tasks in stages:
        begun += len(tasks)
        if begun >= cores and len(tasks) > 2 * cores:
            seconds = [end - begin for begin, end in tasks]
            return max(0.0, max(seconds[:cores]) - statistics.median(seconds))
    return 0.0
