"""Which tests run, as HUDI_TESTS says. Each test is quick, thorough (its marker says so) or deep.

quick      the quick tests: `make test`, 12 minutes
thorough   these and the thorough ones
share 2/6  the quick tests, every other thorough one, and the second sixth of the deep tests: .ci/run
deep       the thorough and the deep tests, which are not in the quick run
all        all in one run, which is cheaper: one JVM for each release of Hudi, and each fixture table is read once
"""

import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable

import pytest

RELEASES = ("0.15.0", "1.0.2", "1.2.0")
_WANTED = os.environ.get("HUDI_TESTS", "quick")
_SHARE = re.fullmatch(r"share ([0-9]+)/([0-9]+)", _WANTED)
if _WANTED not in ("quick", "thorough", "deep", "all") and _SHARE is None:
    raise SystemExit(f"HUDI_TESTS={_WANTED} is neither quick nor thorough nor deep nor all nor a share")

_HALVES = 2
"""A share has one half of the thorough tests, that of the next number has the other."""
DEEP = _WANTED in ("deep", "all")
"""Whether tests with very many cases try all of them."""


def one_release_of_each(items: Iterable[pytest.Item], *parameters: str) -> set[pytest.Item]:
    """Of a case on several releases of Hudi, or with several values of `parameters`, one, drawn by its name: the same
    each time."""
    cases = defaultdict(list)
    for item in items:
        callspec = getattr(item, "callspec", None)
        named = callspec.params.items() if callspec is not None else ()
        given = [value for name, value in named if name in parameters or value in RELEASES]
        test, _, case = item.nodeid.partition("[")
        for release in given:
            # As a whole part of the name, which is the text of the parameter.
            case = re.sub(rf"(?<![^-]){re.escape(str(release))}(?![^-\]])", "*", case, count=1)
        cases[test, case].append(item)
    return {min(same, key=lambda one: zlib.crc32(one.nodeid.encode())) for same in cases.values()}


def is_wanted(item: pytest.Item, *, is_deep: bool) -> bool:
    """Whether the test runs."""
    if not is_deep and item.get_closest_marker("thorough") is None:
        return _WANTED != "deep"
    if _SHARE is None:
        return DEEP or (_WANTED == "thorough" and not is_deep)
    number, of = map(int, _SHARE.groups())
    of = of if is_deep else _HALVES
    return zlib.crc32(_name_in_shares(item).encode()) % of == number % of


def _name_in_shares(item: pytest.Item) -> str:
    """What decides in which share of the deep tests this one is: its server, which takes minutes to build where it is
    missing, so that all tests of one server are in one share; else its id."""
    server = item.get_closest_marker("server")
    return item.nodeid if server is None else str(server.args[0])
