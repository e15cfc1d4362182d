"""What the solver touches, what it takes for a bound, and the races of section 5.

The paper's C multiplies the penalty; ours, on the loss, is 1/C. Its rivals minimize the
squared form: they get the C at which it has the same solution, C' = C/Σ‖f_m*‖ (eq. (13)
corrected). All runs end at the paper's relative gap of 0.01, certified. Rivals that are
not there after a budget of passes over the kernels count with what they have spent.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mklopt import GramStack, Problem, certify, data, kernels, reference, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import BlockL1, GroupLasso
from mklopt.reference.equivalences import suzuki_C
from mklopt.run.result import Result
from mklopt.run.trace import Trace
from mklopt.solvers import solvers
from mklopt.solvers.base import Solver, Steps

from .formulas import Array, norms, projected

KEY = "suzuki2009"
UCI = ("liver", "pima", "ionosphere", "wpbc", "sonar")
TOL = 0.01  # of the relative gap, section 5.1
PENALTIES = (0.005, 0.05, 0.5)  # the paper's C
METHODS = {
    "SpicyMKL, hinge": ("spicy", "hinge"),
    "SpicyMKL, logistic": ("spicy", "logistic"),
    "HessianMKL": ("hessian", "hinge"),
    "SimpleMKL": ("simple", "hinge"),
}


# ---- problems -----------------------------------------------------------------------


def subset_problem(
    name: str, n: int, M: int, seed: int
) -> tuple[GramStack, Array, Callable[[Result], float]]:
    """Section 5.2: Gaussians on random subsets, unit trace; and the test accuracy."""
    return prepared(binary(name, seed, n), n, kernels.subset_gaussians(M, seed), seed)


def binary(name: str, seed: int, n: int) -> data.Dataset:
    """A set with two classes; splice: junctions of either kind against none."""
    if name in ("ringnorm", "twonorm"):
        return data.load(name, n=n + 500, seed=seed)
    whole = data.load(name)
    if whole.kind == "binary":
        return whole
    y = np.where(whole.y == np.max(whole.y), -1.0, 1.0)
    return data.Dataset(name, whole.X, y, source=whole.source)


def prepared(
    whole: data.Dataset, n: int, family: kernels.Family, seed: int
) -> tuple[GramStack, Array, Callable[[Result], float]]:
    """Kernels and labels of n training samples, and the accuracy on the others."""
    train, test = whole.split(n, seed=seed)
    train, test = train.standardized(), test.standardized(train)
    fitted = family.fit(train.X, normalize="unit_trace")

    def accuracy(found: Result) -> float:
        f = [found.decision(K) for K in fitted.cross_blocks(test.X)]
        return float(np.mean(np.sign(np.concatenate(f)) == test.y))

    return fitted.grams(), train.y, accuracy


# ---- the solver: what it touches, what it takes for a bound ------------------------


@study(KEY)
def touched(scale: Scale) -> pd.DataFrame:
    """One step of Newton's method with active kernels alone, and with all of them.

    Passes over the kernels, and how far the directions are apart; `half` leaves out
    every other active kernel.
    """
    rows = []
    for M in scale.of((50, 200), (50, 200, 1000), (50, 200, 1000, 3000)):
        grams, y, _ = subset_problem("ringnorm", scale.of(60, 100, 200), M, scale.seed)
        at = Problem(grams, y, "logistic", GroupLasso(), suzuki_C(0.5))
        found = solve(at, "spicy", tol=0.05)
        lagrangian, rho = resumed(at, found)
        everyone = np.arange(M)
        active = everyone[lagrangian.enter(everyone, rho).z > 0]
        steps = {}
        works = {"all": everyone, "active": active, "half": active[::2]}
        for name, work in works.items():
            point = lagrangian.enter(work, rho)
            before = grams.passes
            lagrangian.newton(point)
            steps[name] = (grams.passes - before, lagrangian.direction(point))
        size = float(np.linalg.norm(steps["all"][1]))
        off = {
            name: float(np.linalg.norm(steps[name][1] - steps["all"][1])) / size
            for name in ("active", "half")
        }
        rows.append(
            {
                "M": M,
                "active": len(active),
                "passes_all": steps["all"][0],
                "passes_active": steps["active"][0],
                "apart": off["active"],
                "half_apart": off["half"],
            }
        )
    return pd.DataFrame(rows)


def resumed(at: Problem, found: Result) -> tuple[Any, Array]:
    """The augmented Lagrangian where a run has ended, γ = 10/C as in published code."""
    from mklopt.solvers.steps.augmented_lagrangian import Gammas, Lagrangian

    C = float(np.mean(at.costs))
    gammas = Gammas(np.full(at.grams.M, 10 / C), 1 / C, 10 / C)
    B = found.certificate.expansion
    lagrangian = Lagrangian(at, gammas, B, found.bias)
    return lagrangian, lagrangian.side.inside(found.dual)


@study(KEY)
def dual_values(scale: Scale) -> pd.DataFrame:
    """The dual value of section 5.1 along a run of SpicyMKL, and f*'s interval.

    `printed`: scaled, then centred; `centred`: centred, then scaled; `certified`: that
    of the certificate. −inf where ρ̃ is outside the domain of ℓ*. `norm`: max ‖ρ̃‖/C.
    """
    rows = []
    n = scale.of(40, 60, 100)
    for trial in range(scale.of(2, 3, 10)):
        for loss in ("squared", "logistic", "hinge"):
            at = linear_kernels(scale.rng("dual", trial), n, loss)
            sharp = reference.solve(at)
            steps = solvers()["spicy"].steps(at)
            iterate = next(steps)
            K = np.array(at.grams.dense())
            for t in range(8):
                rho = np.asarray(iterate.dual)
                found = certify(at, dual=rho, coefficients=iterate.coefficients)
                line: dict[str, Any] = {"trial": trial, "loss": loss, "t": t}
                for name, first in (("printed", False), ("centred", True)):
                    tilde = projected(K, rho, 1.0, centred_first=first)
                    inside = np.allclose(at.feasible(tilde), tilde, atol=1e-9)
                    line[name] = at.dual_loss(tilde) if inside else -np.inf
                    line[f"norm_{name}"] = float(np.max(norms(K, tilde)))
                bounds = {"certified": found.dual, "lower": sharp.lower,
                          "upper": sharp.upper}  # fmt: skip
                rows.append({**line, **bounds})
                iterate = steps.send(found)
    return pd.DataFrame(rows)


def linear_kernels(rng: np.random.Generator, n: int, loss: str) -> Problem:
    """One linear kernel for each of five features, not centred; canonical C = 1."""
    X = rng.normal(size=(n, 5)) + 2 * rng.normal(size=5)
    y = np.sign(X[:, 0] - np.mean(X[:, 0]) + 0.5 * rng.normal(size=n) + 0.7)
    grams = GramStack.from_factors([X[:, [j]] for j in range(5)])
    return Problem(grams, y, loss, GroupLasso(), 1.0)


@study(KEY)
def regularizers(scale: Scale) -> pd.DataFrame:
    """Predictions of C Σ‖f‖ and of C'/2 (Σ‖f‖)² for both C', and one α for all."""
    rows = []
    n = scale.of(40, 80, 150)
    for C in PENALTIES:
        grams, y, _ = subset_problem("ringnorm", n, 30, scale.seed)
        at = Problem(grams, y, "hinge", GroupLasso(), suzuki_C(C))
        ours = solve(at, "spicy", tol=1e-7, max_iter=300)
        u = ours.certificate.norms
        S = float(np.sum(u))
        line = {"C": C, "S": S, "active": int(np.sum(u > 1e-6 * np.max(u)))}
        for name, other in (("divided", C / S), ("multiplied", C * S)):
            squared = at.with_(formulation=BlockL1(), C=suzuki_C(other))
            found = solve(squared, "hessian", tol=1e-7, max_iter=300)
            away = np.abs(decision(found) - decision(ours))
            line[name] = float(np.max(away) / np.max(np.abs(decision(ours))))
        line |= one_expansion(grams, ours)
        rows.append(line)
    return pd.DataFrame(rows)


def decision(found: Result) -> Array:
    """Predictions on the training set."""
    return np.asarray(found.decision(found.problem.grams))


def one_expansion(grams: GramStack, found: Result) -> dict[str, float]:
    """How far f is from Σ_i α̂_i Σ_m d_m k_m(·, x_i), d from ‖f_m‖ or its square."""
    K, B = np.array(grams.dense()), found.certificate.expansion
    f = np.einsum("mij,mj->i", K, B)
    out = {}
    for name, power in (("weights", 1), ("weights_squared", 2)):
        d = found.certificate.norms**power
        d = d / np.sum(d)
        image = np.einsum("m,mij,j->i", d, K, found.dual)
        scale = float(image @ f) / float(image @ image)
        out[name] = float(np.max(np.abs(scale * image - f)) / np.max(np.abs(f)))
    return out


# ---- the races of section 5 --------------------------------------------------------


def squared_form(at: Problem) -> Problem:
    """The problem of the rivals with the same solution, eq. (13) corrected."""
    sharp = solve(at, "spicy", tol=1e-4, max_iter=300)
    S = float(np.sum(sharp.certificate.norms))
    return at.with_(formulation=BlockL1(), C=S * float(np.mean(at.costs)))


def patiently(solver: str) -> Solver:
    """The same algorithm; after a hundred iterates only every tenth is shown.

    SimpleMKL's gap may not move for hundreds of iterates, while it lays aside one
    kernel after the other: who looks at each takes that for the end.
    """
    method = solvers()[solver]

    def steps(problem: Problem) -> Steps:
        run = method.steps(problem)
        iterate = next(run)
        for count in itertools.count():
            certificate = yield iterate
            for _ in range(1 if count < 100 else 10):
                iterate = run.send(certificate)

    return replace(method, steps=steps)


def run_to(at: Problem, solver: str, tol: float, budget: float) -> Result:
    """A run to a gap, or until so many passes are spent."""

    def over(_: Any, trace: Trace) -> bool:
        return trace.last("passes") >= budget

    return solve(at, patiently(solver), tol=tol, callback=over)


def raced(at: Problem, solver: str, budget: float) -> tuple[Result, dict[str, Any]]:
    """A run to the paper's gap, and what it cost."""
    begun = time.process_time()
    found = run_to(at, solver, TOL, budget)
    took = time.process_time() - begun
    u, trace = found.certificate.norms, found.trace
    row = {
        "seconds": took,
        "passes": trace.last("passes"),
        "steps": int(trace.last("svm_solves")),
        "gap": found.relative_gap,
        "reached": found.converged,
        "used": int(np.sum(u > 1e-3 * np.max(u))),
        "most": int(np.max(trace.active[1:], initial=0)),
    }
    return found, row


def races(
    grams: GramStack, y: Array, C: float, budget: float
) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Each method on the same kernels, at the paper's C."""
    at = Problem(grams, y, "hinge", GroupLasso(), suzuki_C(C))
    rival = squared_form(at)
    for name, (solver, loss) in METHODS.items():
        own = at.with_(loss=loss) if solver == "spicy" else rival
        found, row = raced(own, solver, budget)
        yield found, {"method": name, "C": C, "n": grams.n, "M": grams.M, **row}


def _uci_parts(scale: Scale) -> list[dict[str, Any]]:
    sets = scale.of(("ringnorm",), UCI, UCI)
    return [{"name": name, "C": C} for name in sets for C in PENALTIES]


@study(KEY, parts=_uci_parts, timed=True)
def uci(scale: Scale, name: str, C: float) -> list[dict[str, Any]]:
    """Section 5.1: five UCI sets, three values of C: work, accuracy, kernels used.

    80 % of the samples and all kernels at both sizes, as in the paper.
    """
    whole = binary(name, scale.seed, 50)
    n = min(scale.of(50, 10**6, 10**6), round(0.8 * len(whole.y)))
    family = scale.of(kernels.rakotomamonjy, kernels.suzuki, kernels.suzuki)()
    grams, y, accuracy = prepared(whole, n, family, scale.seed)
    rows = []
    for found, row in races(grams, y, C, scale.of(400.0, 800.0, 800.0)):
        about = {"set": name, "d": whole.X.shape[1]}
        rows.append({**about, **row, "accuracy": accuracy(found)})
    return rows


@study(KEY, timed=True)
def progress(scale: Scale) -> pd.DataFrame:
    """Section 5.1, figure 2: gap and kernels in use along single runs."""
    name = scale.of("ringnorm", "ionosphere", "ionosphere")
    whole, n = binary(name, scale.seed, 50), scale.of(50, 281, 281)
    grams, y, _ = prepared(whole, n, kernels.suzuki(), scale.seed)
    at = Problem(grams, y, "hinge", GroupLasso(), suzuki_C(0.05))
    rival, parts = squared_form(at), []
    for method in ("SpicyMKL, hinge", "HessianMKL", "SimpleMKL"):
        solver, _ = METHODS[method]
        own = at if solver == "spicy" else rival
        trace = run_to(own, solver, 1e-3, scale.of(150.0, 400.0, 400.0)).trace
        columns = ("seconds", "passes", "gap", "active")
        part = pd.DataFrame({column: trace[column] for column in columns})
        parts.append(part.assign(method=method))
    return pd.concat(parts, ignore_index=True).assign(set=name, n=n, M=grams.M)


@study(KEY)
def losses(scale: Scale) -> pd.DataFrame:
    """Section 2: SpicyMKL with each loss that the paper names, to a gap of 1e-6."""
    rows = []
    grams, y, _ = subset_problem("ringnorm", scale.of(50, 100, 200), 50, scale.seed)
    noisy = y + 0.3 * scale.rng("losses").normal(size=len(y))
    for loss in ("hinge", "logistic", "squared", "eps_insensitive"):
        target = y if loss in ("hinge", "logistic") else noisy
        at = Problem(grams, target, loss, GroupLasso(), suzuki_C(0.5))
        found = solve(at, "spicy", tol=1e-6, max_iter=200)
        u = found.certificate.norms
        rows.append(
            {
                "loss": loss,
                "gap": found.relative_gap,
                "steps": int(found.trace.last("svm_solves")),
                "passes": found.trace.last("passes"),
                "used": int(np.sum(u > 1e-3 * np.max(u))),
            }
        )
    return pd.DataFrame(rows)
