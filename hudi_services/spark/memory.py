"""How much memory Spark's settings leave for one of our tasks.

Workers of Python are not in the heap of the JVM: YARN and Kubernetes give an executor `spark.executor.memoryOverhead`
for what is outside of it, and end one that takes more. Source: Spark's configuration page, ResourceProfile.
"""

import re
from collections.abc import Callable

from ..clustering.memory import INTERPRETER_BYTES
from ..process import machine_bytes

Setting = Callable[[str, str], str]
"""A setting of Spark by its name; the second text when it is not set."""

LEAST_BYTES = 64 << 20
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
_LEAST_OVERHEAD = 384 << 20
_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?")


def task_memory(setting: Setting, parallelism: int) -> int:
    """Bytes for the data of one task, at least 64 MiB; `parallelism` is how many run at once on all executors.

    Of what an executor's Python workers may have together (`spark.executor.pyspark.memory`, else its memory overhead),
    each task gets its share, less what an interpreter takes. In local mode they share the machine with the driver.
    """
    local = _LOCAL.fullmatch(setting("spark.master", ""))
    if local is not None:
        together = machine_bytes() * 8 // 10 - _bytes(setting("spark.driver.memory", "1g"), "b")
        tasks = parallelism
    else:
        together = _python_bytes(setting)
        cores = setting("spark.executor.cores", "")
        # YARN and Kubernetes take one core where nothing is said; a standalone cluster takes all of them.
        standalone = setting("spark.master", "").startswith("spark:")
        tasks = int(cores) if cores.isdecimal() else parallelism if standalone else 1
    tasks = max(1, tasks // max(1, int(setting("spark.task.cpus", "1"))))
    return max(LEAST_BYTES, together // tasks - INTERPRETER_BYTES)


def _python_bytes(setting: Setting) -> int:
    own = setting("spark.executor.pyspark.memory", "")
    if own:
        return _bytes(own, "m")
    overhead = setting("spark.executor.memoryOverhead", "")
    if overhead:
        return _bytes(overhead, "m")
    on_kubernetes = setting("spark.master", "").startswith("k8s:")
    factor = setting("spark.executor.memoryOverheadFactor", "") or (
        setting("spark.kubernetes.memoryOverheadFactor", "0.4") if on_kubernetes else "0.1"
    )
    least = _bytes(setting("spark.executor.minMemoryOverhead", "384m"), "m")
    return max(least, int(_bytes(setting("spark.executor.memory", "1g"), "b") * float(factor)))


def _bytes(text: str, unit: str) -> int:
    """Spark's sizes: `unit` counts where the text has none. What is no size counts as the least overhead."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return _LEAST_OVERHEAD
    return int(match[1]) * _UNITS[match[2].lower() or unit]
