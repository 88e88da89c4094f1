"""The command line: `hudi-services`, `python -m hudi_services` and `spark-submit hudi_services/__main__.py`."""

import os
import sys
from pathlib import Path

_HOME = str(Path(__file__).resolve().parent.parent)

if not __package__:
    # Started as a file: Python put this very folder first on the import path, where the package cannot be found and
    # our modules would hide others.
    sys.path[0] = _HOME
elif sys.path[:1] == [os.getcwd()] != [_HOME]:
    # Started with -m: modules would come from the folder that we are in, which may be a table's.
    del sys.path[0]

from hudi_services.cli.app import main  # noqa: E402 - once the path is right

if __name__ == "__main__":
    main()
