"""The tables that real Hudi made are of the recipes of today: found here, before a JVM reads one of them."""

from pathlib import Path

import pytest

from ..interop.pristine import ALL, COMMAND, Pristine, is_of_these_recipes, recipes_of
from ..interop.readers import same_values
from .tables import merged_rows

# Without meta columns, by which rows are put into order; and with timestamps of 96 bits, which come as bytes here.
_LEFT_OUT = {"no_meta", "types_row"}


def test_they_are_of_these_recipes() -> None:
    old = [release for release in ALL if not is_of_these_recipes(release)]
    assert old == [], f"the recipes of the tables have changed, run: {COMMAND} {' '.join(old)}"


@pytest.mark.deep
@pytest.mark.parametrize("release", ALL)
def test_they_have_the_rows_that_hudi_read(release: str, tmp_path: Path) -> None:
    known = Pristine.unpack(release, tmp_path)
    for name in {*recipes_of(release)} - _LEFT_OUT:
        rows = known.rows(name)
        found = merged_rows(known.table(name)).select([one for one in rows.column_names if one != "_hoodie_file_name"])
        assert same_values(rows.drop_columns("_hoodie_file_name"), found) == [], name
