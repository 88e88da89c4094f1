"""The command line: `hudi-services`, `python -m hudi_services` and `spark-submit hudi_services/__main__.py`."""

import sys
from pathlib import Path

if not __package__:
    # Started as a file: Python put this very folder first on the import path, where the package cannot be found and
    # our modules would hide others.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from hudi_services.cli.app import main

if __name__ == "__main__":
    main()
