"""The file with one JSON line for each table: it grows as tables are finished, and a later run goes on from it."""

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import FileIO
from typing import Any

from ..errors import ConfigError, ConflictError, StorageError
from ..runs.output_file import check_output_file

FLAG = "--results"
LINE_VERSION = 1


@dataclass(slots=True)
class ResultsFile:
    """The file at a local path, which this run alone writes until `close`.

    `finished` has the lines of an earlier run that count, by the place of the table.
    """

    path: str
    finished: dict[str, Mapping[str, Any]]
    _file: FileIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: str, *, resume: bool, applies: bool) -> "ResultsFile":
        """The file, emptied, or with the lines of finished tables of an earlier run that did the same.

        Raises ConfigError for a file that cannot be written, or has other text, and ConflictError while another run
        writes it.
        """
        check_output_file(path, FLAG)
        if os.path.exists(path) and not os.path.isfile(path):
            raise ConfigError(f"{FLAG} {path} is a pipe or a device", hint="give a file: it is read again by --resume")
        try:
            # Not emptied before it is ours. Without a buffer: nothing is left to write when the disk is full.
            file = FileIO(path, "a+")
        except OSError as error:
            raise ConfigError(f"{FLAG} {path} cannot be written: {error.strerror}") from None
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConflictError(
                    f"another run writes {path}", hint="wait for its end, or give this run a file of its own"
                ) from None
            found = _finished(file, path, applies=applies)
            kept = found if resume else {}
            file.truncate(0)
            try:
                _append(file, map(_text, kept.values()))
            except OSError as error:
                raise ConfigError(f"{FLAG} {path} cannot be written: {error.strerror}") from None
        except BaseException:
            file.close()
            raise
        return cls(path, kept, file)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line, which stays when this process is killed next; any thread may. Raises StorageError."""
        with self._lock:
            try:
                _append(self._file, [_text(line)])
                os.fsync(self._file.fileno())
            except OSError as error:
                raise StorageError(f"{self.path} could not be written: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()


def _finished(file: FileIO, path: str, *, applies: bool) -> dict[str, Mapping[str, Any]]:
    """The lines of tables that need not be looked at again. Raises ConfigError for a file of other text."""
    file.seek(0)
    finished: dict[str, Mapping[str, Any]] = {}
    try:
        text = file.read().decode("utf-8")
    except UnicodeDecodeError:
        raise _foreign(path, "the text") from None
    # A run that is killed as it writes leaves a line without its end.
    *lines, _torn = text.split("\n")
    for number, text in enumerate(lines if lines or not _torn else [_torn], 1):
        try:
            line = json.loads(text)
            place, is_finished = line["base_path"], line["finished"] and line["dry_run"] is not applies
        except (ValueError, KeyError, TypeError):
            if text is _torn and text.startswith("{"):
                continue
            raise _foreign(path, f"line {number}") from None
        if is_finished:
            finished[place] = line
    return finished


def _foreign(path: str, what: str) -> ConfigError:
    return ConfigError(f"{what} of {FLAG} {path} was not written by fleet", hint="give fleet a file of its own")


def _append(file: FileIO, lines: Iterable[bytes]) -> None:
    """Write lines, each whole or not at all. Raises OSError."""
    for line in lines:
        size = file.seek(0, os.SEEK_END)
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            file.truncate(size)
            raise


def _text(line: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(line)}\n".encode()
