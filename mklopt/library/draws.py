"""Random numbers with the same bits on every machine and with every NumPy.

Only raw 64-bit integers of PCG64 are drawn: NumPy promises that their stream does not
change, and promises it of nothing else. All that follows is arithmetic of integers:

    normal   the sum of twelve 16-bit integers, minus its mean: variance 1 up to 2^-32,
             rounded down to multiples of 2^-GRID; all values lie between −6 and 6

Products and sums of such numbers are exact in float64 up to 2^53, in any order.
"""

import numpy as np

from ..util.arrays import Array

GRID = 10  # points are multiples of 2^-GRID
PIECES = np.arange(0, 64, 16, dtype=np.uint64)  # where a raw integer is cut


class Draws:
    """A stream of exact random numbers.

    seed: of PCG64
    """

    def __init__(self, seed: int):
        self._bits = np.random.PCG64(seed)

    def raw(self, count: int) -> Array:
        """So many integers of 64 bits."""
        return np.asarray(self._bits.random_raw(count), np.uint64)

    def below(self, top: int, *shape: int) -> Array:
        """Integers 0 … top − 1; for top far below 2^64 they are uniform."""
        drawn = self.raw(int(np.prod(shape))) % np.uint64(top)
        return drawn.astype(np.int64).reshape(shape)

    def normal(self, *shape: int, grid: int = GRID) -> Array:
        """Nearly standard normal numbers, multiples of 2^-grid."""
        drawn = self.raw(3 * int(np.prod(shape)))
        pieces = (drawn[:, None] >> PIECES) & np.uint64(0xFFFF)
        sums = pieces.astype(np.int64).reshape(-1, 12).sum(axis=1)
        centred = 2 * sums - 12 * 0xFFFF  # in units of 2^-17
        return (centred >> (17 - grid)).reshape(shape) * 2.0**-grid

    def order(self, n: int) -> Array:
        """A permutation of 0 … n − 1."""
        return np.argsort(self.raw(n), kind="stable")

    def signs(self, n: int) -> Array:
        """±1, equally often; one +1 more for odd n."""
        return np.where(self.order(n) % 2 == 0, 1.0, -1.0)


def on_grid(numbers: Array | float, grid: int = GRID) -> Array:
    """The nearest multiples of 2^-grid: last bits that differ by machine are gone."""
    return np.rint(np.asarray(numbers, float) * 2.0**grid) * 2.0**-grid
