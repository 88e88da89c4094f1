"""Make tests/fixtures/mdt/partitions_*.tar.xz with real Apache Hudi: make_fixture_metadata_partitions.py [KIND ...]

Small tables of tests/interop/metadata_changes.py, a partition of whose metadata table Hudi dropped and built anew.
"""

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.interop.metadata_changes import CHANGES, COMPACT_AFTER, FEW_GROUPS, Maker  # noqa: E402
from tests.interop.peer import Peer  # noqa: E402
from tests.unit.metadata_tables import FIXTURES, TABLES_OF_PARTITIONS  # noqa: E402


def main() -> None:
    for kind in sys.argv[1:] or TABLES_OF_PARTITIONS:
        release, change, compact_after = TABLES_OF_PARTITIONS[kind]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            peer = Peer(release, root / "log", "--small-tables")
            options = FEW_GROUPS | ({COMPACT_AFTER: compact_after} if compact_after else {})
            CHANGES[change].make(Maker(peer, root / "table", options=options))
            peer.close()
            for twin in root.rglob(".*.crc"):
                twin.unlink()
            # With the times of all files, which version 6 takes for completion times.
            with tarfile.open(FIXTURES / f"partitions_{kind}.tar.xz", "w:xz") as archive:
                archive.add(root / "table", "table")
            shutil.rmtree(root / "table")


if __name__ == "__main__":
    main()
