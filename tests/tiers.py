"""Which tests run: the quick ones, the deep ones, or all of them, as HUDI_TESTS says (quick, deep or all).

All in one run are cheaper than the quick run and the deep run: one JVM for each release of Hudi, and each fixture table
is read once.
"""

import os

_WANTED = os.environ.get("HUDI_TESTS", "quick")
if _WANTED not in ("quick", "deep", "all"):
    raise SystemExit(f"HUDI_TESTS={_WANTED} is neither quick nor deep nor all")

DEEP = _WANTED != "quick"
"""Whether tests with very many cases try all of them."""


def is_wanted(*, is_deep: bool) -> bool:
    """Whether a test runs that the deep run has, or that the quick run has."""
    return _WANTED in ("all", "deep" if is_deep else "quick")
