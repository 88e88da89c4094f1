"""Locks in ZooKeeper: real Hudi and we wait for each other, at the same place and in the same line."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest
from kazoo.client import KazooClient

from hudi_services.errors import StorageError
from hudi_services.locking.protocol import LockWait
from hudi_services.locking.zookeeper import ZooKeeperProvider, implicit_path
from hudi_services.stores import open_storage

from . import layout, ours
from .conftest import Tables
from .lock_holder import HudiLock
from .peer import Peer, PeerError
from .reading import newer

_PACKAGE = "org.apache.hudi.client.transaction.lock"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of the ZooKeeper server that comes with Spark."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "zoo.cfg"
    config.write_text(f"dataDir={folder}/data\nclientPort={port}\nadmin.enableServer=false\ntickTime=200\n")
    jars = Path(pyspark.__file__).parent / "jars/*"
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
    command = [java, "-cp", str(jars), "org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        for _ in range(600):
            # It listens before it serves, and closes what comes in between.
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(b"srvr")
                if client.recv(1000).startswith(b"Zookeeper version"):
                    break
            assert server.poll() is None
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
        server.kill()


class Breaks:
    """A proxy that closes its first `times` connections to ZooKeeper as soon as a client asks for something."""

    def __init__(self, server: str, times: int) -> None:
        host, _, port = server.partition(":")
        self._server, self._times = (host, int(port)), times
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.broken = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._socket.accept()[0]
                server = socket.create_connection(self._server)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        seen = 0
        with suppress(OSError):
            is_asking = target.getpeername() == self._server
            while data := source.recv(65536):
                seen += 1
                # The first message of a connection is about the session.
                if is_asking and seen == 2 and self.broken < self._times:
                    self.broken += 1
                    break
                target.sendall(data)
        for end in (source, target):
            # Each of them, whatever has happened to the other one: or a client waits for an answer.
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("times", [1, 100])
def test_a_connection_that_breaks(times: int, tmp_path: Path, zookeeper: str) -> None:
    """A run of hours does not end because ZooKeeper was away for a moment; and it does not try for ever."""
    proxy = Breaks(zookeeper, times)
    provider = ZooKeeperProvider(proxy.url, "/hudi", tmp_path.name)
    try:
        if times == 1:
            with provider.lock(open_storage(str(tmp_path)), LockWait(5_000, 10)) as lock:
                lock.check()
        else:
            with pytest.raises(StorageError, match=f"ZooKeeper at {proxy.url}"):
                provider.lock(open_storage(str(tmp_path)), LockWait(5_000, 10)).__enter__()
    finally:
        proxy.close()
    assert proxy.broken == (1 if times == 1 else 4)


def options_of(provider: str, url: str, **more: str) -> dict[str, str]:
    return {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.lock.provider": f"{_PACKAGE}.{provider}",
        "hoodie.write.lock.zookeeper.url": url,
        "hoodie.write.lock.zookeeper.port": url.partition(":")[2],
        "hoodie.write.lock.wait_time_ms": "1500",
        "hoodie.write.lock.num_retries": "1",
        "hoodie.write.lock.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.max_wait_time_ms_between_retry": "100",
        "hoodie.write.lock.client.num_retries": "1",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
        **more,
    }


_HAS_IMPLICIT = pytest.mark.releases("1.0.2", "1.2.0")


@pytest.mark.parametrize(
    "is_implicit", [False, pytest.param(True, marks=[_HAS_IMPLICIT, pytest.mark.deep])], ids=["named", "implicit"]
)
def test_one_zookeeper(is_implicit: bool, peer: Peer, table: Tables, zookeeper: str) -> None:
    path = table("plain")
    if is_implicit:
        options = options_of("ZookeeperBasedImplicitBasePathLockProvider", zookeeper)
        provider, place = ZooKeeperProvider(zookeeper, "", ""), implicit_path(str(path))
    else:
        key = path.parent.name
        named = {"hoodie.write.lock.zookeeper.base_path": "/hudi", "hoodie.write.lock.zookeeper.lock_key": key}
        options = options_of("ZookeeperBasedLockProvider", zookeeper, **named)
        provider, place = ZooKeeperProvider(zookeeper, "/hudi", key), f"/hudi/{key}"
    looks = KazooClient(zookeeper)
    looks.start(timeout=60)
    row = peer.rows(path).slice(0, 1)
    # Hudi holds the lock.
    theirs = HudiLock(peer, str(path), options)
    assert theirs.take(5_000)
    assert len(looks.get_children(place)) == 1
    run = ours.run("schedule", path, options=options)
    assert run.code == 4 and f"the lock {place} in ZooKeeper at {zookeeper} is held by another writer (" in run.stderr
    assert layout.pending(path) == [] and len(looks.get_children(place)) == 1
    theirs.give_back()
    theirs.close()
    # We hold it.
    with provider.lock(open_storage(str(path)), LockWait(5_000, 10)) as lock:
        with pytest.raises(PeerError, match=r"(?i)lock"):
            peer.upsert(path, newer(row), **options)
        lock.check()
    # Nobody does.
    ours.execute(path, "--mode", "scheduleAndExecute", "--publish", "first", options=options)
    peer.upsert(path, newer(row), **options)
    assert peer.rows(path).num_rows
    assert looks.get_children(place) == []
    looks.stop()
    looks.close()
