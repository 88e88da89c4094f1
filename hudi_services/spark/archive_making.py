"""Makes the archive of classes that `class_archive` finds, in a process of its own."""

import os
import sys
import traceback
from pathlib import Path

from .class_archive import QUIET, beside
from .session import start_and_stop


def make(archive: Path) -> None:
    """Make the archive, or note why it cannot be made."""
    part = beside(archive, f".{os.getpid()}")
    try:
        start_and_stop(f"-XX:ArchiveClassesAtExit={part} {QUIET}")
        os.replace(part, archive)
    except Exception:
        beside(archive, ".failed").write_text(traceback.format_exc())
    finally:
        for left in (part, beside(archive, ".making")):
            left.unlink(missing_ok=True)


def main() -> None:
    """What the process calls, with the path of the archive."""
    os.nice(19)
    make(Path(sys.argv[1]))
