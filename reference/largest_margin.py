"""The separator of least norm with margins 1: what theorem 4 of OBSCURE measures with.

    H = min over v   Ω(‖v_1‖, …, ‖v_M‖)   subject to   V(f_i, y_i) = 0 for all i

for the hinge or the multi-class hinge, and Ω a squared norm. A point without losses is
worth Ω for every C, so f*(C) ≤ H, with equality from the C on at which no dual variable
is at its bound. The soft-margin references of growing C give the lower end, and their
primal points, divided by their least margin, the upper one.

Guarantee. lower ≤ H ≤ upper: the lower end is that of a certificate, the upper one the
value of a point whose margins are computed in floats, with room for their rounding.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from ..problem import Problem
from ..util.checks import real_number
from .exact import solve

ROUNDING = 1 + 1e-10  # room for the rounding errors of margins and norms
MAX_C = 1e8  # beyond it a problem counts as not separable


@dataclass(frozen=True, eq=False)
class HardMargin:
    """lower ≤ H ≤ upper, and the separator behind the upper end.

    Parameters
    ----------
    lower, upper : float
    coefficients : array of shape (M, n) or (M, n, k)
        v_m = Σ_i coefficients[m, i] ψ_m(x_i), with all margins at least 1.
    """

    lower: float
    upper: float
    coefficients: np.ndarray = field(repr=False)

    @property
    def norm(self) -> tuple[float, float]:
        """‖v‖ between two bounds, as Ω = ½‖v‖²."""
        return math.sqrt(2 * self.lower), math.sqrt(2 * self.upper)


def hard_margin(problem: Problem, tol: float = 1e-6) -> HardMargin:
    """The separator of least norm: H between two bounds.

    Parameters
    ----------
    problem : Problem
        With the hinge or the multi-class hinge, no bias, and a formulation that is a
        squared norm. Its C does not matter.
    tol : float, default=1e-6
        (upper − lower)/upper, at most.

    Returns
    -------
    HardMargin

    Raises
    ------
    ValueError
        Where the problem is of another kind, or the classes cannot be separated.
    """
    _check(problem)
    if not 0 < real_number(tol, "tol", "a positive number") < np.inf:
        raise ValueError(f"tol = {tol}; give a positive number")
    C = 10.0
    while C <= MAX_C:
        found = solve(problem.with_(C=C), tol=0.1 * tol)
        least = margin(problem, found.predictions)
        if least > 0:
            upper = problem.formulation.value(found.norms) / least**2 * ROUNDING
            if upper - found.lower <= tol * upper:
                return HardMargin(found.lower, upper, found.coefficients / least)
        # Once no α is at its bound, f*(C) = H: go past the largest one.
        C = max(10 * C, 2 * float(np.max(np.abs(found.dual))))
    raise ValueError(
        f"no separator was found up to C = {MAX_C:g}; the classes overlap in these "
        "kernels, or nearly so"
    )


def margin(problem: Problem, f: np.ndarray) -> float:
    """The least margin: V(f) = (1 − margin)₊, read where all margins are below 1."""
    small = 1 / (1 + 4 * float(np.max(np.abs(f))))
    return float(np.min(1 - problem.loss.value(small * f, problem.y))) / small


def _check(problem: Problem) -> None:
    """V = (1 − margin)₊ with margins linear in f, and Ω a squared norm."""
    if not isinstance(problem, Problem):
        raise ValueError(f"hard_margin takes a Problem, got {type(problem).__name__}")
    f = np.random.default_rng(0).uniform(-0.1, 0.1, problem.shape)
    once, half = (1 - problem.loss.value(t * f, problem.y) for t in (1.0, 0.5))
    if np.any(np.abs(once - 2 * half) > 1e-12):
        raise ValueError(f"{problem.loss.name} has no margin of 1; the hinges have")
    one, two = (problem.formulation.value(np.full(problem.grams.M, t)) for t in (1, 2))
    if problem.bias or abs(two - 4 * one) > 1e-9 * two:
        raise ValueError(
            "hard margins are for squared norms without a bias: BlockNorm or LpNorm, "
            "bias=False"
        )
