"""The data files of a table, folder by folder, as storage lists them, also in folders that no reader lists."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from ..clock import parse_instant
from ..file_names import parse_base_file, parse_log_file
from ..model import DataFile
from ..paths import TABLE_FOLDER, is_addressable
from ..storage import FileInfo, Storage

_REQUESTS_AT_ONCE = 32
_FOLDERS_IN_MEMORY = 256
_INSTANT_DIGITS = (14, 17)
_WRITE_TOKEN = re.compile(r"[0-9]+-[0-9]+-[0-9]+")
_BASE_FILE_ENDING = ".parquet"


class DataFolders:
    """Lists every folder of a table except `.hoodie`, a few hundred at a time. Other tables inside it are left out.

    A folder without a partition metafile is listed, too: an attempt may have died before it wrote the metafile.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.nested: set[str] = set()
        """The folders of other tables that `walk` has found."""

    def walk(self, progress: Callable[[int, int], None]) -> Iterator[tuple[str, list[tuple[FileInfo, DataFile]]]]:
        """Yield (folder, its data files); `progress` is called with the number of folders listed and known."""
        waiting, done = [""], 0
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            while waiting:
                batch = waiting[-_FOLDERS_IN_MEMORY:]
                del waiting[-_FOLDERS_IN_MEMORY:]
                for folder, (files, below) in zip(batch, pool.map(self._storage.list_dir, batch), strict=True):
                    done += 1
                    if folder and f"{folder}/{TABLE_FOLDER}" in below:
                        self.nested.add(folder)
                        continue
                    # No path can name a file in a folder with control characters in its name.
                    waiting += [one for one in below if one != TABLE_FOLDER and is_addressable(one)]
                    parsed = ((file, parse_strictly(folder, file)) for file in files)
                    yield folder, [(file, data) for file, data in parsed if data is not None]
                progress(done, done + len(waiting))


def parse_strictly(folder: str, file: FileInfo) -> DataFile | None:
    """The base file or log file with the name of `file`; None for a name that no Hudi writer gives.

    Stricter than readers, because files that other programs put into the table's folders are not orphan files.
    """
    base = parse_base_file(folder, file.name, file.size)
    if base is not None:
        ours = base.name.endswith(_BASE_FILE_ENDING) and _WRITE_TOKEN.fullmatch(base.write_token)
        return base if ours and _is_instant(base.instant) else None
    log = parse_log_file(folder, file.name, file.size)
    return log if log is not None and log.write_token and _is_instant(log.instant) else None


def _is_instant(text: str) -> bool:
    return len(text) in _INSTANT_DIGITS and parse_instant(text, "UTC") is not None
