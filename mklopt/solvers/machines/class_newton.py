"""Semismooth Newton in feature space for k classes, by conjugate gradients.

    min over X, b   ½‖X‖² + Σ_i C_i V(g_i),      g = Z X + b,      Z = F diag(√θ)

with X (R, k) and b (k,). Proximal steps on the dual as in feature_newton.py: with
multipliers a and a penalty σ, minimize φ(X, b) = ½‖X‖² + E(g), ∇φ = X − Zᵀα(g), with
Σα(g) = 0; then a ← α(g) and a larger σ (α, E and its Hessian D are those of
formulations/losses/class_terms.py; with the multinomial loss E is the loss itself).

Newton's system has R k unknowns and is never formed:

    P ↦ P + Zᵀ D (Z P + δ),      δ: the change of b that keeps Σα = 0

Only samples with D_i ≠ 0 are read. The preconditioner has one R × R block per class,
I + Zᵀ diag(D_jj) Z centred, from at most PER_COLUMN rows per column of F. Its sums do
not depend on θ and σ: they are made anew only when too many iterations were needed.
Everything stays among the X whose rows sum to 0, as α does.

Guarantee. `gap` = ½‖X − Zᵀα‖² + Σ_i (C V(g_i) + C V*(−α_i/C) + ⟨α_i, g_i⟩) =
primal − dual, each term ≥ 0, with Σα = 0.

Reference: Li, Sun and Toh (2018) for the method, on the lasso.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ...formulations.losses.class_terms import bend, pseudo_inverse, total_bend
from ...grams.factors import Panel
from .feature_newton import JITTERS, MAX_STEPS, SOLVED, Point, next_sigma
from .linear import jittered_cholesky

Array = np.ndarray
IDLE = 30  # Newton steps without progress: rounding
WARM_SIGMA = 3.0  # σ of a warm start: times the first one, times √(primal/gap)
TOO_MANY_STEPS, MUCH_SHORTER = 20, 0.1  # of one proximal step; then σ falls
PART, FEWEST = 4, 4000  # a cold start begins on one sample of so many, if enough
PER_FEATURE = 5  # samples per column of F that are enough
COARSE_GAP = 1e-2  # the relative gap on a part of the samples
PER_COLUMN = 8  # rows per column of F in the sums of the preconditioner
COPIED = 0.7  # a larger part of the samples is not copied
FORCING = 0.1  # the residual of a Newton step relative to the slope
MAX_ITERATIONS, MANY_ITERATIONS = 200, 15  # of conjugate gradients; then new sums


class Preconditioner:
    """Sums F̄ᵀ diag(D_jj/scale) F̄ of each class j, F̄ = (F, 1), over some of the rows."""

    def __init__(self, panel: Panel):
        self.panel, self.rows = panel, 0
        self.sums: Array | None = None  # (k, R + 1, R + 1)

    def renew(self, s: Array, scale: float) -> None:
        """Make the sums of this D, in units of `scale`."""
        total = np.maximum(np.sum(s, axis=1), 1e-300)
        most, found = PER_COLUMN * self.panel.R, []
        for column in s.T:
            d = column * (1 - column / total)
            held = np.flatnonzero(d > 0)
            share = max(len(held) / most, 1.0)
            held = held[(np.arange(len(held) / share) * share).astype(int)]
            self.rows += len(held)
            found.append(share / scale * self.panel.gram(held, d[held]))
        self.sums = np.array(found)

    def factors(self, root: Array, scale: float, bias: bool) -> list[Any]:
        """Cholesky factors of I + Zᵀ diag(D_jj) Z, centred if there is a bias."""
        assert self.sums is not None
        found = []
        for sums in scale * self.sums:
            A = root[:, None] * sums[:-1, :-1] * root
            if bias and sums[-1, -1] > 0:
                border = root * sums[:-1, -1]
                A -= np.outer(border / sums[-1, -1], border)
            A[np.diag_indices_from(A)] += 1
            found.append(jittered_cholesky(A, JITTERS))
        return found


class Curved(NamedTuple):
    """The samples with D_i ≠ 0, and P ↦ P + Zᵀ D (Z P + δ)."""

    panel: Panel
    s: Array  # of these samples
    root: Array
    inverse: Array | None  # of Σ_iD_i; None without a bias

    def bent(self, T: Array) -> tuple[Array, Array]:
        """D(T + δ), and δ."""
        B, shift = bend(self.s, T), np.zeros(T.shape[1])
        if self.inverse is not None:
            shift = -self.inverse @ np.sum(B, axis=0)
            B += bend(self.s, np.broadcast_to(shift, T.shape))
        return B, shift

    def predict(self, P: Array) -> Array:
        """Z P."""
        return self.panel.unfold(self.root[:, None] * P)

    def fold(self, A: Array) -> Array:
        """ZᵀA."""
        return self.root[:, None] * self.panel.fold(A)

    def times(self, P: Array) -> Array:
        """The product with the matrix of Newton's system."""
        return P + self.fold(self.bent(self.predict(P))[0])


@dataclass
class ClassNewton:
    """The inner problem at one θ, for k classes."""

    panel: Panel  # of the kernels in use
    root: Array  # √θ of each column
    terms: Any
    bias: bool
    gram: Preconditioner
    products: float = 0.0  # with Z: 1 reads all rows once
    steps: int = 0  # of Newton's method
    iterations: int = 0  # of conjugate gradients
    blocks: Any = None  # the factors of the preconditioner, and their scale

    def same(self, other: "ClassNewton") -> bool:
        """Whether the other one has the same kernels and weights."""
        columns = np.array_equal(self.panel.places, other.panel.places)
        return columns and np.array_equal(self.root, other.root)

    def predict(self, x: Array) -> Array:
        """Z X."""
        self.products += 1
        return self.panel.unfold(self.root[:, None] * x)

    def fold(self, alpha: Array) -> Array:
        """Zᵀα."""
        self.products += 1
        return self.root[:, None] * self.panel.fold(alpha)

    # ---- where it begins -----------------------------------------------------------

    def cold(self, tol: float) -> Point:
        """Solve without a start: on a part of the samples first."""
        n, k = self.terms.alpha.shape
        x: Array = np.zeros((self.panel.R, k))
        b: Any = np.zeros(k)
        if n // PART >= max(FEWEST, PER_FEATURE * self.panel.R):
            at = self._on_a_part(tol)
            x, b = at.x, at.b
        g = self.predict(x) if np.any(x) else np.zeros((n, k))
        sigma, alpha = self.terms.first_sigma, np.zeros((n, k))
        at = Point(x, b, alpha, sigma, g + b, np.zeros_like(x))
        return self.minimize(at, lambda primal: tol)

    def _on_a_part(self, tol: float) -> Point:
        """The solution on one sample of PART, with a C that keeps the loss."""
        n = self.panel.n
        which = np.sort(np.random.default_rng(0).permutation(n)[: n // PART])
        share, panel = len(which) / n, self.panel.rows(which)
        terms = self.terms.part(which).times(1 / share)
        small = replace(self, panel=panel, terms=terms, gram=Preconditioner(panel))
        small.products, small.steps, small.iterations = 0.0, 0, 0
        k = self.terms.alpha.shape[1]
        zero, nothing = np.zeros((panel.R, k)), np.zeros((panel.n, k))
        b: Any = np.zeros(k)
        at = Point(zero, b, nothing, terms.sigma, nothing, zero)
        at = small.minimize(at, lambda primal: max(COARSE_GAP * primal, tol))
        self.products += share * small.products
        self.gram.rows += small.gram.rows
        return at

    def warm(self, alpha: Array, folded: Array, last: Point, tol: float) -> Point:
        """Solve from α, with Zᵀα.

        x is that of the last point (empty if it has none here) or Zᵀα, whichever has
        the smaller primal value.
        """
        starts = [(folded, self.predict(folded))]
        if len(last.x):
            starts.append((last.x, last.g - last.b))
        x, zx = min(starts, key=lambda start: self._primal(start[0], start[1], last.b))
        at = Point(x, last.b, alpha, last.sigma, zx + last.b, folded)
        gap = 0.5 * float(np.sum((x - folded) ** 2)) + self.terms.fenchel(at.g, alpha)
        far = self._primal(x, zx, last.b) / max(gap, 1e-300)
        at.sigma = min(at.sigma, WARM_SIGMA * self.terms.first_sigma * far**0.5)
        return self.minimize(at, lambda primal: tol)

    def again(self, at: Point, tol: float) -> Point:
        """Go on from a point."""
        return self.minimize(at, lambda primal: tol)

    def _primal(self, x: Array, zx: Array, b: Any) -> float:
        losses = self.terms.fenchel(zx + b, np.zeros(zx.shape))
        return 0.5 * float(np.sum(x * x)) + losses

    # ---- proximal steps, and Newton's method in each -------------------------------

    def minimize(self, at: Point, goal: Callable[[float], float]) -> Point:
        """Proximal steps until the gap is at most goal(primal value)."""
        terms, x, zx = self.terms, at.x, at.g - at.b
        b: Any = at.b
        terms.alpha, terms.sigma = at.alpha, at.sigma
        best, idle, inner = np.inf, 0, 0
        for _ in range(MAX_STEPS):
            if self.bias:
                b = terms.best_bias(zx, b)
            g = zx + b
            alpha, s = terms.respond(g)
            folded = self.fold(alpha)
            slope = x - folded
            rest, kinks = 0.5 * float(np.sum(slope**2)), terms.fenchel(g, alpha)
            gap, idle = rest + kinks, idle + 1
            if gap < 0.9 * best:
                best, idle = gap, 0
            over = idle > IDLE or not np.isfinite(gap)
            if over or gap <= goal(self._primal(x, zx, b)):
                break
            if inner > 0 and rest <= SOLVED * kinks and not terms.curved:
                terms.alpha = alpha
                terms.sigma *= next_sigma(inner)
                inner = 0
                continue
            if inner > TOO_MANY_STEPS and not terms.curved:
                terms.sigma *= MUCH_SHORTER
                inner = 0
                continue
            dx, db = self._direction(s, slope)
            dz = self.predict(dx)
            along = float(np.sum(x * dx))
            t = terms.length(g, dz + db, along, float(np.sum(dx * dx)))
            x, b, zx, inner = x + t * dx, b + t * db, zx + t * dz, inner + 1
            self.steps += 1
        return Point(x, b, alpha, terms.sigma, g, folded, gap)

    def curved(self, s: Array) -> Curved | None:
        """The samples that Newton's system reads; None if there are none."""
        held = np.flatnonzero(np.any(s, axis=1))
        if len(held) == 0:
            return None
        inverse = pseudo_inverse(total_bend(s)) if self.bias else None
        if len(held) > COPIED * len(s):
            return Curved(self.panel, s, self.root, inverse)
        return Curved(self.panel.rows(held), s[held], self.root, inverse)

    def _direction(self, s: Array, slope: Array) -> tuple[Array, Array]:
        """Newton's step in X and b."""
        curved = self.curved(s)
        if curved is None:  # b is exact already
            return -slope, np.zeros(slope.shape[1])
        dx, _ = self.solve(curved, s, -slope, FORCING)
        return dx, curved.bent(curved.predict(dx))[1]

    def solve(
        self, curved: Curved, s: Array, right: Array, forcing: float
    ) -> tuple[Array, Array]:
        """Newton's system by conjugate gradients, and the residual."""
        scale = 1.0 if self.terms.curved else float(np.max(s))
        fresh = self.gram.sums is None
        if fresh:
            self.gram.renew(s, scale)
        if fresh or self.blocks is None or self.blocks[1] != scale:
            self.blocks = self.gram.factors(self.root, scale, self.bias), scale
        x, rest, count = conjugate_gradients(
            curved.times, self._precondition, right, forcing, MAX_ITERATIONS
        )
        self.iterations += count
        self.products += 2 * (count + 1) * curved.panel.n / self.panel.n
        if count > MANY_ITERATIONS and not fresh:
            self.gram.sums = self.blocks = None
        return x, rest

    def mean_square(self, s: Array) -> float:
        """The mean of ‖z_i‖² over the samples, weighted by D; new sums are made."""
        self.gram.renew(s, float(np.max(s)) or 1.0)
        self.blocks = None
        assert self.gram.sums is not None
        squares = np.diagonal(self.gram.sums, axis1=1, axis2=2).sum(axis=0)
        return float(self.root**2 @ squares[:-1] / max(squares[-1], 1e-300))

    def _precondition(self, right: Array) -> Array:
        """The inverse of the blocks, among the X whose rows sum to 0."""
        out = right.copy()
        for j, factor in enumerate(self.blocks[0]):
            if factor is not None:
                out[:, j] = scipy.linalg.cho_solve(
                    factor, right[:, j], check_finite=False
                )
        return out - np.mean(out, axis=1, keepdims=True)


def conjugate_gradients(
    times: Callable[[Array], Array],
    inverse: Callable[[Array], Array],
    right: Array,
    forcing: float,
    most: int,
) -> tuple[Array, Array, int]:
    """A solution up to a residual of forcing·‖right‖, this residual, the iterations."""
    x, r = np.zeros_like(right), right.copy()
    enough = forcing * float(np.linalg.norm(right))
    z = inverse(r)
    p, square = z, float(np.sum(r * z))
    for count in range(most):
        # NaN ends it, too: C is larger than squares of floats can be
        if not (float(np.linalg.norm(r)) > enough and square > 0):
            return x, r, count
        q = times(p)
        step = square / float(np.sum(p * q))
        x, r = x + step * p, r - step * q
        z = inverse(r)
        square, before = float(np.sum(r * z)), square
        p = z + square / before * p
    return x, r, most
