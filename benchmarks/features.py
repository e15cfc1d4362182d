"""Factors with many samples, no n × n matrix: `make bench NAME=features`.

Hinge loss. Every run has a process of its own and all cores, so that its time and its
peak of memory can be told; numbers of gaps are of the certified interval. Compilation
is not timed: a small problem is solved first. The settings and limits were written
before the first judged run:

    small        n = 20,000, M = 20 Nyström kernels of rank 20 on 5 of 20 features,
                 C = 1, with a bias; ℓ1, ℓ2 and group lasso to 1e-6: at most 3 s and 1
                 GB each, the peak of the process with its data
    growth       one kernel, R = 300 random columns, C = 1, to 1e-6, n = 10^4 … 581,012:
                 the time grows as n^1.15 at most (slope of log t over log n)
    counts       the same at n = 10^5, C = 0.01, 1, 100: at most 75 products, and 4 n
                 rows in sums of R × R matrices (6 n at C = 100)
    liblinear    n = 10^5, R = 300, M = 1, no bias, C = 0.01, 1, 100, gaps 1e-3 and
                 1e-6: our time is at most that of LIBLINEAR's dual coordinate descent,
                 one thread on both sides. It gets more and more epochs (1.2 times, at
                 least one more) until its primal value is within the gap above our
                 lower bound; only the last fit is timed, without the time of a fit of
                 no epochs, which converts the data. A fit of more than 20 times our
                 seconds, or 60, is its last one: it did not reach the gap
    pipelines    Covertype, --samples, 5 Gaussians: error and time beside scikit-learn's
                 Nystroem (1000 components) and SVC(linear) on 5000 of them or LinearSVC
                 on all; shown, decides nothing
    covertype    class 2 against the rest, standardized; 5 Gaussians of widths 1, 2, 4,
                 8, 16, spherical, 200 landmarks each, float32; C from 0.01 to 10^4, the
                 one with the smallest error of the ℓ2 solution to 1e-3 on a validation
                 part, found on 20,000 samples with C in units of 1/n. ℓ1 and ℓ2: 1e-3
                 within 120 s, 1e-6 within 240 s, 5 GB in all; the whole MKL at most
                 twice one SVM on the uniform sum at the same gap. Test error: the last
                 20,000 samples of a random order

    python -m benchmarks features --cases small growth --samples 100000
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import harness
from benchmarks.harness import at_most, verdict
from mklopt import GramStack, data, kernels
from mklopt.formulations import FixedWeights, GroupLasso, LpNorm
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.solvers.machines.factory import machine_for
from mklopt.util.tables import plain_table
from mklopt.util.threads import threads

Array = np.ndarray
SIZES = (10_000, 30_000, 100_000, 300_000, 581_012)
SMALL = (20_000, 20, 20)  # n, M, rank
RANK, COUNTED = 300, 100_000
PENALTIES, GAPS = (0.01, 1.0, 100.0), (1e-3, 1e-6)
FORMULATIONS: dict[str, Any] = {
    "ℓ1": LpNorm(1.0), "ℓ2": LpNorm(2.0), "group lasso": GroupLasso()
}  # fmt: skip
WIDTHS, LANDMARKS, HELD_OUT, CHOSEN_ON = (1, 2, 4, 8, 16), 200, 20_000, 20_000
GRID = tuple(10.0**k for k in range(-2, 5))
LIMITS = {1e-3: 120.0, 1e-6: 240.0}
SMALL_SECONDS, SMALL_MB, PEAK_MB, RATIO, POWER = 3.0, 1000.0, 5000.0, 2.0, 1.15
PRODUCTS, ROWS = 75.0, {0.01: 4.0, 1.0: 4.0, 100.0: 6.0}
# Of LIBLINEAR: a tolerance that it does not reach, how epochs grow, and the seconds of
# its longest fit, relative to ours and in all. Its conversion is timed so often.
NEVER, MORE_EPOCHS, MOST_TIMES, MOST_SECONDS, CONVERSIONS = 1e-12, 1.2, 20.0, 60.0, 3
LONGEST = 900.0  # seconds of one run
CASES = ("small", "growth", "counts", "liblinear", "pipelines", "covertype")


@dataclass
class Run:
    """What a process measured; seconds, MB."""

    case: str
    n: int
    C: float = 1.0
    seconds: dict[float, float] = field(default_factory=dict)  # for each gap
    gap: float = np.inf
    status: str = ""
    used: int = 0
    steps: int = 0
    wrong: float = np.nan
    other: float = np.nan  # seconds of the rival; infinite: it did not reach the gap
    epochs: int = 0  # of the rival
    products: float = np.nan
    rows: float = np.nan  # relative to n
    peak_mb: float = 0.0


def measured(function: Callable[..., Run], *arguments: Any) -> Run:
    """A run with its peak of memory."""
    found = function(*arguments)
    found.peak_mb = harness.peak_memory() / 1e6
    return found


# ---- data ------------------------------------------------------------------------


def on_subsets(n: int, M: int, rank: int) -> tuple[GramStack, Array]:
    """Nyström features of Gaussians on 5 of 20 features, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    factors = []
    for _ in range(M):
        Z = X[:, rng.choice(20, 5, replace=False)]
        family = kernels.gaussians([rng.uniform(1.0, 3.0)])
        found: Any = kernels.nystroem(family, rank).fit(Z).grams().factors
        factors.append(found[0])
    f = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
    return GramStack.from_factors(factors), np.sign(f + 0.3 * rng.normal(size=n))


def columns(n: int, rank: int) -> tuple[Array, Array]:
    """Random columns of one kernel with a spectrum that decays, and noisy labels."""
    rng = np.random.default_rng(1)
    L = rng.normal(size=(n, rank)) / np.sqrt(1 + np.arange(rank))
    return L, np.sign(L[:, :5].sum(axis=1) + rng.normal(size=n))


def covertype() -> tuple[Array, Array]:
    """Covertype in a random order, standardized; class 2 against the rest."""
    found = data.load("covtype")
    order = np.random.default_rng(0).permutation(len(found.y))
    X = np.asarray(found.X, float)[order]
    spread = np.std(X, axis=0)
    X = (X - np.mean(X, axis=0)) / np.where(spread > 0, spread, 1.0)
    return X, np.where(found.y[order] == 1, 1.0, -1.0)  # classes count from 0


def fitted_to(X: Array) -> Any:
    """The five Gaussians."""
    family = kernels.nystroem(kernels.gaussians(list(WIDTHS)), LANDMARKS)
    return family.fit(X, "spherical")


def warmed_up() -> None:
    """Compile everything on a small problem."""
    rng = np.random.default_rng(2)
    for dtype in ("float64", "float32"):
        factors = [rng.normal(size=(9000, 4)) for _ in range(2)]
        grams = GramStack.from_factors(factors, dtype=dtype)
        y = np.sign(factors[0][:, 0] + rng.normal(size=9000))
        for formulation in (LpNorm(1.0), LpNorm(2.0), FixedWeights((1.0, 1.0))):
            for bias in (True, False):
                solve(Problem(grams, y, "hinge", formulation, 1.0, bias), tol=1e-4)


# ---- runs ------------------------------------------------------------------------


def timed_solve(found: Run, problem: Problem, gaps: tuple[float, ...]) -> Any:
    """Solve to the smallest gap; the time to each of them comes from the trace."""
    begun = time.perf_counter()
    result = solve(problem, tol=min(gaps), time_limit=LONGEST)
    whole = time.perf_counter() - begun
    reached = result.trace.to_frame()
    for gap in gaps:
        rows = reached[reached["gap"] <= gap]
        found.seconds[gap] = float(rows["seconds"].iloc[0]) if len(rows) else np.inf
    found.seconds[min(gaps)] = whole if result.status == "converged" else np.inf
    found.gap, found.status = result.certificate.width, result.status
    found.used = int(np.count_nonzero(result.weights))
    found.steps = int(result.trace.last("svm_solves"))
    return result


def small(name: str, size: tuple[int, int, int] = SMALL) -> Run:
    """One formulation on n = 20,000, M = 20, rank 20."""
    warmed_up()
    grams, y = on_subsets(*size)
    found = Run(name, size[0])
    timed_solve(found, Problem(grams, y, "hinge", FORMULATIONS[name]), (1e-6,))
    return found


def one_kernel(n: int, C: float, rank: int = RANK) -> Run:
    """One SVM in feature space: time, products and rows."""
    warmed_up()
    L, y = columns(n, rank)
    problem = Problem(GramStack.from_factors([L]), y, "hinge", LpNorm(2.0), C)
    found = Run("one kernel", n, C)
    timed_solve(found, problem, (1e-6,))
    machine: Any = machine_for(problem)
    machine.tol = 1e-6 * problem.dual_loss(machine.solve(np.ones(1)))
    machine.solve(np.ones(1))
    found.products, found.rows = machine.products, machine.rows / n
    return found


def against_liblinear(n: int, C: float, gap: float, rank: int = RANK) -> Run:
    """Ours and LIBLINEAR's time to the same gap."""
    warmed_up()
    L, y = columns(n, rank)
    grams = GramStack.from_factors([L])
    problem = Problem(grams, y, "hinge", LpNorm(2.0), C, bias=False)
    found = Run("liblinear", n, C)
    with threads(1):
        timed_solve(found, problem, (gap,))
        lower = solve(problem, tol=1e-3 * gap + 1e-9).certificate.lower
        most = min(MOST_TIMES * found.seconds[gap], MOST_SECONDS)
        found.other, found.epochs = liblinear_time(L, y, C, lower, gap, most)
    if np.isinf(found.other):
        found.status += ", rival did not reach it"
    return found


def liblinear_time(
    L: Array, y: Array, C: float, lower: float, gap: float, most: float
) -> tuple[float, int]:
    """Seconds and epochs of the shortest fit that is within the gap of our bound."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    def fitted(epochs: int) -> tuple[Array, float]:
        model = LinearSVC(
            C=C, loss="hinge", dual=True, fit_intercept=False, tol=NEVER,
            max_iter=epochs, random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is meant to end
            _, took = harness.timed(partial(model.fit, L, y))
        return model.coef_[0], took

    conversion = min(fitted(0)[1] for _ in range(CONVERSIONS))
    took, epochs = 0.0, 0
    while took <= most:
        epochs = max(epochs + 1, int(MORE_EPOCHS * epochs))
        w, seconds = fitted(epochs)
        took = seconds - conversion
        primal = 0.5 * w @ w + C * np.sum(np.maximum(0.0, 1 - y * (L @ w)))
        if primal - lower <= gap * primal:
            return took, epochs
    return np.inf, epochs


def pipelines(n: int) -> Run:
    """Error and seconds of scikit-learn's Nystroem with a linear SVM, and ours."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    warmed_up()
    X, y = covertype()
    train, test = slice(0, n), slice(len(y) - HELD_OUT, None)
    found = Run("pipelines", n, 1.0)
    model = make_pipeline(
        Nystroem(gamma=1 / 32, n_components=1000, random_state=0),
        LinearSVC(C=1.0, loss="hinge", dual=True, max_iter=1000),
    )
    _, found.other = harness.timed(lambda: model.fit(X[train], y[train]))
    rival = float(np.mean(model.predict(X[test]) != y[test]))
    begun, fitted = time.perf_counter(), fitted_to(X[train])
    problem = Problem(fitted.grams(dtype="float32"), y[train], "hinge", LpNorm(2.0))
    result = timed_solve(found, problem, (1e-3,))
    found.seconds[1e-3] = time.perf_counter() - begun
    found.wrong = errors(result, fitted, X[test], y[test])
    found.status = f"their error {100 * rival:.1f} %"
    return found


def errors(result: Any, fitted: Any, X: Array, y: Array) -> float:
    """The error on test points, in parts."""
    f = [result.decision(fitted.cross_features(X[i : i + 5000]))
         for i in range(0, len(X), 5000)]  # fmt: skip
    return float(np.mean(np.sign(np.concatenate(f)) != y))


def chosen_penalty() -> float:
    """n C with the smallest validation error, on CHOSEN_ON samples."""
    X, y = covertype()
    train, held = slice(0, CHOSEN_ON), slice(CHOSEN_ON, 2 * CHOSEN_ON)
    fitted, best = fitted_to(X[train]), (np.inf, 1.0)
    for C in GRID:
        problem = Problem(fitted.grams(), y[train], "hinge", LpNorm(2.0), C)
        result = solve(problem, tol=1e-3, time_limit=LONGEST)
        best = min(best, (errors(result, fitted, X[held], y[held]), C))
    return CHOSEN_ON * best[1]


def on_covertype(name: str, n: int, C: float) -> Run:
    """One formulation, or the SVM on the uniform sum, to both gaps."""
    warmed_up()
    X, y = covertype()
    train, test = slice(0, n), slice(len(y) - HELD_OUT, None)
    fitted = fitted_to(X[train])
    held = X[test].copy()
    del X
    grams, formulation = fitted.grams(dtype="float32"), FORMULATIONS.get(name)
    if formulation is None:
        return uniform(Run(name, n, C), grams, y[train])
    found = Run(name, n, C)
    result = timed_solve(found, Problem(grams, y[train], "hinge", formulation, C), GAPS)
    found.wrong = errors(result, fitted, held, y[test])
    return found


def uniform(found: Run, grams: GramStack, y: Array) -> Run:
    """The SVM on the mean of the kernels: one kernel with all columns, and C/M."""
    panel = grams.panel()
    one = GramStack.from_factors(panel.F, ranks=[panel.R], dtype="float32")
    problem = Problem(one, y, "hinge", LpNorm(2.0), found.C / grams.M)
    timed_solve(found, problem, GAPS)
    return found


# ---- tables and limits -------------------------------------------------------------


def table(title: str, rows: list[Run]) -> Table:
    """One line for each run."""
    names = ("n", "C", *(f"to {g:g}, s" for g in GAPS), "rival s", "gap", "kernels",
             "steps", "products", "rows/n", "errors %", "peak MB")  # fmt: skip
    out = plain_table(title, ("case", "status"), names)
    for r in rows:
        times = [f"{r.seconds[g]:.2f}" if g in r.seconds else "" for g in GAPS]
        counts = (f"{r.used}", f"{r.steps}", shown(r.products), shown(r.rows))
        end = (shown(100 * r.wrong), f"{r.peak_mb:.0f}")
        first = (f"{r.n:,}", f"{r.C:g}", *times, shown(r.other), f"{r.gap:.1e}")
        out.add_row(r.case, r.status, *first, *counts, *end)
    return out


def theirs(found: Run) -> str:
    """Seconds and epochs of the rival."""
    if np.isinf(found.other):
        return f"not reached in {found.epochs} epochs"
    return f"{found.other:.2f} s ({found.epochs} epochs)"


def shown(number: float) -> str:
    """A number, or nothing if there is none."""
    return "" if np.isnan(number) else f"{number:.2f}"


def power(rows: list[Run]) -> float:
    """The slope of log t over log n."""
    sizes = np.log([r.n for r in rows])
    return float(np.polyfit(sizes, np.log([r.seconds[1e-6] for r in rows]), 1)[0])


def judged(case: str, rows: list[Run]) -> list[str]:
    """The lines that say which limits are kept."""
    lines: list[str] = []
    if case == "growth" and len(rows) > 1:
        lines.append(at_most("growth: the power of n", power(rows), POWER))
    for r in rows:
        what = f"{case}, {r.case}, n = {r.n:,}, C = {r.C:g}"
        if case == "small":
            lines.append(at_most(f"{what}: seconds", r.seconds[1e-6], SMALL_SECONDS))
            lines.append(at_most(f"{what}: MB", r.peak_mb, SMALL_MB))
        if case == "counts":
            lines.append(at_most(f"{what}: products", r.products, PRODUCTS))
            lines.append(at_most(f"{what}: rows/n", r.rows, ROWS[r.C]))
        if case == "liblinear":
            gap, mine = next(iter(r.seconds.items()))
            line = f"{what}, gap {gap:g}: {mine:.2f} s ≤ {theirs(r)}"
            lines.append(verdict(mine <= r.other, line))
    return lines + (judged_covertype(rows) if case == "covertype" else [])


def judged_covertype(rows: list[Run]) -> list[str]:
    """Times, memory, and the ratio to the last run: one SVM."""
    lines, svm = [], rows[-1]
    for r in rows[:-1]:
        for gap, most in LIMITS.items():
            what = f"covertype, {r.case}, {gap:g}"
            ratio = r.seconds[gap] / svm.seconds[gap]
            lines.append(at_most(f"{what}: seconds", r.seconds[gap], most))
            lines.append(at_most(f"{what}: time relative to one SVM", ratio, RATIO))
        lines.append(at_most(f"covertype, {r.case}: MB", r.peak_mb, PEAK_MB))
    return lines


def runs(case: str, n: int) -> list[Run]:
    """All runs of a case."""
    few = min(n, COUNTED)
    each: list[tuple[Any, ...]] = [(pipelines, few)]
    if case == "small":
        each = [(small, name) for name in FORMULATIONS]
    elif case == "growth":
        each = [(one_kernel, size, 1.0) for size in SIZES if size <= n]
    elif case == "counts":
        each = [(one_kernel, few, C) for C in PENALTIES]
    elif case == "liblinear":
        each = [(against_liblinear, few, C, gap) for C in PENALTIES for gap in GAPS]
    elif case == "covertype":
        n = min(n, SIZES[-1] - HELD_OUT)
        C = chosen_penalty() / n
        each = [(on_covertype, name, n, C) for name in ("ℓ1", "ℓ2", "one SVM")]
    return [harness.alone(measured, *run) for run in each]


@harness.needs_data
def main() -> None:
    """All cases, or those that are named."""
    parser = harness.parser(__doc__)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=CASES)
    parser.add_argument("--samples", type=harness.positive, default=SIZES[-1])
    given = parser.parse_args()
    if {"pipelines", "covertype"} & set(given.cases):
        data.load("covtype")  # missing data are noticed here, not in a child
    view, tables, lines = harness.console(170), [], []
    for case in given.cases:
        rows = runs(case, given.samples)
        tables.append(table(case, rows))
        lines += judged(case, rows)
        view.print(tables[-1])
    harness.report(view, "features", __doc__, tables, lines)


if __name__ == "__main__":
    main()
