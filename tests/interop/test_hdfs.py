"""A table on HDFS: real Hudi and this package write it in turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_services.storage import Storage
from hudi_services.stores import open_storage

from ..servers.hdfs import hdfs_server
from ..servers.started import deep_on
from .peer import EACH_DELTA_COMMIT, Peer
from .store_turns import Table, in_turns

pytestmark = [*deep_on("hdfs"), pytest.mark.releases("1.2.0")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


def _files_of_every_folder(store: Storage) -> list[str]:
    """A file of each folder of the table."""
    return list({file.path.rpartition("/")[0]: file.path for file in store.list_tree("")}.values())


def test_in_turns(peer: Peer, lake: str, tmp_path: Path) -> None:
    url = f"{lake}/lake/rides"
    table = Table(peer, url, tmp_path, indexed=True)
    in_turns(table, table.check)

    # What killed processes leave is in nobody's way.
    store = open_storage(url)
    assert store.list_staged() == []
    left = [f"{path}#{number:020}" for number, path in enumerate(_files_of_every_folder(store))]
    left.append(".hoodie/timeline/history/._version_.replaced#00000000000000000001/_version_#00000000000000000002")
    for path in left:
        store.put(path, b"a part")
    assert [file.path for file in store.list_staged()] == sorted(left)
    table.by_hudi(20, 130)
    table.by_us(10, 140)
    table.ours("compact", "--mode", "scheduleAndExecute", options=EACH_DELTA_COMMIT)
    table.by_hudi(0, 20)
    table.check()
