"""Races: several solvers on the same problems, by the same clock, drawn for a paper.

    found = mklopt.race(problem, ["analytic", "spg", "auto"], seeds=[0, 1])
    print(found)                                 # seconds to the tolerance
    found.save("figures/race")                   # figures, traces, table, script

Fair means: every solver has kernels with an empty memory and a count of passes of their
own, certificates count as part of its time, and what is compiled on first use is
compiled before, on the same problem. Each run ends at `tol` or `time_limit`.

f* is never the best of the runs. It lies in an interval: that of a reference where the
problem is small enough for an interior-point method, and of all certified bounds
together otherwise. Gaps below the relative width of it (the grey band of the figure)
are true, but say nothing of how far a solver is from f*.

Many problems: `found.profile()` is the performance profile, for each ratio ρ the share
of problems that a solver reaches the tolerance on within ρ times the best time.
Reference: Dolan and Moré (2002).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..problem import Problem
from ..reference import solve as exact
from ..run.loop import solve
from ..run.result import Result
from ..run.trace import COLUMNS
from ..solvers import find
from ..solvers.base import Unsupported
from ..util.tables import plain_table
from .race_figure import draw, save

Array = np.ndarray
SMALL = 1_000_000  # numbers in the kernels of a problem that gets a reference


@dataclass(frozen=True, eq=False)
class Run:
    """One solver on one problem from one seed."""

    problem: str
    solver: str
    seed: int
    result: Result = field(repr=False)
    weights: Array = field(repr=False)  # of each certified iterate; NaN: not stated

    def time_to(self, tol: float, column: str = "seconds") -> float:
        """When the gap was first at most tol; inf: never."""
        reached = np.flatnonzero(self.result.trace["gap"] <= tol)
        return float(self.result.trace[column][reached[0]]) if len(reached) else np.inf


@dataclass(frozen=True, eq=False)
class Race:
    """All runs, and an interval around f* for each problem."""

    runs: list[Run]
    intervals: dict[str, tuple[float, float]]
    tol: float
    left_out: dict[str, str]  # solver and problem that do not fit, and why

    @property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(run.problem for run in self.runs))

    @property
    def solvers(self) -> list[str]:
        return list(dict.fromkeys(run.solver for run in self.runs))

    def width(self, problem: str) -> float:
        """The relative width of the interval around f*."""
        lower, upper = self.intervals[problem]
        return (upper - lower) / max(abs(upper), 1e-300)

    def times(self, tol: float | None = None) -> Array:
        """(problems, solvers): mean seconds to the tolerance; inf where it fails."""
        tol = self.tol if tol is None else tol
        found = np.full((len(self.problems), len(self.solvers)), np.inf)
        for i, problem in enumerate(self.problems):
            for j, solver in enumerate(self.solvers):
                some = [
                    r for r in self.runs if (r.problem, r.solver) == (problem, solver)
                ]
                if some:
                    found[i, j] = np.mean([run.time_to(tol) for run in some])
        return found

    def profile(self, tol: float | None = None) -> tuple[Array, Array]:
        """Ratios ρ ≥ 1, and (ratios, solvers): the share of problems within ρ."""
        return performance_profile(self.times(tol))

    def to_frame(self) -> Any:
        """One row per certified iterate of each run, a pandas DataFrame."""
        import pandas as pd

        parts = []
        for run in self.runs:
            part = pd.DataFrame({c: run.result.trace[c] for c in COLUMNS})
            part.insert(0, "seed", run.seed)
            part.insert(0, "solver", run.solver)
            part.insert(0, "problem", run.problem)
            part["width"] = self.width(run.problem)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def table(self) -> Any:
        """One row per problem and solver: status, gap, seconds, iterations, passes."""
        words, numbers = ("problem", "solver", "status"), (
            "gap", "seconds", "iterations", "passes", "kernels",
        )  # fmt: skip
        found = plain_table("", words, numbers)
        for run in self.runs:
            trace = run.result.trace
            last = [trace.last(c) for c in ("seconds", "iteration", "passes", "active")]
            row = (f"{last[0]:.3g}", f"{last[1] + 1:.0f}", f"{last[2]:.1f}")
            gap = f"{run.result.relative_gap:.1e}"
            about = (run.problem, f"{run.solver}", run.result.status)
            found.add_row(*about, gap, *row, f"{last[3]:.0f}")
        return found

    def draw(self, path: str | os.PathLike | None = None) -> Any:
        """Gap against seconds, iterations and passes, kernels and weights."""
        return draw(self, path)

    def save(self, folder: str | os.PathLike) -> list[str]:
        """PDF, PNG, PGF (where there is LaTeX), CSV, a LaTeX table and a script."""
        return save(self, folder)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=110, color_system=None)
        with console.capture() as shown:
            console.print(self.table())
        skipped = [f"left out: {who} ({why})" for who, why in self.left_out.items()]
        return "\n".join([shown.get().rstrip(), *skipped])


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
    solvers: Sequence[str],
    *,
    seeds: Iterable[int] = (0,),
    tol: float = 1e-6,
    time_limit: float = 30.0,
    reference: bool | None = None,
) -> Race:
    """Run solvers on the same problems by the same clock; see mklopt.tasks.race.

    problems: one, several, or several by name
    seeds: for solvers that draw random numbers; the others run once
    reference: solve a reference for the interval; by default for small problems
    """
    named = _named(problems)
    if isinstance(solvers, str) or not list(solvers):
        raise ValueError("solvers: give a list of names, such as ['analytic', 'auto']")
    runs: list[Run] = []
    left_out: dict[str, str] = {}
    for name, problem in named.items():
        for solver in solvers:
            try:
                method = find(solver, problem)
            except Unsupported as error:
                left_out[f"{solver} on {name}"] = str(error)
                continue
            _warm_up(problem, solver)
            for seed in seeds if method.draws else list(seeds)[:1]:
                how = {"tol": tol, "time_limit": time_limit, "seed": seed}
                runs.append(_run(name, problem, solver, how))
    if not runs:
        raise ValueError("no solver takes any of the problems: " + str(left_out))
    intervals = {
        name: _interval(problem, [r for r in runs if r.problem == name], reference)
        for name, problem in named.items()
        if any(run.problem == name for run in runs)
    }
    return Race(runs, intervals, tol, left_out)


def _named(problems: Any) -> dict[str, Problem]:
    if isinstance(problems, Problem):
        return {"problem": problems}
    if isinstance(problems, Mapping):
        found = {str(name): problem for name, problem in problems.items()}
    else:
        found = {f"problem {i}": problem for i, problem in enumerate(problems)}
    if not found or not all(isinstance(p, Problem) for p in found.values()):
        raise ValueError("race takes a Problem, a list of them, or a dict by name")
    return found


def _alone(problem: Problem) -> Problem:
    """The same problem on the same kernels, with a count and a memory of its own."""
    return problem.with_(grams=problem.grams.apart())


def _warm_up(problem: Problem, solver: str) -> None:
    """Compile what is compiled on first use, outside of the clock."""
    solve(_alone(problem), solver, tol=1e-3, max_iter=3, time_limit=10.0)


def _run(name: str, problem: Problem, solver: str, how: dict[str, Any]) -> Run:
    weights: list[Array] = []
    nothing = np.full(problem.grams.M, np.nan)

    def keep(certificate: Any, _: Any) -> None:
        theta = certificate.weights
        weights.append(nothing if theta is None else theta)

    result = solve(_alone(problem), solver, callback=keep, **how)
    return Run(name, solver, how["seed"], result, np.array(weights))


def _interval(
    problem: Problem, runs: list[Run], reference: bool | None
) -> tuple[float, float]:
    """lower ≤ f* ≤ upper from a reference and from every certificate there is."""
    found = [run.result.certificate for run in runs]
    lower, upper = max(c.lower for c in found), min(c.upper for c in found)
    small = problem.grams.M * problem.grams.n**2 <= SMALL
    if small if reference is None else reference:
        known = exact(_alone(problem))
        lower, upper = max(lower, known.lower), min(upper, known.upper)
    return lower, upper
