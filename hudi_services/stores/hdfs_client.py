"""The client of an HDFS, by the package hdfs-native: no Java, no libhdfs.

Where the NameNodes of a name service are, who the user is, and all else that a cluster needs, comes from the
environment, as for every program of Hadoop: HADOOP_CONF_DIR (else HADOOP_HOME/etc/hadoop) names the folder of
core-site.xml and hdfs-site.xml, HADOOP_USER_NAME the user where there is no Kerberos. Options replace single values of
these files.

Methods raise OSError: what the NameNode answered as `Refused` and its kind, the rest as the connection broke.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from ..errors import ConfigError
from ..extras import imported
from ..request_counts import Asked, count, count_pages
from .options import StorageOptions

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus, FileWriter

_DEFAULT_PORT = 8020
_FEW_TRIES = {"dfs.client.failover.max.attempts": "2"}
"""The first question to a NameNode is answered within seconds, or never: the wrong host or port. The number that Hadoop
has by default takes three minutes; later questions wait so long for a failover."""
_FIRST_ANSWER_SECONDS = 20.0
_STALL_SECONDS = 30.0
_SLOWEST = 256 << 10
"""Bytes in a second of the slowest link on which everything works."""
_PAUSES = (0.1, 1.0)
"""Seconds after which a question is asked again whose answer was lost."""
_T = TypeVar("_T")
_FAILURE = re.compile(r'(\w+)\((?:"([^"]*)", )?"(.*?)(?:\\n|"\)?$)', re.DOTALL)
"""What hdfs-native says of a failure: its kind, the exception of Java, and the message before the stack of Java."""


class Refused(OSError):
    """The NameNode has answered, and done nothing."""


class HdfsClient:
    """Files and folders by their absolute paths. Threads may share it; a forked process may not."""

    def __init__(self, url: str, options: StorageOptions | None, folder: str) -> None:
        """Connects to the NameNode of `url`, which has no path, and asks it for a folder. Raises ConfigError for a URL
        that the configuration does not resolve, and OSError when nobody answers."""
        config = {} if options is None else {name: _text(value) for name, value in options.config.items()}
        try:
            _first_answer(_opened(url, {**config, **_FEW_TRIES}), folder)
        except OSError as e:
            if isinstance(e, Refused | PermissionError):
                raise
            raise ConnectionError(f"no NameNode answers at {url}: {e}") from e
        self._opened = partial(_opened, url, config)
        self._client = self._opened()

    def _ask(self, ask: "Callable[[Client], _T]", length: int = 0) -> _T:
        """What `ask` gives, of up to `length` bytes; it is asked again where the connection broke before the answer, or
        stalled: hdfs-native does the one only before a request is sent, and else waits for ever."""
        return _repeated(lambda: self._ask_once(ask, length))

    def _ask_once(self, ask: "Callable[[Client], _T]", length: int = 0) -> _T:
        client = self._client
        try:
            with _as_os_errors():
                return _in_time(lambda: ask(client), _seconds_for(length))
        except TimeoutError:
            # All requests share a connection: those that follow need another one.
            self._client = self._opened()
            raise

    def status(self, path: str) -> "FileStatus | None":
        """What is at `path`; None where nothing is."""
        count(Asked.HEAD)
        try:
            return self._ask(lambda client: client.get_file_info(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def entries(self, path: str) -> "list[FileStatus]":
        """What is in a folder; nothing where there is no such folder."""
        try:
            found = self._ask(lambda client: list(client.list_status(path)))
        except (FileNotFoundError, NotADirectoryError):
            found = []
        count_pages(len(found))
        # The listing of a file is the file.
        return [one for one in found if one.path != path]

    def open(self, path: str) -> "FileReader":
        try:
            return self._ask(lambda client: client.read(path))
        except NotADirectoryError as e:
            raise FileNotFoundError(*e.args) from e

    def read(self, file: "FileReader", start: int, length: int) -> bytes:
        """Bytes of an open file, which must have them: past its end hdfs-native panics."""
        count(Asked.GET)
        return self._ask(lambda _: file.read_range(start, length), length) if length else b""

    def create(self, path: str, block_size: int | None = None) -> IO[bytes]:
        """A writer of a new file of a name that nobody else uses, with the folders above it."""
        options = hdfs_native().WriteOptions(block_size=block_size)
        count(Asked.PUT)

        def create(client: "Client") -> "FileWriter":
            try:
                return client.create(path, options)
            except FileExistsError:
                # The answer to an earlier try was lost, and with it the writer.
                client.delete(path)
                return client.create(path, options)

        return cast(IO[bytes], _Writer(self._ask(create)))

    def write(self, path: str, data: bytes, block_size: int) -> None:
        """A new file of a name that nobody else uses; it is empty until it is written."""

        def write() -> None:
            file = self.create(path, block_size)
            if data:
                file.write(data)
            file.close()

        _repeated(write)

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Rename in one step; raises FileExistsError, and FileNotFoundError for a missing source or folder. After any
        other error the caller must find out what was done."""
        count(Asked.RENAME)
        self._ask_once(lambda client: client.rename(source, target, overwrite))

    def delete(self, path: str, *, with_content: bool = False) -> None:
        """Delete a file, or a folder that is empty; what is not there is success."""
        count(Asked.DELETE)
        with suppress(NotADirectoryError):
            self._ask(lambda client: client.delete(path, with_content))

    def make_folder(self, path: str) -> None:
        self._ask(lambda client: client.mkdirs(path, create_parent=True))


class _Writer:
    """A writer of hdfs-native, with its errors as OSError."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._close = raw.close
        # Python closes a stream that is dropped. That would make a file look finished whose writing failed, and wait
        # without end, in any thread, for a connection that is gone.
        raw.close = _nothing

    def write(self, data: bytes) -> int:
        with _as_os_errors():
            return int(_in_time(lambda: self._raw.write(data), _seconds_for(len(data))))

    def close(self) -> None:
        with _as_os_errors():
            _in_time(self._close, _seconds_for(0))


def _nothing() -> None:
    """Instead of `close`."""


_clients: dict[tuple[int, str, StorageOptions | None], HdfsClient] = {}
"""By process, too: the threads of a client stay in the process that opened it. Its clients are never dropped elsewhere,
because that would wait for them."""


def client_of(url: str, options: StorageOptions | None, folder: str) -> HdfsClient:
    """The client of this process; the first one asks for `folder`."""
    key = (os.getpid(), url, options)
    found = _clients.get(key)
    return found if found is not None else _clients.setdefault(key, HdfsClient(url, options, folder))


def hdfs_native() -> Any:
    """The package; raises ConfigError without it."""
    return imported("hdfs_native", "hdfs", "a table on HDFS")


def _opened(url: str, config: dict[str, str]) -> "Client":
    try:
        return cast("Client", hdfs_native().Client(url, config))
    except RuntimeError as e:
        said = str(e)
    if "No NameNode hosts found" in said and not url.endswith("/"):
        # No name service: a host, as for Hadoop.
        return cast("Client", hdfs_native().Client(f"{url}:{_DEFAULT_PORT}", config))
    hint = "set HADOOP_CONF_DIR to the folder of core-site.xml and hdfs-site.xml, or write hdfs://namenode:8020/path"
    if "fallback" in said:
        hint += "; a mount table of viewfs must have a linkFallback beside its links"
    raise ConfigError(f"{url} names no NameNode: {_told(said)[1]}", hint=hint)


def _first_answer(client: "Client", folder: str) -> None:
    """Raise OSError when no NameNode answers soon."""
    with suppress(FileNotFoundError), _as_os_errors():
        _in_time(lambda: client.get_file_info(folder), _FIRST_ANSWER_SECONDS)


def _repeated(ask: Callable[[], _T]) -> _T:
    """What `ask` gives; it is asked again where something else than an answer ended it."""
    for pause in _PAUSES:
        try:
            return ask()
        except (Refused, FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError):
            raise
        except OSError:
            time.sleep(pause)
            count(Asked.RETRY)
    return ask()


def _seconds_for(length: int) -> float:
    """After how many seconds a request for so many bytes is given up."""
    return _STALL_SECONDS + length / _SLOWEST


def _in_time(ask: Callable[[], _T], seconds: float) -> _T:
    """What `ask` gives. Raises TimeoutError when it takes longer; its thread waits on."""
    answers: list[_T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as e:
            failures.append(e)

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(seconds)
    if asking.is_alive():
        raise TimeoutError(f"nothing came within {seconds:.0f} s")
    for failure in failures:
        raise failure
    return answers[0]


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn failures that hdfs-native raises as RuntimeError into OSError."""
    try:
        yield
    except RuntimeError as e:
        name, said = _told(str(e))
        if said.endswith("(is not a directory)"):
            raise NotADirectoryError(said) from e
        if name.endswith("AccessControlException"):
            raise PermissionError(said) from e
        raise (Refused if name else OSError)(said) from e


def _told(text: str) -> tuple[str, str]:
    """The exception of Java ("" where it is no answer of a server) and the message, on one line."""
    found = _FAILURE.match(text)
    return (found[2] or "", found[3]) if found else ("", text.partition("\n")[0])


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
