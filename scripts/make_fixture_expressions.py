"""Make tests/fixtures/tables/expressions_*.zip with real Apache Hudi: make_fixture_expressions.py VERSION...

Tables with expression indexes, those of the interop recipe.
"""

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "fixtures" / "tables"


def main(versions: list[str]) -> None:
    sys.path.insert(0, str(ROOT))
    from tests.interop.peer import Peer

    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            peer = Peer(version, Path(folder) / "log")
            try:
                peer.make("expressions", Path(folder) / "made" / "table")
            finally:
                peer.close()
            for twin in Path(folder).rglob(".*.crc"):
                twin.unlink()
            shutil.make_archive(str(TARGET / f"expressions_{version}"), "zip", Path(folder) / "made")


if __name__ == "__main__":
    main(sys.argv[1:])
