"""Connections that stall: a request is given up when nothing comes for a while, and made again."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from hudi_services.concurrency import at_once
from hudi_services.errors import StorageError
from hudi_services.limits import MIB
from hudi_services.request_counts import Asked as Kind
from hudi_services.request_counts import RequestsOfRun
from hudi_services.storage import Storage
from hudi_services.stores import object_client, open_storage
from hudi_services.stores.options import StorageOptions

from ..servers.breaking_proxy import Asked, Break, BreakingProxy, Rule, breaking_proxy, stalled
from ..servers.started import ON_ATOMIC, Servers

pytestmark = pytest.mark.threads

STALL = 0.5
LONG = 30.0
"""Seconds after which the end of a stall comes, for which nobody waits."""
DATA = bytes(range(256)) * (MIB // 256)
BIG = DATA * 9
"""Uploaded in two parts."""
BIG_BYTES = 64 * MIB
"""More than is on its way at the same time."""


@pytest.fixture(params=["moto", *ON_ATOMIC])
def server(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def proxy(server: str, servers: Servers) -> Iterator[BreakingProxy]:
    with breaking_proxy(servers.bucket(server).endpoint) as found:
        yield found


@pytest.fixture
def store(server: str, servers: Servers, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A storage with four files, for which half a second without a byte is a stall."""
    monkeypatch.setattr(object_client, "STALL_SECONDS", STALL)
    monkeypatch.setattr(object_client, "_SLOWEST", BIG_BYTES)
    found = servers.bucket(server).behind(proxy.endpoint).open(uuid.uuid4().hex)
    at_once(lambda name: found.put(name, DATA), ["a", "b", "c/d", "c/e"])
    return found


def each_first(how: Break) -> Rule:
    """The rule by which the first request for each file is broken, and the first for each folder and of each kind."""
    tries: Counter[tuple[str, ...]] = Counter()

    def rule(asked: Asked) -> Break | None:
        one = (asked.request.method, asked.request.path, asked.request.query.get("prefix", ""))
        tries[one] += 1
        return how if tries[one] == 1 else None

    return rule


def seconds(run: Callable[[], object]) -> float:
    start = time.monotonic()
    run()
    return time.monotonic() - start


@pytest.mark.parametrize("forwarded", [True, False], ids=["done", "not done"])
def test_every_request_stalls_once(forwarded: bool, server: str, store: Storage, proxy: BreakingProxy) -> None:
    seen = store.head("b")
    assert seen is not None
    # The client does not begin an upload in parts again on Google Cloud Storage (docs/stores/gcs.md).
    rule = each_first(stalled(LONG, forwarded=forwarded))
    proxy.reset(lambda asked: None if server == "gcs" and asked.request.method == "POST" else rule(asked))
    asked = RequestsOfRun()

    def written() -> None:
        output = store.open_output("o")
        output.write(BIG)
        output.close()

    def read(name: str) -> None:
        assert store.read(name) == DATA and store.read_range(name, 5, 5) == DATA[5:10]

    steps: list[Callable[[], object]] = [
        lambda: store.create("n", b"new"),
        lambda: store.replace("b", b"newer", seen),
        lambda: store.put("p", DATA),
        written,
        lambda: read("a"),
        lambda: store.head("a"),
        lambda: store.list_tree("c"),
        lambda: store.delete("c/d"),
        lambda: store.move("c/e", "q"),
    ]
    # A file in parts takes three requests one after the other.
    assert seconds(lambda: at_once(lambda step: step(), steps)) < LONG
    told = asked.so_far()["driver"]
    proxy.reset()
    assert [file.path for file in store.list_tree("")] == ["a", "b", "n", "o", "p", "q"]
    assert (
        store.read("n") == b"new" and store.read("b") == b"newer" and store.read("q") == DATA and store.read("o") == BIG
    )
    assert told[Kind.RETRY.value] >= 6


def test_a_body_that_stalls_is_read_again(store: Storage, proxy: BreakingProxy) -> None:
    proxy.reset(each_first(Break(answer="half", stall=LONG)))
    assert seconds(lambda: store.read("a")) < LONG
    assert store.read_range("b", 10, MIB // 2) == DATA[10 : 10 + MIB // 2]
    assert any(asked.broken for asked in proxy.asked)


def test_a_slow_body_is_no_stall(store: Storage, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes in all. On a busy machine the server takes its time for the first byte, too."""
    monkeypatch.setattr(object_client, "STALL_SECONDS", 2 * STALL)
    proxy.reset(lambda _: Break(slow=3.0 * STALL))
    assert store.read("a") == DATA and proxy.kinds == {"get": 1}


def test_a_store_that_never_answers_is_given_up(
    store: Storage, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_client, "_SECONDS", 3 * STALL)
    proxy.reset(lambda _: stalled(LONG, forwarded=False))
    with pytest.raises(StorageError, match="/a: "):
        store.read("a")
    assert 2 <= len(proxy.asked) <= 4


@pytest.mark.parametrize("server", ["moto"])
def test_variables_of_the_client_stay_in_force(
    server: str, servers: Servers, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore forgets them when it is given any option of the client."""
    bucket = servers.bucket(server)
    options = bucket.options_at(proxy.endpoint)
    del options["allow_http"]
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_READ_TIMEOUT", "500 ms")
    store = open_storage(f"{bucket.url}/{uuid.uuid4().hex}", StorageOptions(options))
    proxy.reset(each_first(stalled(LONG, forwarded=True)))
    assert seconds(lambda: store.head("a")) < LONG
