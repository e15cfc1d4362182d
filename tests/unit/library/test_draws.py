"""Random numbers with known bits, exact on their grid."""

from __future__ import annotations

import hashlib

import numpy as np

from mklopt.library.draws import GRID, Draws, on_grid


def test_the_stream_has_the_bits_that_it_always_had():
    drawn = Draws(1).normal(40, 3)
    assert hashlib.sha256(drawn.astype("<f8").tobytes()).hexdigest()[:16] == NORMAL
    assert Draws(1).below(10, 8).tolist() == BELOW


NORMAL, BELOW = "e88ade93e981d0f3", [7, 6, 5, 8, 9, 4, 8, 0]


def test_normal_numbers_have_the_moments_and_lie_on_the_grid():
    x = Draws(2).normal(200_000)
    assert np.array_equal(x, on_grid(x, GRID)) and np.max(np.abs(x)) <= 6
    moments = [np.mean(x**k) for k in (1, 2, 3)]
    np.testing.assert_allclose(moments, [0, 1, 0], atol=0.02)
    assert abs(np.mean(x**4) - 2.9) < 0.05  # twelve uniforms: 3 − 6/(5·12)


def test_order_and_signs():
    draws = Draws(3)
    assert np.array_equal(np.sort(draws.order(100)), np.arange(100))
    assert not np.array_equal(draws.order(100), draws.order(100))
    assert draws.signs(100).sum() == 0 and draws.signs(101).sum() == 1


def test_rounding_to_a_grid_removes_last_bits():
    x = np.linspace(-3, 3, 50)
    assert np.array_equal(on_grid(x, 4), on_grid(x * (1 + 1e-15), 4))
    assert np.max(np.abs(on_grid(x, 4) - x)) <= 2.0**-5
