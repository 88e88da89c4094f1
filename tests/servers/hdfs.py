"""HDFS: a NameNode and a DataNode of Apache Hadoop in one Java process.

The jars come by Maven, once for each user of this machine; Java must be a JDK (17 or newer), for it compiles a class.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .tools import maven_jars

RELEASE = "3.4.2"
_JARS = {
    f"org.apache.hadoop:hadoop-client-{part}:{RELEASE}": digest
    for part, digest in {
        "api": "607c0299f4df33013bd0a0f37c8cf255c635bbaddd247b8fec68c210cc17d19f",
        "runtime": "18d071c7f72f8a946677b398a57af9c7afa2dd41a81023c310f99373fec200b3",
        "minicluster": "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
    }.items()
} | {
    "org.slf4j:slf4j-api:1.7.36": "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
    "commons-logging:commons-logging:1.3.0": "66d3c980470b99b0c511dad3dfc0ae7b265ec1fb144e96bc0253a8a175fd34d9",
}
"""The artifacts, with the SHA-256 of their jars."""
_CLASS = Path(__file__).with_name("MiniHdfs.java")


@contextmanager
def hdfs_server(folder: Path) -> Iterator[str]:
    """The URL of the root of a new file system, `hdfs://127.0.0.1:<port>`; its data and its log are in `folder`."""
    jars = maven_jars(f"hadoop-{RELEASE}", _JARS)
    command = [_java(), "-Xmx384m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(_CLASS), str(folder / "data")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        told = next((line for line in server.stdout if line.startswith("port ")), None)
        assert told is not None, f"HDFS did not start: {(folder / 'log').read_text()[-2000:]}"
        yield f"hdfs://127.0.0.1:{int(told.split()[1])}"
    finally:
        # It has nothing to save: nobody needs its data any more.
        server.kill()
        server.communicate()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home and Path(home, "bin/javac").exists() else "java"
