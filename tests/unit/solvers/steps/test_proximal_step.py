"""ISTA and FISTA: the bias, the constant, and the bounds they are famous for."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt import formulations as F
from mklopt.grams import stack
from mklopt.reference.contract_problems import STORE, load
from mklopt.solvers.steps.proximal_step import Forward, begin, lipschitz

SMALL, TARGETS = load("small")
SMOOTH = ["logistic", "squared", "huber", "multinomial"]


def problem(loss: str, **changes) -> Problem:
    labels = F.losses_by_name()[loss]().labels
    p = Problem(SMALL, TARGETS[labels], loss, F.GroupLasso(), 1.0)
    return p.with_(**changes)


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_bias_is_minimized_out(loss):
    """Then Σα = 0, and α is the gradient of what is left, also by differences."""
    p = problem(loss)
    forward, rng = Forward(p, True), np.random.default_rng(0)
    f = rng.normal(size=p.shape)
    value, alpha = forward.smooth(f)
    assert np.sum(alpha, axis=0) == pytest.approx(0.0, abs=1e-7)
    d, h = rng.normal(size=p.shape), 1e-6
    slope = (forward.smooth(f + h * d)[0] - forward.smooth(f - h * d)[0]) / (2 * h)
    assert slope == pytest.approx(-np.sum(alpha * d), abs=1e-5)
    for b in (0.1, -0.1):  # no other bias is better
        moved = p.loss.best_bias(f, p.y, p.costs) + b * np.arange(1, 1 + f[0].size)
        worse = p.costs @ p.loss.value(f + moved.reshape(f.shape[1:]), p.y)
        assert worse >= value - 1e-12


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_constant_majorizes_and_is_not_idle(loss):
    """g(W) ≤ g(Y) + ⟨∇g, W − Y⟩ + (L/2)‖W − Y‖² along the worst direction, tightly."""
    p = problem(loss)
    forward, L = Forward(p, True), lipschitz(p)
    K = p.grams.combine(np.ones(p.grams.M))
    top = np.linalg.eigh(K)[1][:, -1]
    rng, tightest = np.random.default_rng(0), 0.0
    for _ in range(50):
        direction = top if p.shape[1:] == () else np.outer(top, rng.normal(size=3))
        B = np.broadcast_to(direction, (p.grams.M, *p.shape)) * 0.01
        at = begin(p, rng.normal() * B)
        to = begin(p, rng.normal() * B)
        f, g = forward.predictions(at), forward.predictions(to)
        value, alpha = forward.smooth(f)
        rise = forward.smooth(g)[0] - value + float(np.sum(alpha * (g - f)))
        room = 0.5 * L * float(np.vdot(*(to - at)))
        assert rise <= room * (1 + 1e-9) + 1e-12
        tightest = max(tightest, rise / room)
    assert tightest > 0.02


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize(
    "name, options, bound",
    [
        ("ista", {}, lambda t: 1 / (2 * t)),
        ("fista", {"restart": False}, lambda t: 2 / (t + 1) ** 2),
    ],
)
def test_the_claimed_rate_holds_at_every_certified_iterate(loss, name, options, bound):
    """F(W_t) − F* ≤ bound(t)·L‖W*‖² with the a-priori L and the reference's W*."""
    p = problem(loss)
    truth = STORE.load(p)
    assert truth is not None
    distance = float(np.sum(truth.norms**2))
    found = solve(p, name, tol=1e-12, max_iter=15, backtracking=False, **options)
    steps = 20 * np.arange(1, len(found.trace))
    errors = found.trace.primal[1:] - truth.upper
    assert np.all(errors <= bound(steps) * lipschitz(p) * distance)
    assert np.max(errors) > 0  # there was something to bound


def test_the_objective_of_ista_never_rises():
    found = solve(problem("squared"), "ista", tol=1e-12, max_iter=50)
    assert np.all(np.diff(found.trace.primal) <= 1e-12 * found.trace.primal[0])


def test_restarts_and_momentum_pay():
    """With the same constant, to 1e-4 and to 1e-8."""
    wdbc, targets = load("wdbc")
    p = Problem(wdbc, targets["real"], "squared", F.GroupLasso(), 0.1)

    def steps(solver: str, tol: float, **options) -> int:
        found = solve(p, solver, tol=tol, max_iter=800, backtracking=False, **options)
        return len(found.trace)

    assert steps("fista", 1e-4) < 0.5 * steps("ista", 1e-4)
    assert steps("fista", 1e-8) < 0.7 * steps("fista", 1e-8, restart=False)


def test_a_loss_without_a_gradient_is_refused():
    from mklopt.solvers import Unsupported

    with pytest.raises(Unsupported, match="no step for the hinge loss"):
        solve(problem("hinge"), "fista")


@pytest.mark.parametrize("name", ["ista", "fista"])
def test_wrong_options_give_a_sentence(name):
    with pytest.raises(ValueError, match="choose True or False"):
        solve(problem("squared"), name, backtracking="yes")


def test_the_constant_of_kernels_that_map_1_to_0():
    """As kernels of centred data do, to the last bit; and of kernels of zeros."""
    x = np.tile([1.0, -1.0], 16)
    p = Problem(np.outer(x, x)[None], x, "logistic", F.LpNorm(2))
    assert lipschitz(p) == pytest.approx(1.001 * 0.25 * 32)
    assert lipschitz(p.with_(grams=np.zeros((1, 32, 32)))) == 1e-300


@pytest.mark.parametrize("columns", [2, 30])
def test_the_constant_of_factors_is_that_of_their_matrix(monkeypatch, columns):
    rng = np.random.default_rng(0)
    grams = GramStack.from_factors([rng.normal(size=(1200, columns)) for _ in range(3)])
    p = Problem(grams, np.sign(rng.normal(size=1200)), "logistic", F.LpNorm(2))
    found = lipschitz(p)
    monkeypatch.setattr(stack, "FEATURE_SAMPLES", 10**9)
    assert found == pytest.approx(lipschitz(p), rel=1e-10)
