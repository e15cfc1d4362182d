"""Proximal minimization: its rate, its schedules, its working set, its start."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt import formulations as F
from mklopt.reference.contract_problems import STORE, Cell, load
from mklopt.solvers.machines import linear
from mklopt.solvers.steps import proximal_minimization as module
from mklopt.solvers.steps.augmented_lagrangian import Gammas, Lagrangian

SMALL, TARGETS = load("small")


def problem(loss: str, formulation=None, C: float = 1.0) -> Problem:
    labels = F.losses_by_name()[loss]().labels
    return Problem(SMALL, TARGETS[labels], loss, formulation or F.GroupLasso(), C)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "multinomial"])
def test_problems_too_large_to_factorize_are_solved_too(monkeypatch, loss):
    monkeypatch.setattr(linear, "DENSE", 0)
    assert solve(problem(loss), "spicy", tol=1e-6, time_limit=18).converged


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_convergence_is_superlinear_and_of_order_one_over_gamma(loss):
    """e_{t+1} ≤ c e_t/γ_t with one c, for errors against the reference interval.

    With γ held fixed the same ratio does not fall: the rate is γ's doing.
    """
    p = Cell("wdbc", F.LpNorm(2.0), F.losses_by_name()[loss](), 1.0).problem()
    floor = STORE.load(p)
    assert floor is not None

    def ratios(growth: float) -> np.ndarray:
        options = dict(schedule="geometric", gamma=0.01, precision=1e-6)
        found = solve(p, "spicy", tol=1e-12, growth=growth, max_iter=12, **options)
        errors = found.trace.primal[1:] - floor.lower
        errors = errors[errors > 100 * (floor.upper - floor.lower)]
        return errors[1:] / errors[:-1]

    growing, fixed = ratios(3.0), ratios(1.0)
    middle = len(growing) // 2
    assert len(growing) >= 6 and np.all(np.diff(growing[middle:]) < 0)
    assert growing[-1] < 0.01 < 0.1 * fixed[-1]
    products = growing * 3.0 ** np.arange(len(growing))  # ratio × γ_t, up to γ_0
    assert np.max(products[middle:]) <= 2 * products[middle]


def test_the_objective_never_rises_when_steps_are_exact():
    found = solve(problem("logistic"), "spicy", tol=1e-9, precision=1e-5)
    assert np.all(np.diff(found.trace.primal[1:]) <= 1e-12 * found.trace.primal[0])


def test_a_penalty_per_kernel():
    gamma = np.linspace(5.0, 20.0, SMALL.M)
    assert solve(problem("logistic"), "spicy", tol=1e-7, gamma=gamma).converged


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_solution_is_recognized_as_a_start(loss):
    first = solve(problem(loss), "spicy", tol=1e-7)
    again = solve(problem(loss), "spicy", tol=1e-7, start=first)
    assert again.converged and len(again.trace) == 1
    nearby = first.problem.with_(C=1.1)
    warm, cold = (solve(nearby, "spicy", tol=1e-6, start=s) for s in (first, None))
    assert warm.converged and warm.trace.last("passes") < cold.trace.last("passes")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"schedule": "quick"}, "choose one of published, brisk, geometric"),
        ({"growth": 0.5}, "grow by a factor"),
        ({"gamma": -1.0}, "gamma = -1.0 must be positive"),
        ({"gamma_bias": 0.0}, "gamma_bias"),
        ({"start": (np.ones(6), None)}, "give the dual"),
    ],
)
def test_wrong_options_give_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        solve(problem("logistic"), "spicy", **options)


def test_kernels_outside_the_working_set_enter_when_they_should():
    """From an empty working set every kernel of the solution is a latecomer."""
    p = problem("logistic", C=10.0)
    best = solve(p, "spicy", tol=1e-9).certificate
    gammas = Gammas(np.ones(SMALL.M), 1.0, 1.0)
    B = np.zeros((SMALL.M, *p.shape))
    lagrangian = Lagrangian(p, gammas, B, 0.0)
    point = lagrangian.enter(np.array([], int), 1.001 * best.alpha)
    longer = certify(p, dual=point.rho, coefficients=B)
    used = set(np.flatnonzero(best.norms > 1e-3 * np.max(best.norms)))
    assert used <= set(module.latecomers(lagrangian, point, longer).tolist())
    assert used <= set(module.promising(lagrangian, longer).tolist())
    nothing = certify(p, dual=0 * best.alpha, coefficients=B)
    zero = lagrangian.enter(np.array([], int), 0 * best.alpha)
    assert len(module.latecomers(lagrangian, zero, nothing)) == 0


def test_gamma_is_multiplied_or_added_to_and_bounded():
    p = problem("logistic")
    unit = module.units(p)
    lagrangian = Lagrangian(p, unit, np.zeros((SMALL.M, *p.shape)), 0.0)
    found = certify(p, dual=TARGETS["binary"], weights=np.ones(SMALL.M))
    some = module.raised(unit, lagrangian, 3.0, [True, False, True], found)
    np.testing.assert_allclose(some.kernels, 3 * unit.kernels)
    assert some.bias == pytest.approx(11 * unit.bias)
    assert some.loss == pytest.approx(3 * unit.loss)
    most = module.raised(unit, lagrangian, 1e9, [True] * 3, found)
    assert most.bias == pytest.approx(module.LARGEST_GAMMA * unit.bias)


def test_units_follow_the_size_of_the_problem():
    small, large = (module.units(problem("squared", C=C)) for C in (0.1, 10.0))
    assert small.bias == pytest.approx(10.0) and small.bias > large.bias
    stretched = problem("squared").with_(y=100 * TARGETS["real"])
    ratio = module.units(stretched).loss / module.units(problem("squared")).loss
    assert ratio == pytest.approx(100.0)


def test_the_first_gamma_of_kernels_is_smaller_for_larger_traces():
    rng = np.random.default_rng(0)
    y = np.sign(rng.normal(size=1000))
    Z = rng.normal(size=(1000, 3))
    Z /= np.linalg.norm(Z, axis=1)[:, None]  # K_ii = 1

    def ratio(n: int, size: float) -> float:
        grams = GramStack.from_factors([np.sqrt(size) * Z[:n]])
        p = Problem(grams, y[:n], "hinge", F.GroupLasso(), 1.0)
        own, published = module.units(p, published=False), module.units(p)
        assert own.bias == published.bias and own.loss == published.loss
        return float(own.kernels[0] / published.kernels[0])

    assert ratio(100, 1.0) == 1 and ratio(1000, 1e-3) == 1  # unit trace
    assert ratio(1000, 1.0) == pytest.approx(0.2)
    assert ratio(1000, 0.5) == pytest.approx(0.4)
