"""Sort columns of a clustering: what the operator wrote, what the plan keeps.

    sort columns := column {"," column}
    column       := name ["asc" | "desc"] ["nulls" ("first" | "last")]

Hudi knows names only, ascending with nulls first; that part goes under Hudi's own key of the plan, so that Hudi can
execute a plan of ours. The directions go under `hudi_services.sort.order`, and how the columns order the rows (see
`row_order`) under Hudi's option for that, which Hudi does not look for in a plan.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import ConfigError

SORT_COLUMNS_KEY = "hoodie.clustering.plan.strategy.sort.columns"
SORT_ORDER_KEY = "hudi_services.sort.order"
LAYOUT_KEY = "hoodie.layout.optimize.strategy"
LINEAR = "LINEAR"

_COLUMN = re.compile(r"(\S+)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column; nulls come first when ascending and last when descending, unless said otherwise (as in Spark)."""

    name: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        direction, nulls = "desc" if self.descending else "asc", "first" if self.nulls_first else "last"
        return f"{self.name} {direction} nulls {nulls}"


def parse_sort_columns(text: str) -> tuple[SortColumn, ...]:
    """The columns in `text`, () when it is blank. Raises ConfigError for anything but the grammar above."""
    if not text.strip():
        return ()
    columns = tuple(_parse_column(part.strip(), text) for part in text.split(","))
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ConfigError(f"{SORT_COLUMNS_KEY}={text} names a column twice")
    return columns


def _parse_column(part: str, text: str) -> SortColumn:
    match = _COLUMN.fullmatch(part)
    if match is None:
        raise ConfigError(
            f"{SORT_COLUMNS_KEY}={text}: {part!r} is not a column",
            hint="write names separated by commas, each with an optional asc or desc and nulls first or nulls last",
        )
    name, direction, nulls = match.groups()
    descending = (direction or "asc").lower() == "desc"
    return SortColumn(name, descending, (nulls or ("last" if descending else "first")).lower() == "first")


def to_strategy_params(columns: Sequence[SortColumn], layout: str = LINEAR) -> dict[str, str]:
    """The `strategyParams` of a plan, {} when nothing is sorted."""
    if not columns:
        return {}
    params = {SORT_COLUMNS_KEY: ",".join(column.name for column in columns)}
    if layout != LINEAR:
        params[LAYOUT_KEY] = layout
    if any(column != SortColumn(column.name) for column in columns):
        params[SORT_ORDER_KEY] = ",".join(map(str, columns))
    return params


def from_strategy_params(params: Mapping[str, str]) -> tuple[SortColumn, ...]:
    """The sort columns of a plan, by us or by Hudi."""
    return parse_sort_columns(params.get(SORT_ORDER_KEY) or params.get(SORT_COLUMNS_KEY, ""))


def layout_of(params: Mapping[str, str]) -> str:
    """The layout of a plan by us; LINEAR when it says nothing."""
    return params.get(LAYOUT_KEY, LINEAR)
