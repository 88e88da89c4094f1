"""How much memory Spark's settings leave for one of our tasks.

Python workers are not in the heap of the JVM: YARN and Kubernetes give an executor `spark.executor.memoryOverhead` for
memory outside of the heap, and kill an executor that takes more. Source: Spark's configuration page, ResourceProfile.
"""

import re
from collections.abc import Callable

from ..options.value_types import LEAST_MEMORY, bytes_of
from ..process import LOCAL_MASTER, machine_bytes, machine_cores
from ..rows.memory import INTERPRETER_BYTES

Setting = Callable[[str, str], str]
"""Returns a setting of Spark by its name, or the second text when it is not set."""

_HEAP_BYTES = 1 << 30
_LEAST_OVERHEAD = 384 << 20
_OVERHEAD_FACTOR = 0.1
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*[0-9]+\s*,\s*([0-9]{1,9})\s*,\s*[0-9]+\s*\]")
_COUNT = re.compile(r"[0-9]{1,9}")


def task_memory(setting: Setting) -> int:
    """Bytes for the data of one task, at least 64 MiB.

    The tasks of an executor share the memory of its Python workers (`spark.executor.pyspark.memory`, else its memory
    overhead); each gets its share, less the memory of an interpreter. In local mode they share the machine with the
    driver. A setting that Spark would refuse counts as not set.
    """
    master = setting("spark.master", "").strip()
    local = LOCAL_MASTER.fullmatch(master)
    if local is not None:
        together = machine_bytes() * 8 // 10 - _size(setting, "spark.driver.memory", _HEAP_BYTES)
        # Not Spark's default parallelism: `spark.default.parallelism` sets that, but not how many tasks run at once.
        # Java may see fewer, by a container's quota: then tasks get less memory than they could, which is safe.
        cores = machine_cores() if local[1] == "*" else int(local[1] or 1)
    else:
        together = _python_bytes(setting, master)
        cores = _executor_cores(setting, master)
    tasks = max(1, cores // (_count(setting, "spark.task.cpus") or 1))
    return max(LEAST_MEMORY, together // tasks - INTERPRETER_BYTES)


def cores(setting: Setting, now: int) -> int:
    """The cores of the application: `now`, or as many as dynamic allocation may add."""
    if setting("spark.dynamicAllocation.enabled", "false").strip().lower() != "true":
        return now
    most = _count(setting, "spark.dynamicAllocation.maxExecutors")
    return now if most is None else max(now, most * _executor_cores(setting, setting("spark.master", "").strip()))


def _executor_cores(setting: Setting, master: str) -> int:
    """The cores of an executor, or more: too high a number costs a task memory, too low a number kills the executor."""
    cores = _count(setting, "spark.executor.cores")
    if cores is not None:
        return cores
    cluster = _LOCAL_CLUSTER.fullmatch(master)
    if cluster is not None:
        return int(cluster[1])
    if master.startswith("spark:"):
        # An executor takes all cores of its worker. Which these are is not known before it has registered, but it has
        # at most the cores of the whole application; without such a limit, workers are taken to be like this machine.
        return _count(setting, "spark.cores.max") or machine_cores()
    # YARN and Kubernetes.
    return 1


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
        # The default is 0.1 here, too: a driver in cluster mode is given 0.4 as an explicit value of this setting.
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
    """The setting as a whole number from 1 on; None for anything else."""
    text = setting(name, "").strip()
    return int(text) or None if _COUNT.fullmatch(text) else None
