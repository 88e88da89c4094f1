"""A proxy before a server that breaks single requests, as a rule of the test says, and tells what it was asked for."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from hudi_services.request_counts import Asked as Kind

from .proxy import Answer, Headers, Request, forward, serving


@dataclass(frozen=True, slots=True)
class Break:
    """What happens to a request.

    `forwarded`: whether the server gets it. `answer`: what the client gets after `stall` seconds: the server's own
    answer, nothing but the end of the connection, or this status with `body`; or half of the body of the server's
    answer at once, and the end of the connection after `stall` seconds. `slow`: the seconds that the body takes.
    """

    forwarded: bool = True
    answer: Literal["own", "half", "none"] | int = "own"
    stall: float = 0.0
    slow: float = 0.0
    body: bytes = b""
    headers: Headers = ()


LOST = Break(answer="none")
"""The server has done it, and the connection ends without an answer."""
LOST_AS_500 = Break(answer=500)
"""The server has done it, and something on the way answers that it failed."""
CUT = Break(answer="half")
NEVER_SENT = Break(forwarded=False, answer="none")
"""The connection ends before the server gets the request."""
SLOW_DOWN = Break(
    forwarded=False,
    answer=503,
    body=b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
)
TOO_MANY = Break(forwarded=False, answer=429, headers=(("Retry-After", "1"),))


def refused(status: int, body: bytes = b"") -> Break:
    """The server is never asked."""
    return Break(forwarded=False, answer=status, body=body)


def stalled(seconds: float, *, forwarded: bool) -> Break:
    """The client waits: for the server's answer, or for the end of the connection."""
    return Break(forwarded, "own" if forwarded else "none", seconds)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and what became of it. `number`: how many came before it. `status` is the server's, None where it was
    not asked."""

    number: int
    request: Request
    status: int | None = None
    broken: Break | None = None

    @property
    def condition(self) -> str:
        """`create` for a put only where there is nothing, `replace` for one only of what was seen, else ""."""
        generation = self.request.header("x-goog-if-generation-match")
        if self.request.method != "PUT":
            return ""
        if self.request.header("if-none-match") == "*" or generation == "0":
            return "create"
        return "replace" if self.request.header("if-match") or generation else ""

    @property
    def kind(self) -> Kind:
        """What the report calls such a request; of a server that speaks S3."""
        method, query = self.request.method, self.request.query
        if method == "GET":
            return Kind.LIST if "list-type" in query else Kind.GET
        if method == "HEAD":
            return Kind.HEAD
        if method == "DELETE" or "delete" in query:
            return Kind.DELETE
        if self.condition:
            return Kind.CONDITIONAL_PUT
        return Kind.COPY if self.request.header("x-amz-copy-source") else Kind.PUT


Rule = Callable[[Asked], Break | None]
"""Says of a request that has just come what happens to it; None: nothing. Called by one thread at a time."""


@dataclass
class BreakingProxy:
    """Forwards to `server` from `endpoint`; `rule` and `delay`, in seconds for each request, may change at any time."""

    server: str
    endpoint: str = ""
    rule: Rule | None = None
    delay: float = 0.0
    changed: Callable[[Request, Answer], Answer] = lambda _, answer: answer
    """Makes another answer of the server's own one."""
    asked: list[Asked] = field(default_factory=list)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self, rule: Rule | None = None) -> None:
        """Begin anew: nothing was asked, and this is the rule."""
        with self._lock:
            self.rule, self.asked, self._count = rule, [], 0

    @property
    def conditional(self) -> list[Asked]:
        """The conditional puts so far, in the order in which they came."""
        with self._lock:
            return sorted((one for one in self.asked if one.condition), key=lambda one: one.number)

    @property
    def kinds(self) -> dict[str, int]:
        """How many requests of each kind came, as the report of a run tells it."""
        with self._lock:
            return dict(Counter(one.kind.value for one in self.asked))

    def _answer(self, request: Request) -> Answer | None:
        with self._lock:
            asked = Asked(self._count, request)
            self._count += 1
            broken = self.rule(asked) if self.rule is not None else None
            into = self.asked
        time.sleep(self.delay)
        found = None
        if broken is None or broken.forwarded:
            found = self.changed(request, forward(request, self.server))
        with self._lock:
            into.append(replace(asked, status=None if found is None else found.status, broken=broken))
        return found if broken is None else _broken(found, broken)


def _broken(found: Answer | None, how: Break) -> Answer | None:
    if how.answer != "half":
        time.sleep(how.stall)
    if isinstance(how.answer, int):
        return Answer(how.answer, how.headers, how.body)
    if how.answer == "none" or found is None:
        return None
    if how.answer == "half":
        told = tuple(one for one in found.headers if one[0].lower() != "content-length")
        length = ("Content-Length", str(len(found.body)))
        half = found.body[: len(found.body) // 2]
        return replace(found, headers=(*told, length), body=half, keeps_length=True, held=how.stall)
    return replace(found, slow=how.slow)


@contextmanager
def breaking_proxy(server: str) -> Iterator[BreakingProxy]:
    """A proxy before the server at the endpoint `server`, whose URLs may have a path (Azure's account)."""
    proxy = BreakingProxy(server)
    with serving(proxy._answer) as endpoint:
        proxy.endpoint = endpoint + urlsplit(server).path
        yield proxy
