"""The folder `.hoodie` as one listing: the file of the properties, and which folders of features there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..paths import TABLE_FOLDER, bare_name
from ..storage import FileInfo, Storage

_PROPERTIES = "hoodie.properties"


@dataclass(frozen=True)
class MetaFolder:
    """The files directly in `.hoodie` by name, and the names of its folders."""

    files: Mapping[str, FileInfo] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    @classmethod
    def list(cls, storage: Storage) -> "MetaFolder":
        """Both are empty where there is no such folder. Raises StorageError."""
        files, folders = storage.list_dir(TABLE_FOLDER)
        return cls({file.name: file for file in files}, frozenset(bare_name(path) for path in folders))

    def has_same_properties(self, other: "MetaFolder") -> bool:
        """Whether both listings saw the same file of properties: writers replace the file when they change it."""
        ours, theirs = self.files.get(_PROPERTIES), other.files.get(_PROPERTIES)
        return ours is not None and theirs is not None and bool(ours.tag) and (ours, ours.tag) == (theirs, theirs.tag)
