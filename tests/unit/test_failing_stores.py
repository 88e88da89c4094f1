"""Runs on a store that fails, throttles and stalls: each ends as undisturbed, with a bounded number of requests."""

import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_services.stores import object_client

from ..servers.started import Servers, deep_on
from ..servers.toxiproxy import toxiproxy
from ..servers.weather import WEATHERS
from .broken_runs import ALL_COMMANDS, Files, Place, Placed, made_files, places

pytestmark = pytest.mark.threads

STALL = 0.5
LONG = 20.0
"""Seconds for which a stall lasts, longer than anybody waits."""
_FOR_A_FAILURE = 3
"""Requests that one which failed may cost: it is made again, or is read back, or what it belongs to begins anew."""
_BY_TIME = 12
"""Requests of a run that takes longer: looks at leases that were looked at too long ago."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return made_files(tmp_path_factory.mktemp("failing"))


@pytest.fixture
def placed(files: Files, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Placed]:
    """Places a table on a server, for a command; half a second without a byte is a stall."""
    monkeypatch.setattr(object_client, "STALL_SECONDS", STALL)
    monkeypatch.setattr(object_client, "_SLOWEST", 1 << 30)
    with places(files, servers) as found:
        yield found


def check(place: Place, weather: str, seed: int) -> None:
    """The run ends as undisturbed, and makes few requests more than that one and its failures."""
    expected = place.run()
    undisturbed = len(place.proxy.asked)
    found = place.run(WEATHERS[weather](seed, LONG))
    assert (found.state, found.exit_code, found.instants) == (expected.state, expected.exit_code, expected.instants)
    assert found.leases == expected.leases and found.rows.equals(expected.rows)
    failures = sum(one.broken is not None for one in place.proxy.asked)
    asked = len(place.proxy.asked)
    assert asked <= undisturbed + _FOR_A_FAILURE * failures + _BY_TIME, f"{asked}, {undisturbed} undisturbed"


@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("command", ALL_COMMANDS)
@pytest.mark.parametrize("server", [pytest.param("versitygw", marks=deep_on("versitygw"))])
def test_runs_end_as_undisturbed(server: str, command: str, weather: str, placed: Placed) -> None:
    check(placed(server, command), weather, zlib.crc32(command.encode()))


TOXICS: dict[str, tuple[float, dict[str, int]]] = {
    "latency": (1.0, {"latency": 30, "jitter": 10}),
    "reset_peer": (0.05, {"timeout": 0}),
    "timeout": (0.02, {"timeout": 0}),
    "limit_data": (0.05, {"bytes": 1_500}),
}
"""By type: the share of connections that have it, and its attributes. A timeout of 0 is one without an end."""


@pytest.mark.parametrize("command", ALL_COMMANDS)
@pytest.mark.parametrize("server", [pytest.param("versitygw", marks=deep_on("versitygw"))])
def test_connections_break(server: str, command: str, placed: Placed, tmp_path: Path) -> None:
    """Each request has a connection of its own, which is slow, reset, without an answer, or cut off."""
    place = placed(server, command)
    expected = place.run()
    undisturbed = len(place.proxy.asked)
    with toxiproxy(place.proxy.server, tmp_path) as toxic:
        place.proxy.server = toxic.endpoint
        for kind, (share, attributes) in TOXICS.items():
            toxic.add(kind, share, **attributes)
            found = place.run()
            toxic.remove(kind)
            assert (found.state, found.exit_code, found.instants) == (
                expected.state,
                expected.exit_code,
                expected.instants,
            ), kind
            assert found.rows.equals(expected.rows), kind
            assert len(place.proxy.asked) <= undisturbed + _FOR_A_FAILURE * undisturbed // 10 + _BY_TIME, kind


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["write", "execute"])
def test_some_runs_end_as_undisturbed(command: str, placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_client, "_FIRST_PAUSE", 0.01)
    check(placed("moto", command), "5 % fail", 7)


def test_pauses_grow_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[list[float]] = [[], []]
    for pauses in waited:
        monkeypatch.setattr(time, "sleep", pauses.append)
        assert sum(1 for _ in object_client.pauses()) == 11
    for one, other in zip(*waited, strict=True):
        assert one != other
    longest = [min(8.0, 0.1 * 2**number) for number in range(11)]
    assert all(most / 2 <= one <= most for one, most in zip(waited[0], longest, strict=True))
