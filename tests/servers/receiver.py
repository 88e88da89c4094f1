"""An HTTP server that keeps what it is sent, and answers as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Sent:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answers` is closed for a server that takes requests and never answers."""

    port: int = 0
    status: int = 200
    sent: list[Sent] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def receiver() -> Iterator[Receiver]:
    """The server, until the context ends."""
    kept = Receiver()
    kept.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept.sent.append(Sent(self.command, self.path, dict(self.headers), body))
            kept.answers.wait()
            self.send_response(kept.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PUT = do_POST = take

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        kept.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield kept
        finally:
            kept.answers.set()
            server.shutdown()
            thread.join()
