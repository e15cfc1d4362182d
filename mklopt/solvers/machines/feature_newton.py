"""Semismooth Newton on the augmented Lagrangian, in feature space.

    min over x, b   ½‖x‖² + Σ_i C_i V(g_i),      g = Z x + b,      Z = F diag(√θ)

Proximal steps on the dual: with multipliers a and a penalty σ, minimize

    φ(x, b) = ½‖x‖² + E(g),     ∇φ = x − Zᵀα(g),     Σα(g) = 0

(α and E in dual_terms.py), then a ← α(g) and a larger σ. Each φ is minimized by
Newton's method with the R × R system I + Zᵀ diag(d) Z, bordered for the bias, and an
exact line search; b is exact before every step. d is not 0 only for samples J between
their bounds. Fᵀ diag(d) F does not depend on θ: `Gram` updates it by the rows that have
entered or left J (`rows` counts them).

Few samples decide. From an approximate solution on, only the samples near a kink (the
band) are moved; those far from it stay at their bound and enter through c = Σ α_iz_i.
The band is solved to a part of the whole gap, then all samples are looked at again: two
products with Z. A cold start goes over a sixteenth and a quarter of the samples; if
their solution is rough for more samples, σ is small again and no band is taken.

Guarantee. `gap` = ½‖x − Zᵀα‖² + Σ_i (C V(g_i) + C V*(−α_i/C) + α_ig_i) = primal − dual,
each term ≥ 0, with Σα = 0.

Reference: Li, Sun and Toh (2018) for the method, on the lasso; the band is new here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg

from ...grams.factors import Panel
from .coordinate_ascent import opening
from .linear import jittered_cholesky

Array = np.ndarray
LONGER, SHORTER = 3.0, 0.5  # σ grows after few Newton steps, and falls after many
FEW_STEPS, MANY_STEPS = 3, 8
SOLVED = 0.3  # ½‖∇φ‖² relative to the rest of the gap, for the next proximal step
MAX_STEPS = 300  # Newton steps in one band
IDLE = 12  # Newton steps without progress: rounding
PART = 4  # a cold start begins on one sample of so many, and so on …
FEWEST, PER_COLUMN = 4000, 5  # … while there are so many, and so many per column of F
COARSE_GAP = 1e-2  # the relative gap on a part of the samples
OPENED_SIGMA = 3.0  # σ after coordinate ascent, relative to that of a cold start
FIRST_BAND, LEAST_BAND = 0.3, 0.02  # shares of the samples
BAND_GROWTH, WARM_BAND = 3.0, 2.0  # times the samples that move; after a new θ
MOST_BAND = 0.5  # a larger band is the whole
# A relative gap at which far samples may move, too; and where bands begin after it.
ROUGH, SMOOTHED = 0.8, 0.01
BAND_GAP = 0.02  # the gap in the band relative to the whole one
NEARLY_DONE = 0.3  # … but not smaller than this part of the goal
MAX_BANDS, MAX_IDLE_BANDS = 50, 5
FORGOTTEN = 1e-3  # sums are made anew when J is this small against the largest J
JITTERS = (0.0, 1e-14, 1e-12, 1e-10)  # relative to the mean diagonal entry


class Samples(NamedTuple):
    """Some of the samples: their numbers (None for all), rows of F, and the loss."""

    numbers: Array | None
    panel: Panel
    terms: Any

    def part(self, which: Array) -> "Samples":
        """Some of these."""
        numbers = which if self.numbers is None else self.numbers[which]
        return Samples(numbers, self.panel.rows(which), self.terms.part(which))


@dataclass
class Point:
    """x, b and α of some samples, with predictions g = Zx + b and Zᵀα."""

    x: Array
    b: float
    alpha: Array
    sigma: float
    g: Array
    folded: Array  # Zᵀα
    gap: float = np.inf


class Gram:
    """(F, 1)ᵀ diag(d) (F, 1) for a d that changes in few places."""

    def __init__(self, panel: Panel):
        self.panel, self.d = panel, np.zeros(panel.n)
        self.sums = np.zeros((panel.R + 1, panel.R + 1))
        self.rows, self._most = 0, 0

    def at(self, numbers: Array | None, d: Array) -> Array:
        """The sums for this d, which is 0 for all other samples."""
        whole = d
        if numbers is not None:
            whole = np.zeros(self.panel.n)
            whole[numbers] = d
        change, held = np.flatnonzero(whole != self.d), np.flatnonzero(whole)
        if len(change) >= len(held) or len(held) < FORGOTTEN * self._most:
            self.sums, self._most = self._of(held, whole[held]), len(held)
        else:
            more = whole[change] - self.d[change]
            up, down = more > 0, more < 0
            self.sums = self.sums + self._of(change[up], more[up])
            self.sums -= self._of(change[down], -more[down])
            self._most = max(self._most, len(held))
        self.d = whole
        return self.sums

    def _of(self, numbers: Array, d: Array) -> Array:
        self.rows += len(numbers)
        return self.panel.gram(numbers, d)


@dataclass
class FeatureNewton:
    """The inner problem at one θ."""

    panel: Panel  # of the kernels in use
    root: Array  # √θ of each column
    terms: Any
    bias: bool
    gram: Gram
    patience: ClassVar[int] = IDLE  # steps without a smaller gap
    products: float = 0.0  # with Z: 1 reads all rows once
    steps: int = 0  # of Newton's method

    def same(self, other: "FeatureNewton") -> bool:
        """Whether the other one has the same kernels and weights."""
        columns = np.array_equal(self.panel.places, other.panel.places)
        return columns and np.array_equal(self.root, other.root)

    def predict(self, panel: Panel, x: Array) -> Array:
        """Z x."""
        self.products += panel.n / self.panel.n
        return panel.unfold((self.root * x)[:, None])[:, 0]

    def fold(self, panel: Panel, alpha: Array) -> Array:
        """Zᵀα."""
        self.products += panel.n / self.panel.n
        return self.root * panel.fold(alpha[:, None])[:, 0]

    # ---- all samples ---------------------------------------------------------------

    def cold(self, tol: float) -> Point:
        """Solve without a start: after coordinate ascent, or on fewer samples first."""
        if (begun := self.opened()) is not None:
            return self.again(begun, tol)
        n, at = self.panel.n, None
        sizes, least = [n], max(FEWEST, PER_COLUMN * self.panel.R)
        while sizes[0] // PART >= least and self.terms.parts_help:
            sizes.insert(0, sizes[0] // PART)
        order = np.random.default_rng(0).permutation(n)
        everything = Samples(None, self.panel, self.terms)
        for size in sizes:
            some, share = everything, size / n
            if size < n:
                some = everything.part(np.sort(order[:size]))
                some = some._replace(terms=some.terms.times(1 / share))
            at = self._begin(some, at)
            goal = COARSE_GAP if size < n else 0.0

            def wanted(primal: float, goal: float = goal) -> float:
                return max(goal * primal, tol)

            at = self.solve(some, at, wanted, FIRST_BAND)
            at.sigma *= share
        assert at is not None
        return at

    def warm(self, alpha: Array, folded: Array, last: Point, tol: float) -> Point:
        """Solve from α, with Zᵀα.

        x is that of the last point (empty if it has none here) or Zᵀα, whichever has
        the smaller primal value.
        """
        some = Samples(None, self.panel, self.terms)
        g = self.predict(self.panel, folded)
        at = Point(folded, last.b, alpha, last.sigma, g, folded)
        self._place(some, at)
        if len(last.x):
            other = Point(last.x, last.b, alpha, last.sigma, last.g - last.b, folded)
            self._place(some, other)
            if self._primal(some, other) < self._primal(some, at):
                at = other
        return self.again(at, tol, WARM_BAND)

    def again(self, at: Point, tol: float, wider: float = 1.0) -> Point:
        """Go on from a point of all samples; the first band is wider by a factor."""
        some = Samples(None, self.panel, self.terms)
        share = wider * self._next_share(some, at)
        return self.solve(some, at, lambda primal: tol, share)

    def place(self, at: Point) -> None:
        """Give a point of all samples with Zx in g the best bias, and its gap."""
        self._place(Samples(None, self.panel, self.terms), at)

    def opened(self) -> Point | None:
        """The point after some epochs of coordinate ascent, where they pay."""
        if self.bias or not (self.terms.shrinks and self.panel.here):
            return None
        found = opening(self.panel, self.root, self.terms)
        if found is None:
            return None
        alpha, epochs = found
        self.products += epochs
        folded = self.fold(self.panel, alpha)
        g = self.predict(self.panel, folded)
        sigma = OPENED_SIGMA * self.terms.first_sigma
        at = Point(folded, 0.0, alpha, sigma, g, folded)
        self.place(at)
        return at if np.isfinite(at.gap) else None

    def _begin(self, some: Samples, coarse: Point | None) -> Point:
        """The first point: 0, or that of fewer samples."""
        terms, R = some.terms, self.panel.R
        if coarse is None:
            x, b, g = np.zeros(R), 0.0, np.zeros(some.panel.n)
            at = Point(x, b, np.zeros(len(g)), terms.first_sigma, g, x)
            self._place(some, at)
            return at
        x, sigma = coarse.x, coarse.sigma * self.panel.n / some.panel.n
        terms.alpha, terms.sigma = terms.middle, sigma
        g, b = self.predict(some.panel, x), coarse.b
        if self.bias:
            b = terms.best_bias(g, b, 0.0)
        alpha = terms.respond(g + b)[0]
        at = Point(x, b, alpha, sigma, g + b, self.fold(some.panel, alpha))
        at.gap = self._gap(some, at)
        if self._rough(some, at):
            at.sigma = min(sigma, terms.first_sigma)
        return at

    def _place(self, some: Samples, at: Point) -> None:
        """Give a point with Zx in g the best bias, and its gap."""
        some.terms.alpha, some.terms.sigma = at.alpha, at.sigma
        if self.bias:
            at.b = some.terms.best_bias(at.g, at.b, 0.0)
        at.g = at.g + at.b
        at.gap = self._gap(some, at)

    def rest(self, x: Array, folded: Array) -> tuple[float, float]:
        """The gap of ½‖x‖² at Zᵀα, and the factor of α for which it is."""
        slope = x - folded
        return 0.5 * float(slope @ slope), 1.0

    def penalty(self, x: Array) -> float:
        """½‖x‖²."""
        return 0.5 * float(x @ x)

    def _gap(self, some: Samples, at: Point) -> float:
        rest, scale = self.rest(at.x, at.folded)
        return rest + some.terms.fenchel(at.g, scale * at.alpha)

    def _rough(self, some: Samples, at: Point) -> bool:
        """Whether the gap is so large that far samples may move, too."""
        return at.gap > ROUGH * self._primal(some, at)

    def _primal(self, some: Samples, at: Point) -> float:
        losses = some.terms.fenchel(at.g, np.zeros_like(at.alpha))
        return self.penalty(at.x) + losses

    def solve(
        self, some: Samples, at: Point, goal: Callable[[float], float], share: float
    ) -> Point:
        """Bands until the gap is at most goal(primal value); share: the first one.

        The best point so far; it ends where rounding allows no better one.
        """
        idle, best = 0, at
        for _ in range(MAX_BANDS):
            primal = self._primal(some, at)
            wanted = goal(primal)
            if at.gap <= wanted or idle > MAX_IDLE_BANDS:
                break
            band = self._band(some, at, share)
            if band is None:
                least = SMOOTHED * primal if self._rough(some, at) else 0.0
                at = self.minimize(some, at, (0.0 * at.x, 0.0), max(wanted, least))
            else:
                at = self._move(some, band, at, wanted)
            idle = 0 if at.gap < 0.9 * best.gap else idle + 1
            best = at if at.gap < best.gap else best
            if idle and band is None and some.terms.curved:
                break  # the same once more: neither the band nor σ would change
            share = self._next_share(some, at) if idle == 0 else 2 * share
        return best

    def _band(self, some: Samples, at: Point, share: float) -> Array | None:
        """The samples nearest to a kink; None for all."""
        n = some.panel.n
        share = max(share, PER_COLUMN * self.panel.R / n)
        if not some.terms.shrinks or share >= MOST_BAND or self._rough(some, at):
            return None
        away = some.terms.away(at.g, at.alpha)
        edge = float(np.partition(away, int(share * n))[int(share * n)])
        band = np.flatnonzero(away <= edge)
        return band if len(band) < MOST_BAND * n else None

    def _next_share(self, some: Samples, at: Point) -> float:
        if not some.terms.shrinks:
            return 1.0
        moving = float(np.mean(some.terms.away(at.g, at.alpha) == 0))
        return max(LEAST_BAND, BAND_GROWTH * moving)

    def _move(self, some: Samples, band: Array, at: Point, wanted: float) -> Point:
        """Minimize over the band, then look at all samples again."""
        inside = some.part(band)
        alpha = at.alpha.copy()
        c = at.folded - self.fold(inside.panel, alpha[band])
        total = float(np.sum(np.delete(alpha, band)))
        small = Point(at.x, at.b, alpha[band], at.sigma, at.g[band], at.folded)
        goal = max(NEARLY_DONE * wanted, BAND_GAP * at.gap)
        found = self.minimize(inside, small, (c, total), goal)
        alpha[band] = found.alpha
        g = self.predict(some.panel, found.x) + found.b
        folded = self.fold(some.panel, alpha)
        at = Point(found.x, found.b, alpha, found.sigma, g, folded)
        at.gap = self._gap(some, at)
        return at

    # ---- one band ------------------------------------------------------------------

    def minimize(
        self, some: Samples, at: Point, outside: tuple[Array, float], goal: float
    ) -> Point:
        """Proximal steps until the gap of these samples is at most the goal.

        outside: Σ α_iz_i and Σ α_i of all other samples
        """
        panel, terms, (c, total) = some.panel, some.terms, outside
        x, b, zx = at.x, at.b, at.g - at.b
        terms.alpha, terms.sigma = at.alpha, at.sigma
        best, idle, inner = np.inf, 0, 0
        for _ in range(MAX_STEPS):
            if self.bias:
                b = terms.best_bias(zx, b, total)
            g = zx + b
            alpha, d = terms.respond(g)
            folded = self.fold(panel, alpha) + c
            rest, scale = self.rest(x, folded)
            kinks = terms.fenchel(g, alpha)
            gap = rest + (kinks if scale == 1 else terms.fenchel(g, scale * alpha))
            idle += 1
            if gap < 0.9 * best:
                best, idle = gap, 0
            if gap <= goal or idle > self.patience:
                break
            self.look(some, d, x, folded)
            if inner > 0 and not terms.curved and self.solved(terms, alpha, kinks):
                terms.alpha = alpha
                terms.sigma *= next_sigma(inner)
                inner = 0
                continue
            dx, db = self.direction()
            dz = self.predict(panel, dx)
            along = -float(c @ dx) - total * db
            t = self.length(terms, (g, dz + db), (x, dx), along)
            x, b, zx, inner = x + t * dx, b + t * db, zx + t * dz, inner + 1
            self.steps += 1
        return Point(x, b, alpha, terms.sigma, g, folded, gap)

    def look(self, some: Samples, d: Array, x: Array, folded: Array) -> None:
        """Remember where Newton's next step begins."""
        self._here = some, d, x, folded

    def solved(self, terms: Any, alpha: Array, kinks: float) -> bool:
        """Whether φ is near enough to its minimum for the next proximal step."""
        _, _, x, folded = self._here
        return self.rest(x, folded)[0] <= SOLVED * kinks

    def direction(self) -> tuple[Array, float]:
        """Newton's step: (I + ZᵀDZ, bordered) dx = −slope, and db."""
        some, d, x, folded = self._here
        if not np.any(d):  # b is exact already
            return folded - x, 0.0
        system, border, total = self.system(some.numbers, d)
        factor = jittered_cholesky(system, JITTERS)
        if factor is None:
            raise FloatingPointError("the Newton system is not positive definite")
        dx = scipy.linalg.cho_solve(factor, folded - x, check_finite=False)
        return dx, -float(border @ dx) / total if self.bias else 0.0

    def length(
        self,
        terms: Any,
        predictions: tuple[Array, Array],
        weights: tuple[Array, Array],
        along: float,
    ) -> float:
        """The best step length; predictions and weights, each with its change."""
        x, dx = weights
        return float(terms.length(*predictions, along + float(x @ dx), float(dx @ dx)))

    def system(self, numbers: Array | None, d: Array) -> tuple[Array, Array, float]:
        """I + ZᵀDZ − ZᵀD1 1ᵀDZ/Σd (the last term with a bias), ZᵀD1 and Σd."""
        system, border, total = self.curvature(numbers, d)
        system[np.diag_indices_from(system)] += 1
        return system, border, total

    def curvature(self, numbers: Array | None, d: Array) -> tuple[Array, Array, float]:
        """The system without I: the curvature of the losses."""
        unit = float(np.max(d))
        sums = unit * self.gram.at(numbers, d / unit)
        border, total = self.root * sums[:-1, -1], float(sums[-1, -1])
        system = self.root[:, None] * sums[:-1, :-1] * self.root
        if self.bias:
            system -= np.outer(border / total, border)
        return system, border, total


def next_sigma(steps: int) -> float:
    """The factor of σ, by the Newton steps that the last proximal step has taken."""
    return LONGER if steps <= FEW_STEPS else SHORTER if steps >= MANY_STEPS else 1.0
