"""The envelope of a kernel family against values of a quadratic program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mklopt import gmkl
from mklopt.gmkl.families import Polynomial, Product
from mklopt.gmkl.problem import KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm
from mklopt.reference.envelope import envelope_agreement, envelope_value

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 5))
Y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.2 * RNG.normal(size=30))
D = np.stack([(x[:, None] - x) ** 2 for x in X.T])


@pytest.mark.parametrize("family", [Product(D), Polynomial(np.exp(-D))], ids=repr)
def test_the_envelope_gradient_agrees_with_differences_of_osqp(family):
    problem = KernelFamilyProblem(family, Y, "hinge", SquaredNorm(2.0), 1.0)
    found = gmkl.solve(problem, tol=1e-1)
    assert envelope_agreement(found, most=3) <= 1e-4
    assert envelope_value(problem, found.d) == pytest.approx(found.value, rel=1e-7)
    wrong = replace(found, slope=1.1 * found.slope + 0.1)
    assert envelope_agreement(wrong, most=1) > 1e-2


def test_the_envelope_is_the_price_and_the_svm():
    """Squared loss, no bias: the SVM is worth ½ yᵀ(K + I/C)⁻¹y."""
    problem = KernelFamilyProblem(
        Product(D), X[:, 0], "squared", SquaredNorm(2.0), 2.0, bias=False
    )
    d = np.linspace(0.1, 0.5, 5)
    K = np.exp(-np.tensordot(d, D, 1))
    inner = 0.5 * X[:, 0] @ np.linalg.solve(K + 0.5 * np.eye(30), X[:, 0])
    known = 0.5 * float(np.sum(d**2)) + float(inner)
    assert envelope_value(problem, d) == pytest.approx(known, rel=1e-6)
