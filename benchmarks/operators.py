"""What operators derived from a declaration cost: `make bench NAME=operators`.

Processor milliseconds of value, conjugate, weights and prox (one step for all kernels,
one step for each) of declarations without any closed form; the best of five, after a
first call that is not counted. At M = 100 none may take more than 20 ms. Only owl has
closed forms, and is shown without them, too.

Then the formulations of the package are declared again, as users would write them (some
twice: with the kernel weights as a variable, and by @variational), and compared with
themselves. Declarations made of known terms have twins with closed forms
(formulations/recognized.py): their operators may take 5 times as long at most, and
solving to 1e-6 (hinge, n = 200, M = 50; the best of three) 3 times. The others are
listed with their ratio. Both must use the same kernels. "read" is the time to recognize
a declaration, once.

    python -m benchmarks operators --kernels 20 --samples 100 --twins 20
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from rich.table import Table

from benchmarks import harness
from mklopt import GramStack, Problem, solve
from mklopt.formulations import (
    Declared,
    Formulation,
    GroupLasso,
    Ivanov,
    NonIsotropic,
    Tikhonov,
    formulation,
    formulations,
    gallery,
    stripped,
    variational,
)
from mklopt.formulations.norms import declared_norm
from mklopt.util.tables import plain_table

LIMIT = 20.0  # milliseconds
OPERATOR_RATIO, SOLVE_RATIO = 5.0, 3.0  # of a twin to the formulation itself
TOL, TIME_LIMIT = 1e-6, 60.0
OPERATORS = ("value", "conjugate", "weights", "prox", "prox, M steps")


def cases(M: int) -> dict[str, Formulation]:
    """Every formulation without its closed forms, and the worked examples."""
    known = {
        name: stripped(kind.examples(M)[0]) for name, kind in formulations().items()
    }
    fives = [range(i, min(i + 5, M)) for i in range(0, M, 5)]
    eights = [range(i, min(i + 8, M)) for i in range(0, M, 5)]
    return {
        **known,
        "k_support": gallery.k_support(5),
        "owl": gallery.owl(np.linspace(1, 0.1, M)),
        "owl, derived": stripped(gallery.owl(np.linspace(1, 0.1, M))),
        "sparse_group": gallery.sparse_group(fives),
        "latent_groups": gallery.latent_groups(eights),
        "log_barrier": gallery.log_barrier(),
        "prior_l1": gallery.prior_l1(1 + np.arange(M)),
        "tree": formulation(
            lambda u: cp.norm(u) + sum(cp.norm(u[list(group)]) for group in fives)
        ),
    }


def best_of(call: Callable[[], object], times: int = 5) -> float:
    """The least processor time in milliseconds, after a first call."""
    call()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return 1e3 * min(seconds)


def measured(formulation: Formulation, M: int) -> list[float]:
    """Milliseconds of each operator at one random point."""
    rng = np.random.default_rng(0)
    u, steps = rng.uniform(0, 1, M), rng.uniform(0.25, 1, M)
    v = 0.9 * formulation.epigraph(M).subgradient(u + 0.1)
    calls: tuple[Callable[[], object], ...] = (
        lambda: formulation.value(u),
        lambda: formulation.conjugate(v),
        lambda: formulation.weights(u + 0.1),
        lambda: formulation.prox(u, 0.5),
        lambda: formulation.prox(u, steps),
    )
    return [best_of(call) for call in calls]


# ---- declared twins ------------------------------------------------------------------


class Comparison(NamedTuple):
    """A formulation of the package, and the same declared again."""

    name: str
    known: str  # the twin, or "none"
    read: float  # milliseconds
    operators: float  # the largest ratio
    seconds: float  # of the formulation itself
    solve: float  # the ratio
    same: bool  # whether both use the same kernels

    @property
    def holds(self) -> bool:
        """Whether the twin is as fast as it has to be."""
        fast = self.operators <= OPERATOR_RATIO and self.solve <= SOLVE_RATIO
        return self.same and (fast or self.known == "none")


def twin_cases(M: int) -> dict[str, tuple[Formulation, Declared]]:
    """Every formulation with what a user would write for it."""
    found: dict[str, tuple[Formulation, Declared]] = {}
    for name, kind in formulations().items():
        for number, one in enumerate(kind.examples(M)):
            found[f"{name} {number}"] = one, formulation(one.penalty)
    in_weights: dict[type[Formulation], Callable[[Any], Declared]] = {
        Ivanov: lambda one: _ball(p=one.p),
        Tikhonov: lambda one: _price(p=one.p, mu=one.mu),
        NonIsotropic: lambda one: _ellipsoid(P=np.linalg.inv(np.array(one.E))),
    }
    for kind, declare in in_weights.items():
        for number, one in enumerate(kind.examples(M)):
            found[f"{kind.__name__} {number}, by weights"] = one, declare(one)
    return found


@variational
def _ellipsoid(theta: Any, P: np.ndarray) -> Any:
    return cp.Constant(0.0), [cp.quad_form(theta, cp.psd_wrap(P)) <= 1]


@variational
def _ball(theta: Any, p: float = 2.0) -> Any:
    return cp.Constant(0.0), [declared_norm(theta, p) <= 1]


@variational
def _price(theta: Any, p: float = 2.0, mu: float = 1.0) -> Any:
    return mu * cp.square(declared_norm(theta, p))


def compared(
    name: str, one: Formulation, mine: Declared, problem: Problem
) -> Comparison:
    """Operators and solutions of a formulation and of its declaration."""
    M, start = problem.grams.M, time.process_time()
    twin = mine.twin(M)
    read = 1e3 * (time.process_time() - start)
    bound = mine.bound(M)
    closed = [n for n in ("value", "conjugate", "weights", "prox") if one.closed(n)]
    ratios = [_ratio(one, bound, n, M) for n in closed if bound.closed(n)]
    seconds, weights = _solved(problem, one)
    others, theirs = _solved(problem, mine)
    known = "none" if twin is None else twin.words.partition("(")[0]
    same = bool(np.array_equal(weights > 0, theirs > 0))
    worst = max(ratios, default=np.inf)
    return Comparison(name, known, read, worst, seconds, others / seconds, same)


def _ratio(one: Formulation, mine: Formulation, operator: str, M: int) -> float:
    """How much longer an operator of a declaration takes; five calls at a time."""
    rng = np.random.default_rng(0)
    u = rng.uniform(0.1, 1, M)
    point = (u, 0.5) if operator == "prox" else (u,)
    many = lambda f: [getattr(f, operator)(*point) for _ in range(5)]  # noqa: E731
    return best_of(lambda: many(mine)) / best_of(lambda: many(one))


def _solved(problem: Problem, chosen: Formulation) -> tuple[float, np.ndarray]:
    """The least processor seconds of three, Problem included; and the weights."""
    seconds, result = [], None
    for _ in range(3):
        start = time.process_time()
        mine = problem.with_(formulation=chosen)
        result = solve(mine, tol=TOL, time_limit=TIME_LIMIT)
        seconds.append(time.process_time() - start)
    assert result is not None
    return min(seconds), result.weights


def compare(n: int, M: int) -> tuple[Table, list[str]]:
    """The table of twins, and which of them are too slow or use other kernels."""
    K, y = harness.subset_gaussians(n, M)
    problem = Problem(GramStack(K), y, "hinge", GroupLasso())
    numbers = ("read, ms", "operators", "seconds", "solve", "same kernels")
    table = plain_table(
        f"declared again, n = {n}, M = {M}", ["formulation", "twin"], numbers
    )
    failed = []
    for name, (one, mine) in twin_cases(M).items():
        row = compared(name, one, mine, problem)
        times = f"{row.operators:.1f}×", f"{row.seconds:.3f}", f"{row.solve:.2f}×"
        table.add_row(name, row.known, f"{row.read:.0f}", *times, str(row.same))
        failed += [] if row.holds else [name]
    return table, failed


def main() -> None:
    """All formulations, and which of them are too slow."""
    parser = harness.parser(__doc__)
    parser.add_argument("--kernels", type=harness.positive, default=100, metavar="M")
    parser.add_argument("--samples", type=harness.positive, default=200, metavar="n")
    parser.add_argument("--twins", type=harness.positive, default=50, metavar="M")
    given = parser.parse_args()
    M = given.kernels
    table = plain_table(f"processor milliseconds, M = {M}", ["formulation"], OPERATORS)
    slow = []
    for name, one in cases(M).items():
        found = measured(one, M)
        table.add_row(name, *(f"{ms:.1f}" for ms in found))
        slow += [name] if max(found) > LIMIT else []
    line = f"formulations above {LIMIT:g} ms: {', '.join(slow) or 'none'}"
    twins, failed = compare(given.samples, given.twins)
    said = f"declarations slower than their twins: {', '.join(failed) or 'none'}"
    lines = [harness.verdict(not slow, line), harness.verdict(not failed, said)]
    harness.report(harness.console(), "operators", __doc__, [table, twins], lines)


if __name__ == "__main__":
    main()
