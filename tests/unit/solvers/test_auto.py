"""auto and what it is made of: working sets, Newton in the weights, steep machines."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify, reference, solve
from mklopt import formulations as F
from mklopt.formulations import stripped
from mklopt.formulations.restricted import Restricted
from mklopt.reference.contract_problems import load
from mklopt.solvers import auto, solvers
from mklopt.solvers.machines import smooth
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.machines.smooth import SmoothMachine
from mklopt.solvers.steps.pivoting import _by_cones, minimum
from mklopt.solvers.steps.working_set import restricted
from tests.problems import subset_gaussians

WDBC, TARGETS = load("wdbc")
K, Y = subset_gaussians(120, 40)
GRAMS = GramStack(K)
HALVES = F.VSKL([tuple(range(20)), tuple(range(20, 40))], 2.0)
SUMS = F.Composite([tuple(range(10)), tuple(range(10, 25)), tuple(range(25, 40))])
SPARSE = [F.BlockL1(), F.GroupLasso(), F.ElasticNet(0.5), HALVES, SUMS]


def problem(formulation, loss="hinge", C=1.0, grams=GRAMS, **more) -> Problem:
    return Problem(grams, Y, loss, formulation, C, **more)


def composite(r, s):
    return F.Composite([list(p) for p in np.array_split(np.arange(GRAMS.M), 3)], r, s)


# ---- what is picked ----------------------------------------------------------


@pytest.mark.parametrize(
    "formulation, loss, picked",
    [
        (F.LpNorm(2.0), "hinge", "analytic: LpNorm uses all kernels"),
        (F.LpNorm(4 / 3), "logistic", "analytic: LpNorm uses all kernels"),
        (F.GroupLasso(), "logistic", "active: GroupLasso leaves kernels unused"),
        (F.LpNorm(1.0), "squared", "active: LpNorm leaves kernels unused"),
        (F.BlockNorm(np.inf), "hinge", "spicy: it takes every formulation and loss"),
        (F.BlockPower(3.0), "hinge", "analytic: BlockPower uses all kernels"),
        (composite(1.2, 1.5), "hinge", "analytic: Composite uses all kernels"),
        (composite(1.0, 1.5), "hinge", "active: Composite leaves kernels unused"),
        (composite(1.5, 1.0), "hinge", "spicy: it takes every formulation and loss"),
        (F.NonIsotropic(np.eye(GRAMS.M) + 0.1), "hinge", "analytic: NonIsotropic has"),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_auto_says_what_it_picked_and_why(formulation, loss, picked, tmp_path):
    found = solve(problem(formulation, loss), tol=1e-4)
    assert found.converged and found.solver == "auto"
    assert found.choice.startswith(picked)
    assert picked in str(found)
    found.save(tmp_path / "found.npz")
    again = mklopt.Result.load(tmp_path / "found.npz", found.problem)
    assert again.choice == found.choice


def test_a_solver_that_was_named_has_no_choice_to_report():
    found = solve(problem(F.LpNorm(2.0)), "analytic")
    assert found.choice == "" and "\n  \n" not in str(found)


def breaks(error):
    def steps(problem, *, start=None):
        yield next(solvers()["analytic"].steps(problem))
        raise error

    return steps


def stands_still(problem, *, start=None):
    iterate = next(solvers()["analytic"].steps(problem))
    while True:
        yield iterate


def ends(problem, *, start=None):
    return
    yield


@pytest.mark.parametrize(
    "steps", [breaks(ArithmeticError("no")), breaks(np.linalg.LinAlgError()),
              stands_still, ends],
)  # fmt: skip
def test_another_solver_goes_on_where_the_first_choice_fails(steps, monkeypatch):
    broken = auto.active.__class__("active", steps, frozenset(), frozenset({"any"}),
                                   frozenset({True, False}), 1e-6, "", "")  # fmt: skip
    monkeypatch.setattr(auto, "active", broken)
    if steps is stands_still:
        monkeypatch.setattr(auto, "PATIENCE", 3)
    found = solve(problem(F.BlockL1()))
    assert found.converged
    assert found.choice == "spicy: it takes every formulation and loss; active failed"


# ---- the working set -----------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("formulation", SPARSE, ids=repr)
def test_a_start_on_useless_kernels_is_left_behind(formulation, loss):
    """All kernels are priced before each certificate: none is missed."""
    p = problem(formulation, loss)
    best = solve(p, tol=1e-7)
    worst = np.zeros(40)
    worst[np.flatnonzero(best.weights == 0)[:2]] = 1.0
    found = solve(p, "active", start=(worst, best.dual), tol=1e-7)
    assert found.converged
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-6)
    again = solve(p, start=found, tol=1e-6)
    assert again.converged and len(again.trace) <= 2


def test_few_passes_over_all_kernels():
    """Most of the work is on the kernels in use: far fewer passes than iterates."""
    K, y = subset_gaussians(60, 400)
    p = Problem(GramStack(K), y, "hinge", F.GroupLasso(), 1.0)
    found = solve(p, tol=1e-6)
    assert found.converged and found.trace.last("passes") < 8
    assert found.trace.last("passes") < 0.5 * solve(p, "spicy").trace.last("passes")


@pytest.mark.parametrize("formulation", SPARSE, ids=repr)
def test_a_restricted_formulation_is_its_declaration_with_zeros(formulation):
    kernels = (1, 4, 20, 33)
    part = Restricted(formulation, kernels, 40)
    bare = stripped(part)
    rng = np.random.default_rng(0)
    u, step = rng.uniform(0.2, 2.0, 4), rng.uniform(0.5, 1.0, 4)
    assert part.value(u) == pytest.approx(bare.value(u), rel=1e-7)
    v = u / (2 * np.max(u))
    assert part.conjugate(v) == pytest.approx(bare.conjugate(v), rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(part.prox(u, step), bare.prox(u, step), atol=1e-6)
    np.testing.assert_allclose(part.weights(u), bare.weights(u), rtol=1e-5)


def test_a_restricted_problem_bounds_the_whole_one_from_above():
    p = problem(F.GroupLasso())
    whole, part = solve(p), solve(restricted(p, np.arange(0, 40, 2)))
    assert part.converged
    assert part.certificate.primal > whole.certificate.dual
    theta = np.zeros(40)
    theta[::2] = part.certificate.weights
    same = certify(p, part.dual, theta).primal
    assert same == pytest.approx(part.certificate.primal, rel=1e-12)


@pytest.mark.parametrize("formulation", [F.GroupLasso(), F.ElasticNet(0.3)], ids=repr)
def test_the_orthant_is_the_formulation(formulation):
    """Ω(u) = min over t ≥ 0 of ½Σu²(1/t + κ) + cΣt, on a fine grid of t."""
    c, kappa = formulation.orthant
    t = np.geomspace(1e-3, 1e3, 200_001)
    for u in (0.05, 0.7, 3.0):
        least = np.min(0.5 * u**2 * (1 / t + kappa) + c * t)
        assert formulation.value(np.array([u])) == pytest.approx(least, rel=1e-8)


# ---- quadratic programs in the weights ------------------------------------------


@pytest.mark.parametrize("groups", [0, 1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_pivoting_finds_what_the_interior_point_method_finds(groups, seed):
    rng = np.random.default_rng(seed)
    M = 30
    B = rng.normal(size=(M, 12 if seed % 2 else 40))
    H = B @ B.T + 1e-6 * np.eye(M)
    slope, theta = rng.normal(size=M), rng.uniform(size=M) * (rng.uniform(size=M) > 0.5)
    owner = np.arange(M) % groups if groups else None
    z = minimum(H, slope, theta, owner)
    E = np.zeros((0, M)) if owner is None else np.eye(groups)[:, owner]
    other = _by_cones(H, slope - H @ theta, E, theta)
    value = [
        slope @ (x - theta) + 0.5 * (x - theta) @ H @ (x - theta) for x in (z, other)
    ]
    assert np.all(z >= 0) and np.allclose(E @ z, 1)
    assert value[0] <= value[1] + 1e-8 * (1 + abs(value[1]))
    multipliers = slope + H @ (z - theta)
    if owner is None:  # KKT, exactly: zeros are zeros
        assert np.all(multipliers[z == 0] >= -1e-8)
        assert np.allclose(multipliers[z > 0], 0, atol=1e-7)
    else:
        for j in range(groups):
            mine = multipliers[owner == j]
            assert np.ptp(mine[z[owner == j] > 0]) <= 1e-7
            assert np.min(mine) >= np.max(mine[z[owner == j] > 0]) - 1e-7


# ---- machines of steep losses ---------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_steep_machines_meet_the_reference_at_fixed_weights(loss, C, bias):
    theta = np.array([1.0, 0.5, 2.0])
    y = TARGETS[F.losses_by_name()[loss]().labels]
    part = WDBC.subset(np.arange(3))
    p = Problem(part, y, loss, F.FixedWeights(theta), C, bias)
    machine = SmoothMachine(p, None)
    machine.tol = 1e-9
    machine.solve(theta)
    exact = reference.solve(p, tol=1e-7)
    assert -1e-12 <= machine.gap <= 1e-9
    slack = 1e-6 * abs(exact.upper)
    assert exact.lower - slack <= machine.J <= exact.upper + slack


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_second_derivatives_of_steep_machines(loss, bias, monkeypatch):
    monkeypatch.setattr(smooth, "USEFUL_FALL", 0.0)  # a factor for every step
    p = problem(F.GroupLasso(), loss, grams=GRAMS.subset(np.arange(5)), bias=bias)
    machine, theta = (
        SmoothMachine(p, None, keep_products=True),
        np.array([1.0, 0.5, 0.0, 2.0, 0.3]),
    )
    machine.tol = 1e-12

    def slope(theta):
        machine.solve(theta)
        return -0.5 * machine.v**2

    slope(theta)
    H, h = machine.hessian(np.arange(5)), 1e-4
    for m in range(1, 5):
        e = h * (np.arange(5) == m)
        ahead = slope(theta + e)
        back = slope(np.maximum(theta - e, 0.0))
        length = h if theta[m] == 0 else 2 * h
        close = 1e-2 if theta[m] == 0 else 1e-4
        scale = np.max(np.abs(H[:, m]))
        assert np.max(np.abs((ahead - back) / length - H[:, m])) <= close * scale


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_machine_that_enters_other_kernels_keeps_what_it_knows(loss):
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
    assert p.grams.passes - before <= 1.1 / p.grams.M  # one new kernel
    machine.extrapolate(0.01 * machine.point)
    machine.solve(np.ones(3))
    assert np.allclose(
        machine._make_products(), p.grams.matvec(machine.point)[more], rtol=1e-12
    )


@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
@pytest.mark.parametrize("C", [1e-6, 1e-3])
def test_where_no_kernel_is_worth_its_price(loss, C):
    """All weights are zero: nothing to divide by, and the optimum all the same."""
    p = problem(F.GroupLasso(), loss).with_(C=C)
    found = solve(p, "active", tol=1e-6)
    assert found.converged
    assert mklopt.C_zero(p) >= p.C and np.max(found.certificate.norms) <= 1e-3


# ---- paths -----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_a_path_is_warm_started_and_certified_point_by_point(loss):
    path = mklopt.path(problem(F.GroupLasso(), loss), points=6, span=30.0, tol=1e-6)
    assert path.converged and np.all(np.diff(path.C) > 0)
    for found in list(path)[1::2]:
        cold = solve(found.problem, tol=1e-6)
        both = sorted([found.certificate, cold.certificate], key=lambda c: c.dual)
        assert both[1].dual <= both[0].primal  # intervals of the same optimum
        assert found.trace.last("passes") <= cold.trace.last("passes") + 1


def test_bad_input_is_said_in_a_sentence():
    p = problem(F.GroupLasso())
    with pytest.raises(ValueError, match="give a result of solve, or a pair"):
        solve(p, start="here")
    with pytest.raises(ValueError, match="auto has no option accelerate"):
        solve(p, accelerate=None)
    with pytest.raises(mklopt.solvers.Unsupported, match="a simplex of kernel weights"):
        solve(problem(F.LpNorm(2.0)), "active")
