"""S3 as versitygw serves it from a folder: its conditional puts have one winner each."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .bucket import Bucket
from .process import accepts, free_port, running
from .s3 import KEY, REGION, SECRET, options_at
from .tools import go_program

_MODULE, _VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"


@contextmanager
def versitygw(folder: Path) -> Iterator[Bucket]:
    """A server with the bucket `lake`; its files and its log are in `folder`, which must have extended attributes."""
    import boto3

    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    files = folder / "files"
    files.mkdir()
    keys = ["--access", KEY, "--secret", SECRET, "--region", REGION]
    command = [go_program(_MODULE, _VERSION), *keys, "--port", f"127.0.0.1:{port}", "--quiet", "posix", files]
    with running(command, folder / "log", partial(accepts, port)):
        client = boto3.client(
            "s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name=REGION
        )
        client.create_bucket(Bucket="lake")
        client.close()
        yield Bucket("s3://lake", endpoint, options_at)
