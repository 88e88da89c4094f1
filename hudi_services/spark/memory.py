"""How much memory Spark's settings leave for one of our tasks.

Workers of Python are not in the heap of the JVM: YARN and Kubernetes give an executor `spark.executor.memoryOverhead`
for what is outside of it, and end one that takes more. Source: Spark's configuration page, ResourceProfile.
"""

import os
import re
from collections.abc import Callable

from ..options.option import LEAST_MEMORY, bytes_of
from ..process import machine_bytes
from ..rows.memory import INTERPRETER_BYTES

Setting = Callable[[str, str], str]
"""A setting of Spark by its name; the second text when it is not set."""

_HEAP_BYTES = 1 << 30
_LEAST_OVERHEAD = 384 << 20
_OVERHEAD_FACTOR = 0.1
_LOCAL = re.compile(r"local(?:\[\s*(\*|[0-9]{1,9})\s*(?:,\s*[0-9]+\s*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*[0-9]+\s*,\s*([0-9]{1,9})\s*,\s*[0-9]+\s*\]")
_COUNT = re.compile(r"[0-9]{1,9}")


def task_memory(setting: Setting) -> int:
    """Bytes for the data of one task, at least 64 MiB.

    Of what an executor's Python workers may have together (`spark.executor.pyspark.memory`, else its memory overhead),
    each task gets its share, less what an interpreter takes. In local mode they share the machine with the driver.
    A setting that Spark would refuse counts as not set.
    """
    master = setting("spark.master", "").strip()
    local = _LOCAL.fullmatch(master)
    if local is not None:
        together = machine_bytes() * 8 // 10 - _size(setting, "spark.driver.memory", _HEAP_BYTES)
        # Not Spark's default parallelism: `spark.default.parallelism` says that, and not how many tasks run at once.
        cores = _machine_cores() if local[1] == "*" else int(local[1] or 1)
    else:
        together = _python_bytes(setting, master)
        cores = _executor_cores(setting, master)
    tasks = max(1, cores // (_count(setting, "spark.task.cpus") or 1))
    return max(LEAST_MEMORY, together // tasks - INTERPRETER_BYTES)


def _executor_cores(setting: Setting, master: str) -> int:
    """How many cores an executor has, or more: too many cost a task memory, too few cost the executor its life."""
    cores = _count(setting, "spark.executor.cores")
    if cores is not None:
        return cores
    cluster = _LOCAL_CLUSTER.fullmatch(master)
    if cluster is not None:
        return int(cluster[1])
    if master.startswith("spark:"):
        # An executor takes all cores of its worker. Which these are is not known before it has registered, but it has
        # at most the cores of the whole application; without such a limit, workers are taken to be like this machine.
        return _count(setting, "spark.cores.max") or _machine_cores()
    # YARN and Kubernetes.
    return 1


def _machine_cores() -> int:
    """Those that this process may run on. Java may see fewer, by a container's quota: then tasks get less than could
    be, which is safe."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _python_bytes(setting: Setting, master: str) -> int:
    for name in ("spark.executor.pyspark.memory", "spark.executor.memoryOverhead"):
        found = bytes_of(setting(name, ""), "m")
        if found is not None:
            return found
    least = _size(setting, "spark.executor.minMemoryOverhead", _LEAST_OVERHEAD, "m")
    heap = _size(setting, "spark.executor.memory", _HEAP_BYTES)
    return max(least, int(heap * _overhead_factor(setting, master)))


def _overhead_factor(setting: Setting, master: str) -> float:
    names = ["spark.executor.memoryOverheadFactor"]
    if master.startswith("k8s:"):
        # 0.1, too, when not set: 0.4 is what a driver in cluster mode is given, as this very setting.
        names.append("spark.kubernetes.memoryOverheadFactor")
    for name in names:
        try:
            factor = float(setting(name, ""))
        except ValueError:
            continue
        # Neither nan nor so large that the product is no number.
        if 0 < factor < 1000:
            return factor
    return _OVERHEAD_FACTOR


def _size(setting: Setting, name: str, default: int, unit: str = "") -> int:
    found = bytes_of(setting(name, ""), unit)
    return default if found is None else found


def _count(setting: Setting, name: str) -> int | None:
    """None for what is no whole number from 1 on."""
    text = setting(name, "").strip()
    return int(text) or None if _COUNT.fullmatch(text) else None
