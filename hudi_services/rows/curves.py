"""Space-filling curves: the place of each grid point on a line, so that neighbours on the line are near in all axes.

Coordinates are whole numbers below 2**bits, one array for each axis; places lie below 2**(bits * axes), at most 2**63.
Sources: G. M. Morton, "A computer oriented geodetic data base" (1966); J. Skilling, "Programming the Hilbert curve",
AIP Conference Proceedings 707 (2004), AxestoTranspose.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Coordinates = npt.NDArray[np.int64]


def z_order(axes: Sequence[Coordinates], bits: int) -> Coordinates:
    """Places on the Z curve: the bits of all axes in turn, from the highest bit; the first axis comes first."""
    places = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            places <<= 1
            places |= (axis >> bit) & 1
    return places


def hilbert(axes: Sequence[Coordinates], bits: int) -> Coordinates:
    """Places on the Hilbert curve: unlike on the Z curve, consecutive places differ by one in one axis."""
    axes = [axis.copy() for axis in axes]
    first = axes[0]
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for axis in axes:
            # Where the bit is set, invert the lower bits of the first axis; elsewhere swap them with this axis's.
            is_set = -((axis >> bit) & 1)
            swapped = (first ^ axis) & below & ~is_set
            first ^= swapped | (below & is_set)
            if axis is not first:
                axis ^= swapped
    for axis, before in zip(axes[1:], axes, strict=False):
        axis ^= before
    turned = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        turned ^= -((axes[-1] >> bit) & 1) & ((1 << bit) - 1)
    for axis in axes:
        axis ^= turned
    return z_order(axes, bits)
