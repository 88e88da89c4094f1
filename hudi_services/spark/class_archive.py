"""An archive of the classes that Spark loads when it starts, so that Java maps them instead of reading jars.

The first run on Spark of this user with this Java and this Spark has it made, by a process that goes on after the run;
later runs start Spark some two seconds sooner. It is in the user's cache folder, which nobody else may write to. Java
checks that it fits (the jars with their sizes and times, itself), and does without it otherwise.

Source: "Application Class-Data Sharing" (JEP 310), dynamic archives (JEP 350): from Java 13 on.
"""

import hashlib
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

from ..preloading import start_detached
from .java import pyspark_folder, spark_home

_LEAST_JAVA = 13
_VERSION = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_PLAIN = re.compile(r"[\w./+-]+")
"""Paths that need no quotes among the options of Java."""
_STALE_SECONDS = 3600
_NEXT_TRY_SECONDS = 24 * 3600
"""After making an archive has failed."""
_PATHS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""What else Spark puts on the class path."""


QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""Java tells on stdout that an archive does not fit."""


def archive_options() -> tuple[str, str]:
    """The options of Java for the archive, and those of Spark's launcher, a JVM of its own that prints the command line
    of Java, for its own one; "" where there is none."""
    found = place()
    return ("", "") if found is None else (options_of(found), options_of(of_launcher(found)))


def options_of(archive: Path) -> str:
    """The options of Java for an archive, "" where it is not there."""
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto {QUIET}" if archive.is_file() else ""


def of_launcher(archive: Path) -> Path:
    """The path of the launcher's archive, by that of Spark's."""
    return archive.with_name(f"{archive.stem}-launcher.jsa")


def make_archive_later() -> None:
    """Have the archive made by another process, unless it is there, or is being made, or cannot be made."""
    wanted = place()
    if wanted is None or wanted.exists() or _is_younger(beside(wanted, ".failed"), _NEXT_TRY_SECONDS):
        return
    begun = beside(wanted, ".making")
    with suppress(OSError):
        if not _is_younger(begun, _STALE_SECONDS):
            begun.unlink(missing_ok=True)
        begun.touch(exist_ok=False)
        start_detached(f"{__package__}.archive_making", [str(wanted)])


def place() -> Path | None:
    """The path of the archive for the Java and the Spark that a session of this process would have; None where there
    can be none."""
    java = _java()
    folder = _folder()
    if java is None or folder is None:
        return None
    told = [
        (pyspark_folder() / "version.py").read_text(),
        spark_home(),
        *java,
        *(os.environ.get(name, "") for name in _PATHS),
    ]
    digest = hashlib.sha256("\n".join(told).encode()).hexdigest()
    return folder / f"spark-{digest[:32]}.jsa"


def _java() -> tuple[str, str] | None:
    """The home of Java and what its file `release` says; None for a Java that cannot have an archive."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if program is None:
        return None
    found = Path(os.path.realpath(program)).parents[1]
    try:
        release = (found / "release").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    version = _VERSION.search(release)
    return (str(found), release) if version is not None and int(version[1]) >= _LEAST_JAVA else None


def _folder() -> Path | None:
    """The user's folder for archives, made when it is not there; None where others could write to it."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(cache) / "hudi_services"
    if not folder.is_absolute() or not _PLAIN.fullmatch(str(folder)):
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if is_own else None


def _is_younger(file: Path, seconds: float) -> bool:
    try:
        return time.time() - file.stat().st_mtime < seconds
    except OSError:
        return False


def beside(archive: Path, suffix: str) -> Path:
    """The path of a file that says something about the archive."""
    return archive.with_name(archive.name + suffix)
