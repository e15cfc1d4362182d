"""The inner solver of a loss that is twice differentiable: logistic, squared.

    min over β, b   Σ C_i V(f_i) + ½ βᵀKβ,    f = Kβ + b,    K = Σ θ_mK_m

Algorithm. Newton's method. With D = C V''(f), α = −C V'(f) and P = (D⁻¹ + K)⁻¹ the
quadratic model of the losses at predictions f has its minimum at

    β = α + P (f − Kα) − b P1,    Σβ = 0

where P = R (I + RKR)⁻¹ R with R = √D needs no D⁻¹: far from the margin V'' underflows.
f need not be Kβ + b for any β. If the last β is bad for a new K, the first step models
the losses at the last predictions, which change less than β. Then a line search for the
best length, which may exceed 1 (with steps of length 1 an exponential tail falls only
by a constant factor), and the best b.

A Cholesky factorization is used again as long as its steps reduce the gap enough, and
for derivatives. It is made in single precision if RKR is small enough; residuals are in
float64, so that later steps correct earlier ones.

Guarantee. `gap` = primal − dual at α, computed in float64. α lies in the domain of V*
and sums to 0 with the best b.
"""

from typing import Any

import numpy as np
import scipy.linalg

from ...certificates.certificate import Certificate
from ...util.arrays import NotFinite
from ...util.compiled import compiled, read_only
from .linear import jittered_cholesky
from .machine import Array, Machine

MAX_NEWTON_STEPS = 30  # of one solve
IDLE_WORK = 0.1  # of a solve with nothing to do: ten of them, and the solver yields
MAX_EVALUATIONS = 20  # of one line search
FLAT_SLOPE = 0.1  # a line search ends at this part of the first slope
MAX_RISE = 1.0  # if β makes the primal value larger than this times the last: use f
SMALLEST_GAP = 1e-14  # relative to the primal value: a smaller one is rounding
FAR = 0.1  # if β makes the gap larger than this part of the primal value: use f
USEFUL_FALL = 0.1  # a step that reduces the gap to this part keeps the factorization
SINGLE_PRECISION_TRACE = 1e5  # the largest tr RKR for single precision


class SmoothMachine(Machine):
    """The inner solver of a twice differentiable loss; all coordinates are free."""

    beta: Array | None = None
    f: Array | None = None  # predictions
    move: Array | None = None  # the predicted change of β
    bias, primal = 0.0, np.inf
    K: Array = np.zeros((0, 0))
    _factor: Any = None
    _room: Array = np.zeros((0, 0))

    def solve(self, theta: Array, K: Array | None = None) -> Array:
        """Solve at θ: Newton steps from the last β."""
        last, self.theta = self.K, theta
        self.K = self.problem.grams.combine(theta) if K is None else K
        if self.K is last and self.move is None and self.gap <= self.tol:
            return self._solved(self.slope, self.gap, IDLE_WORK)
        before, f = self.primal, self.f
        if self.K is not last:
            self._factor = None
        self._begin()
        far = self.primal > MAX_RISE * before or self.gap > FAR * abs(self.primal)
        foreign = f if far else None
        for _ in range(MAX_NEWTON_STEPS):  # at least one: derivatives need a factor
            before = self.gap
            self._step(foreign)
            rounding = self.gap >= before and self.gap <= 1e-12 * abs(self.primal)
            if self.gap <= self.tol or rounding:
                break
            if self.gap > USEFUL_FALL * before:
                self._factor = None
            foreign = None
        return self._solved(self.slope, self.gap, 0.125)

    def _begin(self) -> None:
        """Begin at the best of: the last β, its multiple with the same Kβ, β + move."""
        last = self.beta if self.beta is not None else self.alpha
        beta = np.zeros(self.problem.grams.n) if last is None else last
        Kb = self.K @ beta
        starts = [(beta, Kb)]
        if self.beta is not None:
            keeps = float(self.Kb @ Kb) / max(float(Kb @ Kb), 1e-300)
            starts.append((keeps * beta, keeps * Kb))
        if self.move is not None:
            starts.append((beta + self.move, Kb + self.K @ self.move))
        tried = [self._settle(*start) for start in starts]
        if (best := int(np.argmin(tried))) < len(starts) - 1:
            self._settle(*starts[best])
        self._look()
        self.move = None

    def _settle(self, beta: Array, Kb: Array) -> float:
        """Move to β, with the best bias; returns the primal value there."""
        problem, loss = self.problem, self.problem.loss
        self.beta, self.Kb = beta, Kb
        if problem.bias:
            self.bias = float(loss.best_bias(Kb, problem.y, problem.costs))
        self.f = Kb + self.bias
        cost = float(problem.costs @ loss.value(self.f, problem.y))
        self.primal = cost + 0.5 * float(beta @ Kb)
        return self.primal

    def _look(self) -> None:
        """Compute α at f, and the gap."""
        problem, loss = self.problem, self.problem.loss
        slope = loss.gradient(self.f, problem.y)
        self.slope = problem.feasible(-problem.costs * slope)
        length = 0.5 * float(self.slope @ self.K @ self.slope)
        self.below = problem.dual_loss(self.slope) - length
        self.gap = self.primal - self.below

    def set_tolerance(self, certificate: Certificate) -> None:
        """Newton's method in the weights squares the gap, and needs slopes like that.

        After the next iterate, which this is for, comes one more. The error of v is as
        the root of the gap: so it is the gap to the power 6, as far as rounding allows.
        """
        super().set_tolerance(certificate)
        part = min(certificate.relative_gap, 1.0) ** 6
        sharp = max(part, SMALLEST_GAP) * abs(certificate.primal)
        self.tol = min(self.tol, sharp)

    @property
    def J(self) -> float:
        """A lower bound of J(θ): the dual value at α."""
        return self.below

    def _step(self, foreign: Array | None) -> None:
        """A step to the minimum of the model at f, or at other predictions.

        At f = Kβ + b, the term f − b − Kα is computed as K(β − α), which is accurate
        when β is nearly right.
        """
        problem = self.problem
        f = self.f if foreign is None else foreign
        assert self.beta is not None and self.f is not None and f is not None
        alpha = -problem.costs * problem.loss.gradient(f, problem.y)
        rest, shift = self.beta - alpha, 0.0
        force = self.K @ rest if foreign is None else f - self.bias - self.K @ alpha
        if self._factor is None:
            self._refactor(self._root(f))
        push, ones = self._plain(np.column_stack([force, np.ones(len(f))])).T
        step = push - rest
        if problem.bias:
            shift = float(np.sum(self.beta + step) / max(np.sum(ones), 1e-300))
            step = step - shift * ones
        Ks = self.K @ step
        t = self._length(step, Ks, Ks + shift)
        self._settle(self.beta + t * step, self.Kb + t * Ks)
        self._look()

    def _root(self, f: Array) -> Array:
        """R = √(C V'') at predictions f."""
        problem, loss = self.problem, self.problem.loss
        slope = loss.gradient(f, problem.y)
        return np.asarray(np.sqrt(problem.costs) * loss.root(slope, problem.y))

    def _length(self, step: Array, Ks: Array, moves: Array) -> float:
        """The length of a step that minimizes Σ C V + ½βᵀKβ: Newton in a bracket."""
        problem, loss, f = self.problem, self.problem.loss, self.f
        assert self.beta is not None and f is not None
        along, bend = float(self.beta @ Ks), float(step @ Ks)

        def slopes(t: float) -> tuple[float, float]:
            V = loss.gradient(f + t * moves, problem.y)
            curve = problem.costs @ (loss.root(V, problem.y) * moves) ** 2
            return problem.costs @ (V * moves) + along + t * bend, curve + bend

        first = slopes(0.0)[0]
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(MAX_EVALUATIONS):
            slope, curve = slopes(t)
            if abs(slope) <= FLAT_SLOPE * abs(first):
                break
            low, high = (t, high) if slope < 0 else (low, t)
            curve = max(curve, 0.1 * abs(slope) / t, 1e-300)
            t = min(max(t - slope / curve, 0.1 * t), 4 * t)
            t = t if low < t < high else 0.5 * (low + min(high, 4 * low))
        return t

    # ---- (D⁻¹ + K)⁻¹ --------------------------------------------------------------

    def _refactor(self, R: Array) -> None:
        self.R = R
        size = float(R**2 @ np.diagonal(self.K))  # ≥ λ_max(RKR); λ_min(I + RKR) ≥ 1
        kind = np.float32 if size < SINGLE_PRECISION_TRACE else np.float64
        # new memory would cost half as much as the factorization
        if self._room.shape != self.K.shape or self._room.dtype != kind:
            self._room = np.empty(self.K.shape, kind)
        _system(read_only(self.K), R, self._room)
        options = {"overwrite_a": True, "check_finite": False}
        try:
            self._factor = scipy.linalg.cho_factor(self._room.T, **options)
        except np.linalg.LinAlgError:  # RKR is huge, and by rounding indefinite
            system = R[:, None] * self.K * R + np.eye(len(R))
            self._factor = jittered_cholesky(system)
            if self._factor is None:
                raise NotFinite("the kernel is too far from ⪰ 0") from None

    def _plain(self, force: Array) -> Array:
        """P force, without the condition of the bias."""
        R = self.R[:, None]
        right = (R * force).astype(self._room.dtype)
        return R * scipy.linalg.cho_solve(self._factor, right, check_finite=False)

    def sensitivity(self, force: Array) -> Array:
        """P force, with columns that sum to 0 if there is a bias."""
        if self._factor is None:
            assert self.f is not None, "solve first"
            self._refactor(self._root(self.f))
        found = self._plain(np.column_stack([force, np.ones(len(force))]))
        if self.problem.bias:
            ones = found[:, -1]
            found -= np.outer(ones, np.sum(found, axis=0) / np.sum(ones))
        return found[:, :-1]

    def extrapolate(self, move: Array) -> None:
        """Try β + move as the start of the next solve."""
        self.move = move


@compiled()
def _system(K, R, out):
    """The lower triangle of I + RKR."""
    for i in range(len(R)):
        a = R[i]
        for j in range(i + 1):
            out[i, j] = a * K[i, j] * R[j]
        out[i, i] += 1
