"""What is measured: runs of OBSCURE and of what the paper compares it with.

C = 1/(λN) throughout, and values are canonical, C Σ ℓ + ½‖w‖²: the paper's times 1/λ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mklopt import Problem, reference, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import BlockL1, BlockNorm
from mklopt.formulations.norms import norm
from mklopt.judge.rates import start_value
from mklopt.reference.contract_problems import load
from mklopt.solvers import Unsupported
from mklopt.solvers.obscure import published_exponent
from mklopt.solvers.steps.epochs import SIZE, UPDATES, Descent

from . import settings, stand_ins
from .settings import descent, means, steepest

Array = np.ndarray
KEY = "orabona2012"
PS = (1.01, 1.05, 1.1, 1.25, 1.5, 1.75, 2.0)  # the paper's
LIPSCHITZ = ("hinge", "logistic", "multiclass_hinge", "multinomial", "eps_insensitive",
             "huber", "quantile")  # fmt: skip
MOST = 300  # epochs after which stage 1 is given up


def geometric(most: int, count: int = 10) -> list[int]:
    """Some epochs from 1 to most."""
    return sorted({int(e) for e in np.rint(np.geomspace(1, most, count))})


def first_stage(run: Descent, most: int, eta: float | None = None) -> int:
    """Epochs of stage 1 until no sample pays a loss, at most so many."""
    step = run.problem.grams.M ** (-2 / run.q) if eta is None else eta
    while not run.separated and run.epochs < most:
        run.epoch(eta=step)
    return run.epochs


def printed_radius(run: Descent) -> float:
    """R of Algorithm 1: R² = ‖w‖² + 2/(λN) Σ ℓ, twice the objective."""
    return float(np.sqrt(2 * run.objective))


# ---- the lemmas and theorems -----------------------------------------------------


@study(KEY)
def regret(scale: Scale) -> pd.DataFrame:
    """Lemma 2 along runs of stage 2: the regret against w*, and its bound."""
    grams, rows = stand_ins.toy(60, seed=scale.seed), []
    for p in (1.1, 1.5, 2.0):
        for C in (0.1, 10.0, 1000.0):
            problem = stand_ins.three(grams, p, C)
            best = solve(problem, tol=1e-6).certificate
            f = np.sum(grams.apply(best.expansion), axis=0)
            run = descent(problem, scale.seed)
            run.epoch(eta=1.0)
            R = printed_radius(run)
            run.begin()
            for epoch in range(1, scale.of(20, 50, 400) + 1):
                run.epoch(R=R)
                lost = settings.regret(run, f, problem.formulation.value(best.norms))
                rows.append((p, C, epoch, lost, settings.regret_bound(run, R)))
    return pd.DataFrame(rows, columns=["p", "C", "epoch", "regret", "bound"])


@study(KEY)
def expectation(scale: Scale) -> pd.DataFrame:
    """Theorem 3: the objective at the mean of w_1 … w_T and at w_T, over seeds."""
    grams, rows = stand_ins.toy(60, seed=scale.seed), []
    epochs, seeds = geometric(scale.of(64, 256, 2048), 8), scale.of(8, 20, 40)
    for p, C in ((1.1, 0.01), (1.5, 0.01), (2.0, 0.01), (1.5, 1.0), (1.5, 100.0)):
        problem = stand_ins.three(grams, p, C)
        best = solve(problem, tol=1e-8).certificate
        run = descent(problem)
        T = np.array(epochs) * grams.n
        known = (run.q, run.lam, run.radius, steepest(run))
        bound = settings.theorem_3(T, *known) / run.lam
        for which in ("average", "last"):
            values = means(problem, epochs, seeds, which)
            for (seed, place), value in np.ndenumerate(values):
                at = (p, C, which, seed, int(T[place]), value, bound[place])
                rows.append((*at, best.lower, best.upper, start_value(problem)))
    names = ["p", "C", "iterate", "seed", "T", "value", "bound"]
    return pd.DataFrame(rows, columns=[*names, "lower", "upper", "start"])


@study(KEY)
def separable(scale: Scale) -> pd.DataFrame:
    """Theorem 4 on classes that are apart: updates and R of stage 1, and bounds."""
    grams, rows = stand_ins.toy(scale.of(30, 60, 90), 5.0, seed=scale.seed), []
    for p in (1.1, 1.5, 2.0):
        problem = stand_ins.three(grams, p, 1.0)
        least, most = reference.hard_margin(problem).norm
        for eta in (0.1, 0.3, 1.0, 3.0, 10.0):
            for seed in range(scale.of(3, 10, 30)):
                run = descent(problem, seed)
                epochs = first_stage(run, 10 * MOST, eta)
                hard = 2 / eta + steepest(run) ** 2
                bounds = (run.q * hard * least**2, eta * hard * least)
                found = (run.tally[UPDATES], printed_radius(run), run.separated)
                rows.append((p, eta, seed, least, most, epochs, *found, *bounds))
    names = ["p", "eta", "seed", "least", "most", "epochs", "updates", "R"]
    return pd.DataFrame(rows, columns=[*names, "separated", "most_updates", "most_R"])


@study(KEY)
def mistakes(scale: Scale) -> pd.DataFrame:
    """Theorem 4 on classes that overlap: updates against those of several w*(C)."""
    grams, rows = stand_ins.toy(60, 1.0, seed=scale.seed), []
    for p in (1.1, 1.5, 2.0):
        problem = stand_ins.three(grams, p, 1.0)
        rivals = [solve(problem.with_(C=C), tol=1e-6) for C in (0.01, 0.1, 1.0)]
        for eta in (0.1, 1.0, 10.0):
            run = descent(problem, scale.seed)
            for epoch in range(1, scale.of(20, 40, 200) + 1):
                run.epoch(eta=eta)
                rows += [(p, eta, epoch, *_rivalry(run, r, eta)) for r in rivals]
    names = ["p", "eta", "epoch", "C", "updates", "bound"]
    return pd.DataFrame(rows, columns=names)


def _rivalry(run: Descent, rival: Any, eta: float) -> tuple[float, float, float]:
    """C of the rival, the updates so far, and what theorem 4 allows."""
    y, found = run.problem.y, rival.certificate
    often = np.abs(run.G[np.arange(len(y)), y])  # updates at each sample
    f = np.sum(run.problem.grams.apply(found.expansion), axis=0)
    paid = float(often @ run.problem.loss.value(f, y))
    size = norm(found.norms, run.p) * np.sqrt(run.q * (2 / eta + steepest(run) ** 2))
    bound = size**2 + paid + size * np.sqrt(paid)
    return float(rival.problem.costs[0]), float(np.sum(often)), bound


@study(KEY)
def radii(scale: Scale) -> pd.DataFrame:
    """R after each epoch of stage 1, with and without its loss, beside ‖w*‖."""
    task, rows = stand_ins.views(scale, scale.of(100, 300, 1000), scale.seed), []
    for p in (1.05, 1.25, 2.0):
        for C in scale.of(
            (1.0, 100.0), (0.1, 1.0, 100.0), (0.1, 1.0, 10.0, 100.0, 1e3)
        ):
            problem = task.problem(p, C)
            best = solve(problem, tol=1e-8).certificate
            # ½‖w − w*‖² (p − 1) is at most what the objective is off.
            off = np.sqrt(2 * max(best.upper - best.lower, 0.0) / (p - 1))
            size = norm(best.norms, p)
            run = descent(problem, scale.seed)
            for epoch in range(1, 9):
                run.epoch(eta=problem.grams.M ** (-2 / run.q))
                found = (printed_radius(run), float(run.tally[SIZE]))
                rows.append((p, C, epoch, *found, size - off, size + off))
    names = ["p", "C", "epoch", "R", "norm", "least", "most"]
    return pd.DataFrame(rows, columns=names)


@study(KEY)
def noise(scale: Scale) -> pd.DataFrame:
    """Four kernels that matter among more and more that do not, λ fixed: what is left
    of the objective after so many steps, for q = 2 ln F, and for p = 2."""
    rows, n = [], 60
    for F in scale.of((4, 16, 64), (4, 16, 64, 256), (4, 16, 64, 256, 1024)):
        grams = stand_ins.toy(n, 2.0, F - 4, scale.seed)
        for name, p in (("2 ln F", published_exponent(F)), ("p = 2", 2.0)):
            problem = stand_ins.three(grams, p, 0.1)
            best = solve(problem, tol=1e-7).certificate
            run = descent(problem)
            epochs = geometric(scale.of(16, 64, 256), 5)
            values = means(problem, epochs, scale.of(5, 10, 20))
            T = np.array(epochs) * n
            c = run.q * steepest(run) ** 2
            for (seed, place), value in np.ndenumerate(values):
                at = (F, name, p, seed, int(T[place]), run.lam * value, c)
                rows.append((*at, run.lam * best.lower, run.lam * best.upper))
    names = ["F", "choice", "p", "seed", "T", "value", "qL2", "lower", "upper"]
    return pd.DataFrame(rows, columns=names)


@study(KEY)
def nested(scale: Scale) -> pd.DataFrame:
    """The least norm of a separator for the first F of some kernels, certified."""
    n, rows = scale.of(30, 45, 60), []
    grams = stand_ins.toy(n, 5.0, 12, scale.seed)
    for p in (1.1, 1.5, 2.0):
        for F in (1, 2, 4, 8, 16):
            order = np.r_[3, 0:3, 4:16][:F]  # the kernel that separates comes first
            problem = stand_ins.three(grams.subset(order), p, 1.0)
            least, most = reference.hard_margin(problem).norm
            rows.append((p, F, least, most))
    return pd.DataFrame(rows, columns=["p", "F", "least", "most"])


@study(KEY)
def sparsity(scale: Scale) -> pd.DataFrame:
    """Four kernels that matter among sixteen, and p from 2 to 1: certified optima."""
    grams = stand_ins.toy(scale.of(60, 150, 300), 2.0, 12, scale.seed)
    rows = []
    for p in (1.0, *PS):
        problem = stand_ins.three(grams, max(p, 1.01), 1.0)
        if p == 1:
            problem = problem.with_(formulation=BlockL1())
        found = solve(problem, tol=1e-6)
        u, best = found.certificate.norms, found.certificate
        kept = int(np.sum(found.weights > 1e-3 * np.max(found.weights)))
        rows.append((p, np.sum(u) ** 2 / np.sum(u**2), kept, best.lower, best.upper))
    return pd.DataFrame(rows, columns=["p", "used", "kept", "lower", "upper"])


# ---- figure 1 --------------------------------------------------------------------


@study(KEY)
def synthetic_weights(scale: Scale) -> pd.DataFrame:
    """Kernel weights of the problem of section 5.2: one by one, jointly, by OBSCURE."""
    problem = settings.synthetic(scale.of(90, 300, 300), seed=scale.seed)
    together, apart = settings.solved(problem)
    shares = {f"class {c + 1} against the rest": w for c, w in enumerate(apart.weights)}
    shares["all classes at once"] = together.weights
    near = problem.with_(formulation=BlockNorm(1.0001))
    run = solve(near, "obscure", T1=5, T2=scale.of(200, 400, 2000), tol=0.0)
    shares["OBSCURE, p = 1.0001"] = run.weights
    rows = [
        (name, m + 1, share)
        for name, w in shares.items()
        for m, share in enumerate(w / np.sum(w))
    ]
    return pd.DataFrame(rows, columns=["machine", "kernel", "share"])


def _starts_parts(scale: Scale) -> list[dict[str, float]]:
    return [{"p": p, "C": C} for p, C in ((1.05, 100.0), (1.25, 100.0), (1.25, 1.0))]


@study(KEY, parts=_starts_parts)
def starts(scale: Scale, p: float, C: float) -> list[dict[str, Any]]:
    """Stage 2 from the end of stage 1 and from w = 0, in balls of several R."""
    task, rows = stand_ins.views(scale, scale.of(100, 300, 1000), scale.seed), []
    problem = task.problem(p, C)
    best = solve(problem, tol=1e-6).certificate
    warm = descent(problem, scale.seed)
    first_stage(warm, scale.of(10, 25, 100))
    R = printed_radius(warm)
    cases = [("stage 1", warm, "of stage 1", R)]
    balls = {"of stage 1": R, "‖w*‖": norm(best.norms, p), "∞": np.inf}
    for ball, r in balls.items():
        cases.append(("0", descent(problem, scale.seed), ball, r))
    about = {"p": p, "C": C, "lower": best.lower, "upper": best.upper}
    for start, run, ball, r in cases:
        for epoch, value in _later(run, r, geometric(scale.of(40, 100, 400), 10)):
            row = {"start": start, "ball": ball, "epoch": epoch, "objective": value}
            rows.append({**about, **row})
    return rows


def _later(run: Descent, R: float, epochs: list[int]) -> Iterator[tuple[int, float]]:
    """The objective before and after so many epochs of stage 2."""
    yield 0, run.objective
    run.begin()
    for epoch in epochs:
        while run.stage < epoch:
            run.epoch(R=R)
        yield epoch, run.objective


@study(KEY)
def step_cost(scale: Scale) -> pd.DataFrame:
    """Time of a step of stage 2, in a ball so small that every step is an update."""
    rows = []
    for n in scale.of((300, 600, 1200), (500, 1000, 2000), (500, 1000, 2000, 4000)):
        task = stand_ins.images(scale, n, scale.seed)
        for k in (3, 10):  # classes: those beyond are joined with the last one
            y = np.minimum(task.y, k - 1)
            problem = task.problem(1.25, 100.0).with_(y=y)
            took = settings.seconds_of(problem, 1e-3, scale.of(4000, 6000, 20000))
            rows.append((n, k, took))
    return pd.DataFrame(rows, columns=["n", "k", "seconds_per_step"])


@study(KEY)
def losses(scale: Scale) -> pd.DataFrame:
    """OBSCURE on one problem for each Lipschitz loss: how far it comes from f(0) to f*;
    losses that the algorithm refuses are rows without a number."""
    grams, targets = load("small")
    labels = {"hinge": "binary", "logistic": "binary", "squared": "real"}
    labels |= {"multiclass_hinge": "classes", "multinomial": "classes"}
    rows = []
    for loss in (*LIPSCHITZ, "squared"):
        y = targets[labels.get(loss, "real")]
        problem = Problem(grams, y, loss, BlockNorm(1.25), 1.0, bias=False)
        best = solve(problem, tol=1e-6).certificate
        start = start_value(problem)
        try:
            found = solve(problem, "obscure", tol=0.0, T2=scale.of(40, 100, 1000))
            left = (found.certificate.primal - best.lower) / (start - best.lower)
        except Unsupported:
            left = np.nan
        rows.append((loss, left, best.relative_gap))
    return pd.DataFrame(rows, columns=["loss", "left", "gap"])
