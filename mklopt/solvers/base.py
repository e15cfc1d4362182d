"""What a solver is: a generator of iterates, and a statement of what it can solve.

    @solver("mirror", needs={"groups"}, losses={"hinge"}, accuracy=1e-3, …)
    def mirror(problem, *, start=None, step="gradient"):
        ...
        certificate = yield Iterate(dual=alpha, weights=theta)

The loop in run/loop.py certifies each iterate, stops, keeps time and sends the
certificate back in. A solver that is asked for a problem it cannot solve is not
started: one sentence names those that can.
"""

from __future__ import annotations

import inspect
import math
import sys
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

    Parameters
    ----------
    dual : array or function
        α with the sign of the label, feasible or not. A function is called when the
        iterate is certified.
    weights : array, optional
        θ ≥ 0, for w_m = θ_m Σ_i α_i ψ_m(x_i).
    coefficients : array or function, optional
        (M, n[, k]) instead of weights; a function returns them when they are needed.
    bias : optional
        Ignored: the certificate finds the best bias itself.
    info : dict
        Numbers worth keeping; "svm_solves" and "rounds" go into the trace.
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
    """An algorithm, and what it can solve.

    Parameters
    ----------
    name : str
        By which `solve` knows it.
    steps : function
        A generator function of (problem, *, start, …) that yields iterates.
    needs : frozenset of str
        Traits of the formulation, all of them; "a or b" asks for one of two.
    losses : frozenset of str
        Names of losses, or kinds as in `Loss.kinds`.
    bias : frozenset of bool
        Whether it solves problems with a bias, without, or both.
    accuracy : float or function
        The relative gap it promises, or a function of the problem; see `promise`.
    reference : str
        The papers it is from.
    guarantee : str
        What is proved of it, in one sentence.
    about : str
        What it is, in one sentence.
    """

    name: str
    steps: Callable[..., Steps]
    needs: frozenset[str]
    losses: frozenset[str]
    bias: frozenset[bool]
    accuracy: float | Callable[[Problem], float]
    reference: str = ""
    guarantee: str = ""
    about: str = ""

    def why_not(self, problem: Problem) -> str:
        """Why it cannot solve a problem.

        Parameters
        ----------
        problem : Problem
            The problem.

        Returns
        -------
        str
            What is missing, in words; empty where it can solve the problem.
        """
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
        """The relative gap it reaches on problems of ordinary size.

        Parameters
        ----------
        problem : Problem
            The problem.

        Returns
        -------
        float
            The gap; inf: no promise.
        """
        return self.accuracy(problem) if callable(self.accuracy) else self.accuracy

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers: then not every iterate is certified."""
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
    about: str = "",
) -> Callable[[Callable[..., Steps]], Solver]:
    """Make a solver of a generator function, and register it by name.

    Parameters
    ----------
    name : str
        By which `solve` will know it.
    needs : set of str, optional
        Traits that the formulation must state (`formulations/base.py` has the table);
        "a or b" asks for one of two.
    losses : set of str, optional
        Names of losses or kinds of them, as in `Loss.kinds`; default: a quadratic dual.
    bias : set of bool, optional
        Whether it takes problems with a bias, without, or both (the default).
    accuracy : float or function
        The relative gap it promises, or a function of the problem.
    reference : str
        The papers it is from.
    guarantee : str
        What is proved of it, in one sentence.
    about : str, optional
        What it is; default: the first line of the module's docstring.

    Returns
    -------
    function
        A decorator that turns the generator function into a `Solver`.

    Examples
    --------
    >>> @solver("mirror", needs={"groups"}, losses={"hinge"}, accuracy=1e-3)
    ... def mirror(problem, *, start=None):
    ...     certificate = yield Iterate(dual=alpha, weights=theta)
    """

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
            _first_line(about or sys.modules[steps.__module__].__doc__),
        )
        REGISTRY[name] = found
        return found

    return register


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def up_to_C(most: float, accuracy: float) -> Callable[[Problem], float]:
    """A promise for well-conditioned problems: every C at most so large."""
    return lambda problem: accuracy if np.max(problem.costs) <= most else math.inf
