"""The program: its commands, and its exit code."""

import atexit
import functools
import gc
import os
import signal
import sys
from typing import Annotated

import typer

from .._version import __version__
from ..concurrency import are_left_behind
from ..errors import PartlyDone
from ..process import ENVIRONMENT
from .commands import COMMANDS
from .flags import RULE
from .terminal import drop_unwritten, fail, open_closed_streams

PROGRAM = "hudi-services"
_SPARK = "execute, compact and index-bootstrap run on Spark; write does so on demand, and the others never."
_USAGE = 2
_INTERRUPTED = 130
_TERMINATED = 143

_BY_NAME = {command.name: command for command in COMMANDS}


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Table services for Apache Hudi tables, in Python."""


@functools.cache
def app(name: str | None = None) -> typer.Typer:
    """The program with the command of that name alone, or with all: Typer takes some time for each."""
    found = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    found.callback(help=f"Table services for Apache Hudi tables, in Python.\n\n{_SPARK}\n\n{RULE}")(_program)
    for command in COMMANDS if name is None else [_BY_NAME[name]]:
        found.command(command.name, help=command.help)(command.function())
    return found


def run(arguments: list[str]) -> int:
    """Run one command line and give its exit code."""
    name = arguments[0] if {*arguments[:1]} & _BY_NAME.keys() else None
    try:
        code = app(name)(arguments, prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except (SystemExit, OSError) as error:
        # Typer ends this way when the reader of its help is gone; services always end with a report.
        fail(f"stdout could not be written: {getattr(error, 'strerror', None) or 'its reader is gone'}", "")
        return PartlyDone.exit_code
    except Exception as error:
        # Typer has its own copy of click's usage errors: `format_message` identifies them.
        if not hasattr(error, "format_message"):
            raise
        # The words before the second colon are those of the library that checks types.
        said = " ".join(error.format_message().split()).replace(": Value error, ", ": ")
        # An option without its value is found before there is a context.
        usual = PROGRAM if name is None else f"{PROGRAM} {name}"
        command = getattr(getattr(error, "ctx", None), "command_path", None) or usual
        fail(said, f"see {command} --help")
        return _USAGE
    if code == _INTERRUPTED:
        # Newer releases of Typer turn Ctrl-C into this code themselves.
        fail("interrupted", "what was cut off is resumed or rolled back by the next run")
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run the command line of this process, and end the process with its exit code."""
    open_closed_streams()
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    terminated = _end_at_sigterm()
    code = run(sys.argv[1:])
    drop_unwritten()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Everything is done and reported: a signal while the interpreter ends must not print a traceback.
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    # The interpreter would look for unreachable cycles in all that was imported, several times: that takes 0.1 s.
    gc.freeze()
    code = _TERMINATED if terminated and code == _INTERRUPTED else code
    if are_left_behind():
        # A storage that never answers has told all it will: without this, the process would wait for it.
        atexit._run_exitfuncs()
        os._exit(code)
    sys.exit(code)


def _end_at_sigterm() -> list[int]:
    """Let SIGTERM end a run as Ctrl-C does, so that leases and locks are released. Returns the list of signals that
    were received."""
    received: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, interrupt)
    return received
