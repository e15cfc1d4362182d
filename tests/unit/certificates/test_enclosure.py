"""lower ≤ f* ≤ upper in exact arithmetic: every rounding error is covered."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
import pytest
from mpmath import mpf

from mklopt import GramStack, Problem, certify, formulation
from mklopt.certificates.enclosure import (
    _stretched,
    _sum_above,
    _value_above,
    _value_below,
    enclose,
    finite,
    lower_bound,
)
from mklopt.certificates.products import Products
from mklopt.formulations import (
    VSKL,
    BlockL1,
    BlockNorm,
    BlockPower,
    Composite,
    ElasticNet,
    FixedWeights,
    GroupLasso,
    LpNorm,
    SparseBlockNorm,
    Tikhonov,
    WeightedLpNorm,
    losses_by_name,
    stripped,
)
from mklopt.formulations.losses.margin import Hinge
from mklopt.reference.contract_problems import load
from mklopt.util.rounding import length_above
from tests.unit.certificates.rationals import (
    exact_dual,
    exact_primal,
    omega,
    omega_conjugate,
    rational,
    value,
)
from tests.unit.certificates.samples import random_problem

INF = float("inf")
EPS = Fraction(2) ** -50  # for the roots that the test itself rounds


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
    """lower ≤ exact dual value and exact primal value ≤ upper, with no slack."""
    for seed in range(3):
        C = (0.1, 1.0, 100.0)[seed]
        problem = random_problem(seed, loss, formulation, C, exact=exact)
        problem.grams.verify_psd()
        rng = np.random.default_rng(seed)
        candidate = C * problem.y * rng.uniform(0, 1, size=12)
        theta = rng.uniform(0, 0.2, size=3)
        certificate = certify(problem, dual=candidate, weights=theta)
        assert certificate.assumptions == []
        found = certificate.enclosure
        assert found.lower <= exact_dual(problem, found.alpha, found.shrink)
        point = exact_primal(problem, certificate, found.stretch, found.alpha)
        assert found.lower <= point <= found.upper
        assert abs(certificate.upper - certificate.primal) <= 1e-10 * certificate.primal
        assert abs(certificate.dual - certificate.lower) <= 1e-9 * certificate.primal


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
        certificate = certify(
            problem, dual=0.1 * rng.normal(size=(40, 3)), weights=0.1 * np.ones(6)
        )
        assert certificate.assumptions == []
        assert certificate.dual - 1e-9 <= certificate.lower <= certificate.dual + 1e-9
        assert certificate.lower < certificate.upper


@pytest.mark.parametrize("theta", [1e100, 1e200, 1e308])
def test_bounds_that_leave_float64_are_infinite_not_nan(theta):
    problem = random_problem(1, formulation=LpNorm(2.0))
    with np.errstate(all="ignore"):
        found = certify(problem, dual=problem.y, weights=np.full(3, theta))
        assert found.lower <= found.upper and not np.isnan(found.upper)


def test_a_bound_that_is_no_number_is_infinite():
    def overflow():
        raise OverflowError

    assert finite(lambda: 2.5) == 2.5 and finite(lambda: -INF) == -INF
    assert finite(overflow) == finite(lambda: float("nan")) == INF


@pytest.mark.parametrize("loss", ["hinge", "multinomial"])
def test_the_dual_point_of_an_enclosure_is_exactly_feasible(loss):
    problem = random_problem(4, "hinge", LpNorm(2.0))
    if loss == "multinomial":
        problem = problem.with_(y=np.arange(12) % 3, loss=loss)
    alpha = np.random.default_rng(4).normal(size=problem.shape)
    found = enclose(certify(problem, dual=alpha, weights=np.ones(3)))
    columns = found.alpha.reshape(12, -1).T
    for column in columns:
        assert sum(map(Fraction, column.tolist()), Fraction(0)) == 0
    assert 0 <= found.shrink <= 1 <= found.stretch and found.lower <= found.upper


RANGE = 10.0 ** np.array([0, 0, 0, 1, -1, 10, -10, 100, -100, 160, -160, 300, -300])


def sizes(rng, *count):
    """Numbers of every size that float64 has: of one size, or of many at once."""
    many = rng.choice(RANGE, size=count if rng.random() < 0.5 else [1] * len(count))
    return many * rng.uniform(0.5, 2.0, size=count)


def any_formulation(rng, M):
    p = float(rng.choice([1, 1.0001, 4 / 3, 2, 1e6, INF]))
    groups = (tuple(range(M - 1)), (M - 1,))
    make = [
        GroupLasso,
        BlockL1,
        lambda: LpNorm(p),
        lambda: BlockNorm(float(rng.choice([1.0001, 2**0.5, 3, INF]))),
        lambda: ElasticNet(float(rng.choice([0, 0.3, 1, 1 - 2**-50, 1e-300]))),
        lambda: Tikhonov(p, float(rng.choice([1.0, 1e100, 1e-100]))),
        lambda: BlockPower(float(rng.choice([1, 1.0001, 1.5, 100]))),
        lambda: WeightedLpNorm(p, sizes(rng, M)),
        lambda: SparseBlockNorm(1.5, float(rng.choice([0, 0.1, 1e-300, 1e300]))),
        lambda: VSKL(groups, float(rng.choice([1, 1.5, INF]))),
        lambda: Composite(groups, 1.0, 1.5),
        lambda: FixedWeights(sizes(rng, M) * rng.integers(0, 2, M)),
    ]
    return make[rng.integers(len(make))]()


def any_loss(rng):
    size = float(rng.choice([1.0, 0.1, 1e-300, 1e300]))
    kind = rng.choice(sorted(losses_by_name()))
    given = {"eps_insensitive": [size], "huber": [size], "quantile": [min(size, 0.7)]}
    return losses_by_name()[kind](*given.get(kind, []))


def any_problem(rng):
    n, M = int(rng.integers(3, 6)), int(rng.integers(2, 5))
    L = rng.normal(size=(M, n, 2)) * np.sqrt(sizes(rng, M))[:, None, None]
    factored = rng.random() < 0.4
    kind = str(rng.choice(["packed", "full"]))
    K = None if factored else L @ L.transpose(0, 2, 1)
    grams = GramStack.from_factors(list(L)) if K is None else GramStack(K, storage=kind)
    loss, y = any_loss(rng), np.where(np.arange(n) % 2, 1.0, -1.0)
    if loss.labels == "classes":
        y = np.arange(n) % 3
    elif loss.labels == "real":
        y = y * sizes(rng, n)
    y = np.ones(n) if loss.labels == "ones" else y
    C = sizes(rng, n) if rng.random() < 0.8 else float(rng.choice([5e-324, 1.5e-323]))
    bias = bool(rng.integers(2)) and loss.bias_allowed
    return Problem(grams, y, loss, any_formulation(rng, M), C, bias)


def any_point(rng, problem):
    """A candidate of any size, with weights for which K is often about 1."""
    M, shape = problem.grams.M, problem.shape
    alpha = rng.normal(size=shape) * min(float(rng.choice(RANGE)), 1e299)
    if rng.random() < 0.6:
        alpha = 0.5 * problem.spread_costs * rng.choice([1.0, -1.0], size=shape)
    if rng.random() < 0.3:
        return alpha, {"coefficients": rng.normal(size=(M, *shape)) * sizes(rng)}
    theta = rng.uniform(size=M) * rng.integers(0, 2, M)
    top = np.max(problem.grams.diag(), axis=1) * np.max(np.abs(alpha), initial=1e-300)
    return alpha, {"weights": np.minimum(theta / np.maximum(top, 1e-300), 1e300)}


@pytest.mark.parametrize("part", range(4))
def test_bounds_are_true_over_the_whole_range_of_float64(part):
    """No error, and each bound holds at its point with no slack, or has a reason."""
    both = 0
    for seed in range(60 * part, 60 * part + 60):
        rng = np.random.default_rng(seed)
        problem = any_problem(rng)
        with np.errstate(all="ignore"):
            alpha, point = any_point(rng, problem)
        certificate = certify(problem, dual=alpha, **point)
        found = certificate.enclosure
        proved = np.isfinite([found.lower, found.upper])
        assert all(proved) == (found.reason == "") and str(certificate), seed
        both += all(proved)
        if proved[0]:
            assert found.lower <= exact_dual(problem, found.alpha, found.shrink), seed
        if proved[1]:
            value = exact_primal(problem, certificate, found.stretch, found.alpha)
            assert value <= found.upper, seed
    assert both >= 30  # most have bounds


# ---- every term of the error bounds is needed ----------------------------------------


@dataclass(frozen=True)
class OneKernel(GroupLasso):
    """The group lasso of one kernel, which is not rounded."""

    exact: ClassVar[bool] = True

    def rounding(self, M):
        return 0.0


@dataclass(frozen=True)
class LessOne(OneKernel):
    """Ω(u) = u − 1."""

    exact: ClassVar[bool] = True

    def conjugate(self, v):
        return 1.0 if v[0] <= 1 else INF


def small(formulation, loss="hinge", C=1.0, n=2):
    y = np.arange(n) % 3 if loss == "multiclass_hinge" else (-1.0) ** np.arange(n)
    return Problem(np.eye(n)[None], y, loss, formulation, C)


def test_the_last_sum_is_rounded_outwards():
    """Next to Ω = 1 a loss of 1e-25 is lost in the sum, but it is in the bound."""
    problem = small(OneKernel(), C=1e-25)
    f, nothing = np.zeros((2, 1)), np.zeros((2, 1))
    above = _value_above(problem, f, nothing, np.array([1.0]))
    assert Fraction(above) >= 1 + 2 * Fraction(1e-25)
    problem = small(LessOne(), "squared", C=1e-25)
    below = _value_below(problem, -1e-25 * problem.y, np.zeros(1), 1.0)
    assert Fraction(below) <= -1 - 3 * Fraction(1e-25)  # V* = ½ + 1 at slope y


@pytest.mark.parametrize("q", [1.07, 1.1, 1.13, 1.17, 1.3])
@pytest.mark.parametrize("v", [30.0, 1e3, 1e10])
def test_the_rounding_that_a_formulation_declares_is_in_the_bounds(q, v):
    """(2v/q)^q* with a rounded q*, and N^(4/3) with a rounded 4/3."""
    problem = small(BlockPower(q), C=1e-30)
    below = _value_below(problem, np.zeros(2), np.array([v]), 1.0)
    assert below <= -omega_conjugate(problem.formulation, [mpf(v)])
    problem = small(Tikhonov(2.0, 1.0), C=1e-30)
    u = 1.3 * v**20
    zero = np.zeros((2, 1))
    above = _value_above(problem, zero, zero, np.array([u]))
    assert above >= omega(problem.formulation, [mpf(u)])


def test_an_error_of_predictions_counts_twice_for_several_classes():
    """The worst case: the own class falls by the error, and every rival rises."""
    problem = small(OneKernel(), "multiclass_hinge", n=4)
    f, error = np.random.default_rng(0).normal(size=(2, 4, 3))
    error = np.abs(error)
    own = np.arange(3) == problem.y[:, None]
    worst = f + np.where(own, -1, 1) * np.max(error, axis=1, keepdims=True)
    total = sum((value(problem.loss, rational(g), y) for g, y in zip(worst, problem.y)))
    assert _value_above(problem, f, error, np.array([0.0])) >= total


def test_block_norms_are_rounded_upwards_before_the_penalty():
    """s·v and θ·v are rounded: Ω* and Ω get what lies above."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        v, s = rng.uniform(1, 2), rng.uniform(0.5, 1)
        problem = small(FixedOne(), C=1e-30)
        below = _value_below(problem, np.zeros(2), np.array([v]), s)
        assert Fraction(below) <= -Fraction(s) * Fraction(v)
        grams = GramStack(np.full((1, 1, 1), 1.0))
        problem = Problem(grams, [1.0], "squared", OneKernel(), bias=False)
        given: Any = (problem.grams, np.array([v]), np.array([s]), np.zeros(1))
        products = Products(*given, KA=np.array([[v]]))
        assert Fraction(products.predictions(0.0)[2][0]) >= Fraction(s) * Fraction(v)


@dataclass(frozen=True)
class FixedOne(GroupLasso):
    """Ω*(v) = v without rounding, as if u were 1."""

    def conjugate(self, v):
        return float(v[0])

    def feasible_scale(self, v):
        return 1.0

    def rounding(self, M):
        return 0.0


def test_negative_losses_are_rounded_upwards_too():
    costs, values = np.array([1.1, 3.3]), np.array([-0.7, -1e-3])
    exact = sum(a * b for a, b in zip(rational(costs), rational(values)))
    assert Fraction(_sum_above(costs, values)) >= exact
    assert Fraction(_sum_above(costs, -values)) >= -exact


def test_shrinking_stays_inside_the_domain_of_the_dual_norm():
    for seed in range(40):
        problem = random_problem(seed, formulation=GroupLasso(), C=50.0, exact=False)
        found = certify(problem, dual=40.0 * problem.y, weights=np.ones(3)).enclosure
        assert 0 < found.shrink < 1  # asserts inside that the norms are at most 1:
        assert found.lower <= exact_dual(problem, found.alpha, found.shrink)


def test_a_stretched_prediction_has_its_own_rounding():
    """t·f is rounded: where f − y is all that matters, this is an error, too."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        f, t = rng.uniform(1, 2, size=(2, 1)), 1 + rng.uniform()
        moved = _stretched(f, np.zeros((2, 1)), f[:, 0], t)
        for given, at, error in zip(f[:, 0], moved[0][:, 0], moved[1][:, 0]):
            off = abs(Fraction(t) * Fraction(given) - Fraction(at))
            assert off <= Fraction(error)


def test_tiny_costs_do_not_lose_the_dual_point():
    """With C of a few denormals s·α/C is off by half; s·(α/C) is not."""
    unit = 2.0**-1074
    problem = small(LpNorm(2.0), C=5 * unit)
    alpha = np.array([3 * unit, -3 * unit]) * problem.y[0]
    a = []

    class Seen(Hinge):
        def conjugate(self, slopes, y):
            a.append(slopes)
            return super().conjugate(slopes, y)

    object.__setattr__(problem, "loss", Seen())
    _value_below(problem, alpha, np.zeros(1), 0.5)
    np.testing.assert_allclose(np.abs(a[0]), 0.3, rtol=1e-15)


def test_the_length_of_a_vector_is_never_underestimated():
    for size in 1e-320, 1e-200, 1.0, 1e200:
        for seed in range(20):
            x = size * np.random.default_rng(seed).normal(size=9)
            square = sum((c * c for c in rational(x)), Fraction(0))
            assert Fraction(length_above(x)) ** 2 >= square
    assert length_above(np.zeros(3)) == 0.0 and length_above(np.array([INF])) == INF


def test_squares_of_tiny_norms_are_not_lost_under_huge_parameters():
    """½θv² with v² = 0 in float64: Ω* increases, so that a larger v covers it."""
    problem = small(FixedWeights((1e300,)), C=1e-60)
    below = _value_below(problem, np.zeros(2), np.array([1e-170]), 1.0)
    assert below <= -omega_conjugate(problem.formulation, [mpf(1e-170)])
    problem = small(FixedWeights((1e-300,)), C=1e-60)
    zero = np.zeros((2, 1))
    above = _value_above(problem, zero, zero, np.array([1e-170]))
    assert above >= omega(problem.formulation, [mpf(1e-170)])


def test_derived_operators_have_an_absolute_error():
    """A solver's tolerance does not shrink with the problem."""
    mine = stripped(formulation(lambda u: cp.sum_squares(u)))
    found = certify(small(mine, C=1e-12), dual=np.array([1e-13, -1e-13]), weights=[1.0])
    assert found.upper >= found.primal + 0.9e-8
    assert found.lower <= found.dual - 0.9e-8
    twin = certify(small(BlockPower(2.0), C=1e-12), dual=found.alpha, weights=[1.0])
    assert twin.upper - twin.lower < 1e-11


def test_the_dual_point_is_inside_a_derived_domain():
    """‖v‖ ≤ 1 as a solver sees it lets norms pass that are above 1."""
    mine = formulation(lambda u: cp.norm(u, 2))
    grams = GramStack(np.stack([np.eye(2), np.eye(2)]))
    problem = Problem(grams, np.array([1.0, -1.0]), "hinge", mine, C=10.0)
    for above in (0.0, 1e-10, 1e-9, 3e-9, 1e-8, 1.3e-8, 3e-8, 1e-6, 1e-3):
        alpha = 0.5 * (1 + above) * problem.y  # the norm of v is 1 + above
        found = certify(problem, dual=alpha, weights=np.ones(2)).enclosure
        assert found.shrink * (1 + above) <= 1 and found.shrink > 1 - 2e-6 - above


@pytest.mark.parametrize("loss", ["hinge", "one_class", "eps_insensitive"])
def test_a_dual_point_that_is_denormal_in_units_of_C(loss):
    """α/C near 1e-315 has few digits left; C times as much are all of the bound."""
    rng, n = np.random.default_rng(3), 4
    y = np.ones(n) if loss == "one_class" else np.array([1.0, -1.0, 1.0, -1.0])
    grams = GramStack(np.eye(n)[None])
    problem = Problem(grams, y, loss, GroupLasso(), C=1e296, bias=False)
    eps = getattr(problem.loss, "eps", 0.0)
    for _ in range(20):
        given = y * rng.uniform(1e-19, 9e-19, n)
        found = certify(problem, dual=given, weights=np.ones(1)).enclosure
        alpha = [Fraction(float(a)) * Fraction(found.shrink) for a in found.alpha]
        exact = sum(a * Fraction(b) - abs(a) * Fraction(eps) for a, b in zip(alpha, y))
        assert any(alpha) and Fraction(found.lower) <= exact


BORDER = [-1e-13, -1e-15, -(2.0**-52), -(2.0**-53), 0.0, 2.0**-52, 1e-15, 1e-13]


@pytest.mark.parametrize("beside", BORDER)
def test_at_the_border_of_the_domain_the_lower_bound_is_not_0(beside):
    """A norm within rounding errors of 1: s moves inside, α is not given up."""
    problem = small(GroupLasso(), n=4)
    alpha = 0.1 * problem.y  # a dual value of Σ yα = 0.4
    below = lower_bound(problem, alpha, np.array([1 + beside]), 1.0)
    assert (1 - 2e-13) * 0.4 <= below <= 4 * Fraction(0.1) / max(1, 1 + beside)


@pytest.mark.parametrize("shrink", [1.0, 0.5, 0.3])
def test_a_given_shrink_at_the_border_stays(shrink):
    problem = small(GroupLasso(), n=4)
    below = lower_bound(problem, 0.1 * problem.y, np.array([1 / shrink]), shrink)
    assert (1 - 1e-14) * 0.4 * shrink <= below <= 4 * Fraction(0.1) * Fraction(shrink)
