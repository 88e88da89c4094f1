"""A proxy between a client of Hadoop and its NameNode, which loses answers."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 1 << 16


@dataclass
class LossyRpc:
    """Loses the answers to the next requests of these methods, in order: the NameNode does what was asked, and then the
    connection breaks. `lost` is how many did. The next request of the method `to_stall` never comes there, and nothing
    comes back on its connection."""

    url: str
    to_lose: list[str] = field(default_factory=list)
    lost: int = 0
    to_stall: str = ""

    def lose(self, *methods: str) -> None:
        self.to_lose[:] = methods
        self.lost = 0

    def is_to_lose(self, request: bytes) -> bool:
        if self.to_lose and self.to_lose[0].encode() in request:
            del self.to_lose[0]
            self.lost += 1
            return True
        return False

    def is_to_stall(self, request: bytes) -> bool:
        is_meant = bool(self.to_stall) and self.to_stall.encode() in request
        self.to_stall = "" if is_meant else self.to_stall
        return is_meant


@contextmanager
def lossy_rpc(url: str) -> Iterator[LossyRpc]:
    """The proxy of the NameNode at `url` (hdfs://host:port)."""
    host, _, port = url.removeprefix("hdfs://").partition(":")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxy = LossyRpc(f"hdfs://127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                server = socket.create_connection((host, int(port)))
                threading.Thread(target=_relay, args=(proxy, client, server), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield proxy


def _relay(proxy: LossyRpc, client: socket.socket, server: socket.socket) -> None:
    with client, server, selectors.DefaultSelector() as ready, suppress(OSError):
        ready.register(client, selectors.EVENT_READ)
        ready.register(server, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                data = key.fileobj.recv(_CHUNK)  # type: ignore[union-attr]
                if not data:
                    return
                if key.fileobj is server:
                    client.sendall(data)
                    continue
                if proxy.is_to_stall(data):
                    # Until the client goes.
                    while client.recv(_CHUNK):
                        pass
                    return
                is_lost = proxy.is_to_lose(data)
                server.sendall(data)
                if is_lost:
                    server.recv(_CHUNK)
                    return
