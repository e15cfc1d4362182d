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

from ..certificates.certificate import Certificate, certify
from ..formulations.base import TRAITS
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


def certify_iterate(problem: Problem, iterate: Iterate) -> Certificate:
    """The certificate of an iterate, with products that the stack remembers."""
    B, dual = iterate.coefficients, iterate.dual
    B, dual = B() if callable(B) else B, dual() if callable(dual) else dual
    points = (dual, iterate.weights)
    return certify(problem, *points, coefficients=B, remembered=True)


def _in_words(need: str) -> str:
    return " or ".join(TRAITS[trait].words for trait in need.split(" or "))


class Unsupported(ValueError):
    """The solver cannot solve this problem; the message names those that can."""


@dataclass(frozen=True)
class Solver:
    """An algorithm and its traits."""

    name: str
    steps: Callable[..., Steps]
    needs: frozenset[str]  # traits of the formulation, all of them; "a or b": one of
    losses: frozenset[str]  # names, or kinds as in Loss.kinds
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
        if not problem.loss.kinds(problem.y) & self.losses:
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
