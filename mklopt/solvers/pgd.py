"""Projected gradient descent with the rule of Armijo and precise machines.

Problem. That of spg.py: the minimum of W(θ) = J(θ) + r(θ) over θ ≥ 0.

Algorithm (Varma and Babu 2009; the baseline of Jain et al. 2012). θ moves along
P(θ − λ∇W) − θ with a fixed λ, as far as W falls enough; every machine is solved to
1e-9. It is spg with everything switched off. remember=True begins each search with
twice the last step, or with what was left of it: far fewer machines than Armijo's rule.

Guarantee. W falls in every step, up to the tolerance of the machine; limit points are
minima.
"""

from __future__ import annotations

from typing import Any

from ..problem import Problem
from .base import Steps, solver
from .spg import spg


@solver(
    "pgd",
    needs={"priced"},
    losses={"quadratic"},
    accuracy=1e-3,
    reference="jain2012",
    guarantee="W falls in every step, up to the tolerance of the machine",
)
def pgd(
    problem: Problem,
    *,
    start: Any = None,
    remember: bool = False,
    stop: str | None = None,
) -> Steps:
    """remember: begin each search near where the last one ended; stop: as in spg"""
    off = dict.fromkeys(("spectral", "nonmonotone", "tune", "scaled"), False)
    yield from spg.steps(problem, start=start, remember=remember, stop=stop, **off)
