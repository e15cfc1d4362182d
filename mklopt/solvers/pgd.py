"""Projected gradient descent with Armijo's rule and precise SVM solutions.

Problem. That of spg.py: the minimum of W(θ) = J(θ) + r(θ) over θ ≥ 0.

Algorithm (Varma and Babu 2009; the baseline of Jain et al. 2012). θ moves along
P(θ − λ∇W) − θ with a fixed λ, as far as W falls enough; every SVM is solved to 1e-9.
It is spg with everything switched off. With remember=True each search begins with twice
the last step if that was accepted at once, else with the accepted part of it; this
needs far fewer SVMs than Armijo's rule.

Guarantee. W falls in every step, up to the tolerance of the SVM solver; limit points
are minima.
"""

from ..problem import Problem
from .base import Steps, solver, up_to_C
from .spg import spg


@solver(
    "pgd",
    needs={"priced"},
    accuracy=up_to_C(1000.0, 1e-2),  # λ is short where the first slope is large
    reference="jain2012",
    guarantee="W falls in every step, up to the tolerance of the SVM solver",
)
def pgd(
    problem: Problem,
    *,
    start: object = None,
    remember: bool = False,
    stop: str | None = None,
) -> Steps:
    """Projected gradient descent.

    remember: each search begins with a step like the last accepted one; stop: as in spg
    """
    off = dict.fromkeys(("spectral", "nonmonotone", "tune", "scaled"), False)
    yield from spg.steps(problem, start=start, remember=remember, stop=stop, **off)
