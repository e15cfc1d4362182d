"""The problem on a part of the samples: balanced, of the same size, and near it."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt.formulations import BlockL1, GroupLasso
from mklopt.solvers.steps import fewer_samples
from mklopt.solvers.steps.fewer_samples import on_all, on_samples, samples_of


@pytest.fixture(autouse=True)
def small_is_worth_it(monkeypatch):
    monkeypatch.setattr(fewer_samples, "WORTH", 0)


def problem_of(n=480, loss="hinge", formulation=None, y=None, **more):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 8))
    K = [np.exp(-(np.subtract.outer(x, x) ** 2)) for x in X.T]
    labels = np.sign(X[:, 0] + 0.3 * rng.normal(size=n)) if y is None else y
    return mklopt.Problem(np.array(K), labels, loss, formulation or BlockL1(), **more)


@pytest.mark.parametrize("part", [4, 2])
def test_the_last_samples_are_not_copied(part):
    problem = problem_of()
    which = samples_of(problem, part)
    np.testing.assert_array_equal(which, np.arange(480)[-480 // part :])
    small = on_samples(problem, which).grams
    assert np.shares_memory(small._store.P, problem.grams._store.P)
    assert small.samples(np.arange(0, 16)).n == 16


def test_a_quarter_of_sorted_samples_in_blocks_of_neighbours():
    which = samples_of(problem_of(y=np.repeat([1.0, -1.0], 240)))
    assert which is not None and len(which) == 120
    assert which[:10].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 32, 33]


def test_another_part_of_sorted_samples():
    which = samples_of(problem_of(n=960, y=np.repeat([1.0, -1.0], 480)), 8)
    assert which is not None and len(which) == 120
    assert which[:10].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 64, 65]


def test_samples_sorted_by_a_number_are_taken_in_blocks():
    y = np.linspace(-1, 1, 480)
    which = samples_of(problem_of(y=y, loss="squared"))
    assert which is not None and abs(np.mean(y[which])) < 0.1
    spread = np.where(np.arange(480) < 360, 0.1, 1.0) * (-1.0) ** np.arange(480)
    which = samples_of(problem_of(y=spread, loss="squared"))
    assert which is not None and which[0] == 0  # the last ones are larger than others


def test_sorted_labels_are_taken_from_both_classes():
    problem = problem_of(y=np.repeat([1.0, -1.0], 240))
    which = samples_of(problem)
    assert which is not None
    assert abs(np.mean(problem.y[which])) < 0.1


def test_where_it_is_not_worth_while_there_is_none(monkeypatch):
    assert samples_of(problem_of(n=200)) is None  # 50 samples say nothing
    few = np.full(480, -1.0)
    few[8:32] = 1.0  # a class that the blocks miss
    assert samples_of(problem_of(y=few)) is None
    y = np.arange(480) % 3
    assert samples_of(problem_of(y=y, loss="multiclass_hinge", bias=False)) is None
    monkeypatch.setattr(fewer_samples, "WORTH", 8 * 480**2 + 1)
    assert samples_of(problem_of()) is None
    assert samples_of(problem_of(n=3)) is None  # without a mean of no samples


def test_the_loss_keeps_its_size_and_alpha_becomes_feasible():
    problem = problem_of(C=np.linspace(1, 2, 480))
    which = samples_of(problem)
    assert which is not None
    small = on_samples(problem, which)
    assert small.grams.n == 120 and small.grams.M == 8
    assert np.sum(small.costs) == pytest.approx(np.sum(problem.costs), rel=0.1)
    alpha = small.feasible(small.costs * small.y)
    whole = on_all(problem, which, alpha)
    np.testing.assert_allclose(problem.feasible(whole), whole)
    assert np.count_nonzero(whole) <= 120


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("formulation", [BlockL1(), GroupLasso()], ids=repr)
def test_the_solver_begins_with_it_and_ends_at_the_same_optimum(
    monkeypatch, loss, formulation
):
    problem = problem_of(loss=loss, formulation=formulation)
    begun = mklopt.solve(problem, "active", tol=1e-7)
    assert begun.converged
    monkeypatch.setattr(fewer_samples, "WORTH", np.inf)
    plain = mklopt.solve(problem, "active", tol=1e-7)
    assert begun.certificate.lower <= plain.certificate.upper
    assert plain.certificate.lower <= begun.certificate.upper
    first = begun.trace.gap[0] if hasattr(begun.trace, "gap") else 0.0
    assert first < 0.5


def test_a_small_problem_that_is_large_is_not_copied(monkeypatch):
    problem = problem_of()
    which = samples_of(problem)
    assert which is not None
    size = problem.grams.M * len(which) * (len(which) + 1) // 2 * 8
    monkeypatch.setattr(fewer_samples, "MOST_BYTES", size)
    assert samples_of(problem) is not None
    monkeypatch.setattr(fewer_samples, "MOST_BYTES", size - 1)
    assert samples_of(problem) is None
