"""The tables that real Hudi made are of the recipes of today: found here, before a JVM reads one of them."""

from ..interop.pristine import COMMAND, is_of_these_recipes
from ..interop.recipes import VERSIONS


def test_they_are_of_these_recipes() -> None:
    old = [release for release in VERSIONS if not is_of_these_recipes(release)]
    assert old == [], f"the recipes of the tables have changed, run: {COMMAND} {' '.join(old)}"
