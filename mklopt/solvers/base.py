"""What a solver is: a generator of iterates, and a statement of what it can solve.

    @solver("mirror", needs={"groups"}, losses={"hinge"}, accuracy=1e-3, …)
    def mirror(problem, *, start=None, step="gradient"):
        ...
        certificate = yield Iterate(dual=alpha, weights=theta)

The loop in run.py certifies each iterate, stops, keeps time and sends the certificate
back in. A solver that is asked for a problem it cannot solve is not started: one
sentence names those that can.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificate import Certificate, certify
from ..problem import Problem

Array = np.ndarray


@dataclass(frozen=True)
class Iterate:
    """A candidate: α, and kernel weights θ or coefficients for the primal point.

    dual: α with the sign of the label, feasible or not; it may be a function, too,
        called when the iterate is certified
    weights: θ ≥ 0, for w_m = θ_m Σ_i α_i ψ_m(x_i)
    coefficients: (M, n[, k]) instead, or a function that returns them when needed
    info: numbers worth keeping; "svm_solves" goes into the trace
    """

    dual: Array | Callable[[], Array]
    weights: Array | None = None
    coefficients: Array | Callable[[], Array] | None = None
    bias: Any = None  # the certificate finds the best bias itself
    info: dict[str, Any] = field(default_factory=dict)


Steps = Generator[Iterate, Certificate, None]


def judge(problem: Problem, iterate: Iterate) -> Certificate:
    """The certificate of an iterate, with products that the stack remembers."""
    B, dual = iterate.coefficients, iterate.dual
    B, dual = B() if callable(B) else B, dual() if callable(dual) else dual
    points = (dual, iterate.weights)
    return certify(problem, *points, coefficients=B, remembered=True)


TRAITS = {  # what a formulation must state, in words
    "reweighted": "kernel weights that majorize it",
    "smooth_dual": "a smooth dual",
    "ball": "a ball of kernel weights",
    "simplex": "a simplex of kernel weights",
    "sums": "sums of block norms inside groups",
    "simplices": "simplices of kernel weights",
    "two_levels": "kernel weights on two levels",
    "orthant": "a price of every kernel for itself",
    "curved": "a strongly convex block norm",
    "priced": "a differentiable price of kernel weights",
}


def _in_words(need: str) -> str:
    return " or ".join(TRAITS.get(trait, trait) for trait in need.split(" or "))


class Unsupported(ValueError):
    """The solver cannot solve this problem; the message names those that can."""


@dataclass(frozen=True)
class Solver:
    """An algorithm and its traits."""

    name: str
    steps: Callable[..., Steps]
    needs: frozenset[str]  # traits of the formulation, all of them; "a or b": one of
    losses: frozenset[str]  # names, or kinds: "any", "smooth" (a Lipschitz gradient),
    #                         "quadratic" (a quadratic dual), "machine" (that, or the
    #                         same with k outputs: losses that state their margins),
    #                         "steep" (one output), "pointwise" (Lipschitz, and a
    #                         compiled subgradient at one sample)
    bias: frozenset[bool]  # with a bias, without, or both
    accuracy: float | Callable[[Problem], float]  # see promise
    reference: str
    guarantee: str

    def why_not(self, problem: Problem) -> str:
        """Empty, or what is missing for this problem."""
        traits = problem.formulation.traits
        missing = sorted(n for n in self.needs if not traits & set(n.split(" or ")))
        if missing:
            name = problem.formulation.name
            wanted = " and ".join(map(_in_words, missing))
            return f"{name} does not state {wanted}"
        quadratic = problem.loss.quadratic(problem.y, problem.costs) is not None
        kinds = {problem.loss.name, "any"}
        if quadratic:
            kinds |= {"quadratic", "machine"}
        if problem.loss.margins(problem.y) is not None:
            kinds.add("machine")
        if problem.loss.smoothness is not None:
            kinds.add("smooth")
        if problem.loss.steep and len(problem.shape) == 1:
            kinds.add("steep")
        if problem.loss.pointwise() is not None:
            kinds.add("pointwise")
        if not kinds & self.losses:
            return f"it has no step for the {problem.loss.name} loss"
        if problem.bias not in self.bias:
            return "it needs bias=True" if True in self.bias else "it needs bias=False"
        return ""

    def promise(self, problem: Problem) -> float:
        """The relative gap it reaches on problems of ordinary size; inf: no promise."""
        return self.accuracy(problem) if callable(self.accuracy) else self.accuracy

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers: then it is certified now and then only."""
        return "rng" in inspect.signature(self.steps).parameters

    def options(self) -> dict[str, Any]:
        """Its options and their defaults."""
        known = inspect.signature(self.steps).parameters.values()
        own = [p for p in known if p.name not in ("problem", "start", "rng")]
        return {p.name: p.default for p in own}


REGISTRY: dict[str, Solver] = {}


def solver(
    name: str,
    *,
    needs: set[str] | None = None,
    losses: set[str] | None = None,
    bias: set[bool] | None = None,
    accuracy: float | Callable[[Problem], float] = 1e-6,
    reference: str = "",
    guarantee: str = "",
) -> Callable[[Callable[..., Steps]], Solver]:
    """Make a solver of a generator function and enter it in the registry."""

    def register(steps: Callable[..., Steps]) -> Solver:
        found = Solver(
            name,
            steps,
            frozenset(needs or ()),
            frozenset(losses or {"quadratic"}),
            frozenset(bias if bias is not None else {True, False}),
            accuracy,
            reference,
            guarantee,
        )
        REGISTRY[name] = found
        return found

    return register


def up_to_C(most: float, accuracy: float) -> Callable[[Problem], float]:
    """A promise for well-conditioned problems: every C at most so large."""
    return lambda problem: accuracy if np.max(problem.costs) <= most else math.inf


def first_dual(problem: Problem) -> Array:
    """α proportional to the labels, as long as it should be.

    At α = 0 the weights are undefined; along a ray with a quadratic Ω* the dual value
    s·L − s²Ω* is largest at s = L/(2Ω*).
    """
    alpha = problem.feasible(problem.costs * problem.y)
    dual = problem.loss.quadratic(problem.y, problem.costs)
    assert dual is not None
    gain = float(dual.linear @ alpha - dual.kink @ np.abs(alpha))
    v = np.sqrt(np.maximum(problem.grams.quad(alpha), 0.0))
    price = problem.formulation.conjugate(v) + 0.5 * float(dual.ridge @ alpha**2)
    return alpha * min(1.0, max(gain, 0.0) / max(2 * price, 1e-300))


def coefficients_of(problem: Problem, start: Any) -> tuple[Array, Array, Any]:
    """Coefficients (M, n[, k]), α and bias to begin with, for solvers of the primal.

    From a result, from (weights, dual), or w = 0 with the best bias and the α it asks.
    """
    if start is None:
        f, loss = np.zeros(problem.shape), problem.loss
        bias = loss.offset(f, problem.y, problem.costs) if problem.bias else 0.0
        alpha = -problem.spread_costs * loss.gradient(f + bias, problem.y)
        return np.zeros((problem.grams.M, *problem.shape)), alpha, bias
    theta, alpha = given(problem, start)
    bias = getattr(start, "bias", 0.0) if problem.bias else 0.0
    if alpha is None:
        raise ValueError("start: give the dual with the weights, (weights, dual)")
    certificate = getattr(start, "certificate", None)
    if certificate is not None:
        return certificate.expansion, alpha, bias
    return np.multiply.outer(theta, alpha), alpha, bias


def beginning(problem: Problem, start: Any) -> tuple[Array, Array | None]:
    """Weights and α to begin with: from a result, from (weights, dual), or uniform."""
    if start is None:
        theta = problem.formulation.weights(np.ones(problem.grams.M))
        return np.where(np.isfinite(theta), theta, 1.0), None
    theta, alpha = given(problem, start)
    if not np.any(theta):
        return beginning(problem, None)[0], alpha
    # A weight of 0 would stay 0 in every multiplicative step.
    return np.maximum(theta, 1e-4 * np.max(theta)), alpha


def given(problem: Problem, start: Any) -> tuple[Array, Array | None]:
    """Weights and α of a start, checked."""
    if isinstance(start, tuple) and len(start) == 2:
        theta, alpha = start
    elif hasattr(start, "weights") and hasattr(start, "dual"):
        theta, alpha = start.weights, start.dual
    else:
        raise ValueError(
            f"start = {start!r}; give a result of solve, or a pair (weights, dual)"
        )
    theta = np.array(theta, float)
    good = np.isfinite(theta) & (theta >= 0)
    if theta.shape != (problem.grams.M,) or not np.all(good):
        raise ValueError(
            f"start: weights of shape {theta.shape} were given; expected one number "
            f"≥ 0 for each of the {problem.grams.M} kernels"
        )
    if alpha is not None:
        alpha = np.array(alpha, float)
        if alpha.shape != problem.shape or not np.all(np.isfinite(alpha)):
            raise ValueError(
                f"start: the dual must be finite, of shape {problem.shape}"
            )
    return theta, alpha
