"""Fresh problems: drawn anew for every exam, in situations where solvers go wrong.

A situation fixes what its name says (the size, C, the storage, …) and leaves all else
to chance: the kernels, n, M, C, bias, storage, the order of samples and labels, the
parameters of Ω and of the loss. The seed of the exam decides all of it, so that a seed
repeats an exam, and answers that were stored before help nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...formulations import Formulation, Loss
from ...grams.stack import GramStack
from ...problem import Problem

Array = np.ndarray
Rng = np.random.Generator
STORAGES = ("packed", "full", "factors", "float32")
RIDGE = 1e-3  # of the mean diagonal: a kernel rounded to float32 stays p.s.d.
WITH_BIAS = 0.7  # the share of problems with a bias, where it is left to chance
# Parameters of Ω and of losses, drawn from these ranges where they are not given.
RANGES = {
    "p": (1.05, 4.0), "q": (1.05, 4.0), "r": (1.05, 1.9), "s": (1.05, 1.9),
    "mu": (0.3, 3.0), "l1_ratio": (0.1, 0.9), "a": (0.05, 0.5),
    "eps": (0.02, 0.4), "tau": (0.2, 0.8), "delta": (0.3, 2.0),
}  # fmt: skip


@dataclass
class Draw:
    """Factors L_m (n, r_m), a score to be learned, and what was fixed or drawn."""

    rng: Rng
    factors: list[Array]
    score: Array
    C: float | Array
    bias: bool
    storage: str
    cut: float  # the share of negative labels
    classes: int  # for losses of several classes


Change = Callable[[Draw], None]


@dataclass(frozen=True)
class Situation:
    """What is fixed: a name, ranges of n, M and log₁₀ C, and any other change."""

    name: str
    n: tuple[int, int] = (18, 45)
    M: tuple[int, int] = (2, 7)
    log_C: tuple[float, float] = (-1.5, 1.5)
    change: Change | None = None
    bias: bool | None = None
    telling: bool = True  # of any Ω and loss: they matter, and it is not too hard

    def problem(
        self,
        rng: Rng,
        formulation: Callable[[int, Rng], Formulation],
        loss: Loss,
        bias: bool | None,
    ) -> Problem:
        """A problem of this situation; ValueError where Ω, loss or bias do not fit."""
        draw = self._drawn(rng)
        if bias is not None:
            if self.bias is not None and bias != self.bias:
                raise ValueError("the situation fixes the bias")
            if bias and not loss.bias_allowed:
                raise ValueError("the loss has no bias")
            draw.bias = bias
        if self.change is not None:
            self.change(draw)
        y = _targets(draw)[loss.labels]
        omega = formulation(len(draw.factors), rng)
        allowed = draw.bias and loss.bias_allowed
        return Problem(_stack(draw), y, loss, omega, draw.C, bias=allowed)

    def _drawn(self, rng: Rng) -> Draw:
        n, M = (int(rng.integers(a, b + 1)) for a, b in (self.n, self.M))
        factors = [rng.normal(size=(n, int(r))) for r in rng.integers(2, 8, size=M)]
        factors = [L / math.sqrt(L.shape[1]) for L in factors]
        carried = factors[: min(2, M)]
        score = sum(L @ rng.normal(size=L.shape[1]) for L in carried)
        score = np.asarray(score + 0.7 * rng.normal(size=n))
        C, storage = 10 ** rng.uniform(*self.log_C), str(rng.choice(STORAGES))
        bias = rng.random() < WITH_BIAS if self.bias is None else self.bias
        cut, classes = rng.uniform(0.35, 0.65), int(rng.integers(2, 6))
        return Draw(rng, factors, score, float(C), bool(bias), storage, cut, classes)


def _targets(draw: Draw) -> dict[str, Array]:
    """What each kind of loss learns: the score, its sign at a quantile, its parts."""
    score, n = draw.score, len(draw.score)
    ranks = np.argsort(np.argsort(score))
    negative = min(max(round(draw.cut * n), 1), n - 1)
    return {
        "real": score,
        "binary": np.where(ranks >= negative, 1.0, -1.0),
        "ones": np.ones(n),
        "classes": ranks * min(draw.classes, n) // n,
    }


def _stack(draw: Draw) -> GramStack:
    if draw.storage == "factors":
        return GramStack.from_factors(draw.factors)
    kernels = [L @ L.T for L in draw.factors]
    if draw.storage == "float32":
        eye = np.eye(len(draw.score))
        kernels = [K + RIDGE * np.mean(np.diag(K)) * eye for K in kernels]
        storage = str(draw.rng.choice(["packed", "full"]))
        return GramStack(np.stack(kernels), storage=storage, dtype="float32")
    return GramStack(np.stack(kernels), storage=draw.storage)


# ---- situations --------------------------------------------------------------


def _stored(storage: str) -> Change:
    def change(draw: Draw) -> None:
        draw.storage = storage

    return change


def _own_costs(draw: Draw) -> None:
    draw.C = draw.C * 10 ** draw.rng.uniform(-1, 1, size=len(draw.score))


def _few_positive(draw: Draw) -> None:
    draw.cut = 0.92


def _few_negative(draw: Draw) -> None:
    draw.cut = 0.1


def _ordered(draw: Draw) -> None:
    order = np.argsort(draw.score)[:: draw.rng.choice([-1, 1])]
    draw.score = draw.score[order]
    draw.factors = [L[order] for L in draw.factors]


def _twice(draw: Draw) -> None:
    """Every sample twice; some of the twins have other labels."""
    draw.factors = [np.vstack([L, L]) for L in draw.factors]
    noise = 0.3 * draw.rng.normal(size=len(draw.score))
    draw.score = np.append(draw.score, draw.score + noise)


def _zero(draw: Draw) -> None:
    m = int(draw.rng.integers(len(draw.factors)))
    draw.factors[m] = 0 * draw.factors[m]


def _identical(draw: Draw) -> None:
    draw.factors += draw.factors


def _scaled(draw: Draw) -> None:
    sizes = 10 ** draw.rng.uniform(-1, 1, size=len(draw.factors))
    draw.factors = [size * L for size, L in zip(sizes, draw.factors)]


def _rescaled(size: float) -> Change:
    """All kernels large or small at once; the same problem for Ω(u) = Σu."""

    def change(draw: Draw) -> None:
        draw.factors = [math.sqrt(size) * L for L in draw.factors]
        draw.C = draw.C / math.sqrt(size)

    return change


def _identity(draw: Draw) -> None:
    """Full rank: one kernel is the identity, the others are Gaussian."""
    n = len(draw.score)
    for m, L in enumerate(draw.factors):
        far = np.sum((L[:, None] - L[None]) ** 2, axis=2)
        K = np.exp(-far) + 1e-6 * np.eye(n)
        draw.factors[m] = np.linalg.cholesky(K)
    draw.factors[-1] = np.eye(n)


OWN_COSTS, NO_BIAS = "one C per sample", "no bias"  # also names of graded problems
SITUATIONS = (
    Situation("some problem"),
    Situation("n from 150", (150, 240), (2, 4), (-1, 1)),
    Situation("packed", change=_stored("packed")),
    Situation("C from 1000", (16, 26), (2, 4), (3.1, 4), telling=False),
    Situation(OWN_COSTS, change=_own_costs),
    Situation(NO_BIAS, bias=False),
    Situation("few positive", (24, 45), change=_few_positive),
    Situation("large kernels", change=_rescaled(100.0)),
    Situation("n over 256", (257, 320), (2, 3), (-1, 0.5)),
    Situation("full", change=_stored("full")),
    Situation("factors", change=_stored("factors")),
    Situation("float32", change=_stored("float32")),
    Situation("C near 1e5", (12, 20), (2, 3), (4.7, 5), telling=False),
    Situation("C below 0.01", (20, 45), log_C=(-3, -2.1), telling=False),
    Situation("few negative", (24, 45), change=_few_negative),
    Situation("labels in order", change=_ordered),
    Situation("every sample twice", (10, 22), change=_twice),
    Situation("a zero kernel", M=(3, 7), change=_zero),
    Situation("identical kernels", M=(2, 4), change=_identical),
    Situation("kernels of other sizes", change=_scaled),
    Situation("small kernels", change=_rescaled(0.01)),
    Situation("full rank", change=_identity),
    Situation("many kernels", (18, 30), (33, 45)),
    Situation("a single kernel", M=(1, 1), telling=False),
    Situation("few samples", (2, 6), (2, 5), telling=False),
    Situation("with a bias", bias=True),
    Situation("n about 400", (380, 430), (2, 3), (-1, 0)),
)
QUICK = 8  # so many of them, the first ones, are asked in a quick exam
# Asked for every loss.
MEDIUM = Situation("n from 150", (150, 200), (2, 3), (-1, 0.5))
LARGE_C = Situation("C from 1000", (8, 12), (2, 3), (3.02, 3.3))


def with_other_kernels(problem: Problem, rng: Rng) -> Problem:
    """All else alike, diagonals and sizes of entries, too: no answer can be reused.

    K becomes SKS with random signs S: samples are mirrored in feature space.
    """
    grams = problem.grams
    signs = rng.choice([-1.0, 1.0], size=grams.n)
    signs[:2] = (1.0, -1.0)[: grams.n]
    if grams.factors is not None:
        return problem.with_(grams=GramStack.from_factors(
            [signs[:, None] * L for L in grams.factors]
        ))  # fmt: skip
    K = signs[:, None] * np.asarray(grams.dense()) * signs
    kind = {"storage": grams.storage, "dtype": str(grams.dtype)}
    return problem.with_(grams=GramStack(K, **kind))


# ---- parameters --------------------------------------------------------------


def varied(part: Any, rng: Rng) -> Any:
    """A formulation or loss with other parameters, where it has some."""
    drawn: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in RANGES and isinstance(value, float) and math.isfinite(value):
            drawn[field.name] = float(round(rng.uniform(*RANGES[field.name]), 3))
        if field.name == "groups" and value:
            drawn["groups"] = _partition(sum(map(len, value)), rng)
    try:
        return replace(part, **drawn)
    except ValueError:
        return part


def _partition(M: int, rng: Rng) -> tuple[tuple[int, ...], ...]:
    """Groups of kernels in any order; a kernel may be alone."""
    owner = rng.integers(0, max(M // 2, 2), size=M)
    groups = [np.flatnonzero(owner == k) for k in np.unique(owner)]
    return tuple(tuple(map(int, rng.permutation(group))) for group in groups)


def facts(problem: Problem) -> dict[str, Any]:
    """What a report tells of a problem: n, M, the largest C, storage and bias."""
    grams = problem.grams
    single = " float32" if grams.dtype == np.float32 else ""
    return {
        "n": grams.n,
        "M": grams.M,
        "C": float(np.max(problem.C)),
        "storage": f"{grams.storage}{single}",
        "bias": problem.bias,
    }
