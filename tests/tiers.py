"""Which tests run, as HUDI_TESTS says: the quick ones, the deep ones, all of them, or the quick ones and a share.

quick      the quick tests
deep       the deep tests
all        both in one run, which is cheaper: one JVM for each release of Hudi, and each fixture table is read once
share 2/6  the quick tests and the second sixth of the deep tests
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
if _WANTED not in ("quick", "deep", "all") and _SHARE is None:
    raise SystemExit(f"HUDI_TESTS={_WANTED} is neither quick nor deep nor all nor a share")

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


def name_in_shares(item: pytest.Item) -> str:
    """What decides in which share of the deep tests this one is: its server, which takes minutes to build where it is
    missing, so that all tests of one server are in one share; else its id."""
    server = item.get_closest_marker("server")
    return item.nodeid if server is None else str(server.args[0])


def is_wanted(test: str, *, is_deep: bool) -> bool:
    """Whether the test of this name in the shares (see `name_in_shares`) runs."""
    if _SHARE is None or not is_deep:
        return is_deep == (_WANTED == "deep") or _WANTED == "all"
    number, of = map(int, _SHARE.groups())
    return zlib.crc32(test.encode()) % of == number % of
