"""The proxy of the tests breaks what it is told to break, and nothing else."""

import http.client
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from ..servers.breaking_proxy import CUT, LOST, LOST_AS_500, Break, BreakingProxy, breaking_proxy, refused, stalled
from ..servers.proxy import Answer, Request, serving

BODY = b"0123456789"


@dataclass
class Behind:
    """A server that answers each request with ten bytes, and the proxy before it."""

    seen: list[Request] = field(default_factory=list)
    proxy: BreakingProxy = field(default_factory=lambda: BreakingProxy(""))

    def answer(self, request: Request) -> Answer:
        self.seen.append(request)
        if request.method == "HEAD":
            return Answer(200, (("Content-Length", "10"), ("ETag", '"1"')), keeps_length=True)
        return Answer(200 if request.method == "GET" else 201, (("ETag", '"1"'),), BODY)


@pytest.fixture
def behind() -> Iterator[Behind]:
    found = Behind()
    with serving(found.answer) as endpoint, breaking_proxy(f"{endpoint}/account") as proxy:
        found.proxy = proxy
        yield found


@pytest.fixture
def client(behind: Behind) -> Iterator[http.client.HTTPConnection]:
    port = int(behind.proxy.endpoint.rpartition(":")[2].partition("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    yield connection
    connection.close()


def ask(client: http.client.HTTPConnection, method: str, target: str, **headers: str) -> tuple[int, bytes]:
    body = b"data" if method == "PUT" else None
    client.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = client.getresponse()
    return answer.status, answer.read()


def test_requests_pass_as_they_are(behind: Behind, client: http.client.HTTPConnection) -> None:
    """Over one connection, with the Host that a client signs."""
    assert behind.proxy.endpoint.endswith("/account")
    assert ask(client, "GET", "/lake/a%20%C3%A9%2Fb?x=1&y=%2F") == (200, BODY)
    mine = client.sock
    client.request("HEAD", "/lake/a")
    answer = client.getresponse()
    assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "10", b"")
    assert ask(client, "PUT", "/lake/a", if_none_match="*") == (201, BODY) and client.sock is mine
    read, head, put = behind.seen
    assert (read.target, read.path, read.query) == (
        "/lake/a%20%C3%A9%2Fb?x=1&y=%2F",
        "lake/a é/b",
        {"x": "1", "y": "/"},
    )
    assert read.header("host") == behind.proxy.endpoint.split("/")[2]
    assert (head.method, put.method, put.body) == ("HEAD", "PUT", b"data")
    assert [(one.number, one.status, one.condition) for one in behind.proxy.asked] == [
        (0, 200, ""),
        (1, 200, ""),
        (2, 201, "create"),
    ]


@pytest.mark.parametrize(
    ("headers", "condition"),
    [
        ({}, ""),
        ({"if_none_match": "*"}, "create"),
        ({"if_match": '"1"'}, "replace"),
        ({"x_goog_if_generation_match": "0"}, "create"),
        ({"x_goog_if_generation_match": "17"}, "replace"),
    ],
)
def test_the_conditions_of_puts(
    headers: dict[str, str], condition: str, behind: Behind, client: http.client.HTTPConnection
) -> None:
    ask(client, "PUT", "/a", **headers)
    ask(client, "GET", "/a", **headers)
    assert [one.condition for one in behind.proxy.asked] == [condition, ""]
    assert len(behind.proxy.conditional) == bool(condition)


@pytest.mark.parametrize(
    ("how", "is_seen", "status"),
    [
        (refused(503), False, 503),
        (refused(409), False, 409),
        (LOST_AS_500, True, 500),
        (LOST, True, None),
        (CUT, True, None),
        (stalled(0.3, forwarded=True), True, 201),
        (stalled(0.3, forwarded=False), False, None),
    ],
)
def test_one_request_is_broken(
    how: Break, is_seen: bool, status: int | None, behind: Behind, client: http.client.HTTPConnection
) -> None:
    """The second one: those before and after it pass."""
    behind.proxy.reset(lambda asked: how if asked.number == 1 else None)
    assert ask(client, "PUT", "/first") == (201, BODY)
    begin = time.monotonic()
    if status is None:
        with pytest.raises((http.client.RemoteDisconnected, http.client.IncompleteRead)) as told:
            ask(client, "PUT", "/second")
        assert not isinstance(told.value, http.client.IncompleteRead) or told.value.partial == BODY[:5]
        client.close()
    else:
        assert ask(client, "PUT", "/second")[0] == status
    assert time.monotonic() - begin >= how.stall
    assert ask(client, "PUT", "/third") == (201, BODY)
    assert [one.path for one in behind.seen] == ["first", *(["second"] if is_seen else []), "third"]
    assert [one.broken for one in behind.proxy.asked] == [None, how, None]
    assert [one.status for one in behind.proxy.asked] == [201, 201 if is_seen else None, 201]


def test_each_request_takes_longer(behind: Behind, client: http.client.HTTPConnection) -> None:
    behind.proxy.delay = 0.05
    begin = time.monotonic()
    for _ in range(3):
        ask(client, "GET", "/a")
    assert time.monotonic() - begin >= 0.15
