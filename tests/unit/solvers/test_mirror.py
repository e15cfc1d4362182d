"""Mirror descent for VSKL: its Lipschitz constant, its theorem, its averages."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, reference, solve
from mklopt.formulations import VSKL, BlockL1, BlockNorm, Composite
from mklopt.formulations.norms import dual_exponent
from mklopt.grams import stack
from mklopt.reference.contract_problems import GROUPINGS
from mklopt.solvers import find, solvers
from mklopt.solvers.mirror import lipschitz, softmax, width
from tests.problems import silent_groups
from tests.unit.solvers.vskl import (
    GRAMS,
    INF,
    QS,
    TARGETS,
    THREE,
    Y,
    oracle,
    problem,
    settle,
)

HALVES = (range(3), range(3, 6))


def full_rank(n=24, M=6) -> tuple[GramStack, np.ndarray]:
    """Gaussian kernels with eigenvalues of at least ¼, and balanced labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, M)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X[:, 0] += y
    K = [np.exp(-((x[:, None] - x) ** 2)) for x in X.T]
    return GramStack((np.array(K) + 0.5 * np.eye(n)) / 2), y


# ---- the Lipschitz constant ----------------------------------------------------------


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_no_gradient_exceeds_the_lipschitz_constant(q, C):
    grams, y = full_rank()
    p = problem(q, C, HALVES, grams, y)
    o, L = oracle(p, 1e-8), lipschitz(p)
    for seed in range(8):
        lam = softmax(5 * np.random.default_rng(seed).normal(size=6), o)
        settle(o, lam)
        assert np.max(np.abs(o.slope)) <= L


@pytest.mark.parametrize("q", [1.5, 3.0, INF])
def test_the_printed_lipschitz_constant_is_too_small(q):
    """Small multiples of the identity: every α_i = C, nothing is left to estimate."""
    m, C, mu = 100, 1e6, 2e-7
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    grams = GramStack(np.stack([mu * np.eye(m)] * 4))
    p = problem(q, C, ((0, 1), (2, 3)), grams, y)
    o = oracle(p, 1e-3)
    settle(o, np.full(4, 0.5))
    np.testing.assert_allclose(o.alpha, C * y)
    star = dual_exponent(q)
    power = (star * (star + 1) - 1) / (star * (star + 1))
    printed = 0.5 * 2 ** (1 / star) * (mu * m * C**2) ** power  # τ = 1 only helps it
    assert np.max(np.abs(o.slope)) > 1.5 * printed
    assert np.max(np.abs(o.slope)) <= lipschitz(p) * (1 + 1e-9)


@pytest.mark.parametrize("q", [1.5, 3.0, INF])
def test_the_lipschitz_constant_is_nearly_attained(q):
    """A group that leans on a weak kernel, τ times the other: G' is τ^{−1/(q*+1)}."""
    m, C, mu, tau = 10, 1e-3, 1.0, 1e-4
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    grams = GramStack(np.stack([s * mu * np.eye(m) for s in (tau, 1.0, 1.0)]))
    p = problem(q, C, ((0, 1), (2,)), grams, y)
    o, L = oracle(p, 1e-9), lipschitz(p)
    settle(o, np.array([1 - 1e-9, 1e-9, 1.0]))
    assert 0.3 * L <= np.max(np.abs(o.slope)) <= L


# ---- theorem 3.1 ---------------------------------------------------------------------


def run(p: Problem, count: int, **options):
    """The first iterates of mirror descent, with what the theorem speaks of."""
    steps = solvers()["mirror"].steps(p, iterate="last", polish=False, **options)
    certificate: Any = None
    found: list[Any] = []
    while len(found) < count:
        iterate = steps.send(certificate)
        certificate = certify(
            p,
            dual=iterate.dual,
            weights=iterate.weights,
            coefficients=iterate.coefficients,
        )
        if "step" in iterate.info:  # not on the way to the end of the oracle
            found.append(iterate.info)
    steps.close()
    return found


def comparator(p: Problem):
    """λ near the best one, and G there."""
    o = oracle(p, 1e-9)
    theta = solve(p, "mirror", tol=1e-8, polish=True).weights
    lam = theta / o.sums(theta)[o.owner]
    settle(o, lam)
    return lam, o.value + o.error


def divergence(lam, first):
    used = lam > 0
    return float(np.sum(lam[used] * np.log(lam[used] / first[used])))


def bounds(found, B, sigma):
    """Item 1 with the right constant, and the oracle's errors."""
    s = np.array([info["step"] for info in found])
    size = np.array([np.max(np.abs(info["slope"])) for info in found])
    errors = np.array([info["bounds"].upper - info["value"] for info in found])
    total = np.cumsum(s**2 * size**2) / (2 * sigma) + np.cumsum(s * errors)
    return (B + total) / np.cumsum(s)


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("C, scale", [(0.1, 1.0), (1.0, 1.0), (100.0, 1.0), (1.0, 5.0)])
def test_item_1_of_the_theorem_holds_on_every_iterate(q, C, scale):
    p = problem(q, C)
    lam, target = comparator(p)
    found = run(p, 40, scale=scale)
    B = divergence(lam, found[0]["lam"])
    gamma, sigma = width(oracle(p))
    assert gamma >= B
    above = [info["bounds"].upper for info in found]
    gone = np.minimum.accumulate(above) - target
    limit = bounds(found, B, sigma)
    assert np.all(gone <= limit)
    if scale == 1:  # a twentieth of it would not hold: the bound says something
        assert np.any(gone > 0.05 * limit)


@pytest.mark.parametrize("q", [1.0, 2.0, INF])
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_item_3_holds_and_is_vacuous_for_large_C(q, C):
    """L √(2Γ/(σt)) with the a-priori L: true, and at C = 100 far above G(λ_1)."""
    grams, y = full_rank()
    p = problem(q, C, HALVES, grams, y)
    _, target = comparator(p)
    found = run(p, 40, step="lipschitz", scale=1.0)
    gamma, sigma = width(oracle(p))
    t = np.arange(1, 41)
    limit = lipschitz(p) * np.sqrt(2 * gamma / (sigma * t))
    above = np.array([info["bounds"].upper for info in found])
    errors = above - [info["value"] for info in found]
    gone = np.minimum.accumulate(above) - target
    assert np.all(gone <= limit + np.maximum.accumulate(errors))
    assert (limit[-1] > 100 * found[0]["value"]) == (C == 100.0)


@pytest.mark.parametrize("sizes", [(3, 5), (1, 2, 9)])
def test_the_entropy_is_strongly_convex_with_1_over_n_in_l1(sizes):
    """Proposition 3.2: ⟨∇Φ(a) − ∇Φ(b), a − b⟩ = KL(a, b) + KL(b, a) ≥ ‖a − b‖₁²/n.

    The proof prints KL(a, b) ≥ ‖a − b‖₁² for one of the two: false by a factor 2.
    """
    rng, broken = np.random.default_rng(0), 0
    for _ in range(300):
        pairs = [rng.dirichlet(np.full(k, 5.0), size=2) for k in sizes]
        a, b = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
        inner = float((np.log(a) - np.log(b)) @ (a - b))
        assert inner == pytest.approx(divergence(a, b) + divergence(b, a), abs=1e-12)
        assert inner >= np.sum(np.abs(a - b)) ** 2 / len(sizes) - 1e-12
        one = pairs[-1]
        broken += divergence(*one) < np.sum(np.abs(one[0] - one[1])) ** 2
    assert broken


# ---- the solver ----------------------------------------------------------------------


def test_one_group_is_sparse_mkl_whatever_q():
    values = [
        solve(problem(q, groups=GROUPINGS["one"]), "mirror", tol=1e-6, polish=True)
        for q in QS
    ]
    sparse = solve(problem(1.0).with_(formulation=BlockL1()), "hessian", tol=1e-8)
    for found in values:
        assert found.certificate.primal == pytest.approx(
            sparse.certificate.primal, rel=2e-6
        )
        assert found.trace.last("rounds") == found.trace.last("svm_solves")


def test_singleton_groups_leave_the_oracle_only():
    p = problem(3.0, groups=GROUPINGS["all"])
    infos = run(p, 5)
    assert all(np.array_equal(info["lam"], np.ones(20)) for info in infos)
    found = solve(p, "mirror", tol=1e-6, polish=False)
    block = solve(p.with_(formulation=BlockNorm(6.0)), "analytic", tol=1e-8)
    assert found.converged and found.trace.last("rounds") > len(found.trace)
    assert found.certificate.primal == pytest.approx(block.certificate.primal, rel=2e-6)


def test_the_average_converges_by_itself_and_so_does_the_last_iterate():
    p = problem(2.0)
    for iterate in ("average", "last", "both"):
        found = solve(p, "mirror", tol=2e-2, iterate=iterate)
        assert found.converged, iterate
        explicit = found.certificate.coefficients is not None
        assert explicit or iterate != "average"


def test_the_average_is_weighted_by_the_steps():
    p = problem(1.5, 10.0)
    fixed = solve(p, "mirror", tol=1e-2).certificate  # the same tolerances for both
    runs: dict[str, list[Any]] = {}
    for which in ("last", "average"):
        steps = solvers()["mirror"].steps(p, iterate=which, polish=False)
        next(steps)
        runs[which] = [steps.send(fixed) for _ in range(12)]
    first = next(solvers()["mirror"].steps(p, iterate="last"))
    last: list[Any] = [first, *runs["last"]]
    s = np.array([iterate.info["step"] for iterate in last])
    alpha = s @ np.array([iterate.dual for iterate in last]) / np.sum(s)
    w = [np.multiply.outer(iterate.weights, iterate.dual) for iterate in last]
    found = runs["average"][-1]
    np.testing.assert_allclose(found.dual, alpha, atol=1e-9)
    mean = np.tensordot(s, np.array(w), 1) / np.sum(s)
    np.testing.assert_allclose(found.coefficients, mean, atol=1e-9)


def test_the_average_is_below_the_bound_of_the_theorem():
    """F(w̄) − D(ᾱ) is at most Γ/Σs + …: the average needs no best iterate."""
    p = problem(1.5, 10.0)
    steps = solvers()["mirror"].steps(p, iterate="average", polish=False)
    certificate: Any = None
    infos: list[Any] = []
    gamma, sigma = width(oracle(p))
    while len(infos) < 40:
        iterate = steps.send(certificate)
        points = {"weights": iterate.weights, "coefficients": iterate.coefficients}
        certificate = certify(p, dual=iterate.dual, **points)
        if "step" not in iterate.info:
            continue
        infos.append(iterate.info)
        assert certificate.gap <= bounds(infos, gamma, sigma)[-1]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_silent_groups_get_explicit_coefficients(bias, C):
    """K_jα = 0 and w_j ≠ 0: no finite kernel weight says so, coefficients do."""
    p = silent_groups(bias, C)
    found = solve(p, "mirror", tol=1e-8, polish=True)
    assert found.converged
    exact = reference.solve(p, tol=1e-5)
    assert found.certificate.primal >= exact.lower * (1 - 1e-9)
    assert found.certificate.dual <= exact.upper * (1 + 1e-9)
    B = found.certificate.coefficients
    assert B is not None
    v = np.sqrt(np.maximum(p.grams.quad(found.dual), 0.0))
    silent = found.certificate.norms[2]
    assert v[2] <= 1e-4 * np.max(v) and silent > 1e-3
    without = B.copy()
    without[2] = 0.0
    worse = certify(p, dual=found.dual, coefficients=without)
    assert worse.relative_gap > 100 * found.relative_gap


def test_the_trace_counts_rounds_and_machines():
    found = solve(problem(INF), "mirror")
    assert np.all(np.diff(found.trace.rounds) >= 1)
    assert np.array_equal(found.trace.rounds, found.trace.svm_solves)
    assert found.trace.last("rounds") > len(found.trace)
    plain = solve(problem(1.0).with_(formulation=BlockL1()), "analytic")
    assert plain.trace.last("rounds") == 0


@pytest.mark.parametrize(
    "options, words",
    [
        ({"step": "armijo"}, "choose one of gradient, lipschitz"),
        ({"step": "lipschitz"}, "a kernel is singular"),
        ({"scale": 0.0}, "give a finite positive number"),
        ({"scale": INF}, "give a finite positive number"),
        ({"scale": "big"}, "give a finite positive number"),
        ({"iterate": "best"}, "choose one of last, average, both"),
    ],
)
def test_wrong_options_get_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        solve(problem(2.0), "mirror", **options)


def test_the_lipschitz_constant_of_factors_is_that_of_their_matrices(monkeypatch):
    rng = np.random.default_rng(0)
    grams = GramStack.from_factors([rng.normal(size=(1200, 3)) for _ in range(4)])
    y = np.sign(rng.normal(size=1200))
    groups = ((0, 1), (2, 3))
    flat, curved = (Problem(grams, y, "hinge", VSKL(groups, q)) for q in (1, 2))
    found = lipschitz(flat)
    with pytest.raises(ValueError, match="a kernel is singular"):
        lipschitz(curved)
    monkeypatch.setattr(stack, "FEATURE_SAMPLES", 10**9)
    assert found == pytest.approx(lipschitz(flat), rel=1e-10)


def test_an_unbounded_dual_has_no_lipschitz_constant():
    p = problem(1.0).with_(y=TARGETS["real"], loss="squared")
    with pytest.raises(ValueError, match="unbounded dual variables"):
        solve(p, "mirror", step="lipschitz")


@pytest.mark.parametrize(
    "groups, q, words",
    [
        ([[0, 1], [1, 2]], 2.0, "share no kernel"),
        ([range(19)], 2.0, "list every kernel 0 to 19"),
        ([range(20)], 0.5, r"q = 0.5 is not a number in \[1.0, inf\]"),
        ([range(20)], float("nan"), "q = nan; give a real number"),
        ([[]], 2.0, "non-empty"),
    ],
)
def test_wrong_groups_get_a_sentence(groups, q, words):
    with pytest.raises(ValueError, match=words):
        Problem(GRAMS, Y, "hinge", VSKL(groups, q), 1.0)


def test_other_groups_are_not_for_mirror_descent():
    with pytest.raises(ValueError, match="Composite does not state simplices"):
        find("mirror", problem(1.0).with_(formulation=Composite(THREE, 1.0, 1.5)))


def test_a_start_is_where_it_begins():
    p = problem(2.0)
    found = solve(p, "mirror", tol=1e-8, polish=True)
    cold, again = (
        solve(p, "mirror", tol=1e-6, polish=True, start=s) for s in (None, found)
    )
    assert again.converged and len(again.trace) <= 0.7 * len(cold.trace)
    assert again.trace.gap[0] < 0.1 * cold.trace.gap[0]


def test_kernels_in_any_order_of_groups_give_the_same():
    order = np.random.default_rng(1).permutation(20)
    place = np.argsort(order)
    groups = [[int(place[k]) for k in group] for group in THREE]
    shuffled = problem(3.0, groups=groups, grams=GRAMS.subset(order))
    here, there = (solve(p, "mirror", tol=1e-3) for p in (problem(3.0), shuffled))
    assert len(here.trace) == len(there.trace)
    for a, b in itertools.pairwise((here.weights[order], there.weights)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-9)
