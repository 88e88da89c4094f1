"""The file with one JSON line for each table: it grows as tables are finished, and a later run goes on from it."""

import fcntl
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

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
    _file: IO[str]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: str, *, resume: bool, applies: bool) -> "ResultsFile":
        """The file, emptied, or with the lines of finished tables of an earlier run that did the same.

        Raises ConfigError for a file that cannot be written, or has other text, and ConflictError while another run
        writes it.
        """
        check_output_file(path, FLAG)
        try:
            # Not emptied before it is ours.
            file = open(path, "a+", encoding="utf-8")  # noqa: SIM115
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
            _rewrite(file, kept)
        except BaseException:
            file.close()
            raise
        return cls(path, kept, file)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line, which stays when this process is killed next; any thread may. Raises StorageError."""
        with self._lock:
            try:
                self._file.write(_text(line))
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise StorageError(f"{self.path} could not be written: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()


def _finished(file: IO[str], path: str, *, applies: bool) -> dict[str, Mapping[str, Any]]:
    """The lines of tables that need not be looked at again. Raises ConfigError for a file of other text."""
    file.seek(0)
    finished: dict[str, Mapping[str, Any]] = {}
    # A run that is killed as it writes leaves a line without its end.
    *lines, _torn = file.read().split("\n")
    for number, text in enumerate(lines if lines or not _torn else [_torn], 1):
        try:
            line = json.loads(text)
            place, is_finished = line["base_path"], line["finished"] and line["dry_run"] is not applies
        except (ValueError, KeyError, TypeError):
            if text is _torn and text.startswith("{"):
                continue
            raise ConfigError(
                f"line {number} of {FLAG} {path} was not written by fleet", hint="give fleet a file of its own"
            ) from None
        if is_finished:
            finished[place] = line
    return finished


def _rewrite(file: IO[str], kept: Mapping[str, Mapping[str, Any]]) -> None:
    """Leave only these lines. A run that is killed here loses lines, and looks at their tables again."""
    file.seek(0)
    file.truncate()
    file.write("".join(map(_text, kept.values())))
    file.flush()


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line) + "\n"
