"""Storages of any store that die: after a number of writes nothing works, as if the process had been killed."""

from typing import Any

from hudi_services.storage import FileInfo, Storage

from .faulty_storage import Life, Mortal


class _AnyMortal(Mortal):
    """As Mortal; a replacement counts, too, and nobody looks any more before it."""

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        self._write("replace", path)
        return super().replace(path, data, seen)

    def head(self, path: str) -> FileInfo | None:
        self.life.check()
        return super().head(path)

    def elsewhere(self, url: str) -> Storage:
        return dying(super().elsewhere(url), self.life)


def dying(storage: Storage, life: Life) -> Storage:
    """The same storage, for a process that has this life."""
    kind: Any = type(storage)
    mortal = object.__new__(type(f"Mortal{kind.__name__}", (_AnyMortal, kind), {}))
    vars(mortal).update(vars(storage), life=life)
    found: Storage = mortal
    return found
