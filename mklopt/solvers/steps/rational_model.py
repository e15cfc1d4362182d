"""J near θ as if kernels had rank one: right to second order, and good far away.

With g_m = K_mα and s_m = αᵀK_mα, K_m ⪰ g_mg_mᵀ/s_m, and equal on α (Cauchy and
Schwarz). With these kernels in place of K_m, the loss with its quadratic dual at α and
H = ∂²J, the value of a change δ is

    J(θ + δ) ≈ J(θ) − ½ Σ_m δ_m x_m,    x = (I + H diag(δ/s))⁻¹ s

with ∂J/∂δ_m = −½ x_m²/s_m. The new α is α minus H's columns times δx/s. Where the
quadratic model −½sᵀδ + ½δᵀHδ falls and rises as a parabola, J and this model are as
1/θ: from weights that are far away Newton's method with it needs fewer steps.

Guarantee. Value, slope and curvature at δ = 0 are those of J.
"""

import numpy as np

from ..base import Array
from .pivoting import minimum

MAX_ROUNDS, MAX_TRIALS, SHORTER = 12, 10, 0.4  # of Newton's method on the model
ENOUGH, ENDED = 0.1, 1e-6  # of the predicted fall; of the first fall: no more rounds
RIDGE = 1e-9  # added to the curvature, relative to its mean diagonal entry
LEAST_SQUARE = 1e-12  # s is at least this part of the largest one


class Rational:
    """The model at z = θ + δ, with linear costs.

    curve, slope: ∂² and ∂ of J(θ) + costs; pull = −∂J/∂θ
    """

    def __init__(self, curve: Array, slope: Array, theta: Array, pull: Array):
        self.curve, self.theta, self.costs = curve, theta, slope + pull
        self.s = np.maximum(2 * pull, LEAST_SQUARE * np.max(2 * pull) + 1e-300)

    @np.errstate(over="ignore", invalid="ignore")  # then the value is not finite
    def move(self, z: Array) -> float:
        """Go to z; returns the value there."""
        D = (z - self.theta) / self.s
        columns = np.column_stack([self.s, self.curve])
        found = np.linalg.solve(np.eye(len(D)) + self.curve * D, columns)
        self.x, self._curve = found[:, 0], found[:, 1:]
        return float(self.costs @ z) - 0.5 * float((z - self.theta) @ self.x)

    @property
    def share(self) -> Array:
        """What is left of ⟨g_m, α⟩: x/s."""
        return np.asarray(self.x / self.s)

    @property
    def slope(self) -> Array:
        """The derivative at z."""
        return self.costs - 0.5 * self.x * self.share

    @property
    def bend(self) -> Array:
        """The second derivative at z."""
        found = 0.5 * (self._curve + self._curve.T) * np.outer(self.share, self.share)
        found[np.diag_indices_from(found)] += RIDGE * np.trace(found) / len(found)
        return found


def rational_minimum(
    curve: Array, slope: Array, theta: Array, pull: Array, owner: Array | None = None
) -> tuple[Array, Array]:
    """The minimum of the model over z ≥ 0, and the share x/s there.

    owner: the simplex that each coordinate belongs to, where there are simplices
    """
    model, z, fell = Rational(curve, slope, theta, pull), theta, 0.0
    value = model.move(z)
    for _ in range(MAX_ROUNDS):
        step = minimum(model.bend, model.slope, z, owner) - z
        falls, t = float(model.slope @ step), 1.0
        if falls >= -ENDED * fell:
            break
        for _ in range(MAX_TRIALS):
            new = model.move(z + t * step)
            if new <= value + ENOUGH * t * falls:
                break
            t *= SHORTER
        z, value, fell = z + t * step, new, fell or -falls
    return np.maximum(z, 0.0), model.share
