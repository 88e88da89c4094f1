"""The tables of tests/interop/histories.py as real Hudi made them, at their end or as they were after a step."""

import functools
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "histories"


@dataclass(frozen=True)
class Reached:
    """What Hudi said after a step: the rows of a snapshot query, or None when the query failed."""

    step: int
    operation: str
    rows: list[dict[str, Any]] | None
    timeline: frozenset[str]


@functools.cache
def names(release: str) -> tuple[str, ...]:
    """The histories that the release made."""
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        return tuple(sorted({name.partition("/")[0] for name in archive.getnames()}))


class MadeHistory:
    """One table, unpacked into `folder`."""

    def __init__(self, release: str, name: str, folder: Path) -> None:
        with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
            members = [one for one in archive.getmembers() if one.name.startswith(f"{name}/")]
            archive.extractall(folder, members, filter="data")
        self.path = folder / name / "table"
        steps = json.loads((folder / name / "steps.json").read_text())
        self.steps = [
            Reached(
                number,
                step["operation"],
                step["after"] if isinstance(step["after"], list) else None,
                frozenset(step["timeline"]),
            )
            for number, step in enumerate(steps)
        ]

    @property
    def timeline(self) -> Path:
        folder = self.path / ".hoodie" / "timeline"
        return folder if folder.exists() else self.path / ".hoodie"

    def rewind(self, reached: Reached) -> bool:
        """Take the commits after a step off the timeline; False where the files of the step are no longer there."""
        later = [step.operation for step in self.steps[reached.step + 1 :]]
        found = {file.name for file in self.timeline.iterdir() if file.is_file() and file.name[0].isdigit()}
        if reached.timeline - found or "tear the log" in later:
            return False
        for name in found - reached.timeline:
            (self.timeline / name).unlink()
        return True
