"""Structured outputs: OBSCURE with an argmax oracle, certified where outputs are few.

Problem. A sample i is some parts (the letters of a word); an output y labels them all.
With kernels between parts, and g(y), features of the output alone (chains.py),

    f(i, y) = Σ_m ⟨w_m, φ_m(i, y)⟩ + ⟨w_0, g(y)⟩,    φ_m(i, y) = Σ_t ψ_m(x_t) ⊗ e_{y_t}
    min over w   C Σ_i max_y [Δ(y_i, y) + f(i, y) − f(i, y_i)] + Ω(‖w_1‖, …, ‖w_0‖)

with Ω = ½‖u‖_q², 1 < q ≤ 2. The dual has a distribution π_i over the outputs of each
sample; with A_t = C Σ_y π_i(y) (e_{y_it} − e_{y_t}), a = C Σ_iy π_i(y) (g(y_i) − g(y)):

    max over π   C Σ_iy π_i(y) Δ(y_i, y) − Ω*(‖A‖_{K_1}, …, ‖A‖_{K_M}, ‖a‖)

and w_m = θ_m Σ_t ψ_m(x_t) ⊗ A_t, w_0 = θ_0 a, with θ = ∂Ω*(v)/v. θ_0 is kept last.

Guarantee. Every π gives a lower bound. An upper bound needs the maximum over y itself:
where all outputs can be listed it is taken from the list, the oracle is not believed,
and the result has a certificate, recomputed in float64 from π and θ alone, for kernels
that are positive semi-definite. Where outputs are too many, it has none and says so.

`solve` is OBSCURE and then pairwise Frank–Wolfe, see oracle_steps.py.

Reference: Orabona et al. (2012), section 2.1.2; Tsochantaridis et al. (2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..formulations.block_norm import BlockNorm
from ..grams.stack import GramStack
from ..util.arrays import Array, real_array
from ..util.checks import check_list, real_number, short
from ..util.threads import with_blas_alone
from .chains import Structure
from .oracle_steps import Bounds, Difference, Output, Outputs, State, obscure, pairwise

LISTS = "a list of whole numbers for each sample"


def _numbers(part: Any) -> Array:
    found = real_array(part, "a sample of parts", "a list of whole numbers")
    if found.ndim != 1 or not np.all(found == np.rint(found)):
        raise ValueError(f"a sample of parts is {short(part)}; give {LISTS}")
    return found.astype(int)


@dataclass(frozen=True, eq=False)
class StructuredProblem:
    """Parts with kernels and labels, samples made of them, and what an output is.

    Parameters
    ----------
    grams : GramStack, or array of shape (M, n, n)
        The kernels between n parts.
    y : array of shape (n,)
        The labels of the parts, 0 … k−1.
    parts : list of lists of int
        For each sample the numbers of its parts; every part belongs to one sample.
    structure : Structure
        A Chain, or an object with the same four functions.
    q : float, default=1.5
        Ω = ½‖u‖_q², 1 < q ≤ 2.
    C : float, default=1.0
        The weight of the loss.

    Raises
    ------
    ValueError
        Where a part is of the wrong shape, or Δ(y, y) is not 0.

    Examples
    --------
    >>> import numpy as np, mklopt
    >>> from mklopt.structured import Chain
    >>> y = np.tile([0, 1, 1], 4)
    >>> X = y[:, None] + 0.3 * np.random.default_rng(0).normal(size=(12, 2))
    >>> words = np.arange(12).reshape(4, 3)
    >>> problem = mklopt.StructuredProblem((X @ X.T)[None], y, words, Chain(2))
    >>> result = mklopt.structured.solve(problem, tol=0.01)
    >>> bool(result.certificate.relative_gap <= 0.01)
    True
    """

    grams: GramStack
    y: Array
    parts: Sequence[Any]
    structure: Structure
    q: float = 1.5
    C: float = 1.0

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if not hasattr(self.grams, "matvec"):
            put("grams", GramStack(self.grams))  # type: ignore[arg-type]
        if not hasattr(self.structure, "labels"):
            raise ValueError(
                f"structure = {short(self.structure)}; give a Chain, or an object with "
                "the same functions"
            )
        n, k = self.grams.n, self.structure.labels
        y = real_array(self.y, "y", "one label per part")
        if y.shape != (n,) or not np.all((y == np.rint(y)) & (y >= 0) & (y < k)):
            raise ValueError(f"y must be {n} labels among 0 … {k - 1}, one per part")
        put("y", y.astype(int))
        put("parts", [_numbers(p) for p in check_list(self.parts, "parts", LISTS)])
        each = np.sort(np.concatenate([np.empty(0, int), *self.parts]))
        if not np.array_equal(each, np.arange(n)) or not all(map(len, self.parts)):
            raise ValueError(f"parts must name each of 0 … {n - 1} in just one sample")
        put("q", real_number(self.q, "q"))
        put("C", real_number(self.C, "C"))
        if not 1 < self.q <= 2 or not 0 < self.C < np.inf:
            raise ValueError(f"q = {self.q}, C = {self.C}; need 1 < q ≤ 2 and C > 0")
        if any(self.difference(i, self.truth(i))[2] for i in range(len(self.parts))):
            raise ValueError("Δ(y, y) must be 0: delta of an output with itself is not")

    @property
    def formulation(self) -> BlockNorm:
        """Ω."""
        return BlockNorm(self.q)

    def truth(self, i: int) -> Output:
        """The labels of sample i.

        Parameters
        ----------
        i : int

        Returns
        -------
        tuple of int
        """
        return tuple(map(int, self.y[self.parts[i]]))

    def difference(self, i: int, output: Output) -> Difference:
        """The features of the truth minus those of an output, and its Δ.

        Parameters
        ----------
        i : int
            The sample.
        output : tuple of int

        Returns
        -------
        labels : array of shape (T, k)
            e_{y_it} − e_{y_t}, one row per part t.
        g : array of shape (D,)
            g(y_i) − g(y).
        delta : float
            Δ(y_i, y).
        """
        truth, y = self.y[self.parts[i]], np.array(output)
        labels = np.eye(self.structure.labels)
        g = self.structure.features(truth) - self.structure.features(y)
        delta = float(self.structure.delta(truth, y))
        return labels[truth] - labels[y], np.asarray(g, float), delta

    def violation(self, i: int, output: Output, F: Array, w: Array) -> float:
        """Δ(y_i, y) + f(i, y) − f(i, y_i).

        Parameters
        ----------
        i : int
            The sample.
        output : tuple of int
        F : array of shape (T, k)
            The scores of its parts.
        w : array of shape (D,)
            w_0.

        Returns
        -------
        float
        """
        labels, g, delta = self.difference(i, output)
        return delta - float(np.sum(labels * F)) - float(g @ w)

    def dual_point(self, outputs: Outputs) -> tuple[Array, Array, float]:
        """The dual point of distributions over outputs.

        Parameters
        ----------
        outputs : list of dict
            π_i of each sample: shares by outputs. What is left of 1 is on the truth.

        Returns
        -------
        A : array of shape (n, k)
        a : array of shape (D,)
        gain : float
            C Σ π Δ.

        Raises
        ------
        ValueError
            Where shares are negative, or more than 1 in all.
        """
        A, gain = np.zeros((self.grams.n, self.structure.labels)), 0.0
        a = np.zeros_like(self.difference(0, self.truth(0))[1])
        for i, some in enumerate(outputs):
            if min(some.values(), default=0) < 0 or sum(some.values()) > 1 + 1e-9:
                raise ValueError(f"what sample {i} has is no distribution over outputs")
            whole = max(sum(some.values()), 1.0)
            for y, share in some.items():
                labels, g, delta = self.difference(i, y)
                mass = self.C * share / whole
                A[self.parts[i]] += mass * labels
                a += mass * g
                gain += mass * delta
        return A, a, gain


def certify(problem: StructuredProblem, outputs: Outputs, weights: Array) -> Bounds:
    """The bounds of anybody's distributions π and weights θ.

    Parameters
    ----------
    problem : StructuredProblem
    outputs : list of dict
        π_i of each sample, see `StructuredProblem.dual_point`.
    weights : array of shape (M + 1,)
        θ ≥ 0; that of g is last.

    Returns
    -------
    Bounds
        dual ≤ f* ≤ primal.

    Raises
    ------
    ValueError
        Where the outputs of a sample are too many to list.
    """
    A, a, gain = problem.dual_point(outputs)
    v = np.sqrt(np.maximum(np.append(problem.grams.quad(A), a @ a), 0.0))
    price = problem.formulation.conjugate(v)
    s = min(1.0, gain / (2 * price)) if price > 0 else 1.0  # towards the truth
    F = np.tensordot(weights[:-1], problem.grams.matvec(A), 1)
    w, samples = weights[-1] * a, range(len(problem.parts))
    loss = sum(_largest_violation(problem, i, F, w) for i in samples)
    primal = problem.C * loss + problem.formulation.value(weights * v)
    return Bounds(primal, s * gain - s * s * price)


def _largest_violation(problem: StructuredProblem, i: int, F: Array, w: Array) -> float:
    """By looking at every output there is."""
    part, structure = problem.parts[i], problem.structure
    truth, Z = problem.y[part], structure.outputs(len(part))
    if Z is None:
        raise ValueError(f"the outputs of sample {i} are too many to list")
    scores = F[part][np.arange(len(part)), Z].sum(axis=1) + structure.features(Z) @ w
    own = F[part, truth].sum() + structure.features(truth) @ w
    return float(np.max(structure.delta(truth, Z) + scores - own, initial=0.0))


@dataclass(frozen=True, eq=False)
class StructuredResult:
    """Where a run ended.

    Parameters
    ----------
    problem : StructuredProblem
    weights, norms : array of shape (M + 1,)
        θ_m and ‖w_m‖ of the kernels, and of g last.
    coefficients : array of shape (n, k)
        A.
    transitions : array of shape (D,)
        w_0.
    outputs : list of dict
        π_i of each sample.
    certificate : Bounds or None
        None where outputs cannot be listed.
    history : list of Bounds
        After each pass the objective as the oracle sees it, and the dual bound.
    online : float
        The objective, as the oracle sees it, where OBSCURE ended.
    """

    problem: StructuredProblem = field(repr=False)
    weights: Array
    norms: Array
    coefficients: Array = field(repr=False)
    transitions: Array = field(repr=False)
    outputs: Outputs = field(repr=False)
    certificate: Bounds | None
    history: list[Bounds] = field(repr=False)
    online: float

    def predict(self, test_stack: Any, parts: Sequence[Any]) -> list[Array]:
        """The best outputs of new samples.

        Parameters
        ----------
        test_stack : array of shape (M, n_new, n)
            Kernels between the parts of new samples and those of the problem.
        parts : list of lists of int
            For each new sample the numbers of its parts.

        Returns
        -------
        list of arrays
            The labels of each sample.
        """
        K = real_array(test_stack, "test_stack", "an (M, n_new, n) array of numbers")
        M, n = self.problem.grams.M, self.problem.grams.n
        if K.ndim != 3 or K.shape[::2] != (M, n):
            raise ValueError(f"test_stack has shape {K.shape}; expected ({M}, …, {n})")
        F = np.tensordot(self.weights[:-1], K, 1) @ self.coefficients
        decode = self.problem.structure.argmax
        return [decode(F[part], self.transitions, None) for part in parts]

    def __str__(self) -> str:
        if self.certificate is None:
            objective, dual = self.history[-1]
            return (
                f"{dual:.8g} ≤ f*, no upper bound is certified: outputs are too many "
                f"to list, so that the objective {objective:.8g} rests on the oracle"
            )
        gap = self.certificate.relative_gap
        primal, dual = self.certificate
        return f"{dual:.8g} ≤ f* ≤ {primal:.8g}, relative gap {gap:.1e}"


@with_blas_alone
def solve(
    problem: StructuredProblem,
    *,
    tol: float = 1e-2,
    epochs: tuple[int, int] = (5, 5),
    passes: int = 200,
    seed: int = 0,
) -> StructuredResult:
    """OBSCURE, then pairwise Frank–Wolfe to a gap of tol.

    Parameters
    ----------
    problem : StructuredProblem
    tol : float, default=1e-2
        The relative gap, as the oracle sees it, to stop at.
    epochs : pair of int, default=(5, 5)
        How long the two stages of OBSCURE run.
    passes : int, default=200
        Passes of pairwise steps, at most.
    seed : int, default=0

    Returns
    -------
    StructuredResult

    Raises
    ------
    ValueError
        Where the problem is of another kind, or the oracle finds what is no output.
    """
    if not isinstance(problem, StructuredProblem):
        given = type(problem).__name__
        raise ValueError(f"solve takes a StructuredProblem first, got {given}")
    state, rng = State(problem), np.random.default_rng(seed)
    online = obscure(state, epochs, rng)
    state.recompute()
    history = [state.bounds()]
    while history[-1].relative_gap > tol and len(history) <= passes:
        pairwise(state, rng)
        history.append(state.bounds())
    sizes = {len(part) for part in problem.parts}
    listed = all(problem.structure.outputs(T) is not None for T in sizes)
    theta, pi = state.weights, state.shares
    bounds = certify(problem, pi, theta) if listed else None
    point = (theta, theta * state.v, state.A, theta[-1] * state.a, pi)
    return StructuredResult(problem, *point, bounds, history, online)
