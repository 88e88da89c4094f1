"""Markers: what a write was about to create, so that any Hudi can roll it back.

    direct           .hoodie/.temp/<ts>/<partition>/<data file>.marker.<CREATE|MERGE|APPEND>       0 bytes
    timeline server  .hoodie/.temp/<ts>/MARKERS.type   the text TIMELINE_SERVER_BASED
                     .hoodie/.temp/<ts>/MARKERS<n>     lines <partition>/<data file>.marker.<TYPE>

We write direct markers and read both kinds. Sources: DirectWriteMarkers, TimelineServerBasedWriteMarkers, MarkerUtils.
"""

from contextlib import suppress
from dataclasses import dataclass

from ..errors import AlreadyExists, CorruptFile
from ..files.names import TABLE_FOLDER
from ..storage import Storage

_TYPE_FILE = "MARKERS.type"
_SEPARATOR = ".marker."
_CHECKSUM_TWIN = ".crc"


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file (path relative to the table) that a write may have left, and how: CREATE, MERGE or APPEND."""

    path: str
    kind: str

    @property
    def partition(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def file_name(self) -> str:
        return self.path.rpartition("/")[2]


def marker_folder(instant: str) -> str:
    return f"{TABLE_FOLDER}/.temp/{instant}"


def create_marker(storage: Storage, instant: str, data_path: str) -> None:
    """Announce the new base file `data_path`; must be done before the file is opened."""
    with suppress(AlreadyExists):
        storage.create(f"{marker_folder(instant)}/{data_path}{_SEPARATOR}CREATE", b"")


def read_markers(storage: Storage, instant: str) -> list[Marker]:
    """All markers of a write, sorted by path; [] when there is no marker folder."""
    folder = marker_folder(instant)
    stored = [file.path[len(folder) + 1 :] for file in storage.list_tree(folder)]
    # Hadoop's local file system has a twin for each marker, too: .<data file>.marker.CREATE.crc
    names = [name for name in stored if not name.endswith(_CHECKSUM_TWIN)]
    if _TYPE_FILE in names:
        files = [name for name in names if name.startswith("MARKERS") and name != _TYPE_FILE]
        names = [line for name in files for line in _lines(storage, f"{folder}/{name}")]
    found = (name.rpartition(_SEPARATOR) for name in names)
    return sorted((Marker(path, kind) for path, separator, kind in found if separator), key=lambda m: m.path)


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        return storage.read(path).decode().splitlines()
    except UnicodeDecodeError as e:
        raise CorruptFile(f"{storage.full_path(path)} holds no markers: {e}") from e


def delete_markers(storage: Storage, instant: str) -> None:
    folder = marker_folder(instant)
    for file in storage.list_tree(folder):
        storage.delete(file.path)
    storage.remove_empty_dirs(folder)
