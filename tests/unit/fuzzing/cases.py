"""One case: a table, a damaged file and a command, all drawn from a seed."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .commands import Command, Outcome, commands, run_command
from .invariants import ExpectedState, files_seen, tree_of, violations
from .mutations import damage
from .tables import kind_of, make_table
from .values import Source, change

_LISTING = ".hoodie/metadata/files/"
_NEWEST = 0.4
_DELETED = 0.05
_BY_VALUE = 0.5


@dataclass(frozen=True)
class Draw:
    """What a case does; `data` is the new content of `file`, None when it is deleted."""

    file: str
    how: str
    data: bytes | None
    command: Command


class Bench:
    """One table and all that is needed to try cases on it; nothing below its folder is anybody else's."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self._place = folder / "made" / "table"
        # Plans name files by their whole paths: tables are made where commands run, and always run there.
        path = make_table(name, folder / "made").rename(folder / "intact")
        self.expected = ExpectedState(path, self._without_damage)
        assert self.expected.visible == files_seen(path, with_metadata=True)
        keys = folder / "keys"
        keys.write_text("\n".join(sorted(self.expected.locations)))
        self.commands = commands(path, keys)
        live = sorted(self.expected.visible)
        self._names = (".hoodie/hoodie.properties", *live, *(name.rsplit("/", 1)[-1] for name in live))
        self._kinds: dict[str, list[str]] = {}
        for file in sorted(self.expected.tree):
            self._kinds.setdefault(kind_of(file), []).append(file)
        # The listing of the metadata table is what all plans rest on, and commands that write may do harm.
        self._kinds_drawn = [kind for kind in self._kinds for _ in range(3 if kind.startswith(_LISTING) else 1)]
        self._draws = [one for one in self.commands.values() for _ in range(1 if one.is_dry else 2)]

    def draw(self, seed: int, number: int) -> Draw:
        chance = Source(f"{self.name} {seed} {number}", self._names)
        files = self._kinds[chance.choice(self._kinds_drawn)]
        # What is newest is what commands rest on.
        file = files[-1] if chance.random() < _NEWEST else chance.choice(files)
        command = chance.choice(self._draws)
        way = chance.random()
        if way < _DELETED:
            return Draw(file, "deleted", None, command)
        data = (self.expected.path / file).read_bytes()
        changed = change(chance, file, data) if way < _DELETED + _BY_VALUE else None
        how, new = changed or damage(chance, data)
        return Draw(file, how, new, command)

    def run(self, seed: int, number: int) -> tuple[Draw, Outcome, list[str]]:
        """Try one case: what it did, how the command ended, and what must not be."""
        drawn = self.draw(seed, number)
        damaged, work = self.folder / "damaged", self._place
        self._copy(damaged, drawn)
        self._copy(work, drawn)
        before = tree_of(work)
        outcome = run_command(drawn.command, work)
        found = violations(self.expected, damaged, before, drawn.file, drawn.command, outcome, work)
        return drawn, outcome, found

    def _copy(self, target: Path, drawn: Draw | None = None) -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.expected.path, target, copy_function=os.link)
        if drawn is None:
            return
        file = target / drawn.file
        moment = file.stat().st_mtime_ns
        file.unlink()
        if drawn.data is not None:
            file.write_bytes(drawn.data)
            os.utime(file, ns=(moment, moment))

    def _without_damage(self, command: Command) -> Path:
        self._copy(self._place)
        run_command(command, self._place)
        return self._place.rename(self.folder / f"after {command.name}")
