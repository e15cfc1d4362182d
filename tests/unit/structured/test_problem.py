"""Structured losses: the oracle, bounds against other solvers, and a worked example."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mklopt import Problem, StructuredProblem, kernels, reference, structured
from mklopt.formulations import BlockNorm
from mklopt.structured.chains import Chain
from mklopt.structured.oracle_steps import State, obscure
from mklopt.structured.problem import certify


def sequences(count, lengths, labels, seed, noise=1.0):
    """A Markov chain that mostly counts up, seen through noise in one of three views"""
    rng = np.random.default_rng(seed)
    y: list[int] = []
    parts = []
    for T in rng.integers(lengths[0], lengths[1] + 1, size=count):
        state = int(rng.integers(labels))
        parts.append(np.arange(len(y), len(y) + T))
        for _ in range(T):
            y.append(state)
            state = (state + 1 if rng.random() < 0.8 else rng.integers(labels)) % labels
    views = {
        "signal": 2 * np.eye(labels)[y] + noise * rng.normal(size=(len(y), labels)),
        "noise": rng.normal(size=(len(y), 3)),
        "more noise": rng.normal(size=(len(y), 3)),
    }
    return views, np.array(y), parts


@lru_cache
def small(q=1.5):
    """Four sequences of three parts, two labels: eight outputs each."""
    views, y, parts = sequences(4, (3, 3), 2, seed=0)
    grams = kernels.views(kernels.gaussians("mean"), views).fit(views).grams()
    return StructuredProblem(grams, y, parts, Chain(2), q=q, C=0.7)


@lru_cache
def optimum(q=1.5) -> float:
    """The same problem as one conic program with a constraint for each output."""
    import cvxpy as cp

    problem = small(q)
    n, M, slack = problem.grams.n, problem.grams.M, cp.Variable(len(problem.parts))
    factors = [np.linalg.cholesky(problem.grams.kernel(m)) for m in range(M)]
    W, w = [cp.Variable((n, 2)) for _ in range(M)], cp.Variable(4)
    F = sum(L @ V for L, V in zip(factors, W))
    constraints = []
    for i, part in enumerate(problem.parts):
        truth = problem.truth(i)
        for y in np.ndindex(2, 2, 2):
            f = sum(F[t, a] - F[t, b] for t, a, b in zip(part, y, truth))
            for z, sign in ((y, 1), (truth, -1)):
                f = f + sum(sign * w[2 * a + b] for a, b in pairwise(z))
            wrong = sum(a != b for a, b in zip(y, truth))
            constraints.append(slack[i] >= wrong + f)
    u = cp.hstack([*(cp.norm(V, "fro") for V in W), cp.norm(w)])
    penalty = 0.5 * cp.square(cp.pnorm(u, q, approx=False))
    objective = cp.Minimize(problem.C * cp.sum(slack) + penalty)
    return float(cp.Problem(objective, constraints).solve(solver="CLARABEL"))


# ---- oracle and bounds ---------------------------------------------------------------


@pytest.mark.parametrize("T", [1, 2, 5])
def test_viterbi_finds_what_the_list_of_all_outputs_has_best(T):
    rng, chain = np.random.default_rng(3), Chain(3)
    Z = chain.outputs(T)
    assert Z is not None and len({tuple(z) for z in Z}) == 3**T
    for truth in (None, rng.integers(3, size=T)):
        scores, weights = rng.normal(size=(T, 3)), rng.normal(size=9)
        value = scores[np.arange(T), Z].sum(axis=1) + chain.features(Z) @ weights
        if truth is not None:
            value = value + chain.delta(truth, Z)
        found = chain.argmax(scores, weights, truth)
        np.testing.assert_array_equal(found, Z[np.argmax(value)])
    assert Chain(3, most=3**T - 1).outputs(T) is None


@pytest.mark.parametrize("q", [1.2, 1.5, 2.0])
def test_the_bounds_close_on_a_conic_program(q):
    result = structured.solve(small(q), tol=1e-6, passes=500)
    found, best = result.certificate, optimum(q)
    assert found is not None and 0 <= found.relative_gap <= 1.1e-6
    assert found.dual - 1e-7 * best <= best <= found.primal + 1e-7 * best
    assert str(result).startswith(f"{found.dual:.8g} ≤ f* ≤ ")


def test_samples_of_one_part_are_the_multi_class_hinge():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(25, 3)), np.arange(25) % 3
    grams = kernels.gaussians([1.0, 3.0]).fit(X).grams()
    one = [[i] for i in range(25)]
    problem = StructuredProblem(grams, y, one, Chain(3), q=1.4, C=2.0)
    found = structured.solve(problem, tol=1e-4, passes=500).certificate
    other = Problem(grams, y, "multiclass_hinge", BlockNorm(1.4), 2.0, bias=False)
    interval = reference.solve(other, tol=1e-6)
    assert found is not None and found.relative_gap <= 1.1e-4
    assert found.dual <= interval.upper and interval.lower <= found.primal


def test_anybodys_distributions_and_weights_enclose_the_optimum():
    problem, best, rng = small(), optimum(), np.random.default_rng(8)
    for scale in (0.0, 0.2, 1.0):
        outputs = []
        for _ in problem.parts:
            p = scale * rng.dirichlet(np.full(8, 0.3))
            outputs.append(dict(zip(np.ndindex(2, 2, 2), p.tolist())))
        bounds = certify(problem, outputs, rng.uniform(size=4))
        assert bounds.dual <= best <= bounds.primal


class Liar(Chain):
    """An oracle that always claims that the last label wins."""

    def argmax(self, scores, weights, truth):
        return np.full(len(scores), self.labels - 1)


def test_a_lying_oracle_is_not_believed():
    given = small()
    problem = StructuredProblem(
        given.grams, given.y, given.parts, Liar(2), q=1.5, C=0.7
    )
    result = structured.solve(problem, passes=20)
    assert result.certificate is not None
    assert result.history[-1].primal < optimum() - 1e-3  # what the oracle makes of it
    assert result.certificate.dual <= optimum() <= result.certificate.primal


def test_outputs_that_cannot_be_listed_leave_the_result_uncertified():
    given = small()
    problem = StructuredProblem(
        given.grams, given.y, given.parts, Chain(2, most=7), q=1.5, C=0.7
    )
    result = structured.solve(problem, tol=1e-4, passes=500)
    assert result.certificate is None
    assert "no upper bound is certified" in str(result)
    assert result.history[-1].dual <= optimum() + 1e-8
    with pytest.raises(ValueError, match="too many to list"):
        certify(problem, result.outputs, result.weights)


# ---- the algorithm -------------------------------------------------------------------


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


# ---- the worked example --------------------------------------------------------------


def test_sequences_are_labelled_better_with_their_neighbours():
    views, y, parts = sequences(25, (5, 7), 3, seed=1)
    fitted = kernels.views(kernels.gaussians("mean"), views).fit(views)
    problem = StructuredProblem(fitted.lazy(), y, parts, Chain(3), q=1.2, C=1.0)
    result = structured.solve(problem, tol=0.05)
    assert result.certificate is not None and result.certificate.relative_gap <= 0.05
    assert result.norms[0] > 2 * max(result.norms[1:3])  # one kernel is informative
    new, truth, where = sequences(60, (5, 7), 3, seed=2)
    cross = fitted.cross(new)
    error = np.mean(np.concatenate(result.predict(cross, where)) != truth)
    alone = np.tensordot(result.weights[:-1], cross, 1) @ result.coefficients
    assert error < 0.8 * np.mean(np.argmax(alone, axis=1) != truth)


def test_without_anything_to_learn_w_is_zero():
    grams = kernels.linear().fit(np.ones((2, 1))).grams()
    problem = StructuredProblem(grams, np.zeros(2), [[0, 1]], Chain(1))
    result = structured.solve(problem)
    assert result.certificate == (0.0, 0.0) and not np.any(result.norms)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"y": [0, 1]}, "y must be 12 labels among 0 … 1"),
        ({"y": np.full(12, 2)}, "among 0 … 1, one per part"),
        ({"parts": [range(11)]}, "parts must name each of 0 … 11"),
        ({"parts": [range(12), [3]]}, "in just one sample"),
        ({"q": 1.0}, "need 1 < q ≤ 2"),
        ({"C": 0.0}, "C > 0"),
    ],
)
def test_wrong_problems_get_one_clear_sentence(change, words):
    given: dict[str, Any] = dict(vars(small()), **change)
    with pytest.raises(ValueError, match=words):
        StructuredProblem(**given)


class Wrong(Chain):
    def delta(self, y, Z):
        return 1 + super().delta(y, Z)


class Short(Chain):
    def argmax(self, scores, weights, truth):
        return np.zeros(len(scores) - 1)


def test_other_wrong_input():
    with pytest.raises(ValueError, match=r"found \(0, 0\) for sample 0; expected 3"):
        structured.solve(StructuredProblem(**dict(vars(small()), structure=Short(2))))
    given = dict(vars(small()), structure=Wrong(2))
    with pytest.raises(ValueError, match=r"Δ\(y, y\) must be 0"):
        StructuredProblem(**given)
    wrong: Any = "problem"
    with pytest.raises(ValueError, match="solve takes a StructuredProblem first, got"):
        structured.solve(wrong)
    outputs: Any = [{(0, 0, 0): 0.7, (1, 0, 0): 0.4}, {}, {}, {}]
    with pytest.raises(ValueError, match="sample 0 has is no distribution"):
        certify(small(), outputs, np.ones(4))
    result = structured.solve(small(), passes=0)
    with pytest.raises(ValueError, match=r"shape \(3, 2, 5\); expected \(3, …, 12\)"):
        result.predict(np.ones((3, 2, 5)), [[0, 1]])
