"""The compiled prox of norms of norms: stationarity for every pair of exponents."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from mklopt.formulations.mixed_norm import VSKL, Composite
from mklopt.formulations.mixed_prox import (
    multiplier,
    norm_at,
    power,
    prox_of_groups,
    solve_group,
)
from mklopt.formulations.norms import norm, norm_gradient

INF = math.inf
ENDS = np.array([0, 2, 5, 6])
RNG = np.random.default_rng(1)
U = RNG.uniform(0.5, 3.0, 6)
STEP = RNG.uniform(0.1, 0.6, 6)
GROUPS = [range(a, b) for a, b in pairwise(ENDS)]


PAIRS = [(1, 1.5), (1, 2), (1, 5), (1.5, 1), (1.4, 1.8), (2, 2)]


@pytest.mark.parametrize("r, s", PAIRS)
def test_prox_is_stationary(r, s):
    z = np.empty(6)
    prox_of_groups(U, STEP, ENDS, float(r), float(s), z)
    R = np.array([norm(z[group], r) for group in GROUPS])
    outer = norm(R, s) * norm_gradient(R, s)
    for group, slope, total in zip(GROUPS, outer, R):
        if total == 0:
            continue
        inner = slope * norm_gradient(z[group], r)
        pull = (U[group] - z[group]) / STEP[group]
        used = z[group] > 0
        assert pull[used] == pytest.approx(inner[used], rel=1e-9)
        assert np.all(pull[~used] <= inner[~used] * (1 + 1e-9))
    assert np.any(z > 0)


def test_the_largest_groups_are_cut_to_one_sum():
    z = np.empty(6)
    prox_of_groups(U, STEP, ENDS, 1.0, INF, z)
    sums = np.array([z[group].sum() for group in GROUPS])
    cut = np.array([np.any(z[g] < U[g]) for g in GROUPS])
    assert sums[cut] == pytest.approx(np.max(sums), rel=1e-9)
    slopes = [np.max((U[g] - z[g]) / STEP[g]) for g in GROUPS]
    assert np.sum(slopes) == pytest.approx(np.max(sums), rel=1e-9)  # Σλ = N


def test_zero_stays_zero():
    z = np.ones(6)
    prox_of_groups(np.zeros(6), STEP, ENDS, 1.5, 1.2, z)
    assert not np.any(z)


def test_the_parts_solve_their_equations():
    group, step = U[:3].copy(), STEP[:3].copy()
    lam = multiplier(group, step, 1.5, 2.0, 100.0)
    total = np.maximum(group - step * lam, 0).sum()
    assert lam == pytest.approx(2.0**0.5 * total**0.5, rel=1e-12)
    z = power(2.0, 0.7, 1.4)
    assert z + 0.7 * z**0.4 == pytest.approx(2.0, rel=1e-14)
    out = np.empty(3)
    size = norm_at(group, step, 1.4, 0.7, out)
    assert size == pytest.approx(norm(out, 1.4))
    assert out + step * 0.7 * out**0.4 == pytest.approx(group)
    R = solve_group(group, step, 1.4, 1.8, 2.0, out)
    assert norm(out, 1.4) == pytest.approx(R, rel=1e-10)
    mu = 2.0**0.2 * R**0.4
    assert out + step * mu * out**0.4 == pytest.approx(group, rel=1e-9)


def mixed(r, s):
    groups = [[0, 1], [2, 3, 4], [5]]
    return VSKL(groups, INF) if s == INF else Composite(groups, r, s)


@pytest.mark.parametrize("r, s", [(2.0, 1.7), (1.0, 1.5), (1.5, 1.0), (1.0, INF)])
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e308])
def test_a_multiple_of_u_gives_that_multiple_without_overflow(r, s, size):
    formulation = mixed(r, s)
    u = np.array([1.0, 0.3, 0.9, 0.2, 0.5, 0.1])
    plain = formulation.prox(u, 0.7)
    np.testing.assert_allclose(formulation.prox(size * u, 0.7) / size, plain, rtol=1e-9)


@pytest.mark.parametrize("r, s", [(2.0, 1.7), (1.0, 1.5), (1.5, 1.0), (1.0, INF)])
def test_what_is_infinite_has_no_prox_and_does_not_hang(r, s):
    z = mixed(r, s).prox(np.array([1.0, np.inf, 1.0, 0.0, 0.0, 0.0]), 0.7)
    assert np.all(np.isnan(z))
