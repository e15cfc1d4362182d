"""Random subsets: the numbers of NumPy's generator, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.kernels import subsets
from mklopt.kernels.subsets import draw_subsets


def one_by_one(M, d, seed):
    """As version 0.1 drew them."""
    rng = np.random.default_rng(seed)
    columns, widths, sigmas = [], [], []
    for _ in range(M):
        size = int(rng.integers(1, d + 1))
        columns += np.sort(rng.permutation(d)[:size]).tolist()
        widths.append(size)
        sigmas.append(5 * float(rng.chisquare(1)) + 0.1)
    return columns, widths, sigmas


@pytest.mark.parametrize("worth", [0, 10**9], ids=["compiled", "plain"])
@pytest.mark.parametrize("M, d, seed", [(3000, 60, 0), (500, 7, 5), (40, 1, 2)])
def test_they_are_those_of_version_0_1(M, d, seed, worth, monkeypatch):
    monkeypatch.setattr(subsets, "WORTH", worth)
    for found, expected in zip(draw_subsets(M, d, seed), one_by_one(M, d, seed)):
        np.testing.assert_array_equal(found, expected)


def test_parts_change_nothing(monkeypatch):
    whole = draw_subsets(200, 9, 1)
    monkeypatch.setattr(subsets, "TOGETHER", 50)
    for found, expected in zip(draw_subsets(200, 9, 1), whole):
        np.testing.assert_array_equal(found, expected)


def test_more_columns_than_expected(monkeypatch):
    whole = draw_subsets(200, 9, 1)
    monkeypatch.setattr(subsets, "SURE", -8.0)  # too little memory at first
    for found, expected in zip(draw_subsets(200, 9, 1), whole):
        np.testing.assert_array_equal(found, expected)
