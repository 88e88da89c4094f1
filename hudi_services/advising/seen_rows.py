"""From a sample of rows to the files: which file probably has a row that a test asks for.

A sample of n of N rows misses rows, so that the files of those it has seen are a lower bound. How many files with such
rows are unseen is the problem of unseen species: a species is a file, and an individual a row that passes the test.
Sources: A. Chao, "Nonparametric estimation of the number of classes in a population" (1984), bias-corrected;
R. K. Colwell et al., "Models and estimators linking individual-based and sample-based rarefaction, extrapolation and
comparison of assemblages" (2012), for how many of the unseen the rows outside of the sample would show. Rows that are
in as many files as by chance are spread by chance: then the occupancy of cells by balls says it.
"""

import numpy as np
import numpy.typing as npt

from .predicates import Chances

_FEW = 2
"""So few rows do not say by themselves whether they are together or apart."""
_DEVIATIONS = 2.0
"""Rows in fewer files than chance would put them, by more than so many standard deviations, are together."""


def chances_of_files(
    seen: npt.NDArray[np.int64], rows: float, sampled: int, *, is_there: bool, is_ordered: bool = False
) -> Chances:
    """The chance of each file to have a row that passes a test; `seen` is how many the sample has of each file.

    The sample has `sampled` of the `rows` of all these files. `is_there`: whether statistics allow that any of them has
    such a row. `is_ordered`: whether the files follow the values that the test is about.
    """
    files = len(seen)
    if not is_there or not files:
        return np.zeros(files)
    if files == 1:
        return np.ones(1)
    total, hits = int(seen.sum()), int((seen > 0).sum())
    if not total:
        # A range says that some file has one, and no sampled row says which.
        return np.full(files, 1.0 / files)
    unsampled = total * max(0.0, rows / max(1, sampled) - 1.0)
    unseen = _by_chance(files, total + unsampled) - hits
    if _are_together(files, total, hits, is_ordered=is_ordered):
        unseen = _hidden(seen, total, unsampled)
    share = min(1.0, max(0.0, unseen) / (files - hits)) if hits < files else 0.0
    return np.where(seen > 0, 1.0, share)


def _by_chance(files: int, rows: float) -> float:
    """In how many files so many rows are that are spread by chance."""
    return float(files * (1.0 - (1.0 - 1.0 / files) ** rows))


def _are_together(files: int, total: int, hits: int, *, is_ordered: bool) -> bool:
    """Whether rows are in fewer files than chance would put them."""
    if total <= _FEW:
        return is_ordered or hits < total
    empty, empty_twice = (1.0 - 1.0 / files) ** total, (1.0 - 2.0 / files) ** total
    variance = files * (files - 1) * empty_twice + files * empty - (files * empty) ** 2
    return hits < _by_chance(files, total) - _DEVIATIONS * float(np.sqrt(max(0.0, variance)))


def _hidden(seen: npt.NDArray[np.int64], total: int, unsampled: float) -> float:
    """How many files without a sampled row that passes have one among the rows that were not sampled."""
    single, double = int((seen == 1).sum()), int((seen == 2).sum())
    hidden = single * (single - 1) / (2 * (double + 1))
    if not hidden:
        return 0.0
    return float(hidden * (1.0 - (1.0 - single / (total * hidden + single)) ** unsampled))
