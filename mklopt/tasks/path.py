"""Solutions along C, from the largest C with all weights zero upward, all certified.

With C on the loss, small C kills kernels: for formulations with a kink at 0 (group
lasso, elastic net) all weights vanish up to C_zero (reference/c_zero.py), and the path
begins there. Each point starts from the solution of the one before it; the certificate
of each is its own, so that a bad start can cost time but not truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..problem import Problem
from ..reference.c_zero import zero_point
from ..run.loop import solve
from ..run.result import Result
from ..util.arrays import real_array

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Path:
    """One certified result per C, in increasing order."""

    results: list[Result]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, which: int) -> Result:
        return self.results[which]

    @cached_property
    def C(self) -> Array:
        return np.array([float(np.max(r.problem.costs)) for r in self.results])

    @cached_property
    def weights(self) -> Array:
        """(points, M)."""
        return np.array([r.weights for r in self.results])

    @property
    def converged(self) -> bool:
        return all(r.converged for r in self.results)

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row per point."""
        import pandas as pd

        rows = [
            {
                "C": C,
                "status": result.status,
                "lower": result.certificate.dual,
                "upper": result.certificate.primal,
                "gap": result.relative_gap,
                "active": int(np.sum(result.certificate.norms > 0)),
                "seconds": result.trace.last("seconds"),
                "passes": result.trace.last("passes"),
            }
            for C, result in zip(self.C, self.results)
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        worst = max(r.relative_gap for r in self.results)
        ends = f"C = {self.C[0]:.3g} … {self.C[-1]:.3g}"
        return f"Path({len(self)} points, {ends}, worst relative gap {worst:.1e})"


def path(
    problem: Problem,
    Cs: Sequence[float] | Array | None = None,
    *,
    points: int = 20,
    span: float = 100.0,
    solver: str = "auto",
    callback: Callable[[Result], Any] | None = None,
    **options: Any,
) -> Path:
    """Solve a problem for many C, each from the solution before it.

    Cs: values of C; by default `points` of them, from C_zero to span · C_zero in equal
        ratios. A problem with one C per sample keeps their ratios: Cs are the largest.
    callback: called with each result as it comes; True ends the path there
    options: as for solve (tol, time_limit per point, …)
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"path takes a Problem first, got {type(problem).__name__}")
    start: Any = None
    if Cs is None:
        values, start = _grid(problem, points, span)
    else:
        values = _checked(Cs)
    shape = np.asarray(problem.C) / np.max(problem.costs)
    results: list[Result] = []
    for C in values:
        results.append(
            solve(problem.with_(C=C * shape), solver, start=start, **options)
        )
        start = results[-1]
        if callback is not None and callback(results[-1]):
            break
        if results[-1].status == "interrupted":
            break
    return Path(results)


def _grid(problem: Problem, points: int, span: float) -> tuple[Array, Any]:
    """C_zero and above, and the solution there: no weights, and an α that shows it."""
    if not points >= 2 or not span > 1:
        raise ValueError(f"points = {points}, span = {span}; give at least 2, and > 1")
    t, alpha = zero_point(problem)
    first = t * float(np.max(problem.costs))
    if not 0 < first < np.inf:
        why = (
            "no C gives zero weights" if first == 0 else "w = 0 is optimal for every C"
        )
        raise ValueError(
            f"{problem!r} has no C_zero to start from ({why}); give the values, Cs=[…]"
        )
    zero = np.zeros(problem.grams.M)
    return first * np.geomspace(1.0, span, points), (zero, alpha)


def _checked(Cs: Any) -> Array:
    values = real_array(Cs, "Cs", "numbers in increasing order")
    good = values.ndim == 1 and len(values) and np.all(np.isfinite(values))
    if not good or not np.all(values > 0) or np.any(np.diff(values) <= 0):
        raise ValueError("Cs must be positive numbers in increasing order")
    return values
