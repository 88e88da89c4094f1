import os
from pathlib import Path

import pytest

from ..tiers import is_wanted

# Every JVM of these tests lives for seconds: to compile thoroughly what it runs takes longer than to run it.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {_SHORT_LIVED}".strip()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick tests or the deep ones."""
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    deep = {item for item in ours if item.get_closest_marker("deep") is not None}
    dropped = {item for item in ours if not is_wanted(item, is_deep=item in deep)}
    config.hook.pytest_deselected(items=[*dropped])
    items[:] = [item for item in items if item not in dropped]
