"""Bounds of appendix A of Kloft et al. (2011): formulas, derivations, Monte Carlo."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mklopt.formulations.norms import dual_exponent
from papers.kloft2011 import bounds, studies

INF = np.inf
PS = (1.0, 10 / 9, 4 / 3, 2.0, 4.0, INF)


def all_signs(n: int) -> np.ndarray:
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n)))


def exact(factors: list[np.ndarray], p: float) -> float:
    """The Rademacher complexity over all 2^n signs."""
    n = len(factors[0])
    quads = bounds.sign_quads(factors, all_signs(n))
    return float(bounds.suprema(quads, n, p).mean())


def sphere(rng: np.random.Generator, n: int, rank: int) -> np.ndarray:
    F = rng.standard_normal((n, rank))
    return F / np.linalg.norm(F, axis=1, keepdims=True)


@pytest.mark.parametrize("p", PS)
def test_the_supremum_is_that_over_the_class(p):
    """Closed form against the maximizing θ, and no other h of the class does better."""
    rng = np.random.default_rng(0)
    n, M = 6, 4
    factors = [sphere(rng, n, 2) for _ in range(M)]
    sigma = np.array([1.0, -1, -1, 1, 1, -1])
    value = bounds.suprema(bounds.sign_quads(factors, sigma[None]), n, p)[0]
    images = [F.T @ sigma / n for F in factors]
    x = np.array([v @ v for v in images])
    if p == 1:
        theta = (x == x.max()).astype(float)
    else:
        r = dual_exponent(p)
        theta = np.ones(M) if p == INF else x ** (r - 1) / np.sum(x**r) ** (1 / p)
    reached = np.sqrt(theta @ x)  # the best w for this θ
    assert np.linalg.norm(theta, p) == pytest.approx(1.0)
    assert reached == pytest.approx(value)
    for _ in range(300):
        theta = rng.exponential(size=M)
        theta /= np.linalg.norm(theta, p)
        assert np.sqrt(theta @ x) <= value + 1e-12


@pytest.mark.parametrize("p", PS)
def test_block_norms_give_the_same_class(p):
    """w_m → √θ_m w_m maps the two descriptions of H^p onto each other."""
    rng = np.random.default_rng(1)
    q = 2.0 if p == INF else 2 * p / (p + 1)
    for _ in range(100):
        u, theta = rng.random(5), rng.random(5)
        u, theta = u / np.linalg.norm(u), theta / np.linalg.norm(theta, p)
        assert np.linalg.norm(np.sqrt(theta) * u, q) <= 1 + 1e-12
    v = rng.random(5)
    v /= np.linalg.norm(v, q)
    theta = np.ones(5) if p == INF else v ** (2 / (p + 1))  # ‖θ‖_p = 1, ‖v/√θ‖ = 1
    assert np.linalg.norm(theta, p) == pytest.approx(1.0)
    assert np.linalg.norm(v / np.sqrt(theta)) == pytest.approx(1.0)


@pytest.mark.parametrize("r", range(1, 8))
@pytest.mark.parametrize("rank", [1, 3])
def test_moments_of_a_quadratic_form_in_signs(r, rank):
    """E(σᵀKσ)^r ≤ (2r−1)!! tr(K)^r ≤ (r tr K)^r, over all signs."""
    F = np.random.default_rng(r).standard_normal((10, rank))
    quads = bounds.sign_quads([F], all_signs(10))[:, 0]
    trace = float(np.sum(F**2))
    odd = math.prod(range(1, 2 * r, 2))
    assert np.mean(quads**r) <= odd * trace**r * (1 + 1e-12)
    assert odd <= r**r
    if r == 1:
        assert np.mean(quads) == pytest.approx(trace)


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("M", [2, 3, 8, 40])
def test_exact_complexities_lie_under_every_bound(p, M):
    rng = np.random.default_rng(M)
    n = 10
    factors = [sphere(rng, n, 1 + m % 3) for m in range(M)]
    value = exact(factors, p)
    assert value <= bounds.conversion(M, p) * exact(factors, 1.0) * (1 + 1e-12)
    assert value <= bounds.complexity_bound(n, M, p)
    assert value <= bounds.complexity_bound(n, M, p) / np.sqrt(bounds.CORTES)
    if p > 1:
        assert value <= bounds.direct_bound(n, M, p)
    r = dual_exponent(p)
    if r < INF and abs(r - round(r)) < 1e-9:
        assert value <= bounds.cortes_bound(n, M, p)
        # … and without the factor e that the paper quotes it with, and without c:
        assert value <= bounds.cortes_bound(n, M, p) / math.sqrt(math.e * bounds.CORTES)


@pytest.mark.parametrize("p", PS)
def test_conversion_is_sharp_for_copies_of_one_kernel(p):
    F = sphere(np.random.default_rng(3), 9, 2)
    ratio = exact([F] * 7, p) / exact([F] * 7, 1.0)
    assert ratio == pytest.approx(bounds.conversion(7, p), rel=1e-12)


def test_monte_carlo_finds_the_exact_value():
    rng = np.random.default_rng(4)
    factors = [sphere(rng, 10, 2) for _ in range(6)]
    quads = bounds.sign_quads(factors, rng.choice([-1.0, 1.0], (4000, 10)))
    for p in PS:
        value, error = bounds.complexity(quads, 10, p)
        assert 0 < error < 0.02 * value
        assert abs(value - exact(factors, p)) <= 4 * error


def test_remark_7_is_the_wrong_way_round():
    """R(H^p) ≤ c R(H^⋆) turns bounds on H^⋆ into bounds on H^p, not the reverse.

    With p = 1 and ⋆ = ∞ it holds with c = 1 (H^1 is the smaller class), and a bound on
    R(H^1) is then none on R(H^∞): copies of one kernel have √M times as much.
    """
    F = sphere(np.random.default_rng(5), 9, 2)
    sparse, plain = exact([F] * 16, 1.0), exact([F] * 16, INF)
    assert sparse <= 1.0 * plain
    assert plain == pytest.approx(4 * sparse)


def test_the_list_of_cortes_has_p_2_and_infinity():
    """p = n/(n − 1), n = 1, 2, …, begins with ∞ and 2: p ≥ 2 is not left out."""
    assert [dual_exponent(p) for p in (INF, 2.0)] == [1.0, 2.0]
    for p in (INF, 2.0):
        assert bounds.cortes_bound(50, 100, p) < bounds.complexity_bound(50, 100, p)
    with pytest.raises(ValueError, match="whole"):
        bounds.cortes_bound(50, 100, 4.0)
    with pytest.raises(ValueError, match="whole"):
        bounds.cortes_bound(50, 100, 1.0)


def test_one_kernel_has_no_bound():
    with pytest.raises(ValueError, match="two kernels"):
        bounds.sparse_bound(100, 1)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 2.0])
def test_the_margin_loss_is_lipschitz_and_above_the_zero_one_loss(gamma):
    t = np.linspace(-3, 3, 1201)
    loss = np.array([bounds.margin_loss(np.array([x]), gamma) for x in t])
    slope = np.abs(np.diff(loss)) / np.diff(t)
    assert slope.max() == pytest.approx(1 / gamma)
    assert np.all(loss >= (t <= 0))
    assert loss.min() >= 0 and loss.max() == 1


def test_the_margin_bound_is_put_together_as_in_34():
    margins = np.array([0.5, 0.2, -0.1, 1.0])
    n, M, p, gamma, delta = 4, 10, 2.0, 0.4, 0.1
    middle = 2 / gamma * math.sqrt(23 / 22 * math.e * math.sqrt(M) * 3 / n)
    want = 1.5 / 4 + middle + math.sqrt(math.log(2 / delta) / (2 * n))
    found = bounds.radius_margin_bound(margins, gamma, M, p, delta)
    assert found == pytest.approx(want)
    best, at = bounds.best_margin_bound(margins, M, p)
    share = bounds.DELTA / len(bounds.GAMMAS)
    assert best == bounds.radius_margin_bound(margins, at, M, p, share)


def test_the_margin_bound_holds_for_all_h_at_once():
    """(34) is uniform: of many h on many samples the worst breaks it rarely."""
    rng = np.random.default_rng(6)
    n, M, gamma, broken = 400, 2, 0.5, 0
    far = np.where(rng.standard_normal((20000, M)) + 1.0 > 0, 1.0, -1.0)  # y = 1
    w = rng.dirichlet(np.ones(M), 50)  # p = 1
    risk = np.mean(far @ w.T <= 0, axis=0)
    for _ in range(100):
        near = far[rng.integers(0, len(far), n)] @ w.T
        bound = [bounds.radius_margin_bound(h, gamma, M, 1.0) for h in near.T]
        broken += bool(np.any(risk > bound))
    assert broken <= 100 * bounds.DELTA


@pytest.mark.parametrize("ones", [1, 5, 20])
def test_the_examples_have_one_formula(ones):
    n, M = 30, 20
    terms = [bounds.example_term(n, M, p, ones) for p in PS]
    log = bounds.CORTES * math.e * math.ceil(math.log(M)) / n
    want = [2 * math.sqrt(log * ones * M * (ones / M) ** (1 / p)) for p in PS]
    np.testing.assert_allclose(terms, want, rtol=1e-12)
    if ones == M:
        np.testing.assert_allclose(terms, terms[0], rtol=1e-12)
    else:
        assert np.all(np.diff(terms) > 0)
    for p in PS:
        q = 2.0 if p == INF else 2 * p / (p + 1)
        assert bounds.radius(ones, p) == pytest.approx(np.linalg.norm(np.ones(ones), q))


def test_the_toy_risk_is_exact():
    """The closed form against 400,000 draws."""
    truth = np.array([1.0, 1, 0])
    w, b = np.array([0.5, 1.0, -0.7]), 0.3
    rng = np.random.default_rng(7)
    y = rng.choice([-1.0, 1.0], 400_000)
    X = rng.standard_normal((len(y), 3))
    X += y[:, None] * studies.RHO * truth / np.linalg.norm(truth)
    measured = np.mean(y * (X @ w + b) <= 0)
    assert studies.risk(w, b, truth) == pytest.approx(measured, abs=0.002)
    assert studies.risk(truth, 0.0, truth) == pytest.approx(studies.bayes_error())
    assert studies.risk(np.zeros(3), 1.0, truth) == 0.5
