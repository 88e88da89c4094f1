"""Listings that are behind, which no store of today gives: a run may give up with a sentence, and loses no row."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hudi_services.commit import lease
from hudi_services.commit.conflicts import WriterAtWork
from hudi_services.errors import HudiServicesError

from ..servers.stale_listings import Entry, StaleListings
from ..servers.started import Servers, deep_on
from .broken_runs import ALL_COMMANDS, Ended, Files, Place, Placed, made_files, places, rows_in
from .repairs import DEAD_AT_ONCE

pytestmark = pytest.mark.threads

LAG = 5.0
"""Seconds; longer than a run."""
GIVEN_UP = (1, 4, 5)
"""Exit codes of runs that changed nothing: the store, another writer, what was written is not there."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return made_files(tmp_path_factory.mktemp("stale"))


@pytest.fixture
def placed(files: Files, servers: Servers) -> Iterator[Placed]:
    with places(files, servers) as found:
        yield found


def check(place: Place, expected: Ended, before: pa.Table, share: float, seed: int) -> None:
    """A run on a store of which this share of the listings is behind, and then one on a store that is right."""
    place.begin_anew()
    stale = StaleListings(LAG, share, seed)
    prefix = place.storage.root.split("/", 3)[3]
    stale.begin(
        (f"{prefix}/{one.path}", Entry(one.size, one.tag, one.mtime_millis / 1000))
        for one in place.storage.list_tree("")
    )
    place.proxy.reset()
    place.proxy.changed = stale
    try:
        done, code = place.carry_out().state.value, 0
    except HudiServicesError as error:
        done, code = error.message, error.exit_code
        assert code in (*GIVEN_UP, 7) and done, repr(error)
    finally:
        place.proxy.changed = lambda _, answer: answer
        lease._given_back.clear()
    now = rows_in(place.storage)
    assert now.equals(expected.rows) or (code in GIVEN_UP and now.equals(before)), done
    direct = place.direct()
    assert direct.validate(strict=True).ok
    if code in GIVEN_UP:
        try:
            place.carry_out(direct)
        except WriterAtWork:
            # What the run has left goes away as that of a killed one.
            direct.recover(apply=True, options=DEAD_AT_ONCE)
            place.carry_out(direct)
        assert rows_in(place.storage).equals(expected.rows) and direct.validate(strict=True).ok


@pytest.mark.parametrize("command", ALL_COMMANDS)
@pytest.mark.parametrize("server", [pytest.param("versitygw", marks=deep_on("versitygw"))])
def test_no_row_is_lost(server: str, command: str, placed: Placed) -> None:
    place, failed = placed(server, command), []
    before = rows_in(place.storage)
    expected = place.run()
    for share, seed in ((1.0, 0), (0.5, 0), (0.5, 1), (0.1, 0)):
        try:
            check(place, expected, before, share, seed)
        except (HudiServicesError, AssertionError) as error:
            failed.append(f"{share} {seed}: {error!r}"[:800])
    assert not failed, "\n".join(failed)


def test_an_index_has_all_keys(placed: Placed) -> None:
    """What tasks have written is known by their results."""
    place = placed("moto", "index-bootstrap")
    check(place, place.run(), rows_in(place.storage), 0.5, 0)
