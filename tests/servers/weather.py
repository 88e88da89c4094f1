"""Rules of a `BreakingProxy` by which many requests fail, drawn by a seed."""

import random
import time
from collections.abc import Callable, Sequence

from .breaking_proxy import (
    CUT,
    LOST,
    LOST_AS_500,
    NEVER_SENT,
    SLOW_DOWN,
    TOO_MANY,
    Asked,
    Break,
    Rule,
    refused,
    stalled,
)

_FAILURES = (refused(500), refused(503), SLOW_DOWN, TOO_MANY, LOST, LOST_AS_500, NEVER_SENT, CUT)


def failing(seed: int, share: float = 0.05, kinds: Sequence[Break] = _FAILURES) -> Rule:
    """This share of the requests fails, each in one of these ways: before or after it was carried out."""
    drawn = random.Random(seed)

    def rule(asked: Asked) -> Break | None:
        how = drawn.choice(kinds)
        if drawn.random() >= share:
            return None
        # Only what has a body can be cut off.
        return LOST if how is CUT and asked.request.method != "GET" else how

    return rule


def throttling(seed: int, every: float = 4.0, burst: float = 1.5) -> Rule:
    """Of every so many seconds, all requests in a burst are told to come again later."""
    drawn = random.Random(seed)
    first = time.monotonic() - drawn.random() * every

    def rule(asked: Asked) -> Break | None:
        how = drawn.choice((SLOW_DOWN, TOO_MANY))
        return how if (time.monotonic() - first) % every < burst else None

    return rule


def stalling(seed: int, seconds: float, share: float = 0.02) -> Rule:
    """This share of the requests has no answer for so long, whether or not it is carried out."""
    return failing(seed, share, (stalled(seconds, forwarded=True), stalled(seconds, forwarded=False)))


def mixed(seed: int, stall: float) -> Rule:
    """All of that."""
    rules = (failing(seed), throttling(seed + 1, 8.0), stalling(seed + 2, stall, 0.01))

    def rule(asked: Asked) -> Break | None:
        return next((found for one in rules if (found := one(asked)) is not None), None)

    return rule


WEATHERS: dict[str, Callable[[int, float], Rule]] = {
    "5 % fail": lambda seed, _: failing(seed),
    "throttled in bursts": lambda seed, _: throttling(seed),
    "2 % stall": lambda seed, stall: stalling(seed, stall),
    "all of it": mixed,
}
"""By name: the rule for a seed, and for the seconds of a stall."""
