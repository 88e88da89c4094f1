"""Tables whose first instants real Apache Hudi archived, with files that its rolled back commits left behind."""

import tarfile
from pathlib import Path

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "archives.tar.xz"


def unpack_archived(folder: Path) -> Path:
    """All of them: `<release>/plain` without, `<release>/listed` with a metadata table."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(folder, filter="data")
    return folder
