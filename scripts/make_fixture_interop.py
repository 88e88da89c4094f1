"""Make tests/fixtures/interop/<release>.tar.xz with real Apache Hudi: make_fixture_interop.py [VERSION]...

All tables of tests/interop/recipes.py, made by each release, and the rows that the release reads from them. Needs
pyspark 3.5 and Java 17; one JVM per release, one after the other, a minute or two each. Run it again when the recipes
have changed.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.interop.peer import Peer
from tests.interop.pristine import ALL, make, pack


def main(releases: list[str]) -> None:
    for release in releases or ALL:
        with tempfile.TemporaryDirectory() as folder:
            tables = Path(folder) / "tables"
            peer = Peer(release, Path(folder) / "log", "--small-tables")
            try:
                make(peer, tables)
            finally:
                peer.close()
            pack(release, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
