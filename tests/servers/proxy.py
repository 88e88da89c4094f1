"""An HTTP server that answers as a function says, and requests that go on to another one: what proxies are made of.

Bodies are whole in memory, and clients keep their connections. Each request to the server behind has a connection of
its own, so that none is lost with a connection that the server had closed meanwhile.
"""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

_TIMEOUT = 120
"""Seconds that a server behind may take for an answer."""
_PIECES = 10
"""Of a body that comes slowly."""
_OF_ONE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding"})
"""Headers that say nothing about the message."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came. `target` is the path with the query, both as the client encoded them."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        """The decoded path, without the slash it begins with."""
        return unquote(urlsplit(self.target).path)[1:]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def header(self, name: str) -> str | None:
        return next((value for given, value in self.headers if given.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back. `keeps_length`: the headers have the length of a body that is not sent (HEAD, a cut).

    `slow`: the seconds that the body takes, which comes in pieces. `held`: the seconds after it in which nothing comes.
    """

    status: int
    headers: Headers = ()
    body: bytes = b""
    keeps_length: bool = False
    slow: float = 0.0
    held: float = 0.0


def forward(request: Request, endpoint: str) -> Answer:
    """The answer of the server at `endpoint`; the request is the client's own, with its Host, which S3 signs."""
    place = urlsplit(endpoint)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_TIMEOUT)
    try:
        connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers:
            if name.lower() not in _OF_ONE_CONNECTION:
                connection.putheader(name, value)
        connection.endheaders(request.body or None)
        answer = connection.getresponse()
        body = answer.read()
        kept = tuple((name, value) for name, value in answer.getheaders() if name.lower() not in _OF_ONE_CONNECTION)
        return Answer(answer.status, kept, body, keeps_length=request.method == "HEAD")
    finally:
        connection.close()


@contextmanager
def serving(answered: Callable[[Request], Answer | None]) -> Iterator[str]:
    """The endpoint of a server that answers with `answered`, by a thread for each connection; it closes the connection
    without a word where that gives None, or has sent less than the length that it told."""

    class Handler(_Handler):
        answer = staticmethod(answered)

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Clients keep connections open, and their threads with them.
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that have gone are none of the test's concern; what a rule raises shows as a lost connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Head and body in one piece.
    wbufsize = -1
    answer: Callable[[Request], Answer | None]

    def parse_request(self) -> bool:
        """As inherited, and the method does not matter."""
        is_right = super().parse_request()
        if is_right:
            setattr(self, f"do_{self.command}", self._do)
        return is_right

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.answer(Request(self.command, self.path, tuple(self.headers.items()), body))
        if answer is None:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if answer.keeps_length or name.lower() != "content-length":
                self.send_header(name, value)
        if not answer.keeps_length and answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        elif self.command != "HEAD":
            self.close_connection = answer.keeps_length
        self.end_headers()
        pieces = _PIECES if answer.slow else 1
        size = -(-len(answer.body) // pieces)
        for number in range(pieces):
            self.wfile.write(answer.body[size * number : size * (number + 1)])
            self.wfile.flush()
            time.sleep(answer.slow / pieces)
        time.sleep(answer.held)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what came is told by those who record it."""
