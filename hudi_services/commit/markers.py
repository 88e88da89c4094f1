"""Markers: the files that a write was about to create, so that any Hudi can roll the write back.

    direct           .hoodie/.temp/<ts>/<partition>/<data file>.marker.<CREATE|MERGE|APPEND>       0 bytes
    timeline server  .hoodie/.temp/<ts>/MARKERS.type   the text TIMELINE_SERVER_BASED
                     .hoodie/.temp/<ts>/MARKERS<n>     lines <partition>/<data file>.marker.<TYPE>

We write direct markers and read both kinds. Sources: DirectWriteMarkers, TimelineServerBasedWriteMarkers, MarkerUtils.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from ..codecs.named_paths import outside
from ..errors import AlreadyExists, CorruptFile
from ..paths import TABLE_FOLDER, bare_name, is_addressable, is_name, is_partition
from ..storage import Storage

CREATE = "CREATE"
"""The kind of the markers of new files; of log files see `LogNaming.marker_kind`."""
_TYPE_FILE = "MARKERS.type"
_SEPARATOR = ".marker."
_END_OF_LINE = re.compile(r"\r\n|\r|\n")
_CHECKSUM_TWIN = ".crc"


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file that a write may have left (path relative to the table), and how: CREATE, MERGE or APPEND."""

    path: str
    kind: str

    @property
    def partition(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def file_name(self) -> str:
        return bare_name(self.path)

    def stored_path(self, instant: str) -> str:
        """The path of the direct marker of a write."""
        return f"{marker_folder(instant)}/{self.path}{_SEPARATOR}{self.kind}"


def marker_folder(instant: str) -> str:
    return f"{TABLE_FOLDER}/.temp/{instant}"


def create_marker(storage: Storage, instant: str, data_path: str, kind: str = CREATE) -> None:
    """Create the marker of the new file `data_path`; to be called before the file is opened."""
    with suppress(AlreadyExists):
        storage.create(Marker(data_path, kind).stored_path(instant), b"")


def read_markers(storage: Storage, instant: str) -> list[Marker]:
    """All markers of a write, sorted by path; [] when the marker folder does not exist, or is a link.

    Raises CorruptFile for a marker that names no data file of the table.
    """
    folder = marker_folder(instant)
    stored = [file.path[len(folder) + 1 :] for file in storage.list_tree(folder)]
    # Hadoop's local file system also writes a checksum file for each marker: .<data file>.marker.CREATE.crc
    names = [name for name in stored if not name.endswith(_CHECKSUM_TWIN)]
    if _TYPE_FILE in names:
        files = [name for name in names if name.startswith("MARKERS") and name != _TYPE_FILE]
        names = [line for name in files for line in _lines(storage, f"{folder}/{name}")]
    found = (name.rpartition(_SEPARATOR) for name in names)
    markers = sorted((Marker(path, kind) for path, separator, kind in found if separator), key=lambda m: m.path)
    for marker in markers:
        if not (is_name(marker.file_name) and is_partition(marker.partition) and is_addressable(marker.path)):
            raise outside(f"a marker in {storage.full_path(folder)}", marker.path)
    return markers


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        # The line ends of Java: str.splitlines also splits at characters that the name of a partition may contain.
        return _END_OF_LINE.split(storage.read(path).decode())
    except UnicodeDecodeError as e:
        raise CorruptFile(f"{storage.full_path(path)} holds no markers: {e}") from e


def delete_markers(storage: Storage, instant: str) -> None:
    storage.delete_tree(marker_folder(instant))
