"""The graded problems: what anybody's solver is judged on, from easy to the edge.

    easy            the contract problems at C = 0.1 and 1
    ill-conditioned C = 100; kernels of sizes 10⁻² … 10²; kernels that are nearly equal;
                    wide Gaussians, whose spectrum ends in rounding
    degenerate      where solutions are not unique or multipliers vanish: every kernel
                    twice, a kernel of zeros, the same sample with both labels, rank one
    edge            one kernel, two samples, one sample against the rest, one C per
                    sample, no bias, a C so small that hardly anything is learned

A problem is drawn for any formulation and any loss. All kernels are K_m = L_m L_mᵀ with
L_m on the grid 2⁻¹², like the contract problems, so that the reference is a theorem. It
is read from the store where it is stored, and solved in about 0.1 s where it is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formulations import Formulation, Loss
from ..grams.stack import GramStack
from ..problem import Problem
from .contract_problems import GRID, STORE, load
from .exact import Reference, solve

Array = np.ndarray
GRADES = ("easy", "ill-conditioned", "degenerate", "edge")


@dataclass(frozen=True)
class Graded:
    """Kernels, targets for every kind of label, and C; loss and Ω are still open.

    draw: a function that returns the kernels and the targets
    """

    grade: str
    name: str
    draw: Callable[[], tuple[GramStack, dict[str, Array]]]
    C: float | Array = 1.0
    bias: bool = True

    def problem(
        self, formulation: Formulation, loss: Loss, bias: bool = True
    ) -> Problem:
        """The problem with this Ω and V; no bias where one of the three has none."""
        grams, targets = self.draw()
        y, allowed = targets[loss.labels], bias and self.bias and loss.bias_allowed
        return Problem(grams, y, loss, formulation, self.C, bias=allowed)


def reference_of(problem: Problem) -> Reference:
    """The interval around f*: stored, or solved here and now."""
    return STORE.load(problem) or solve(problem)


# ---- how they are drawn ------------------------------------------------------


def _targets(score: Array, cut: float) -> dict[str, Array]:
    """What each kind of loss learns: the score, its sign at a quantile, its thirds."""
    parts = min(3, len(score))
    ends = np.quantile(score, np.arange(1, parts) / parts)
    return {
        "real": np.rint(score / GRID) * GRID,
        "binary": np.where(score > np.quantile(score, cut), 1.0, -1.0),
        "ones": np.ones(len(score)),
        "classes": np.digitize(score, ends),
    }


def _blocks(seed: int, n: int = 24, M: int = 5, rank: int = 6) -> tuple[Any, Array]:
    """Random factors, of which the first two carry the score."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(M, n, rank)) / np.sqrt(rank)
    score = L[0] @ rng.normal(size=rank) + L[min(1, M - 1)] @ rng.normal(size=rank)
    return list(L), score + 0.5 * rng.normal(size=n)


def _drawn(factors: Any, score: Array, cut: float = 0.5) -> Any:
    whole = [np.rint(np.asarray(L) / GRID) * GRID for L in factors]
    return GramStack.from_factors(whole), _targets(score, cut)


def _scales() -> Any:
    factors, score = _blocks(1)
    return _drawn([10.0 ** (m - 2) * L for m, L in enumerate(factors)], score)


def _nearly_equal() -> Any:
    factors, score = _blocks(2)
    return _drawn([factors[0] + 0.01 * L for L in factors], score)


def _wide() -> Any:
    """Taylor features of wide Gaussians on the line: (t/s)^j/√j!."""
    t = np.linspace(-1, 1, 24)
    powers = np.arange(6)
    size = np.sqrt(np.cumprod(np.maximum(powers, 1.0)))
    views = [(t[:, None] / s) ** powers / size for s in (1.0, 2.0, 4.0, 8.0)]
    return _drawn(views, np.sin(3 * t) + 0.3 * np.cos(11 * t))


def _twins() -> Any:
    factors, score = _blocks(3, M=3)
    return _drawn(factors + factors, score)


def _zero_kernel() -> Any:
    factors, score = _blocks(4)
    return _drawn([*factors[:3], 0 * factors[3], factors[4]], score)


def _both_labels() -> Any:
    """Samples that come twice, once on either side."""
    factors, score = _blocks(5, n=20)
    score = np.append(score, -score[:4] + 2 * np.median(score))
    return _drawn([np.vstack([L, L[:4]]) for L in factors], score)


def _rank_one() -> Any:
    factors, score = _blocks(6, M=8)
    return _drawn([L[:, :1] for L in factors], score)


def _random(seed: int, cut: float = 0.5, **size: int) -> Callable[[], Any]:
    return lambda: _drawn(*_blocks(seed, **size), cut)


def _stored(name: str) -> Callable[[], Any]:
    return lambda: load(name)


OWN_COSTS = 10.0 ** np.random.default_rng(10).uniform(-1, 1, size=24)
GRADED = (
    Graded("easy", "small", _stored("small")),
    Graded("easy", "small, C = 0.1", _stored("small"), C=0.1),
    Graded("easy", "twonorm", _stored("twonorm")),
    Graded("easy", "unbalanced", _random(11, 0.3)),
    Graded("ill-conditioned", "twonorm, C = 100", _stored("twonorm"), C=100.0),
    Graded("ill-conditioned", "sizes 0.01 to 100", _scales),
    Graded("ill-conditioned", "nearly equal kernels", _nearly_equal),
    Graded("ill-conditioned", "wide kernels", _wide, C=10.0),
    Graded("degenerate", "every kernel twice", _twins),
    Graded("degenerate", "a kernel of zeros", _zero_kernel),
    Graded("degenerate", "both labels at once", _both_labels),
    Graded("degenerate", "rank one", _rank_one),
    Graded("edge", "one kernel", _random(7, M=1)),
    Graded("edge", "two samples", _random(8, n=2, M=3)),
    Graded("edge", "one against the rest", _random(9, 1 - 1.5 / 24)),
    Graded("edge", "one C per sample", _random(10, 0.3), C=OWN_COSTS),
    Graded("edge", "no bias", _random(12, 0.3), bias=False),
    Graded("edge", "C = 0.001", _random(13, 0.3), C=0.001),
)
