"""Steps with an oracle: the state after a step, OBSCURE, and pairwise steps."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import structured
from mklopt.structured.oracle_steps import Bounds, State, obscure, pairwise
from tests.unit.structured.samples import optimum, small


def test_what_a_step_keeps_up_to_date_is_what_follows_from_its_outputs():
    problem = small()
    state = State(problem)
    obscure(state, (2, 0), np.random.default_rng(0))
    kept = (state.A.copy(), state.a.copy(), state.KA.copy(), state.squares.copy())
    obscure(state, (0, 3), np.random.default_rng(1))
    A, KA = state.A, problem.grams.matvec(state.A)
    np.testing.assert_allclose(state.KA, KA, atol=1e-12)
    quad = problem.grams.quad(A)
    np.testing.assert_allclose(state.squares, [*quad, state.a @ state.a], atol=1e-12)
    assert not np.allclose(kept[0], A)
    shares = [
        {y: s * state.scale / 9 for y, s in some.items()} for some in state.shares
    ]
    again = problem.dual_point(shares)  # 9: no sample may exceed a whole
    np.testing.assert_allclose(9 * again[0], A, atol=1e-12)
    np.testing.assert_allclose(9 * again[1], state.a, atol=1e-12)


def test_obscure_comes_close_by_itself_and_closer_with_more_epochs():
    few, many = (
        np.mean([structured.solve(small(), epochs=(1, T), passes=0, seed=s).online
                 for s in range(5)])
        for T in (2, 60)
    )  # fmt: skip
    assert optimum() <= many < few
    assert many < 1.05 * optimum()


def test_the_dual_rises_in_every_pass():
    result = structured.solve(small(), tol=1e-9, passes=30)
    duals = [bounds.dual for bounds in result.history]
    assert len(duals) == 31 and np.all(np.diff(duals) >= -1e-13)


def test_a_pairwise_pass_raises_the_dual_and_keeps_distributions():
    state, rng = State(small()), np.random.default_rng(0)
    before = state.bounds().dual
    pairwise(state, rng)
    assert before < state.bounds().dual <= optimum() + 1e-9
    for some in state.shares:
        assert min(some.values()) >= 0 and sum(some.values()) <= 1 + 1e-12


def test_bounds_have_a_relative_gap():
    assert Bounds(2.0, 1.5).relative_gap == pytest.approx(0.25)
    state = State(small())  # w = 0: every sample costs its largest Δ, and Ω = 0
    assert state.bounds() == (0.7 * 4 * 3, 0.0)
