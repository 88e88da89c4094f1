"""Make tests/fixtures/upgrades/tables.tar.xz with real Apache Hudi: make_fixture_upgrades.py [WORK_FOLDER]

The tables of tests/interop/upgrades.py: `<story>/table`, and `<story>/story.json` with the rows that are right, what
each release did, and where it reads others. All tables are made at one path, because plans have full paths. Tables that
are in the work folder already are not made again. Needs pyspark 3.5 and Java 17; one JVM after the other, a quarter of
an hour.
"""

import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.interop.peer import Peer, PeerError
from tests.interop.reading import METADATA_OFF, METADATA_ON
from tests.interop.upgrades import MAKE, STORIES, Told
from tests.unit.upgrades import ARCHIVE

ORDER = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")


class Job(NamedTuple):
    """A table to make, from the one named `before`."""

    name: str
    kind: str
    change: Callable[[Told], None]
    before: str | None


class Making:
    """Tables are made at `table`, and kept with what is known of them below `kept`."""

    def __init__(self, work: Path) -> None:
        self.table = work / "live" / "table"
        self.kept = work / "kept"

    def make(self, peer: Peer, job: "Job") -> None:
        if job.before is None:
            self._take(Told(peer, self.table, job.kind), [], job.name, job.change)
        else:
            self._go_on(peer, job.before, job.name, job.change)

    def _go_on(self, peer: Peer, before: str, name: str, change: Callable[[Told], None]) -> None:
        told = json.loads((self.kept / before / "story.json").read_text())
        rows = {row["id"]: (row["part"], row["ts"], row["text"]) for row in told["rows"]}
        table = Told(peer, self.table, told["kind"], rows, told["ts"])
        self._take(table, told["steps"], name, change, self.kept / before / "table")

    def _take(
        self, table: Told, steps: list[Any], name: str, change: Callable[[Told], None], before: Path | None = None
    ) -> None:
        shutil.rmtree(self.table, ignore_errors=True)
        self.table.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            shutil.copytree(before, self.table)
        step: dict[str, Any] = {"release": table.peer.version, "error": None}
        try:
            change(table)
        except PeerError as e:
            step["error"] = str(e)[:1000]
        step["reads"] = {str(options): _reads(table, options) for options in (METADATA_ON, METADATA_OFF)}
        rows = [{"id": key, "part": row[0], "ts": row[1], "text": row[2]} for key, row in sorted(table.model.items())]
        told = {"kind": table.kind, "ts": table.ts, "rows": rows, "steps": [*steps, step]}
        folder = self.kept / name
        shutil.copytree(self.table, folder / "table")
        (folder / "story.json").write_text(json.dumps(told, indent=1))
        print(name, json.dumps(step), flush=True)


def _reads(table: Told, options: dict[str, str]) -> str:
    """What the release reads that is not right; "" for nothing."""
    try:
        found = table.peer.rows(table.path, options).to_pylist()
    except PeerError as e:
        return str(e)[:300]
    rows = sorted((row["id"], row["part"], row["ts"], row["text"]) for row in found)
    right = sorted((key, *row) for key, row in table.model.items())
    return "" if rows == right else f"{sorted({*rows} - {*right})} for {sorted({*right} - {*rows})}"


def _jobs(release: str) -> list[Job]:
    """What this release has to do, in an order in which it can."""
    beginnings = {(story.begins, story.kind) for story in STORIES.values()}
    jobs = [Job(f"{of} {kind}", kind, MAKE[kind], None) for of, kind in sorted(beginnings) if of == release]
    for name, story in STORIES.items():
        before = f"{story.begins} {story.kind}"
        for number, (of, change) in enumerate(story.stages, 1):
            if of == release:
                jobs.append(Job(f"{name} {number}", story.kind, change, before))
            before = f"{name} {number}"
    return jobs


def main(work: Path) -> None:
    making = Making(work)
    for release in ORDER:
        todo = [job for job in _jobs(release) if not (making.kept / job.name).exists()]
        if todo:
            peer = Peer(release, work / f"{release}.log", "--small-tables")
            try:
                for job in todo:
                    making.make(peer, job)
            finally:
                peer.close()
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for story, told in STORIES.items():
            last = making.kept / f"{story} {len(told.stages)}"
            # With the times of all files, which version 6 takes for completion times.
            for path in sorted(last.rglob("*")):
                if path.suffix != ".crc":
                    archive.add(path, f"{story}/{path.relative_to(last)}", recursive=False)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
