"""Problems and methods of Jain et al. (2012), section 5.

W(d) = r(d) + max over α of the SVM dual at K(d),   d ≥ 0

PGD     projected gradient, the rule of Armijo, SVMs solved to 1e-9
PGD+    PGD whose searches begin near where the last one ended
SPG     the paper's method: spectral step ≤ 10 (S), average of Zhang and Hager (N),
        SVMs as precise as the step needs (P)
SPG*    SPG in our metric, with steps of any length
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mklopt import GramStack, Problem, gmkl, solve
from mklopt.formulations import GroupLasso, Tikhonov
from mklopt.gmkl.families import Product
from mklopt.gmkl.problem import KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm, Total

Array = np.ndarray
C_SUM, C_PRODUCT = 1000.0, 10.0
GAP = 1e-3  # of sums: certified, relative
STATIONARITY = 1e-2  # of products: the projected gradient
PLAIN: dict[str, Any] = {"scaled": False, "longest": 10.0}  # metric and λ_max of SPG
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "PGD": ("pgd", {}),
    "PGD+": ("pgd", {"remember": True}),
    "SPG": ("spg", PLAIN),
    "SPG*": ("spg", {}),
}
ABLATION = {
    name: {"spectral": S, "nonmonotone": N, "tune": P}
    for name, S, N, P in (
        ("PGD", False, False, False),
        ("+S", True, False, False),
        ("+N", False, True, False),
        ("+N+S", True, True, False),
        ("SPG", True, True, True),
    )
}


class Task:
    """One problem, and how a method solves it; p = 1 is r(d) = Σd, else ½‖d‖_p²."""

    def __init__(self, p: float, inputs: GramStack | Product, y: Array):
        self.p, self.is_sum = p, isinstance(inputs, GramStack)
        if isinstance(inputs, GramStack):
            form = GroupLasso() if p == 1 else Tikhonov(p, 0.5)
            self.problem: Any = Problem(inputs, y, "hinge", form, C_SUM / self.unit)
        else:
            price = Total() if p == 1 else SquaredNorm(p)
            self.problem = KernelFamilyProblem(inputs, y, "hinge", price, C_PRODUCT)

    def end(self, solver: str, **options: Any) -> Any:
        """The result of one solver; options are its switches and limits."""
        if self.is_sum:
            return solve(self.problem, solver, tol=GAP, **options)
        return gmkl.solve(self.problem, solver, tol=STATIONARITY, **options)

    @property
    def unit(self) -> float:
        """W over the objective of the problem that is solved."""
        return float(np.sqrt(2)) if self.is_sum and self.p == 1 else 1.0
