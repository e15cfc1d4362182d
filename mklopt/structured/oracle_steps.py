"""Steps with an argmax oracle, for structured outputs (problem.py has the problem).

Algorithm. Both stages of OBSCURE (in α = θ/q of the paper), with the oracle's argmax as
the subgradient. Their updates add up to outputs with masses; cut to C they are a point
of the dual. From there steps of pairwise Frank–Wolfe with the same oracle and an exact
line search: mass goes from the worst output in use to the oracle's.

    stage 1   α ← α − (η/q) z,    z = φ(i, ŷ) − φ(i, y_i) where ŷ violates, otherwise 0
    stage 2   α ← (1 − λρ_t) α − ρ_t z, then into the ball ‖α‖ ≤ R,   ρ_t = 1/(λt + s_t)
              s_t = s + ½ (√(d² + q (λ‖α‖ + ‖z‖)²/R²) − d),   d = λt + s,   λ = 1/(CN)

Guarantee. The dual value rises in every pairwise step, and every pass ends with the gap
as the oracle sees it.

Reference: Orabona et al. (2012), algorithms 1 and 2; Lacoste-Julien et al. (2013), and
Lacoste-Julien and Jaggi (2015) for pairwise steps.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..certificates.certificate import relative
from ..formulations.norms import Array, dual_exponent

Output = tuple[int, ...]
Outputs = list[dict[Output, float]]  # π_i; what is left of 1 is on the truth
Difference = tuple[Array, Array, float]  # of labels (T, k), of g (D,), and Δ


class Bounds(NamedTuple):
    """dual ≤ f* ≤ primal."""

    primal: float
    dual: float

    @property
    def relative_gap(self) -> float:
        """(primal − dual)/|primal|."""
        return relative(self.primal - self.dual, self.primal)


class State:
    """Outputs with shares of C, and what follows from them: A, a, K_m A, v²."""

    def __init__(self, problem: Any):  # a StructuredProblem
        self.problem, self.scale = problem, 1.0  # true shares are scale · shares
        self.shares: Outputs = [{} for _ in problem.parts]
        self.recompute()

    def recompute(self) -> None:
        """Everything from the shares, cut to distributions; many small moves drift."""
        for i, some in enumerate(self.shares):
            whole = max(sum(some.values()), 1.0 / self.scale)
            self.shares[i] = {y: s / whole for y, s in some.items() if s > 0}
        self.A, self.a, self.gain = self.problem.dual_point(self.shares)
        self.KA = np.array(self.problem.grams.matvec(self.A))
        own = np.sum(self.KA * self.A, axis=(1, 2))
        self.squares, self.scale = np.append(own, self.a @ self.a), 1.0

    @property
    def v(self) -> Array:
        """‖A‖_{K_m} of the kernels, and ‖a‖ last."""
        return np.sqrt(np.maximum(self.squares, 0.0))

    @property
    def weights(self) -> Array:
        """θ = ∂Ω*(v)/v."""
        return self.problem.formulation.dual_weights(self.v)

    def scores(self, i: int) -> tuple[Array, Array]:
        """Of the parts of sample i, and w_0."""
        theta, part = self.weights, self.problem.parts[i]
        return np.tensordot(theta[:-1], self.KA[:, part], 1), theta[-1] * self.a

    def violated(self, i: int) -> tuple[Output, float]:
        """The oracle's output, and how much it violates."""
        F, w = self.scores(i)
        truth = self.problem.y[self.problem.parts[i]]
        y = tuple(map(int, self.problem.structure.argmax(F, w, truth)))
        if len(y) != len(truth) or not 0 <= min(y) <= max(y) < F.shape[1]:
            raise ValueError(
                f"the oracle found {y} for sample {i}; expected {len(truth)} labels "
                f"among 0 … {F.shape[1] - 1}"
            )
        return y, max(self.problem.violation(i, y, F, w), 0.0)

    def bounds(self) -> Bounds:
        """The dual value, and the objective as the oracle sees it."""
        formulation = self.problem.formulation
        loss = sum(self.violated(i)[1] for i in range(len(self.shares)))
        primal = self.problem.C * loss + formulation.value(self.weights * self.v)
        return Bounds(primal, self.gain - formulation.conjugate(self.v))

    def shrink(self, by: float) -> None:
        """Multiply the dual point by a number."""
        if not np.any(self.squares):
            return
        self.A, self.a, self.KA = by * self.A, by * self.a, by * self.KA
        self.squares, self.scale = by * by * self.squares, by * self.scale

    def along(self, i: int, way: Difference) -> tuple[Array, Array, Array]:
        """Rows of the kernels; v² becomes v² + s (2 cross + s square) after s · way."""
        part, (labels, g, _) = self.problem.parts[i], way
        rows = self.problem.grams.rows(part)
        cross = np.sum(self.KA[:, part] * labels, axis=(1, 2))
        square = np.sum(rows[:, :, part] @ labels * labels, axis=(1, 2))
        return rows, np.append(cross, self.a @ g), np.append(square, g @ g)

    def move(self, i: int, way: Difference, s: float, along: tuple) -> None:
        """A step s · way of sample i; `along` is what the method of that name found."""
        rows, cross, square = along
        self.A[self.problem.parts[i]] += s * way[0]
        self.a = self.a + s * way[1]
        self.KA += s * (rows.transpose(0, 2, 1) @ way[0])
        self.squares = self.squares + s * (2 * cross + s * square)

    def add(self, i: int, y: Output, mass: float) -> None:
        """Give mass to an output of sample i."""
        way, some = self.problem.difference(i, y), self.shares[i]
        self.move(i, way, mass, self.along(i, way))
        some[y] = some.get(y, 0.0) + mass / self.problem.C / self.scale


def obscure(state: State, epochs: tuple[int, int], rng: np.random.Generator) -> float:
    """Both stages, samples drawn at random; returns the objective it ends with."""
    problem, N = state.problem, len(state.shares)
    q, lam = dual_exponent(problem.q), 1 / (problem.C * N)
    at_zero, eta = state.bounds().primal, len(state.v) ** (-2 / q) / q
    if at_zero == 0:  # w = 0 makes no mistake
        return 0.0
    for i in rng.integers(0, N, size=epochs[0] * N):
        y, loss = state.violated(i)
        if loss > 0:
            state.add(i, y, eta)
    square = lambda v: 2 * problem.formulation.conjugate(v)  # noqa: E731  # ‖·‖²
    R2, s = 2 * min(at_zero, state.bounds().primal), 0.0
    for t, i in enumerate(rng.integers(0, N, size=epochs[1] * N), 1):
        y, loss = state.violated(i)
        z = state.along(i, problem.difference(i, y))[2] if loss > 0 else np.zeros(1)
        z = np.sqrt(np.maximum(z, 0.0))
        length = lam * np.sqrt(square(state.v)) + np.sqrt(square(z))
        d = lam * t + s
        s += 0.5 * (np.sqrt(d * d + q * length**2 / R2) - d)
        state.shrink(1 - lam / (lam * t + s))
        if loss > 0:
            state.add(i, y, 1 / (lam * t + s))
        state.shrink(min(1.0, np.sqrt(R2 / max(square(state.v), 1e-300))))
    return state.bounds().primal


def pairwise(state: State, rng: np.random.Generator) -> None:
    """One pass: mass moves from the worst output in use to the oracle's."""
    problem = state.problem
    for i in rng.permutation(len(state.shares)):
        (F, w), (best, _) = state.scores(i), state.violated(i)
        some, truth = state.shares[i], problem.truth(i)
        others = sum(share for y, share in some.items() if y != truth)
        some[truth] = max(1.0 - others, 0.0)
        used = [y for y, share in some.items() if share > 0]
        worst = min(used, key=lambda y: problem.violation(i, y, F, w))
        up, down = problem.difference(i, best), problem.difference(i, worst)
        way = (up[0] - down[0], up[1] - down[1], up[2] - down[2])
        along = state.along(i, way)
        s = _step(state, problem.C * some[worst], way[2], *along[1:])
        state.move(i, way, s, along)
        some[worst] -= s / problem.C
        some[best] = some.get(best, 0.0) + s / problem.C
        some[worst] = max(some[worst], 0.0)  # rounding; after `best`, which may be it
    state.recompute()


def _step(state: State, most: float, gain: float, cross: Array, square: Array) -> float:
    """The s in [0, most] with the largest dual value."""

    def slope(s: float) -> float:
        v = np.sqrt(np.maximum(state.squares + s * (2 * cross + s * square), 0.0))
        theta = state.problem.formulation.dual_weights(v)
        return gain - float(theta @ (cross + s * square))

    if slope(0.0) <= 0:
        return 0.0
    if slope(most) >= 0:
        return most
    return float(brentq(slope, 0.0, most, xtol=1e-14 * most))
