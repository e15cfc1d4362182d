"""Our exp against 40 digits: over its whole range, at its ends, in every place."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numba import njit

from mklopt.util.exponential import LOWEST, exp, exponentials

rng = np.random.default_rng(3)
SMALLEST_NORMAL, SMALLEST = 2.0**-1022, 2.0**-1074


def values(x):
    out = np.array(x, float)
    exponentials(out)
    return out


def exact(x):
    with mpmath.workdps(40):
        return [mpmath.exp(mpmath.mpf(float(each))) for each in x]


def around_ends_of_reduction():
    """x where round(x/ln 2) changes, and their neighbours: |r| is largest there."""
    ends = -(np.arange(1020) + 0.5) * np.log(2.0)
    return np.concatenate([ends, np.nextafter(ends, 0.0), np.nextafter(ends, -np.inf)])


@pytest.mark.parametrize(
    "x",
    [
        -rng.uniform(0, 1, 3000),
        -rng.uniform(0, 708.3, 3000),
        -(10.0 ** rng.uniform(-320, 2.85, 3000)),
        around_ends_of_reduction(),
    ],
    ids=["near 0", "all", "all sizes", "ends"],
)
def test_normal_results_are_right_to_the_last_bit_but_one(x):
    x = x[x > np.log(SMALLEST_NORMAL)]
    worst = max(abs(mpmath.mpf(a) / b - 1) for a, b in zip(values(x), exact(x)))
    assert worst <= 3e-16


def test_results_below_the_normal_numbers_are_right_to_their_last_bit():
    x = -rng.uniform(-np.log(SMALLEST_NORMAL), 746, 3000)
    found = values(x)
    worst = max(abs(mpmath.mpf(a) - b) for a, b in zip(found, exact(x)))
    assert worst <= 0.51 * SMALLEST
    assert np.any((found > 0) & (found < SMALLEST_NORMAL)) and np.any(found == 0)


def test_the_ends_of_the_range():
    huge = np.finfo(float).max
    x = [0.0, -0.0, -SMALLEST, -745.13, LOWEST, -746, -1e10, -huge, -np.inf]
    expected = [1.0, 1.0, 1.0, SMALLEST, 0.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(values(x), expected)
    assert np.isnan(values([np.nan])[0])


def test_it_does_not_increase_with_the_distance():
    x = -np.sort(np.concatenate([rng.uniform(0, 2, 5000), rng.uniform(0, 750, 5000)]))
    assert np.all(np.diff(values(x)) <= 0)


def test_an_entry_depends_neither_on_its_place_nor_on_the_length():
    x = -rng.uniform(0, 800, 67)
    whole = values(x)
    alone = np.concatenate([values([each]) for each in x])
    np.testing.assert_array_equal(alone, whole)
    for start in range(9):
        np.testing.assert_array_equal(values(x[start:]), whole[start:])


def test_loops_with_it_use_vectors_and_nothing_is_fused():
    @njit
    def loop(x):
        for i in range(len(x)):
            x[i] = exp(x[i])

    loop(np.zeros(3))
    (found,) = loop.inspect_asm().values()
    if "xmm" not in found:
        pytest.skip("not the assembler of an x86 processor")
    assert "mulpd" in found and "vfm" not in found
