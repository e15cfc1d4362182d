"""Dual coordinate ascent: each step is the best one, and where epochs pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.solvers.machines import coordinate_ascent
from mklopt.solvers.machines.coordinate_ascent import beginning, opening
from mklopt.solvers.machines.dual_terms import terms_of
from mklopt.solvers.machines.factory import machine_for

rng = np.random.default_rng(3)
N, R = 6000, 6
FACTOR = rng.normal(size=(N, R)) / np.sqrt(1 + np.arange(R))
FACTOR[5] = 0.0  # a sample that says nothing
Y = np.sign(FACTOR[:, 0] + 0.5 * rng.normal(size=N))
REAL = FACTOR[:, 0] + 0.3 * rng.normal(size=N)
SMALL_C, LARGE_C = 3e-3, 30.0
THETA = np.array([0.7, 0.0, 1.6])


def problem(loss: Any = "hinge", C: float = SMALL_C, dtype: str = "float64") -> Problem:
    grams = GramStack.from_factors([FACTOR], dtype=dtype)
    y = REAL if loss in ("eps_insensitive", "huber", "quantile") else Y
    return Problem(grams, y, loss, FixedWeights((1.0,)), C, bias=False)


def dual(p: Problem, alpha: np.ndarray, F: np.ndarray, scale: np.ndarray) -> float:
    """−ΣC V*(−α/C) − ½ Σ_j scale_j (Fᵀα)_j²."""
    return p.dual_loss(alpha) - 0.5 * float(scale @ (F.T @ alpha) ** 2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive", "huber", "quantile"])
def test_every_step_is_the_best_one(loss, dtype):
    factors = [FACTOR[:, :2], FACTOR[:, 2:5], FACTOR[:, 5:]]
    p = problem(loss, C=0.4, dtype=dtype)
    used = GramStack.from_factors(factors, dtype=dtype)
    used = used.subset(np.flatnonzero(THETA))
    panel, root = used.panel(), np.sqrt(THETA[np.flatnonzero(THETA)])[used.owner]
    F = np.asarray(panel.F, float)[:, panel.places]
    at = beginning(panel, root, terms_of(p))
    total = 0.0
    for i in [3, 8, 5, 3, 11, 8, 3, 40]:
        total += panel.ascend(at, np.array([i]))[0]
        low, high = at.form[3:, i]
        values = []
        for a in np.linspace(low, high, 401):
            other = at.alpha.copy()
            other[i] = a
            values.append(dual(p, other, F, root**2))
        now = dual(p, at.alpha, F, root**2)
        assert now >= max(values) - 1e-12 and low <= at.alpha[i] <= high
        assert total == pytest.approx(now, rel=1e-9, abs=1e-12)
    whole = np.zeros(panel.width)
    whole[panel.places] = root**2 * (F.T @ at.alpha)
    np.testing.assert_allclose(at.w, whole, atol=1e-12)
    assert at.squares[8] == pytest.approx(F[8] ** 2 @ root**2)
    assert at.squares[7] == -1


def test_steps_that_end_at_a_bound_are_counted():
    p = problem()
    panel = p.grams.panel()
    at = beginning(panel, np.ones(R), terms_of(p))
    bounded = panel.ascend(at, np.arange(100))[1]
    ends = (at.alpha[:100] == at.form[3, :100]) | (at.alpha[:100] == at.form[4, :100])
    assert bounded == np.count_nonzero(ends) > 70


def test_a_few_epochs_leave_a_small_gap_where_c_is_small():
    p = problem()
    panel = p.grams.panel()
    found = opening(panel, np.ones(R), terms_of(p))
    assert found is not None and 2 <= found[1] <= coordinate_ascent.MAX_EPOCHS
    again = opening(panel, np.ones(R), terms_of(p))
    assert again is not None
    np.testing.assert_array_equal(found[0], again[0])
    w = FACTOR.T @ found[0]
    primal = 0.5 * w @ w + float(p.costs @ p.loss.value(FACTOR @ w, p.y))
    assert primal - dual(p, found[0], FACTOR, np.ones(R)) <= 1e-2 * primal


def test_it_gives_up_after_the_first_steps_where_c_is_large(monkeypatch):
    p, rows = problem(C=LARGE_C), []
    panel = p.grams.panel()
    ascend = type(panel).ascend

    def counted(self, at, some):
        rows.append(len(some))
        return ascend(self, at, some)

    monkeypatch.setattr(type(panel), "ascend", counted)
    assert opening(panel, np.ones(R), terms_of(p)) is None
    assert rows == [N // coordinate_ascent.FIRST_STEPS]


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_an_svm_begins_with_it_only_without_a_bias_and_at_hand(monkeypatch, bias, here):
    calls: list[int] = []
    real = coordinate_ascent.opening
    monkeypatch.setattr(
        "mklopt.solvers.machines.feature_newton.opening",
        lambda *given: (calls.append(1), real(*given))[1],  # type: ignore[func-returns-value]
    )
    monkeypatch.setattr("mklopt.grams.factors.Panel.here", here)
    monkeypatch.setattr("mklopt.grams.stack.FEATURE_SAMPLES", 50)
    p = problem().with_(bias=bias)
    machine: Any = machine_for(p)
    machine.tol = 1e-7 * float(np.sum(p.costs))
    machine.solve(np.ones(1))
    assert machine.gap <= machine.tol
    assert bool(calls) == (here and not bias)


@pytest.mark.parametrize("C", [SMALL_C, LARGE_C])
@pytest.mark.parametrize("loss", ["hinge", "eps_insensitive", "quantile"])
def test_the_solution_is_that_of_newton_alone(monkeypatch, loss, C):
    monkeypatch.setattr("mklopt.grams.stack.FEATURE_SAMPLES", 50)
    p = problem(loss, C)
    found = solve(p, "analytic", tol=1e-6).certificate
    monkeypatch.setattr("mklopt.grams.factors.Panel.here", False)
    alone = solve(p, "analytic", tol=1e-6).certificate
    assert max(found.width, alone.width) <= 1e-6
    assert max(found.lower, alone.lower) <= min(found.upper, alone.upper)
