"""The sort columns of a clustering, as the operator writes them and as the plan records them.

    sort columns := column {"," column}
    column       := name ["asc" | "desc"] ["nulls" ("first" | "last")]

Hudi knows only names, ascending with nulls first. The plan records the names under Hudi's own key, so that Hudi can
execute our plan; the directions under `hudi_services.sort.order`; and the layout (see `row_order`) under Hudi's option
for it, which Hudi does not read from a plan.
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
    """One column; by default nulls come first in ascending order and last in descending order (as in Spark)."""

    name: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        direction, nulls = "desc" if self.descending else "asc", "first" if self.nulls_first else "last"
        return f"{self.name} {direction} nulls {nulls}"


def parse_sort_columns(text: str) -> tuple[SortColumn, ...]:
    """The columns in `text`, () when it is blank. Raises ConfigError unless the text follows the grammar above."""
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
    """The sort columns of a plan, ours or Hudi's."""
    return parse_sort_columns(params.get(SORT_ORDER_KEY) or params.get(SORT_COLUMNS_KEY, ""))


def layout_of(params: Mapping[str, str]) -> str:
    """The layout of our plan; LINEAR when the plan records none."""
    return params.get(LAYOUT_KEY, LINEAR)
