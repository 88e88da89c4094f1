"""The function that spreads keys over the file groups of a record index: Hudi's, or a function of the operator's own.

    hudi                          codecs.java_hash.file_group_indexes
    <package>.<module>:<name>     a function of the same signature, which must give the same values and is checked

Hudi finds a key only where its own function looks for it. So Hudi's function is computed for every 64th key, too, and
compared. Tasks carry the name: a function need not be picklable, only importable where they run.
"""

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...codecs.java_hash import file_group_indexes
from ...errors import CheckFailed, ConfigError
from ...plugins import load

HUDI = "hudi"
_SAMPLE_EVERY = 64

Positions = npt.NDArray[np.int32]
KeyHash = Callable[[pa.Array | pa.ChunkedArray, int], Positions]


@functools.cache
def load_key_hash(name: str) -> KeyHash:
    """The function that a value of the option names. Raises ConfigError when there is none."""
    if name == HUDI:
        return file_group_indexes
    function: KeyHash = load(name, "hash")
    if not callable(function):
        raise ConfigError(f"the hash {name} is no function")
    return function


def spread(name: str, keys: pa.ChunkedArray, count: int) -> Positions:
    """The position of each key among `count` file groups, by the function `name`.

    Raises CheckFailed when the function fails or gives other positions than Hudi's, ConfigError when there is no such
    function.
    """
    if name == HUDI:
        return file_group_indexes(keys, count)
    try:
        found = np.asarray(load_key_hash(name)(keys, count))
    except ConfigError:
        raise
    except Exception as e:
        raise CheckFailed(f"the hash {name} failed: {type(e).__name__}: {e}", hint="leave it out") from e
    if found.shape != (len(keys),) or found.dtype != np.int32:
        raise CheckFailed(
            f"the hash {name} gave {found.shape} values of the type {found.dtype} for {len(keys)} keys",
            hint="it must give an int32 for each key",
        )
    if len(found) and not 0 <= found.min() <= found.max() < count:
        raise CheckFailed(f"the hash {name} gave a position that is none of {count} file groups")
    _compare(name, keys, count, found)
    return found


def _compare(name: str, keys: pa.ChunkedArray, count: int, positions: Positions) -> None:
    rows = np.arange(0, len(keys), _SAMPLE_EVERY)
    sample = keys.take(pa.array(rows))
    wrong = np.flatnonzero(file_group_indexes(sample, count) != positions[rows])
    if len(wrong):
        raise CheckFailed(
            f"the hash {name} puts the key {sample[int(wrong[0])].as_py()!r} where Hudi does not look for it: "
            f"{len(wrong)} of {len(rows)} keys that were compared differ",
            hint="leave it out: the default is Hudi's own function",
        )
