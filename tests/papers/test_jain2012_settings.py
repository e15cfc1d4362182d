"""Problems and methods of Jain et al. (2012): one problem, many ways to solve it."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, gmkl, solve
from mklopt.gmkl.families import Product, Sum
from mklopt.gmkl.problem import KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm, Total
from papers.jain2012.settings import ABLATION, C_SUM, METHODS, PLAIN, Task

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sign(X[:, 0] + 0.3 * RNG.normal(size=40))
K = np.stack([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])


@pytest.mark.parametrize("p", [1.0, 1.33])
@pytest.mark.parametrize("kind", ["sum", "product"])
def test_a_task_is_solved_by_every_method_to_the_same_objective(kind, p):
    inputs = GramStack(K) if kind == "sum" else Product.from_features(X)
    task = Task(p, inputs, Y)
    values = []
    for solver, switches in METHODS.values():
        end = task.end(solver, max_iter=3000, **switches)
        assert end.converged if kind == "sum" else end.status == "stationary"
        values.append(end.certificate.primal if kind == "sum" else end.value)
    assert max(values) - min(values) <= 1e-3 * min(values)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_a_sum_is_the_paper_s_W(p):
    """unit × the optimum of the convex problem is the minimum of W.

    Kernels of rank one leave a loss, so that C matters.
    """
    K = np.stack([np.outer(x, x) for x in X.T])
    task = Task(p, GramStack(K), Y)
    found = solve(task.problem, tol=1e-6).certificate
    price = Total() if p == 1 else SquaredNorm(p)
    family = KernelFamilyProblem(Sum(K), Y, "hinge", price, C_SUM)
    least = gmkl.solve(family, tol=1e-4, max_iter=2000).value
    assert least == pytest.approx(task.unit * found.primal, rel=1e-3)


def test_the_ablation_ends_at_the_paper_s_method():
    """+N+S and the precision of P: SPG as METHODS has it, beside its plain metric."""
    task = Task(1.33, GramStack(K), Y)
    switched = task.end("spg", **PLAIN, **ABLATION["SPG"])
    solver, switches = METHODS["SPG"]
    assert (
        switched.certificate.primal == task.end(solver, **switches).certificate.primal
    )
    assert [sum(on.values()) for on in ABLATION.values()] == [0, 1, 1, 2, 3]
