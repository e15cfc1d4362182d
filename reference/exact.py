"""Reference solutions: an interval that contains the optimum, from our own certificate.

Guarantee. reference.lower ≤ f* ≤ reference.upper whatever the conic solver says of
itself: its points are only candidates. Clarabel at tight tolerances comes first; when
the gap we want is not reached, looser tolerances, other solvers and the derived dual
program follow, and the best primal point is paired with the best dual point of all.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, certify
from ..formulations.fixed_weights import FixedWeights
from ..problem import Problem
from .programs import Program, dual, factors, machine, primal

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Reference:
    """lower ≤ f* ≤ upper, with the points that prove it."""

    certificate: Certificate = field(repr=False)
    weights: Array = field(repr=False)
    dual: Array = field(repr=False)
    solver: str = ""
    seconds: float = 0.0

    @property
    def lower(self) -> float:
        return self.certificate.lower

    @property
    def upper(self) -> float:
        return self.certificate.upper

    @property
    def bias(self) -> Any:
        return self.certificate.bias

    @property
    def relative_gap(self) -> float:
        return self.certificate.width

    @property
    def coefficients(self) -> Array:
        """w_m = Σ_i coefficients[m, i] ψ_m(x_i), the primal point behind `upper`."""
        return self.certificate.expansion

    @cached_property
    def predictions(self) -> Array:
        """The decision function on the training points, bias included."""
        image = self.certificate.problem.grams.apply(self.coefficients)
        return np.asarray(np.sum(image, axis=0) + self.bias)

    @property
    def norms(self) -> Array:
        """u* = (‖w_m‖)_m of the primal point."""
        return self.certificate.norms

    def __repr__(self) -> str:
        return (
            f"Reference({self.lower:.12g} ≤ f* ≤ {self.upper:.12g}, relative gap "
            f"{self.relative_gap:.1e}, {self.solver}, {self.seconds:.1f} s)"
        )


def _clarabel(tolerance: float) -> dict[str, Any]:
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    return dict.fromkeys(names, tolerance) | {"max_iter": 300, "max_threads": 1}


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "CLARABEL": [_clarabel(10.0**-k) for k in (12, 11, 10, 9, 8)],
    "ECOS": [{"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11, "max_iters": 300}],
    "SCS": [{"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}],
    "OSQP": [
        {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 400_000, "polishing": True}
    ],
}


def run(program: Program, solver: str, options: dict[str, Any]) -> float | None:
    """Solve with one solver; its value, or None when it left no finite point."""
    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks on accuracy: we measure it ourselves
        try:
            program.problem.solve(solver=solver, **options)
        except (cp.SolverError, ValueError, ArithmeticError, TypeError):
            return None
    if any(variable.value is None for variable in program.problem.variables()):
        return None
    return float(program.problem.value)


def solve(
    problem: Problem,
    *,
    solver: str | None = None,
    tol: float = 1e-9,
    options: dict[str, Any] | None = None,
) -> Reference:
    """The exact answer, as an interval that contains the optimum.

    solver: any installed CVXPY solver by name; by default Clarabel, then others
    tol: the relative width to stop at; options: passed on to the named solver

    The points behind the interval are in `.certificate`; `.weights` are the kernel
    weights ‖w_m‖/‖α‖_{K_m}, `.dual` is α.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"solve takes a Problem, got {type(problem).__name__}")
    if not tol > 0:
        raise ValueError(f"tol = {tol} must be positive")
    if options is not None and solver is None:
        raise ValueError("options belong to a solver: name it with solver=")
    start = time.perf_counter()
    _installed(solver)
    parts = factors(problem.grams)
    program = primal(problem, parts)
    best: Certificate | None = None
    used, weights, said = "", np.zeros(problem.grams.M), []
    for name, settings in _attempts(solver, options):
        if run(program, name, settings) is None:
            said.append(f"{name}: {program.problem.status or 'not for this problem'}")
            continue
        for candidate in candidates(problem, program, parts):
            if best is None or candidate.primal < best.primal:
                weights = _weights(problem, program, candidate.alpha)
            joined = candidate if best is None else candidate.best_of(best)
            if best is None or joined.width < best.width:
                best, used = joined, name
            if best.width <= tol:
                break
        if best is not None and best.width <= tol:
            break
    if best is not None and best.width > tol and solver is None:
        best = _with_dual_program(problem, parts, best)
    if best is None:
        raise RuntimeError(
            f"no solver returned a point for {problem!r} ({'; '.join(said)}); is the "
            "problem bounded and feasible, its scale sane (unit trace, C near 1)?"
        )
    seconds = time.perf_counter() - start
    return Reference(best, weights, best.shrink * best.alpha, used, seconds)


def _attempts(
    solver: str | None, options: dict[str, Any] | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    if solver is not None:
        given = [options] if options else OPTIONS.get(solver.upper(), [{}])
        yield from ((solver.upper(), o) for o in given)
        return
    for settings in OPTIONS["CLARABEL"]:
        yield "CLARABEL", settings
    yield "ECOS", OPTIONS["ECOS"][0]
    yield "SCS", OPTIONS["SCS"][0]


def _installed(solver: str | None) -> None:
    import cvxpy as cp

    available = cp.installed_solvers()
    if solver is not None and str(solver).upper() not in available:
        raise ValueError(
            f"solver {solver!r} is not installed; choose one of {', '.join(available)}"
        )


def candidates(
    problem: Problem, program: Program, parts: list[Array]
) -> Iterator[Certificate]:
    """What a solved primal program suggests: its α with θ = ‖w‖/‖α‖_K, and its w."""
    alpha = program.dual_point()
    if not np.all(np.isfinite(alpha)):
        return
    used = _used(problem, program)
    yield certify(problem, alpha, _weights(problem, program, alpha))
    w = np.array(program.w.value, float)
    assert program.slices is not None
    coefficients = np.stack(
        [_preimage(L, w[part]) for L, part in zip(parts, program.slices)]
    )
    coefficients[~used] = 0.0
    if np.all(np.isfinite(coefficients)):
        yield certify(problem, alpha, coefficients=coefficients)


def _preimage(L: Array, w: Array) -> Array:
    """Coefficients β with Lᵀβ = w: the weight vector as a combination of the data."""
    return np.asarray(np.linalg.lstsq(L.T, w, rcond=1e-12)[0])


def _used(problem: Problem, program: Program) -> Array:
    """Kernels to keep: all of them, unless Ω forbids what rounding left of some."""
    u = program.norms()
    if np.isfinite(problem.formulation.value(u)):
        return np.ones(len(u), bool)
    return u > 1e-6 * np.max(u)


def _weights(problem: Problem, program: Program, alpha: Array) -> Array:
    """θ_m = ‖w_m‖/‖α‖_{K_m}."""
    u = np.where(_used(problem, program), program.norms(), 0.0)
    v = np.sqrt(np.maximum(problem.grams.quad(alpha), 0.0))
    return np.divide(u, v, out=np.zeros_like(u), where=v > 1e-300)


def _with_dual_program(
    problem: Problem, parts: list[Array], best: Certificate
) -> Certificate:
    found = solve_dual(problem, parts=parts)
    candidate = certify(problem, found.alpha, np.zeros(problem.grams.M)).best_of(best)
    return candidate if candidate.width < best.width else best


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The derived dual: its optimal value, its α, and the bound that α proves."""

    value: float
    bound: float
    alpha: Array = field(repr=False)


def solve_dual(problem: Problem, *, parts: list[Array] | None = None) -> DualSolution:
    """Solve the derived dual program.

    Of several attempts the one whose α, made feasible, proves the most is returned.
    """
    program = dual(problem, parts)
    found: list[DualSolution] = []
    for name, settings in _attempts(None, None):
        value = run(program, name, settings)
        alpha = program.dual_point() if value is not None else np.array(np.nan)
        if value is None or not np.all(np.isfinite(alpha)):
            continue
        bound = certify(problem, alpha, np.zeros(problem.grams.M)).dual
        found.append(DualSolution(value, bound, alpha))
        if abs(value - bound) <= 1e-10 * abs(value):
            break
    if not found:
        raise RuntimeError(
            f"no solver found a point of the derived dual of {problem!r}"
        )
    return max(found, key=lambda solution: solution.bound)


def at_weights(problem: Problem, weights: Array, *, solver: str = "OSQP") -> Reference:
    """The SVM on Σ θ_m K_m: the same loss with kernel weights held fixed, as a QP.

    OSQP takes piecewise quadratic losses; for others name a conic solver.
    """
    _installed(solver)
    start, name = time.perf_counter(), solver.upper()
    fixed = problem.with_(formulation=FixedWeights(weights))
    theta = np.array(fixed.formulation.theta)  # type: ignore[attr-defined]
    program = machine(fixed, theta)
    best: Certificate | None = None
    for settings in OPTIONS.get(name, [{}]):
        if run(program, name, settings) is not None:
            found = certify(fixed, program.dual_point(), theta)
            best = found if best is None or found.width < best.width else best
    if best is None:
        raise ValueError(
            f"{name} cannot solve {fixed.loss.name} at fixed weights: pass "
            "solver='CLARABEL'"
        )
    seconds = time.perf_counter() - start
    return Reference(best, theta, best.shrink * best.alpha, name, seconds)
