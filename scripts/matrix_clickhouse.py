"""ClickHouse in this process (chdb), which reads tables from S3 that moto serves; for `read_matrix.py`."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_services.stores.options import StorageOptions
from tests.servers.bucket import upload
from tests.servers.moto import moto

VERSION = "26.9.2"
_USER = {"access_key_id": "key", "secret_access_key": "secret"}


class ClickHouse:
    """Uploads each table to the server at `endpoint` and reads it there."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._count = 0

    def rows(self, path: Path) -> pa.Table:
        import chdb

        self._count += 1
        options = StorageOptions({"endpoint": self._endpoint, "allow_http": True, "region": "us-east-1", **_USER})
        upload(path, f"s3://lake/t{self._count}", options)
        url = f"{self._endpoint}/lake/t{self._count}/"
        found = chdb.query(
            f"SELECT * FROM hudi('{url}', '{_USER['access_key_id']}', '{_USER['secret_access_key']}')", "Parquet"
        )
        return pq.read_table(io.BytesIO(found.bytes()))


@contextmanager
def clickhouse() -> Iterator[ClickHouse]:
    with tempfile.TemporaryDirectory() as folder, moto(Path(folder)) as bucket:
        yield ClickHouse(bucket.endpoint)
