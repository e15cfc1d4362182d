"""Norms from few kernels: the same dual value, fewer kernels read."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt.certificates.certificate import certify, certify_again
from mklopt.certificates.pricing import _same, enough_norms, near_use
from mklopt.formulations import VSKL, BlockL1, ElasticNet, GroupLasso, LpNorm


@pytest.fixture(autouse=True)
def small_stacks_have_bounds(monkeypatch):
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)


def problem_of(formulation, loss="hinge", n=60, M=20):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, M))
    K = [np.exp(-(np.subtract.outer(x, x) ** 2)) for x in X.T]
    y = np.sign(X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n))
    return mklopt.Problem(np.array(K), y, loss, formulation, C=0.3)


SPARSE = [
    BlockL1(),
    GroupLasso(),
    ElasticNet(0.95),
    VSKL([range(10), range(10, 20)], 2.0),
]


@pytest.mark.parametrize("formulation", SPARSE, ids=lambda f: type(f).__name__)
def test_near_a_read_few_kernels_are_read_and_the_dual_value_is_the_same(formulation):
    problem = problem_of(formulation)
    grams, result = problem.grams, mklopt.solve(problem, tol=1e-8)
    alpha, theta = np.array(result.dual), result.weights
    near = problem.feasible(alpha * (1 + 1e-7 * np.cos(np.arange(len(alpha)))))
    grams.forget()
    grams.quad(alpha)
    before = grams.passes
    v = enough_norms(problem, near, theta)
    assert grams.passes - before < 0.8 * 0.51  # of a packed read
    true = grams.apart().norms(near)
    assert np.all(v >= true * (1 - 1e-12))
    used = theta > 0
    np.testing.assert_allclose(v[used], true[used], rtol=1e-14)
    conjugate = problem.formulation.conjugate
    scale = problem.formulation.feasible_scale(v)
    assert scale == pytest.approx(problem.formulation.feasible_scale(true), rel=1e-9)
    assert conjugate(scale * v) == pytest.approx(conjugate(scale * true), rel=1e-9)


@pytest.mark.parametrize("formulation", SPARSE, ids=lambda f: type(f).__name__)
def test_far_from_all_reads_kernels_that_matter_are_read(formulation):
    problem = problem_of(formulation)
    rng = np.random.default_rng(0)
    problem.grams.quad(1e-3 * rng.normal(size=60))  # says little about what follows
    theta = np.zeros(20)
    theta[3] = 1.0
    for _ in range(5):
        alpha = problem.feasible(rng.uniform(size=60) * problem.y)
        v = enough_norms(problem, alpha, theta)
        true = problem.grams.apart().norms(alpha)
        assert np.all(v >= true * (1 - 1e-12))
        scale = problem.formulation.feasible_scale(true)
        assert problem.formulation.feasible_scale(v) == pytest.approx(scale, rel=1e-9)


def test_going_back_to_an_earlier_point_ends():
    problem = problem_of(BlockL1())
    theta = np.zeros(20)
    theta[3] = 1.0
    one = problem.feasible(problem.y / 2)
    for alpha in (one, problem.feasible(one * np.linspace(1, 2, 60)), one, one):
        v = enough_norms(problem, alpha, theta)
        assert v[3] == pytest.approx(problem.grams.apart().norms(alpha)[3], rel=1e-12)


def test_where_all_kernels_matter_all_are_read():
    problem = problem_of(LpNorm(p=2))
    theta, alpha = np.ones(20), problem.feasible(problem.y / 2)
    assert near_use(problem, np.ones(20), theta).tolist() == list(range(20))
    v = enough_norms(problem, alpha, theta)
    np.testing.assert_array_equal(v, problem.grams.apart().norms(alpha))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize(
    "formulation", [*SPARSE, LpNorm(p=1.5)], ids=lambda f: type(f).__name__
)
def test_certified_again_is_what_a_fresh_certificate_says(formulation, loss):
    problem = problem_of(formulation, loss)
    result = mklopt.solve(problem, tol=1e-7)
    again = certify_again(problem, result.dual, result.weights)
    fresh = certify(problem, result.dual, result.weights)
    assert again.primal == pytest.approx(fresh.primal, rel=1e-12)
    assert again.dual == pytest.approx(fresh.dual, rel=1e-12)
    assert again.lower == pytest.approx(fresh.lower, rel=1e-10)
    assert again.upper == pytest.approx(fresh.upper, rel=1e-10)
    np.testing.assert_allclose(again.norms, fresh.norms, rtol=1e-12)
    assert (result.certificate.lower, result.certificate.upper) == pytest.approx(
        (fresh.lower, fresh.upper), rel=1e-10
    )


def test_a_point_that_no_kernel_was_read_at_is_read_whole():
    problem = problem_of(GroupLasso())
    alpha, theta = problem.feasible(problem.y / 3), np.eye(20)[0]
    again, fresh = certify_again(problem, alpha, theta), certify(problem, alpha, theta)
    assert again.lower == pytest.approx(fresh.lower, rel=1e-12)
    assert again.upper == pytest.approx(fresh.upper, rel=1e-12)


def test_a_bound_that_shrinks_the_dual_point_is_read():
    """Ω* of GroupLasso is 0 inside its domain: only the domain tells."""
    problem = problem_of(GroupLasso(), M=3)
    read = np.array([True, True, False])
    assert not _same(problem, np.array([0.9, 0.5, 2.0]), read)
    assert _same(problem, np.array([0.9, 0.5, 0.95]), read)
