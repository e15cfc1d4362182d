"""What the authors' methods need on small sets: tables 2, 4, 5, 7 and 9, and section 4.

Methods, rules and stopping are those of authors.py, data those of settings.py. A study
measures one seed: one random split of each set. Budgets are numbers of SVMs. `there`
says that a run ended by the paper's rule; one that did not is counted with what it had
used, less than it needs.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from mklopt import Problem, solve
from mklopt.certificates.certificate import certify
from mklopt.claims.items import Scale, study
from mklopt.formulations import BlockL1, Tikhonov

from . import authors
from .authors import ABLATION, METHODS, PGD, SPG, Inner, Price, Rules
from .settings import KEY, PRODUCTS, SMALL, Sums, few, products, sums

Array = np.ndarray
FAST = ("liver", "wpbc", "sonar", "ionosphere")  # small sets on which an SVM is quick


def each(scale: Scale, sets: tuple[str, ...], prices: tuple[float, ...]) -> list[dict]:
    """One part for each set and p."""
    return [{"name": name, "p": p} for name in few(scale, sets) for p in prices]


# ---- tables 2, 5 and 9 -----------------------------------------------------------


@study(KEY, parts=lambda scale: each(scale, SMALL, (1.1, 1.33, 2.0)), timed=True)
def small_sums(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Sums of SimpleMKL's kernels with ½‖d‖_p²: the authors' methods to their end."""
    family, y, _, _, C = sums(scale, name)
    about = {"set": name, "p": p, "n": family.n, "M": family.M, "C": C}
    rows = []
    for method, rules in METHODS.items():
        inner = Inner(family, Price(p), y, C, rules.precision)
        state, found = authors.run(inner, rules, scale.of(100, 300, 10_000))
        problem = Problem(family.stack, y, "hinge", Tikhonov(p, 0.5), C)
        end = certify(problem, inner.alpha, state.d).relative_gap
        rows.append({**about, "method": method, **found, "certified": end})
    return rows


@study(KEY, parts=lambda scale: each(scale, PRODUCTS, (1.0, 1.33, 2.0)), timed=True)
def small_products(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Products of Gaussians, one for each feature, with ½‖d‖_p² or (p = 1) ½(Σd)²."""
    family, y, C = products(scale, name)
    about = {"set": name, "p": p, "n": family.n, "M": family.M, "C": C}
    rows = []
    for method, rules in METHODS.items():
        inner = Inner(family, Price(p), y, C, rules.precision)
        most = scale.of(100, 1000, 100_000)
        rows.append({**about, "method": method,
                     **authors.run(inner, rules, most)[1]})  # fmt: skip
    return rows


@study(KEY, parts=lambda scale: each(scale, FAST, (1.0, 2.0)), timed=True)
def small_starts(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Products from random starts: where SPG ends with its average and without."""
    family, y, C = products(scale, name)
    rows = []
    for start in range(scale.of(2, 4, 20)):
        d = scale.rng("starts", name, start).uniform(0, 2, family.M) / family.M
        for method in ("SPG", "monotone"):
            rules = replace(SPG, tuned=False, nonmonotone=method == "SPG")
            inner = Inner(family, Price(p), y, C, rules.precision)
            found = authors.run(inner, rules, scale.of(100, 500, 5000), d)[1]
            rows.append({"set": name, "p": p, "start": start, "method": method,
                         **found})  # fmt: skip
    return rows


# ---- table 4: solvers made for r(d) = Σd ------------------------------------------


@study(KEY, parts=lambda scale: each(scale, SMALL, (1.0,)), timed=True)
def specialized(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Sparse sums: SPG and PGD beside SimpleMKL, SILP and HessianMKL, all to 1e-3.

    The program's r(d) = ½(Σd)² with C is the simplex form with C Σd*. Each method ends
    at a certified gap of 1e-3 of its own objective; certificates of the authors'
    methods are not timed, those of the others are, one or two passes each.
    """
    family, y, cross, labels, C = sums(scale, name)
    problem = Problem(family.stack, y, "hinge", Tikhonov(1.0, 0.5), C)
    exact = solve(problem, "auto", tol=1e-6)
    about = {"set": name, "n": family.n, "M": family.M, "C": C}
    rows = [
        {**about, "method": method, **certified(problem, rules, scale, cross, labels)}
        for method, rules in METHODS.items()
    ]
    simplex = problem.with_(formulation=BlockL1(), C=C * float(np.sum(exact.weights)))
    for solver in ("simple", "silp", "hessian"):
        begun, most = time.process_time(), scale.of(20, 300, 20_000)
        found = solve(simplex, solver, tol=1e-3, max_iter=most)
        spent = time.process_time() - begun
        rows.append({
            **about, "method": solver, "svm": int(found.trace.last("svm_solves")),
            "seconds": spent, "there": found.converged, "gap": found.relative_gap,
            "kernels": used(found.weights),
            "error": wrong(found.decision(cross), labels),
        })  # fmt: skip
    return rows


def certified(
    problem: Problem, rules: Rules, scale: Scale, cross: Array, labels: Array
) -> dict[str, Any]:
    """A descent until its certified gap is 1e-3; certificates are not timed."""
    family = Sums(problem.grams)
    C = float(problem.costs[0])
    inner = Inner(family, Price(1.0), problem.y, C, rules.precision)
    upper, lower = np.inf, -np.inf
    for state in authors.descend(inner, np.full(family.M, 1 / family.M), rules):
        found = certify(problem, inner.alpha, state.d)
        upper, lower = min(upper, found.primal), max(lower, found.dual)
        left = (upper - lower) / upper
        if left <= 1e-3 or state.svms >= scale.of(50, 300, 10_000):
            break
    f = np.tensordot(state.d, cross, 1) @ inner.alpha + found.bias
    return {"svm": state.svms, "seconds": state.seconds, "there": left <= 1e-3,
            "gap": left, "kernels": used(state.d),
            "error": wrong(f, labels)}  # fmt: skip


def used(weights: Array) -> int:
    return int(np.sum(weights > 1e-3 * np.max(weights)))


def wrong(f: Array, labels: Array) -> float:
    return float(np.mean(np.sign(f) != labels))


# ---- table 7 and section 4 ---------------------------------------------------------


def both_kinds(scale: Scale) -> list[dict[str, Any]]:
    cases = (("sum", 1.33), ("sum", 2.0), ("product", 1.0), ("product", 2.0))
    return [{"name": name, "kind": kind, "p": p} for name in few(scale, FAST)
            for kind, p in cases]  # fmt: skip


def of_kind(scale: Scale, name: str, kind: str) -> tuple[Any, Array, float]:
    """Family, labels and C."""
    if kind == "product":
        return products(scale, name)
    family, y, _, _, C = sums(scale, name)
    return family, y, C


@study(KEY, parts=both_kinds, timed=True)
def components(scale: Scale, name: str, kind: str, p: float) -> list[dict[str, Any]]:
    """S, N and P switched on one by one, from PGD to SPG."""
    family, y, C = of_kind(scale, name, kind)
    rows, most = [], scale.of(100, 300, 10_000)
    for method, rules in ABLATION.items():
        inner = Inner(family, Price(p), y, C, rules.precision)
        found = authors.run(inner, rules, most)[1]
        rows.append({"set": name, "kind": kind, "p": p, "method": method, **found})
    return rows


@study(KEY, parts=lambda scale: each(scale, FAST, (1.33, 2.0)), timed=True)
def precisions(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """PGD with SVMs of one precision from first to last, LibSVM's ε; and SPG."""
    family, y, _, _, C = sums(scale, name)
    problem = Problem(family.stack, y, "hinge", Tikhonov(p, 0.5), C)
    best = solve(problem, "auto", tol=1e-7).certificate.lower
    rows = []
    for eps in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0):
        rules = replace(PGD, precision=eps) if eps else SPG
        inner = Inner(family, Price(p), y, C, eps)
        state, found = authors.run(inner, rules, scale.of(100, 300, 10_000))
        inner.eps = 1e-7
        above = inner.value(state.d) / best - 1  # the true W there
        rows.append({"set": name, "p": p, "ε": eps, "above": above,
                     "dips": found["W"] / best - 1, **found})  # fmt: skip
    return rows


@study(KEY, parts=lambda scale: each(scale, SMALL, (1.33, 2.0)))
def stops(scale: Scale, name: str, p: float) -> dict[str, Any]:
    """SVMs of SPG until each of the paper's two rules is met: gap 1e-3, slope 0.04."""
    family, y, _, _, C = sums(scale, name)
    inner = Inner(family, Price(p), y, C, 0.1)
    met: dict[str, int] = {}
    for state in authors.descend(inner, np.full(family.M, 1 / family.M), SPG):
        if state.gap < authors.GAP:
            met.setdefault("gap", state.svms)
        if state.slope < authors.SLOPE:
            met.setdefault("slope", state.svms)
        if len(met) == 2 or state.svms >= scale.of(100, 300, 10_000):
            break
    never = float("inf")
    return {"set": name, "p": p, "gap": met.get("gap", never),
            "slope": met.get("slope", never), "svm": state.svms}  # fmt: skip


class Noisy(Inner):
    """Precise SVMs, but W and ∇W off by random parts of themselves."""

    def __init__(self, level: float, rng: np.random.Generator, *problem: Any):
        super().__init__(*problem)
        self.level, self.rng = level, rng

    def value(self, d: Array) -> float:
        """W(1 + level · normal)."""
        return super().value(d) * (1 + self.level * self.rng.normal())

    def gradient(self, d: Array) -> Array:
        """∇W, each entry off by its root mean square times level · normal."""
        slope = super().gradient(d)
        size = float(np.sqrt(np.mean(slope**2)))
        return slope + self.level * size * self.rng.normal(size=len(slope))


NOISE = (1e-4, 1e-3, 1e-2)


@study(KEY, parts=lambda scale: each(scale, FAST, (2.0,)))
def noise(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Random errors in W and ∇W: the true W after equally many SVMs, what failed."""
    family, y, _, _, C = sums(scale, name)
    problem = Problem(family.stack, y, "hinge", Tikhonov(p, 0.5), C)
    best, rows = solve(problem, "auto", tol=1e-7).certificate.lower, []
    for level in NOISE:
        for method in ("SPG", "PGD"):
            rng, rules = scale.rng("noise", name, level), METHODS[method]
            inner = Noisy(level, rng, family, Price(p), y, C, 1e-6)
            state, found = authors.run(inner, replace(rules, tuned=False),
                                       scale.of(60, 150, 1000))  # fmt: skip
            exact = Inner(family, Price(p), y, C, 1e-7).value(state.d)
            rows.append({"set": name, "p": p, "level": level, "method": method,
                         **found, "above": exact / best - 1})  # fmt: skip
    return rows


@study(KEY, parts=lambda scale: each(scale, FAST, (1.33, 2.0)), timed=True)
def against_one_svm(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """CPU seconds of MKL over those of one SVM on the uniform sum, ε = 1e-3."""
    family, y, _, _, C = sums(scale, name)
    uniform, rows = np.full(family.M, 1 / family.M), []
    one = Inner(family, Price(p), y, C, 1e-3)
    begun = time.process_time()
    one.value(uniform)
    single = time.process_time() - begun
    for method in ("SPG", "PGD"):
        rules = METHODS[method]
        inner = Inner(family, Price(p), y, C, rules.precision)
        found = authors.run(inner, rules, scale.of(100, 300, 10_000))[1]
        rows.append({"set": name, "p": p, "method": method, "single": single, **found})
    return rows


# ---- appendix: what we would improve -------------------------------------------------

OURS: dict[str, tuple[str, dict[str, Any]]]
OURS = {"SPG*": ("spg", {}), "PGD+": ("pgd", {"remember": True})}


@study(KEY, parts=lambda scale: each(scale, FAST, (1.33, 2.0)), timed=True)
def improved(scale: Scale, name: str, p: float) -> list[dict[str, Any]]:
    """Our variants of SPG and PGD on table 2's problems, to a certified gap of 1e-3."""
    family, y, _, _, C = sums(scale, name)
    problem = Problem(family.stack, y, "hinge", Tikhonov(p, 0.5), C)
    rows = []
    for method, (solver, switches) in OURS.items():
        begun = time.process_time()
        end = solve(problem, solver, tol=1e-3, max_iter=scale.of(50, 1000, 5000),
                    **switches)  # fmt: skip
        rows.append({"set": name, "p": p, "method": method, "there": end.converged,
                     "svm": int(end.trace.last("svm_solves")),
                     "seconds": time.process_time() - begun})  # fmt: skip
    return rows
