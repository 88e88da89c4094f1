"""Parquet files for tests: two that real Hudi wrote, and small ones in forms that pyarrow alone does not write."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_services.base_files.base_file_slices import BaseFileSlices
from hudi_services.codecs import thrift
from hudi_services.codecs.thrift import ListValue, Struct
from hudi_services.model import BaseFile, FileSlice
from hudi_services.parquet.file_schema import REQUIRED, FileSchema, Node, node
from hudi_services.parquet.footer import Footer
from hudi_services.storage import Storage
from hudi_services.stores import open_storage

REAL_FILES = ("0.15.0_plain", "1.2.0_bulk")
"""Insert by 0.15.0 (two-level lists, Avro write path) and bulk_insert by 1.2.0 (three-level lists, row writer)."""

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "parquet"


def real_bytes(name: str) -> bytes:
    return gzip.decompress((_FIXTURES / f"{name}.parquet.gz").read_bytes())


def real_file(folder: Path, name: str) -> tuple[Storage, str]:
    (folder / "real.parquet").write_bytes(real_bytes(name))
    return open_storage(str(folder)), "real.parquet"


def schema_of(*columns: Node) -> FileSchema:
    return FileSchema(node("root", REQUIRED, children=columns))


def write_pyarrow(folder: Path, table: pa.Table, name: str = "in.parquet", **options: object) -> tuple[Storage, str]:
    pq.write_table(table, folder / name, **options)
    return open_storage(str(folder)), name


def empty_footer(elements: Sequence[Struct]) -> Footer:
    fields = {
        1: (thrift.I32, 1),
        2: (thrift.LIST, ListValue(thrift.STRUCT, list(elements))),
        3: (thrift.I64, 0),
        4: (thrift.LIST, ListValue(thrift.STRUCT, [])),
    }
    return Footer(Struct(fields), "f")


def slices_in(storage: Storage, *paths: str) -> tuple[tuple[FileSlice, ...], BaseFileSlices]:
    """The files at `paths` as slices that are a base file alone, whatever they are called, and what opens them."""
    files = [BaseFile(*_parted(path), path, "0-0-0", "0", 0) for path in paths]
    return tuple(FileSlice.of_base(file) for file in files), BaseFileSlices(storage)


def _parted(path: str) -> tuple[str, str]:
    partition, _, name = path.rpartition("/")
    return partition, name
