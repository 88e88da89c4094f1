"""Hadoop's client of S3, for Spark 3.5: its jars, and its settings for a server of this machine."""

import os
from pathlib import Path

from .s3 import KEY, REGION, SECRET
from .tools import maven_jars

_RELEASE = "3.3.4"
"""That of the Hadoop in pyspark 3.5."""
_JARS = {
    f"org.apache.hadoop:hadoop-aws:{_RELEASE}": "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a",
    "com.amazonaws:aws-java-sdk-bundle:1.12.262": "873fe7cf495126619997bec21c44de5d992544aea7e632fdc77adb1a0915bae5",
}


def class_path(settings: Path) -> str:
    """What Java needs for tables on s3a, with the settings in this folder."""
    return os.pathsep.join([str(settings), f"{maven_jars(f'hadoop-aws-{_RELEASE}', _JARS)}/*"])


def settings_at(endpoint: str) -> dict[str, str]:
    """Settings for a server at this endpoint, which has buckets in the path of its URLs."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        # Hudi 1.2.0 leaves the log files of the metadata table open, each with a connection: with the 96 that there are
        # by default, the fifth write of a small table waits for one for ever, without an error.
        "fs.s3a.connection.maximum": "5000",
        # Without it an upsert of Hudi on versitygw never ends: s3a deletes the markers of folders above a new file.
        "fs.s3a.directory.marker.retention": "keep",
    }
