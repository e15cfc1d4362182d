"""What is measured for Jain et al. (2012): the work of descents over d.

Problems and methods are those of settings.py: sums of unit-trace kernels with C = 1000,
to a certified relative gap of 1e-3; products of Gaussians with C = 10, to a projected
gradient of 1e-2. p = 1 stands for r(d) = Σd, other p for ½‖d‖_p². Limits are numbers of
iterates, never seconds; `svm` counts the SVMs that were solved ("machines" below).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from mklopt import GramStack, Problem, data, gmkl, kernels, solve
from mklopt.certificates.certificate import certify
from mklopt.claims.items import Scale, study
from mklopt.data.datasets import Dataset
from mklopt.formulations import BlockL1, Tikhonov
from mklopt.gmkl.families import Product, Sum
from mklopt.gmkl.problem import Envelope, KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm, Total
from mklopt.reference.envelope import envelope_value
from mklopt.solvers.machines.machine import most_moves
from mklopt.solvers.spg import Priced
from mklopt.solvers.start import first_weights
from mklopt.solvers.steps.spectral_descent import descend

from .settings import ABLATION, METHODS, PLAIN, Task

Array = np.ndarray
KEY = "jain2012"


# ---- data and problems -----------------------------------------------------------


def pair(scale: Scale, name: str, seed: int) -> tuple[Dataset, Dataset]:
    """(train, test), standardized by the first; at tiny few samples and features."""
    whole, size = data.load(name), 0.7
    if scale.mode == "tiny":
        whole, size = Dataset(name, whole.X[:, :8], whole.y), 60
    train, test = whole.split(size, seed=seed)
    return train.standardized(), test.standardized(by=train)


def small_sets(scale: Scale) -> tuple[str, ...]:
    three = ("liver", "sonar", "ionosphere")
    return scale.of(("wdbc",), three, (*three, "wpbc", "breast-w", "pima"))


def recipe(scale: Scale) -> kernels.Family:
    """SimpleMKL's kernels: 13 on all features and on each one."""
    few = kernels.rakotomamonjy((0.5, 2, 10), (1, 2))
    return scale.of(few, kernels.rakotomamonjy(), kernels.rakotomamonjy())


def distances(A: Array, B: Array, groups: int) -> Array:
    """(M, |A|, |B|): squared distances on so many groups of features."""
    parts = np.array_split(np.arange(A.shape[1]), min(groups, A.shape[1]))
    squares = [(A[:, None, g] - B[None, :, g]) ** 2 for g in parts]
    return np.stack([s.sum(axis=2) for s in squares])


def numbers(task: Task, end: Any, cross: Array | None, y: Array | None) -> dict:
    """What a run cost and what it reached."""
    if not task.is_sum:
        h = end.history
        found = {
            "svm": int(h["svm_solves"][-1]), "steps": len(h["value"]),
            "left": end.stationarity, "there": end.status == "stationary",
            "objective": end.value, "lower": np.nan,
            "kernels": int(np.sum(end.d > 1e-6 * np.max(end.d))),
            "seconds": h["seconds"][-1],
        }  # fmt: skip
    else:
        trace, point = end.trace, end.certificate
        found = {
            "svm": int(trace.last("svm_solves")), "steps": len(trace),
            "left": point.relative_gap, "there": end.converged,
            "objective": task.unit * point.primal, "lower": task.unit * point.dual,
            "kernels": int(trace.last("active")), "seconds": trace.last("seconds"),
        }  # fmt: skip
    if cross is not None:
        found["error"] = float(np.mean(np.sign(end.decision(cross)) != y))
    return found


def compared(task: Task, methods: Any, most: int, about: dict, *test: Any) -> list:
    """One row per method."""
    rows = []
    for method in methods:
        solver, switches = METHODS[method]
        end = task.end(solver, max_iter=most, **switches)
        rows.append(
            {**about, "p": task.p, "method": method, **numbers(task, end, *test)}
        )
    return rows


# ---- small sets: tables 2, 4, 5, 9 -----------------------------------------------


@study(KEY)
def small_sums(scale: Scale) -> pd.DataFrame:
    """Sums of SimpleMKL's kernels on small sets: what each method needs."""
    rows = []
    for name in small_sets(scale):
        for split in range(scale.of(1, 2, 3)):
            train, test = pair(scale, name, scale.seed + split)
            fitted = recipe(scale).fit(train.X, normalize="unit_trace")
            grams, cross = fitted.grams(), fitted.cross(test.X)
            about = {"set": name, "split": split, "n": grams.n, "M": grams.M}
            for p in scale.of((1.1, 2.0), (1.1, 1.33, 2.0), (1.1, 1.33, 2.0)):
                task = Task(p, grams, train.y)
                most = scale.of(150, 200, 600)
                rows += compared(task, METHODS, most, about, cross, test.y)
    return pd.DataFrame(rows)


@study(KEY)
def small_products(scale: Scale) -> pd.DataFrame:
    """Products of Gaussians, one for each feature, on small sets."""
    rows = []
    for name in small_sets(scale):
        for split in range(scale.of(1, 2, 3)):
            train, test = pair(scale, name, scale.seed + split)
            family = Product.from_features(train.X)
            cross = distances(test.X, train.X, family.M)
            about = {"set": name, "split": split, "n": family.n, "M": family.M}
            for p in scale.of((1.0, 2.0), (1.0, 1.33, 2.0), (1.0, 1.1, 1.33, 2.0)):
                task = Task(p, family, train.y)
                most = scale.of(400, 600, 1500)
                rows += compared(task, METHODS, most, about, cross, test.y)
    return pd.DataFrame(rows)


@study(KEY)
def specialized(scale: Scale) -> pd.DataFrame:
    """r(d) = Σd against the solvers that were made for it, with C mapped to theirs."""
    rows = []
    for name in small_sets(scale):
        for split in range(scale.of(1, 1, 2)):
            train, test = pair(scale, name, scale.seed + split)
            fitted = recipe(scale).fit(train.X, normalize="unit_trace")
            grams, cross = fitted.grams(), fitted.cross(test.X)
            task = Task(1.0, grams, train.y)
            exact = solve(task.problem, "auto", tol=1e-7).certificate
            bounds = {"low": task.unit * exact.lower, "high": task.unit * exact.upper}
            about = {"set": name, "split": split, "n": grams.n, "M": grams.M, **bounds}
            most, mine = scale.of(400, 400, 800), ("PGD", "SPG", "SPG*")
            rows += compared(task, mine, most, about, cross, test.y)
            rows += others(task, exact.norms, most, about, cross, test.y)
    return pd.DataFrame(rows)


def others(
    task: Task, u: Array, most: int, about: dict, cross: Array, y: Array
) -> list[dict]:
    """SimpleMKL, SILP and HessianMKL on the squared form with the same solution."""
    S = float(np.sum(u))  # GroupLasso with C is BlockL1 with C S (equivalences.py)
    squared = task.problem.with_(formulation=BlockL1(), C=S * task.problem.C)
    rows = []
    for name in ("simple", "silp", "hessian"):
        end = solve(squared, name, tol=1e-3, max_iter=most)
        found = numbers(task, end, cross, y)
        size = float(np.sum(end.certificate.norms))
        losses = (end.certificate.primal - 0.5 * size**2) / S
        found |= {"objective": task.unit * (losses + size), "lower": np.nan}
        rows.append({**about, "p": 1.0, "method": name, **found})
    return rows


# ---- larger sets: tables 3, 8, 10 ------------------------------------------------


def large(scale: Scale, name: str) -> tuple[Dataset, GramStack]:
    """Gaussians on random subsets of features; "sonar" stands for very many of them."""
    n = {"wdbc": 100, "twonorm": 60, "sonar": 208}.get(name, scale.of(0, 700, 1600))
    whole = data.load(name, n=2 * n) if name == "twonorm" else data.load(name)
    n = min(n, round(0.9 * len(whole.y)))
    train = whole.split(n, seed=scale.seed)[0].standardized()
    many = scale.of(200, 2000, 10_000) if name in MANY else scale.of(10, 20, 50)
    fitted = kernels.subset_gaussians(many).fit(train.X, normalize="unit_trace")
    return train, fitted.grams()


MANY = ("sonar", "twonorm")


def large_sets(scale: Scale) -> tuple[str, ...]:
    most = ("german", "a1a", "sonar")
    return scale.of(("wdbc", "twonorm"), most, most)


@study(KEY)
def large_sums(scale: Scale) -> pd.DataFrame:
    """Sums on larger sets, and with many kernels: SPG and PGD."""
    rows = []
    for name in large_sets(scale):
        train, grams = large(scale, name)
        about = {"set": name, "n": grams.n, "M": grams.M}
        for p in (1.33, 2.0):
            task = Task(p, grams, train.y)
            most = scale.of(150, 150, 300)
            rows += compared(task, ("PGD", "SPG", "SPG*"), most, about, None, None)
    return pd.DataFrame(rows)


@study(KEY)
def large_products(scale: Scale) -> pd.DataFrame:
    """Products on larger sets: SPG and PGD."""
    rows = []
    for name in scale.of(("wdbc",), ("german", "a1a"), ("german", "a1a")):
        whole = data.load(name)
        n = min(scale.of(100, 300, 1400), round(0.9 * len(whole.y)))
        train = whole.split(n, seed=scale.seed)[0].standardized()
        family = Product(distances(train.X, train.X, scale.of(8, 42, 42)))
        about = {"set": name, "n": family.n, "M": family.M}
        for p in scale.of((1.0, 2.0), (1.0, 1.33, 2.0), (1.0, 1.33, 2.0)):
            task = Task(p, family, train.y)
            most = scale.of(300, 200, 300)
            rows += compared(task, ("PGD", "SPG", "SPG*"), most, about, None, None)
    return pd.DataFrame(rows)


# ---- descents followed point by point: figure 1, tables 7 and 11 -----------------


class Coarse(Priced):
    """Machines of one precision from first to last, and a search that trusts them."""

    noise = 0.0  # no room for errors in the comparison

    def __init__(self, problem: Problem, precision: float):
        super().__init__(problem, None, tune=False)
        self.machine.tol, self.failed = precision, 0

    def sharpen(self) -> None:
        self.failed += 1


def followed(
    task: Task, priced: Priced, most: int, tol: float = 1e-3, **switches: Any
) -> Iterator[dict[str, float]]:
    """Every point of a descent: W as its machine reports it, bounds, work."""
    problem, unit = task.problem, task.unit
    theta, _ = first_weights(problem, None)
    upper, lower = np.inf, -np.inf
    for point in islice(descend(priced, theta, **PLAIN, **switches), most):
        found = certify(problem, priced.machine.point, priced.machine.theta)
        upper, lower = min(upper, found.primal), max(lower, found.dual)
        d, slope = point.d / unit, unit**2 * point.slope
        gone = d - np.maximum(d - slope, 0.0)
        machine = priced.machine
        moves = (
            (machine.work - 0.125 * machine.solves) * most_moves(problem.grams.n) / 3
        )
        yield {
            "svm": machine.solves, "moves": round(moves), "value": unit * point.value,
            "upper": unit * upper, "lower": unit * lower,
            "left": (upper - lower) / upper, "slope": float(np.max(np.abs(gone))),
        }  # fmt: skip
        if upper - lower <= tol * upper:
            return
        priced.set_tolerance(found)


@study(KEY)
def paths(scale: Scale) -> pd.DataFrame:
    """Two larger problems, step by step: W as reported, bounds, seconds."""
    import time

    rows = []
    for name in scale.of(("wdbc",), ("a1a", "sonar"), ("a1a", "sonar")):
        train, grams = large(scale, name)
        for p in scale.of((1.33,), (1.33,), (1.33, 2.0)):
            task = Task(p, grams, train.y)
            exact = solve(task.problem, "auto", tol=1e-7).certificate
            about = {"set": name, "p": p, "low": exact.lower, "high": exact.upper}
            for method, on in {"SPG": True, "PGD": False}.items():
                priced, begun = Priced(task.problem, None, tune=on), time.perf_counter()
                switches = {"spectral": on, "nonmonotone": on}
                for row in followed(task, priced, scale.of(120, 200, 300), **switches):
                    clock = {"seconds": time.perf_counter() - begun}
                    rows.append({**about, "method": method, **row, **clock})
    return pd.DataFrame(rows)


@study(KEY)
def stops(scale: Scale) -> pd.DataFrame:
    """The duality gap and the projected gradient along runs of SPG on small sets."""
    rows = []
    for name in small_sets(scale):
        train = pair(scale, name, scale.seed)[0]
        grams = recipe(scale).fit(train.X, normalize="unit_trace").grams()
        for p in (1.0, 1.66, 2.0):
            task = Task(p, grams, train.y)
            priced = Priced(task.problem, None, tune=True)
            switches = {"spectral": True, "nonmonotone": True, "tol": 1e-9}
            for row in followed(task, priced, scale.of(100, 150, 500), **switches):
                gap = row["upper"] - row["lower"]
                about = {"set": name, "p": p, "svm": row["svm"]}
                rows.append({**about, "gap": gap, "slope": row["slope"]})
                if gap <= 1e-3 and row["slope"] <= 0.04:
                    break
    return pd.DataFrame(rows)


@study(KEY)
def components(scale: Scale) -> pd.DataFrame:
    """Small problems with S and N switched on one by one, machines precise."""
    rows = []
    for name in scale.of(("wdbc",), ("liver", "sonar"), small_sets(scale)):
        train = pair(scale, name, scale.seed)[0]
        grams = recipe(scale).fit(train.X, normalize="unit_trace").grams()
        inputs: dict[str, GramStack | Product]
        inputs = {"sum": grams, "product": Product.from_features(train.X)}
        for kind, p in (("sum", 1.0), ("sum", 2.0), ("product", 1.0), ("product", 2.0)):
            task = Task(p, inputs[kind], train.y)
            about = {"set": name, "kind": kind, "p": p}
            limit = scale.of(300, 250, 600)
            for method in ("PGD", "+S", "+N", "+N+S"):
                switches = {**PLAIN, **ABLATION[method]}
                end = task.end("spg", max_iter=limit, **switches)
                found = numbers(task, end, None, None)
                rows.append({**about, "method": method, **found})
    return pd.DataFrame(rows)


@study(KEY)
def components_large(scale: Scale) -> pd.DataFrame:
    """Larger sums: S and N together, then P; machines and what they cost in moves."""
    import time

    rows = []
    for name in large_sets(scale):
        train, grams = large(scale, name)
        for p in (1.33, 2.0):
            task = Task(p, grams, train.y)
            for method in ("PGD", "+N+S", "SPG"):
                on = dict(ABLATION[method])
                priced = Priced(task.problem, None, tune=on.pop("tune"))
                begun = time.perf_counter()
                *_, last = followed(task, priced, scale.of(150, 100, 300), **on)
                clock = {"seconds": time.perf_counter() - begun}
                about = {"set": name, "n": grams.n, "M": grams.M, "p": p}
                there = last["left"] <= 1e-3
                rows.append(
                    {**about, "method": method, **last, "there": there, **clock}
                )
    return pd.DataFrame(rows)


class Noisy(Coarse):
    """Precise machines, but W and ∇W off by random parts of themselves."""

    def __init__(self, problem: Problem, level: float, rng: np.random.Generator):
        super().__init__(problem, 1e-10 * abs(problem.dual_loss(problem.C * problem.y)))
        self.level, self.rng = level, rng

    def value(self, theta: Array) -> float:
        return super().value(theta) * (1 + self.level * self.rng.normal())

    def gradient(self) -> Array:
        slope = super().gradient()
        size = float(np.linalg.norm(slope) / np.sqrt(len(slope)))
        return slope + self.level * size * self.rng.normal(size=len(slope))


@study(KEY)
def noise(scale: Scale) -> pd.DataFrame:
    """Coarse machines throughout, or random errors: how far d gets, what fails."""
    rows = []
    for name in small_sets(scale)[:2]:
        train = pair(scale, name, scale.seed)[0]
        grams = recipe(scale).fit(train.X, normalize="unit_trace").grams()
        task = Task(2.0, grams, train.y)
        exact = solve(task.problem, "auto", tol=1e-7).certificate
        for kind, level in ((k, v) for k in ("coarse", "random") for v in LEVELS):
            for method in ("SPG", "PGD", "PGD+"):
                rng = scale.rng("noise", name, level)
                priced = (
                    Coarse(task.problem, level * exact.upper) if kind == "coarse"
                    else Noisy(task.problem, level, rng)
                )  # fmt: skip
                found = disturbed(task, priced, scale.of(80, 80, 200), method)
                for what in ("exact", "reported"):
                    found[what] = found[what] / exact.lower - 1
                about = {"set": name, "kind": kind, "level": level, "method": method}
                width = {"width": exact.upper / exact.lower - 1}
                rows.append({**about, **found, **width})
    return pd.DataFrame(rows)


LEVELS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)


def disturbed(task: Task, priced: Coarse, most: int, method: str) -> dict[str, float]:
    """The exact W where a descent was after so many machines, and what it had done."""
    spectral = method == "SPG"
    switches = {"spectral": spectral, "nonmonotone": spectral}
    theta, _ = first_weights(task.problem, None)
    steps, failed, lowest = 0, 0, np.inf
    for point in descend(priced, theta, remember=method == "PGD+", **PLAIN, **switches):
        if priced.machine.solves > most:
            break
        theta, steps, failed = point.d, steps + 1, priced.failed
        lowest = min(lowest, point.value)
    sharp = Coarse(task.problem, 1e-10 * abs(point.value))
    counts = {"steps": steps, "failed": failed}
    return {"exact": sharp.value(theta), "reported": lowest, **counts}


@study(KEY)
def scaling(scale: Scale) -> pd.DataFrame:
    """Work and seconds of SPG, and of PGD for p = 2, over samples and over kernels."""
    rows = []
    for along, name, n, M in scalings(scale):
        whole = data.load(name, n=2 * n) if name == "twonorm" else data.load(name)
        train = whole.split(n, seed=scale.seed)[0].standardized()
        fitted = kernels.subset_gaussians(M).fit(train.X, normalize="unit_trace")
        grams = fitted.grams()
        for method, p in (("SPG", 1.33), ("SPG", 1.66), ("SPG", 2.0), ("PGD", 2.0)):
            task = Task(p, grams, train.y)
            problem = task.problem.with_(C=10.0)
            solver, switches = METHODS[method]
            most = scale.of(150, 150, 300)
            end = solve(problem, solver, tol=1e-3, max_iter=most, **switches)
            support = int(np.sum(np.abs(end.dual) > 1e-8 * np.max(np.abs(end.dual))))
            rows.append({
                "along": along, "set": name, "n": n, "M": M, "method": method, "p": p,
                "svm": int(end.trace.last("svm_solves")),
                "entries": end.trace.last("passes") * M * n * n, "support": support,
                "there": end.converged, "seconds": end.trace.last("seconds"),
            })  # fmt: skip
    return pd.DataFrame(rows)


def scalings(scale: Scale) -> Iterator[tuple[str, str, int, int]]:
    """(what grows, set, n, M)."""
    few, most = scale.of((40, 80, 160), (100, 200, 400, 800), (200, 400, 800, 1400)), 20
    for name in scale.of(("twonorm",), ("a1a", "twonorm"), ("a1a", "twonorm")):
        yield from (("n", name, n, most) for n in few)
    name = scale.of("twonorm", "sonar", "sonar")
    many = scale.of((25, 100, 400), (100, 400, 1600), (250, 1000, 4000, 16_000))
    yield from (("M", name, scale.of(60, 145, 145), M) for M in many)


# ---- products from many starts; formulas -----------------------------------------


@study(KEY)
def starts(scale: Scale) -> pd.DataFrame:
    """Products from random starts: where SPG, SPG without N, and PGD+ end."""
    rows = []
    for name in scale.of(("wdbc",), ("liver", "sonar"), small_sets(scale)):
        train = pair(scale, name, scale.seed)[0]
        family = Product.from_features(train.X)
        for p in (1.0, 2.0):
            task = Task(p, family, train.y)
            for start in range(scale.of(3, 4, 5)):
                d = scale.rng("starts", name, start).uniform(0, 2, family.M) / family.M
                for method in ("SPG", "+S", "PGD+"):
                    solver, switches = METHODS["SPG" if method == "+S" else method]
                    extra = {"nonmonotone": False} if method == "+S" else {}
                    end = task.end(solver, start=d, max_iter=scale.of(500, 500, 1000),
                                   **switches, **extra)  # fmt: skip
                    about = {"set": name, "p": p, "start": start, "method": method}
                    rows.append({**about, **numbers(task, end, None, None)})
    return pd.DataFrame(rows)


def families(scale: Scale) -> dict[str, KernelFamilyProblem]:
    """Small problems on which formulas are checked, sums and products."""
    n, rng = scale.of(24, 40, 80), scale.rng("families")
    X = rng.normal(size=(n, 4))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n))
    D = distances(X, X, 4)
    made: dict[str, Any] = {"sum": Sum(np.exp(-D)), "product": Product(D)}
    prices = {"Σd": Total(), "½‖d‖²": SquaredNorm(2.0), "½‖d‖²_1.33": SquaredNorm(1.33)}
    return {
        f"{kind}, {name}": KernelFamilyProblem(family, y, "hinge", price, 1.0)
        for kind, family in made.items()
        for name, price in prices.items()
    }


@study(KEY)
def gradients(scale: Scale) -> pd.DataFrame:
    """The two terms of ∇W at random d, and differences of W as OSQP finds it."""
    rows = []
    for name, problem in families(scale).items():
        d = scale.rng("gradients", name).uniform(0.2, 1.5, problem.family.M)
        envelope = Envelope(problem, tune=False)
        value = envelope.precisely(d)[0]
        bend = problem.family.gradient(d, np.asarray(envelope.alpha))
        price = problem.regularizer.gradient(d)
        machine = certify(problem.machine(d), np.asarray(envelope.alpha), np.ones(1))
        r, K = problem.regularizer.value(d), problem.family.combine(d)
        energy = float(envelope.alpha @ K @ envelope.alpha)
        for m in range(scale.of(2, 4, 4)):
            h = 1e-3 * d[m] * (np.arange(len(d)) == m)
            up, down = (envelope_value(problem, d + s * h) for s in (1, -1))
            rows.append({
                "problem": name, "m": m, "price": price[m], "bend": bend[m],
                "measured": (up - down) / (2 * h[m]), "T": r + machine.primal,
                "W": value, "energy": energy,
            })  # fmt: skip
    return pd.DataFrame(rows)


@study(KEY)
def segments(scale: Scale) -> pd.DataFrame:
    """W at two random d and at their middle."""
    rows = []
    for name, problem in families(scale).items():
        rng = scale.rng("segments", name)
        envelope = Envelope(problem, tune=False)
        for k in range(scale.of(40, 60, 200)):
            a, b = 10 ** rng.uniform(-1.5, 1.5, size=(2, problem.family.M))
            at = [envelope.precisely(d)[0] for d in (a, 0.5 * (a + b), b)]
            above = at[1] - 0.5 * (at[0] + at[2])
            rows.append({"problem": name, "k": k, "above": above, "W": at[1]})
    return pd.DataFrame(rows)


@study(KEY)
def maps(scale: Scale) -> pd.DataFrame:
    """min W over sums, and the interval of the convex problem it is said to be."""
    rows = []
    sums = {k: v for k, v in families(scale).items() if k.startswith("sum")}
    for name, problem in sums.items():
        found = gmkl.solve(problem, tol=1e-6, max_iter=5000)
        right = problem.as_problem()
        price, unit = problem.regularizer, 1.0
        other = right.with_(C=problem.C)  # C as it was, not divided by √2
        if isinstance(price, Total):
            unit = float(np.sqrt(2))
        else:
            other = right.with_(formulation=Tikhonov(price.p, 1.0))  # not ½
        for which, convex in (("right", right), ("other", other)):
            end = solve(convex, "auto", tol=1e-8).certificate
            rows.append({"problem": name, "which": which, "W": found.value,
                         "lower": unit * end.lower, "upper": unit * end.upper,
                         "left": found.stationarity})  # fmt: skip
    return pd.DataFrame(rows)
