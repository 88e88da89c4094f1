"""Makes the archive of classes that `class_archive` finds, in a process of its own."""

import os
import sys
import tempfile
import traceback
from pathlib import Path

from .class_archive import QUIET, beside, of_launcher
from .session import start_and_stop


def make(archive: Path) -> None:
    """Make the archive, and that of Spark's launcher, or note why they cannot be made; stderr, which is Java's, too,
    ends in that note."""
    parts = {beside(one, f".{os.getpid()}"): one for one in (of_launcher(archive), archive)}
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            launcher, spark = (f"-XX:ArchiveClassesAtExit={part} {QUIET}" for part in parts)
            start_and_stop(spark, launcher)
            for part, place in parts.items():
                os.replace(part, place)
        except Exception:
            said.seek(0)
            of_java = said.read().decode(errors="replace")
            beside(archive, ".failed").write_text(f"{of_java}{traceback.format_exc()}")
        finally:
            for left in (*parts, beside(archive, ".making")):
                left.unlink(missing_ok=True)


def main() -> None:
    """What the process calls, with the path of the archive."""
    os.nice(19)
    make(Path(sys.argv[1]))
