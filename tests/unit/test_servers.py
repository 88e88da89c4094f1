"""How tests come to servers: tools are installed once, and a server that does not start says why."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from ..servers.process import accepts, free_port, running
from ..servers.tools import cache_folder, kept, run

pytestmark = pytest.mark.threads


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "hudi_services_tests"
    return cache_folder()


def test_a_tool_is_installed_once(cache: Path) -> None:
    """By one of those who want it, and nobody sees half of it; the lock is of the file, as it is between processes."""
    installed = []

    def install(folder: Path) -> None:
        installed.append(folder)
        time.sleep(0.1)
        (folder / "program").write_text("1")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: (kept("tool-1", install) / "program").read_text(), range(4)))
    assert found == ["1"] * 4 and len(installed) == 1
    assert sorted(path.name for path in cache.iterdir()) == ["tool-1", "tool-1.lock"]


def test_a_tool_that_cannot_be_had(cache: Path) -> None:
    """The next one tries again."""
    fails = "import sys; print('no such version'); sys.exit(1)"
    for command, said in (
        ([sys.executable, "-c", fails], "no such version"),
        (["nowhere"], "need nowhere on the PATH"),
    ):
        with pytest.raises(RuntimeError, match=said):
            kept("tool-1", lambda _, command=command: run(command))  # type: ignore[misc]
    assert [path.name for path in cache.iterdir()] == ["tool-1.lock"]
    kept("tool-1", lambda folder: run([sys.executable, "-c", f"open({str(folder / 'program')!r}, 'w')"]))
    assert (cache / "tool-1" / "program").exists()


def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    ends = [sys.executable, "-c", "print('the port is taken')"]
    with (
        pytest.raises(RuntimeError, match=r"does not serve.*\n.*the port is taken"),
        running(ends, tmp_path / "log", partial(accepts, free_port())),
    ):
        pytest.fail("it never ran")


def test_a_server_is_killed_after_a_failure(tmp_path: Path) -> None:
    port = free_port()
    serves = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"
    with (
        pytest.raises(ZeroDivisionError),
        running([sys.executable, "-c", serves], tmp_path / "log", partial(accepts, port)),
    ):
        raise ZeroDivisionError
    with pytest.raises(OSError):
        accepts(port)
