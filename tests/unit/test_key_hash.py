"""Another function in the place of Hudi's hash: taken when it does the same, refused when it does not."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hudi_services.cli.app import run
from hudi_services.codecs.java_hash import file_group_indexes
from hudi_services.engine import LocalEngine
from hudi_services.errors import CheckFailed, ConfigError
from hudi_services.jobs.index_bootstrap import index_bootstrap
from hudi_services.metadata.record_index.key_hash import HUDI, spread
from hudi_services.options import resolve
from hudi_services.runs.report import RunState
from hudi_services.runs.request import IndexRequest

from .tables import unpack
from .test_index_bootstrap import indexed_locations, is_listed, real_locations

KEYS = pa.chunked_array([[f"key-{i}" for i in range(500)], [f"more-{i}" for i in range(500)]])
_BATCHES: list[int] = []
_Positions = npt.NDArray[np.int32]


def same(keys: pa.ChunkedArray, count: int) -> _Positions:
    _BATCHES.append(len(keys))
    return file_group_indexes(keys, count)


def other(keys: pa.ChunkedArray, count: int) -> _Positions:
    return np.asarray((file_group_indexes(keys, count) + 1) % count, np.int32)


def too_wide(keys: pa.ChunkedArray, count: int) -> npt.NDArray[np.int64]:
    return file_group_indexes(keys, count).astype(np.int64)


def too_few(keys: pa.ChunkedArray, count: int) -> _Positions:
    return file_group_indexes(keys, count)[:-1]


def negative(keys: pa.ChunkedArray, count: int) -> _Positions:
    """What Java's % does to a negative hash; at no key that is compared."""
    found = file_group_indexes(keys, count)
    found[63] -= count
    return found


def broken(keys: pa.ChunkedArray, count: int) -> _Positions:
    raise ValueError("no such thing")


no_function = 1


def named(function: str) -> str:
    return f"{__name__}:{function}"


@pytest.mark.parametrize("name", [HUDI, named("same")])
def test_it_gives_what_hudi_gives(name: str) -> None:
    assert spread(name, KEYS, 7).tolist() == file_group_indexes(KEYS, 7).tolist()
    assert spread(name, pa.chunked_array([], pa.string()), 7).tolist() == []


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        ("other", CheckFailed, "puts the key 'key-0' where Hudi does not look for it: 16 of 16 keys"),
        ("too_wide", CheckFailed, "values of the type int64 for 1000 keys"),
        ("too_few", CheckFailed, r"gave \(999,\) values"),
        ("negative", CheckFailed, "a position that is none of 7 file groups"),
        ("broken", CheckFailed, "failed: ValueError: no such thing"),
        ("missing", ConfigError, "cannot be loaded: .*missing"),
        ("no_function", ConfigError, "is no function"),
    ],
)
def test_what_is_refused(function: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        spread(named(function), KEYS, 7)


def request(path: Path, name: str) -> IndexRequest:
    options = {"hudi.services.index.hash": name, "hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    return IndexRequest(base_path=str(path), options=resolve([("test", options)]))


def test_an_index_is_built_with_it(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    _BATCHES.clear()
    assert index_bootstrap(request(path, named("same")), engine=LocalEngine()).state is RunState.COMPLETED
    assert sum(_BATCHES) == len(real_locations(path))
    assert indexed_locations(path) == real_locations(path)


def test_a_wrong_one_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    with pytest.raises(CheckFailed, match="where Hudi does not look"):
        index_bootstrap(request(path, named("other")), engine=LocalEngine())
    assert not is_listed(path)
    assert not (path / ".hoodie/metadata/record_index").exists()
    index_bootstrap(request(path, HUDI), engine=LocalEngine())
    assert indexed_locations(path) == real_locations(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("murmur", "is neither hudi nor of the form package.module:function"),
        ("no_such_package.module:function", "cannot be loaded: No module named 'no_such_package'"),
    ],
)
def test_wrong_names(name: str, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = unpack("1.2.0", tmp_path)
    assert run(["index-bootstrap", "--base-path", str(path), "--hoodie-conf", f"hudi.services.index.hash={name}"]) == 2
    assert text in capfd.readouterr().err
    assert not (path / ".hoodie/.hudi_services").exists()
