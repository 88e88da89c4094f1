"""A report as JSON, or for people: a sentence, what to do next, and one screen of it, or with --verbose everything."""

import os
from typing import TYPE_CHECKING

from ..runs.report import Report
from .every_row import print_every_row
from .screen import print_screen
from .sentences import steps, title, what_happened
from .sheet import Sheet
from .terminal import harmless_json

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 80
"""Of what is no terminal, unless COLUMNS says another."""


def as_json(report: Report, *, ascii_only: bool = False) -> str:
    return harmless_json(report.document(), ascii_only=ascii_only) + "\n"


def as_tables(report: Report, verbose: bool) -> str:
    """The report in lines that fit the width of stdout: on one screen, or with all that it has when `verbose`."""
    console = _console()
    sheet = Sheet(console)
    with console.capture() as text:
        name = title(report)
        sheet.print_wrapped(f"{name}: {what_happened(report)}", bold=len(name) + 1)
        sheet.print_labelled([("next:", step, False) for step in steps(report)], "bold")
        if verbose:
            print_every_row(sheet, report)
        else:
            print_screen(sheet, report)
    # Cells of tables are padded.
    return "".join(f"{line.rstrip()}\n" for line in text.get().splitlines())


def _console() -> "Console":
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = _WIDTH
    return console
