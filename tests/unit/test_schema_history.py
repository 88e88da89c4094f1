"""Real tables whose columns were renamed, dropped, widened and reordered by SQL: refused, and left as they are."""

import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_services
from hudi_services.errors import UnsupportedTable

from .tables import RELEASES, digest

pytestmark = pytest.mark.usefixtures("no_conf_of_this_machine")

_FIXTURES = Path(__file__).parents[1] / "fixtures/schema_history"
NAMES = ["plain-cow", "plain-mor", "hard-cow", "hard-mor"]


def made(release: str, name: str, folder: Path) -> Path:
    with tarfile.open(_FIXTURES / f"{release}.tar.xz") as archive:
        members = [one for one in archive.getmembers() if one.name.startswith(f"{name}/")]
        archive.extractall(folder, members, filter="data")
    return folder / name / "table"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("release", RELEASES)
def test_refused(release: str, name: str, tmp_path: Path) -> None:
    path = made(release, name, tmp_path)
    before, table = digest(path), hudi_services.open(path, engine="local")
    rows = pa.table({"id": [1]})
    acts = [table.plan_clustering, table.cluster, table.plan_compaction, table.compact]
    acts += [lambda: table.upsert(rows), lambda: table.delete(rows)]
    for act in acts:
        with pytest.raises(UnsupportedTable, match="has a schema history"):
            act()
    # Statistics go by names: after a rename, readers would skip rows by those of another column.
    with pytest.raises(UnsupportedTable, match="statistics by the names of columns"):
        table.build_index("files,column_stats")
    assert digest(path) == before
    assert table.build_index("files").ok and table.validate().ok
