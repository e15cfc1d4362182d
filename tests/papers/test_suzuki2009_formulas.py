"""The paper's formulas as printed, and the solver: the same functions in other units.

With the parameter on the loss, 1/C, the dual variable is ρ/C and penalties are γC.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.claims import items as papers
from mklopt.formulations import GroupLasso
from mklopt.reference.equivalences import suzuki_C
from mklopt.solvers.steps.augmented_lagrangian import Gammas, Lagrangian

papers.load("suzuki2009")
instance = import_module("papers.suzuki2009.algebra_studies").instance


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("seed", range(3))
def test_the_solver_has_the_gradient_and_the_steps_of_the_paper(loss, seed):
    rng = np.random.default_rng(seed)
    step = instance(rng, loss)
    C, y = step.C, step.loss.y
    canonical = suzuki_C(C, half_squared=loss != "squared")
    problem = Problem(GramStack(step.K), y, loss, GroupLasso(), canonical)
    gammas = Gammas(C * step.gamma, C * step.gamma_b, 1.0)
    lagrangian = Lagrangian(problem, gammas, step.alpha, step.b)
    rho = y * rng.uniform(0.2, 0.8, len(y))
    point = lagrangian.enter(np.arange(len(step.K)), rho / C)
    assert point.gradient == pytest.approx(step.gradient(rho), abs=1e-10)
    assert np.array_equal(point.z > 0, step.active(rho))
    assert lagrangian.coefficients(point) == pytest.approx(step.after(rho)[0])
    direction = np.linalg.solve(step.hessian(rho), -step.gradient(rho))
    assert C * lagrangian.direction(point) == pytest.approx(direction, rel=1e-6)
