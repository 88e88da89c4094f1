"""What a run waits for is shown to a person at a terminal, while it waits, and to nobody else."""

import io
import json
import re
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from hudi_services.cli.app import run
from hudi_services.commit.lease import Lease
from hudi_services.errors import LockBusy
from hudi_services.locking.file_system import FileSystemProvider
from hudi_services.locking.protocol import LockWait
from hudi_services.options.lock_keys import FILE_SYSTEM_LOCK
from hudi_services.stores import open_storage
from hudi_services.waiting import Waiting

from .tables import digest, unpack

LOCK = ".hoodie/lock"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")


def schedule(path: Path, stderr: io.StringIO, *more: str) -> int:
    lock = [word for key in (f"provider={FILE_SYSTEM_LOCK}", "wait_time_ms_between_retry=50") for word in conf(key)]
    with redirect_stdout(io.StringIO()), redirect_stderr(stderr):
        return run(["schedule", "-sp", str(path), "--conf-file", "/dev/null", *lock, *more])


def conf(text: str) -> tuple[str, str]:
    return "--hoodie-conf", f"hoodie.write.lock.{text}"


def seen(printed: str) -> str:
    """Without what moves the cursor and colours the text."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)


def test_the_holder_of_the_lock(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    (path / LOCK).write_text(json.dumps({"lockThreadName": "a\x1b]0;owned\x07\x9b31m\u202e[bold]"}))
    before = digest(path)
    shown = Terminal()
    assert schedule(path, shown, "--lock-wait", "1") == 4
    text = seen(shown.getvalue())
    name = r"a\x1b]0;owned\x07\x9b31m\u202e[bold]"
    for seconds in (0, 1):
        holder = rf"held by another writer \({re.escape(name)}\), since 2\S+Z \({seconds} s\)"
        assert re.search(f"waiting for the lock {path}/{LOCK}, {holder}", text)
    assert not set(text) & set("\x1b\x07\x9b\u202e")
    for flags in ((), ("--verbose",)):
        quiet = io.StringIO()
        assert schedule(path, quiet, "--lock-wait", "1", *flags) == 4
        assert quiet.getvalue().count("waiting for the lock") == len(flags)
    assert {name: content for name, content in digest(path).items() if "/.locks/" not in name} == before


def test_nothing_of_it_stays_when_the_lock_is_free(tmp_path: Path) -> None:
    path = unpack("1.2.0", tmp_path)
    (path / LOCK).touch()
    freed = threading.Timer(1.0, (path / LOCK).unlink)
    freed.start()
    shown = Terminal()
    assert schedule(path, shown, "--lock-wait", "60") == 0
    freed.join()
    assert "waiting for the lock" in shown.getvalue()
    *_, last = shown.getvalue().split("\x1b[2K")
    assert "waiting" not in last and last.startswith("\x1b[?25h")


def test_another_run_and_another_holder(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    told: list[tuple[Waiting, str]] = []

    def on_wait(wait: Waiting, what: str) -> None:
        told.append((wait, what))

    with Lease(storage, "table", "schedule"), pytest.raises(LockBusy, match="schedule is at work"):
        Lease(storage, "table", "execute", 0.3, on_wait).__enter__()
    lock = FileSystemProvider().lock(storage, LockWait(5_000, 10, on_wait))

    def hold() -> None:
        for name in ("a", "b"):
            (tmp_path / LOCK).write_text(json.dumps({"lockThreadName": name}))
            time.sleep(0.3)
        (tmp_path / LOCK).unlink()

    holder = threading.Thread(target=hold)
    (tmp_path / LOCK).touch()
    holder.start()
    with lock:
        holder.join()
    # The lock file has no content for a moment, and may be gone when it is read: then nobody is named.
    known = re.compile(r"another run: schedule|another writer \([ab]\)|^$")
    named = [(wait, found[0]) for wait, what in told if (found := known.search(what))]
    assert [name for _, name in named] == [
        *("another run: schedule", ""),
        *("another writer (a)", "another writer (b)", ""),
    ]
    run, lock_of = named[0][0], named[2][0]
    assert [wait for wait, _ in named] == [run, run, lock_of, lock_of, lock_of]
