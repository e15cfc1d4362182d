"""What all inner solvers share: J, its derivatives, tolerance, kept products."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify
from mklopt import formulations as F
from mklopt.solvers.machines import machine as module
from mklopt.solvers.machines import svm
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.machines.machine import Free, Machine, Solution, ascend, most_moves
from mklopt.solvers.steps.working_set import restricted
from tests.problems import subset_gaussians

K, Y = subset_gaussians(120, 40)
GRAMS = GramStack(K)


def problem(formulation, loss="hinge", C=1.0, grams=GRAMS, **more) -> Problem:
    return Problem(grams, Y, loss, formulation, C, **more)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_solver_that_enters_other_kernels_keeps_what_it_knows(loss):
    p = problem(F.GroupLasso(), loss)
    machine = machine_for(p, second_order=True)
    few, more = np.arange(3), np.array([1, 2, 5])
    machine.solve(np.ones(p.grams.M))
    machine.enter(restricted(p, few), few)
    expected = p.grams.matvec(machine.point)
    assert np.allclose(machine._make_products(), expected[few], rtol=1e-12)
    before = p.grams.passes
    machine.enter(restricted(p, more), more)
    assert np.allclose(machine._make_products(), expected[more], rtol=1e-12)
    expected_v = np.sqrt(expected[more] @ machine.point)
    assert np.allclose(machine.v, expected_v, rtol=1e-10)  # needs no read
    assert p.grams.passes - before <= 1.1 / p.grams.M  # one new kernel
    machine.extrapolate(0.01 * machine.point)
    machine.solve(np.ones(3))
    assert np.allclose(
        machine._make_products(), p.grams.matvec(machine.point)[more], rtol=1e-12
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "huber"])
def test_J_has_the_gradient_and_the_hessian_it_says(loss, bias):
    p = problem(F.LpNorm(2.0), loss, grams=GRAMS.subset(np.arange(4)), bias=bias)
    machine, h = machine_for(p, second_order=True), 1e-4
    machine.tol = 1e-12
    theta, every = np.array([1.0, 0.4, 0.7, 2.0]), np.arange(4)

    def at(theta):
        machine.solve(theta)
        return machine.J, -0.5 * machine.v**2

    _, slope = at(theta)
    H = machine.hessian(every)
    for m in every:
        e = h * (every == m)
        (up, above), (down, below) = at(theta + e), at(theta - e)
        assert (up - down) / (2 * h) == pytest.approx(slope[m], rel=1e-4)
        change = (above - below) / (2 * h)
        np.testing.assert_allclose(change, H[m], atol=1e-2 * np.max(np.abs(H[m])))


def test_the_tolerance_is_a_part_of_the_certified_gap():
    p = problem(F.LpNorm(2.0))
    machine = machine_for(p, sharpness=1e-3)
    machine.solve(np.full(40, 0.1))
    iterate = machine.iterate()
    found = certify(p, dual=iterate.dual, weights=iterate.weights)
    machine.set_tolerance(found)
    assert machine.tol == pytest.approx(1e-3 * found.gap)
    machine.solve(np.full(40, 0.1))
    assert machine.gap <= machine.tol and machine.solves == 2


def test_products_that_are_kept_cost_no_second_pass():
    p = problem(F.LpNorm(2.0), grams=GramStack(K))
    machine = machine_for(p, second_order=True)
    machine.solve(np.full(40, 0.1))
    machine.iterate()
    before = p.grams.passes
    v, products = machine.v, machine.products_of(np.array([3, 5]))
    assert p.grams.passes == before
    np.testing.assert_allclose(v, np.sqrt(p.grams.quad(machine.point)), rtol=1e-12)
    np.testing.assert_allclose(products, (K[[3, 5]] @ machine.point).T, atol=1e-12)


@pytest.mark.parametrize("formulation", [F.LpNorm(2.0), F.GroupLasso()])
def test_few_support_vectors_need_fewer_rows(formulation, monkeypatch):
    """Products at support vectors give the same Newton steps and certificates."""
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
    K, y = subset_gaussians(200, 40)
    found = []
    for inside in (GramStack.inside, GramStack.matvec):
        with monkeypatch.context() as here:
            here.setattr(GramStack, "inside", inside)
            p = Problem(GramStack(K), y, "hinge", formulation)
            found.append(mklopt.solve(p, tol=1e-9))
    few, all_rows = found
    assert few.converged and np.mean(few.dual == 0) > 0.2
    assert few.trace.last("passes") < 0.9 * all_rows.trace.last("passes")
    assert few.trace.last("svm_solves") == all_rows.trace.last("svm_solves")
    assert few.certificate.lower == pytest.approx(all_rows.certificate.lower, rel=1e-8)
    assert few.certificate.width <= 1e-9 * (1 + 1e-6)


def test_another_alpha_may_be_adopted():
    p = problem(F.LpNorm(2.0))
    machine = machine_for(p)
    machine.solve(np.full(40, 0.1))
    before = machine.v
    machine.adopt(0.5 * machine.point, np.full(40, 0.2))
    np.testing.assert_allclose(machine.v, 0.5 * before, rtol=1e-12)
    np.testing.assert_allclose(machine.K, 0.2 * np.sum(K, axis=0), rtol=1e-12)


def test_free_coordinates_are_a_basis_of_the_moves():
    """The system is ZᵀKZ + ridge, slopes and steps go through Z, borders are sums."""
    rng = np.random.default_rng(0)
    n, k = 5, 3
    half = rng.normal(size=(n, n))
    kernel, unit = half @ half.T, np.eye(k)
    i, j, base = np.array([0, 0, 3]), np.array([1, 2, 0]), np.array([0, 0, 2])
    free = Free(i, unit[j] - unit[base], np.array([0.1, 0.2, 0.3]), True)
    Z = np.array([free.lifted(row, n) for row in np.eye(3)])  # (N, n, k)
    curved = np.einsum("ank,nm,bmk->ab", Z, kernel, Z) + np.diag(free.ridge)
    np.testing.assert_allclose(free.system(kernel), curved, atol=1e-12)
    slopes = rng.normal(size=(2, n, k))
    expected = np.einsum("ank,mnk->am", Z, slopes)
    np.testing.assert_allclose(free.reduced(slopes), expected, atol=1e-12)
    assert free.border is not None
    np.testing.assert_allclose(free.border, np.sum(Z, axis=1)[:, :-1])
    single = Free(i[1:], np.ones((2, 1)), np.zeros(2), True)
    np.testing.assert_array_equal(single.lifted(np.array([7.0, 9.0]), 4), [7, 0, 0, 9])
    np.testing.assert_array_equal(single.border, np.ones((2, 1)))
    assert Free(i, unit[j], free.ridge, False).border is None and len(free) == 3


class Steps:
    """An ascent whose gap halves with every move, or every Newton step of cost 5."""

    turn, overhead, patient, noise = 10, 0, False, 0.0

    def __init__(self, stuck=False, useless=False):
        self.gap, self.stuck, self.useless, self.newtons = 1.0, stuck, useless, 0

    def climb(self, tol, most):
        done = 0
        while self.gap > tol and done < most and not self.stuck:
            self.gap, done = 0.5 * self.gap, done + 1
        return done, self.gap

    def newton(self, most):
        self.newtons += 1
        self.gap *= 1.0 if self.useless else 0.5
        return 5

    def point(self):
        return np.zeros(3), 0.25, self.gap


def test_moves_and_newton_steps_alternate_until_the_gap_is_small_enough():
    ascent = Steps()
    found = ascend(ascent, 3, 2.0**-25, None)
    assert found.gap == 2.0**-25 and found.bias == 0.25
    assert ascent.newtons == 2 and found.moves == 23 + 2 * 5
    short = ascend(Steps(), 3, 0.0, 12)
    assert 12 <= short.moves <= 12 + 5
    assert ascend(Steps(stuck=True), 3, 0.0, None).moves == 0


def test_newton_steps_pause_while_they_gain_nothing():
    """Each is followed by a turn without one: a gain of 5 % costs one move, not six."""

    class Slow(Steps):
        def climb(self, tol, most):
            self.gap *= 0.95
            return 1, self.gap

    ascent = Slow(useless=True)
    moves = ascend(ascent, 3, 1e-3, None).moves
    turns = moves - 5 * ascent.newtons
    assert turns == 135 and turns // 2 <= ascent.newtons + 1 <= turns // 2 + 2


def test_work_is_counted_in_moves():
    alpha = np.zeros(200)
    assert Solution(alpha, 0.0, 0.0, 0).work == 0.125
    assert Solution(alpha, 0.0, 0.0, most_moves(200)).work == 3.125
    assert most_moves(200) == 500_000 and most_moves(10**6) == module.FEWEST_MOVES


def test_the_base_class_solves_nothing():
    machine = Machine(problem(F.LpNorm(2.0)))
    with pytest.raises(TypeError, match="solves nothing"):
        machine.solve(np.ones(40))
    assert machine.gap == math.inf


def cpu_seconds(given, solver):
    begun = time.process_time()
    mklopt.solve(given, solver, tol=1e-12, time_limit=0.2)
    return time.process_time() - begun


@pytest.mark.parametrize("seed, bias", [(2, True), (4, False)])
def test_one_solve_takes_less_than_a_second_whatever_c_is(seed, bias):
    """With C = 5e46 rounding forbids a gap of 0: the budget of moves ends the solve.

    On some processors the rounding errors of the first case cancel: a gap of 0.
    """
    X = np.random.default_rng(seed).normal(size=(8, 2))
    near = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2))
    y = np.where(np.arange(8) % 2, 1.0, -1.0)
    kernel = X @ X.T + 0.3 * near
    given = Problem(kernel[None], y, "hinge", F.BlockL1(), C=5e46, bias=bias)
    begun = time.process_time()
    found = svm.solve(given, kernel)
    assert time.process_time() - begun < 1.0
    assert found.moves >= most_moves(8) or (bias and found.gap == 0)


def test_a_time_limit_holds_where_the_inner_problem_is_solved_already():
    """A solve with nothing to do counts as work, so that the solver yields."""
    x = np.random.default_rng(0).normal(size=11)
    grams = GramStack(np.stack([np.outer(x, x), 1e-8 * np.eye(11)]))
    y = np.where(np.arange(11) % 2, 1.0, -1.0)
    form = F.VSKL(((0,), (1,)), math.inf)
    given = Problem(grams, y, "logistic", form, C=1e-11, bias=False)
    cpu_seconds(given.with_(C=1.0), "active")
    assert cpu_seconds(given, "active") < 1.0
