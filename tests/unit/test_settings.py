"""Settings are filled by the options that their fields name."""

import dataclasses
import importlib
from typing import Any

import pytest

from hudi_services.archival.selection import ArchiveRules
from hudi_services.cleaning.plan import CleanRules
from hudi_services.cleaning.retention import Retention
from hudi_services.clustering.plan import PlanRules
from hudi_services.clustering.selection import SizeRules
from hudi_services.errors import ConfigError
from hudi_services.locking.zookeeper import ZooKeeperProvider
from hudi_services.new_tables.definition import TableDefinition
from hudi_services.options import clean_keys, lock_keys, resolve
from hudi_services.options import clustering_keys as keys
from hudi_services.options.fields import FILL

from .test_layers import MODULES


def settings() -> list[type]:
    """Every dataclass with fields that options fill."""
    loaded = [importlib.import_module(name) for name in sorted(MODULES) if ".spark" not in name and "__" not in name]
    classes = {one for module in loaded for one in vars(module).values() if isinstance(one, type)}
    known = [one for one in classes if dataclasses.is_dataclass(one)]
    found = (one for one in known if any(FILL in field.metadata for field in dataclasses.fields(one)))
    return sorted(found, key=lambda one: one.__qualname__)


ALL = settings()
assert len(ALL) > 20


def is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@pytest.mark.parametrize("kind", [one for one in ALL if one is not TableDefinition], ids=lambda kind: kind.__name__)
def test_without_options_the_defaults_are_those_of_the_options(kind: type[Any]) -> None:
    """Of all but a new table, which is not made of defaults."""
    given = {field.name: "given" for field in dataclasses.fields(kind) if is_required(field)}
    assert resolve([]).of(kind, **given) == kind(**given)


def test_fields_are_filled_at_every_depth() -> None:
    conf = {
        keys.PARTITION_FILTER_MODE.key: "recent_days",
        keys.SMALL_FILE_LIMIT.key: "7",
        keys.PLAN_ORDER.key: "gain",
        keys.SORT_COLUMNS.key: "a, b desc",
        "unknown.key": "1",
    }
    rules = resolve([("test", conf)]).of(PlanRules)
    assert rules.partitions.mode.value == "RECENT_DAYS"
    assert (rules.sizes.small_file_limit, rules.sizes.by_gain, rules.sizes.target_file) == (7, True, 1 << 30)
    assert [column.name for column in rules.sort] == ["a", "b"]
    assert rules.options == conf
    assert resolve([("test", {**conf, keys.LAYOUT_STRATEGY.key: "none"})]).of(PlanRules).sort == ()


def test_a_field_that_is_given_is_not_read_from_the_options() -> None:
    """Not even to find that the table may not set it."""
    options = resolve([]).over_table({keys.TARGET_FILE_BYTES.key: "1"})
    assert options.of(SizeRules, target_file=5).target_file == 5
    assert options.of(SizeRules, 5).target_file == 5
    with pytest.raises(ConfigError, match="cannot be set by a table"):
        options.of(SizeRules)


def test_fields_of_options_and_others() -> None:
    options = resolve([("test", {lock_keys.ZOOKEEPER_SESSION_MILLIS.key: "5000"})])
    assert options.of(ZooKeeperProvider, "host:1", "/locks", key="t") == ZooKeeperProvider(
        "host:1", "/locks", "t", 5000
    )


def test_only_cleans_limit_how_far_they_go() -> None:
    options = resolve([]).over_table({clean_keys.CLEAN_MAX_COMMITS.key: "none"})
    assert options.of(Retention) == Retention() and options.of(ArchiveRules).retention == Retention()
    with pytest.raises(ConfigError, match=clean_keys.CLEAN_MAX_COMMITS.key):
        options.of(CleanRules)
