"""The tables of tests/interop/histories.py as real Hudi made them, at their end or as they were after a step."""

import atexit
import functools
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..interop import layout
from ..interop.histories import HISTORIES
from ..interop.history_maker import unpack


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
    return tuple(sorted(name for name, history in HISTORIES.items() if release in history.releases))


@functools.cache
def _unpacked(release: str) -> Path:
    """The tables of the release, unpacked once in each process; not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="histories-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    unpack(release, folder)
    return folder


class MadeHistory:
    """One table, copied into `folder`."""

    def __init__(self, release: str, name: str, folder: Path) -> None:
        made = _unpacked(release) / name
        self.path = folder / "table"
        shutil.copytree(made / "table", self.path)
        steps = json.loads((made / "steps.json").read_text())
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
        return layout.timeline(self.path)

    def rewind(self, reached: Reached) -> bool:
        """Take the commits after a step off the timeline; False where the files of the step are no longer there."""
        later = [step.operation for step in self.steps[reached.step + 1 :]]
        found = {file.name for file in self.timeline.iterdir() if file.is_file() and file.name[0].isdigit()}
        if reached.timeline - found or "tear the log" in later:
            return False
        for name in found - reached.timeline:
            (self.timeline / name).unlink()
        return True
