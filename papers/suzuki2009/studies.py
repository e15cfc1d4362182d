"""What is measured: algebra on small random instances, rates, and the paper's races.

The paper's C multiplies the penalty; ours, on the loss, is 1/C. Its rivals minimize the
squared form: they get the C at which it has the same solution, C' = C/Σ‖f_m*‖ (eq. (13)
corrected). All runs end at the paper's relative gap of 0.01, certified. Rivals that are
not there after a budget of passes over the kernels count with what they have spent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from papers.suzuki2009.formulas import (
    Array,
    Logistic,
    Slacks,
    Squared,
    Step,
    norms,
    projected,
)

from mklopt import GramStack, Problem, certify, data, kernels, solve
from mklopt.formulations import BlockL1, GroupLasso
from mklopt.papers import Scale, study
from mklopt.reference.equivalences import suzuki_C
from mklopt.result import Result
from mklopt.trace import Trace

KEY = "suzuki2009"
UCI = ("liver", "pima", "ionosphere", "wpbc", "sonar")
SCALED = ("ringnorm", "splice")
TOL = 0.01  # of the relative gap, section 5.1
PENALTIES = (0.005, 0.05, 0.5)  # the paper's C
METHODS = {
    "SpicyMKL, hinge": ("spicy", "hinge"),
    "SpicyMKL, logistic": ("spicy", "logistic"),
    "HessianMKL": ("hessian", "hinge"),
    "SimpleMKL": ("simple", "hinge"),
}


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


# ---- small instances for formulas --------------------------------------------------


def instance(rng: np.random.Generator, loss: str, n: int = 14, M: int = 6) -> Step:
    """A proximal step from a random sparse α, with every part of it at work."""
    X = rng.normal(size=(M, n, 4))
    K = X @ X.transpose(0, 2, 1) / 4 + 1e-2 * np.eye(n)
    y = np.sign(X[0, :, 0] + X[-1, :, 0] + 0.5 * rng.normal(size=n))
    alpha = 0.5 * rng.normal(size=(M, n)) * (np.arange(M) % 2 == 0)[:, None]
    xi, zeta = rng.exponential(size=(2, n)) * (rng.random(n) < 0.5)
    side = {
        "logistic": Logistic(y),
        "squared": Squared(y),
        "hinge": Slacks(y, xi, zeta, 1.5),
    }[loss]
    b = float(rng.normal())
    return Step(K, side, 1.5, alpha, b, rng.uniform(0.5, 2.0, M), 0.7)


def conic_step(step: Step) -> tuple[Array, float, float]:
    """α, b and the value of (3) from an interior-point method that knows no dual."""
    import cvxpy as cp

    L = [np.linalg.cholesky(K) for K in step.K]
    W = [cp.Variable(len(K)) for K in step.K]  # Lᵀα
    b = cp.Variable()
    z = sum(A @ w for A, w in zip(L, W, strict=True)) + b
    y, loss, constraints = step.loss.y, step.loss, []
    if isinstance(loss, Slacks):
        xi, zeta = cp.Variable(len(y), nonneg=True), cp.Variable(len(y), nonneg=True)
        constraints = [cp.multiply(y, z) == 1 - xi + zeta]
        fit = cp.sum(xi) + cp.sum_squares(xi - loss.xi) / (2 * loss.gamma)
        fit += cp.sum_squares(zeta - loss.zeta) / (2 * loss.gamma)
    elif isinstance(loss, Logistic):
        fit = cp.sum(cp.logistic(cp.multiply(-y, z)))
    else:
        fit = cp.sum_squares(y - z)
    for A, w, old, gamma in zip(L, W, step.alpha, step.gamma, strict=True):
        fit += step.C * cp.norm(w) + cp.sum_squares(w - A.T @ old) / (2 * gamma)
    fit += cp.square(b - step.b) / (2 * step.gamma_b)
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-8)
    program = cp.Problem(cp.Minimize(fit), constraints)
    program.solve(solver=cp.CLARABEL, **tight)
    alpha = [np.linalg.solve(A.T, w.value) for A, w in zip(L, W, strict=True)]
    return np.array(alpha), float(b.value), float(program.value)


@study(KEY)
def proximal_steps(scale: Scale) -> pd.DataFrame:
    """Steps by eqs. (5)–(7) and (10)–(12) against those of a conic solver on (3).

    `twice`: the same with the threshold C in place of γC in the update.
    """
    rows = []
    for loss in ("logistic", "squared", "hinge"):
        for trial in range(scale.of(2, 4, 20)):
            step = instance(scale.rng("steps", loss, trial), loss)
            rho = step.minimum()
            alpha, b, value = conic_step(step)
            found, shift = step.after(rho)
            other = step.alpha + step.gamma[:, None] * rho
            short = np.maximum(norms(step.K, other) - step.C, 0.0)
            other = other * (short / norms(step.K, other))[:, None]
            start = np.sum(norms(step.K, step.alpha) ** 2 / (2 * step.gamma))
            start += step.b**2 / (2 * step.gamma_b)
            if isinstance(step.loss, Slacks):
                old = step.loss.xi**2 + step.loss.zeta**2
                start += np.sum(old) / (2 * step.loss.gamma)
            rows.append(
                {
                    "loss": loss,
                    "trial": trial,
                    "apart": float(np.max(norms(step.K, found - alpha))),
                    "bias": abs(shift - b),
                    "value": abs(start - step.phi(rho) - value) / abs(value),
                    "twice": float(np.max(norms(step.K, other - alpha))),
                    "size": float(np.max(norms(step.K, alpha))),
                    "active": int(np.sum(norms(step.K, alpha) > 1e-6)),
                }
            )
    return pd.DataFrame(rows)


@study(KEY)
def derivatives(scale: Scale) -> pd.DataFrame:
    """Eqs. (8) and (9) against central differences of (7), relative errors."""
    rows, h = [], 1e-5
    for loss in ("logistic", "squared"):
        for trial in range(scale.of(4, 20, 100)):
            rng = scale.rng("derivatives", loss, trial)
            step = instance(rng, loss)
            rho = step.loss.y * rng.uniform(0.2, 0.8, len(step.loss.y))
            d = rng.normal(size=len(rho))
            up, down = rho + h * d, rho - h * d
            slope = (step.phi(up) - step.phi(down)) / (2 * h)
            bend = (step.gradient(up) - step.gradient(down)) / (2 * h)
            scale_of = float(np.linalg.norm(bend))
            off = {
                name: float(np.linalg.norm(H @ d - bend)) / scale_of
                for name, H in (
                    ("hessian", step.hessian(rho)),
                    ("swapped", step.hessian(rho, swapped=True)),
                )
            }
            gradient = abs(float(step.gradient(rho) @ d) - slope) / abs(slope)
            used = int(np.sum(step.active(rho)))
            rows.append(
                {"loss": loss, "trial": trial, "gradient": gradient, **off,
                 "active": used}
            )  # fmt: skip
    return pd.DataFrame(rows)


@study(KEY)
def at_the_threshold(scale: Scale) -> pd.DataFrame:
    """Jumps of slope and curvature of φ where a kernel becomes active, as shares."""
    rows, h = [], 1e-6
    for trial in range(scale.of(4, 20, 100)):
        rng = scale.rng("threshold", trial)
        step = instance(rng, "squared", M=1)
        step = step.moved(0 * step.alpha, step.b)
        d = rng.normal(size=len(step.loss.y))
        rho = d * step.C / float(norms(step.K, d)[0])  # ‖γρ‖ = γC: on the edge
        d = rho / np.linalg.norm(rho)
        slopes = [float(step.gradient(rho + t * d) @ d) for t in (-h, 0.0, h)]
        bends = [(slopes[1] - slopes[0]) / h, (slopes[2] - slopes[1]) / h]
        jump = abs(slopes[2] - slopes[0]) / max(abs(slopes[1]), 1.0)
        rows.append(
            {
                "trial": trial,
                "slope": jump,
                "curvature": abs(bends[1] - bends[0]) / max(map(abs, bends)),
                "inside": bends[0],
                "outside": bends[1],
            }
        )
    return pd.DataFrame(rows)


@study(KEY)
def line_search_sets(scale: Scale) -> pd.DataFrame:
    """Kernels active somewhere on a step ρ … ρ + Δρ, and those that a set misses."""
    rows = []
    for trial in range(scale.of(20, 100, 1000)):
        rng = scale.rng("line", trial)
        step = instance(rng, "squared", M=20)
        rho, move = rng.normal(size=(2, len(step.loss.y)))
        size = 2 * float(np.median(norms(step.K, rho))) / step.C
        rho, move = rho / size, move / size

        def over(shift: Array, at: Array, step: Step = step) -> Array:
            """‖ρ + shift/γ_m‖ > C."""
            v = at + shift / step.gamma[:, None]
            return norms(step.K, v) > step.C

        grid = np.linspace(0.0, 1.0, 21)
        ever = np.any([step.active(rho + c * move) for c in grid], axis=0)
        ends = step.active(rho) | step.active(rho + move)
        missed = 0
        for c in grid[1:]:
            here = step.active(rho + c * move)
            shift = np.broadcast_to(c * move, step.alpha.shape)
            printed = over(shift, rho) | over(shift, rho + move)
            missed = max(missed, int(np.sum(here & ~printed)))
        rows.append(
            {
                "trial": trial,
                "kernels": len(step.K),
                "active": int(np.sum(ever)),
                "ends_miss": int(np.sum(ever & ~ends)),
                "printed_misses": missed,
            }
        )
    return pd.DataFrame(rows)


# ---- rates -------------------------------------------------------------------------


def toy(scale: Scale, loss: str, n: int = 40, M: int = 8) -> Step:
    """Where proximal minimization begins: α = 0 and b = 0, ξ = 1 and ζ = 0, γ = 1."""
    found = instance(scale.rng("toy"), loss, n, M)
    side, one = found.loss, np.ones(n)
    if isinstance(side, Slacks):
        side = Slacks(side.y, one, 0 * one, 1.0)
    zero, many = np.zeros((M, n)), np.ones(M)
    return Step(found.K, side, found.C, zero, 0.0, many, 1.0)


def interval(step: Step) -> tuple[float, float]:
    """Certified bounds of the minimum of (2), in the paper's units."""
    loss = {Logistic: "logistic", Squared: "squared", Slacks: "hinge"}[type(step.loss)]
    C = suzuki_C(step.C, half_squared=loss != "squared")
    at = Problem(GramStack(step.K), step.loss.y, loss, GroupLasso(), C)
    found = solve(at, "auto", tol=1e-11, max_iter=300).certificate
    return step.C * found.lower, step.C * found.upper


def optimum(step: Step) -> tuple[Array, float]:
    """(α, b) after proximal steps with growing penalties, until nothing moves."""
    rho = step.minimum()
    for _ in range(20):
        step = step.moved(*step.after(rho), growth=2.0 if step.gamma_b < 1e3 else 1.0)
        rho = step.minimum(rho)
    return step.after(rho)


def distance(step: Step, alpha: Array, b: float, best: tuple[Array, float]) -> float:
    away = np.sum(norms(step.K, alpha - best[0]) ** 2) + (b - best[1]) ** 2
    return float(np.sqrt(away))


@study(KEY)
def contraction(scale: Scale) -> pd.DataFrame:
    """By which factor a proximal step shortens the distance, for fixed penalties.

    Both penalties γ, or that of the kernels alone with that of the bias held at 0.1.
    """
    from dataclasses import replace

    rows = []
    for loss in ("logistic", "squared"):
        begin = toy(scale, loss)
        best, (_, upper) = optimum(begin), interval(begin)
        for held in (False, True):
            for gamma in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
                many = np.full(len(begin.K), gamma)
                step = replace(begin, gamma=many, gamma_b=0.1 if held else gamma)
                away = [distance(step, step.alpha, step.b, best)]
                rho = None
                for _ in range(60):
                    rho = step.minimum(rho)
                    step = step.moved(*step.after(rho))
                    away.append(distance(step, step.alpha, step.b, best))
                    if away[-1] < 1e-5 * away[0]:
                        break
                rows.append(
                    {
                        "loss": loss,
                        "held": held,
                        "gamma": gamma,
                        "steps": len(away) - 1,
                        "factor": away[-1] / away[-2],
                        "distance": away[-1],
                        "above": begin.objective(*best) - upper,
                    }
                )
    return pd.DataFrame(rows)


@study(KEY)
def superlinear(scale: Scale) -> pd.DataFrame:
    """The objective along table 1 as printed, γ growing by 3 with each step or held.

    f* lies between `lower` and `upper`, certified from another solver's run.
    """
    rows = []
    for loss in ("logistic", "squared", "hinge"):
        begin = toy(scale, loss)
        lower, upper = interval(begin)
        for growth in (3.0, 1.0):
            step, rho = begin, None
            for t in range(scale.of(9, 12, 12)):
                value = step.objective(step.alpha, step.b)
                rows.append(
                    {"loss": loss, "growth": growth, "t": t, "gamma": step.gamma_b,
                     "primal": value, "lower": lower, "upper": upper}
                )  # fmt: skip
                rho = step.minimum(rho)
                step = step.moved(*step.after(rho), growth, rho)
    return pd.DataFrame(rows)


@study(KEY)
def exact_and_linearized(scale: Scale) -> pd.DataFrame:
    """The objective along exact proximal steps and along those of section 4.1.

    γ in units of 1/L with L = Lip(ℓ') λ_max(ΣK_m + 11ᵀ); f* lies between `lower` and `upper`.
    """
    from dataclasses import replace

    rows = []
    for loss, steepness in (("logistic", 0.25), ("squared", 2.0)):
        begin = toy(scale, loss)
        lower, upper = interval(begin)
        n = len(begin.loss.y)
        top = np.linalg.eigvalsh(np.sum(begin.K, axis=0) + np.ones((n, n)))[-1]
        for times in (1.0, 3.0, 10.0, 100.0):
            gamma = times / (steepness * float(top))
            many = np.full(len(begin.K), gamma)
            for exact in (True, False):
                step, rho = replace(begin, gamma=many, gamma_b=gamma), None
                for t in range(scale.of(60, 200, 400)):
                    value = step.objective(step.alpha, step.b)
                    rows.append(
                        {"loss": loss, "exact": exact, "gamma": times, "t": t,
                         "primal": value, "lower": lower, "upper": upper}
                    )  # fmt: skip
                    if exact:
                        rho = step.minimum(rho)
                    to = step.after(rho) if rho is not None else step.linearized()
                    step = step.moved(*to)
    return pd.DataFrame(rows)


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
        for name, work in (
            ("all", everyone),
            ("active", active),
            ("half", active[::2]),
        ):
            point = lagrangian.enter(work, rho)
            before = grams.passes
            lagrangian.newton(point)
            steps[name] = (grams.passes - before, lagrangian._direction(point))
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
    from mklopt.solvers.lagrangian import Gammas, Lagrangian

    C = float(np.mean(at.costs))
    gammas = Gammas(np.full(at.grams.M, 10 / C), 1 / C, 10 / C)
    B = found.certificate.coefficients
    lagrangian = Lagrangian(at, gammas, B, found.bias)
    return lagrangian, lagrangian.side.inside(found.dual)


@study(KEY)
def dual_values(scale: Scale) -> pd.DataFrame:
    """The dual value of section 5.1 along a run of SpicyMKL, and f*'s interval.

    `printed`: scaled, then centred; `centred`: centred, then scaled; `certified`: that
    of the certificate. −inf where ρ̃ is outside the domain of ℓ*. `norm`: max ‖ρ̃‖/C.
    """
    from mklopt.solvers import solvers

    rows = []
    n = scale.of(40, 60, 100)
    for trial in range(scale.of(2, 3, 10)):
        for loss in ("squared", "logistic", "hinge"):
            at = linear_kernels(scale.rng("dual", trial), n, loss)
            sharp = solve(at, "auto", tol=1e-9, max_iter=300).certificate
            steps = solvers()["spicy"].steps(at)
            iterate = next(steps)
            K = np.array(at.grams.dense())
            for t in range(8):
                rho = iterate.dual
                found = certify(at, rho, coefficients=iterate.coefficients)
                line = {"trial": trial, "loss": loss, "t": t}
                for name, first in (("printed", False), ("centred", True)):
                    tilde = projected(K, rho, 1.0, centred_first=first)
                    inside = np.allclose(at.feasible(tilde), tilde, atol=1e-9)
                    line[name] = at.gain(tilde) if inside else -np.inf
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
    K, B = np.array(grams.dense()), found.certificate.coefficients
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


def legs(at: Problem, solver: str, tol: float, budget: float) -> Iterator[Result]:
    """Runs to a gap or a budget of passes; each goes on where one stood still."""
    found = None
    while budget > 0 and (found is None or not found.converged):

        def over(_: Any, trace: Trace, left: float = budget) -> bool:
            return trace.last("passes") >= left

        found = solve(at, solver, tol=tol, start=found, callback=over)
        budget -= found.trace.last("passes")
        yield found


def raced(at: Problem, solver: str, budget: float) -> tuple[Result, dict[str, Any]]:
    """A run to the paper's gap, and what it cost."""
    begun = time.process_time()
    runs = list(legs(at, solver, TOL, budget))
    took, found = time.process_time() - begun, runs[-1]
    u = found.certificate.norms
    most = max(int(np.max(run.trace.active[1:], initial=0)) for run in runs)
    row = {
        "seconds": took,
        "passes": sum(run.trace.last("passes") for run in runs),
        "steps": sum(int(run.trace.last("svm_solves")) for run in runs),
        "iterations": sum(len(run.trace) for run in runs),
        "gap": found.relative_gap,
        "reached": found.converged,
        "used": int(np.sum(u > 1e-3 * np.max(u))),
        "most": most,
    }
    return found, row


def races(
    grams: GramStack, y: Array, C: float, methods: Any, budget: float
) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Each method on the same kernels, at the paper's C."""
    at = Problem(grams, y, "hinge", GroupLasso(), suzuki_C(C))
    rival = squared_form(at)
    for name in methods:
        solver, loss = METHODS[name]
        own = at.with_(loss=loss) if solver == "spicy" else rival
        found, row = raced(own, solver, budget)
        yield found, {"method": name, "C": C, "n": grams.n, "M": grams.M, **row}


@study(KEY)
def uci(scale: Scale) -> pd.DataFrame:
    """Section 5.1: five UCI sets, three values of C, work, accuracy, kernels used.

    SimpleMKL is run on the first split only when not at full size.
    """
    rows = []
    sets = scale.of(("ringnorm",), UCI, UCI)
    for name in sets:
        for seed in range(scale.of(1, 3, 10)):
            whole = binary(name, seed, 50)
            n = min(scale.of(50, 80, 10**6), round(0.8 * len(whole.y)))
            family = scale.of(
                kernels.rakotomamonjy(), kernels.suzuki(), kernels.suzuki()
            )
            grams, y, accuracy = prepared(whole, n, family, seed)
            methods = [
                m for m in METHODS if m != "SimpleMKL" or seed < scale.of(1, 1, 10)
            ]
            for C in PENALTIES:
                budget = scale.of(300.0, 600.0, 2000.0)
                for found, row in races(grams, y, C, methods, budget):
                    about = {"set": name, "d": whole.X.shape[1], "seed": seed}
                    rows.append({**about, **row, "accuracy": accuracy(found)})
    return pd.DataFrame(rows)


@study(KEY)
def progress(scale: Scale) -> pd.DataFrame:
    """Section 5.1, figure 2: gap and kernels in use along single runs."""
    name = scale.of("ringnorm", "ionosphere", "ionosphere")
    whole, n = binary(name, scale.seed, 50), scale.of(50, 140, 281)
    grams, y, _ = prepared(whole, n, kernels.suzuki(), scale.seed)
    at = Problem(grams, y, "hinge", GroupLasso(), suzuki_C(0.05))
    rival, parts = squared_form(at), []
    for method in ("SpicyMKL, hinge", "HessianMKL", "SimpleMKL"):
        solver, _ = METHODS[method]
        own, passed = (
            (at if solver == "spicy" else rival),
            {"seconds": 0.0, "passes": 0.0},
        )
        for run in legs(own, solver, 1e-4, scale.of(150.0, 800.0, 2000.0)):
            columns = ("seconds", "passes", "gap", "active")
            part = pd.DataFrame({column: run.trace[column] for column in columns})
            for column, before in passed.items():
                part[column] += before
                passed[column] = float(part[column].iloc[-1])
            parts.append(part.assign(method=method))
    return pd.concat(parts, ignore_index=True).assign(set=name, n=n, M=grams.M)


@study(KEY)
def over_kernels(scale: Scale) -> pd.DataFrame:
    """Section 5.2, figure 3: work against the number of kernels, C = 0.5."""
    sizes = scale.of((50, 600), (50, 150, 500, 1500), (50, 200, 1000, 3000, 6000))
    n, rows = scale.of(60, 100, 200), []
    for name in scale.of(SCALED[:1], SCALED, SCALED):
        for seed in range(scale.of(1, 2, 5)):
            for M in sizes:
                grams, y, _ = subset_problem(name, n, M, seed)
                budget = scale.of(100.0, 200.0, 500.0)
                for _, row in races(grams, y, 0.5, METHODS, budget):
                    rows.append({"set": name, "seed": seed, **row})
    return pd.DataFrame(rows)


@study(KEY)
def over_samples(scale: Scale) -> pd.DataFrame:
    """Section 5.2, figure 4: work against the sample size, 20 kernels, C = 0.5."""
    sizes = scale.of((50, 200), (100, 200, 400, 800), (100, 250, 500, 1000, 2000))
    rows = []
    for name in scale.of(SCALED[:1], SCALED, SCALED):
        for seed in range(scale.of(1, 2, 5)):
            for n in sizes:
                grams, y, _ = subset_problem(name, n, 20, seed)
                budget = scale.of(200.0, 400.0, 1000.0)
                for _, row in races(grams, y, 0.5, METHODS, budget):
                    rows.append({"set": name, "seed": seed, **row})
    return pd.DataFrame(rows)
