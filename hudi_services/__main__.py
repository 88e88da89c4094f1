"""The command line: `hudi-services`, `python -m hudi_services` and `spark-submit hudi_services/__main__.py`."""

import os
import signal
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _working_directory() -> str | None:
    """None when it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


if not __package__:
    # Started as a file: Python put this very folder first on the import path, where the package cannot be found and
    # our modules would hide others.
    sys.path[0] = _HOME
elif sys.path[:1] == [_working_directory()] != [_HOME]:
    # Started with -m: modules would come from the folder that we are in, which may be a table's.
    del sys.path[0]


def main() -> None:
    """Load the program and run it. Nothing has begun before, so that Ctrl-C may end the process on the spot."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _leave)
    from hudi_services.cli.app import main as program

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    program()


def _leave(number: int, frame: object) -> None:
    # Not as an exception: raised in the middle of an import it may be lost, or told as one of the import's.
    os.write(2, b"error: interrupted\nhint: nothing was begun: start the command again\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
