"""The command line: `hudi-services`, `python -m hudi_services` and `spark-submit hudi_services/__main__.py`."""

import os
import signal
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _working_directory() -> str | None:
    """The working directory, or None when it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


if not __package__:
    # Started as a file: Python put this folder first on the import path. The package cannot be found there, and its
    # modules would hide others.
    sys.path[0] = _HOME
elif sys.path[:1] == [_working_directory()] != [_HOME]:
    # Started with -m: Python would import modules from the working directory, which may be a table's folder.
    del sys.path[0]


def main() -> None:
    """Load the program and run it. Until it is loaded nothing has begun, so Ctrl-C may end the process at once."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _leave)
    from hudi_services.cli.app import main as program

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    program()


def _leave(number: int, frame: object) -> None:
    # No exception: raised in the middle of an import, it may be lost or reported as an error of the import.
    os.write(2, b"error: interrupted\nhint: nothing was started: run the command again\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
