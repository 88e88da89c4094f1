"""Makes the archive of classes that `class_archive` finds, in a process of its own."""

import os
import sys
import tempfile
import traceback
from pathlib import Path

from .class_archive import QUIET, beside
from .session import start_and_stop


def make(archive: Path) -> None:
    """Make the archive, or note why it cannot be made; stderr, which is Java's, too, ends in that note."""
    part = beside(archive, f".{os.getpid()}")
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            start_and_stop(f"-XX:ArchiveClassesAtExit={part} {QUIET}")
            os.replace(part, archive)
        except Exception:
            said.seek(0)
            of_java = said.read().decode(errors="replace")
            beside(archive, ".failed").write_text(f"{of_java}{traceback.format_exc()}")
        finally:
            for left in (part, beside(archive, ".making")):
                left.unlink(missing_ok=True)


def main() -> None:
    """What the process calls, with the path of the archive."""
    os.nice(19)
    make(Path(sys.argv[1]))
