"""Axes that people read: bytes, rows and seconds in their units, at round places. Parts of Vega-Lite specifications."""

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

from ..clock import duration
from ..units import size_text

Spec: TypeAlias = dict[str, Any]

_MOST_TICKS = 6
_SECONDS = (
    *(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 900, 3600, 10_800, 43_200, 86_400, 259_200),
    *(864_000, 2_592_000, 8_640_000, 31_536_000),
)
_TIMES = {
    "year": "%Y",
    "quarter": "%b %Y",
    "month": "%b %Y",
    "week": "%b %d",
    "date": "%b %d",
    "day": "%b %d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
    "milliseconds": "%S.%L s",
}
"""How times are written, by the smallest part that differs from 0; in the language of the page."""


class Unit(Enum):
    """What is measured, by the expression of Vega for the label of a tick (all texts of ours)."""

    BYTES = (
        "datum.value < 1024 ? format(datum.value, '.3~r') + ' B' : "
        "datum.value < 1048576 ? format(datum.value / 1024, '.3~r') + ' KiB' : "
        "datum.value < 1073741824 ? format(datum.value / 1048576, '.3~r') + ' MiB' : "
        "datum.value < 1099511627776 ? format(datum.value / 1073741824, '.3~r') + ' GiB' : "
        "format(datum.value / 1099511627776, '.3~r') + ' TiB'"
    )
    ROWS = "format(datum.value, '.3~s')"
    SECONDS = (
        "datum.value < 1 ? format(datum.value * 1000, '.3~r') + ' ms' : "
        "datum.value < 60 ? format(datum.value, '.3~r') + ' s' : "
        "datum.value < 3600 ? format(datum.value / 60, '.3~r') + ' min' : "
        "datum.value < 86400 ? format(datum.value / 3600, '.3~r') + ' h' : "
        "format(datum.value / 86400, '.3~r') + ' days'"
    )

    def text(self, value: float) -> str:
        """A quantity in words."""
        if self is Unit.BYTES:
            return size_text(round(value))
        if self is Unit.ROWS:
            return f"{round(value):,} {'row' if round(value) == 1 else 'rows'}"
        return f"{value * 1000:.0f} ms" if value < 1 else duration(value * 1000)


def log_axis(values: Sequence[float], unit: Unit, title: str) -> Spec:
    """The scale and the axis of positive values that differ by orders of magnitude."""
    low, high = min(values), max(values)
    if high < 4 * low:
        # Values that are nearly the same, not a picture of their small differences.
        low, high = low / 2, high * 2
    base = 2 if unit is Unit.BYTES else 10
    ticks = [one for one in _SECONDS if low <= one <= high] if unit is Unit.SECONDS else _powers(low, high, base)
    if len(ticks) < 3 and base == 10:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [first * 10.0**power for power in decades for first in (1, 2, 5) if low <= first * 10.0**power <= high]
    return {
        "type": "quantitative",
        "scale": {"type": "log", "base": base, "domain": [low, high], "nice": False},
        "axis": _axis(unit, title, ticks[:: max(1, math.ceil(len(ticks) / _MOST_TICKS))]),
    }


def linear_axis(most: float, unit: Unit, title: str) -> Spec:
    """The scale and the axis of values from 0 on."""
    most = max(most, 1)
    if unit is Unit.BYTES:
        step = 2 ** max(math.ceil(math.log2(most / 4)), 0)
    else:
        decade = 10 ** max(math.floor(math.log10(most / 4)), 0)
        step = next(first * decade for first in (1, 2, 5, 10) if first * decade * 5 >= most)
    values = [step * number for number in range(math.floor(most / step) + 1)]
    return {
        "type": "quantitative",
        "scale": {"domain": [0, most * 1.04], "nice": False},
        "axis": _axis(unit, title, values),
    }


def time_axis(begin: float, end: float) -> Spec:
    """The scale and the axis of epoch milliseconds, in UTC."""
    if end - begin < 1000:
        begin, end = begin - 500, end + 500
    axis = {"title": "time (UTC)", "tickCount": 7, "labelOverlap": True, "grid": True, "format": _TIMES}
    return {"type": "temporal", "scale": {"type": "utc", "domain": [begin, end], "nice": False}, "axis": axis}


def _axis(unit: Unit, title: str, values: Sequence[float]) -> Mapping[str, Any]:
    return {"title": title, "labelExpr": unit.value, "values": list(values), "domain": False, "ticks": False}


def _powers(low: float, high: float, base: int) -> list[float]:
    """The powers of the base in the range."""
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [float(base) ** power for power in range(first, last + 1)]
