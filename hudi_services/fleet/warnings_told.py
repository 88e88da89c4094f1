"""Warnings of many lines or tables, of which most say the same: each is told once."""

import re
from collections.abc import Iterable

from ..units import counted

_OF_ONE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27,}|[0-9]+")
"""File ids, instants and counts, which differ from table to table."""


def told_once(warnings: Iterable[tuple[str, str]], others: str) -> list[str]:
    """The warnings, given after the source of each: of those that differ by their source and by numbers the first one,
    with how many `others` (a noun: line, table) have such a one, too."""
    first, sources = dict[str, str](), dict[str, set[str]]()
    for source, warning in warnings:
        alike = _OF_ONE.sub("#", warning.replace(source, ""))
        first.setdefault(alike, warning)
        sources.setdefault(alike, set()).add(source)
    return [
        f"{warning}; so in {counted(len(sources[alike]) - 1, f'other {others}')}"
        if len(sources[alike]) > 1
        else warning
        for alike, warning in first.items()
    ]
