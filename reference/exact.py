"""Reference solutions: an interval that contains the optimum, from our own certificate.

Guarantee. reference.lower ≤ f* ≤ reference.upper whatever the conic solver says of
itself: its points are only candidates. Clarabel at tight tolerances comes first; when
the gap we want is not reached, looser tolerances, other solvers and the derived dual
program follow, and the best primal point is paired with the best dual point of all.
"""

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
from ..util.checks import real_number, short
from ..util.rounding import interval
from .programs import Program, dual, factors, primal, svm_program

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Reference:
    """lower ≤ f* ≤ upper, with the points that prove it.

    Parameters
    ----------
    certificate : Certificate
        Of the primal and the dual point behind the interval.
    weights : array of shape (M,)
        The kernel weights θ_m = ‖w_m‖/‖α‖_{K_m}.
    dual : array of shape (n,) or (n, k)
        α, as shrunk for the dual value.
    solver : str
        Whose points these are.
    seconds : float
        How long it took.
    """

    certificate: Certificate = field(repr=False)
    weights: Array = field(repr=False)
    dual: Array = field(repr=False)
    solver: str = ""
    seconds: float = 0.0

    @property
    def lower(self) -> float:
        """A number ≤ f*, every rounding error counted."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """A number ≥ f*, every rounding error counted."""
        return self.certificate.upper

    @property
    def bias(self) -> Any:
        """The best bias of the primal point: a number, or one per output."""
        return self.certificate.bias

    @property
    def relative_gap(self) -> float:
        """(upper − lower)/|upper|."""
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
            f"Reference(relative gap {self.relative_gap:.1e}, {self.solver}, "
            f"{self.seconds:.1f} s, "
            f"{interval(self.lower, self.upper, self.certificate.assumptions, 12)})"
        )


# ---- conic solvers -------------------------------------------------------------------


def _clarabel(tol: float) -> dict[str, Any]:
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    return dict.fromkeys(names, tol) | {"max_iter": 300, "max_threads": 1}


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "CLARABEL": [_clarabel(10.0**-k) for k in (12, 11, 10, 9, 8)],
    "ECOS": [{"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11, "max_iters": 300}],
    "SCS": [{"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}],
    "OSQP": [
        {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 400_000, "polishing": True}
    ],
}
BY_DEFAULT = ("CLARABEL", "ECOS", "SCS")  # one after the other, until one will do


def attempts(solver: Any = None, options: Any = None) -> list[tuple[str, dict]]:
    """The solver that is named, or all of BY_DEFAULT, each with its options in turn."""
    import cvxpy as cp

    names = BY_DEFAULT if solver is None else (short(solver).strip("'").upper(),)
    available = cp.installed_solvers()
    if solver is not None and names[0] not in available:
        raise ValueError(
            f"solver {short(solver)} is not installed; choose one of "
            f"{', '.join(available)}"
        )
    ways = {name: [options] if options else OPTIONS.get(name, [{}]) for name in names}
    return [(name, way) for name in names for way in ways[name]]


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


def runs(program: Program, todo: list) -> Iterator[tuple[str, float]]:
    """Solve by one attempt after the other: the solver and its value, where it has one.

    After each step the variables of the program hold the point that was found.
    """
    for name, options in todo:
        value = run(program, name, options)
        if value is not None:
            yield name, value


# ---- references ----------------------------------------------------------------------


def solve(
    problem: Problem,
    *,
    solver: str | None = None,
    tol: float = 1e-9,
    options: dict[str, Any] | None = None,
) -> Reference:
    """The exact answer, as an interval that contains the optimum.

    Parameters
    ----------
    problem : Problem
    solver : str, optional
        Any installed CVXPY solver by name; by default Clarabel, then others.
    tol : float, default=1e-9
        The relative width of the interval to stop at.
    options : dict, optional
        Passed on to the named solver.

    Returns
    -------
    Reference
        The points behind the interval are in `certificate`.

    Raises
    ------
    ValueError
        Where an argument is wrong, or the solver is not installed.
    RuntimeError
        Where no solver returns a point.

    Examples
    --------
    >>> import numpy as np, mklopt
    >>> y = np.array([1.0, -1.0, 1.0, -1.0])
    >>> lasso = mklopt.formulations.GroupLasso()
    >>> problem = mklopt.Problem(np.eye(4)[None], y, "hinge", lasso, C=10.0)
    >>> mklopt.reference.solve(problem).relative_gap <= 1e-9
    True
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"solve takes a Problem, got {type(problem).__name__}")
    if not real_number(tol, "tol", "a positive number") > 0:
        raise ValueError(f"tol = {tol} must be positive")
    if options is not None and solver is None:
        raise ValueError("options belong to a solver: name it with solver=")
    start, todo = time.perf_counter(), attempts(solver, options)
    parts = factors(problem.grams)
    program = primal(problem, parts)
    best: Certificate | None = None
    for name, candidate, theta in _points(problem, program, parts, todo):
        if best is None:
            best, weights, used = candidate, theta, name
        else:
            weights = theta if candidate.primal < best.primal else weights
            joined = candidate.best_of(best)
            if joined.width < best.width:
                best, used = joined, name
        if best.width <= tol:
            break
    if best is None:
        raise RuntimeError(
            f"no solver returned a point for {problem!r} ({', '.join(dict(todo))}: "
            f"{program.problem.status or 'not for this problem'}); is the problem "
            "bounded and feasible, its scale sane (unit trace, C near 1)?"
        )
    if best.width > tol and solver is None:
        best = _with_dual_program(problem, parts, best)
    seconds = time.perf_counter() - start
    return Reference(best, weights, best.shrink * best.alpha, used, seconds)


def _points(
    problem: Problem, program: Program, parts: list[Array], todo: list
) -> Iterator[tuple[str, Certificate, Array]]:
    """Whose they are, what they prove, and their kernel weights."""
    for name, _ in runs(program, todo):
        for found in candidates(problem, program, parts):
            yield name, found, _weights(problem, program, found.alpha)


def candidates(
    problem: Problem, program: Program, parts: list[Array]
) -> Iterator[Certificate]:
    """What a solved primal program suggests: its α with θ = ‖w‖/‖α‖_K, and its w."""
    alpha = program.dual_point()
    if not np.all(np.isfinite(alpha)):
        return
    yield certify(problem, alpha, _weights(problem, program, alpha))
    # β with Lᵀβ = w: the weight vector as a combination of the data.
    pairs = zip(parts, program.weight_vectors())
    found = [np.linalg.lstsq(L.T, w, rcond=1e-12)[0] for L, w in pairs]
    coefficients = np.stack(found)
    coefficients[~_used(problem, program)] = 0.0
    if np.all(np.isfinite(coefficients)):
        yield certify(problem, alpha, coefficients=coefficients)


def _used(problem: Problem, program: Program) -> Array:
    """Kernels to keep: all of them, unless Ω forbids what rounding left of some."""
    u = program.norms()
    if np.isfinite(problem.formulation.value(u)):
        return np.ones(len(u), bool)
    return u > 1e-6 * np.max(u)


def _weights(problem: Problem, program: Program, alpha: Array) -> Array:
    """θ_m = ‖w_m‖/‖α‖_{K_m}."""
    u = np.where(_used(problem, program), program.norms(), 0.0)
    v = problem.grams.norms(alpha)
    return np.divide(u, v, out=np.zeros_like(u), where=v > 1e-300)


def _with_dual_program(
    problem: Problem, parts: list[Array], best: Certificate
) -> Certificate:
    found = solve_dual(problem, parts=parts)
    candidate = certify(problem, found.alpha, np.zeros(problem.grams.M)).best_of(best)
    return candidate if candidate.width < best.width else best


@dataclass(frozen=True, eq=False)
class DualSolution:
    """A solution of the derived dual program.

    Parameters
    ----------
    value : float
        The optimal value as the conic solver reports it.
    bound : float
        What α, made feasible, proves: a number ≤ f* up to rounding.
    alpha : array of shape (n,) or (n, k)
    """

    value: float
    bound: float
    alpha: Array = field(repr=False)


def solve_dual(problem: Problem, *, parts: list[Array] | None = None) -> DualSolution:
    """Solve the derived dual program.

    Parameters
    ----------
    problem : Problem
    parts : list of arrays, optional
        L_m with K_m = L_m L_mᵀ, where they are known.

    Returns
    -------
    DualSolution
        Of several attempts the one whose α, made feasible, proves the most.

    Raises
    ------
    RuntimeError
        Where no solver returns a point.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"solve_dual takes a Problem, got {type(problem).__name__}")
    program = dual(problem, parts)
    found: list[DualSolution] = []
    for _, value in runs(program, attempts()):
        alpha = program.dual_point()
        if not np.all(np.isfinite(alpha)):
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

    Parameters
    ----------
    problem : Problem
        Its formulation is replaced by FixedWeights(weights).
    weights : array of shape (M,)
        θ ≥ 0.
    solver : str, default="OSQP"
        A CVXPY solver. OSQP takes piecewise quadratic losses; for others name a conic
        solver such as "CLARABEL".

    Returns
    -------
    Reference

    Raises
    ------
    ValueError
        Where the solver is not installed, or cannot take this loss.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"at_weights takes a Problem, got {type(problem).__name__}")
    start, todo = time.perf_counter(), attempts(solver)
    fixed = problem.with_(formulation=FixedWeights(weights))
    theta = np.array(fixed.formulation.theta)  # type: ignore[attr-defined]
    program = svm_program(fixed, theta)
    found = [certify(fixed, program.dual_point(), theta) for _ in runs(program, todo)]
    name = todo[0][0]
    if not found:
        raise ValueError(
            f"{name} cannot solve {fixed.loss.name} at fixed weights: pass "
            "solver='CLARABEL'"
        )
    best = min(found, key=lambda certificate: certificate.width)
    seconds = time.perf_counter() - start
    return Reference(best, theta, best.shrink * best.alpha, name, seconds)
