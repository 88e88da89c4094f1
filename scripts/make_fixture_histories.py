"""Make tests/fixtures/histories/<release>.tar.xz with real Apache Hudi: make_fixture_histories.py [VERSION] [NAME]...

The merge-on-read tables of tests/interop/histories.py, made by each release. `<history>/table` is the table at the
end, `<history>/steps.json` what the release said after each step: the files of the timeline and the rows of a snapshot
query, or the error. With names of histories, the others stay as they are in the archive. Needs pyspark 3.5 and Java 17;
two or three minutes for each release.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.interop.histories import HISTORIES
from tests.interop.history_maker import HistoryMaker, pack, unpack
from tests.interop.peer import Peer
from tests.interop.recipes import VERSIONS


def main(arguments: list[str]) -> None:
    names = [name for name in arguments if name in HISTORIES]
    for release in [name for name in arguments if name not in HISTORIES] or VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            tables = Path(folder) / "tables"
            peer = Peer(release, Path(folder) / "log", "--small-tables")
            if names:
                unpack(release, tables)
            try:
                for name in names or HISTORIES:
                    if release in HISTORIES[name].releases:
                        shutil.rmtree(tables / name, ignore_errors=True)
                        HistoryMaker(peer, tables / name, HISTORIES[name]).make()
                        print(f"{release} {name}", flush=True)
            finally:
                peer.close()
            pack(release, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
