"""The program: its commands, and what the shell gets back."""

import sys
from typing import Annotated

import typer

from .. import __version__
from . import render
from .clean import clean
from .execute import execute
from .index_bootstrap import index_bootstrap
from .index_lookup import index_lookup
from .recover import recover
from .rollback import rollback
from .schedule import schedule
from .undo import undo
from .validate import validate

PROGRAM = "hudi-services"
_USAGE = 2

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("schedule")(schedule)
app.command("execute")(execute)
app.command("clean")(clean)
app.command("index-bootstrap")(index_bootstrap)
app.command("index-lookup")(index_lookup)
app.command("rollback")(rollback)
app.command("undo")(undo)
app.command("recover")(recover)
app.command("validate")(validate)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Table services for Apache Hudi tables, in Python on Spark."""


def run(arguments: list[str]) -> int:
    """Run one command line and give its exit code."""
    try:
        code = app(arguments, prog_name=PROGRAM, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except Exception as error:
        # Typer carries its own copy of click's usage errors: they are told by what they can do.
        if not hasattr(error, "format_message"):
            raise
        render.fail(" ".join(error.format_message().split()), f"see {PROGRAM} --help")
        return _USAGE


def main() -> None:
    sys.exit(run(sys.argv[1:]))
