"""YARN: a ResourceManager and two NodeManagers of Apache Hadoop in one Java process, whose containers have folders of
their own; applications are staged on HDFS."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from .hdfs import hadoop_jars
from .java_server import RELEASE, java_server
from .python_environment import environment
from .spark_client import SparkClient
from .tools import maven_jars

_JARS = {
    "ch.qos.reload4j:reload4j:1.2.22": "222f90d3e69541218ef6e70547749d693bd4c1846817e5bd7949b3e28950f99f",
    "com.sun.xml.bind:jaxb-core:2.3.0.1": "d2ecba63615f317a11fb55c6468f6a9480f6411c10951d9881bafd9a9a8d0467",
    "com.sun.xml.bind:jaxb-impl:2.3.1": "e6c9e0f1830fd5f7c30c25ecf5e2046c5668b06d304add89d2f027d5072297d0",
    "javax.activation:javax.activation-api:1.2.0": "43fdef0b5b6ceb31b0424b208b930c74ab58fac2ceeb7b3f6fd3aeb8b5ca4393",
    "javax.xml.bind:jaxb-api:2.3.1": "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06",
    "junit:junit:4.13.2": "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1": "4b48ea084e5232b9d79ebca1887b9de037b124931807cd60710748c2aee08cc9",
    "org.bouncycastle:bcprov-jdk18on:1.78.1": "add5915e6acfc6ab5836e1fd8a5e21c6488536a8c1f21f386eeb3bf280b702d7",
    "org.bouncycastle:bcutil-jdk18on:1.78.1": "d9fa56f97b0f761ce3bc8d9d74c5d7137a987bf5bd3abfe1003f9bafa45a1d2f",
    "org.hamcrest:hamcrest-core:1.3": "66fdef91e9739348df7a096aa384a5685f4e875584cce89386a7a47251c4d8e9",
}
"""What MiniYARNCluster loads, and the minicluster's jar does not have."""
_CLASS = Path(__file__).with_name("MiniYarn.java")


@contextmanager
def yarn(home: Path, folder: Path, file_system: str) -> Iterator[SparkClient]:
    """A cluster, as the machine sees it that submits to it; `home` is that of Spark, which its machines have, too."""
    for name in ("server", "client", "conf"):
        (folder / name).mkdir()
    used = [hadoop_jars(), maven_jars(f"yarn-{RELEASE}", _JARS)]
    with java_server(_CLASS, used, [file_system], folder / "server") as told:
        for file in ("core-site.xml", "yarn-site.xml"):
            (folder / "conf" / file).write_text(_site(told))
        python = environment(folder / "client" / "python")
        yield SparkClient(home, "yarn", folder / "client", python, {"HADOOP_CONF_DIR": str(folder / "conf")})


def _site(values: dict[str, str]) -> str:
    each = (f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in values.items())
    return f"<configuration>{''.join(each)}</configuration>"
