"""Compiled loops over stored kernels against NumPy, with all sizes of remainders."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams.loops import CACHED_LENGTH

rng = np.random.default_rng(7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_with_rows_too_long_for_the_first_cache(dtype):
    """Four rows at a time, and what is left of a tile one by one."""
    n = CACHED_LENGTH + 7
    K = rng.normal(size=(2, n, n))
    K = K + K.transpose(0, 2, 1) + 10 * n * np.eye(n)
    a, rounding = rng.normal(size=n), 1e-12 if dtype == "float64" else 1e-5
    got = GramStack(K, dtype=dtype).matvec(a)
    assert np.max(np.abs(got - K @ a)) <= rounding * np.max(np.abs(K @ a))
