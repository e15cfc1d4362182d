"""Epochs of stochastic subgradient steps, shared by obscure, pegasos and ufo.

Problem. f(w) = λΩ(w) + (1/N) Σ c_iV_i(w), the canonical one divided by ΣC: λ = 1/ΣC
and c_i = N C_i/ΣC (1 when all C are equal); Ω(u) = (c/2)‖u‖_p² + aΣu with 1 < p ≤ 2,
1/p + 1/q = 1. No bias.

Step. There is one α for all kernels, and w = ∇Ω*(α): with v_m = ‖α‖_{K_m} and
x = (v − a)₊/c

    w_m = θ_m Σ_i α_i ψ_m(x_i),   θ_m = (x_m/‖x‖_q)^{q−2} x_m/v_m

(the papers' dual vector is qα). A step at sample i with z = c_i ∂V_i(w) ⊗ ψ(x_i) is
α ← (1 − λε)α − εz; then α is scaled back to ‖α‖_{2,q} ≤ R. Stored are a scale, α/scale,
K_mα/scale at all points, and ‖α/scale‖²_{K_m}. So shrinking costs O(M), a prediction
O(Mk), and a subgradient with k' entries adds k' multiples of one row of each kernel.

Blocks. The samples of an epoch are known when it begins. Kernels that are not in memory
are read for blocks of them (grams/rows.py): steps use K_mα at the samples of the block;
after it all changes of α are added to K_mα at all points, one product for each kernel.
The iterates are the same but for rounding.

Averages. The w_t of an epoch differ in M factors, and in one sample per step. So their
sum is S_mB − D, where S_m is the sum of the factors, B the coefficients at the end, and
D the sum of all changes of B, each times the S_m at its time. This is exact and costs
O(Mk') per step.

Reference: Orabona, Jie and Caputo (2012), section 3.1; suffix averages are those of
Rakhlin, Shamir and Sridharan (2012).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, types

from ...certificates.certificate import dual_value, primal_value
from ...formulations.norms import dual_exponent, norm
from ...grams.rows import Block, BlockReader
from ...problem import Problem
from ...util.checks import check_choice
from ...util.compiled import compiled
from ..base import Array, Iterate, Steps
from ..start import first_coefficients
from .dual_improvement import improve as improved

ITERATES = ("last", "average", "suffix")
MULTIPLES = 2.0 ** -np.arange(8)  # of a dual candidate that are tried
MAX_SQUARE = 2**28  # numbers of the n × n matrix that improves a dual point: 2 GB
DEFAULT_STEPS, FEWEST_EPOCHS = 2_000_000, 5  # of a run without a number of epochs
COUNTS = types.Array(int64, 1, "C", readonly=True)
STACK = types.Array(float64, 3, "C", readonly=True)
NUMBERS, TABLE, CUBE = float64[::1], float64[:, ::1], float64[:, :, ::1]
# Places in `tally`, the numbers that steps read and write.
SCALE, TIME, PULL, UPDATES, PAID, NOISE, SIZE, CLEARED = range(8)


class Samples(NamedTuple):
    """What a step needs of each sample."""

    y: Array
    cost: Array  # c_i
    roots: Array  # ‖ψ(x_i)‖_{2,q}
    diag: Array  # (n, M): K_m(x_i, x_i)


class Rule(NamedTuple):
    """The problem in the paper's units, and the kind of step."""

    q: float
    a: float
    c: float
    lam: float
    R: float  # the ball of stage 2
    eta: float  # > 0: the step of stage 1; 0: stage 2


class State(NamedTuple):
    """The state of a run; every step writes into it."""

    B: Array  # (n, k): α/scale
    F: Array  # (M, k, n): K_mα/scale; in steps at the samples of a block alone
    quad: Array  # ‖α/scale‖²_{K_m}
    omega: Array  # scale·θ
    S: Array  # see Averages above
    D: Array  # (M, n, k); see Averages above
    W: Array  # (M, n, k): Σ of the w_t
    G: Array  # (n, k): Σ of the subgradients at each sample
    seen: Array  # the number of these subgradients
    tally: Array


SAMPLES = types.NamedTuple((NUMBERS, NUMBERS, NUMBERS, TABLE), Samples)
RULE = types.NamedUniTuple(float64, 6, Rule)
STATE = types.NamedTuple(
    (TABLE, CUBE, *[NUMBERS] * 3, CUBE, CUBE, TABLE, NUMBERS, NUMBERS), State
)


@compiled()
def _mirror(quad, scale, q, a, c, omega):
    """ω = scale·θ from ‖α/scale‖²; returns ‖w‖_{2,p} = ‖x‖_q."""
    for m in range(len(quad)):
        omega[m] = max(scale * np.sqrt(max(quad[m], 0.0)) - a, 0.0) / c
    top, total = np.max(omega), 0.0
    if top == 0:
        return 0.0
    for m in range(len(quad)):
        total += (omega[m] / top) ** q
    size = top * total ** (1 / q)
    for m in range(len(quad)):
        if omega[m] > 0:
            omega[m] *= (omega[m] / size) ** (q - 2) / np.sqrt(quad[m])
    return size


@cache
def _steps(pointwise: Any) -> Callable:
    """Compiled when it is used, for all losses at once: they have one signature."""
    loss = types.FunctionType(pointwise)
    taken = (STACK, COUNTS, COUNTS, SAMPLES, loss, float64, RULE, STATE)
    return compiled(types.void(*taken))(_make_steps)


def _make_steps(K, place, order, samples, loss, parameter, rule, state):
    """A step at each sample of `order`.

    `place` has the places of these samples in the kernels K and in F: both are of the
    samples of a block.

    In stage 1 it is α ← α − ηz/q. In stage 2 ε = 1/(λt + s_t), with s_t as in
    Algorithm 2; s_t is 0 for R = ∞.
    """
    y, cost, roots, diag = samples
    q, a, c, lam, R, eta = rule
    B, F, quad, omega, S, D, _, G, seen, tally = state
    M, k, n = F.shape
    f, g = np.empty(k), np.empty(k)
    size = tally[SIZE]
    for step in range(len(order)):
        i, here = order[step], place[step]
        for j in range(k):
            f[j] = 0.0
            for m in range(M):
                f[j] += omega[m] * F[m, j, here]
        value = loss(f, y[i], parameter, g)
        square = 0.0
        for j in range(k):
            square += g[j] * g[j]
            G[i, j] += g[j]
        seen[i] += 1
        S += omega
        tally[TIME] += 1
        epsilon, shrink = eta / q, 1.0
        if eta == 0:
            now = lam * tally[TIME]
            slope = lam * size + cost[i] * roots[i] * np.sqrt(square)
            d = now + tally[PULL]
            tally[PULL] += 0.5 * (np.sqrt(d * d + q * (slope / R) ** 2) - d)
            epsilon = 1 / (now + tally[PULL])
            shrink = epsilon * (now - lam + tally[PULL])
            tally[NOISE] += q * slope * slope * epsilon
            tally[PAID] += 0.5 * lam * size * size + cost[i] * value
        if shrink == 0:  # the first step of pegasos multiplies the start by 0
            for m in range(M):
                D[m] -= S[m] * B
            B[:] = 0.0
            F[:] = 0.0
            quad[:] = 0.0
            shrink = 1.0
            tally[CLEARED] = 1.0
        tally[SCALE] *= shrink
        for j in range(k):
            if g[j] != 0:
                delta = -epsilon * cost[i] * g[j] / tally[SCALE]
                B[i, j] += delta
                for m in range(M):
                    D[m, i, j] += delta * S[m]
                    quad[m] += delta * (2 * F[m, j, here] + delta * diag[i, m])
                    row, image = K[m, here], F[m, j]
                    for r in range(n):
                        image[r] += delta * row[r]
        if square > 0:
            tally[UPDATES] += 1
        if square > 0 or a > 0:
            size = _mirror(quad, tally[SCALE], q, a, c, omega)
        else:
            size *= shrink
            omega *= shrink
        if size > R:
            tally[SCALE] *= R / size
            omega *= R / size
            size = R
    tally[SIZE] = size


@compiled()
def _settle(rule, state):
    """The end of an epoch: W += S_mB − D, and the scale is set to 1.

    An epoch shrinks the scale to about 1/n. The norms are computed anew.
    """
    B, F, quad, omega, S, D, W, _, _, tally = state
    scale = tally[SCALE]
    for m in range(len(S)):
        W[m] += S[m] * B - D[m]
    S[:] = 0.0
    D[:] = 0.0
    B *= scale
    F *= scale
    tally[SCALE] = 1.0
    for m in range(len(quad)):
        quad[m] = np.sum(B.T * F[m])
    tally[SIZE] = _mirror(quad, 1.0, rule.q, rule.a, rule.c, omega)


def epoch_range(given: int | None, n: int, name: str) -> range:
    """The epochs that are asked for; None: DEFAULT_STEPS steps."""
    if given is None:
        return range(max(FEWEST_EPOCHS, DEFAULT_STEPS // n))
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ValueError(f"{name} = {given!r}; give a whole number ≥ 0 of epochs")
    return range(given)


class Descent:
    """The state of a run, its epochs, and its candidates.

    shape: (p, a, c) of Ω(u) = (c/2)‖u‖_p² + aΣu
    sampling, iterate, improve: as the options of obscure
    """

    def __init__(
        self,
        problem: Problem,
        shape: tuple[float, float, float],
        rng: np.random.Generator,
        sampling: str = "iid",
        iterate: str = "all",
        improve: Callable | None = None,
        start: Any = None,
    ):
        self.sampling = check_choice(sampling, "sampling", ("iid", "shuffle"))
        self.which = check_choice(iterate, "iterate", (*ITERATES, "all"))
        self.problem, self.rng, self.improve = problem, rng, improve
        (self.p, self.a, self.c), self.q = map(float, shape), dual_exponent(shape[0])
        M, n, k = problem.grams.M, problem.grams.n, int(np.prod(problem.shape[1:]))
        self.lam = 1 / float(np.sum(problem.costs))
        diag = np.array(problem.grams.diag().T, order="C")
        roots = [norm(size, self.q) for size in np.sqrt(np.maximum(diag, 0.0))]
        y, cost = np.array(problem.y, float), np.array(n * self.lam * problem.costs)
        self.samples = Samples(y, cost, np.array(roots), diag)
        self.reader = BlockReader(problem.grams)
        self.B, self.F = np.zeros((n, k)), np.zeros((M, k, n))
        self.quad, self.omega, self.S = np.zeros((3, M))
        self.D, self.tally, self.epochs = np.zeros((M, n, k)), np.zeros(8), 0
        self.tally[SCALE], self.updates = 1.0, 0.0  # of the last epoch
        self.begin()
        if start is not None:
            self._from(start)

    def _from(self, start: Any) -> None:
        """Begin at w = ∇Ω*(α) for the α of a start."""
        _, alpha, _ = first_coefficients(self.problem, start)
        self.B[:] = alpha.reshape(self.B.shape)
        self.F[:] = self.problem.grams.matvec(self.B).transpose(0, 2, 1)
        _settle(self._rule(), self._state)

    def begin(self) -> None:
        """Begin a stage: time, averages and sums of subgradients are set to 0."""
        self.tally[[TIME, PULL, UPDATES, PAID, NOISE]] = 0.0
        self.W, self.G = np.zeros(self.D.shape), np.zeros(self.B.shape)
        self.seen, self.stage = np.zeros(len(self.B)), 0
        self.marks = [self._sums()] * 2

    def _sums(self) -> tuple[float, Array, Array, Array]:
        copies = (self.W.copy(), self.G.copy(), self.seen.copy())
        return (float(self.tally[TIME]), *copies)

    def epoch(self, eta: float = 0.0, R: float = np.inf) -> None:
        """n steps: of stage 1 if eta > 0, else of stage 2 in the ball of radius R."""
        n, before = len(self.B), float(self.tally[UPDATES])
        iid = self.sampling == "iid"
        order = self.rng.integers(n, size=n) if iid else self.rng.permutation(n)
        rule = self._rule(float(R), float(eta))
        for block in self.reader.blocks(order):
            self._steps_in(block, rule)
        _settle(rule, self._state)
        self.updates = float(self.tally[UPDATES]) - before
        if self.reader.whole is not None:
            self.problem.grams.count_rows(self.updates)
        self.epochs, self.stage = self.epochs + 1, self.stage + 1
        if self.stage & (self.stage - 1) == 0:  # the suffix begins at 1, 2, 4, 8, …
            self.marks = [self.marks[1], self._sums()]

    def _steps_in(self, block: Block, rule: Rule) -> None:
        """The steps of a block: with F at its samples, then at all others at once."""
        loss, parameter = self.problem.loss.pointwise()
        given = (block.order, self.samples, loss, parameter, rule)
        state, before = self._state, self.B[block.numbers]
        part = state._replace(F=self.reader.part(block, self.F))
        _steps(loss.nopython_signatures[0])(block.inner, block.place, *given, part)
        if part.F is self.F:
            return
        if self.tally[CLEARED]:  # α was multiplied by 0 on the way
            self.F[:], before[:], self.tally[CLEARED] = 0.0, 0.0, 0.0
        self.reader.add(block, (self.B[block.numbers] - before).T, self.F)

    def _rule(self, R: float = np.inf, eta: float = 0.0) -> Rule:
        return Rule(self.q, self.a, self.c, self.lam, R, eta)

    @property
    def _state(self) -> State:
        return State(*(getattr(self, name) for name in State._fields))

    # ---- candidates -----------------------------------------------------------------

    def coefficients(self, which: str) -> Array:
        """(M, n[, k]): of the last w, of the mean of all w_t, or of the later ones.

        "all" is the best of the three.
        """
        if which == "all":
            return self.best()
        if which == "last" or self.tally[TIME] == 0:
            found = self.omega[:, None, None] * self.B
        else:
            time, W = (0.0, 0.0) if which == "average" else self.marks[0][:2]
            found = (self.W - W) / (self.tally[TIME] - time)
        return found.reshape(self.problem.grams.M, *self.problem.shape)

    @property
    def predictions(self) -> Array:
        """The predictions of the last w at all samples."""
        f = np.tensordot(self.omega, self.F, axes=1).T
        return np.ascontiguousarray(f).reshape(self.problem.shape)

    @property
    def objective(self) -> float:
        """The canonical objective at the last w, without a pass over the kernels."""
        u = self.omega * np.sqrt(np.maximum(self.quad, 0.0))
        return primal_value(self.problem, self.predictions, u)

    @property
    def separated(self) -> bool:
        """Whether no sample has a loss at the last w."""
        return not np.any(self.problem.loss.value(self.predictions, self.problem.y))

    @property
    def radius(self) -> float:
        """R ≥ ‖w*‖: ½‖w*‖² ≤ f*, and f* is at most f at the last w and at 0."""
        zero, M = np.zeros(self.problem.shape), self.problem.grams.M
        at_zero = primal_value(self.problem, zero, np.zeros(M))
        return float(np.sqrt(2 * min(self.objective, at_zero)))

    def best(self) -> Array:
        """The coefficients of the best one: the last w, or one of the two means."""
        found = [(self.objective, self.coefficients("last"))]
        for which in ("average", "suffix"):
            B = self.coefficients(which)
            KB = self.problem.grams.apply(B)
            u = np.sqrt(np.maximum(np.sum((B * KB).reshape(len(B), -1), axis=1), 0.0))
            found.append((primal_value(self.problem, np.sum(KB, axis=0), u), B))
        return min(found, key=lambda pair: pair[0])[1]

    def dual(self) -> Array:
        """The better one of two candidates.

        One is the α of the last w, made feasible. The other is −C times the mean of the
        later subgradients at each sample, which is feasible.
        """
        _, _, G, seen = self.marks[0]
        often = np.maximum(self.seen - seen, 1.0)[:, None]
        mean = ((self.G - G) / often).reshape(self.problem.shape)
        own = self.problem.feasible(self.B.reshape(self.problem.shape))
        return max(own, -self.problem.spread_costs * mean, key=self._worth)

    def _worth(self, alpha: Array) -> float:
        """The dual value at the best of some multiples of α."""
        v = self.problem.grams.norms(alpha)
        return max(dual_value(self.problem, s * alpha, s * v) for s in MULTIPLES)

    def dual_point(self) -> Array:
        """The dual candidate, improved if there is a function for this.

        Not for so many samples that an n × n matrix would take too much memory.
        """
        alpha = self.dual()
        if self.improve is None or len(alpha) ** 2 > MAX_SQUARE:
            return alpha
        return self.improve(self.problem, alpha, self.omega)

    def iterate(self) -> Iterate:
        """A candidate. It is computed only if it is certified."""
        info = {"rounds": self.epochs, "updates": self.updates}
        primal = partial(self.coefficients, self.which)
        return Iterate(self.dual_point, coefficients=primal, info=info)


def follow_the_leader(
    problem: Problem,
    *,
    rng: np.random.Generator,
    start: Any = None,
    epochs: int | None = None,
    sampling: str = "iid",
    iterate: str = "all",
    improve: Callable | None = improved,
) -> Steps:
    """Steps of length 1/(λt): pegasos and ufo.

    epochs: their number; None: two million steps. The other options are as in obscure.
    A start is yielded once, because the first step multiplies it by 0.
    """
    shape, options = problem.formulation.strongly_convex, (sampling, iterate, improve)
    run = Descent(problem, shape, rng, *options, start)
    whole = epoch_range(epochs, problem.grams.n, "epochs")
    if np.any(run.B):
        yield run.iterate()
    for _ in whole:
        run.epoch()
        yield run.iterate()
