"""Tables as real Hudi left them, with what it read of them then: unpacked from tests/fixtures/interop/<release>.tar.xz.

scripts/make_fixture_interop.py makes the archives: `<recipe>/table` is the table, `<recipe>/rows.arrow` what a snapshot
read gave (the same with the metadata table and without), `<recipe>/live.json` the names of the base files that it
opened. The member `recipes` has the digest of the code that the tables were made by.
"""

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather

from . import layout
from .peer import Peer
from .readers import same_rows
from .reading import METADATA_OFF, METADATA_ON, Reading
from .recipes import RECIPES, VERSIONS

NAMED = ("1.1.1",)
"""Releases for the tests alone whose marker `releases` names them, all of them deep."""
ALL = (*VERSIONS, *NAMED)
MAKES_AS = {"1.1.1": "1.2.0"}
"""The release with the same table version, whose recipes another one makes, too."""
FOLDER = Path(__file__).parents[1] / "fixtures" / "interop"
COMMAND = "python scripts/make_fixture_interop.py"
_DIGEST = "recipes"


class Pristine:
    """The tables of one release, unpacked into `folder`: not to be changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def unpack(cls, release: str, folder: Path, recipe: str = "") -> "Pristine":
        """All tables, or that of one recipe. All files keep their times."""
        with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
            wanted = [one for one in archive if not recipe or one.name.startswith(f"{recipe}/")]
            archive.extractall(folder, wanted, filter="data")
        return cls(folder)

    @classmethod
    def kept(cls, release: str, folder: Path) -> "Pristine":
        """In a folder of `folder` that is unpacked once, and again when the archive is another one."""
        mark = hashlib.sha256((FOLDER / f"{release}.tar.xz").read_bytes()).hexdigest()[:12]
        whole = folder / release / mark
        if not whole.exists():
            # Under another name until it is whole, or a broken run would leave half of the tables behind.
            part = folder / release / f"{mark}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            cls.unpack(release, part)
            part.rename(whole)
        return cls(whole)

    def table(self, recipe: str) -> Path:
        return self._folder / recipe / "table"

    def rows(self, recipe: str) -> pa.Table:
        """What Hudi read."""
        return feather.read_table(self._folder / recipe / "rows.arrow", memory_map=False)

    def reading(self, recipe: str) -> Reading:
        """What Hudi read, and what hudi-rs reads now."""
        return Reading.known(self.rows(recipe), self.table(recipe))

    def live_files(self, recipe: str, copy: Path) -> dict[str, list[Path]]:
        """The base files that Hudi opened, by partition, in a `copy` of the table."""
        return layout.by_partition(copy, json.loads((self._folder / recipe / "live.json").read_text()))


def recipes_of(release: str) -> list[str]:
    """The tables that the release has made."""
    return [name for name, recipe in RECIPES.items() if MAKES_AS.get(release, release) in recipe.releases]


def make(peer: Peer, folder: Path) -> None:
    """Write all tables of the release into `folder`, and what Hudi reads of them."""
    for name in recipes_of(peer.version):
        path = folder / name / "table"
        path.parent.mkdir(parents=True)
        peer.make(name, path)
        rows = peer.rows(path, METADATA_ON)
        assert same_rows(rows, peer.rows(path, METADATA_OFF), ignore=()) == [], name
        feather.write_feather(rows, path.parent / "rows.arrow", compression="uncompressed")
        (path.parent / "live.json").write_text(json.dumps(sorted(peer.live_files(path))))
    (folder / _DIGEST).write_text(digest())


def pack(release: str, folder: Path) -> None:
    """Into the archive of the release."""
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(FOLDER / f"{release}.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            # Empty folders count, too.
            archive.add(path, str(path.relative_to(folder)), recursive=False)


def is_of_these_recipes(release: str) -> bool:
    """Whether the archive of the release was made by the recipes of today."""
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        known = archive.extractfile(_DIGEST)
        return known is not None and known.read().decode() == digest()


def digest() -> str:
    return hashlib.sha256((Path(__file__).parent / "recipes.py").read_bytes()).hexdigest()
