"""First-order solvers: what is observed, the exact worst case, what a theorem claims.

    solver   method (worst_case.py)       unit of F(x_t) − F*
    ista     proximal gradient            L‖w*‖²
    fista    accelerated …                L‖w*‖²
    pgd      projected gradient           no constant is known for its step: no run
    mirror   mirror descent               L√(Γ/σ), the a priori constants of rates.py
    spicy    growing proximal point       (‖w*‖² + b*²)/γ_1, its outer steps alone

In these units the claim and the worst case depend on t alone, so that one figure shows
all three. A run must lie below the worst case of its class, which must lie below the
claim. For mirror descent the classes differ: the run has the entropy and the norm ℓ1,
PEPit's class is Euclidean; there only the claim bounds the run.

‖w*‖ and F* are those of a solution to 1e-9, and are not known before the first step:
rates.py checks claims with constants that are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..certificates.certificate import certify
from ..problem import Problem
from ..run.loop import solve
from ..run.result import Result
from ..solvers import Unsupported
from ..solvers.steps.augmented_lagrangian import Gammas, Lagrangian
from ..solvers.steps.proximal_step import lipschitz
from ..util.checks import check_whole
from ..util.extras import need
from ..util.style import done, look, panels, styled
from ..util.tables import html, plain_table
from .rates import claims, mirror_constants
from .worst_case import GROWTH, NotTestable, worst_case

SOLUTION_TOL = 1e-9  # relative gap of F* and w*
MAX_NEWTON_STEPS = 100  # of one proximal step
NEWTON_TOL = 1e-9  # relative residual of one proximal step


class Row(NamedTuple):
    """After t steps of a solver: all numbers in the unit of its bound."""

    solver: str
    method: str
    t: int
    observed: float
    worst: float
    claimed: float


@dataclass(frozen=True, eq=False)
class WorstCases:
    """Observed, worst and claimed errors for t = 1, 2, …

    Parameters
    ----------
    rows : list of Row
    remarks : dict of str to str
        Why a solver was not run, by its name.
    """

    rows: list[Row]
    remarks: dict[str, str]

    def to_frame(self) -> Any:
        """The table as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per solver and t: observed, worst, claimed.
        """
        need("pandas")
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(Row._fields))

    @styled
    def draw(self, path: Any = None) -> Any:
        """One panel per solver, observed, worst and claimed over t.

        Parameters
        ----------
        path : str or path, optional
            Where to write the figure; PNG and PDF where it has no ending.

        Returns
        -------
        matplotlib.figure.Figure
        """
        pairs = list(dict.fromkeys((row.solver, row.method) for row in self.rows))
        figure, axes = panels(len(pairs), 2, 2.6)
        for axis, (solver, method) in zip(axes, pairs):
            rows = [r for r in self.rows if (r.solver, r.method) == (solver, method)]
            t = [row.t for row in rows]
            for place, name in enumerate(("claimed", "worst", "observed")):
                values = np.array([getattr(row, name) for row in rows])
                if np.any(np.isfinite(values)):
                    axis.semilogy(t, values, label=name, **look(place))
            axis.set(title=f"{solver}: {method}", xlabel="t", ylabel="F − F*, in units")
        axes[0].legend()
        figure.tight_layout()
        return done(figure, path)

    def _repr_html_(self) -> str:
        names = ["t", "observed", "worst case", "claimed"]
        table = plain_table("", ["solver", "method"], names)
        for row in self.rows:
            numbers = (f"{x:.3g}" for x in (row.observed, row.worst, row.claimed))
            table.add_row(row.solver, row.method, str(row.t), *numbers)
        return html(table, *(f"{k}: {v}" for k, v in self.remarks.items()))


def worst_case_table(*problems: Problem, most: int = 10) -> WorstCases:
    """Compare each first-order solver with its exact worst case, for t = 1 … most.

    Parameters
    ----------
    *problems : Problem
        What the solvers are run on, each on the first one where its constants are
        known: a smooth loss for ista, fista and spicy; sums of norms in groups (VSKL)
        with the hinge for mirror.
    most : int, default=10
        The largest number of steps.

    Returns
    -------
    WorstCases

    Raises
    ------
    NotTestable
        If PEPit is not installed.

    Examples
    --------
    >>> worst_case_table(problem).draw("worst-cases")  # doctest: +SKIP
    """
    check_whole(most, "most", 1)
    if not problems or not all(isinstance(p, Problem) for p in problems):
        raise ValueError("worst_case_table takes one Problem, or several")
    best, rows = [solve(p, tol=SOLUTION_TOL) for p in problems], []
    remarks: dict[str, str] = {}
    for (solver, method), observe in RUNS.items():
        values = np.full(most, np.nan)
        errors, remark = _first_run(observe, best, most)
        values[: len(errors)] = errors
        if remark:
            remarks[solver] = remark
        for t, value in enumerate(values, 1):
            found = worst_case(method, t)
            numbers = (float(value), found.worst, found.claimed)
            rows.append(Row(solver, method, t, *numbers))
    return WorstCases(rows, remarks)


def _first_run(
    observe: Callable[[Result, int], Iterator[float]], best: list[Result], most: int
) -> tuple[list[float], str]:
    """The errors on the first problem that has constants; or why none of them has."""
    remark = ""
    for result in best:
        try:
            return list(islice(observe(result, most), most)), ""
        except (NotTestable, Unsupported) as reason:
            remark = str(reason)
    return [], remark


def _forward(solver: str) -> Callable[[Result, int], Iterator[float]]:
    """Errors of proximal gradient steps with the constant L, in units of L‖w*‖²."""

    def observe(best: Result, most: int) -> Iterator[float]:
        problem = best.problem
        if problem.loss.smoothness is None:
            raise NotTestable(f"the gradient of {problem.loss.name} has no constant")
        unit = lipschitz(problem) * float(np.sum(best.certificate.norms**2))
        options = {**claims()[solver].options, "every": 1}
        run = solve(problem, solver, tol=0.0, max_iter=most + 1, **options)
        yield from (run.trace.primal[1:] - best.certificate.dual) / unit

    return observe


def _no_constant(best: Result, most: int) -> Iterator[float]:
    raise NotTestable("W has no constant L that is known for Armijo's rule")


def _mirror(best: Result, most: int) -> Iterator[float]:
    """min over s ≤ t of G(λ_s) − G*, in units of L√(Γ/σ)."""
    claim = claims()["mirror"]
    if "simplices" not in best.problem.formulation.traits:
        raise NotTestable("mirror needs sums of norms in groups, such as VSKL")
    known = mirror_constants(best.problem)
    if not known["Γ"]:
        raise NotTestable("every group has one kernel: mirror has nothing to do")
    unit = known["L"] * np.sqrt(known["Γ"] / known["σ"])
    run = solve(best.problem, "mirror", tol=0.0, max_iter=most, **claim.options)
    least = np.minimum.accumulate(run.trace.primal)
    yield from (least - best.certificate.dual) / unit


def _proximal_point(best: Result, most: int) -> Iterator[float]:
    """Outer steps of spicy with γ, GROWTH·γ, …, in units of (‖w*‖² + b*²)/γ.

    γ is such that the first step is claimed to end at F(0) − F* at most.
    """
    problem, found = best.problem, best.certificate
    if not problem.loss.twice_differentiable:
        raise NotTestable(f"proximal steps for {problem.loss.name} smooth its kinks")
    size = float(np.sum(found.norms**2) + np.sum(np.square(found.bias)))
    zero = certify(problem, np.zeros(problem.shape), np.zeros(problem.grams.M))
    gamma = size / (2 * (zero.primal - found.dual))
    gammas = Gammas(np.full(problem.grams.M, gamma), gamma, gamma)
    B = np.zeros((problem.grams.M, *problem.shape))
    lagrangian = Lagrangian(problem, gammas, B, np.zeros(problem.shape[1:]))
    everything, rho = np.arange(problem.grams.M), zero.alpha
    rho, point = lagrangian.side.inside(rho), None
    while True:
        point = lagrangian.enter(everything, rho, point)
        for _ in range(MAX_NEWTON_STEPS):
            point = lagrangian.newton(point)
            if lagrangian.unsolved(point) <= NEWTON_TOL**2:
                break
        coefficients = lagrangian.coefficients(point)
        now = certify(problem, point.rho, coefficients=coefficients)
        yield (now.primal - found.dual) * gamma / size
        rho = point.rho
        lagrangian.accept(point)
        lagrangian.penalize(lagrangian.gammas.scaled(GROWTH))


RUNS: dict[tuple[str, str], Callable[[Result, int], Iterator[float]]] = {
    ("ista", "proximal gradient"): _forward("ista"),
    ("fista", "accelerated proximal gradient"): _forward("fista"),
    ("pgd", "projected gradient"): _no_constant,
    ("mirror", "mirror descent"): _mirror,
    ("mirror", "mirror descent as printed"): _mirror,
    ("spicy", "growing proximal point"): _proximal_point,
}
