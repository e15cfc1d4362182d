"""Problems over kernel families: what is checked, the envelope, ordinary problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, gmkl, solve
from mklopt.formulations import GroupLasso, Tikhonov
from mklopt.gmkl.families import Product
from mklopt.gmkl.problem import Envelope, KernelFamilyProblem, nonnegative
from mklopt.gmkl.regularizers import (
    LogDeterminant,
    MixedNorm,
    Regularizer,
    SquaredNorm,
    Total,
)
from tests.unit.gmkl.samples import (
    D0,
    FAMILIES,
    D,
    K,
    Y,
    differences,
    family_problem,
)

NONE: Any = None
ANY: Any = lambda given: given  # noqa: E731


# ---- the envelope --------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_of_the_envelope_is_that_of_finite_differences(family):
    envelope = Envelope(family_problem(family, "p"), tune=False)
    d = D0 + 0.1
    value, slope, size = envelope.precisely(d)
    measured = differences(lambda at: envelope.precisely(at)[0], d, h=1e-4)
    np.testing.assert_allclose(slope, measured, rtol=1e-3, atol=1e-3)
    assert size == np.max(np.abs(np.minimum(d, slope)))
    machine = envelope.problem.machine(d)
    exact = solve(machine, tol=1e-9).certificate.primal
    r = envelope.problem.regularizer.value(d)
    assert value == pytest.approx(r + exact, rel=1e-8)


def test_an_envelope_counts_its_work_and_sharpens():
    envelope = Envelope(family_problem(), tune=True)
    assert envelope.worst == pytest.approx(60.0)  # C Σ V(0), the hinge at 0
    assert envelope.noise == pytest.approx(0.06)
    envelope.value(D0)
    envelope.value(D0)
    assert envelope.solves == 2 and envelope.work > 0
    envelope.sharpen()
    assert envelope.noise == pytest.approx(0.006)
    for _ in range(30):
        envelope.sharpen()
    assert envelope.noise == pytest.approx(1e-14 * 60)


def test_stationarity_is_the_length_of_a_projected_step():
    d, slope = np.array([0.2, 0.0, 0.3]), np.array([0.1, 5.0, -2.0])
    three = Product(D[:3])
    at = Envelope(KernelFamilyProblem(three, Y), tune=False)
    assert at.stationarity(d, slope) == 2.0
    inside = KernelFamilyProblem(three, Y, project=lambda d: np.clip(d, 0.0, 1.0))
    assert Envelope(inside, tune=False).stationarity(d, slope) == pytest.approx(0.7)
    np.testing.assert_array_equal(nonnegative(np.array([-1.0, 2.0])), [0.0, 2.0])


def test_the_svm_at_d_is_an_ordinary_problem():
    p = family_problem(C=3.0)
    machine = p.machine(D0)
    np.testing.assert_allclose(machine.grams.kernel(0), FAMILIES["product"].combine(D0))
    assert (machine.C, machine.bias, machine.loss.name) == (3.0, True, "hinge")


# ---- ordinary problems ---------------------------------------------------------------


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


# ---- bad input -----------------------------------------------------------------------


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
        (
            lambda: KernelFamilyProblem(
                FAMILIES["sum"], Y, regularizer=LogDeterminant(Product(D[:2]))
            ),
            "a family with 2 parameters, but the problem has 5",
        ),
        (lambda: family_problem(project=NONE), "project = None; give a function"),
        (lambda: solve(ANY(family_problem())), "mklopt.gmkl.solve takes it"),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
