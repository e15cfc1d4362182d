"""Structured losses: bounds against other solvers, a worked example, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import Problem, StructuredProblem, kernels, reference, structured
from mklopt.formulations import BlockNorm
from mklopt.structured.chains import Chain
from mklopt.structured.problem import certify
from tests.unit.structured.samples import optimum, sequences, small


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
