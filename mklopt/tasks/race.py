"""Races: several solvers on the same problems, by the same clock, drawn for a paper.

    found = mklopt.race(problem, ["analytic", "spg", "auto"], seeds=[0, 1])
    print(found)                                 # seconds to the tolerance
    found.save("figures/race")                   # figures, traces, table, script

Fair means: all solvers run by the same clock, and compilation is not timed. Every run
has its own cache of kernel products and its own count of passes. Certificates are part
of the time. Each run ends at `tol` or `time_limit`.

f* is never the best of the runs. It lies in an interval: that of a reference where the
problem is small enough for an interior-point method, and of all certified bounds
together otherwise. Gaps below its relative width (the grey band of the figure) are
true, but do not show how far a solver is from f*.

Many problems: `found.profile()` is the performance profile, for each ratio ρ the share
of problems that a solver reaches the tolerance on within ρ times the best time.
Reference: Dolan and Moré (2002).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..problem import Problem
from ..reference import solve as exact
from ..run.loop import solve
from ..run.own_solver import REFUSED, BadAnswer, name_of, solver_for
from ..run.result import Result
from ..run.trace import COLUMNS
from ..solvers import Solver, Unsupported
from ..util.checks import check_flag, check_list
from ..util.tables import as_text, plain_table
from .race_figure import draw, save

Array = np.ndarray
REFERENCE_SIZE = 1_000_000  # M n² of a problem that gets a reference, at most


@dataclass(frozen=True, eq=False)
class Run:
    """One solver on one problem from one seed.

    Parameters
    ----------
    problem, solver : str
        Their names.
    seed : int
    result : Result
    weights : array of shape (iterates, M)
        The kernel weights of each certified iterate; NaN where it states none.
    """

    problem: str
    solver: str
    seed: int
    result: Result = field(repr=False)
    weights: Array = field(repr=False)

    def time_to(self, tol: float, column: str = "seconds") -> float:
        """When the gap was first at most tol.

        Parameters
        ----------
        tol : float
        column : str, default="seconds"
            The unit: a column of the trace, such as "iteration" or "passes".

        Returns
        -------
        float
            inf: never.
        """
        reached = np.flatnonzero(self.result.trace["gap"] <= tol)
        return float(self.result.trace[column][reached[0]]) if len(reached) else np.inf


@dataclass(frozen=True, eq=False)
class Race:
    """All runs, and an interval around f* for each problem.

    Parameters
    ----------
    runs : list of Run
    intervals : dict
        lower ≤ f* ≤ upper by the name of the problem.
    tol : float
        The relative gap at which runs end.
    left_out : dict
        Solver and problem that do not fit, and why.
    """

    runs: list[Run]
    intervals: dict[str, tuple[float, float]]
    tol: float
    left_out: dict[str, str]

    @property
    def problems(self) -> list[str]:
        """The names of the problems, in the order of the runs."""
        return list(dict.fromkeys(run.problem for run in self.runs))

    @property
    def solvers(self) -> list[str]:
        """The names of the solvers, in the order of the runs."""
        return list(dict.fromkeys(run.solver for run in self.runs))

    def width(self, problem: str) -> float:
        """The relative width of the interval around f*.

        Parameters
        ----------
        problem : str
            Its name.

        Returns
        -------
        float
        """
        lower, upper = self.intervals[problem]
        return (upper - lower) / max(abs(upper), 1e-300)

    def times(self, tol: float | None = None) -> Array:
        """Mean seconds to the tolerance.

        Parameters
        ----------
        tol : float, optional
            By default the one of the race.

        Returns
        -------
        array of shape (problems, solvers)
            inf where a run fails, or there is none.
        """
        tol = self.tol if tol is None else tol

        def mean_time(problem: str, solver: str) -> float:
            mine = [r for r in self.runs if (r.problem, r.solver) == (problem, solver)]
            return float(np.mean([run.time_to(tol) for run in mine] or [np.inf]))

        rows = [[mean_time(p, s) for s in self.solvers] for p in self.problems]
        return np.array(rows)

    def profile(self, tol: float | None = None) -> tuple[Array, Array]:
        """The performance profile of the solvers.

        Parameters
        ----------
        tol : float, optional
            By default the one of the race.

        Returns
        -------
        ratios : array of shape (ratios,)
            ρ ≥ 1, in increasing order.
        shares : array of shape (ratios, solvers)
            The share of problems solved within ρ times the best time.
        """
        return performance_profile(self.times(tol))

    def to_frame(self) -> Any:
        """All traces as one table.

        Returns
        -------
        pandas.DataFrame
            One row per certified iterate of each run.
        """
        import pandas as pd

        parts = []
        for run in self.runs:
            who = {"problem": run.problem, "solver": run.solver, "seed": run.seed}
            rows = {c: run.result.trace[c] for c in COLUMNS}
            parts.append(pd.DataFrame(who | rows | {"width": self.width(run.problem)}))
        return pd.concat(parts, ignore_index=True)

    def table(self) -> Any:
        """Where each run ended.

        Returns
        -------
        rich.table.Table
            One row per run: status, gap, seconds, iterations, passes, kernels in use.
        """
        words = ("problem", "solver", "status")
        numbers = ("gap", "seconds", "iterations", "passes", "kernels")
        found = plain_table("", words, numbers)
        for run in self.runs:
            trace = run.result.trace
            found.add_row(
                run.problem,
                run.solver,
                run.result.status,
                f"{run.result.relative_gap:.1e}",
                f"{trace.last('seconds'):.3g}",
                f"{trace.last('iteration') + 1:.0f}",
                f"{trace.last('passes'):.1f}",
                f"{trace.last('active'):.0f}",
            )
        return found

    def draw(self, path: str | os.PathLike | None = None) -> Any:
        """Gap against seconds, iterations and passes; kernels in use, and weights.

        Parameters
        ----------
        path : str or path, optional
            Where to write it; PNG and PDF where it has no ending.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return draw(self, path)

    def save(self, folder: str | os.PathLike) -> list[str]:
        """Everything a paper needs of a race.

        Parameters
        ----------
        folder : str or path
            Made where it does not exist.

        Returns
        -------
        list of str
            What was written: the figure as PDF, PNG and PGF (where LaTeX is installed),
            the traces as CSV, the table as LaTeX, and a script that draws the figure.
        """
        return save(self, folder)

    def __str__(self) -> str:
        skipped = [f"left out: {who} ({why})" for who, why in self.left_out.items()]
        return "\n".join([as_text(self.table(), 110), *skipped])


def performance_profile(times: Any) -> tuple[Array, Array]:
    """Ratios ρ, and the share of problems (rows) within ρ times the best, by solver.

    times: (problems, solvers); inf where a solver fails. Problems that no solver
    reaches count as failures of all.
    """
    times = np.asarray(times, float)
    if times.ndim != 2 or not times.size or np.any(np.isnan(times)) or times.min() < 0:
        raise ValueError("times must be (problems, solvers), ≥ 0, inf for failures")
    best = times.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(np.isfinite(times), times / best, np.inf)
    ratios = np.where(times == best, np.where(np.isfinite(best), 1.0, np.inf), ratios)
    steps = np.unique(np.concatenate([[1.0], ratios[np.isfinite(ratios)]]))
    return steps, np.mean(ratios[None] <= steps[:, None, None], axis=1)


def race(
    problems: Problem | Mapping[str, Problem] | Iterable[Problem],
    solvers: Sequence[Any] | Mapping[str, Any],
    *,
    seeds: Iterable[int] = (0,),
    tol: float = 1e-6,
    time_limit: float = 30.0,
    reference: bool | None = None,
) -> Race:
    """Run solvers on the same problems, by the same clock; compilation is not timed.

    Parameters
    ----------
    problems : Problem, list of Problem, or dict of Problem
        One, several, or several by name.
    solvers : list, or dict by name
        Names of solvers, see `mklopt list`, and solvers of your own, as `solve` takes
        them: functions problem → (weights, dual), generator functions of iterates,
        objects with `fit`, or "module:name". A dict gives them names. A solver that
        raises NotImplementedError or ValueError on a problem is left out there.
    seeds : list of int, default=(0,)
        For solvers that draw random numbers; the others run once.
    tol : float, default=1e-6
        The certified relative gap at which a run ends.
    time_limit : float, default=30
        Seconds per run.
    reference : bool, optional
        Whether to solve a reference for the interval around f*; by default for small
        problems.

    Returns
    -------
    Race
        It is printed as a table, drawn with `draw`, saved with `save`.

    Raises
    ------
    ValueError
        Where an argument is wrong, or no solver takes any of the problems.

    Examples
    --------
    >>> found = mklopt.race(problem, ["analytic", "spg", "auto"])  # doctest: +SKIP
    >>> found.save("figures/race")                                 # doctest: +SKIP
    """
    named = named_problems(problems, "race")
    methods = _methods(solvers)
    seeds = check_list(seeds, "seeds", "a list of whole numbers")
    if reference is not None:
        check_flag(reference, "reference")
    runs: list[Run] = []
    intervals, left_out = {}, {}
    for name, problem in named.items():
        mine: list[Run] = []
        for solver, given in methods.items():
            try:
                method = solver_for(given, problem)
                # Not timed, so that everything is compiled afterwards.
                solve(_alone(problem), method, tol=1e-3, max_iter=3, time_limit=10.0)
            except REFUSED as error:
                if not _is_refusal(given, error):
                    raise
                left_out[f"{solver} on {name}"] = str(error)
                continue
            for seed in seeds if method.draws else seeds[:1]:
                how = {"tol": tol, "time_limit": time_limit, "seed": seed}
                mine.append(_run(name, problem, (solver, method), how))
        if mine:
            intervals[name] = _interval(problem, mine, reference)
        runs += mine
    if not runs:
        raise ValueError("no solver takes any of the problems: " + str(left_out))
    return Race(runs, intervals, tol, left_out)


def named_problems(problems: Any, who: str) -> dict[str, Problem]:
    """One problem, a list or a dict of them, by name; ValueError for anything else."""
    if isinstance(problems, Problem):
        return {"problem": problems}
    expected = "a Problem, a list of them, or a dict by name"
    if isinstance(problems, Mapping):
        found = {str(name): problem for name, problem in problems.items()}
    else:
        given = check_list(problems, "problems", expected)
        found = {f"problem {i}": problem for i, problem in enumerate(given)}
    if not found or not all(isinstance(p, Problem) for p in found.values()):
        raise ValueError(f"{who} takes {expected}")
    return found


def _methods(solvers: Any) -> dict[str, Any]:
    """The solvers by the names of their curves."""
    if isinstance(solvers, Mapping):
        found = {str(name): solver for name, solver in solvers.items()}
    else:
        given = check_list(solvers, "solvers", "a list of names such as ['analytic']")
        found = {s if isinstance(s, str) else name_of(s): s for s in given}
        if len(found) < len(given):
            raise ValueError("two solvers have the same name; give a dict of solvers")
    if not found:
        raise ValueError("solvers: give a list of names, such as ['analytic', 'auto']")
    return found


def _is_refusal(given: Any, error: Exception) -> bool:
    """Whether a solver says that it does not take a problem, and nothing is wrong."""
    own = not isinstance(given, str) or ":" in given
    return isinstance(error, Unsupported) or (own and not isinstance(error, BadAnswer))


def _alone(problem: Problem) -> Problem:
    """The same problem and kernels, with a cache and a count of passes of its own."""
    return problem.with_(grams=problem.grams.apart())


def _run(
    name: str, problem: Problem, solver: tuple[str, Solver], how: dict[str, Any]
) -> Run:
    weights: list[Array] = []
    nothing = np.full(problem.grams.M, np.nan)

    def keep(certificate: Any, _: Any) -> None:
        theta = certificate.weights
        weights.append(nothing if theta is None else theta)

    label, method = solver
    result = solve(_alone(problem), method, callback=keep, **how)
    return Run(name, label, how["seed"], result, np.array(weights))


def _interval(
    problem: Problem, runs: list[Run], reference: bool | None
) -> tuple[float, float]:
    """lower ≤ f* ≤ upper from a reference and from every certificate there is."""
    found = [run.result.certificate for run in runs]
    lower, upper = max(c.lower for c in found), min(c.upper for c in found)
    small = problem.grams.M * problem.grams.n**2 <= REFERENCE_SIZE
    if small if reference is None else reference:
        known = exact(_alone(problem))
        lower, upper = max(lower, known.lower), min(upper, known.upper)
    return lower, upper
