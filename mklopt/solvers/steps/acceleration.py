"""Going ahead of a fixed-point iteration θ ← reweight(θ, v(θ)): Newton and Anderson.

Both work on x = log θ and look for a zero of r(x) = log reweight(θ, v(θ)) − x.

Newton. v depends on θ through the machine: with G = ∂²J/∂θ² (machine.py),
∂ log v_m / ∂x_l = −θ_l G_ml / v_m²; with log v linear in x, r is known, and its zero is
where to go. One product with every kernel per step, and quadratic convergence where the
free coordinates of the machine no longer change. For sparse formulations the kernels in
use change until the end, and Newton gives way to Anderson.

Anderson. The combination of the last few steps whose linearized residual is smallest
(Walker and Ni 2011): no further pass, but several times as many steps.

Kernels count by their share √θ_m v_m of the prediction. Steps stay inside a region that
grows with success and shrinks when a step had to be taken back; a kernel that hardly
takes part moves at most by a factor of e³ at a time, so that it can come back.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..machines.machine import Machine

Array = np.ndarray
TINY = 1e-300
NEWTON_GAP = 0.5  # the relative gap below which Newton is worth its pass
NEWTON_KERNELS = 2000  # kernels above which its linear system is not
MODEL_STEPS, LONGEST_STEP = (
    2,
    10.0,
)  # steps on the model of r, and their length in log θ, at most


class Ahead:
    """The next θ from θ and its image, by Newton or Anderson, inside a trust region."""

    def __init__(self, machine: Machine, method: str | None):
        if method not in ("newton", "anderson", None):
            raise ValueError(
                f"accelerate = {method!r}; choose 'newton', 'anderson' or None"
            )
        self.machine, self.method = machine, method
        self.anderson, self.trust, self.length = Anderson(), 1.0, 0.0

    def step(self, theta: Array, plain: Array, gap: float) -> Array:
        """The next θ, from θ, its image and the relative gap."""
        if self.method is None:
            return plain
        x, image = (np.log(np.maximum(t, TINY)) for t in (theta, plain))
        share = np.sqrt(theta) * self.machine.v
        share = share / max(float(np.linalg.norm(share)), TINY)
        target = self.anderson.next(x, image, share)
        smooth = "smooth_dual" in self.machine.problem.formulation.traits
        if (
            self.method == "newton"
            and smooth
            and gap < NEWTON_GAP
            and len(theta) <= NEWTON_KERNELS
        ):
            target = newton(self.machine, x, image, share, target)
        extra = np.clip(target - image, -3.0, 3.0)
        self.length = float(np.linalg.norm(share * extra))
        self.trust *= 2
        if self.length > self.trust:
            extra *= self.trust / self.length
            self.length = self.trust
        return np.asarray(np.exp(np.maximum(image + extra, np.log(TINY))))

    def retreat(self) -> None:
        """The last step was taken back."""
        self.trust = 0.25 * self.length


def newton(machine: Machine, x: Array, image: Array, share: Array, other: Array):
    """A zero of r if log v were linear, for the kernels in use; `other` for the rest.

    What is known of reweighting is not linearized with it: that saves an iterate.
    """
    used = np.flatnonzero(share > 1e-6)
    inside, formulation = np.ix_(used, used), machine.problem.formulation
    bends = -np.exp(x[used]) * machine.hessian(used) / machine.v[used][:, None] ** 2
    z, v = x.copy(), machine.v.copy()
    for _ in range(MODEL_STEPS):
        by_theta, by_v = formulation.elasticities(np.exp(z), v)
        system = by_theta[inside] + by_v[inside] @ bends - np.eye(len(used))
        try:
            step = np.linalg.solve(system, (z - image)[used])
        except np.linalg.LinAlgError:
            return other
        if not np.all(np.isfinite(step)):
            return other
        z[used] += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        v[used] = machine.v[used] * np.exp(np.clip(bends @ (z - x)[used], -3.0, 3.0))
        image = np.log(np.maximum(formulation.reweight(np.exp(z), v), TINY))
    target = other.copy()
    target[used] = image[used]
    return target if np.all(np.isfinite(target)) else other


class Anderson:
    """The last few points and residuals, combined."""

    def __init__(self, memory: int = 5, ridge: float = 1e-10):
        self.points: deque[Array] = deque(maxlen=memory + 1)
        self.residuals: deque[Array] = deque(maxlen=memory + 1)
        self.ridge = ridge

    def next(self, x: Array, image: Array, weight: Array) -> Array:
        """The next point, from x and its image; `weight` says what matters."""
        self.points.append(x)
        self.residuals.append(image - x)
        if len(self.points) < 2:
            return image
        moves = np.diff(np.array(self.points), axis=0)
        bends = np.diff(np.array(self.residuals), axis=0)
        scaled, last = bends * weight, self.residuals[-1] * weight
        system = scaled @ scaled.T
        ridge = self.ridge * np.trace(system) + TINY
        system[np.diag_indices_from(system)] += ridge
        gamma = np.linalg.solve(system, scaled @ last)
        return np.asarray(image - gamma @ (moves + bends))
