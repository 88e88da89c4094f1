"""The predicates of a workload, each once with its weight.

line := [ weight TAB ] clause | "#" comment | blank
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from ..errors import ConfigError
from .predicates import Predicate
from .sql_clauses import NamedColumns, clause_condition

MOST_PREDICATES = 200
"""Predicates that are looked at: those with the most weight."""


def clauses(lines: Iterable[str], source: str) -> Iterator[tuple[float, str]]:
    """The clauses of lines, with their weights. Raises ConfigError, naming `source` and the line."""
    for number, line in enumerate(lines, 1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        weight, tab, clause = plain.partition("\t")
        try:
            yield (float(weight), clause.strip()) if tab else (1.0, plain)
        except ValueError:
            raise ConfigError(
                f"{source}, line {number}: {weight!r} before the tab is no number", hint="write WEIGHT, a tab, CLAUSE"
            ) from None


def predicates_of(weighed: Sequence[tuple[float, str]], columns: NamedColumns) -> list[Predicate]:
    """The predicates of clauses. Raises ConfigError for a clause that is none, a weight that is none, and no clause."""
    for weight, text in weighed:
        if not (math.isfinite(weight) and weight > 0):
            raise ConfigError(f"the weight {weight:g} of the predicate {text!r} is no number above 0")
    if not weighed:
        raise ConfigError("there is no predicate", hint="give the WHERE clauses of your queries, one on each line")
    return [Predicate(text, weight, clause_condition(text, columns)) for weight, text in weighed]


def most_weighty(predicates: Sequence[Predicate]) -> list[Predicate]:
    """The predicates with the most weight, equal ones as one, in their order."""
    joined: dict[str, Predicate] = {}
    for one in predicates:
        known = joined.get(one.text)
        weight = one.weight + (known.weight if known is not None else 0.0)
        joined[one.text] = Predicate(one.text, weight, one.condition)
    found = [*joined.values()]
    if len(found) <= MOST_PREDICATES:
        return found
    kept = sorted(range(len(found)), key=lambda at: -found[at].weight)[:MOST_PREDICATES]
    return [found[at] for at in sorted(kept)]
