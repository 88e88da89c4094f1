"""A conditional put whose answer is lost: the store has done it, and the client is told that it failed, or nothing.

obstore tries again by itself, and is told that the file exists already, or has changed: by its own first try. Each
command is run once to see which conditional puts it makes, and then once for each of them, on the same table, with the
answer to that one lost: it ends as if nothing had happened.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from hudi_services.errors import HudiServicesError

from ..servers.breaking_proxy import LOST, LOST_AS_500, Asked, Break, Rule
from ..servers.started import ON_ATOMIC, Servers, deep_on
from .broken_runs import COMMANDS, LEASES, Files, Place, Placed, made_files, places, same

pytestmark = pytest.mark.threads


def losing(number: int, how: Break) -> Rule:
    """The rule by which the conditional put of this number, from 0 on, has no answer."""
    puts = itertools.count()
    return lambda asked: how if asked.condition and next(puts) == number else None


def losing_once(how: Break) -> Rule:
    """The rule by which the first conditional put of each file has no answer."""
    tries: Counter[str] = Counter()

    def rule(asked: Asked) -> Break | None:
        if not asked.condition:
            return None
        tries[asked.request.path] += 1
        return how if tries[asked.request.path] == 1 else None

    return rule


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return made_files(tmp_path_factory.mktemp("lost"))


@pytest.fixture
def placed(files: Files, servers: Servers) -> Iterator[Placed]:
    """Places a table on a server, for a command."""
    with places(files, servers) as found:
        yield found


def check(place: Place, hows: Sequence[Break], number: int = 0, of: int = 1) -> None:
    """Lose the answer of each conditional put in each of these ways, or in every `of`-th case from `number` on."""
    expected = place.run()
    puts = place.proxy.conditional
    assert puts and expected.exit_code == 0
    failed = []
    cases = [*itertools.product(range(len(puts)), hows)][number::of]
    for at, how in cases:
        try:
            same(expected, place, losing(at, how))
        except (HudiServicesError, AssertionError) as error:
            failed.append(f"{puts[at].condition} {puts[at].request.path}, {how.answer}: {error!r}"[:600])
    assert not failed, "\n".join([f"{len(failed)} of {len(cases)}", *failed])


on_servers = pytest.mark.parametrize("server", ON_ATOMIC)


@on_servers
@pytest.mark.parametrize("command", COMMANDS)
def test_every_lost_answer(command: str, server: str, placed: Placed) -> None:
    check(placed(server, command), (LOST, LOST_AS_500))


@on_servers
@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_answer_of_every_file_is_lost(command: str, server: str, placed: Placed) -> None:
    place = placed(server, command)
    same(place.run(), place, losing_once(LOST_AS_500))


@pytest.mark.parametrize("server", [pytest.param("versitygw", marks=deep_on("versitygw"))])
def test_no_answer_about_a_lease_ever_comes(server: str, placed: Placed) -> None:
    """Each is waited for, and no other lease is taken meanwhile."""
    place = placed(server, "compact")
    same(place.run(), place, lambda asked: LOST_AS_500 if asked.condition and LEASES in asked.request.path else None)


@pytest.mark.thorough
@pytest.mark.spread(6)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_few_lost_answers(command: str, placed: Placed) -> None:
    check(placed("moto", command), (LOST, LOST_AS_500), [*COMMANDS].index(command), 40)
