"""Replaces a file of HDFS only where it is the one that was seen, for one of several processes.

HDFS compares nothing when it renames, but it renames a folder only where there is none. So whoever replaces a file
first makes a claim, of which there can be one for each version of the file:

1. write the new content into a folder of its own, under a name that is used once;
2. rename that folder to the name of the claim, which follows from the version that was seen: one process can;
3. look whether the file still is that version, which no other replacement can change now;
4. rename the content to the name of the file: the claim has it once, so this happens once;
5. delete the claim, which is empty: the version is gone, and who claims it later finds that out at step 3.

The claim of a process that was killed between 2 and 4 has its content, and the next one that wants to replace the same
version does step 4 in its place. What deletes or writes the file without a claim between 3 and 4 (Apache Hudi, a
`put`) is overwritten: on local storage it is the same.
"""

import hashlib
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from .hdfs_client import HdfsClient, Refused

_DIGITS = 20
CLAIM = re.compile(rf"\..+\.replaced#[0-9]{{{_DIGITS}}}", re.DOTALL)
"""The name of a folder with the new content of a file."""
UNFINISHED = re.compile(rf".+#[0-9]{{{_DIGITS}}}", re.DOTALL)
"""The name of a file that is not finished."""
_DEAD_MILLIS = 30_000
"""The content of a claim that is so much older than ours: the process that made it is dead, or has stopped."""
_TRIES = 5
_LEAST_BLOCK = 128 << 20
_CHECKSUM_CHUNK = 512
_BLOCK_SIZES = 1 << 17


def unfinished_name(name: str) -> str:
    """A name beside `name` that nobody else uses, for a file that is not finished."""
    return f"{name}#{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file, and the block size by which HDFS tells this file from another one of its name.

    Nothing else in a listing can: the time is in milliseconds, and the number of a file is not shown. All block sizes
    are 128 to 192 MiB and multiples of the checksum's chunk, and a smaller file takes no more than its bytes.
    """

    data: bytes
    block_size: int

    @classmethod
    def of(cls, data: bytes) -> "Content":
        return cls(data, _LEAST_BLOCK + _CHECKSUM_CHUNK * secrets.randbelow(_BLOCK_SIZES))

    def write(self, client: HdfsClient, path: str) -> None:
        client.write(path, self.data, self.block_size)

    def is_at(self, client: HdfsClient, path: str) -> bool:
        """Whether the file at `path` is this one."""
        found = client.status(path)
        return found is not None and (found.length, found.blocksize) == (len(self.data), self.block_size)


class Vanished(OSError):
    """What was to be renamed is gone, and is not at the target."""


def renamed_once(
    client: HdfsClient, source: str, target: str, is_there: Callable[[], bool], *, overwrite: bool = False
) -> bool:
    """Rename what this process alone knows the name of; False where the target exists. Raises Vanished.

    When the answer is lost, or says that an earlier try of the client has done it, `is_there` tells whether the target
    is what was renamed.
    """
    for is_last in (False, True):
        try:
            client.rename(source, target, overwrite=overwrite)
            return True
        except OSError as e:
            if client.status(source) is None:
                if is_there():
                    return True
                raise Vanished("another process has deleted the unfinished file") from e
            if isinstance(e, FileExistsError):
                return False
            if is_last or isinstance(e, Refused | FileNotFoundError | PermissionError):
                raise
    return False


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of the file at `path` of the version `version`; `is_still` tells whether it has that version."""

    client: HdfsClient
    path: str
    version: str
    is_still: Callable[[], bool]

    def run(self, data: bytes) -> bool:
        """Whether the file was replaced."""
        if not self.is_still():
            return False
        content, name = Content.of(data), unfinished_name(self.path.rpartition("/")[2])
        own = self._folder(secrets.randbelow(10**_DIGITS))
        try:
            content.write(self.client, f"{own}/{name}")
            return self._claim(own, name) and self._finish(content, name)
        finally:
            # After a rename it is gone.
            with suppress(OSError):
                self.client.delete(own, with_content=True)

    @property
    def _claimed(self) -> str:
        digest = hashlib.sha256(self.version.encode()).digest()
        return self._folder(int.from_bytes(digest, "big") % 10**_DIGITS)

    def _folder(self, number: int) -> str:
        folder, _, name = self.path.rpartition("/")
        return f"{folder}/.{name}.replaced#{number:0{_DIGITS}}"

    def _claim(self, own: str, name: str) -> bool:
        """Whether this process may replace the version."""
        for _ in range(_TRIES):
            if renamed_once(self.client, own, self._claimed, lambda: self._has(name)):
                return True
            if not self._is_left_empty(f"{own}/{name}"):
                return False
        return False

    def _has(self, name: str) -> bool:
        return self.client.status(f"{self._claimed}/{name}") is not None

    def _is_left_empty(self, ours: str) -> bool:
        """Whether the claim of another process had nothing more to do, and is gone now; the file of one that died is
        put in its place."""
        there = self.client.entries(self._claimed)
        if not there:
            with suppress(Refused):
                self.client.delete(self._claimed)
            return True
        now = self.client.status(ours)
        if now is not None and now.modification_time - there[0].modification_time > _DEAD_MILLIS and self.is_still():
            with suppress(FileNotFoundError):
                self.client.rename(there[0].path, self.path, overwrite=True)
            with suppress(Refused):
                self.client.delete(self._claimed)
        return False

    def _finish(self, content: Content, name: str) -> bool:
        """Let the content of our claim be the file."""
        done = False
        try:
            done = self.is_still() and renamed_once(
                self.client,
                f"{self._claimed}/{name}",
                self.path,
                lambda: content.is_at(self.client, self.path),
                overwrite=True,
            )
        except Vanished:
            # Others took this process for dead, and the file has changed since.
            done = False
        finally:
            with suppress(OSError):
                self.client.delete(self._claimed, with_content=True)
        return done
