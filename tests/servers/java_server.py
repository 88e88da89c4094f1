"""Servers of Apache Hadoop: a class of one source file here, and jars that come by Maven, once for each user.

Java must be a JDK (17 or newer), for it compiles the class.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RELEASE = "3.4.2"
"""The release of Apache Hadoop."""


@contextmanager
def java_server(source: Path, folders: list[Path], arguments: list[object], folder: Path) -> Iterator[dict[str, str]]:
    """A context in which the class of `source` runs, with the jars of `folders`; its log is in `folder`.

    It prints lines `key=value`, which are given, and then `ready`, and ends with its standard input.
    """
    flags = ["-Xmx512m", "-XX:+UseSerialGC", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    command = [_java(), *flags, "-cp", ":".join(f"{one}/*" for one in folders), str(source), *map(str, arguments)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert server.stdout is not None
        told: dict[str, str] = {}
        for line in map(str.strip, server.stdout):
            if line == "ready":
                yield told
                return
            key, _, value = line.partition("=")
            told[key] = value
        raise AssertionError(f"{source.stem} did not start: {(folder / 'log').read_text()[-2000:]}")
    finally:
        # It has nothing to save: nobody needs its data any more.
        server.kill()
        server.communicate()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home and Path(home, "bin/javac").exists() else "java"
