"""Solves the library of problems, and times solvers on it: `make bench NAME=library`.

    python -m benchmarks library --solve                 # points of problems without
    python -m benchmarks library --times auto spicy      # ours, by name
    python -m benchmarks library --times CLARABEL skglm  # other people's, by name
    python -m benchmarks library --prove                 # kernels that are used

All of it goes into mklopt/library/stored, from which the pages are made. Rules, fixed
before any run: one thread; LIMIT seconds for an attempt; a solver of ours has the time
at which an iterate reached a gap, certificates included; a solver of other people the
time of the first of its attempts, from loose to tight, whose certified gap is small
enough, certificates not included. Compilation is not timed.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

import mklopt
from benchmarks.rivals import EVERYONE, Arena, Attempt, Competitor, in_a_child, warm
from mklopt.certificates.certificate import Certificate, certify
from mklopt.data import DataNotFound
from mklopt.library.instance import LibraryProblem
from mklopt.library.listing import get, names
from mklopt.library.stored_records import (
    HOME,
    Record,
    Run,
    points_in,
    records,
    reference_of,
    write_records,
)
from mklopt.library.submissions import store_points
from mklopt.problem import Problem
from mklopt.solvers import solvers

Array = np.ndarray
Fit = Callable[[Arena, Array, list[int], float], Array]
GOOD = 1e-9  # the width at which a problem counts as solved
SECONDS = 5.0  # of our solver, before interior points are tried
LIMIT = 5.0  # seconds of an attempt in a comparison
TOLS = (1e-3, 1e-6)
MAX_NUMBERS = 2.0e7  # of kernels in full storage, for other people's solvers
MAX_PROVED = 40  # kernels in use, up to which each is left out once
MAX_FACTORED = 200_000  # M n, up to which interior points are tried


# ---- points --------------------------------------------------------------------------


def best_point(problem: LibraryProblem) -> tuple[Certificate, str]:
    """The narrowest interval of what is stored, our solver, and interior points."""
    known, found = (
        reference_of(problem),
        mklopt.solve(problem, tol=1e-10, time_limit=SECONDS),
    )
    best, source = found.certificate, found.solver
    if best.width > GOOD and problem.grams.M * problem.grams.n <= MAX_FACTORED:
        exact = mklopt.reference.solve(problem)
        best, source = exact.certificate.best_of(best), exact.solver
    if known is not None and known.certificate.width <= best.width:
        return known.certificate, known.solver
    return best, source


def solve_all(some: list[str]) -> None:
    """Points for the problems that have none, or only wide ones."""
    for name in some:
        problem = get(name)
        known = problem.record
        same = known is not None and known.digest == problem.digest()
        if same and known and known.relative_gap <= GOOD:
            continue
        store_points(problem, *best_point(problem), HOME)
        print(f"{name}: relative gap {records()[name].relative_gap:.1e}", flush=True)
    pack(HOME)


def pack(folder: Path) -> None:
    """All points in one archive, those of no problem left out."""
    store = points_in(folder)
    wanted = {f"{record.digest[:16]}.json" for record in records().values()}
    store.pack("all.zip", store.names() & wanted)


def prove_all(some: list[str]) -> None:
    """Kernels proved to be used, by solving without each of them."""
    for name in some:
        record = records()[name]
        few = record.used_count < record.active <= MAX_PROVED
        if not few or record.relative_gap > GOOD:
            continue
        found = mklopt.solve(get(name), tol=1e-8, time_limit=SECONDS)
        if not found.converged:
            continue
        used = mklopt.prove_used(found, tol=1e-6).tolist()
        if len(used) > record.used_count:
            new = replace(record, used=tuple(used), used_count=len(used))
            write_records(HOME, {name: new})
        print(f"{name}: {len(used)} of {record.active} proved to be used", flush=True)


# ---- times ---------------------------------------------------------------------------


def ours(name: str, problem: Problem) -> Run | None:
    """The times of one of our solvers; None if it does not take the problem."""
    solver = solvers()[name]
    if solver.why_not(problem):
        return None
    fresh = problem.with_(grams=problem.grams.apart())
    mklopt.solve(fresh, name, tol=1e-2, max_iter=3, time_limit=LIMIT)
    fresh = problem.with_(grams=problem.grams.apart())
    tol = max(TOLS[-1], solver.promise(problem))
    found = mklopt.solve(fresh, name, tol=tol, time_limit=LIMIT)
    gaps, seconds = found.trace["gap"], found.trace["seconds"]
    at = [np.flatnonzero(gaps <= tol) for tol in TOLS]
    to_3, to_6 = (float(seconds[i[0]]) if len(i) else None for i in at)
    note = "" if to_6 is not None else found.status.replace("_", " ")
    return Run(to_3, to_6, float(found.relative_gap), note, cpu())


def theirs(competitor: Competitor, arena: Arena) -> Run | None:
    """The times of somebody else's solver; None if it does not take the problem."""
    if competitor.why_not(arena.problem):
        return None
    if getattr(competitor.attempts, "func", None) is _lasso_attempts:
        _warm_lasso(competitor, arena)
    else:
        warm(competitor)
    done: list[Attempt] = []
    note = ""
    try:
        for attempt in in_a_child(partial(competitor.attempts, arena), LIMIT):
            done.append(attempt)
            if attempt.gap <= TOLS[-1]:
                break
    except (TimeoutError, RuntimeError) as error:
        note = str(error)[:80]
    reached = [[a for a in done if a.gap <= tol] for tol in TOLS]
    to_3, to_6 = (some[0].seconds if some else None for some in reached)
    gap = min((a.gap for a in done), default=np.inf)
    said = [note, *(a.note for a in done[-1:])]
    return Run(to_3, to_6, float(gap) if np.isfinite(gap) else None,
               "; ".join(filter(None, said)), cpu())  # fmt: skip


def _warm_lasso(competitor: Competitor, arena: Arena) -> None:
    """Compile what it needs for this loss, on a problem of six samples."""
    L = [np.eye(6)[:, :2], np.eye(6)[:, 2:5]]
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    loss, how = arena.problem.loss, arena.problem.formulation
    toy = Problem(mklopt.GramStack.from_factors(L), y, loss, how, bias=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        list(islice(competitor.attempts(Arena(toy, np.zeros(0), 0.0)), 2))


def _osqp_attempts(arena: Arena) -> Iterator[Attempt]:
    """OSQP on the SVM at fixed weights: a quadratic program."""
    weights = np.array(arena.problem.formulation.get_params()["theta"])
    begun = time.perf_counter()
    found = mklopt.reference.at_weights(arena.problem, weights, solver="OSQP")
    yield Attempt(time.perf_counter() - begun, found.relative_gap)


def _fixed(problem: Problem) -> str:
    fixed = problem.formulation.name == "FixedWeights"
    return "" if fixed and problem.loss.name == "hinge" else "quadratic programs only"


# skglm and celer get the factors themselves, in groups of their own sizes.


def _skglm(arena: Arena, X: Array, sizes: list[int], tol: float) -> Array:
    """w of skglm's group lasso."""
    from skglm.datafits import group
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD, GroupProxNewton
    from skglm.utils.data import grp_converter

    problem, M = arena.problem, len(sizes)
    squared = problem.loss.name == "squared"
    members, ends = grp_converter(sizes, X.shape[1])
    weight = 1 / (float(problem.costs[0]) * problem.grams.n)
    penalty = WeightedGroupL2(weight, np.ones(M), ends, members)
    how: dict = dict(tol=tol, fit_intercept=False, max_iter=1000)
    run = GroupBCD(**how, max_epochs=10_000) if squared else GroupProxNewton(**how)
    datafit = (group.QuadraticGroup if squared else group.LogisticGroup)(ends, members)
    return np.asarray(run.solve(X, problem.y, datafit, penalty)[0])


def _celer(arena: Arena, X: Array, sizes: list[int], tol: float) -> Array:
    """w of celer's group lasso."""
    import celer

    problem = arena.problem
    weight = 1 / (float(problem.costs[0]) * problem.grams.n)
    how: dict = dict(tol=tol, fit_intercept=False, max_epochs=10_000)
    model = celer.GroupLasso(sizes, weight, **how)
    return np.asarray(model.fit(X, problem.y).coef_)


def _lasso_attempts(fit: Fit, arena: Arena) -> Iterator[Attempt]:
    """From loose to tight tolerances, with α = −C V'(f)."""
    problem = arena.problem
    parts = list(problem.grams.factors or [])
    X, sizes = np.asfortranarray(np.hstack(parts)), [L.shape[1] for L in parts]
    for tol in 10.0 ** -np.arange(2, 13):
        begun = time.perf_counter()
        w = fit(arena, X, sizes, float(tol))
        took = time.perf_counter() - begun
        alpha = -problem.costs * problem.loss.gradient(X @ w, problem.y)
        found = certify(problem, alpha, features=w)
        yield Attempt(took, found.relative_gap)


def _lasso(losses: tuple[str, ...], problem: Problem) -> str:
    lasso = problem.formulation.name == "GroupLasso" and not problem.bias
    factors = problem.grams.storage == "factors" and problem.loss.name in losses
    return "" if lasso and factors else "group lasso on factors without a bias only"


def _lasso_of(name: str, fit: Fit, *losses: str) -> Competitor:
    return Competitor(
        name, name, partial(_lasso, losses), partial(_lasso_attempts, fit)
    )


OTHERS = {one.name: one for one in EVERYONE}
OTHERS["OSQP"] = Competitor("OSQP", "osqp", _fixed, _osqp_attempts)
OTHERS["skglm"] = _lasso_of("skglm", _skglm, "squared", "logistic")
OTHERS["celer"] = _lasso_of("celer", _celer, "squared")


def cpu() -> str:
    """The processor, by its own name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    named = [
        line.split(":")[1].strip() for line in lines if line.startswith("model name")
    ]
    return named[0] if named else platform.processor()


def time_all(some: list[str], who: list[str]) -> None:
    """Time these solvers on these problems; what was timed before stays."""
    for name in some:
        record = records()[name]
        todo = [one for one in who if one not in record.runs]
        if todo and (runs := _runs(get(name), record, todo)):
            write_records(HOME, {name: replace(record, runs=record.runs | runs)})
            print(name, {one: run.to_6 for one, run in runs.items()}, flush=True)


def _runs(problem: LibraryProblem, record: Record, who: list[str]) -> dict[str, Run]:
    found: dict[str, Run | None] = {}
    plain = problem.with_()
    size = record.M * record.n**2
    small = size <= MAX_NUMBERS and any(one in OTHERS for one in who)
    arena = Arena(plain, plain.grams.uncounted(), record.lower) if small else None
    for one in who:
        if one in OTHERS:
            installed = OTHERS[one].installed and arena is not None
            found[one] = theirs(OTHERS[one], arena) if installed and arena else None
        else:
            found[one] = ours(one, plain)
    return {one: run for one, run in found.items() if run is not None}


def there(name: str) -> bool:
    """Whether the data of a problem are here; if not, it says so."""
    try:
        get(name)
    except DataNotFound as error:
        print(f"{name} is left out: {error}")
        return False
    return True


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solve", action="store_true", help="points that are missing")
    parser.add_argument("--prove", action="store_true", help="kernels that are used")
    parser.add_argument("--times", nargs="*", default=[], help="names of solvers")
    parser.add_argument("--only", nargs="*", help="names of problems")
    options = parser.parse_args()
    some = [name for name in options.only or names() if there(name)]
    if options.solve:
        solve_all(some)
    if options.prove:
        prove_all(some)
    time_all(some, options.times)


if __name__ == "__main__":
    main()
