"""Acceleration of the fixed-point iteration θ ← reweight(θ, v(θ)): Newton and Anderson.

Both work on x = log θ and look for a zero of r(x) = log reweight(θ, v(θ)) − x.

Newton. v depends on θ through the inner problem: with G = ∂²J/∂θ² (machine.py),
∂ log v_m / ∂x_l = −θ_l G_ml / v_m². With log v linear in x, r is known, and the next θ
is its zero. A step costs one product with every kernel; convergence is quadratic where
the free coordinates of the inner problem no longer change. For sparse formulations the
kernels in use change until the end, and Anderson's method is used instead.

Anderson. The combination of the last few steps whose linearized residual is smallest
(Walker and Ni 2011). It needs no further pass, but several times as many steps.

In both, a kernel counts by its share √θ_m v_m of the prediction. The extrapolation
stays inside a trust region, which grows after each step and shrinks when a step was
taken back. A weight moves at most by a factor of e³ beyond the plain step, so that a
kernel that hardly contributes can come back.
"""

from collections import deque

import numpy as np

from ...util.checks import check_choice
from ..base import Array
from ..machines.machine import Machine

TINY = 1e-300
NEWTON_GAP = 0.5  # the relative gap below which a Newton step is worth its pass
NEWTON_KERNELS = 2000  # with more kernels its linear system is too large; and it needs
# all K_mα, which are too large for a large stack
USED_SHARE = 1e-6  # of the prediction: kernels below it are left out of Newton's model
MODEL_STEPS, LONGEST_STEP = 2, 10.0  # steps on the model of r; their length in log θ
LONGEST_EXTRAPOLATION = 3.0  # in log θ, beyond the plain step
MEMORY, RIDGE = 5, 1e-10  # of Anderson: steps, and regularization relative to the trace


class Ahead:
    """The next θ from θ and its image, by Newton or Anderson, inside a trust region."""

    def __init__(self, machine: Machine, method: str | None):
        self.method = check_choice(method, "accelerate", ("newton", "anderson", None))
        self.machine = machine
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
        affordable = gap < NEWTON_GAP and len(theta) <= NEWTON_KERNELS
        affordable = affordable and not self.machine.problem.grams.is_large
        if self.method == "newton" and smooth and affordable:
            target = newton(self.machine, x, image, share, target)
        limit = LONGEST_EXTRAPOLATION
        extra = np.clip(target - image, -limit, limit)
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
    """The zero of r with log v linear, for the kernels in use; `other` for the rest.

    Only log v is linearized, not the reweighting; this saves an iterate.
    """
    used = np.flatnonzero(share > USED_SHARE)
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
        change = np.clip(bends @ (z - x)[used], -3.0, 3.0)
        v[used] = machine.v[used] * np.exp(change)
        image = np.log(np.maximum(formulation.reweight(np.exp(z), v), TINY))
    target = other.copy()
    target[used] = image[used]
    return target if np.all(np.isfinite(target)) else other


class Anderson:
    """Anderson's method: a combination of the last few points and residuals."""

    def __init__(self) -> None:
        self.points: deque[Array] = deque(maxlen=MEMORY + 1)
        self.residuals: deque[Array] = deque(maxlen=MEMORY + 1)

    def next(self, x: Array, image: Array, weight: Array) -> Array:
        """The next point, from x and its image; coordinates count by their weight."""
        self.points.append(x)
        self.residuals.append(image - x)
        if len(self.points) < 2:
            return image
        moves = np.diff(np.array(self.points), axis=0)
        bends = np.diff(np.array(self.residuals), axis=0)
        scaled, last = bends * weight, self.residuals[-1] * weight
        system = scaled @ scaled.T
        system[np.diag_indices_from(system)] += RIDGE * np.trace(system) + TINY
        gamma = np.linalg.solve(system, scaled @ last)
        return np.asarray(image - gamma @ (moves + bends))
