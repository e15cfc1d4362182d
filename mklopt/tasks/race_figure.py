"""The figure of a race, and what is saved with it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..util.latex import pgf
from ..util.style import done, look, panels, styled, top_curves
from ..util.tables import latex

if TYPE_CHECKING:
    from .race import Race, Run

FLOOR = 1e-16  # where a gap of 0 is drawn
AXES = {"seconds": "seconds", "iteration": "iterations", "passes": "passes"}
SCRIPT = Path(__file__).with_name("redraw.py.txt")


@styled
def draw(race: Race, path: str | os.PathLike | None = None) -> Any:
    """Six panels for the first problem; profiles in the last where there are many."""
    problem, many = race.problems[0], len(race.problems) > 1
    runs = [run for run in race.runs if run.problem == problem]
    figure, axes = panels(6, columns=3, height=2.8)
    for axis, column in zip(axes, AXES):
        _gaps(axis, race, runs, column)
        axis.axhspan(FLOOR, max(race.width(problem), FLOOR), color="0.88", zorder=0)
    axes[0].set_ylabel("relative gap")
    axes[0].legend(frameon=False, fontsize=8)
    for run in runs:
        trace = run.result.trace
        style = _look(race, run.solver)
        axes[3].step(trace["seconds"], trace["active"], where="post", **style)
    axes[3].set(xlabel="seconds", ylabel="kernels in use", ylim=(0, None))
    _weights(axes[4], min(runs, key=lambda run: run.time_to(race.tol)))
    if many:
        _profile(axes[5], race)
    axes[5].set_visible(many)
    title = runs[0].result.trace.about["problem"]
    short = re.sub(r"\d+\.\d{5,}", lambda long: f"{float(long[0]):.4g}", title)
    figure.suptitle(short, fontsize=9)
    figure.tight_layout()
    return done(figure, path)


def _look(race: Race, solver: str) -> dict[str, Any]:
    return {**look(race.solvers.index(solver)), "markersize": 3}


def _gaps(axis: Any, race: Race, runs: list[Run], column: str) -> None:
    named: set[str] = set()
    for run in runs:
        trace = run.result.trace
        gap = np.maximum(trace["gap"], FLOOR)
        label = None if run.solver in named else run.solver
        named.add(run.solver)
        axis.plot(trace[column], gap, label=label, **_look(race, run.solver))
    axis.set(xlabel=AXES[column], yscale="log")
    seen = [np.maximum(run.result.trace["gap"], FLOOR).min() for run in runs]
    axis.set_ylim(max(FLOOR, 0.1 * min(seen)), None)
    ends = [run.result.trace[column][[0, -1]] for run in runs]
    if np.max(ends) > 10 * np.min(ends) > 0:
        axis.set_xscale("log")


def _weights(axis: Any, run: Run) -> None:
    seconds, theta = run.result.trace["seconds"], run.weights
    names = [f"kernel {m}" for m in range(theta.shape[1])]
    top_curves(axis, seconds, theta, names, np.nan_to_num(theta[-1]), markersize=3)
    axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    axis.set(xlabel="seconds", ylabel=f"kernel weights, {run.solver}")


def _profile(axis: Any, race: Race) -> None:
    ratios, shares = race.profile()
    for solver, share in zip(race.solvers, shares.T):
        style = {**_look(race, solver), "marker": None}
        axis.step(ratios, share, where="post", label=solver, **style)
    axis.set(xscale="log", ylim=(0, 1.05), xlabel="times the best")
    axis.set_ylabel(f"share of problems, gap {race.tol:g}")


def save(race: Race, folder: str | os.PathLike) -> list[str]:
    """Everything a paper needs of a race; the names of what was written."""
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    figure = draw(race, home / "race")
    pgf(figure, home / "race.pgf")  # where TeX is installed
    race.to_frame().to_csv(home / "traces.csv", index=False)
    (home / "table.tex").write_text(latex(race.table()), encoding="utf-8")
    shutil.copyfile(SCRIPT, home / "redraw.py")
    return sorted(path.name for path in home.iterdir())
