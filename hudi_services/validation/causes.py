"""Why a stored range is wrong, as far as the two ranges tell it: what releases of Hudi are known to do to some columns.

Source: docs/runbooks/metadata-table.md, "Statistics of Hudi that hide rows".
"""

import math

from ..metadata.records.model import StatsRecord
from ..metadata.statistics.values import java_key

NAN = "NaN was recorded as 0.0 to 0.0"
NAN_AS_NULL = "NaN was recorded as no range"
NOT_RECORDED = "the footer has no range (long values, or timestamps of 96 bits), and none was recorded"
MILLISECONDS = "milliseconds were recorded, which readers take for microseconds"
SIGNED_BYTES = "the bytes were compared as signed numbers, which readers compare as unsigned ones"


def cause_of_range(stored: StatsRecord, true: StatsRecord, *, from_values: bool) -> str | None:
    """The cause, in words; None where the ranges do not tell it.

    `from_values`: the footer has no such range, so that `true` was computed from the values, or is wider.
    """
    says, holds = (stored.minimum, stored.maximum), (true.minimum, true.maximum)
    if from_values and any(isinstance(one, float) and math.isinf(one) for one in holds):
        return {(0.0, 0.0): NAN, (None, None): NAN_AS_NULL}.get(says)
    if from_values and says == (None, None):
        return NOT_RECORDED
    if from_values and any(_is_thousandth(one, of) for one, of in zip(says, holds, strict=True)):
        return MILLISECONDS
    return SIGNED_BYTES if _holds_by_signed_bytes(stored, true) else None


def _is_thousandth(stored: object, true: object) -> bool:
    return isinstance(stored, int) and isinstance(true, int) and stored != true and stored * 1000 == true


def _holds_by_signed_bytes(stored: StatsRecord, true: StatsRecord) -> bool:
    bounds = (stored.minimum, true.minimum, true.maximum, stored.maximum)
    if not all(isinstance(one, bytes) for one in bounds):
        return False
    keys = [java_key(one) for one in bounds]
    return bool(keys[0] <= keys[1] and keys[2] <= keys[3])
