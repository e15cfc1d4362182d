"""Kernel families, regularizers and problems that the tests of gmkl share."""

from __future__ import annotations

import numpy as np

from mklopt.gmkl.families import KernelFamily, Polynomial, Product, Sum
from mklopt.gmkl.problem import KernelFamilyProblem
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
D0 = np.array([0.5, 0.2, 1.5, 0.0, 0.7])
FAMILIES: dict[str, KernelFamily] = {
    "sum": Sum(K),
    "product": Product(D),
    "polynomial": Polynomial(K, degree=3, offset=0.5),
}
REGULARIZERS: dict[str, Regularizer] = {
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


def family_problem(family="product", r="total", C=1.0, **more):
    return KernelFamilyProblem(FAMILIES[family], Y, "hinge", REGULARIZERS[r], C, **more)
