"""Certificates trust nobody, and their enclosure is true in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mklopt import GramStack, Problem, certify
from mklopt.certificates.enclosure import _Products
from mklopt.formulations import (
    VSKL,
    BlockL1,
    ElasticNet,
    GroupLasso,
    LpNorm,
    Tikhonov,
    losses_by_name,
)
from mklopt.reference.contract_problems import STORE, load, small_cells
from mklopt.util.rounding import gamma

mpmath.mp.dps = 50
INF = float("inf")


def random_problem(seed, loss="hinge", formulation=None, C=1.0, n=12, M=3, exact=True):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(M, n, 4))
    grams = (
        GramStack.from_factors(np.rint(L * 2**10) / 2**10)
        if exact
        else GramStack(L @ L.transpose(0, 2, 1))
    )
    score = L[0, :, 0] + 0.3 * rng.normal(size=n)
    y = np.where(score > np.median(score), 1.0, -1.0)
    return Problem(grams, y, loss, formulation or GroupLasso(), C)


# ---- exact evaluation, apart from the library --------------------------------


def exact_dual(problem, alpha, shrink):
    """The dual value at shrink·α with 50 digits, from textbook formulas."""
    alpha = [mpmath.mpf(float(a)) * mpmath.mpf(shrink) for a in alpha]
    C, y = mpmath.mpf(problem.C), [mpmath.mpf(float(v)) for v in problem.y]
    norms = []
    for K, delta in zip(problem.grams.dense(), problem.grams.shift):
        K = mpmath.matrix(K.tolist())
        column = mpmath.matrix(alpha)
        quad = (column.T * K * column)[0] + mpmath.mpf(float(delta)) * mpmath.fsum(
            a * a for a in alpha
        )
        norms.append(mpmath.sqrt(quad))
    total = mpmath.mpf(0)
    for a, label in zip(alpha, y):
        t = a * label / C
        if problem.loss.name == "hinge":
            assert 0 <= t <= 1
            total += C * t
        elif problem.loss.name == "logistic":
            assert 0 <= t <= 1
            entropy = sum(x * mpmath.log(x) for x in (t, 1 - t) if x > 0)
            total -= C * entropy
        elif problem.loss.name == "squared":
            total += a * label - a * a / (2 * C)
    assert mpmath.fsum(alpha) == 0
    return total - exact_conjugate(problem.formulation, norms)


def exact_conjugate(formulation, v):
    if isinstance(formulation, GroupLasso):
        assert max(v) <= 1
        return mpmath.mpf(0)
    if isinstance(formulation, BlockL1):
        return max(v) ** 2 / 2
    if isinstance(formulation, LpNorm):
        p = mpmath.mpf(formulation.p)
        q = 2 * p / (p - 1)
        return mpmath.fsum(x**q for x in v) ** (2 / q) / 2
    if isinstance(formulation, ElasticNet):
        rho = mpmath.mpf(formulation.l1_ratio)
        return mpmath.fsum(max(x - rho, 0) ** 2 for x in v) / (2 * (1 - rho))
    p = mpmath.mpf(formulation.p)
    q = 2 * p / (p - 1)
    return mpmath.fsum(x**q for x in v) ** (4 / q) / (16 * mpmath.mpf(formulation.mu))


def exact_primal(problem, alpha, theta, bias):
    alpha = mpmath.matrix([mpmath.mpf(float(a)) for a in alpha])
    b, C = mpmath.mpf(bias), mpmath.mpf(problem.C)
    f, u = [b] * len(problem.y), []
    for K, delta, weight in zip(problem.grams.dense(), problem.grams.shift, theta):
        w = mpmath.mpf(float(weight))
        image = mpmath.matrix(K.tolist()) * alpha + mpmath.mpf(float(delta)) * alpha
        u.append(w * mpmath.sqrt((alpha.T * image)[0]))
        f = [x + w * z for x, z in zip(f, image)]
    total = mpmath.mpf(0)
    for x, label in zip(f, problem.y):
        m = x * float(label)
        if problem.loss.name == "hinge":
            total += max(0, 1 - m)
        elif problem.loss.name == "logistic":
            total += mpmath.log(1 + mpmath.exp(-m))
        else:
            total += (x - float(label)) ** 2 / 2
    return C * total + exact_value(problem.formulation, u)


def exact_value(formulation, u):
    if isinstance(formulation, GroupLasso):
        return mpmath.fsum(u)
    if isinstance(formulation, BlockL1):
        return mpmath.fsum(u) ** 2 / 2
    if isinstance(formulation, ElasticNet):
        rho = mpmath.mpf(formulation.l1_ratio)
        return rho * mpmath.fsum(u) + (1 - rho) / 2 * mpmath.fsum(x * x for x in u)
    p = mpmath.mpf(formulation.p)
    q = 2 * p / (p + 1)
    N = mpmath.fsum(x**q for x in u) ** (1 / q)
    if isinstance(formulation, LpNorm):
        return N**2 / 2
    mu = mpmath.mpf(formulation.mu)
    return (
        3
        * mpmath.mpf(2) ** (mpmath.mpf(-4) / 3)
        * mu ** (mpmath.mpf(1) / 3)
        * N ** (mpmath.mpf(4) / 3)
    )


FORMULATIONS = [
    GroupLasso(),
    BlockL1(),
    LpNorm(4 / 3),
    LpNorm(2.0),
    ElasticNet(0.3),
    Tikhonov(2.0, 0.7),
]


@pytest.mark.parametrize("exact", [True, False], ids=["factors", "gram"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_the_enclosure_holds_in_exact_arithmetic(formulation, loss, exact):
    """lower ≤ exact dual value and exact primal value ≤ upper, at 50 digits."""
    for seed in range(3):
        C = (0.1, 1.0, 100.0)[seed]
        problem = random_problem(seed, loss, formulation, C, exact=exact)
        problem.grams.verify_psd()
        rng = np.random.default_rng(seed)
        candidate = C * problem.y * rng.uniform(0, 1, size=12)
        theta = rng.uniform(0, 0.2, size=3)
        certificate = certify(problem, candidate, theta)
        assert certificate.assumptions == []
        domain = problem.loss.domain(problem.y)
        alpha = domain.exact(certificate.alpha, problem.costs, True)
        top = min(certificate.shrink, 1 - 1e-13) if certificate.shrink < 1 else 1.0
        lower_point = exact_dual(problem, alpha, top * (1 - 1e-13 * (top < 1)))
        assert certificate.lower <= lower_point + abs(lower_point) * 1e-12
        assert certificate.lower <= certificate.upper
        # The primal point is allowed to be the stretched one: never above by more.
        upper_point = exact_primal(problem, alpha, theta, certificate.bias)
        assert certificate.upper >= upper_point * (1 - mpmath.mpf(10) ** -12)
        assert abs(certificate.upper - certificate.primal) <= 1e-10 * certificate.primal
        assert abs(certificate.dual - certificate.lower) <= 1e-9 * certificate.primal


@pytest.mark.parametrize("seed", range(4))
def test_any_candidate_at_all_gives_a_true_interval(seed):
    """Nonsense in, a wide but true interval out: it contains the stored reference."""
    rng = np.random.default_rng(seed)
    for cell in list(small_cells())[seed::29]:
        problem = cell.problem()
        alpha = rng.normal(size=problem.shape) * 10.0 ** rng.integers(-3, 4)
        theta = rng.exponential(size=6) * 10.0 ** rng.integers(-3, 3)
        certificate = certify(problem, alpha, theta)
        reference = STORE.load(problem)
        assert reference is not None
        assert certificate.lower <= reference.upper, cell.name
        assert certificate.upper >= reference.lower, cell.name
        assert certificate.relative_gap >= 0, cell.name


def test_weights_and_coefficients_say_the_same():
    problem = random_problem(5, formulation=LpNorm(2.0))
    alpha, theta = 0.3 * problem.y, np.array([0.1, 0.5, 0.0])
    first = certify(problem, alpha, theta)
    second = certify(problem, alpha, coefficients=np.multiply.outer(theta, first.alpha))
    assert first.primal == pytest.approx(second.primal, rel=1e-13)
    assert first.dual == second.dual
    assert first.upper == pytest.approx(second.upper, rel=1e-11)


def test_the_order_of_repair_keeps_every_constraint():
    """Scaling for Ω* comes last: the point behind the dual value is feasible."""
    problem = random_problem(2, formulation=GroupLasso(), C=50.0)
    certificate = certify(problem, 40.0 * problem.y, np.ones(3))
    point = certificate.shrink * certificate.alpha
    assert certificate.shrink < 1
    assert abs(np.sum(point)) < 1e-12
    assert np.max(np.sqrt(problem.grams.quad(point))) <= 1 + 1e-12
    assert np.all(point * problem.y >= 0) and np.all(point * problem.y <= 50)


def test_shrinking_finds_the_best_multiple():
    """For Ω = ½(Σu)² and the hinge the best multiple of α has a closed form."""
    problem = random_problem(3, formulation=BlockL1(), C=10.0)
    balanced = np.where(problem.y > 0, 5.0, -5.0)
    certificate = certify(problem, balanced, np.ones(3))
    gain, price = np.sum(np.abs(balanced)), np.max(problem.grams.quad(balanced))
    best = min(1.0, gain / price)
    assert certificate.dual == pytest.approx(
        best * gain - best**2 * price / 2, rel=1e-9
    )


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(dual=np.ones(5), weights=np.ones(3)), r"dual has shape \(5,\); expected"),
        (dict(dual=np.ones(12), weights=np.ones(2)), "weights has shape"),
        (dict(dual=np.ones(12), weights=-np.ones(3)), "weights are ≥ 0"),
        (dict(dual=np.full(12, np.nan), weights=np.ones(3)), "NaN"),
        (dict(dual=np.ones(12), weights=np.array([1, 1, np.inf])), "finite"),
        (dict(dual=np.ones(12)), "either weights"),
        (
            dict(dual=np.ones(12), coefficients=np.ones((3, 5))),
            "coefficients has shape",
        ),
    ],
)
def test_bad_candidates_get_one_clear_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        certify(random_problem(0), **given)


def test_multiclass_enclosure_contains_the_reference():
    grams, targets = load("small")
    for name in ("multiclass_hinge", "multinomial"):
        problem = Problem(
            grams,
            targets["classes"],
            losses_by_name()[name](),
            VSKL(((0, 1, 2), (3, 4, 5)), INF),
        )
        rng = np.random.default_rng(0)
        certificate = certify(problem, 0.1 * rng.normal(size=(40, 3)), 0.1 * np.ones(6))
        assert certificate.assumptions == []
        assert certificate.dual - 1e-9 <= certificate.lower <= certificate.dual + 1e-9
        assert certificate.lower < certificate.upper


def test_best_of_takes_the_better_half_of_each():
    problem = random_problem(8, formulation=LpNorm(2.0))
    good_dual = certify(problem, 0.05 * problem.y, np.zeros(3))
    good_primal = certify(problem, np.zeros(12), np.zeros(3))
    a = certify(problem, 0.05 * problem.y, 5 * np.ones(3))
    joined = a.best_of(good_primal)
    assert joined.dual == max(a.dual, good_primal.dual) == good_dual.dual
    assert joined.primal == min(a.primal, good_primal.primal)
    assert joined.lower <= joined.upper
    assert joined.upper == pytest.approx(joined.primal, rel=1e-10)


def test_a_certificate_speaks_of_the_kernels_it_was_made_for():
    """A later proof for K + δI does not turn an interval for K into a theorem."""
    problem = random_problem(4, formulation=LpNorm(2.0), exact=False)
    early = certify(problem, 0.1 * problem.y, np.ones(3))
    interval = early.enclosure
    problem.grams.verify_psd()
    assert early.assumptions and early.enclosure[:2] == interval[:2]
    late = certify(problem, 0.1 * problem.y, np.ones(3))
    assert late.assumptions == [] and np.all(late.shift > 0)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_saturated_multinomial_candidates_do_not_hang(size):
    grams, targets = load("small")
    loss = losses_by_name()["multinomial"]()
    problem = Problem(grams, targets["classes"], loss, LpNorm(2.0), C=size)
    alpha = 0.3 * size * np.random.default_rng(0).normal(size=(40, 3))
    found = certify(problem, alpha, size * np.ones(6))
    assert np.isfinite(found.upper) and found.relative_gap >= 0


@pytest.mark.parametrize("theta", [1e100, 1e200, 1e308])
def test_bounds_that_leave_float64_are_infinite_not_nan(theta):
    problem = random_problem(1, formulation=LpNorm(2.0))
    with np.errstate(all="ignore"):
        found = certify(problem, problem.y, np.full(3, theta))
        assert found.lower <= found.upper and not np.isnan(found.upper)


def test_an_indefinite_kernel_shows_as_broken_duality():
    K = np.array([[[1.0, 3.0], [3.0, 1.0]]])
    problem = Problem(K, np.array([1.0, -1.0]), "hinge", LpNorm(2.0), C=10.0)
    with pytest.raises(ValueError, match="weak duality fails"):
        certify(problem, [10.0, -10.0], coefficients=[[-1.0, 1.0]])


def test_zero_diagonals_do_not_hide_rounding():
    """K + δI ⪰ 0 bounds |K_ij| by √(K_ii + δ): a zero diagonal entry is no licence."""
    rng = np.random.default_rng(4)
    K = np.eye(60)[None].copy()
    K[0, 0, 1:] = K[0, 1:, 0] = 1e-5 * rng.normal(size=59)
    K[0, 0, 0] = 0.0
    grams = GramStack(K)
    shift = grams.verify_psd()
    root = grams.root_diag(shift)[0]
    off = np.abs(grams.dense()[0]) - np.diag(np.diag(grams.dense()[0]))
    assert np.all(off <= np.outer(root, root))


def exact_kernel(grams, m):
    """Kernel m in rational numbers: its entries, or the product of its factors."""
    if grams.factors is None:
        return [[Fraction(float(k)) for k in row] for row in grams.kernel(m)]
    L = [[Fraction(float(x)) for x in row] for row in grams.factors[m]]
    dot = lambda a, b: sum((x * y for x, y in zip(a, b)), Fraction(0))  # noqa: E731
    return [[dot(a, b) for b in L] for a in L]


def test_the_chain_of_a_tiled_product_covers_its_rounding():
    """n larger than a tile: errors of one sign pile up, and stay under γ_chain."""
    n = 300
    rng = np.random.default_rng(3)
    K = rng.uniform(1.0, 1.0 + 1e-3, size=(1, n, n))
    K[0] = (K[0] + K[0].T) / 2 + n * np.eye(n)
    grams, a = GramStack(K), rng.uniform(1.0, 1.0 + 1e-3, size=n)
    assert grams.chain(n) < n / 2
    got, worst = grams.matvec(a)[0], 0.0
    for i in range(n):
        terms = [Fraction(float(k)) * Fraction(float(x)) for k, x in zip(K[0, i], a)]
        true = sum(terms, Fraction(0))
        worst = max(worst, float(abs(Fraction(float(got[i])) - true) / true))
    assert 0 < worst <= gamma(grams.chain(n))


@pytest.mark.parametrize("per_kernel", [False, True], ids=["weights", "coefficients"])
@pytest.mark.parametrize("exact", [True, False], ids=["factors", "gram"])
def test_error_bounds_cover_the_rounding_that_happened(exact, per_kernel):
    """K A, f and ‖A‖_K in rational arithmetic against what floats made of them."""
    problem = random_problem(9, n=30, exact=exact)
    problem.grams.verify_psd()
    rng = np.random.default_rng(9)
    alpha = rng.normal(size=30) * 10.0 ** rng.integers(-3, 4, size=30)
    B = rng.normal(size=(3, 30)) if per_kernel else None
    theta = None if per_kernel else rng.uniform(0.5, 2.0, size=3)
    source = certify(problem, alpha, theta, coefficients=B)
    A = alpha if B is None else B
    KA = problem.grams.matvec(alpha) if B is None else problem.grams.apply(B)
    products = _Products(problem, A, KA, source)
    f, error, above = products.predictions(0.25)
    bounds = products.roots * products.spread
    exact_f = [Fraction(1, 4)] * 30
    happened = 0
    for m in range(3):
        K = exact_kernel(problem.grams, m)
        a = [Fraction(float(x)) for x in (alpha if B is None else B[m])]
        delta = Fraction(float(problem.grams.shift[m]))
        weight = Fraction(1) if theta is None else Fraction(float(theta[m]))
        image = [sum((k * x for k, x in zip(row, a)), Fraction(0)) for row in K]
        for i, true in enumerate(image):
            off = abs(Fraction(float(KA[m, i])) - true)
            happened += off > 0
            assert off <= Fraction(float(bounds[m, i]))
            exact_f[i] += weight * (true + delta * a[i])
        square = sum((x * z for x, z in zip(a, image)), Fraction(0))
        square += delta * sum((x * x for x in a), Fraction(0))
        assert Fraction(float(above[m])) ** 2 >= weight**2 * square
    assert happened > 10  # there was rounding to cover
    for predicted, bound, true in zip(f[:, 0], error[:, 0], exact_f):
        assert abs(Fraction(float(predicted)) - true) <= Fraction(float(bound))
