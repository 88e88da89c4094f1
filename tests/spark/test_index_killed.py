"""`index-bootstrap` is killed while it reads keys and while it writes shards, and then resumed."""

from pathlib import Path

import pytest

from tests.unit.tables import unpack
from tests.unit.test_index_bootstrap import indexed_locations, real_locations

from .killed_build import build_killed_twice

pytestmark = pytest.mark.spark


@pytest.mark.thorough
@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.deep), "local"])
def test_what_was_done_is_not_done_again(engine: str, tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    report = build_killed_twice(path, tmp_path, engine)
    real = real_locations(path)
    assert report["rows"] == {"in": len(real), "out": len(real)}
    assert indexed_locations(path) == real
