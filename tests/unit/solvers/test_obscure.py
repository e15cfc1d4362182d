"""The stochastic solvers: the paper's pseudo-code, its theorems, and its slips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from mklopt import GramStack, Problem, certify, reference, solve
from mklopt.formulations import BlockNorm, ElasticNet, LpNorm, SparseBlockNorm
from mklopt.formulations.norms import dual_exponent, norm
from mklopt.reference.contract_problems import load
from mklopt.solvers import Unsupported
from mklopt.solvers.obscure import published_exponent
from mklopt.solvers.steps.epochs import Descent
from tests.problems import separable

GRAMS, TARGETS = load("small")
LABELS = {
    "hinge": "binary", "logistic": "binary", "one_class": "ones",
    "multiclass_hinge": "classes", "multinomial": "classes",
}  # fmt: skip


def problem(loss="hinge", formulation=None, C=1.0, grams=GRAMS, y=None) -> Problem:
    y = TARGETS[LABELS.get(loss, "real")] if y is None else y
    return Problem(grams, y, loss, formulation or BlockNorm(1.25), C, bias=False)


def descent(p: Problem, seed=0, **options) -> Descent:
    shape = p.formulation.strongly_convex
    return Descent(p, shape, np.random.default_rng(seed), **options)


# ---- the algorithm ---------------------------------------------------------------


def test_without_a_threshold_ufo_is_pegasos():
    p = problem("hinge", BlockNorm(1.5))
    found = [solve(p, name, tol=0.0, epochs=8, seed=3) for name in ("ufo", "pegasos")]
    np.testing.assert_array_equal(found[0].trace.primal, found[1].trace.primal)
    with_zero = solve(
        problem("hinge", SparseBlockNorm(1.5, 0.0)), "ufo", tol=0.0, epochs=8, seed=3
    )
    np.testing.assert_allclose(with_zero.trace.primal, found[0].trace.primal)


# ---- the theorems ----------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_hard_margins_are_those_of_the_written_out_program(k):
    import cvxpy as cp

    p = separable(k)
    w = [cp.Variable((L.shape[1], k if k > 2 else 1)) for L in p.grams.factors]
    f = sum(L @ wm for L, wm in zip(p.grams.factors, w))
    if k == 2:
        apart = [cp.multiply(p.y, f[:, 0]) >= 1]
    else:
        rest = [(i, j) for i in range(p.grams.n) for j in range(k) if j != p.y[i]]
        apart = [f[i, p.y[i]] - f[i, j] >= 1 for i, j in rest]
    exact: Any = cp.pnorm  # its annotations know whole exponents only
    total = exact(cp.hstack([cp.norm(wm, "fro") for wm in w]), 1.25)
    program = cp.Problem(cp.Minimize(total), apart)
    program.solve(solver=cp.CLARABEL)
    found = reference.hard_margin(p)
    low, high = found.norm
    assert low <= high <= low * (1 + 1e-6)
    assert low * (1 - 1e-6) <= program.value <= high * (1 + 1e-6)
    f = np.sum(p.grams.apply(found.coefficients), axis=0)
    assert np.max(p.loss.value(f, p.y)) <= 1e-9


def test_a_loose_hard_margin_is_a_separator_all_the_same():
    """C too small for margins of 1: the point is stretched, and pays for it."""
    p = separable(3)
    small = GramStack.from_factors([0.03 * L for L in p.grams.factors])
    sharp = reference.hard_margin(p.with_(grams=small))
    loose = reference.hard_margin(p.with_(grams=small), tol=0.999)
    assert loose.lower <= sharp.upper <= 1.0001 * sharp.lower
    assert 1.01 * sharp.upper < loose.upper
    KB = small.apply(loose.coefficients)
    assert np.max(p.loss.value(np.sum(KB, axis=0), p.y)) <= 1e-9
    u = np.sqrt(np.sum(loose.coefficients * KB, axis=(1, 2)))
    assert p.formulation.value(u) == pytest.approx(loose.upper, rel=1e-8)


def test_hard_margins_say_what_they_need():
    p = separable(2)
    with pytest.raises(ValueError, match="overlap"):
        reference.hard_margin(p.with_(y=np.random.default_rng(0).permutation(p.y)))
    with pytest.raises(ValueError, match="no margin"):
        reference.hard_margin(p.with_(loss="logistic"))
    with pytest.raises(ValueError, match="squared norms"):
        reference.hard_margin(p.with_(bias=True))
    with pytest.raises(ValueError, match="squared norms"):
        reference.hard_margin(p.with_(formulation=ElasticNet()))


# ---- as a person uses them ---------------------------------------------------------


@pytest.mark.parametrize("iterate", ["last", "average", "suffix", "all"])
@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge"])
def test_every_iterate_ends_with_a_true_gap(loss, iterate):
    p = problem(loss)
    star = reference.solve(p, tol=1e-8)
    found = solve(p, "obscure", tol=0.0, T2=40, iterate=iterate, seed=1)
    low, high = found.certificate.dual, found.certificate.primal
    assert found.status == "finished" and found.trace.last("rounds") == 45
    assert low <= star.upper * (1 + 1e-12) and star.lower * (1 - 1e-12) <= high
    assert found.relative_gap < (0.1 if loss == "hinge" else 0.2)


def test_seeds_decide_and_a_start_goes_on():
    p = problem("hinge")
    once, again, other = (solve(p, "obscure", T2=9, seed=s) for s in (1, 1, 2))
    assert once.certificate.primal == again.certificate.primal
    assert once.certificate.primal != other.certificate.primal
    known = solve(p, "analytic", tol=1e-10)
    run = descent(p, start=known)
    assert run.objective == pytest.approx(known.certificate.primal, rel=1e-4)
    warm = solve(p, "obscure", start=known, T2=3, tol=0.0)
    assert warm.certificate.primal < once.certificate.primal


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sampling": "random"}, "choose one of iid, shuffle"),
        ({"iterate": "first"}, "choose one of last, average, suffix, all"),
        ({"T1": -1}, "T1 = -1; give a whole number"),
        ({"T2": 2.5}, "T2 = 2.5; give a whole number"),
        ({"eta": 0.0}, "eta = 0.0; give a positive number"),
        ({"R": float("nan")}, "R = nan; give a positive number"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        solve(problem(), "obscure", **options)


def test_what_they_cannot_solve_is_said():
    p = problem()
    for other, why in (
        (p.with_(bias=True), "it needs bias=False"),
        (p.with_(loss="squared"), "it has no step for the squared loss"),
        (p.with_(formulation=LpNorm(1.0)), "a strongly convex block norm"),
    ):
        with pytest.raises(Unsupported, match=f"obscure cannot solve.*{why}"):
            solve(other, "obscure")


def test_the_published_exponent():
    assert dual_exponent(published_exponent(39)) == pytest.approx(2 * np.log(39))
    assert published_exponent(2) == 2.0


# ---- slips of the paper --------------------------------------------------------------


def half_square(w: np.ndarray, p: float) -> tuple[float, np.ndarray]:
    """½‖w‖_p² and its gradient."""
    size = norm(np.abs(w), p)
    return 0.5 * size**2, np.sign(w) * size * (np.abs(w) / size) ** (p - 1)


def bregman(v: np.ndarray, u: np.ndarray, p: float) -> float:
    (high, _), (low, slope) = half_square(v, p), half_square(u, p)
    return high - low - float((v - u) @ slope)


def test_the_printed_bregman_term_is_never_positive():
    """Section 2.1.1 takes ∇h at v: with it every convex f is λ-strongly convex."""
    rng = np.random.default_rng(0)
    for u, v in rng.normal(size=(100, 2, 3)):
        (high, slope), (low, _) = half_square(v, 1.5), half_square(u, 1.5)
        printed = high - low - float((v - u) @ slope)
        assert printed == pytest.approx(-bregman(u, v, 1.5)) and printed < 0


def test_the_proximal_term_of_lemma_2_is_no_bregman_divergence_for_p_below_2():
    """½‖v − u‖_p² < B(v, u) near the axes: g'_t is not strongly convex w.r.t. h.

    With (s_t/α)B_h(·, w_t) in its place the proof goes through, and the constant
    stays: B ≤ 2R² on the ball.
    """
    u, v = np.array([1.0, 1e-12]), np.array([1.0, 0.1])
    assert 0.5 * norm(np.abs(v - u), 1.2) ** 2 < 0.2 * bregman(v, u, 1.2)
    rng = np.random.default_rng(0)
    largest = 0.0
    for p in (1.05, 1.5, 2.0):
        for pair in rng.normal(size=(200, 2, 3)):
            u, v = (w / norm(np.abs(w), p) for w in pair)
            largest = max(largest, bregman(v, u, p), bregman(-u, u, p))
    assert 1.99 < largest <= 2 + 1e-12


def regret_on_a_line(T: int, printed: bool) -> tuple[float, float]:
    """Algorithm 3 in R with h = ½w² (α = 1) on [−R, R]: regret, and lemma 2's bound.

    g_t = σ/2 w² + z_t w with signs that alternate: constant steps never settle.
    """
    sigma, R, w, s, paid, noise = 1.0, 1.0, 1.0, 0.0, 0.0, 0.0
    signs = np.where(np.arange(T) % 2 == 0, 1.0, -1.0)
    slopes = np.empty(T)
    for t, z in enumerate(signs, 1):
        slope = sigma * w + z
        L, now = abs(slope), sigma if printed else sigma * t
        square = L if printed else L**2
        s += 0.5 * (np.sqrt((now + s) ** 2 + square / R**2) - now - s)
        paid += 0.5 * sigma * w**2 + z * w
        slopes[t - 1] = L
        w = float(np.clip(w - slope / (now + s), -R, R))
    best = -np.sum(signs) / (sigma * T)
    regret = paid - (0.5 * sigma * best**2 + best * np.mean(signs)) * T
    times = np.arange(1, T + 1)
    noise = min(
        float(np.sum(4 * xi * R**2 + slopes**2 / (times * (sigma + xi))))
        for xi in np.append(0.0, np.logspace(-4, 2, 100))
    )
    return float(regret), noise


def test_algorithm_3_needs_its_missing_t_and_square():
    """As printed its steps do not fall like 1/(σt), and lemma 2 fails."""
    regret, bound = regret_on_a_line(2000, printed=False)
    assert regret <= bound
    regret, bound = regret_on_a_line(2000, printed=True)
    assert regret > bound


def test_the_last_iterate_is_not_the_one_of_theorem_3():
    """The proof bounds the mean of the f(w_t); where labels mean nothing w_T is farther
    from f* than the mean of w_1 … w_T, over 100 seeds."""
    rng = np.random.default_rng(0)
    L, y = rng.normal(size=(40, 5)), np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    p = problem("hinge", BlockNorm(2.0), 10.0, GramStack.from_factors([L]), y)
    star = reference.solve(p, tol=1e-7)
    R, worse = norm(star.norms, 2.0), []
    for seed in range(100):
        run = descent(p, seed)
        for _ in range(32):
            run.epoch(R=R)
        B = run.coefficients("average")
        mean = certify(p, dual=np.zeros(p.shape), coefficients=B).primal
        worse.append((run.objective - star.lower) / (mean - star.lower))
    assert stats.ttest_1samp(worse, 1.0, alternative="greater").pvalue < 1e-3
