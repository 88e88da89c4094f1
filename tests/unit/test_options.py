import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_services
from hudi_services.errors import ConfigError
from hudi_services.options import (
    DEFAULT_SOURCE,
    Option,
    Options,
    archive_keys,
    clean_keys,
    commit_keys,
    compaction_keys,
    file_keys,
    index_keys,
    lock_keys,
    resolve,
)
from hudi_services.options import clustering_keys as keys
from hudi_services.options.option import Phase
from hudi_services.options.registry import OPTIONS
from hudi_services.options.resolve import as_text

from .hudi_keys import OF_OTHER_BUNDLES, hudi_keys

PLANS = "org.apache.hudi.client.clustering.plan.strategy"
RUNS = "org.apache.hudi.client.clustering.run.strategy"
TARGET = keys.TARGET_FILE_BYTES.key


def one(key: str, value: str) -> Options:
    return resolve([("--hoodie-conf", {key: value})])


def test_defaults_are_hudis() -> None:
    options = resolve([])
    assert options[keys.TARGET_FILE_BYTES] == 1073741824
    assert options[keys.SMALL_FILE_LIMIT] == 314572800
    assert options[keys.MAX_BYTES_PER_GROUP] == 2147483648
    assert options[keys.MAX_NUM_GROUPS] == 30
    assert options[keys.SINGLE_GROUP] is True
    assert options[file_keys.BLOOM_FPP] == 0.000000001
    assert options[file_keys.PARQUET_CODEC] == "zstd"
    assert options.warnings == ()


def test_the_highest_layer_wins_and_is_named() -> None:
    options = resolve([("--hoodie-conf", {}), ("--props a", {TARGET: "2"}), ("conf file b", {TARGET: "3"})])
    options = options.over_table({TARGET: "4", keys.MAX_NUM_GROUPS.key: "5"})
    assert (options[keys.TARGET_FILE_BYTES], options.source(keys.TARGET_FILE_BYTES)) == (2, "--props a")
    assert (options[keys.MAX_NUM_GROUPS], options.source(keys.MAX_NUM_GROUPS)) == (5, "table")
    assert options.source(keys.SORT_COLUMNS) == DEFAULT_SOURCE
    assert options.is_set(keys.TARGET_FILE_BYTES) and not options.is_set(keys.SORT_COLUMNS)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (keys.TARGET_FILE_BYTES, " 10 ", 10),
        (keys.SINGLE_GROUP, "False", False),
        (keys.PARTITION_FILTER_MODE, "recent_days", "RECENT_DAYS"),
        (keys.PARTITIONS_SELECTED, "day=1, day=2,", ("day=1", "day=2")),
        (file_keys.PARQUET_CODEC, "GZIP", "gzip"),
        (file_keys.PARQUET_CODEC, "uncompressed", "none"),
        (file_keys.BLOOM_TYPE, "simple", "SIMPLE"),
        (keys.SORT_COLUMNS, "a desc nulls last, b", "a desc nulls last, b"),
        (keys.PLAN_STRATEGY_CLASS, f"{PLANS}.SparkSizeBasedClusteringPlanStrategy", "size"),
        (keys.PLAN_STRATEGY_CLASS, f"{PLANS}.SparkSingleFileSortPlanStrategy", "single_file"),
        (keys.PLAN_STRATEGY_CLASS, "Key_Range", "key_range"),
        (keys.PLAN_STRATEGY_CLASS, "my_package.plans:Mine", "my_package.plans:Mine"),
        (keys.FILE_SLICES_SORT_BY, "instant_time,SIZE", ("INSTANT_TIME", "SIZE")),
        (keys.EXECUTION_STRATEGY_CLASS, keys.SORT_AND_SIZE_EXECUTION, keys.SORT_AND_SIZE_EXECUTION),
        (keys.EXECUTION_STRATEGY_CLASS, f"{RUNS}.JavaSortAndSizeExecutionStrategy", keys.SORT_AND_SIZE_EXECUTION),
        (keys.EXECUTION_STRATEGY_CLASS, keys.SINGLE_FILE_EXECUTION, keys.SINGLE_FILE_EXECUTION),
        *((keys.EXECUTION_STRATEGY_CLASS, name, name) for name in keys.COPY_EXECUTIONS),
        (lock_keys.LOCK_PROVIDER, lock_keys.FILE_SYSTEM_LOCK, lock_keys.FILE_SYSTEM_LOCK),
        (keys.LAYOUT_STRATEGY, "linear", "LINEAR"),
        (keys.LAYOUT_STRATEGY, "ZOrder", "ZORDER"),
        (keys.LAYOUT_STRATEGY, "my.layouts:Mine", "my.layouts:Mine"),
        (file_keys.MEMORY_PER_TASK, "512m", 512 << 20),
        (file_keys.MEMORY_PER_TASK, " 512MB ", 512 << 20),
        (file_keys.MEMORY_PER_TASK, "4g", 4 << 30),
        (file_keys.MEMORY_PER_TASK, "4Gb", 4 << 30),
        (file_keys.MEMORY_PER_TASK, "1t", 1 << 40),
        (file_keys.MEMORY_PER_TASK, "67108864", 64 << 20),
    ],
)
def test_values(option: Option[Any], text: str, value: Any) -> None:
    assert one(option.key, text)[option] == value


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (keys.TARGET_FILE_BYTES, "0"),
        (keys.TARGET_FILE_BYTES, "-1"),
        (keys.TARGET_FILE_BYTES, "1GB"),
        (keys.TARGET_FILE_BYTES, ""),
        (keys.TARGET_FILE_BYTES, "9223372036854775808"),
        (keys.TARGET_FILE_BYTES, "٣"),
        (keys.MAX_NUM_GROUPS, "0"),
        (keys.SKIP_FROM_LATEST, "-1"),
        (keys.SINGLE_GROUP, "yes"),
        (file_keys.BLOOM_FPP, "1"),
        (file_keys.BLOOM_FPP, "nan"),
        (keys.PARTITION_FILTER_MODE, "SOME"),
        (keys.PARTITION_REGEX, "("),
        (file_keys.PARQUET_CODEC, "lzo"),
        (keys.LAYOUT_STRATEGY, "ZCURVE"),
        (keys.FILE_SLICES_SORT_BY, "SIZE,SIZE"),
        (keys.FILE_SLICES_SORT_BY, ""),
        (keys.PLAN_STRATEGY_CLASS, "org.example.MyStrategy"),
        (keys.EXECUTION_STRATEGY_CLASS, "org.example.MyStrategy"),
        (keys.EXECUTION_STRATEGY_CLASS, f"{RUNS}.SparkExternalFileClusteringExecutionStrategy"),
        (keys.EXECUTION_STRATEGY_CLASS, f"{RUNS}.SparkExternalFileClusteringExecutionStrategy"),
        (lock_keys.LOCK_PROVIDER, "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"),
    ],
)
def test_wrong_values_name_the_key_and_who_set_it(option: Option[Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        one(option.key, text)
    assert option.key in caught.value.message and "--hoodie-conf" in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        *((text, "is no size, as 512m or 4g") for text in ("1.5g", "-1g", "4 g", "g", "", "4x", "1gib", "٣g")),
        *((text, "is no size, as 512m or 4g") for text in ("9223372036854775808", "8388608t", "9" * 5000)),
        *((text, "is less than 64m") for text in ("0", "63m", "67108863", "512")),
    ],
)
def test_what_is_no_memory(text: str, refusal: str) -> None:
    with pytest.raises(ConfigError) as caught:
        one(file_keys.MEMORY_PER_TASK.key, text)
    assert caught.value.message == f"{file_keys.MEMORY_PER_TASK.key}={text} (from --hoodie-conf) {refusal}"


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("hoodie.clustering.plan.strategy.target.file.max.byte", TARGET),
        ("hoodie.clustering.plan.strategy.sort.column", keys.SORT_COLUMNS.key),
        ("hodie.parquet.compression.codec", file_keys.PARQUET_CODEC.key),
        ("hoodie.clean.automatik", "hoodie.clean.automatic"),
    ],
)
def test_an_unknown_key_is_a_warning_with_the_nearest_one(wrong: str, nearest: str) -> None:
    (warning,) = one(wrong, "1").warnings
    assert wrong in warning and warning.endswith(nearest) and "--hoodie-conf" in warning


@pytest.mark.parametrize(
    "key", ["hoodie.archive.merge.enable", "hoodie.metrics.on", "hoodie.streamer.x.y", "spark.master"]
)
def test_keys_of_others_are_no_warning(key: str) -> None:
    assert one(key, "whatever").warnings == ()


def test_the_tables_own_properties_are_no_warning() -> None:
    assert resolve([]).over_table({"hoodie.table.brand.new": "1"}).warnings == ()


def test_a_small_file_limit_that_is_not_below_the_target_is_a_warning() -> None:
    assert TARGET in one(TARGET, "1000").warnings[0]


@pytest.mark.parametrize(("name", "mode"), keys.DEPRECATED_PLAN_FILTERS.items())
def test_old_plan_strategies_are_filter_modes(name: str, mode: str) -> None:
    options = resolve([("conf", {keys.PLAN_STRATEGY_CLASS.key: name, keys.PARTITION_FILTER_MODE.key: "NONE"})])
    assert options[keys.PLAN_STRATEGY_CLASS] == "size"
    assert options[keys.PARTITION_FILTER_MODE] == mode


def test_in_force_lists_every_option_of_the_phase() -> None:
    plan = {setting.key for setting in resolve([]).in_force(Phase.PLAN)}
    write = {setting.key for setting in resolve([]).in_force(Phase.WRITE)}
    assert (
        TARGET in plan - write
        and file_keys.PARQUET_CODEC.key in write - plan
        and lock_keys.LOCK_PROVIDER.key in plan & write
    )
    assert plan | write == {option.key for option in OPTIONS if option.phase & Phase.CLUSTERING}
    (setting,) = [s for s in one(TARGET, "7").in_force() if s.key == TARGET]
    assert (setting.value, setting.source) == ("7", "--hoodie-conf")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_option_is_a_key_of_hudi_or_ours_and_reads_its_default_back(option: Option[Any]) -> None:
    assert option.key in hudi_keys() or option.key.startswith(("hudi.services.", "spark.sql.", *OF_OTHER_BUNDLES))
    assert option.description.endswith(".")
    if option.default is not None:
        assert option.parse(as_text(option.default)) == option.default


@pytest.mark.parametrize("mode", ["OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_several_writers_need_a_lock(mode: str) -> None:
    with pytest.raises(ConfigError, match="needs a lock"):
        one(lock_keys.CONCURRENCY_MODE.key, mode)
    conf = {lock_keys.CONCURRENCY_MODE.key: mode, lock_keys.LOCK_PROVIDER.key: lock_keys.FILE_SYSTEM_LOCK}
    assert resolve([("conf", conf)])[lock_keys.CONCURRENCY_MODE] == mode


# Options with one value that is supported, or that are checked together with another: resolving them is all.
CHECKED_ONLY = {
    keys.PLAN_STRATEGY_CLASS,
    keys.FILE_SLICES_SORT_BY,
    keys.LAYOUT_STRATEGY,
    clean_keys.CLEAN_TRIGGER_STRATEGY,
}


def test_every_option_is_read_by_somebody() -> None:
    package = Path(hudi_services.__file__).parent
    sources = (file.read_text() for file in package.rglob("*.py") if file.parent.name != "options")
    read = set(re.findall(r"keys\.([A-Z_]+)", "\n".join(sources)))
    areas = (archive_keys, clean_keys, keys, commit_keys, compaction_keys, file_keys, index_keys)
    options = {name: one for area in areas for name, one in vars(area).items() if isinstance(one, Option)}
    assert [name for name, one in options.items() if name not in read and one not in CHECKED_ONLY] == []


@given(st.sampled_from(OPTIONS), st.text(max_size=30))
def test_any_text_is_a_value_or_a_config_error(option: Option[Any], text: str) -> None:
    try:
        value = one(option.key, text)[option]
    except ConfigError:
        return
    assert not isinstance(value, float) or math.isfinite(value)
