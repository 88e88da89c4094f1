"""The progress bars, and what a run waits for: on stderr, and only when that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..runs.request import no_progress
from ..waiting import OnWait, Waiting, unseen
from .terminal import told


@contextmanager
def progress_shown() -> Iterator[tuple[Callable[[str, int, int], None], OnWait]]:
    """Gives the functions that jobs call: with (phase, done, total), and with what they wait for."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield no_progress, unseen
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import Progress, TaskID, TextColumn
    from rich.table import Column

    tasks: dict[str, TaskID] = {}
    waits: dict[Waiting, TaskID] = {}
    console = Console(stderr=True)
    bars = Progress(console=console)
    text = "waiting for {task.description} ({task.elapsed:.0f} s)"
    waiting = Progress(TextColumn(text, markup=False, table_column=Column(overflow="fold")), console=console)
    with Live(Group(bars, waiting), console=console, transient=True):

        def show(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            bars.update(tasks[phase], completed=done, total=total)

        def show_wait(wait: Waiting, what: str) -> None:
            if not what:
                waiting.remove_task(waits.pop(wait))
            elif wait in waits:
                waiting.update(waits[wait], description=told(what))
            else:
                # Holders of locks name themselves.
                waits[wait] = waiting.add_task(told(what))

        yield show, show_wait
