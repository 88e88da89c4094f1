"""HDFS: a NameNode and a DataNode of Apache Hadoop in one Java process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .java_server import RELEASE, java_server
from .tools import maven_jars

_HADOOP = "org.apache.hadoop:hadoop-client"
_JARS = {
    f"{_HADOOP}-api:{RELEASE}": "607c0299f4df33013bd0a0f37c8cf255c635bbaddd247b8fec68c210cc17d19f",
    f"{_HADOOP}-runtime:{RELEASE}": "18d071c7f72f8a946677b398a57af9c7afa2dd41a81023c310f99373fec200b3",
    f"{_HADOOP}-minicluster:{RELEASE}": "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
    "org.slf4j:slf4j-api:1.7.36": "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
    "commons-logging:commons-logging:1.3.0": "66d3c980470b99b0c511dad3dfc0ae7b265ec1fb144e96bc0253a8a175fd34d9",
}
_CLASS = Path(__file__).with_name("MiniHdfs.java")


def hadoop_jars() -> Path:
    """The folder of the jars of HDFS and YARN, without what YARN needs beside them."""
    return maven_jars(f"hadoop-{RELEASE}", _JARS)


@contextmanager
def hdfs_server(folder: Path) -> Iterator[str]:
    """The URL of the root of a new file system, `hdfs://127.0.0.1:<port>`; its data and its log are in `folder`."""
    with java_server(_CLASS, [hadoop_jars()], [folder / "data"], folder) as told:
        yield f"hdfs://127.0.0.1:{int(told['port'])}"
