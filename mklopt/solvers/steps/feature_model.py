"""The model of a proximal Newton step in feature space: MKL without samples.

    min over d   Ω(‖w_1 + d_1‖, …, ‖w_M + d_M‖) − hᵀd + ½ dᵀHd,      d of R numbers

H is the curvature of the losses at feature weights w, R × R, and −h their gradient.
With Ω(u) = min over θ of ½Σu²/θ + r(θ) this is a problem in the kernel weights, whose

    J(θ) = min over d of   ½Σ‖w_m + d_m‖²/θ_m − hᵀd + ½ dᵀHd

has all of its derivatives from one Cholesky factorization of A = I + √Θ H √Θ: with
g = h − Hd,

    ∂J/∂θ_m = −½‖g_m‖²,     ∂²J/∂θ_m∂θ_l = g_mᵀ [H − H√Θ A⁻¹ √Θ H]_ml g_l

Algorithm. Newton's method in θ: on simplices or the orthant (weight_newton.py) where
weights vanish, in log θ (acceleration.py) where none does. All is computed from d, so
that digits are not lost when d is small.

Guarantee. `distance` bounds the distance from the minimum where Ω* is finite; elsewhere
up to second order in the violation of its domain.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

from ...formulations.base import Formulation, Groups
from ..machines.linear import jittered_cholesky
from .acceleration import Ahead
from .orthant_oracle import Orthant
from .simplex_oracle import Oracle
from .weight_newton import newton

Array = np.ndarray
JITTERS = (0.0, 1e-14, 1e-12, 1e-10)  # relative to the mean diagonal entry
ROUNDING = 1e-14  # relative to Ω: smaller differences say nothing
MAX_STEPS = 30  # of Newton's method in θ
TINY_SHARE = 1e-12  # of first weights in log θ, relative to the largest


class Model:
    """J(θ) of the model, as an inner solver for a sequence of θ."""

    # What oracles ask of inner solvers: it is solved exactly.
    tol, work, grams = np.inf, 0.0, SimpleNamespace(is_large=False)

    def __init__(
        self, formulation: Formulation, owner: Array, H: Array, w: Array, h: Array
    ):
        self.formulation, self.owner, self.H = formulation, owner, H
        self.first, self.slope = w, h
        self.M, self.solves = int(owner[-1]) + 1, 0
        self.start = formulation.value(self.lengths(w))
        self.gap = ROUNDING * self.start

    @property
    def problem(self) -> Model:
        """The model; kept as an attribute, its memory would wait for the collector."""
        return self

    def solve(self, theta: Array, K: Any = None) -> Array:
        """d at θ, with g = h − Hd and v_m = ‖g_m‖."""
        root = np.sqrt(theta)[self.owner]
        used = self.used = np.flatnonzero(root)
        self.root = root[used]
        A = self.root[:, None] * self.H[np.ix_(used, used)] * self.root
        A[np.diag_indices_from(A)] += 1
        self.factor = jittered_cholesky(A, JITTERS) if len(used) else None
        if self.factor is None and len(used):
            raise FloatingPointError("the Newton system is not positive definite")
        d = np.where(root > 0, 0.0, -self.first)  # kernels of weight 0 leave
        h = self.slope - self.H @ d if np.any(d) else self.slope
        right = self.root * h[used] - self.first[used] / self.root
        d[used] = self.root * self._inverse(right)
        self.theta, self.solves, self.d = theta, self.solves + 1, d
        self.Hd = self.H @ d
        self.w, self.g = self.first + d, self.slope - self.Hd
        self.v = self.lengths(self.g)
        return self.g

    def _inverse(self, right: Array) -> Array:
        if len(self.used) == 0:
            return right
        return scipy.linalg.cho_solve(self.factor, right, check_finite=False)

    def lengths(self, w: Array) -> Array:
        """(M,): the norm of each kernel's part."""
        return np.sqrt(np.bincount(self.owner, w**2, minlength=self.M))

    @property
    def point(self) -> Array:
        """What stands for α: g."""
        return self.g

    def _losses(self) -> float:
        """−hᵀd + ½dᵀHd."""
        return float(self.d @ (0.5 * self.Hd - self.slope))

    def dual_loss(self, g: Array) -> float:
        """The dual value at g without Ω*: J + ½Σθv²."""
        return self._losses() + float(self.theta @ self.v**2)

    @property
    def J(self) -> float:
        """J(θ)."""
        return self._losses() + 0.5 * float(self.theta @ self.v**2)

    @property
    def falls(self) -> float:
        """By how much the model falls from d = 0."""
        now = self.formulation.value(self.lengths(self.w))
        return self.start - now - self._losses()

    @property
    def distance(self) -> float:
        """The distance from the minimum: the gap."""
        u, product = self.lengths(self.w), float(self.w @ self.g)
        return penalty_gap(self.formulation, u, self.v, product)[0]

    # ---- what oracles ask for --------------------------------------------------------

    def products_of(self, which: Array) -> Array:
        """(R, which): g_m at the places of each kernel."""
        return np.where(self.owner[:, None] == which, self.g[:, None], 0.0)

    def sensitivity(self, force: Array) -> Array:
        """(Θ + H⁻¹)⁻¹ applied to each column."""
        image = self.H @ force
        inner = self.root[:, None] * image[self.used]
        back = self.root[:, None] * self._inverse(inner)
        return np.asarray(image - self.H[:, self.used] @ back)

    def hessian(self, which: Array) -> Array:
        """∂²J/∂θ² for some kernels."""
        E = self.products_of(which)
        found = E.T @ self.sensitivity(E)
        return np.asarray(0.5 * (found + found.T))

    def extrapolate(self, move: Array) -> None:
        """Nothing to do: it is solved exactly."""

    def set_tolerance(self, certificate: Any) -> None:
        """Nothing to do: it is solved exactly."""

    def primal_point(self) -> dict[str, Array]:
        """The primal point of the last solution."""
        return {"features": self.w}

    def iterate(self) -> Any:
        """The last solution."""
        return self.w


def penalty_gap(
    formulation: Formulation, u: Array, v: Array, product: float
) -> tuple[float, float]:
    """Ω(u) + Ω*(s v) − s⟨w, h⟩ ≥ 0 for u = ‖w‖, v = ‖h‖, and the s with Ω* finite."""
    s = formulation.feasible_scale(v)
    both = formulation.value(u) + formulation.conjugate(s * v)
    return max(both - s * product, 0.0), s


def minimum(model: Model, theta: Array, enough: float) -> tuple[Array, float]:
    """d of the model, from θ, and its decrease; it ends at model.theta.

    enough: the distance from the minimum, relative to the decrease
    """
    found, most = (0.0 * model.first, theta), 0.0
    for count, _ in enumerate(_weights(model, theta)):
        if model.falls > most:
            found, most = (model.d, model.theta), model.falls
        if model.distance <= enough * most + model.gap or count >= MAX_STEPS:
            break
    model.theta = found[1]
    return found[0], most


def _weights(model: Model, theta: Array) -> Any:
    """Newton's method in θ; every item is one more θ that was solved for."""
    traits = model.formulation.traits
    if "smooth_dual" in traits:
        yield from _in_logarithms(model, theta)
        return
    oracle: Any
    if "orthant" in traits:
        oracle = Orthant(model, model)  # type: ignore[arg-type]
        x = oracle.of_weights(theta)
    else:
        groups: Groups = (tuple(range(model.M)),)
        q = 1.0
        if "sums" in traits:
            groups, q = model.formulation.simplices(model.M)
        oracle = Oracle(model, groups, q, machine=model)  # type: ignore[arg-type]
        x = theta
    steps: Any = newton(oracle, x)
    next(steps)
    while True:
        yield
        steps.send(SimpleNamespace(gap=model.distance))


def _in_logarithms(model: Model, theta: Array) -> Any:
    """Newton's method on the fixed point of reweighting, as in analytic.py."""
    ahead, best = Ahead(model, "newton"), np.inf  # type: ignore[arg-type]
    theta = np.maximum(theta, TINY_SHARE * np.max(theta))
    plain = theta
    while True:
        model.solve(theta)
        value = -model.falls
        yield
        if value > best + model.gap:
            ahead.retreat()
            theta, best = plain, np.inf
            continue
        best = value
        plain = model.formulation.reweight(theta, model.v)
        theta = ahead.step(theta, plain, 0.0)
