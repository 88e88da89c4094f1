"""The progress bar: on stderr, and only when that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..jobs.request import no_progress


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Gives the function that jobs call with (phase, done, total)."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import Progress, TaskID

    tasks: dict[str, TaskID] = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:

        def show(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total)
            bar.update(tasks[phase], completed=done, total=total)

        yield show
