"""What a certificate proves of every minimizer: norms, weights, predictions, samples.

A gap G = upper − lower bounds f*. Where the problem is strongly convex, it also bounds
the minimizer. With the certified points ŵ, b̂ and α̂:

    primal ball    Ω = (c/2)‖u‖_p² + aΣu, 1 < p ≤ 2:     ‖ŵ − w*‖_{2,p} ≤ √(2G/(c(p−1)))
    dual ball      ∂V has Lipschitz constant L:         Σ ‖α̂_i − α_i*‖²/C_i ≤ 2LG
    predictions    C_i V is (1/r_i)-strongly convex:    |f̂_i − f_i*| ≤ √(2Gr_i)

(½‖·‖²_{2,p} is (p − 1)-strongly convex in its own norm; C V*(−α/C) is
(1/(LC))-strongly concave in the dual value.) From these follow, by the optimality
conditions u* ∈ ∂Ω*(v*), α_i* ∈ −C_i ∂V(f_i*) and v_m* = ‖α*‖_{K_m}:

    norms          |‖ŵ_m‖ − ‖w_m*‖| ≤ the radius of the primal ball
    v*             |v̂_m − v_m*| ≤ √λ_max(K_m) ‖α̂ − α*‖; with a bias Σ(α̂ − α*) = 0, so
                   that λ_max of the centred kernel is enough
    unused         v_m* < a, where Ω has a linear price a of each kernel; or v_m* below
                   another one of the same group, where Ω sums inside groups
    bias           b ↦ min over the primal ball of the loss is convex: b* lies where it
                   is at most upper − Ω(the smallest norms)

Guarantee. Intervals hold in exact arithmetic, for every minimizer of the problem, under
the assumptions of the certificate. What cannot be proved is an infinite interval.
`reasons` says why.

Reference: Juditsky and Nemirovski (2008) for the primal ball; Ndiaye et al. (2017) for
balls from gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..formulations.norms import dual_exponent, norm
from ..problem import Problem
from ..util.rounding import U
from .enclosure import point_bounds
from .optimality import (
    INF,
    SLACK,
    Interval,
    dual_domain,
    dual_from_predictions,
    norms_from_dual,
    predictions_from_dual,
    unknown,
    unused_kernels,
    weights_from_norms,
)

if TYPE_CHECKING:
    from .certificate import Certificate

Array = np.ndarray
DOUBLINGS, HALVINGS = 200, 60  # of a search for an end of the interval of b

NO_BOUNDS = "the certificate has no bounds, or rests on numerically derived operators"
NO_PRIMAL_BALL = "norms from a ball: Ω of {} is not strongly convex"
NO_DUAL_BALL = "α from a ball: the loss {} has kinks"
NO_BIASES = "predictions with biases of several outputs"
NO_SUPPORT = "which kernels are used: the gap is too large, or the problem too flat"


class PrimalBall(NamedTuple):
    """A ball of w around a certified point, and an interval of b.

    Parameters
    ----------
    radius : float
        In the norm ‖·‖_{2,p} of Ω; infinite if nothing is known.
    bias : tuple of float
        The ends of the interval of b.
    stretch, exponent : float
        The center is stretch · w of the certificate; the exponent p.
    """

    radius: float
    bias: tuple[float, float]
    stretch: float
    exponent: float

    def predictions_at(self, f: Array, diagonals: Array) -> Interval:
        """f(x) at new points, for every w in the ball and every b in its interval.

        Parameters
        ----------
        f : array (n_new,) or (n_new, k)
            Predictions of the certified point without its bias.
        diagonals : array (M, n_new)
            k_m(x, x) of every kernel at every new point.

        Returns
        -------
        Interval
        """
        if not math.isfinite(self.radius):
            return unknown(f.shape)
        roots = np.sqrt(np.maximum(diagonals, 0.0)).T
        sizes = [norm(row, dual_exponent(self.exponent)) for row in roots]
        room = self.radius * np.array(sizes).reshape(-1, *[1] * (f.ndim - 1)) * SLACK
        room = room + 1e-9 * np.abs(f)  # f is plain float64
        center, (low, high) = self.stretch * f, self.bias
        return Interval(center - room + low, center + room + high)


@dataclass(frozen=True, eq=False)
class MinimizerFacts:
    """What is proved of every minimizer of a problem.

    Each pair of arrays is `lower` and `upper`; numbers that are not bounded are
    infinite. They hold under the assumptions of the certificate.

    Attributes
    ----------
    norms : Interval of (M,)
        ‖w_m*‖.
    weights : Interval of (M,)
        θ_m*, where Ω and the intervals of norms define it.
    dual_norms : Interval of (M,)
        v_m* = ‖α*‖_{K_m}.
    predictions : Interval of (n,) or (n, k)
        f_i* at the training samples, with the bias.
    bias : tuple of float
        The ends of an interval with b*.
    dual : Interval of (n,) or (n, k)
        α_i*; both ends are equal for samples that are proved to be at a bound.
    used, unused : array of bool (M,)
        Kernels with ‖w_m*‖ > 0, and with w_m* = 0, in every minimizer.
    radius, dual_radius : float
        Bounds of ‖ŵ − w*‖ in the norm of Ω and of ‖α̂ − α*‖; infinite if unknown.
    gap : float
        upper − lower, from which all this follows.
    stretch, exponent : float
        The certified point is stretch · (w, b) of the certificate; the exponent p of
        the norm of `radius`.
    reasons : tuple of str
        What this gap or this problem cannot prove.
    assumptions : tuple of str
        Those of the certificate.
    """

    norms: Interval
    weights: Interval
    dual_norms: Interval
    predictions: Interval
    bias: tuple[float, float]
    dual: Interval
    used: Array
    unused: Array
    radius: float
    dual_radius: float
    gap: float
    stretch: float
    exponent: float
    reasons: tuple[str, ...] = field(default=())
    assumptions: tuple[str, ...] = field(default=())

    def predictions_at(self, f: Array, diagonals: Array) -> Interval:
        """f*(x) at other points, with the bias; infinite without a primal ball.

        Parameters
        ----------
        f : array (n_new,) or (n_new, k)
            Predictions of the certified point without its bias.
        diagonals : array (M, n_new)
            k_m(x, x) of every kernel at every new point.

        Returns
        -------
        Interval
        """
        ball = PrimalBall(self.radius, self.bias, self.stretch, self.exponent)
        return ball.predictions_at(f, diagonals)

    @property
    def counts(self) -> tuple[int, int]:
        """How many kernels are proved to be used, and not to be used."""
        return int(np.sum(self.used)), int(np.sum(self.unused))

    @property
    def at_bound(self) -> Array:
        """(n,): samples whose α_i* is proved to be one number, such as 0 or C."""
        equal = self.dual.lower == self.dual.upper
        return np.asarray(equal if equal.ndim == 1 else np.all(equal, axis=1))

    def to_frame(self) -> Any:
        """One row for each kernel: what is proved, and the intervals.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        said = np.select([self.used, self.unused], ["used", "unused"], "")
        columns: dict[str, Any] = {"proved": said}
        for name in ("norms", "weights", "dual_norms"):
            low, high = getattr(self, name)
            columns |= {f"{name} ≥": low, f"{name} ≤": high}
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        (used, unused), M, n = self.counts, len(self.used), len(self.at_bound)
        lines = [
            f"proved of every minimizer, from a gap of {self.gap:.1e}:",
            f"  {used} kernels are used and {unused} are not, of {M}",
            f"  {np.sum(self.weights.known)} weights and {np.sum(self.norms.known)} "
            f"norms are bounded; α is known of {np.sum(self.at_bound)} of {n} samples",
        ]
        lines += [f"  assuming {what}" for what in self.assumptions]
        return "\n".join([*lines, *(f"  not proved: {why}" for why in self.reasons)])


def minimizer_facts(certificate: Certificate) -> MinimizerFacts:
    """What a certificate proves of every minimizer; it takes up to three passes.

    Parameters
    ----------
    certificate : Certificate

    Returns
    -------
    MinimizerFacts
    """
    with np.errstate(all="ignore"):  # what overflows is not known
        return _Facts(certificate).found()


def primal_ball(certificate: Certificate, gap: float, share: float) -> PrimalBall:
    """Where every minimizer lies, of all problems with C between two ends.

    Parameters
    ----------
    certificate : Certificate
        Of a point (ŵ, b̂) at a C_0 between the ends.
    gap : float
        At least C·L(ŵ, b̂) + Ω(ŵ) − f*(C) for every C between the ends.
    share : float
        C_0 divided by the smaller end.

    Returns
    -------
    PrimalBall
    """
    with np.errstate(all="ignore"):
        facts = _Facts(certificate)
        facts.gap = max(gap, facts.gap) * SLACK if math.isfinite(facts.gap) else INF
        norms, radius = facts._primal_ball()
        bias = facts._predictions(radius, norms, share)[1]
    return PrimalBall(radius, bias, facts.points.stretch, facts.exponent)


class _Facts:
    """The intervals of one certificate, in the order in which they follow."""

    def __init__(self, certificate: Certificate):
        self.certificate, self.problem = certificate, certificate.problem
        self.points = certificate.enclosure
        lower, upper = self.points.lower, self.points.upper
        self.gap = max(upper - lower, 0.0) * SLACK
        known = not self.points.reason and all(
            part.exact for part in (self.problem.formulation, self.problem.loss)
        )
        self.gap = self.gap if known else math.inf
        bounds: Any = point_bounds(certificate)  # Products or FeatureBounds
        self.dual_bounds, self.bounds = bounds
        self.reasons: list[str] = [] if known else [NO_BOUNDS]
        self.exponent = 2.0

    def found(self) -> MinimizerFacts:
        problem = self.problem
        shape = problem.shape
        norms, radius = self._primal_ball()
        alpha = self._dual_ball()
        predictions, bias = self._predictions(radius, norms)
        predictions = predictions.meet(self._from_strong_loss())
        alpha = alpha.meet(dual_from_predictions(problem, predictions))
        predictions = predictions.meet(predictions_from_dual(problem, alpha))
        distance = self._distance(alpha)
        v = self._dual_norms(distance)
        norms = norms.meet(norms_from_dual(problem, v))
        used, unused = norms.lower > 0, unused_kernels(problem, v)
        norms = Interval(
            np.where(unused, 0.0, norms.lower), np.where(unused, 0.0, norms.upper)
        )
        weights = weights_from_norms(problem, norms)
        if not np.any(used | unused):
            self.reasons.append(NO_SUPPORT)
        assert predictions.lower.shape == shape
        return MinimizerFacts(
            norms, weights, v, predictions, bias, alpha, used, unused, radius, distance,
            self.gap, self.points.stretch, self.exponent, tuple(self.reasons),
            tuple(self.certificate.assumptions),
        )  # fmt: skip

    # ---- balls ----------------------------------------------------------------------

    def _primal_ball(self) -> tuple[Interval, float]:
        """‖w_m*‖ from the primal ball, and its radius."""
        M, stretch = self.problem.grams.M, self.points.stretch
        formulation = self.problem.formulation
        if "strongly_convex" not in formulation.traits:
            self.reasons.append(NO_PRIMAL_BALL.format(formulation.name))
            return unknown((M,), 0.0), math.inf
        p, _, c = formulation.strongly_convex
        self.exponent = p
        radius = math.sqrt(2 * self.gap / (c * (p - 1))) * SLACK
        _, _, above = self.bounds.predictions(0.0)
        below = self.bounds.norms_below
        low = np.maximum(stretch * below / SLACK - radius, 0.0)
        return Interval(low, stretch * above * SLACK + radius), radius

    def _dual_ball(self) -> Interval:
        """α_i* from the dual ball."""
        problem = self.problem
        L = problem.loss.smoothness
        if L is None:
            self.reasons.append(NO_DUAL_BALL.format(problem.loss.name))
            return dual_domain(problem)
        self.dual_gap = 2 * L * self.gap * SLACK
        alpha = self.points.shrink * self.points.alpha
        room = np.sqrt(self.dual_gap * problem.spread_costs) * SLACK
        room = room + 4 * U * np.abs(alpha)
        return Interval(alpha - room, alpha + room)

    def _from_strong_loss(self) -> Interval:
        """f_i* where the loss itself is strongly convex: the squared loss."""
        problem = self.problem
        dual = problem.loss.quadratic(problem.y, problem.costs)
        if dual is None or np.any(np.isfinite(dual.low)) or np.any(dual.kink):
            return unknown(problem.shape)
        f, error = self._predicted(self.certificate.bias)
        room = np.sqrt(2 * self.gap * dual.ridge).reshape(f.shape) * SLACK + error
        return Interval(f - room, f + room)

    def _predicted(self, bias: Any) -> tuple[Array, Array]:
        """f at the certified point t·(w, b), with a bound of its error."""
        f, error, _ = self.bounds.predictions(bias)
        t = self.points.stretch
        error = error * t * SLACK + 2 * U * np.abs(t * f)
        return (t * f).reshape(self.problem.shape), error.reshape(self.problem.shape)

    # ---- predictions ----------------------------------------------------------------

    def _predictions(
        self, radius: float, norms: Interval, share: float = 1.0
    ) -> tuple[Interval, tuple[float, float]]:
        """f_i* from the primal ball, and an interval of b*.

        For a smaller C = C_0/share the loss is at most L(ŵ, b̂) + (Ω(ŵ) − the least
        Ω)/C, in units of C_0 `share` times as much for the second part.
        """
        problem, nothing = self.problem, (-math.inf, math.inf)
        if not math.isfinite(radius):
            return unknown(problem.shape), nothing if problem.bias else (0.0, 0.0)
        p = problem.formulation.strongly_convex[0]
        f, error = self._predicted(0.0)
        sizes = problem.grams.norm_of_diagonals(dual_exponent(p)) * SLACK
        room = radius * sizes.reshape(-1, *[1] * (f.ndim - 1)) * SLACK + error
        if not problem.bias:
            return Interval(f - room, f + room), (0.0, 0.0)
        if f.ndim > 1:
            self.reasons.append(NO_BIASES)
            return unknown(problem.shape), nothing
        least = problem.formulation.value(norms.lower) / SLACK
        penalty = self.points.parts[1]
        more = (share - 1) * max(penalty - least, 0.0) * SLACK if share > 1 else 0.0
        most = self.points.upper - least + more + 1e-10 * abs(self.points.upper)
        center = self.points.stretch * float(self.certificate.bias)
        end = partial(_end, partial(_least_loss, problem, f, room), most, center)
        low, high = end(-1.0), end(1.0)
        return Interval(f - room + low, f + room + high), (low, high)

    # ---- norms of α* ----------------------------------------------------------------

    def _distance(self, alpha: Interval) -> float:
        """A bound of ‖α̂ − α*‖, from the dual ball or from the intervals of α*."""
        point = self.points.shrink * self.points.alpha
        far = np.maximum(alpha.upper - point, point - alpha.lower)
        found = float(np.linalg.norm(np.maximum(far, 0.0))) * SLACK
        if self.problem.loss.smoothness is not None:
            most = float(np.max(self.problem.costs))
            found = min(found, math.sqrt(self.dual_gap * most) * SLACK)
        return found if not math.isnan(found) else math.inf

    def _dual_norms(self, distance: float) -> Interval:
        """v_m* from v̂_m and the distance of α̂ and α*."""
        grams, s = self.problem.grams, self.points.shrink
        if not math.isfinite(distance):
            return unknown((grams.M,), 0.0)
        room = self.problem.grams.spectral_roots(self.problem.bias) * distance * SLACK
        low = np.maximum(s * self.dual_bounds.below / SLACK - room, 0.0)
        return Interval(low, s * self.dual_bounds.above * SLACK + room)


# ---- the bias ------------------------------------------------------------------------


def _least_loss(problem: Problem, f: Array, room: Array, b: float) -> float:
    """A lower bound of min Σ C_i V(f_i + b + e_i) over |e_i| ≤ room_i."""
    loss, y = problem.loss, problem.y
    low, high = f + b - room, f + b + room
    inside = -loss.conjugate(np.zeros_like(f), y)  # the least value of V
    rising, falling = loss.gradient(low, y) >= 0, loss.gradient(high, y) <= 0
    values = np.where(rising, loss.value(low, y), inside)
    values = np.where(falling & ~rising, loss.value(high, y), values)
    slack = 1e-12 * (np.abs(values) + np.abs(f + b) + room + np.abs(y) + 1)
    return float(problem.costs @ (values - slack)) - 1e-12 * abs(float(np.sum(values)))


def _end(value: Callable[[float], float], most: float, b: float, side: float) -> float:
    """A number beyond the b with value(b) ≤ most, for a convex function."""
    step = 1e-6 * (1 + abs(b))
    for _ in range(DOUBLINGS):
        if value(b + side * step) > most:
            break
        step *= 2
    else:
        return side * INF
    inside, outside = 0.0, step
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        if value(b + side * middle) > most:
            outside = middle
        else:
            inside = middle
    return b + side * outside
