"""Dates of the hybrid calendar, by their labels: year, month and day; what `calendar_rebase` does, in another way."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

_JULIAN_DAY = 2_440_588
"""The Julian day number of 1970-01-01."""
_LAST_JULIAN = 2_299_160
"""That of 1582-10-04 in the Julian calendar; the next day is 1582-10-15 in the Gregorian one."""


def relabelled(days: Numbers) -> Numbers:
    """Epoch days of the hybrid calendar as those of the same labels in the proleptic Gregorian calendar.

    Labels are counted as E. G. Richards does in the Explanatory Supplement to the Astronomical Almanac (chapter 15).
    """
    number = days + _JULIAN_DAY
    quarter_days = 4 * (number + 1401) + 3
    of_year = 5 * (quarter_days % 1461 // 4) + 2
    day = of_year % 153 // 5
    month = (of_year // 153 + 2) % 12
    year = quarter_days // 1461 - 4716 + (13 - month) // 12
    first = ((year - 1970).astype("M8[Y]").astype("M8[M]") + month).astype("M8[D]").astype(np.int64)
    return np.where(number > _LAST_JULIAN, days, first + day)
