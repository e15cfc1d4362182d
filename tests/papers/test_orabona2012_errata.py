"""Slips in the formulas of Orabona et al. (2012); papers/ERRATA.md lists them all.

Others are shown by tests/unit/solvers/test_obscure.py."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference
from mklopt.certificates.certificate import certify
from mklopt.formulations import BlockL1, BlockNorm
from mklopt.judge.rates import uncertainty
from mklopt.solvers.steps.epochs import SIZE, UPDATES
from papers.orabona2012.settings import descent, steepest, theorem_3

Array = np.ndarray


def problem(n: int = 30, spread: float = 1.0, form=None, C: float = 1.0) -> Problem:
    """Three classes around the unit vectors, in two kernels."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    factors = [np.eye(3)[y] + spread * rng.normal(size=(n, 3)) for _ in range(2)]
    grams = GramStack.from_factors(factors)
    return Problem(grams, y, "multiclass_hinge", form or BlockNorm(1.25), C, bias=False)


# ---- section 2 -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_eq_3_has_another_minimum_than_eq_2(seed):
    """Over Σα ≤ 1, (Σu/α)² is at least (Σ√u)⁴ > (Σu)²; Σu²/α has the minimum (Σu)²."""
    rng = np.random.default_rng(seed)
    u, alphas = rng.uniform(0.1, 1, 4), rng.dirichlet(np.ones(4), 2000)
    printed, right = np.sum(u / alphas, axis=1) ** 2, np.sum(u**2 / alphas, axis=1)
    least = np.sum(np.sqrt(u)) ** 4
    best = np.sqrt(u) / np.sum(np.sqrt(u))
    assert np.sum(u / best) ** 2 == pytest.approx(least) and np.all(printed >= least)
    assert least > 1.5 * np.sum(u) ** 2
    best = u / np.sum(u)
    assert np.sum(u**2 / best) == pytest.approx(np.sum(u) ** 2)
    assert np.all(right >= np.sum(u) ** 2 * (1 - 1e-12))


def program(p: Problem, slacks: bool) -> float:
    """Eq. (2) times 1/λ, with or without ξ ≥ 0."""
    import cvxpy as cp

    n, k = p.shape
    w = [cp.Variable((L.shape[1], k)) for L in p.grams.factors]
    f, xi = sum(L @ wm for L, wm in zip(p.grams.factors, w)), cp.Variable(n)
    rest = [(i, j) for i in range(n) for j in range(k) if j != p.y[i]]
    limits = [f[i, p.y[i]] - f[i, j] >= 1 - xi[i] for i, j in rest]
    size = sum(cp.norm(wm, "fro") for wm in w)
    objective = 0.5 * cp.square(size) + p.costs @ xi
    found = cp.Problem(cp.Minimize(objective), limits + [xi >= 0] * slacks)
    found.solve(solver=cp.CLARABEL)
    return float(found.value)


def test_eq_2_lacks_its_non_negative_slacks():
    """Without ξ ≥ 0 large margins are paid for: another problem than (4)."""
    p = problem(form=BlockL1())
    star = reference.solve(p, tol=1e-7)
    with_slacks, printed = program(p, True), program(p, False)
    assert star.lower * (1 - 1e-6) <= with_slacks <= star.upper * (1 + 1e-6)
    assert printed < 0.5 * star.lower


# ---- the algorithms --------------------------------------------------------------


def stage_2(X: Array, y: Array, order: Array, lam: float, R: float, shrink: bool):
    """Algorithm 2 for the hinge and one kernel, p = q = 2; z, η and scales of lines 9
    and 10. shrink=False leaves out the factor 1 − λη/q of line 9."""
    theta, w, s = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0
    steps, scales = [], []
    for t, i in enumerate(order, 1):
        z = -y[i] * X[i] * (y[i] * X[i] @ w < 1)
        d = lam * t + s
        slope = lam / 2 * np.linalg.norm(theta) + np.linalg.norm(z)
        s += 0.5 * (np.sqrt(d**2 + 2 * slope**2 / R**2) - d)
        eta = 2 / (lam * t + s)
        keep = 1 - lam * eta / 2 if shrink else 1.0
        theta = keep * theta - eta * z
        ball = min(1.0, 2 * R / max(float(np.linalg.norm(theta)), 1e-300))
        theta, w = ball * theta, ball * theta / 2
        steps.append(eta * z)
        scales.append((keep, ball))
    return theta, w, np.array(steps), np.array(scales)


def overlapping(n: int = 40) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return y[:, None] * [0.5, 0] + rng.normal(size=(n, 2)), y


def test_in_algorithm_2_theta_is_not_the_sum_of_its_steps():
    """Section 3.1: −Σηz is θ in Algorithm 1 only. In Algorithm 2 each ηz is multiplied
    by all later factors of lines 9 and 10, and by line 10 of its own step."""
    X, y = overlapping()
    order = np.random.default_rng(0).integers(len(y), size=200)
    theta, _, steps, scales = stage_2(X, y, order, 0.1, 3.0, shrink=True)
    assert np.linalg.norm(theta + steps.sum(axis=0)) > np.linalg.norm(theta)
    later = np.append(np.cumprod(scales.prod(axis=1)[::-1])[::-1][1:], 1.0)
    weights = later * scales[:, 1]
    np.testing.assert_allclose(theta, -weights @ steps, rtol=1e-10)


def test_the_proof_of_theorem_3_needs_the_gradient_of_g_not_of_the_loss():
    """w_{t+1} = ∇h*(θ_t − η_t z_t) with the z of Algorithm 2 forgets the regularizer:
    its objective stays far above the one of line 9."""
    X, y = overlapping()
    lam, R = 1.0, np.sqrt(2.0)
    order = np.random.default_rng(0).integers(len(y), size=20_000)

    def value(shrink: bool) -> float:
        _, w, _, _ = stage_2(X, y, order, lam, R, shrink)
        return 0.5 * lam * w @ w + float(np.mean(np.maximum(1 - y * (X @ w), 0)))

    grams = GramStack.from_factors([X])
    C = 1 / (lam * len(y))
    p = Problem(grams, y, "hinge", BlockNorm(2.0), C, bias=False)
    star = lam * reference.solve(p, tol=1e-8).upper
    assert 0 <= value(True) - star < 0.01
    assert value(False) - star > 0.05


def test_theorem_3_says_nothing_for_an_infinite_R():
    """Section 4 reads O(q ln T/(λT)) off theorem 3 at R = ∞, where c = λR + L = ∞.

    What saves it: without a ball w is the mirror image of a mean subgradient, so that
    ‖w_t‖ ≤ L/λ and c ≤ 2L. With that c the mean over seeds lies under the bound.
    """
    p = problem(form=BlockNorm(1.5), C=0.05)
    run = descent(p)
    T = p.grams.n * 256
    assert np.isinf(theorem_3(np.array([T]), run.q, run.lam, np.inf, steepest(run)))
    values = []
    for seed in range(10):
        run = descent(p, seed)
        for _ in range(256):
            run.epoch()
            assert 0 < run.tally[SIZE] <= steepest(run) / run.lam
        mean = run.coefficients("average")
        values.append(certify(p, np.zeros(p.shape), coefficients=mean).primal)
    c = 2 * steepest(run)
    bound = run.q * c**2 * (1 + np.log(T)) / (2 * run.lam * T)
    star = reference.solve(p, tol=1e-8)
    off = run.lam * (np.array(values)[:, None] - star.lower)
    most = float(np.mean(off) + uncertainty(off)[0])
    assert most <= bound < 1  # f(0) = 1: it says something
    assert bound / 1000 < float(np.mean(off) - uncertainty(off)[0])


def test_with_an_infinite_R_the_step_of_line_8_has_the_factor_q():
    """Section 4 has 1/(λt); for the dual vector θ of line 8 it is q/(λt)."""
    X, y = overlapping()
    lam, order = 0.5, np.arange(5)
    theta, w, steps, _ = stage_2(X, y, order, lam, 1e9, shrink=True)
    times = np.arange(1, 6)[:, None]
    z = steps * lam * times / 2
    active = np.any(z != 0, axis=1)
    np.testing.assert_allclose(z[active], -(y[:, None] * X)[:5][active], rtol=1e-6)
    np.testing.assert_allclose(theta, -2 * z.sum(axis=0) / (5 * lam), rtol=1e-6)
    np.testing.assert_allclose(w, theta / 2)


# ---- stage 1 ---------------------------------------------------------------------


def test_theorem_4_counts_updates_not_steps():
    """Stage 1 may take more steps than q(2/η + L²)‖v‖², most of them without a loss."""
    p = problem(90, spread=0.05)
    least, most = reference.hard_margin(p).norm
    run, eta = descent(p), 10.0
    while not run.separated:
        run.epoch(eta=eta)
    factor = run.q * (2 / eta + steepest(run) ** 2)
    assert run.tally[UPDATES] <= factor * least**2
    assert run.epochs * p.grams.n > factor * most**2


def test_R_of_algorithm_1_depends_on_lambda():
    """Lines 1 to 9 do not know λ; line 10 does."""
    runs = [descent(problem(C=C)) for C in (1.0, 100.0)]
    for run in runs:
        run.epoch(eta=0.1)
    few, many = runs
    assert few.tally[SIZE] == many.tally[SIZE] > 0
    paid = [run.objective - 0.5 * run.tally[SIZE] ** 2 for run in runs]
    assert paid[1] == pytest.approx(100 * paid[0]) and paid[0] > 1
    assert np.sqrt(2 * many.objective) > 5 * np.sqrt(2 * few.objective)


def test_lemma_5_sums_over_updates_only():
    """One sample, h = ½w², η = 1: after one update no loss is paid, and Σ_{t ≤ T} η = T
    passes any bound; the sum over rounds with a loss is 1 and equal to it."""
    theta, u, eta, T = 0.0, 1.0, 1.0, 10
    rounds, noise = 0, 0.0
    for _ in range(T):
        w = theta
        z = -1.0 if w < 1 else 0.0
        rounds += z != 0
        noise += eta**2 * z**2 - 2 * eta * w * z
        theta -= eta * z
    paid = eta * T * max(1 - u, 0.0)
    bound = paid + np.sqrt(2 * 0.5 * u**2) * np.sqrt(noise)
    assert eta * rounds <= bound < eta * T
