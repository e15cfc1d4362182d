"""What the abstract and section 5 promise, measured: times, p, kernels, samples.

One split of the data and one order of samples for each seed. Seconds are CPU seconds
of steps alone: objectives and test errors stop the clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mklopt import Problem, one_vs_rest, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import BlockL1, BlockNorm, LpNorm
from mklopt.solvers.steps.epochs import UPDATES, Descent

from . import flowers, stand_ins
from .settings import descent
from .stand_ins import Task
from .studies import KEY, MOST, PS, first_stage, geometric, printed_radius

Array = NDArray[np.float64]
Row = dict[str, Any]
C = 100.0
NEAR = 1.01  # times the upper end of f*: what counts as solved
FLOWERS, PYRAMID = "7 kernels", "3 levels of PHOG"
VIEWS, LETTER = "6 views of digits", "39 subsets of letter"


@dataclass
class Clock:
    """CPU seconds while it runs."""

    seconds: float = 0.0

    def __enter__(self) -> None:
        self.begun = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self.begun


def warmed_up(problem: Problem) -> None:
    """Compile what a run needs before a clock starts."""
    run = descent(problem)
    run.epoch(eta=1.0)
    run.begin()
    run.epoch(R=1.0)


def task_of(scale: Scale, name: str, each: int, tests: int) -> Task:
    """A data set with so many images of each flower, or as many samples of others."""
    if name in (FLOWERS, PYRAMID):
        make = flowers.flowers if name == FLOWERS else flowers.pyramid
        return make(scale, each, tests, scale.seed)
    if name == VIEWS:
        return stand_ins.views(scale, scale.of(100, 300, 1000), scale.seed)
    return stand_ins.many(scale, scale.of(150, 390, 1040), seed=scale.seed)


def until(run: Descent, clock: Clock, epoch: int, R: float) -> None:
    """Stage 2 up to an epoch, on the clock."""
    with clock:
        while run.stage < epoch:
            run.epoch(R=R)


# ---- how long each stage takes ---------------------------------------------------


def _stages_parts(scale: Scale) -> list[Row]:
    ps = scale.of((1.05, 2.0), (1.01, 1.1, 1.5, 2.0), PS)
    return [{"data": data, "p": p} for data in (FLOWERS, PYRAMID) for p in ps]


@study(KEY, parts=_stages_parts, timed=True)
def stages(scale: Scale, data: str, p: float) -> Row:
    """Time of the online stage, and of stage 2 to 1.01 f*; errors of both, and of w*.

    40 flowers of each class, as in the paper. A run that is not there after 5000 epochs
    has `reached` False and the seconds that it took.
    """
    task = task_of(scale, data, scale.of(10, 40, 40), scale.of(20, 40, 40))
    problem = task.problem(p, C)
    warmed_up(problem)
    best = solve(problem, tol=3e-3, max_iter=400).certificate
    run, online, later = descent(problem, scale.seed), Clock(), Clock()
    with online:
        first_stage(run, 1)
    row = {"data": data, "p": p, "first_error": task.error_of(run)}
    with online:
        first_stage(run, MOST)
    row |= _shown(task, run, "online", online)
    row |= {"separated": run.separated, "updates": float(run.tally[UPDATES])}
    R = printed_radius(run)
    run.begin()
    for epoch in geometric(scale.of(300, 5000, 5000), 60):
        until(run, later, epoch, R)
        if run.objective <= NEAR * best.upper:
            break
    row |= _shown(task, run, "stage_2", later)
    row |= {"reached": run.objective <= NEAR * best.upper}
    row |= {"best_error": task.error(best.expansion)}
    return row | {"lower": best.lower, "upper": best.upper}


def _shown(task: Task, run: Descent, stage: str, clock: Clock) -> Row:
    return {
        f"seconds_{stage}": clock.seconds,
        f"{stage}_epochs": run.stage,
        f"{stage}_error": task.error_of(run),
        f"{stage}_objective": run.objective,
    }


# ---- which p ---------------------------------------------------------------------


def _p_parts(scale: Scale) -> list[Row]:
    sets = (FLOWERS, PYRAMID, VIEWS, LETTER)
    return [{"data": data, "p": p} for data in sets for p in scale.of(PS[::3], PS, PS)]


@study(KEY, parts=_p_parts)
def choice_of_p(scale: Scale, data: str, p: float) -> Row:
    """Errors at the end of OBSCURE for the paper's p, on one half of the test points
    and on the other: the first may choose p, the second judges it."""
    task = task_of(scale, data, scale.of(10, 40, 40), scale.of(20, 40, 40))
    run = descent(task.problem(p, C), scale.seed)
    first_stage(run, MOST)
    R = printed_radius(run)
    run.begin()
    until(run, Clock(), scale.of(20, 100, 300), R)
    half = np.random.default_rng(scale.seed).permutation(len(task.truth)) % 2 == 0
    wrong = np.argmax(_decisions(task, run), axis=1) != task.truth
    first, second = (100 * float(np.mean(wrong[part])) for part in (half, ~half))
    return {"data": data, "p": p, "chosen_by": first, "judged_by": second}


def _decisions(task: Task, run: Descent) -> Array:
    return np.asarray(np.tensordot(run.omega, task.cross, axes=1) @ run.B)


# ---- more kernels ----------------------------------------------------------------


def _kernels_parts(scale: Scale) -> list[Row]:
    letter = scale.of((1, 2, 39), (1, 2, 4, 8, 16, 39), (1, 2, 4, 8, 16, 39))
    flower = scale.of((1, 4), (1, 2, 4, 7), (1, 2, 4, 7))
    found = [{"data": LETTER, "F": F} for F in letter]
    return found + [{"data": FLOWERS, "F": F} for F in flower]


@study(KEY, parts=_kernels_parts)
def kernel_counts(scale: Scale, data: str, F: int) -> list[Row]:
    """Stage 1 (epoch 0) and stage 2 for the first F kernels in a random order, p =
    1.01."""
    task = task_of(scale, data, scale.of(10, 20, 40), 20)
    order = scale.rng("kernels", data).permutation(task.grams.M)
    task = task.subset(order[:F])
    run = descent(task.problem(1.01, C), scale.seed)
    first_stage(run, MOST)
    R = printed_radius(run)
    about = {"data": data, "F": F, "separated": run.separated, "R": R}
    about |= {"updates": float(run.tally[UPDATES])}
    rows = [{**about, "epochs": 0, "error": task.error_of(run)}]
    run.begin()
    for epoch in geometric(scale.of(8, 64, 256), 7):
        until(run, Clock(), epoch, R)
        rows.append({**about, "epochs": epoch, "error": task.error_of(run)})
    return rows


# ---- more samples ----------------------------------------------------------------

FIXED, BY_C = "λ fixed", "λ = 1/(CN)"


def _time_parts(scale: Scale) -> list[Row]:
    sizes = scale.of((100, 200), (200, 400, 800), (500, 1000, 2000))
    return [{"n": n, "rule": rule} for n in sizes for rule in (FIXED, BY_C)]


@study(KEY, parts=_time_parts, timed=True)
def training_time(scale: Scale, n: int, rule: str) -> Row:
    """Time and steps of both stages until the objective is 1.1 f*, for more and more
    digits: λ = 0.01, and λ = 1/(CN) with C = 1 as in the experiments of the paper."""
    problem = stand_ins.images(scale, n, scale.seed).problem(
        1.25, 100.0 / n if rule == FIXED else 1.0
    )
    best = solve(problem, tol=1e-2, max_iter=300).certificate
    warmed_up(problem)
    run, clock = descent(problem, scale.seed), Clock()
    with clock:
        first_stage(run, 5)
    R, first = printed_radius(run), run.epochs
    run.begin()
    for epoch in geometric(scale.of(300, 3000, 3000), 80):
        until(run, clock, epoch, R)
        if run.objective <= 1.1 * best.upper:
            break
    return {
        "n": n,
        "rule": rule,
        "seconds": clock.seconds,
        "steps": (first + run.stage) * n,
        "reached": run.objective <= 1.1 * best.upper,
        "left": run.objective / best.upper - 1,
        "gap": best.relative_gap,
    }


# ---- rivals ----------------------------------------------------------------------

PEN = "4 descriptions of digits"


def _rival_parts(scale: Scale) -> list[Row]:
    who = ("descents", "MC-MKL", "SILP", "SimpleMKL", "p-norm MKL")
    return [{"data": data, "who": name} for data in (FLOWERS, PEN) for name in who]


@study(KEY, parts=_rival_parts, timed=True)
def rivals(scale: Scale, data: str, who: str) -> list[Row]:
    """CPU time and test error of OBSCURE and Pegasos-MKL along their runs, and of the
    paper's rivals at a gap of 0.01; p = 1.05, C = 100.

    SILP, SimpleMKL and p-norm MKL: one class against the rest, with a bias. MC-MKL:
    SILP with the multi-class loss.
    """
    if data == PEN:
        task = stand_ins.pen(scale, scale.of(50, 500, 3000), scale.seed)
    else:
        task = task_of(scale, data, scale.of(10, 20, 60), scale.of(20, 40, 20))
    about = {"data": data, "n": task.grams.n}
    if who == "descents":
        return [{**about, **row} for row in _descents(task, scale)]
    return [{**about, "method": who, "epochs": 0, **_batch(task, who)}]


def _descents(task: Task, scale: Scale) -> Iterator[Row]:
    """OBSCURE (epoch 0: the online stage), and steps of length 1/(λt) from w = 0."""
    problem = task.problem(1.05, C)
    warmed_up(problem)
    best = solve(problem, tol=3e-3, max_iter=400).certificate
    last = {"upper": best.upper, "best_error": task.error(best.expansion)}
    for name in ("OBSCURE", "Pegasos-MKL"):
        run, clock, R = descent(problem, scale.seed), Clock(), np.inf
        if name == "OBSCURE":
            with clock:
                first_stage(run, 25)
            R = printed_radius(run)
            yield {"method": name, "epochs": 0, **_now(task, run, clock), **last}
            run.begin()
        for epoch in geometric(scale.of(50, 1000, 1000), 16):
            until(run, clock, epoch, R)
            yield {"method": name, "epochs": epoch, **_now(task, run, clock), **last}


def _now(task: Task, run: Descent, clock: Clock) -> Row:
    found = {"seconds": clock.seconds, "error": task.error_of(run)}
    return {**found, "objective": run.objective, "reached": True}


def _batch(task: Task, who: str) -> Row:
    """A rival from the start to the gap 0.01."""
    forms = {
        "SILP": ("silp", BlockL1()),
        "SimpleMKL": ("simple", BlockL1()),
        "p-norm MKL": ("analytic", LpNorm(1.05 / (2 - 1.05))),
        "MC-MKL": ("silp", BlockL1()),
    }
    solver, form = forms[who]
    problem, clock = task.problem(2.0, C).with_(formulation=form), Clock()
    if who == "MC-MKL":
        with clock:
            found = solve(problem, solver, tol=0.01, max_iter=300)
        error, reached = task.error(found.certificate.expansion), found.converged
    else:
        with clock:
            each = one_vs_rest(problem.with_(bias=True), solver, tol=0.01, max_iter=300)
        error, reached = task.missed(each.predict(task.cross)), each.converged
    return {"seconds": clock.seconds, "error": error, "reached": reached}


# ---- one class against the rest --------------------------------------------------


def _joint_parts(scale: Scale) -> list[Row]:
    return [{"each": each} for each in scale.of((5, 15), (5, 15), (5, 15, 30))]


@study(KEY, parts=_joint_parts)
def joint_or_apart(scale: Scale, each: int) -> list[Row]:
    """Test errors of the multi-class loss and of one class against the rest: letter, 39
    kernels, so many samples of each class, sparse and p = 1.01."""
    task = stand_ins.many(scale, each * scale.of(10, 26, 26), seed=scale.seed)
    lp, rows = LpNorm(1.01 / (2 - 1.01)), []
    joint = solve(task.problem(1.01, C), "analytic", tol=0.01, max_iter=200)
    rows.append(("joint", task.error(joint.certificate.expansion)))
    for name, solver, form in (("SILP", "silp", BlockL1()), ("p-norm", "analytic", lp)):
        problem = task.problem(2.0, C).with_(formulation=form, bias=True)
        found = one_vs_rest(problem, solver, tol=0.01, max_iter=300)
        rows.append((name, task.missed(found.predict(task.cross))))
    total = task.problem(2.0, C).with_(formulation=BlockNorm(2.0), bias=True)
    found = one_vs_rest(total, "analytic", tol=0.01, max_iter=300)
    rows.append(("sum", task.missed(found.predict(task.cross))))
    return [{"each": each, "method": name, "error": error} for name, error in rows]
