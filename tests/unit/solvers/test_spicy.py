"""SpicyMKL: its derivatives, its systems, its rate, and what it hands back."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify, reference, solve
from mklopt import formulations as F
from mklopt.formulations.losses.residual import EpsInsensitive
from mklopt.reference.contract_problems import STORE, Cell, load
from mklopt.solvers import solvers
from mklopt.solvers.machines import linear as newton
from mklopt.solvers.machines.linear import System
from mklopt.solvers.steps.augmented_lagrangian import Gammas, Lagrangian
from mklopt.solvers.steps.loss_terms import Kinked

GROUPS = ((0, 1), (2, 3, 4), (5,))
SMALL, TARGETS = load("small")


def problem(loss: str, formulation=None, C: float = 1.0) -> Problem:
    labels = F.losses_by_name()[loss]().labels
    return Problem(SMALL, TARGETS[labels], loss, formulation or F.GroupLasso(), C)


def somewhere(p: Problem, seed: int = 0) -> tuple[Lagrangian, np.ndarray]:
    """An augmented Lagrangian with every part of it at work, and a ρ inside."""
    rng = np.random.default_rng(seed)
    M = p.grams.M
    B = (
        0.3
        * rng.normal(size=(M, *p.shape))
        * (np.arange(M) % 3 > 0).reshape(-1, *[1] * len(p.shape))
    )
    gammas = Gammas(rng.uniform(0.5, 2.0, M), 0.7, 1.3)
    lagrangian = Lagrangian(p, gammas, B, rng.normal(size=p.shape[1:]))
    rho = lagrangian.side.inside(rng.normal(size=p.shape))
    return lagrangian, rho


def at(lagrangian: Lagrangian, rho: np.ndarray):
    return lagrangian.enter(np.arange(lagrangian.problem.grams.M), rho)


LOSSES = ["logistic", "squared", "multinomial", "huber", "hinge", "eps_insensitive"]
FORMULATIONS = [
    F.GroupLasso(), F.ElasticNet(0.5), F.BlockL1(), F.LpNorm(4 / 3), F.BlockNorm(3.0),
    F.VSKL(GROUPS, 2.0), F.VSKL(GROUPS, np.inf), F.Tikhonov(2.0, 1.0),
    F.WeightedLpNorm(1.0, (1.0, 2.0, 0.5, 1.0, 3.0, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_the_gradient_is_the_slope_of_the_lagrangian(loss, formulation):
    lagrangian, rho = somewhere(problem(loss, formulation))
    slope = at(lagrangian, rho).gradient
    rng, h = np.random.default_rng(1), 1e-6
    for _ in range(3):
        d = rng.normal(size=rho.shape)
        d -= d.mean(axis=1, keepdims=True) if d.ndim == 2 else 0.0
        up, down = (at(lagrangian, rho + s * h * d).value for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(np.sum(slope * d), abs=2e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared", "multinomial"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_newtons_direction_solves_the_linearized_equation(loss, formulation):
    """∇φ(ρ + hΔ) ≈ (1 − h)∇φ(ρ): the Hessian, the slopes of prox and the solve."""
    lagrangian, rho = somewhere(problem(loss, formulation), seed=3)
    point, h = at(lagrangian, rho), 1e-6
    delta = lagrangian.direction(point)
    moved = at(lagrangian, rho + h * delta).gradient
    change = (moved - point.gradient) / h + point.gradient
    if change.ndim == 2:  # a constant per sample is invisible to a softmax
        change = change - change.mean(axis=1, keepdims=True)
    assert np.max(np.abs(change)) <= 1e-4 * np.max(np.abs(point.gradient))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_conjugate_gradients_agree_with_the_factorization(monkeypatch, k, scaled):
    rng, n, m = np.random.default_rng(0), 30, 4
    half = rng.normal(size=(n, n))
    G, N = rng.normal(size=(n * k, m)), np.diag(rng.uniform(0.1, 1, m))
    system = System(half @ half.T / n, G, N, k)
    shape = (n,) if k == 1 else (n, k)
    D, R = rng.uniform(0.5, 2.0, n), None
    if scaled:
        R = rng.uniform(0.2, 1.0, n)
    if k > 1:
        D = np.einsum("i,ab->iab", D, np.eye(k) + 0.3)
        R = None if R is None else np.einsum("i,ab->iab", R, np.eye(k) - 0.2)
    right = rng.normal(size=shape)
    direct = system.solve(right, D, R)
    monkeypatch.setattr(newton, "DENSE", 0)
    monkeypatch.setattr(newton, "ACCURATE", 1e-12)
    assert system.solve(right, D, R) == pytest.approx(direct, abs=1e-8)
    assert np.max(np.abs(direct)) > 1e-2


@pytest.mark.parametrize("loss", ["logistic", "hinge", "multinomial"])
def test_problems_too_large_to_factorize_are_solved_too(monkeypatch, loss):
    monkeypatch.setattr(newton, "DENSE", 0)
    assert solve(problem(loss), "spicy", tol=1e-6, time_limit=18).converged


def test_the_prox_of_the_hinge_is_the_papers_pair_of_slacks():
    """Eq. (11): ξ ← max(0, ξ − γ(C − yρ)), ζ ← max(0, ζ − γ yρ), y f = 1 − ξ + ζ."""
    p = problem("hinge")
    lagrangian, rho = somewhere(p)
    side, gamma, C = lagrangian.side, 1.3, 1.0
    assert isinstance(side, Kinked)
    margin, push = p.y * side.f, p.y * rho
    xi, zeta = np.maximum(1 - margin, 0.0), np.maximum(margin - 1, 0.0)
    xi, zeta = xi - gamma * (C - push), zeta - gamma * push
    new = 1 - np.maximum(0, xi) + np.maximum(0, zeta)
    assert p.y * side.point(rho) == pytest.approx(new, abs=1e-14)


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


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_what_comes_back_is_what_was_certified(loss):
    found = solve(problem(loss), "spicy", tol=1e-7)
    B = found.certificate.coefficients
    assert B is not None and found.converged
    again = certify(found.problem, found.dual, coefficients=B)
    assert again.relative_gap == pytest.approx(found.relative_gap, rel=1e-6, abs=1e-15)


def test_the_objective_never_rises_when_steps_are_exact():
    found = solve(problem("logistic"), "spicy", tol=1e-9, precision=1e-5)
    assert np.all(np.diff(found.trace.primal[1:]) <= 1e-12 * found.trace.primal[0])


def test_scaling_before_centring_gives_no_bound():
    """The paper's recipe, ρ/max‖ρ‖ first and minus its mean last: 15 % above f*."""
    rng = np.random.default_rng(37)
    X = rng.normal(size=(12, 3)) + 3 * rng.normal(size=3)  # uncentred features
    y = np.sign(rng.normal(size=12) + 0.7)
    p = Problem(
        GramStack.from_factors([X[:, [j]] for j in range(3)]),
        y,
        "squared",
        F.GroupLasso(),
    )
    truth, steps = reference.solve(p), solvers()["spicy"].steps(p)
    iterate, theirs, ours = next(steps), [], []
    for _ in range(6):
        rho = iterate.dual / max(np.max(np.sqrt(p.grams.quad(iterate.dual))), 1.0)
        theirs.append(p.dual_loss(rho - np.mean(rho)))
        found = certify(p, iterate.dual, coefficients=iterate.coefficients)
        ours.append(found.dual)
        iterate = steps.send(found)
    assert max(theirs) > 1.1 * truth.upper
    assert max(ours) <= truth.upper


def test_a_regularizer_and_a_loss_of_ones_own():
    @mklopt.formulation
    def capped(u):
        return cp.sum(u) + 0.5 * cp.square(cp.max(u))

    @mklopt.loss(labels="binary")
    def squared_hinge(f, y):
        return cp.square(cp.pos(1 - cp.multiply(y, f)))

    grams = GramStack.from_factors([L[:20] for L in SMALL.factors or []][:3])
    p = Problem(grams, TARGETS["binary"][:20], squared_hinge, capped)
    found = solve(p, "spicy", tol=1e-5, time_limit=18)
    assert found.converged
    truth = reference.solve(p, tol=1e-6)
    assert truth.lower - 1e-6 <= found.certificate.primal <= truth.upper * (1 + 2e-5)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_targets_of_any_size(size):
    y = size * TARGETS["real"]
    for loss in (EpsInsensitive(0.1 * size), "squared"):
        p = Problem(SMALL, y, loss, F.GroupLasso(), 1.0)
        assert solve(p, "spicy", tol=1e-7, time_limit=18).converged, loss


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
