"""Kernel families, their prices, and where a descent over them ends."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, gmkl, reference, solve
from mklopt.formulations import GroupLasso, Tikhonov
from mklopt.gmkl.families import Polynomial, Product, Sum
from mklopt.gmkl.problem import (
    STATUS,
    KernelFamilyProblem,
    _confirmed,
)
from mklopt.gmkl.regularizers import (
    Given,
    LogDeterminant,
    MixedNorm,
    Regularizer,
    SquaredNorm,
    Total,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 5))
Y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.2 * RNG.normal(size=60))
D = np.stack([(x[:, None] - x) ** 2 for x in X.T])
K = np.exp(-D)
NOTHING: Any = (1.0, None)
NONE: Any = None
TEXT: Any = "a"
ANY: Any = lambda given: given  # noqa: E731
D0 = np.array([0.5, 0.2, 1.5, 0.0, 0.7])
FAMILIES = {
    "sum": Sum(K),
    "product": Product(D),
    "polynomial": Polynomial(K, degree=3, offset=0.5),
}
PRICES = {
    "total": Total(),
    "half square": SquaredNorm(1.0),
    "p": SquaredNorm(1.33),
    "p = 2": SquaredNorm(2.0, weight=3.0),
    "mixed": MixedNorm([[0, 3], [1, 2, 4]], 1.0, 2.0),
    "mixed p": MixedNorm([[0, 3], [1, 2, 4]], 1.5, 1.2),
    "log det": LogDeterminant(Product(D), weight=0.1),
    "given": Given(lambda d: float(np.sum(d**4)), lambda d: 4 * d**3),
}


def differences(function, d, h=1e-6):
    steps = h * np.eye(len(d))
    return np.array([(function(d + s) - function(d - s)) / (2 * h) for s in steps])


# ---- families ------------------------------------------------------------------------


def test_kernels_are_what_they_say():
    np.testing.assert_allclose(FAMILIES["sum"].combine(D0), np.tensordot(D0, K, 1))
    product = np.prod([np.exp(-d * m) for d, m in zip(D0, D)], axis=0)
    np.testing.assert_allclose(FAMILIES["product"].combine(D0), product)
    cubic = (0.5 + np.tensordot(D0, K, 1)) ** 3
    np.testing.assert_allclose(FAMILIES["polynomial"].combine(D0), cubic)
    same = Product.from_features(X).combine(D0)
    np.testing.assert_allclose(same, product)


@pytest.mark.parametrize("name", FAMILIES)
def test_kernels_stay_positive_semi_definite(name):
    for d in (D0, 10 * D0, np.zeros(5)):
        values = np.linalg.eigvalsh(FAMILIES[name].combine(d))
        assert values[0] >= -1e-10 * max(values[-1], 1.0)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_of_families_are_those_of_finite_differences(name):
    family, alpha = FAMILIES[name], np.random.default_rng(0).normal(size=60)
    measured = differences(lambda d: alpha @ family.combine(d) @ alpha, D0 + 0.1)
    np.testing.assert_allclose(family.gradient(D0 + 0.1, alpha), measured, rtol=1e-6)
    S = np.random.default_rng(1).normal(size=(60, 60))
    measured = differences(lambda d: np.sum((S + S.T) * family.combine(d)), D0 + 0.1)
    found = family.derivative(D0 + 0.1, S + S.T)
    np.testing.assert_allclose(found, measured, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_new_points_get_the_same_kernel(name):
    family = FAMILIES[name]
    given = (D if name == "product" else K)[:, :7]
    np.testing.assert_allclose(family.cross(D0, given), family.combine(D0)[:7])
    with pytest.raises(ValueError, match=r"expected .5, n_test, 60"):
        family.cross(D0, given[:, :, :3])


@pytest.mark.parametrize("name", PRICES)
def test_gradients_of_prices_are_those_of_finite_differences(name):
    price, d = PRICES[name], D0 + 0.1
    measured = differences(price.value, d)
    np.testing.assert_allclose(price.gradient(d), measured, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["half square", "p", "p = 2", "mixed", "mixed p"])
def test_norms_of_parameters_below_zero(name):
    price, d = PRICES[name], np.array([0.5, -0.2, 1.5, -0.4, 0.7])
    assert price.value(d) == pytest.approx(price.value(np.abs(d)))
    measured = differences(price.value, d)
    np.testing.assert_allclose(price.gradient(d), measured, rtol=1e-5, atol=1e-7)


def test_prices_are_what_they_say():
    assert PRICES["total"].value(D0) == pytest.approx(2.9)
    assert PRICES["half square"].value(D0) == pytest.approx(0.5 * 2.9**2)
    assert PRICES["p = 2"].value(D0) == pytest.approx(1.5 * np.sum(D0**2))
    assert PRICES["mixed"].value(D0) == pytest.approx(0.5 * (0.5**2 + 2.4**2))
    kernel = Product(D).combine(D0) + 1e-3 * np.eye(60)
    determinant = np.linalg.slogdet(kernel)[1]
    assert PRICES["log det"].value(D0) == pytest.approx(-0.1 * determinant)
    for price in (SquaredNorm(1.5), MixedNorm([range(5)], 2.0, 2.0)):
        assert np.all(np.isfinite(price.gradient(np.zeros(5))))


# ---- the descent ---------------------------------------------------------------------


def family_problem(family="product", price="total", C=1.0, **more):
    return KernelFamilyProblem(FAMILIES[family], Y, "hinge", PRICES[price], C, **more)


@pytest.mark.parametrize(
    "price, solver",
    [
        *((p, s) for p in ("total", "half square", "mixed") for s in ("spg", "pgd")),
        ("p", "spg"),
        ("log det", "spg"),
    ],
)
def test_a_descent_over_products_ends_where_it_says(price, solver):
    found = gmkl.solve(family_problem(price=price), solver, tol=1e-3)
    assert found.status == "stationary" and found.stationarity <= 1e-3
    assert found.machine.relative_gap <= 1e-8
    slope = found.slope
    inside = found.d > 1e-6
    assert np.all(np.abs(slope[inside]) <= 2e-2) and np.all(slope[~inside] >= -1e-3)
    assert np.all(np.diff(found.history["svm_solves"]) >= 0)
    assert found.value <= found.history["value"][0]


def test_a_loose_machine_does_not_end_the_descent():
    """Stationary means with a precise SVM; else the descent goes on."""
    p = family_problem(C=10.0)
    for tol in (3e-1, 1e-1, 1e-2, 1e-4):
        found = gmkl.solve(p, tol=tol)
        assert found.status == "stationary" and found.stationarity <= tol
        assert found.history["stationarity"][-1] <= tol
    loose = gmkl.Envelope(p, tune=True)
    loose.noise = loose.worst
    loose.value(D0)
    sharp = gmkl.Envelope(p, tune=False).precisely(D0)[2]
    assert _confirmed(loose, D0, tol=1e-9) == pytest.approx(sharp, rel=1e-3)
    assert loose.noise == pytest.approx(0.1 * loose.worst)


def test_a_status_is_what_the_returned_point_earns(monkeypatch):
    found = gmkl.solve(family_problem(), tol=1e-3, threshold=0.9)
    assert found.status == "thresholded" and found.stationarity > 1e-3
    assert "threshold less" in str(found)
    harmless = gmkl.solve(family_problem(), tol=1e-3, threshold=1e-9)
    assert harmless.status == "stationary" and harmless.stationarity <= 1e-3
    monkeypatch.setattr(
        "mklopt.gmkl.descent._verdict", lambda *given: "stationary"
    )  # is it?
    loose = gmkl.solve(family_problem(C=10.0), tol=1e-3, start=np.ones(5))
    assert loose.status == "imprecise" and loose.stationarity > 1e-3
    assert "with a precise SVM" in str(loose)


def test_thresholding_stays_inside_the_set():
    def box(d):
        return np.clip(d, 0.1, 0.4)

    found = gmkl.solve(family_problem(project=box), tol=1e-4, threshold=0.9)
    assert np.all((found.d >= 0.1) & (found.d <= 0.4))


def test_what_falls_without_end_is_called_unbounded():
    pair = (lambda d: -float(np.sum(d)), lambda d: -np.ones(5))
    for family in ("sum", "product"):
        p = KernelFamilyProblem(FAMILIES[family], Y, regularizer=pair)
        found = gmkl.solve(p)
        assert found.status == "unbounded" and found.stationarity > 0.1
        assert "without end" in str(found)


@pytest.mark.parametrize("weight", [-1.0, 0.0, np.nan, np.inf, "a", None])
def test_weights_are_positive(weight):
    for make in (Total, SquaredNorm, Regularizer):
        with pytest.raises(ValueError, match=f"{make.__name__}: weight = .* > 0"):
            make(weight=weight)
    with pytest.raises(ValueError, match="weight ="):
        MixedNorm([[0, 1]], weight=weight)
    with pytest.raises(ValueError, match="weight ="):
        Given(np.sum, np.ones_like, weight=weight)


def test_an_indefinite_kernel_is_not_certified():
    """exp(−D) of distances that are not of negative type."""
    rng = np.random.default_rng(0)
    wild = rng.uniform(0.1, 3.0, size=(3, 60, 60))
    wild = (wild + wild.transpose(0, 2, 1)) * (1 - np.eye(60))
    p = KernelFamilyProblem(Product(0.01 * wild), Y, "hinge", Total(weight=1e-2), 10.0)
    found = gmkl.solve(p, tol=1e-2, max_iter=5)
    assert np.linalg.eigvalsh(p.family.combine(found.d))[0] < -1e-3
    assert found.status == "indefinite" and found.machine is None
    assert "not positive semi-definite" in found.message
    assert "not certified" in str(found) and np.all(np.isfinite(found.dual))


def test_the_shift_of_the_certified_kernel_is_printed():
    found = gmkl.solve(family_problem(), tol=1e-2)
    assert found.machine.proof == "Cholesky" and not found.machine.assumptions
    assert f"δ = {found.machine.shift[0]:.1e}" in str(found)
    assert found.machine.lower <= found.machine.upper


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ArithmeticError("no luck")])
def test_what_was_found_comes_back_after_an_interruption(error):
    calls = []

    def price(d):
        calls.append(d)
        if len(calls) == 8:
            raise error
        return float(np.sum(d))

    p = family_problem(C=10.0)
    own = KernelFamilyProblem(p.family, Y, "hinge", (price, np.ones_like), 10.0)
    found = gmkl.solve(own, tol=1e-6)
    stopped = isinstance(error, KeyboardInterrupt)
    assert found.status == ("interrupted" if stopped else "failed")
    assert stopped or "ArithmeticError: no luck" in str(found)
    assert found.value == pytest.approx(np.min(found.history["value"]), rel=1e-2)


@pytest.mark.parametrize("loss", ["squared", "eps_insensitive", "huber"])
def test_other_losses(loss):
    y = X[:, 0] * X[:, 1]
    p = KernelFamilyProblem(FAMILIES["product"], y, loss, Total(), 1.0)
    found = gmkl.solve(p, tol=1e-2)
    assert found.status == "stationary" and found.machine.relative_gap <= 1e-8


@pytest.mark.parametrize("p", [1.0, 1.33, 2.0])
def test_sums_are_ordinary_problems(p):
    """The descent over a sum meets the certified optimum of the mapped problem."""
    price = SquaredNorm(p)
    family = KernelFamilyProblem(FAMILIES["sum"], Y, "hinge", price, 1.0)
    found = gmkl.solve(family, tol=1e-6, max_iter=3000)
    exact = solve(Problem(GramStack(K), Y, "hinge", Tikhonov(p, 0.5), 1.0), "analytic")
    assert found.value == pytest.approx(exact.certificate.primal, rel=1e-5)
    mapped = family.as_problem()
    assert mapped.formulation == Tikhonov(p, 0.5) and mapped.C == 1.0


def test_a_sum_becomes_an_ordinary_problem_with_any_weight():
    """The mapped problem has the same value, √(2w) apart for Σd, and the same d."""
    prices: dict[Any, float] = {Total(weight=0.3): 0.6**0.5, SquaredNorm(weight=3): 1.0}
    for price, scale in prices.items():
        family = KernelFamilyProblem(FAMILIES["sum"], Y, "hinge", price, 2.0)
        found = gmkl.solve(family, tol=1e-7, max_iter=3000)
        exact = solve(family.as_problem(), "analytic", tol=1e-7)
        assert found.value == pytest.approx(scale * exact.certificate.primal, rel=1e-5)


def test_what_is_no_ordinary_problem_says_so():
    for family in ("product", "polynomial"):
        with pytest.raises(ValueError, match="only sums of kernels over d ≥ 0"):
            family_problem(family).as_problem()
    with pytest.raises(ValueError, match=r"no map for r\(d\) = MixedNorm"):
        family_problem("sum", "mixed").as_problem()
    with pytest.raises(ValueError, match="only sums"):
        family_problem("sum", project=lambda d: np.clip(d, 0, 1)).as_problem()


def test_the_l1_sum_is_the_group_lasso_with_another_C():
    family = KernelFamilyProblem(FAMILIES["sum"], Y, "hinge", Total(), 3.0)
    found = gmkl.solve(family, tol=1e-7, max_iter=3000)
    lasso = Problem(GramStack(K), Y, "hinge", GroupLasso(), 3.0 / np.sqrt(2))
    exact = solve(lasso, "analytic", tol=1e-7)
    assert found.value == pytest.approx(np.sqrt(2) * exact.certificate.primal, rel=1e-5)


def test_every_switch_is_one_call():
    p = family_problem(C=10.0)
    names = ("spectral", "nonmonotone", "tune")
    ablation: list[Any] = [
        dict(zip(names, map(bool, on)))
        for on in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1))
    ]
    found = [
        gmkl.solve(p, "spg", scaled=False, tol=1e-2, max_iter=4000, **switches)
        for switches in ablation
    ]
    for result in found:
        assert result.status == "stationary"
        assert result.value == pytest.approx(found[0].value, rel=1e-3)
    for one, other in combinations(found, 2):  # every switch does something
        assert not np.array_equal(one.history["value"], other.history["value"])
    solves = [int(result.history["svm_solves"][-1]) for result in found]
    assert max(solves[3:]) < solves[0]
    plain = gmkl.solve(p, "pgd", tol=1e-2, max_iter=4000)
    assert int(plain.history["svm_solves"][-1]) == solves[0]


def test_the_stop_of_the_paper_is_an_option():
    loose = gmkl.solve(family_problem(), stop="paper", tol=1e-9)
    assert loose.status == "stationary" and loose.history["stationarity"][-1] <= 0.04
    with pytest.raises(ValueError, match="choose 'paper' or None"):
        gmkl.solve(family_problem(), stop="soon")


def test_any_convex_set_of_parameters():
    def box(d):
        return np.clip(d, 0.1, 0.4)

    found = gmkl.solve(family_problem(project=box), tol=1e-4)
    assert found.status == "stationary"
    assert np.all((found.d >= 0.1) & (found.d <= 0.4))
    slope = found.slope
    assert np.all(slope[found.d == 0.1] > 0) and np.all(slope[found.d == 0.4] < 0)


def test_limits_are_kept():
    p = family_problem(C=100.0)
    assert gmkl.solve(family_problem(), max_iter=None).status == "stationary"
    assert gmkl.solve(p, tol=0.0, max_iter=3).status == "max_iter"
    found = gmkl.solve(p, "pgd", tol=0.0, time_limit=0.2, max_iter=10**6)
    assert found.status in ("time_limit", "stalled")
    assert found.history["seconds"][-1] < 1.0


def test_the_decision_is_that_of_the_machine():
    found = gmkl.solve(family_problem(), tol=1e-2)
    f = found.decision(D)
    assert np.mean(np.sign(f) == Y) > 0.8
    inner = found.machine
    losses = np.maximum(1 - Y * f, 0.0)
    penalty = 0.5 * inner.alpha @ FAMILIES["product"].combine(found.d) @ inner.alpha
    assert inner.primal == pytest.approx(np.sum(losses) + penalty)
    machine = found.problem.machine(found.d)
    exact = reference.at_weights(machine, np.ones(1), solver="CLARABEL")
    assert inner.primal == pytest.approx(exact.upper, rel=1e-7)


def test_nothing_is_called_optimal_or_a_gap_where_nothing_is_certified():
    found = gmkl.solve(family_problem(), tol=1e-2)
    names = [n for n in dir(found) if not n.startswith("_")]
    texts = [str(found), repr(found), found.message, *names, *STATUS.values()]
    for text in texts:
        assert not re.search(r"optim|gap", text, re.IGNORECASE), text
    assert found.stationarity >= 0


# ---- bad input -----------------------------------------------------------------------


def test_every_parameter_thresholded_away():
    strong = KernelFamilyProblem(FAMILIES["sum"], Y, "hinge", Total(weight=1e4), 0.1)
    found = gmkl.solve(strong)
    assert found.status == "empty" and "no kernel is left" in str(found)
    gone = gmkl.solve(family_problem(), tol=1e-2, threshold=2.0)
    assert gone.status == "empty" and "thresholded away" in gone.message
    with pytest.raises(ValueError, match="begin with some d > 0"):
        gmkl.solve(family_problem(), start=np.zeros(5))


def broken(change):
    wrong = D.copy()
    change(wrong)
    return wrong


@pytest.mark.parametrize(
    "distances, words",
    [
        (broken(lambda d: d.__setitem__((1, 0, 2), -1.0)), "1 has a negative entry"),
        (broken(lambda d: d.__setitem__((2, 0, 0), np.nan)), "2 has NaN or infinite"),
        (broken(lambda d: d.__setitem__((0, 3, 1), np.inf)), "0 has NaN or infinite"),
        (broken(lambda d: d.__setitem__((0, 3, 1), 9.0)), "not symmetric"),
        (D[0], r"expected \(M, n, n\)"),
        ([], "at least one"),
        (None, "distances = None; give"),
        (3, "distances = 3; give"),
        (K, "0 has 1 on its diagonal"),
    ],
)
def test_wrong_distances_get_a_sentence(distances, words):
    with pytest.raises(ValueError, match=words):
        Product(distances)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: KernelFamilyProblem(K, Y), "is no kernel family"),
        (lambda: KernelFamilyProblem(FAMILIES["sum"], Y[:5]), "y has shape"),
        (lambda: KernelFamilyProblem(FAMILIES["sum"], Y, "logistic"), "not quadratic"),
        (lambda: KernelFamilyProblem(FAMILIES["sum"], Y, C=-1.0), "C must be positive"),
        (
            lambda: KernelFamilyProblem(FAMILIES["sum"], Y, regularizer=3),
            "a pair of functions",
        ),
        (
            lambda: KernelFamilyProblem(
                FAMILIES["sum"], Y, regularizer=MixedNorm([[0, 1]])
            ),
            "list every kernel 0 to 4",
        ),
        (lambda: MixedNorm([[0, 1], [1]]), "share no kernel"),
        (lambda: SquaredNorm(0.5), "p = 0.5 is not a number"),
        (lambda: Polynomial(K, degree=0), "whole number ≥ 1"),
        (lambda: Polynomial(K, offset=-1.0), "offset ≥ 0"),
        (lambda: Polynomial(K, offset=TEXT), "offset = 'a'"),
        (lambda: Polynomial(K, offset=np.inf), "finite number, offset ≥ 0"),
        (lambda: LogDeterminant(None), "takes the family"),
        (
            lambda: KernelFamilyProblem(
                FAMILIES["sum"], Y, regularizer=LogDeterminant(Product(D[:2]))
            ),
            "a family with 2 parameters, but the problem has 5",
        ),
        (lambda: family_problem(project=NONE), "project = None; give a function"),
        (lambda: FAMILIES["sum"].stack.against(np.eye(3)), r"expected \(60, 60\)"),
        (lambda: solve(ANY(family_problem())), "mklopt.gmkl.solve takes it"),
        (lambda: gmkl.solve(ANY(3)), "takes a KernelFamilyProblem first, got int"),
        (lambda: gmkl.solve(family_problem(), tol=-1.0), "tol = -1.0; give"),
        (lambda: gmkl.solve(family_problem(), tol=TEXT), "tol = 'a'; give"),
        (lambda: gmkl.solve(family_problem(), tol=NONE), "tol = None; give"),
        (lambda: gmkl.solve(family_problem(), max_iter=0), "max_iter = 0; give"),
        (lambda: gmkl.solve(family_problem(), time_limit=TEXT), "time_limit = 'a'"),
        (lambda: gmkl.solve(family_problem(), threshold=-1.0), "threshold = -1.0"),
        (lambda: gmkl.solve(family_problem(), longest=-1.0), "longest = -1.0"),
        (lambda: gmkl.solve(family_problem(), start=TEXT), "start must be 5 finite"),
        (
            lambda: gmkl.solve(
                KernelFamilyProblem(
                    FAMILIES["sum"], Y, regularizer=(lambda d: np.inf, np.ones_like)
                )
            ),
            "both must be finite",
        ),
        (lambda: Given(*NOTHING), "two functions"),
        (lambda: gmkl.solve(family_problem(), "newton"), "choose one of spg, pgd"),
        (lambda: gmkl.solve(family_problem(), speed=True), "has no option speed"),
        (lambda: gmkl.solve(family_problem(), start=[1.0]), "one per parameter"),
        (lambda: gmkl.solve(family_problem(project=sum)), "project.d. has shape"),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_gradient_of_the_wrong_shape_gets_a_sentence():
    pair = (np.sum, lambda d: 1.0)
    with pytest.raises(ValueError, match="one number per parameter"):
        gmkl.solve(KernelFamilyProblem(FAMILIES["sum"], Y, regularizer=pair))


def test_a_singular_kernel_has_no_log_determinant():
    price = LogDeterminant(FAMILIES["sum"], ridge=0.0)
    with pytest.raises(ValueError, match="the kernel is singular"):
        price.value(np.zeros(5))


def test_a_regularizer_of_ones_own_is_a_subclass_or_a_pair():
    class Cubic(Regularizer):
        def value(self, d):
            return float(np.sum(d**3))

        def gradient(self, d):
            return 3 * d**2

    own = KernelFamilyProblem(FAMILIES["product"], Y, regularizer=Cubic())
    functions = (lambda d: float(np.sum(d**3)), lambda d: 3 * d**2)
    pair = KernelFamilyProblem(FAMILIES["product"], Y, regularizer=functions)
    values = [gmkl.solve(p, tol=1e-4).value for p in (own, pair)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
