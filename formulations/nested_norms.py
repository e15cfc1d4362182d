"""Sums of Euclidean norms over nested groups: tree norms.

    Ω(u) = Σ_g c_g ‖u_g‖₂, each pair of groups nested or disjoint

With one step for all kernels, prox is the composition of the shrinkages of all groups,
from the small ones to the large ones. So Ω*(v) = 0 where these leave nothing of v.

With one step s_m for each, groups are 0 where these leave nothing of u/s: Ω* does not
know the steps. The others solve z_m (1 + s_m Σ_{g∋m} c_g/‖z_g‖) = u_m, by Newton steps
on the strictly convex objective, which is smooth there.

Reference: Jenatton et al. (2011), Proximal methods for hierarchical sparse coding,
Lemma 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

Array = np.ndarray
MAX_NEWTON_STEPS = 60
CLOSE = 1e-14  # a relative step this short is the last one
VISIBLE = 1e-10  # smaller falls of the objective drown in rounding errors


@dataclass(frozen=True)
class Tree:
    """The groups of a tree norm, and the factor of each.

    Parameters
    ----------
    groups : tuple of (kernels, factor)
        Nested or disjoint.
    """

    groups: tuple[tuple[tuple[int, ...], float], ...]

    def _upwards(self) -> list[tuple[list[int], float]]:
        """From the leaves to the root."""
        ordered = sorted(self.groups, key=lambda group: len(group[0]))
        return [(list(index), c) for index, c in ordered]

    def shrunk(self, u: Array, step: float = 1.0) -> Array:
        """The prox for one step."""
        z = np.array(u, float)
        for index, c in self._upwards():
            part = z[index]
            size = float(np.linalg.norm(part))
            z[index] = part * (1 - step * c / size) if size > step * c else 0.0
        return z

    def holds(self, v: Array) -> bool:
        """Whether Ω*(v) is 0."""
        return not np.any(self.shrunk(v))

    def prox(self, u: Array, step: Array) -> Array:
        """argmin Ω(z) + Σ (z − u)²/(2 step), u ≥ 0."""
        used = u > 0  # steps of the others do not matter
        if not np.any(used):
            return np.zeros(len(u))
        first = step[used][0]
        if np.all(step[used] == first):
            return self.shrunk(u, float(first))
        z, left = np.zeros(len(u)), self.shrunk(u / step) > 0
        if np.any(left):
            z[left] = self._positive(u, step, left)
        return z

    def _inside(self, left: Array) -> list[tuple[Array, float]]:
        """The groups among the kernels that are left, numbered anew."""
        place = np.cumsum(left) - 1
        parts = ((np.array([m for m in i if left[m]]), c) for i, c in self._upwards())
        return [(place[index], c) for index, c in parts if len(index)]

    def _positive(self, u: Array, step: Array, left: Array) -> Array:
        """z > 0 of the kernels that are left: damped Newton steps."""
        u, step, groups = u[left], step[left], self._inside(left)

        def objective(z: Array) -> float:
            norms = sum(c * float(np.linalg.norm(z[index])) for index, c in groups)
            return norms + float(np.sum((z - u) ** 2 / (2 * step)))

        z = np.array(u)
        for _ in range(MAX_NEWTON_STEPS):
            slope, H = (z - u) / step, np.diag(1 / step) + _hessian(z, groups)
            for index, c in groups:
                slope[index] += c * z[index] / np.linalg.norm(z[index])
            move = -scipy.linalg.solve(H, slope, assume_a="pos")
            size = min(1.0, 0.9 / max(float(np.max(-move / z)), 1e-300))
            now, falls = objective(z), -float(slope @ move)
            visible = falls > VISIBLE * abs(now)  # else close: Newton steps as they are
            while visible and objective(z + size * move) > now - 1e-4 * size * falls:
                size /= 2
            z = z + size * move
            if np.max(np.abs(move) / z) <= CLOSE:
                break
        return z

    def slope(self, u: Array, step: Array) -> Array:
        """∂prox/∂u over the kernels that are used: (I + step ∇²Ω)⁻¹."""
        z = self.prox(u, step)
        left = z > 0
        H = step[left][:, None] * _hessian(z[left], self._inside(left))
        return np.linalg.inv(np.eye(len(H)) + H)


def _hessian(z: Array, groups: list[tuple[Array, float]]) -> Array:
    """Σ c (I − ẑẑᵀ)/‖z_g‖ with ẑ = z_g/‖z_g‖."""
    H = np.zeros((len(z), len(z)))
    for index, c in groups:
        size = float(np.linalg.norm(z[index]))
        unit = z[index] / size
        H[np.ix_(index, index)] += (
            c / size * (np.eye(len(index)) - np.outer(unit, unit))
        )
    return H
