"""Requests of a store that break on the way, one at a time: what a storage does with them."""

import uuid
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from hudi_services.errors import AlreadyExists
from hudi_services.limits import MIB
from hudi_services.storage import Storage

from ..servers.breaking_proxy import CUT, LOST, LOST_AS_500, Asked, Break, BreakingProxy, breaking_proxy, refused
from ..servers.started import ON_ATOMIC, Servers, deep_on

pytestmark = pytest.mark.threads

NEVER_DONE = (refused(500), refused(503))
lost = pytest.mark.parametrize("how", [LOST, LOST_AS_500], ids=["dropped", "500"])


@pytest.fixture(params=["moto", *ON_ATOMIC])
def server(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def proxy(server: str, servers: Servers) -> Iterator[BreakingProxy]:
    with breaking_proxy(servers.bucket(server).endpoint) as found:
        yield found


@pytest.fixture
def table(server: str) -> str:
    return uuid.uuid4().hex


@pytest.fixture
def store(server: str, table: str, servers: Servers, proxy: BreakingProxy) -> Storage:
    """The storage whose requests break."""
    return servers.bucket(server).behind(proxy.endpoint).open(table)


@pytest.fixture
def other(server: str, table: str, servers: Servers) -> Storage:
    """The same storage, as other processes reach it."""
    return servers.bucket(server).open(table)


def first(
    how: Break, is_meant: Callable[[Asked], object] = lambda asked: asked.condition
) -> Callable[..., Break | None]:
    """The rule that breaks the first request that is meant: a conditional put."""
    meant = count()
    return lambda asked: how if is_meant(asked) and next(meant) == 0 else None


@lost
@pytest.mark.parametrize("data", [b"mine", b""])
def test_a_file_whose_answer_is_lost_is_created(
    data: bytes, how: Break, store: Storage, other: Storage, proxy: BreakingProxy
) -> None:
    proxy.reset(first(how))
    store.create("a", data)
    assert other.read("a") == data and any(asked.broken for asked in proxy.asked)
    with pytest.raises(AlreadyExists):
        store.create("a", data)


@lost
@pytest.mark.parametrize("data", [b"mine", b"theirs"])
def test_the_file_of_another_is_not_ours_when_an_answer_is_lost(
    data: bytes, how: Break, store: Storage, other: Storage, proxy: BreakingProxy
) -> None:
    """Not even one with the same bytes: it was there before."""
    other.create("a", b"theirs")
    proxy.reset(first(how))
    with pytest.raises(AlreadyExists):
        store.create("a", data)
    assert other.read("a") == b"theirs"


@lost
def test_a_file_whose_answer_is_lost_is_replaced(
    how: Break, store: Storage, other: Storage, proxy: BreakingProxy
) -> None:
    store.put("a", b"old")
    seen = store.head("a")
    assert seen is not None
    proxy.reset(first(how))
    assert store.replace("a", b"mine", seen)
    assert other.read("a") == b"mine" and any(asked.broken for asked in proxy.asked)
    assert not store.replace("a", b"again", seen) and other.read("a") == b"mine"


@lost
def test_what_another_has_replaced_stays_when_an_answer_is_lost(
    how: Break, store: Storage, other: Storage, proxy: BreakingProxy
) -> None:
    store.put("a", b"old")
    seen = store.head("a")
    assert seen is not None
    assert other.replace("a", b"theirs", seen)
    proxy.reset(first(how))
    assert not store.replace("a", b"mine", seen)
    assert other.read("a") == b"theirs"


@pytest.mark.parametrize("how", NEVER_DONE, ids=["500", "503"])
def test_what_the_store_never_did_is_asked_for_again(
    how: Break, store: Storage, other: Storage, proxy: BreakingProxy
) -> None:
    proxy.reset(lambda asked: how if asked.number % 2 == 0 else None)
    store.create("a", b"1")
    seen = store.head("a")
    assert seen is not None and store.replace("a", b"2", seen) and store.read("a") == b"2"
    store.put("p/b", b"3")
    assert [file.path for file in store.list_tree("")] == ["a", "p/b"] and store.list_dir("")[1] == ["p"]
    store.delete("p/b")
    assert other.head("p/b") is None and other.read("a") == b"2"


@pytest.mark.parametrize("server", ["moto", pytest.param("versitygw", marks=deep_on("versitygw"))])
def test_another_request_for_the_key_was_in_progress(store: Storage, other: Storage, proxy: BreakingProxy) -> None:
    """S3's own answer, for which nothing was written: ask again."""
    in_progress = refused(409, b"<Error><Code>ConditionalRequestConflict</Code><Message>Try again.</Message></Error>")
    proxy.reset(first(in_progress))
    store.create("a", b"1")
    seen = store.head("a")
    proxy.reset(first(in_progress))
    assert seen is not None and store.replace("a", b"2", seen) and other.read("a") == b"2"


def test_a_body_that_is_cut_off_is_read_to_its_end(store: Storage, other: Storage, proxy: BreakingProxy) -> None:
    data = bytes(range(256)) * (MIB // 64)
    other.put("a", data)
    proxy.reset(first(CUT, lambda asked: asked.request.method == "GET"))
    assert store.read("a") == data and any(asked.broken for asked in proxy.asked)
