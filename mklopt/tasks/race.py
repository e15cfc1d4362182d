"""Races: several solvers on the same problems, by the same clock, drawn for a paper.

    found = mklopt.race(problems, ["analytic", "spg", "auto"], repeats=3)
    print(found.summary())                       # seconds to the tolerance, ± repeats
    found.figure(venue="icml", path="race.pdf")  # a row of panels per problem
    found.save("figures/race")                   # figures, traces, table, script

Fair means: all solvers run by the same clock, and compilation is not timed. Every run
has its own cache of kernel products and its own count of passes. Certificates are part
of the time. Each run ends at `tol` or `time_limit`. With `repeats` every run is timed
several times, all solvers once before any of them again, so that a slow minute of the
computer does not fall on one solver alone. Ctrl-C ends a race with the runs so far.

f* is never the best of the runs. It lies in an interval: that of a reference, which is
stored for problems of mklopt.library and solved for where a problem is small enough for
an interior-point method, and that of all certified bounds together otherwise. Gaps
below its relative width (the grey band of the figure) are true, but do not show how far
a solver is from f*.

Many problems: `found.profile()` is the performance profile, for each ratio ρ the share
of problems that a solver reaches the tolerance on within ρ times the best time
(race_profile.py). Figures and tables are made from the traces alone (race_figure.py,
race_table.py).
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..problem import Problem
from ..reference import solve as exact
from ..run.loop import solve
from ..run.own_solver import REFUSED, BadAnswer, name_of, solver_for
from ..run.progress import Silent, progress
from ..run.result import Result
from ..run.trace import COLUMNS
from ..solvers import Solver, Unsupported
from ..util.checks import check_flag, check_list, check_whole
from ..util.extras import need
from ..util.tables import as_text, html, plain_table
from .race_figure import figure
from .race_files import save
from .race_profile import performance_profile, profile_figure
from .race_table import Summary, summary

Array = np.ndarray
SHORT = {"tol": 1e-3, "max_iter": 3, "time_limit": 10.0}  # limits of compiling runs
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
    repeat : int
        The number of the repeat, from 0.
    """

    problem: str
    solver: str
    seed: int
    result: Result = field(repr=False)
    weights: Array = field(repr=False)
    repeat: int = 0

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
    stopped : str
        How much was done when Ctrl-C ended the race; empty if nothing did.
    """

    runs: list[Run]
    intervals: dict[str, tuple[float, float]]
    tol: float
    left_out: dict[str, str]
    stopped: str = ""

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
        need("pandas")
        import pandas as pd

        parts = []
        for run in self.runs:
            who: dict[str, Any] = {"problem": run.problem, "solver": run.solver}
            who |= {"seed": run.seed, "repeat": run.repeat}
            rows = {c: run.result.trace[c] for c in COLUMNS}
            parts.append(pd.DataFrame(who | rows | {"width": self.width(run.problem)}))
        return pd.concat(parts, ignore_index=True)

    def table(self, intervals: bool = False) -> Any:
        """Where each run ended.

        Parameters
        ----------
        intervals : bool, default=False
            Also how many kernels its gap proves to be used, and not to be used, by
            every minimizer; it takes up to three passes per run.

        Returns
        -------
        rich.table.Table
            One row per run: status, gap, seconds, iterations, passes, kernels in use.
        """
        words = ("problem", "solver", "status")
        numbers = ["gap", "seconds", "iterations", "passes", "kernels"]
        numbers += ["used", "unused"] if intervals else []
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
                *(map(str, run.result.intervals().counts) if intervals else ()),
            )
        return found

    def summary(
        self,
        column: str = "seconds",
        tol: float | None = None,
        labels: Mapping[str, str] | None = None,
        order: Sequence[str] = (),
    ) -> Summary:
        """Time to the tolerance by problem and solver, with ± and the best in bold.

        Parameters
        ----------
        column : str, default="seconds"
            What is counted: a column of the trace, such as "passes".
        tol : float, optional
            By default the one of the race.
        labels : dict, optional
            What to print for names of solvers and problems.
        order : list of str, optional
            Solvers that come first.

        Returns
        -------
        Summary
            It is printed as a table; `latex()` is one with booktabs, `to_frame()` has
            the numbers.
        """
        tol = self.tol if tol is None else tol
        return summary(self.to_frame(), tol, column, labels, order)

    def figure(
        self,
        rows: Sequence[str] | None = None,
        x: str | Sequence[str] = ("seconds", "passes"),
        y: str = "gap",
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
        """The gap of every solver: a row of panels per problem, a column per axis.

        With one axis, problems stand side by side where the figure is wide enough.
        Curves are medians over seeds and repeats, bands lie between the quartiles. The
        dotted line is the tolerance; grey is how well f* is known.

        Parameters
        ----------
        rows : list of str, optional
            Names of problems; by default all.
        x : str or list of str, default=("seconds", "passes")
            Columns of the trace: "seconds", "iteration", "passes", …
        y : {"gap", "active"}
            The relative gap, or the number of kernels in use.
        width : float or {"column", "text"}, optional
            Inches, or one column or the whole text of the venue.
        height : float, optional
            Inches.
        labels : dict, optional
            What to write for names of solvers, problems and columns.
        colors : dict, optional
            Colours of solvers.
        order : list of str, optional
            Solvers that come first in the legend.
        style : str, dict or list, optional
            Styles of matplotlib on top of ours.
        legend : {"outside", "inside", "none"}, optional
            Above all panels (the default), in the first panel, or nowhere.
        ax : Axes or array of Axes, optional
            Draw here, one for each problem and x, instead of in a new figure.
        venue : {"neurips", "icml", "jmlr", "siam-2col"}, optional
            Gives the widths and the size of letters.
        path : str or path, optional
            Where to write it; PNG and PDF where it has no ending.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> found.figure(venue="icml", labels={"auto": "ours"})  # doctest: +SKIP
        """
        how: dict[str, Any] = dict(rows=rows, x=x, y=y, width=width, height=height)
        how |= dict(labels=labels, colors=colors, order=order, style=style)
        how |= dict(legend=legend, ax=ax, venue=venue, path=path)
        return figure(self.to_frame(), tol=self.tol, **how)

    def profile_figure(self, tol: float | None = None, **how: Any) -> Any:
        """The performance profile of the solvers, with a legend.

        Parameters
        ----------
        tol : float, optional
            By default the one of the race.
        **how
            width, height, labels, colors, order, style, legend, ax, venue and path, as
            in `figure`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        tol = self.tol if tol is None else tol
        return profile_figure(self.to_frame(), tol, **how)

    def draw(self, path: str | os.PathLike | None = None) -> Any:
        """An overview for the screen: gap against seconds, iterations and passes.

        Parameters
        ----------
        path : str or path, optional
            Where to write it; PNG and PDF where it has no ending.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return self.figure(x=("seconds", "iteration", "passes"), width=8.0, path=path)

    def save(self, folder: str | os.PathLike, **how: Any) -> list[str]:
        """Everything a paper needs of a race.

        Parameters
        ----------
        folder : str or path
            Made where it does not exist.
        **how
            Options of `figure`.

        Returns
        -------
        list of str
            What was written: the traces as CSV, the table as LaTeX, a script that draws
            the same figure from the CSV, the figure as PDF, PNG and PGF (where LaTeX is
            installed), and for several problems the profile.
        """
        return save(self, folder, how)

    def __str__(self) -> str:
        return "\n".join([as_text(self.table(), 110), *self._remarks()])

    def _repr_html_(self) -> str:
        return html(self.table(), *self._remarks())

    def _remarks(self) -> list[str]:
        left = [f"left out: {who} ({why})" for who, why in self.left_out.items()]
        return [*left, self.stopped] if self.stopped else left


def race(
    problems: Problem | Mapping[str, Problem] | Iterable[Problem],
    solvers: Sequence[Any] | Mapping[str, Any],
    *,
    seeds: Iterable[int] = (0,),
    repeats: int = 1,
    tol: float = 1e-6,
    time_limit: float = 30.0,
    reference: bool | None = None,
    verbose: bool = False,
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
        For solvers that draw random numbers; the others have one.
    repeats : int, default=1
        How many times each run is timed, those of deterministic solvers, too.
    tol : float, default=1e-6
        The certified relative gap at which a run ends.
    time_limit : float, default=30
        Seconds per run.
    reference : bool, optional
        Whether to solve a reference for the interval around f*; by default for small
        problems.
    verbose : bool, default=False
        Show progress on the standard error output.

    Returns
    -------
    Race
        It is printed as a table, drawn with `figure`, saved with `save`. After Ctrl-C
        it has the runs that were complete, and `stopped` says how many.

    Raises
    ------
    ValueError
        Where an argument is wrong, or no solver takes any of the problems.
    KeyboardInterrupt
        After Ctrl-C before the first run is complete.

    Examples
    --------
    >>> found = mklopt.race(problem, ["analytic", "spg", "auto"])  # doctest: +SKIP
    >>> found.save("figures/race")                                 # doctest: +SKIP
    """
    named = named_problems(problems, "race")
    methods = _methods(solvers)
    seeds = check_list(seeds, "seeds", "a list of whole numbers")
    check_whole(repeats, "repeats", 1)
    check_flag(verbose, "verbose")
    if reference is not None:
        check_flag(reference, "reference")
    how = {"tol": tol, "time_limit": time_limit}
    runs: list[Run] = []
    with progress(verbose, "race", tol) as shown:
        plans, left_out = _plans(named, methods, (seeds, repeats), shown)
        if not any(plans.values()):
            raise ValueError("no solver takes any of the problems: " + str(left_out))
        for run in _complete(named, plans, how, shown):
            runs.append(run)
        if not runs:
            raise KeyboardInterrupt
        total = sum(map(len, plans.values()))
        wanted = reference if len(runs) == total else False
        intervals, complete = _intervals(named, runs, wanted, shown)
    stopped = "" if complete else "stopped by Ctrl-C before references were solved"
    if len(runs) < total:
        stopped = f"stopped by Ctrl-C after {len(runs)} of {total} runs"
    return Race(runs, intervals, tol, left_out, stopped)


class Plan(NamedTuple):
    """A run to come: the name of its curve, the solver, a seed, which repeat."""

    name: str
    solver: Solver
    seed: int
    repeat: int


def _plans(
    named: dict[str, Problem],
    methods: dict[str, Any],
    times: tuple[list[int], int],
    shown: Silent,
) -> tuple[dict[str, list[Plan]], dict[str, str]]:
    """The runs of each problem in their order, and what is left out, with reasons.

    times: seeds, and the number of repeats
    """
    plans, left_out, (seeds, repeats) = {}, {}, times
    for name, problem in named.items():
        able: dict[str, Solver] = {}
        for label, given in methods.items():
            shown.begin(f"compiling {label} on {name}")
            try:
                able[label] = _tried(given, problem)
            except REFUSED as error:
                if not _is_refusal(given, error):
                    raise
                left_out[f"{label} on {name}"] = str(error)
        plans[name] = [
            Plan(label, method, seed, repeat)
            for repeat in range(repeats)
            for label, method in able.items()
            for seed in (seeds if method.draws else seeds[:1])
        ]
    return plans, left_out


def _tried(given: Any, problem: Problem) -> Solver:
    """The solver, after a short run: everything is compiled then, and not timed."""
    method = solver_for(given, problem)
    found = solve(_alone(problem), method, **SHORT)  # type: ignore[arg-type]
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return method


def _complete(
    named: dict[str, Problem],
    plans: dict[str, list[Plan]],
    how: dict[str, Any],
    shown: Silent,
) -> Iterator[Run]:
    """All runs, one after the other; Ctrl-C ends them, the one at work is dropped."""
    total, count = sum(map(len, plans.values())), 0
    try:
        for name, todo in plans.items():
            for plan in todo:
                count += 1
                shown.begin(f"run {count} of {total}, {plan.name} on {name}")
                yield _run(name, named[name], plan, how, shown)
    except KeyboardInterrupt:
        return


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
    name: str, problem: Problem, plan: Plan, how: dict[str, Any], shown: Silent
) -> Run:
    """One run; KeyboardInterrupt where Ctrl-C ended it."""
    weights: list[Array] = []
    nothing = np.full(problem.grams.M, np.nan)

    def keep(certificate: Any, trace: Any) -> None:
        theta = certificate.weights
        weights.append(nothing if theta is None else theta)
        shown.show(trace)

    how = {**how, "seed": plan.seed, "callback": keep}
    result = solve(_alone(problem), plan.solver, **how)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    seed, repeat = plan.seed, plan.repeat
    return Run(name, plan.name, seed, result, np.array(weights), repeat)


def _intervals(
    named: dict[str, Problem], runs: list[Run], reference: bool | None, shown: Silent
) -> tuple[dict[str, tuple[float, float]], bool]:
    """Intervals of f*, and whether all are done; after Ctrl-C without references."""
    found, complete = {}, True
    for name, problem in named.items():
        mine = [run for run in runs if run.problem == name]
        if not mine:
            continue
        shown.begin(f"interval of f* for {name}")
        try:
            found[name] = _interval(problem, mine, reference)
        except KeyboardInterrupt:
            reference, complete = False, False
            found[name] = _interval(problem, mine, reference)
    return found, complete


def _interval(
    problem: Problem, runs: list[Run], reference: bool | None
) -> tuple[float, float]:
    """lower ≤ f* ≤ upper from a reference and from every certificate there is."""
    found = [run.result.certificate for run in runs]
    lower, upper = max(c.lower for c in found), min(c.upper for c in found)
    small = problem.grams.M * problem.grams.n**2 <= REFERENCE_SIZE
    stored = getattr(problem, "stored", None) if reference is None else None
    if stored is None and (small if reference is None else reference):
        stored = exact(_alone(problem))
    if stored is not None:
        lower, upper = max(lower, stored.lower), min(upper, stored.upper)
    return lower, upper
