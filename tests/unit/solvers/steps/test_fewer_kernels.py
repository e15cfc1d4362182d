"""The problem on a part of the kernels: which ones, its C, and what it is good for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify
from mklopt import formulations as F
from mklopt.solvers.steps import fewer_kernels
from mklopt.solvers.steps.fewer_kernels import dual_scale, on_kernels, sizes, spread
from tests.problems import subset_gaussians

K, Y = subset_gaussians(80, 300)
GRAMS = GramStack(K)


def test_sizes_grow_up_to_a_part_of_all_kernels():
    assert sizes(16_000) == [] and sizes(100_000) == [12_500]
    assert sizes(10**6) == [15_625, 125_000]


def test_kernels_are_spread_evenly():
    found = spread(1000, 7)
    assert found[0] == 0 and np.all(np.abs(np.diff(found) - 1000 / 7) < 1)
    np.testing.assert_array_equal(spread(5, 5), np.arange(5))


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 4.0])
def test_the_scale_of_lp_norms(p):
    problem = Problem(GRAMS, Y, "hinge", F.LpNorm(p), 3.0)
    assert dual_scale(problem, 30) == pytest.approx(10 ** (1 - 1 / p))


def test_a_penalty_without_a_degree_keeps_its_scale():
    assert dual_scale(Problem(GRAMS, Y, "hinge", F.GroupLasso()), 30) == 1.0


@pytest.mark.parametrize("formulation", [F.LpNorm(2.0), F.Tikhonov(2.0, 0.5)], ids=repr)
def test_copies_of_kernels_have_the_solution_of_one_of_each(formulation):
    """Where all copies are the same, the smaller problem is the whole problem."""
    copies = GramStack(np.repeat(K[:20], 5, axis=0))
    problem = Problem(copies, Y, "hinge", formulation, 2.0)
    small = on_kernels(problem, spread(100, 20))
    found = mklopt.solve(small.problem, tol=1e-9)
    alpha = found.dual / small.scale
    theta = formulation.dual_weights(copies.norms(alpha))
    assert small.scale > 1
    assert certify(problem, dual=alpha, weights=theta).relative_gap < 1e-5


@pytest.fixture
def many(monkeypatch):
    """300 kernels are many."""
    monkeypatch.setattr(fewer_kernels, "FEWEST_KERNELS", 20)
    monkeypatch.setattr(fewer_kernels, "MANY", 160)
    monkeypatch.setattr("mklopt.certificates.pricing.MANY", 100)
    monkeypatch.setattr("mklopt.solvers.steps.working_set.MANY", 100)
    monkeypatch.setattr("mklopt.grams.norms.LARGEST_KEPT", 10_000)
    monkeypatch.setattr("mklopt.grams.norms.IN_A_PART", 4_000)
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
    for name in ("active", "analytic"):
        monkeypatch.setattr(sys.modules[f"mklopt.solvers.{name}"], "MANY", 160)
    monkeypatch.setattr(sys.modules["mklopt.solvers.analytic"], "SOME", 40)


FORMULATIONS = [F.BlockL1(), F.GroupLasso(), F.ElasticNet(0.9), F.LpNorm(4 / 3)]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_many_kernels_have_the_solution_of_few(many, formulation, loss, monkeypatch):
    problem = Problem(GRAMS.apart(), Y, loss, formulation, 5.0)
    assert problem.grams.is_large
    found = mklopt.solve(problem, tol=1e-6)
    assert found.converged and found.certificate.width <= 1.1e-6
    monkeypatch.undo()
    plain = mklopt.solve(problem.with_(grams=GRAMS.apart()), tol=1e-6)
    assert found.certificate.lower <= plain.certificate.upper
    assert plain.certificate.lower <= found.certificate.upper


def test_the_first_certificate_of_sparse_problems_takes_no_sum_of_all(many):
    problem = Problem(GRAMS.apart(), Y, "hinge", F.BlockL1(), 5.0)
    reads = mklopt.solve(problem, tol=1e-3).trace.arrays()["passes"]
    assert reads[0] / problem.grams.full_read < 2.2  # 3.1 from equal weights


def test_the_first_weights_of_all_kernels_are_nearly_right(many, monkeypatch):
    problem = Problem(GRAMS.apart(), Y, "hinge", F.LpNorm(2.0), 5.0)
    near = mklopt.solve(problem, tol=1e-3).trace.arrays()["gap"][0]
    monkeypatch.undo()
    assert near < 0.2 * mklopt.solve(problem, tol=1e-3).trace.arrays()["gap"][0]


def test_equal_kernels_do_not_fill_the_working_set(many):
    copies = GramStack(np.repeat(K[:30], 10, axis=0))
    problem = Problem(copies, Y, "hinge", F.BlockL1(), 5.0)
    found = mklopt.solve(problem, tol=1e-6)
    one = mklopt.solve(problem.with_(grams=GramStack(K[:30])), tol=1e-6)
    assert found.converged
    assert found.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("solver", ["auto", "analytic", "spg", "lp_newton", "lbfgs"])
def test_solvers_of_large_stacks_ask_for_no_large_array(many, solver, monkeypatch):
    """Every answer of the stack is smaller than an (M, n) array of all kernels."""
    limit, made = 300 * 80 // 2, GramStack._multiply

    def watched(self, blocks, shape):
        found = made(self, blocks, shape)
        assert found.size < limit
        return found

    monkeypatch.setattr(GramStack, "_multiply", watched)
    squared = solver == "lbfgs"
    formulation = F.Tikhonov(2.0, 0.5) if solver == "spg" else F.LpNorm(2.0)
    loss, C = ("squared", 0.1) if squared else ("hinge", 1.0)
    problem = Problem(GRAMS.apart(), Y, loss, formulation, C, bias=not squared)
    assert mklopt.solve(problem, solver, tol=1e-3).converged
    monkeypatch.setattr(GramStack, "_multiply", made)
    with pytest.raises(AssertionError, match="no large array"):
        forbidden(problem, limit)


def forbidden(problem, limit):
    assert problem.grams.matvec(problem.y).size < limit, "no large array"
