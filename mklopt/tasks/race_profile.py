"""Performance profiles: the share of problems solved within a ratio of the best time.

For solver s and ratio ρ ≥ 1 the share of problems p with t_ps ≤ ρ min_s' t_ps', where
t_ps is the mean time to the tolerance over seeds and repeats; a run that fails counts
as infinite. The figure draws one step curve per solver.

Reference: Dolan and Moré (2002), "Benchmarking optimization software with performance
profiles".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..util.paper_sizes import venue_of
from ..util.style import log_ticks
from .race_curves import names_in, read_traces, runs_of, times_to
from .race_figure import add_legend, finished, paper_axes, paper_style, solver_looks

Array = np.ndarray


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


def mean_times(rows: Any, tol: float) -> Array:
    """(problems, solvers): mean seconds to the tolerance; inf where a run fails."""

    def mean(problem: str, solver: str) -> float:
        runs = runs_of(rows, problem, solver)
        return float(np.mean([times_to(run, tol) for run in runs] or [np.inf]))

    solvers = names_in(rows, "solver")
    return np.array([[mean(p, s) for s in solvers] for p in names_in(rows, "problem")])


def profile_figure(
    traces: Any,
    tol: float,
    *,
    width: float | str | None = None,
    height: float | None = None,
    labels: Mapping[str, str] | None = None,
    colors: Mapping[str, Any] | None = None,
    order: Sequence[str] = (),
    style: Any = None,
    legend: str | None = None,
    ax: Any = None,
    venue: str | None = None,
    path: str | os.PathLike | None = None,
) -> Any:
    """Draw the performance profile; `Race.profile_figure` explains the arguments."""
    rows = read_traces(traces)
    looks = solver_looks(rows, labels, colors, order)
    ratios, shares = performance_profile(mean_times(rows, tol))
    curves = dict(zip(names_in(rows, "solver"), shares.T))
    end = max(1.2 * ratios[-1], 2.0)  # the last step is seen as one
    with paper_style(venue, style):
        size = (venue_of(venue).width(width), height)
        drawn, ((axis,),) = paper_axes(ax, (1, 1), *size)
        for solver, how in looks.items():
            steps = np.append(curves[solver], curves[solver][-1])
            how = {**how, "marker": None}
            axis.step(np.append(ratios, end), steps, where="post", **how)
        axis.set(xscale="log", xlim=(1.0, end), ylim=(-0.04, 1.04))
        log_ticks(axis.xaxis)
        axis.set_xlabel("time / time of the fastest solver, ρ")
        axis.set_ylabel("share of problems")
        add_legend(drawn, [axis], legend, ax is not None)
        return finished(drawn, path, ax, (venue_of(venue).settings(), style))
