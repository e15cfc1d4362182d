"""Solutions along C, from the largest C with all weights zero upward, all certified.

With C on the loss, a small C sets kernel weights to zero: for formulations with a kink
at 0 (group lasso, elastic net) all weights are zero up to C_zero (reference/c_zero.py),
and the path begins there. Each point starts from the solution of the one before it; the
certificate of each is its own, so that a bad start can cost time but not truth.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..problem import Problem
from ..reference.c_zero import zero_point
from ..run.loop import solve
from ..run.result import Result
from ..util.arrays import Array, real_array
from ..util.checks import check_function, check_whole, real_number, short
from .epsilon_path import at_C, epsilon_path
from .solution_path import Path


def path(
    problem: Problem,
    Cs: Sequence[float] | Array | None = None,
    *,
    points: int = 20,
    span: float = 100.0,
    solver: str = "auto",
    everywhere: float | None = None,
    callback: Callable[[Result], Any] | None = None,
    **options: Any,
) -> Path:
    """Solve a problem for many C, or for every C, each from the solution before it.

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
    everywhere : float, optional
        A relative gap ε: then f*(C) is enclosed to ε for every C between the ends, by
        as few solutions as that takes; `points` is not used, and other `Cs` are solved.
    callback : callable, optional
        Called with each result as it comes; True ends the path there.
    **options
        Other arguments of `solve`, for each point: tol, time_limit, …

    Returns
    -------
    Path
        An EpsilonPath with everywhere=ε: `at(C)` has a certified point for any C,
        `lower(C)` and `upper(C)` have bounds.

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
    if everywhere is not None:
        ends = values[[0, -1]] if Cs is None else values
        parts = (solver, callback, options)
        return epsilon_path(problem, ends, start, everywhere, *parts)
    results: list[Result] = []
    for C in values:
        start = solve(at_C(problem, C), solver, start=start, **options)
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
