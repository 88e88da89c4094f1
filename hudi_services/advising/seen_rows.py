"""From a sample of rows to the files: which file probably has a row that a test asks for.

A sample of n of N rows misses rows, so that the files of those it has seen are a lower bound. How many files with such
rows are unseen is the problem of unseen species: a species is a file, and an individual a row that passes the test.
Sources: A. Chao, "Nonparametric estimation of the number of classes in a population" (1984), in its bias-corrected form;
R. K. Colwell et al., "Models and estimators linking individual-based and sample-based rarefaction, extrapolation and
comparison of assemblages" (2012), for how many of the unseen the rows outside of the sample would show.
"""

import numpy as np
import numpy.typing as npt

from .predicates import Chances

_FEW = 2
"""So few rows say nothing of whether they are together or apart."""
_SPREAD = 0.9
"""Rows in at least this share of the files that they would be in by chance count as spread by chance."""


def chances_of_files(seen: npt.NDArray[np.int64], rows: float, sampled: int, *, is_there: bool) -> Chances:
    """The chance of each file to have a row that passes a test; `seen` is how many the sample has of each file.

    The sample has `sampled` of the `rows` of all these files. `is_there`: whether statistics allow that any of them has
    such a row.
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
    unseen = min(float(files - hits), _unseen(seen, total, hits, unsampled))
    share = unseen / (files - hits) if hits < files else 0.0
    return np.where(seen > 0, 1.0, share)


def _unseen(seen: npt.NDArray[np.int64], total: int, hits: int, unsampled: float) -> float:
    """How many files without a sampled row that passes have one among the rows that were not sampled."""
    files = len(seen)
    single, double = int((seen == 1).sum()), int((seen == 2).sum())
    hidden = single * (single - 1) / (2 * (double + 1))
    shown = 0.0
    if hidden:
        shown = hidden * (1.0 - (1.0 - single / (total * hidden + single)) ** unsampled)
    by_chance = files * (1.0 - (1.0 - 1.0 / files) ** total)
    spread = files * (1.0 - (1.0 - 1.0 / files) ** (total + unsampled)) - hits
    if total <= _FEW:
        return (shown + spread) / 2 if hits == total and total > 1 else shown
    return max(shown, spread) if hits >= _SPREAD * by_chance and single else shown
