"""Solutions along C, from the largest C with all weights zero upward, all certified.

With C on the loss, a small C sets kernel weights to zero: for formulations with a kink
at 0 (group lasso, elastic net) all weights are zero up to C_zero (reference/c_zero.py),
and the path begins there. Each point starts from the solution of the one before it; the
certificate of each is its own, so that a bad start can cost time but not truth.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..problem import Problem
from ..reference.c_zero import zero_point
from ..run.loop import solve
from ..run.result import Result
from ..util.arrays import Array, real_array
from ..util.checks import check_function, check_whole, real_number, short
from ..util.extras import need
from ..util.tables import html, plain_table


@dataclass(frozen=True, eq=False)
class Path:
    """One certified result per C, in increasing order.

    It has a length, is iterated over, and indexed by number, like a list of results.

    Parameters
    ----------
    results : list of Result
    """

    results: list[Result]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, which: int) -> Result:
        return self.results[which]

    @cached_property
    def C(self) -> Array:
        """(points,): C, the largest where there is one per sample."""
        return np.array([float(np.max(r.problem.costs)) for r in self.results])

    @cached_property
    def weights(self) -> Array:
        """(points, M): the kernel weights."""
        return np.array([r.weights for r in self.results])

    @property
    def converged(self) -> bool:
        """Whether every point was solved to the tolerance."""
        return all(r.converged for r in self.results)

    def to_frame(self) -> Any:
        """The path as a table.

        Returns
        -------
        pandas.DataFrame
            One row per point: C, status, lower, upper, gap, active (the kernels in
            use), seconds, passes.
        """
        need("pandas")
        import pandas as pd

        rows = [
            {
                "C": C,
                "status": result.status,
                "lower": result.certificate.lower,
                "upper": result.certificate.upper,
                "gap": result.relative_gap,
                "active": int(np.sum(result.certificate.norms > 0)),
                "seconds": result.trace.last("seconds"),
                "passes": result.trace.last("passes"),
            }
            for C, result in zip(self.C, self.results)
        ]
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        rows = self.to_frame()
        table = plain_table("", ["status"], [c for c in rows.columns if c != "status"])
        for _, row in rows.iterrows():
            numbers = [f"{v:.6g}" for name, v in row.items() if name != "status"]
            table.add_row(row["status"], *numbers)
        return html(table, repr(self))

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

    Parameters
    ----------
    problem : Problem
        With one C per sample their ratios are kept, and `Cs` are the largest.
    Cs : array of floats, optional
        Values of C, in increasing order. By default `points` of them, from C_zero to
        span · C_zero in equal ratios.
    points : int, default=20
        How many values, where Cs is not given.
    span : float, default=100
        The ratio of the last value and the first, where Cs is not given.
    solver : str, default="auto"
        As in `solve`.
    callback : callable, optional
        Called with each result as it comes; True ends the path there.
    **options
        Other arguments of `solve`, for each point: tol, time_limit, …

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        Where Cs are not increasing, or there is no C_zero to begin from.

    Examples
    --------
    >>> import numpy as np, mklopt
    >>> L = np.random.default_rng(0).normal(size=(4, 30, 2))
    >>> grams, y = mklopt.GramStack.from_factors(L), np.sign(L[0, :, 0])
    >>> lasso = mklopt.formulations.GroupLasso()
    >>> problem = mklopt.Problem(grams, y, "logistic", lasso)
    >>> found = mklopt.path(problem, points=5)
    >>> found.weights.shape, bool(found.weights[0].any())
    ((5, 4), False)
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"path takes a Problem first, got {type(problem).__name__}")
    check_function(callback, "callback")
    values, start = _grid(problem, points, span) if Cs is None else (_checked(Cs), None)
    shape = np.asarray(problem.C) / np.max(problem.costs)
    results: list[Result] = []
    for C in values:
        costs = np.maximum(C * shape, np.nextafter(0.0, 1.0))  # > 0 after rounding
        start = solve(problem.with_(C=costs), solver, start=start, **options)
        results.append(start)
        asked = callback is not None and callback(start)
        if asked or start.status == "interrupted":
            break
    return Path(results)


def _grid(problem: Problem, points: int, span: float) -> tuple[Array, Any]:
    """C_zero and above, and the solution there: no weights, and an α that shows it."""
    check_whole(points, "points", 2)
    if not 1 < real_number(span, "span") < np.inf:
        raise ValueError(f"span = {short(span)}; give a number > 1")
    t, alpha = zero_point(problem)
    if not 0 < t < np.inf:
        why = "no C gives zero weights" if t == 0 else "w = 0 is optimal for every C"
        raise ValueError(
            f"{problem!r} has no C_zero to start from ({why}); give the values, Cs=[…]"
        )
    first = t * float(np.max(problem.costs))
    zero = np.zeros(problem.grams.M)
    return first * np.geomspace(1.0, span, points), (zero, alpha)


def _checked(Cs: Any) -> Array:
    values = real_array(Cs, "Cs", "numbers in increasing order")
    good = values.ndim == 1 and len(values) and np.all(np.isfinite(values))
    if not good or not np.all(values > 0) or np.any(np.diff(values) <= 0):
        raise ValueError("Cs must be positive numbers in increasing order")
    return values
