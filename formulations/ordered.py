"""Sums of sorted block norms in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Formulation, check_count
from .norms import Array, ratio

ROUNDING = 1e-13  # gains below this part of what is summed are none


@dataclass(frozen=True)
class OrderedWeightedL1(Formulation):
    """Σ λ_i u_(i), and its operators in closed form: exact, and faster.

    It is the Lovász extension of F(S) = λ_1 + … + λ_|S|. So kernels of equal u share
    their λ, Ω* is 0 where no set has Σ_S v > F(S), and prox cuts sets by sorting.
    Reference: Bach (2013), chapter 9.

    Parameters
    ----------
    lam : tuple of float
        One λ ≥ 0 for each kernel, in decreasing order.
    """

    lam: tuple[float, ...]
    listed: ClassVar[bool] = False  # `owl` offers it

    def penalty(self, u: Any) -> Any:
        """Σ λ_i u_(i) as a CVXPY expression."""
        import cvxpy as cp

        return cp.dotsort(u, np.array(self.lam))

    def validate(self, M: int) -> None:
        """One λ per kernel."""
        check_count("owl", "lam", self.lam, M)

    def __repr__(self) -> str:
        steps = [f"{value:.3g}" for value in self.lam]
        shown = steps if len(steps) <= 4 else [*steps[:2], "…", steps[-1]]
        return f"owl([{', '.join(shown)}])"

    def value(self, u: Array) -> float:
        """Σ λ_i u_(i)."""
        return float(np.sort(u)[::-1] @ self.lam)

    def conjugate(self, v: Array) -> float:
        """0 where Σ_S v ≤ F(S) for every set S, else infinite."""
        return 0.0 if self.feasible_scale(v) >= 1 else np.inf

    def feasible_scale(self, v: Array) -> float:
        """F(S)/Σ_S v at its smallest: S has the largest v, one, two, … of them."""
        sums, allowed = np.cumsum(np.sort(v)[::-1]), np.cumsum(self.lam)
        over = sums > allowed
        return float(np.min(allowed[over] / sums[over], initial=1.0))

    def weights(self, u: Array) -> Array:
        """u/λ, kernels of equal u sharing the mean of their λ."""
        _, level = np.unique(-u, return_inverse=True)  # from the longest down
        lam = np.bincount(level, np.array(self.lam)[np.argsort(np.argsort(-u))])
        return ratio(u, (lam / np.bincount(level))[level])

    def prox(self, u: Array, step: Array | float) -> Array:
        """Each set of kernels at its level, or at 0."""
        z = np.empty(len(u))
        for level, S in self._levels(u, np.broadcast_to(1 / np.asarray(step), u.shape)):
            z[S] = max(level, 0.0)
        return z

    def prox_slope(self, u: Array, step: Array | float) -> Array:
        """Kernels at one level move together, by the mean of their moves."""
        w = np.broadcast_to(1 / np.asarray(step), u.shape)
        J = np.zeros((len(u), len(u)))
        for _, S in self._levels(u, w):
            J[np.ix_(S, S)] = w[S] / np.sum(w[S])
        used = np.flatnonzero(self.prox(u, step) > 0)
        return J[np.ix_(used, used)]

    def _levels(self, u: Array, w: Array) -> Iterator[tuple[float, Array]]:
        """The levels of prox, and the kernels at each; w is one over the step.

        If all of S were at one level, it would be this. Those that gain by leaving it
        upwards are the set that minimizes F(T) − Σ_T w (u − level) over T ⊂ S.
        """
        lam, todo = np.array(self.lam), [(0, np.arange(len(u)))]
        while todo:
            first, S = todo.pop()
            here = lam[first : first + len(S)]
            level = float((w[S] @ u[S] - np.sum(here)) / np.sum(w[S]))
            S = S[np.argsort(-w[S] * (u[S] - level), kind="stable")]
            cost = np.cumsum(here - w[S] * (u[S] - level))[:-1]
            cut = int(np.argmin(cost)) + 1 if len(cost) else 0
            size = np.sum(here) + w[S] @ np.abs(u[S])
            if cut and cost[cut - 1] < -ROUNDING * size:
                todo += [(first, S[:cut]), (first + cut, S[cut:])]
            else:
                yield level, S
