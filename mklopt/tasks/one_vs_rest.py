"""One against the rest: the baseline of multi-class learning, k binary problems.

For each class c a problem of its own, with labels +1 for c and −1 for all others, on
the same kernels; a point gets the class whose decision is largest. Each problem finds
its own kernel weights, so that together they keep at least as many kernels as one of
them, and mostly more than the joint problem (loss "multiclass_hinge"), whose classes
share one set of weights: Orabona et al. (2012), section 5.2 and figure 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..formulations import losses_by_name
from ..problem import Problem
from ..run.loop import solve
from ..run.result import Result

Array = np.ndarray


def kept(weights: Array, share: float = 1e-3) -> Array:
    """The numbers of the kernels with more than this share of all the weight.

    weights: (M,), or (k, M) for k sets of weights: kept by any of them
    """
    sets = np.atleast_2d(weights)
    total = np.sum(sets, axis=1, keepdims=True)
    return np.flatnonzero(np.any(sets > share * total, axis=0))


@dataclass(frozen=True)
class OneVsRest:
    """k solved binary problems, one per class."""

    results: tuple[Result, ...]

    @property
    def weights(self) -> Array:
        """(k, M): the kernel weights of each class."""
        return np.array([found.weights for found in self.results])

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return tuple(found.certificate for found in self.results)

    @property
    def relative_gap(self) -> float:
        """The largest of the k certified gaps."""
        return max(found.relative_gap for found in self.results)

    @property
    def converged(self) -> bool:
        return all(found.converged for found in self.results)

    def decision(self, test_stack: Any) -> Array:
        """(n_test, k): what each class says of new points; see Result.decision."""
        return np.stack([found.decision(test_stack) for found in self.results], axis=1)

    def predict(self, test_stack: Any) -> Array:
        """The class with the largest decision."""
        return np.argmax(self.decision(test_stack), axis=1)

    def __repr__(self) -> str:
        return (
            f"OneVsRest({len(self.results)} classes, relative_gap="
            f"{self.relative_gap:.1e}, {len(kept(self.weights))} kernels)"
        )


def one_vs_rest(
    problem: Problem, solver: str = "auto", *, loss: Any = "hinge", **options: Any
) -> OneVsRest:
    """Solve one binary problem per class of a multi-class problem.

    problem: its kernels (shared, not copied), classes, formulation, C and bias are used
    solver, options: as in `solve`, for each of the k problems
    loss: a loss of −1/+1 labels in place of the multi-class one
    """
    if not isinstance(problem, Problem) or problem.loss.labels != "classes":
        raise ValueError(
            f"one_vs_rest takes a multi-class Problem first, such as "
            f"Problem(grams, y, 'multiclass_hinge', …) with y in 0 … k−1, got {problem}"
        )
    known = losses_by_name()
    given = known.get(loss, loss) if isinstance(loss, str) else loss
    if getattr(given, "labels", "") == "classes":
        raise ValueError(
            f"loss = {loss!r} is for many classes at once; choose one for −1/+1 "
            "labels, such as 'hinge' or 'logistic'"
        )
    signs = [
        np.where(problem.y == c, 1.0, -1.0) for c in range(int(np.max(problem.y)) + 1)
    ]
    binary = [problem.with_(y=y, loss=loss) for y in signs]
    return OneVsRest(tuple(solve(one, solver, **options) for one in binary))
