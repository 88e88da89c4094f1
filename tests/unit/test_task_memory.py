"""What Spark's settings leave for one task: no more than there is, and never a traceback."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.options.value_types import LEAST_MEMORY, bytes_of
from hudi_services.rows.memory import INTERPRETER_BYTES
from hudi_services.spark import memory as module
from hudi_services.spark.memory import task_memory

MIB, GIB = 1 << 20, 1 << 30
MACHINE = 100 * GIB


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "machine_bytes", lambda: MACHINE)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)


def of(master: str, **settings: str) -> int:
    """`spark.<name>` with dots for two underscores."""
    named = {f"spark.{name.replace('__', '.')}": value for name, value in settings.items()}
    named["spark.master"] = master
    return task_memory(lambda name, default: named.get(name, default))


def share(together: int, tasks: int) -> int:
    return together // tasks - INTERPRETER_BYTES


@pytest.mark.parametrize(
    ("master", "tasks"),
    [("local", 1), ("local[3]", 3), ("local[ 3 , 2 ]", 3), ("local[*]", 6), ("local[*,4]", 6), ("local[0]", 1)],
)
def test_local_tasks_are_those_of_the_master(master: str, tasks: int) -> None:
    assert of(master, default__parallelism="1") == share(MACHINE * 8 // 10 - GIB, tasks)
    assert of(master, driver__memory="20g", task__cpus="2") == share(MACHINE * 8 // 10 - 20 * GIB, max(1, tasks // 2))


def test_all_cores_where_the_system_tells_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert of("local[*]") == share(MACHINE * 8 // 10 - GIB, 4)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert of("local[*]") == share(MACHINE * 8 // 10 - GIB, 1)


@pytest.mark.parametrize(
    ("master", "settings", "tasks"),
    [
        ("yarn", {}, 1),
        ("k8s://https://host", {}, 1),
        ("yarn", {"executor__cores": "4"}, 4),
        ("yarn", {"executor__cores": "4", "task__cpus": "2"}, 2),
        ("yarn", {"task__cpus": "2"}, 1),
        ("spark://host:7077", {}, 6),
        ("spark://host:7077", {"cores__max": "12"}, 12),
        ("spark://host:7077", {"cores__max": "12", "executor__cores": "2"}, 2),
        ("local-cluster[2,3,1024]", {}, 3),
        ("local-cluster[ 2 , 3 , 1024 ]", {"cores__max": "12"}, 3),
        ("local-cluster[2,4,1024]", {"executor__cores": "2"}, 2),
    ],
)
def test_cores_of_an_executor(master: str, settings: dict[str, str], tasks: int) -> None:
    assert of(master, executor__memoryOverhead="60g", **settings) == share(60 * GIB, tasks)


@pytest.mark.parametrize(
    ("master", "settings", "together"),
    [
        ("yarn", {}, 384 * MIB),
        ("yarn", {"executor__minMemoryOverhead": "500"}, 500 * MIB),
        ("yarn", {"executor__memory": "20g"}, 2 * GIB),
        ("yarn", {"executor__memory": "20g", "executor__memoryOverheadFactor": "0.5"}, 10 * GIB),
        ("yarn", {"executor__memory": "20g", "kubernetes__memoryOverheadFactor": "0.5"}, 2 * GIB),
        # As elsewhere: only a driver in cluster mode is given 0.4, and then as this setting.
        ("k8s://h", {"executor__memory": "20g"}, 2 * GIB),
        ("k8s://h", {"executor__memory": "20g", "kubernetes__memoryOverheadFactor": "0.4"}, 8 * GIB),
        (
            "k8s://h",
            {
                "executor__memory": "20g",
                "kubernetes__memoryOverheadFactor": "0.4",
                "executor__memoryOverheadFactor": "0.2",
            },
            4 * GIB,
        ),
        ("yarn", {"executor__memoryOverhead": "1024"}, GIB),
        ("yarn", {"executor__memoryOverhead": "1073741824b"}, GIB),
        ("yarn", {"executor__memoryOverhead": "1g", "executor__pyspark__memory": "2GB"}, 2 * GIB),
        # What Spark would refuse counts as not set.
        ("yarn", {"executor__memoryOverhead": "1g", "executor__pyspark__memory": "1.5g"}, GIB),
        ("yarn", {"executor__memoryOverhead": "much", "executor__memory": "20g"}, 2 * GIB),
        ("yarn", {"executor__memory": "1.5g", "executor__memoryOverheadFactor": "0.5"}, 512 * MIB),
        ("yarn", {"executor__minMemoryOverhead": "-1"}, 384 * MIB),
        *(
            ("yarn", {"executor__memory": "20g", "executor__memoryOverheadFactor": factor}, 2 * GIB)
            for factor in ("abc", "nan", "inf", "-1", "0", "1e308")
        ),
        *(("yarn", {"task__cpus": cpus}, 384 * MIB) for cpus in ("0.5", "0", "-1", "", "two", "9" * 5000)),
        *(("yarn", {"executor__cores": cores}, 384 * MIB) for cores in ("0.5", "0", "²", "9" * 5000)),
    ],
)
def test_memory_of_an_executors_workers(master: str, settings: dict[str, str], together: int) -> None:
    assert of(master, **settings) == share(together, 1)


def test_never_less_than_one_can_work_with() -> None:
    assert of("local[2]", driver__memory="200g") == LEAST_MEMORY
    assert of("yarn", executor__cores="64") == LEAST_MEMORY


TEXTS = st.one_of(st.text(max_size=12), st.from_regex(r"\A-?[0-9]{0,25}(\.[0-9]+)?(e[0-9]{1,4})?[kmgtb]{0,2}\Z"))
NAMES = [
    "driver__memory",
    "executor__memory",
    "executor__memoryOverhead",
    "executor__pyspark__memory",
    "executor__minMemoryOverhead",
    "executor__memoryOverheadFactor",
    "kubernetes__memoryOverheadFactor",
    "executor__cores",
    "cores__max",
    "task__cpus",
]
MASTERS = ["", "local", "local[*]", "local[x]", "yarn", "k8s://h", "spark://h:1", "local-cluster[1,2]"]


@given(st.sampled_from(MASTERS), st.dictionaries(st.sampled_from(NAMES), TEXTS))
def test_any_settings_leave_something(master: str, settings: dict[str, str]) -> None:
    assert of(master, **settings) >= LEAST_MEMORY


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1", 1),
        ("1b", 1),
        ("2k", 2048),
        ("512mb", 512 * MIB),
        (" 512M ", 512 * MIB),
        ("1T", 1 << 40),
        ("9223372036854775807", (1 << 63) - 1),
        ("9223372036854775808", None),
        ("8388608t", None),
        ("9" * 5000, None),
        ("1.5g", None),
        ("-1g", None),
        ("1 g", None),
        ("1bb", None),
        ("1gib", None),
        ("٣g", None),
        ("g", None),
        ("", None),
    ],
)
def test_sizes(text: str, found: int | None) -> None:
    assert bytes_of(text) == found


def test_a_number_by_itself_is_in_the_unit_of_its_setting() -> None:
    assert (bytes_of("3", "m"), bytes_of("3b", "m"), bytes_of("3k", "m")) == (3 * MIB, 3, 3072)
