"""An ε-path: points along C whose bounds enclose f*(C) to ε for every C between them.

Nodes are certified points. Between two neighbours f*(C) lies above a chord and below
two tangents (certificates/along_C.py); the largest relative gap of all pieces is
compared with ε. Where it is larger, a node is added that costs no solve: a point
between the two solved neighbours (certificates/segment.py), at the crossing of the
tangents. Where such a point has a gap near ε itself, the problem is solved at a C
between the two solutions. Steps of log C go upward and follow the gaps that they left.

Guarantee. `gap` bounds (upper(C) − lower(C))/|upper(C)| for every float64 number C of
the interval, under the assumptions of the certificates of all nodes. Below C_zero, for
a path that begins there with w = 0, the bounds are those of the line from C = 0.

Reference: Giesen, Jaggi and Laue (2012) for ε-paths from gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..certificates.along_C import BoundsAlongC, Cut, cut_of
from ..certificates.certificate import Certificate, certify
from ..certificates.segment import Segment
from ..problem import Problem
from ..run.loop import solve
from ..run.point import meets
from ..run.result import Result
from ..run.trace import Trace
from ..util.arrays import Array
from ..util.checks import real_number
from ..util.extras import need
from .choose_C import Choice, choose_C
from .solution_path import Path

NODE_TOL = 0.05  # of ε: the gap of solutions, unless tol is given
ROOM = 0.7  # of ε: a larger gap of a point between solutions calls for a solve
AIM = 0.35  # of ε: the gap in the middle of a step that the next step aims at
FIRST_STEP = 0.35  # of log C
CHANGES = 0.5, 2.0  # of the length of a step from one to the next
ORDER = 2.5  # gaps between solutions grow about like this power of the step
SHORTEST = 1e-4  # of log C: two solutions nearer than this have none between them


@dataclass(frozen=True, eq=False)
class EpsilonPath(Path):
    """A path with bounds of f*(C) for every C between its ends.

    Parameters
    ----------
    results : list of Result
        The solutions, in increasing order of C.
    problem : Problem
        The problem; with one C per sample their ratios are kept.
    epsilon : float
        The relative gap that was asked for.
    end : float
        The last C that was asked for.
    bounds : BoundsAlongC
        All nodes: solutions, and points between them.
    """

    problem: Problem = field(repr=False)
    epsilon: float
    end: float
    bounds: BoundsAlongC = field(repr=False)

    @property
    def solves(self) -> int:
        """How many problems were solved."""
        return len(self.results)

    @cached_property
    def gap(self) -> float:
        """A bound of the relative gap, for every C of the path."""
        first, last = self.C[0], self.C[-1]
        gaps = [self.bounds.gap(C) for C in (first, last)]
        return max(self.bounds.worst(first, last).gap, *gaps)

    @property
    def converged(self) -> bool:
        """Whether f*(C) is enclosed to epsilon, for every C that was asked for."""
        return self.gap <= self.epsilon and self.C[-1] >= self.end

    def lower(self, C: float) -> float:
        """A lower bound of f*(C); −∞ for C that the path does not cover.

        Parameters
        ----------
        C : float

        Returns
        -------
        float
        """
        return self.bounds.lower(self._checked(C))

    def upper(self, C: float) -> float:
        """An upper bound of f*(C), by the best of all points of the path.

        Parameters
        ----------
        C : float

        Returns
        -------
        float
        """
        return self.bounds.upper(self._checked(C))

    def at(self, C: float) -> Result:
        """A certified point for any C of the path; nothing is solved.

        Parameters
        ----------
        C : float
            Between the ends; or below the first, if all weights are zero there.

        Returns
        -------
        Result
            Its point, with a certificate of its own.

        Raises
        ------
        ValueError
            If the path does not cover this C.
        """
        C = self._checked(C)
        if self.C[0] > C and self.bounds.lower(C) > -math.inf:  # w = 0
            return self._between(self._zero(C))
        if not self.C[0] <= C <= self.C[-1]:
            raise ValueError(
                f"C = {C:g} is not on the path, which goes from {self.C[0]:g} to "
                f"{self.C[-1]:g}"
            )
        place = int(np.searchsorted(self.C, C))
        if self.C[place] == C:
            return self.results[place]
        return self._between(self._segment(place).certify(at_C(self.problem, C)))

    def _zero(self, C: float) -> Certificate:
        """w = 0 below C_zero, with α in proportion."""
        first = self.results[0].certificate.enclosure
        alpha = C / self.C[0] * first.shrink * first.alpha
        weights = np.zeros(self.problem.grams.M)
        return certify(at_C(self.problem, C), alpha, weights)

    def _between(self, found: Certificate) -> Result:
        """The result of a point that was not solved."""
        status = "converged" if meets(found, self.epsilon) else "finished"
        message = "a point between two solutions of a path"
        trace = Trace(solver="path", tol=self.epsilon)
        return Result(found.problem, "path", status, message, found, trace)

    def _segment(self, place: int) -> Segment:
        known = self._segments
        if place not in known:
            known[place] = segment(self.results[place - 1], self.results[place])
        return known[place]

    @cached_property
    def _segments(self) -> dict[int, Segment]:
        return {}

    def choose(self, test_stack: Any, y: Any, diagonals: Any) -> Choice:
        """Choose C by its error on held-out samples, with a bound for every other C.

        For labels −1/+1. The bound needs a strongly convex Ω: the elastic net, or ℓp
        and block norms in between; for others it is 0.

        Parameters
        ----------
        test_stack : array (M, n_test, n)
            As in `Result.decision`.
        y : array (n_test,)
            The labels of the held-out samples.
        diagonals : array (M, n_test)
            k_m(x, x) of every kernel at every held-out sample.

        Returns
        -------
        Choice
            C, its error, and delta: no C of the path has an error below error − delta.

        Examples
        --------
        >>> path.choose(fitted.cross(X), y, np.ones((M, len(y))))  # doctest: +SKIP
        """
        return choose_C(self, test_stack, y, diagonals)

    def _checked(self, C: float) -> float:
        return real_number(C, "C")

    def nodes_to_frame(self) -> Any:
        """All nodes, those that were not solved as well.

        Returns
        -------
        pandas.DataFrame
            One row per node: C, solved, lower, upper, gap (of the node), and
            gap_to_next (for every C up to the next node).
        """
        need("pandas")
        import pandas as pd

        solved, cuts = set(self.C.tolist()), self.bounds.cuts
        nexts = [*(cut.C for cut in cuts[1:]), cuts[-1].C]
        rows = [
            {
                "C": cut.C,
                "solved": cut.C in solved,
                "lower": self.bounds.lower(cut.C),
                "upper": self.bounds.upper(cut.C),
                "gap": self.bounds.gap(cut.C),
                "gap_to_next": self.bounds.worst(cut.C, after).gap,
            }
            for cut, after in zip(cuts, nexts)
            if cut.C > 0
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        ends = f"every C in {self.C[0]:.3g} … {self.C[-1]:.3g}"
        return (
            f"EpsilonPath({ends}, relative gap at most {self.gap:.1e}, {self.solves} "
            f"solves, {len(self.bounds.cuts)} nodes)"
        )


def at_C(problem: Problem, C: float) -> Problem:
    """The problem at C; with one C per sample their ratios are kept."""
    shape = np.asarray(problem.C) / np.max(problem.costs)
    costs = np.maximum(C * shape, np.nextafter(0.0, 1.0))  # > 0 after rounding
    return problem.with_(C=costs)


def segment(left: Result, right: Result) -> Segment:
    """The points between two results."""
    thetas = left.weights, right.weights
    return Segment(left.certificate, right.certificate, thetas)


def epsilon_path(
    problem: Problem,
    Cs: Array,
    start: Any,
    epsilon: float,
    solver: str,
    callback: Callable[[Result], Any] | None,
    options: dict[str, Any],
) -> EpsilonPath:
    """Nodes from the first of Cs to the last, so that every C between is within ε.

    `mklopt.path` with everywhere=ε calls this. All Cs are solved; start: of the first.
    """
    if not 0 < real_number(epsilon, "everywhere") < 1:
        raise ValueError(f"everywhere = {epsilon:g}; give a relative gap in (0, 1)")
    _check_costs(problem)
    options = {"tol": NODE_TOL * epsilon, **options}
    build = _Builder(problem, epsilon, solver, callback, options)
    build.solve(float(Cs[0]), start)
    for end in Cs[1:]:
        build.go_to(float(end))
    build.add_line_from_zero()
    return EpsilonPath(build.results, problem, epsilon, float(Cs[-1]), build.bounds)


def _check_costs(problem: Problem) -> None:
    """ValueError where one C per sample needs V ≥ 0 and Ω(0) ≥ 0, and has not."""
    if np.ndim(problem.C) == 0:
        return
    least = np.max(problem.loss.conjugate(np.zeros(problem.shape), problem.y))
    if not least <= 0 <= problem.formulation.value(np.zeros(problem.grams.M)):
        raise ValueError(
            "everywhere= with one C per sample needs a loss V ≥ 0 and Ω(0) ≥ 0; give "
            "one number C"
        )


class _Builder:
    """The nodes so far, and the length of the next step."""

    def __init__(
        self,
        problem: Problem,
        epsilon: float,
        solver: str,
        callback: Callable[[Result], Any] | None,
        options: dict[str, Any],
    ):
        self.problem, self.epsilon, self.solver = problem, epsilon, solver
        self.callback, self.options = callback, options
        self.results: list[Result] = []
        self.bounds, self.step, self.ended = BoundsAlongC(), FIRST_STEP, False

    def solve(self, C: float, start: Any) -> Result:
        """One more solution, and its node."""
        found = solve(at_C(self.problem, C), self.solver, start=start, **self.options)
        place = int(np.searchsorted([_C(r) for r in self.results], C))
        self.results.insert(place, found)
        self.bounds.add(cut_of(found.certificate, C))
        asked = self.callback is not None and self.callback(found)
        self.ended |= bool(asked) or found.status == "interrupted"
        return found

    def go_to(self, last: float) -> None:
        """Steps of log C from the last solution to this C, each proved at once."""
        while not self.ended and _C(self.results[-1]) < last:
            left = self.results[-1]
            rest = math.log(last / _C(left))
            steps = max(math.ceil(rest / self.step - 0.1), 1)
            C = last if steps == 1 else _C(left) * math.exp(rest / steps)
            right = self.solve(C, left)
            if not self.ended:
                self.cover(left, right)

    def cover(self, left: Result, right: Result) -> None:
        """Nodes between two solutions until every C is within ε; solves if needed."""
        first, last = _C(left), _C(right)
        length = math.log(last / first)
        between, worst = segment(left, right), 0.0
        limit = ROOM * self.epsilon
        solvable = max(self.bounds.gap(C) for C in (first, last)) <= limit
        while (piece := self.bounds.worst(first, last)).gap > self.epsilon:
            if not solvable or length < SHORTEST or self.ended:
                return
            C = _inside(piece, self.bounds, first, last)
            self.bounds.add(cut_of(between.certify(at_C(self.problem, C)), C))
            worst = max(worst, self.bounds.gap(C))
            if worst > limit:
                self.step = self._next_step(length, worst)
                middle = self.solve(math.sqrt(first * last), left)
                self.cover(left, middle)
                self.cover(middle, right)
                return
        self.step = self._next_step(length, worst)

    def _next_step(self, length: float, gap: float) -> float:
        """The length of the next step, from one that left this gap in its middle."""
        change = (AIM * self.epsilon / max(gap, 1e-300)) ** (1 / ORDER)
        return length * min(max(change, CHANGES[0]), CHANGES[1])

    def add_line_from_zero(self) -> None:
        """Below the first C, if w = 0 is optimal there: f*(0) ≥ −Ω*(0) at C = 0."""
        first = self.results[0].certificate
        if np.any(first.norms):
            return
        formulation = self.problem.formulation
        at_zero = -formulation.conjugate(np.zeros(self.problem.grams.M))
        room = 1e-12 * abs(at_zero) if formulation.exact else math.inf
        self.bounds.add(Cut(0.0, at_zero - room, math.inf, math.inf))


def _C(result: Result) -> float:
    return float(np.max(result.problem.costs))


def _inside(piece: Any, bounds: BoundsAlongC, first: float, last: float) -> float:
    """The C of the next node: the end of the worst piece that is no node, or else its
    middle."""
    nodes = {cut.C for cut in bounds.cuts}
    ends = [C for C in (piece.left, piece.right) if first < C < last and C not in nodes]
    return ends[0] if ends else math.sqrt(piece.left * piece.right)
