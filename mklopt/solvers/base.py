"""What a solver is: a generator of iterates, and a statement of what it can solve.

    @solver("mirror", needs={"groups"}, losses={"hinge"}, accuracy=1e-3, …)
    def mirror(problem, *, start=None, step="gradient"):
        ...
        certificate = yield Iterate(dual=alpha, weights=theta)

The loop in run/loop.py certifies each iterate, sends the certificate back to the
generator, measures time and decides when to stop. A solver that cannot solve a problem
is not started; the error names the solvers that can.
"""

import inspect
import sys
from collections.abc import Callable, Generator, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..certificates.certificate import Certificate, certify
from ..formulations.base import TRAITS
from ..grams.stack import GramStack
from ..problem import Problem
from ..util import extras

Array = np.ndarray


@dataclass(frozen=True)
class Iterate:
    """A candidate: α for the dual; kernel weights θ or coefficients for the primal.

    Parameters
    ----------
    dual : array or function
        α with the sign of the label; it need not be feasible. A function is called
        when the iterate is certified.
    weights : array, optional
        θ ≥ 0, for w_m = θ_m Σ_i α_i ψ_m(x_i).
    coefficients : array or function, optional
        (M, n[, k]) instead of weights. A function is called when they are needed.
    features : array, optional
        (R[, k]) instead of weights, for factors: f = Σ_m L_m w_m + b.
    bias : optional
        Ignored: the certificate finds the best bias itself.
    info : dict
        Further numbers. "svm_solves" and "rounds" go into the trace.
    """

    dual: Array | Callable[[], Array]
    weights: Array | None = None
    coefficients: Array | Callable[[], Array] | None = None
    features: Array | None = None
    bias: Any = None
    info: dict[str, Any] = field(default_factory=dict)


Steps = Generator[Iterate, Certificate, None]


def certify_iterate(problem: Problem, iterate: Iterate) -> Certificate:
    """The certificate of an iterate. It uses products that the stack remembers."""
    B, alpha = iterate.coefficients, iterate.dual
    B, alpha = B() if callable(B) else B, alpha() if callable(alpha) else alpha
    points: Any = {"coefficients": B, "features": iterate.features}
    return certify(problem, alpha, iterate.weights, **points, remembered=True)


class Kept(NamedTuple):
    """Numbers that a solver keeps: how many there are, and may be."""

    words: str
    numbers: Callable[[GramStack], int]
    most: float


KEEPS = {
    "": Kept("", lambda g: 0, 0),
    "blocks": Kept("arrays of M × n numbers", lambda g: g.M * g.n, 1e8),
    "squares": Kept("arrays of M × M numbers", lambda g: g.M**2, 4e8),
    "full": Kept("all kernels in full", lambda g: g.M * g.n**2, 1.5e9),
    "matrix": Kept("Σθ_mK_m as a matrix", lambda g: g.n**2 * g.by_rows, 1.5e9),
}


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
        The name that `solve` takes.
    steps : function
        A generator function `(problem, *, start, …)` that yields iterates.
    needs : frozenset of str
        The formulation must state all these traits; "a or b": one of the two.
    losses : frozenset of str
        Names of losses, or kinds as in `Problem.kinds`.
    bias : frozenset of bool
        Whether it solves problems with a bias, without, or both.
    accuracy : float or function
        The relative gap it promises, or a function of the problem; see `promise`.
    reference : str
        The papers that describe it.
    guarantee : str
        What is proved of it, in one sentence.
    about : str
        What it is, in one sentence.
    keeps : str
        What it holds in memory besides the kernels: "" numbers of size M and n only,
        "blocks" (M, n) arrays, "squares" (M, M) arrays, "full" all kernels in full
        storage, "matrix" Σθ_mK_m even where kernels are read by rows; or several of
        them, with commas. Problems that are too large for it are refused (`KEEPS`).
    uses : str
        A package that it needs beside those of a plain `pip install mklopt`.
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
    keeps: str = ""
    uses: str = ""

    def why_not(self, problem: Problem) -> str:
        """Why it cannot solve a problem.

        Parameters
        ----------
        problem : Problem
            The problem.

        Returns
        -------
        str
            What is missing, in words; empty if it can solve the problem.
        """
        traits = problem.formulation.traits
        missing = sorted(n for n in self.needs if not traits & set(n.split(" or ")))
        if missing:
            name = problem.formulation.name
            wanted = " and ".join(map(_in_words, missing))
            return f"{name} does not state {wanted}"
        if not problem.kinds & self.losses:
            if self.losses == {"factors"} and problem.grams.storage != "factors":
                return "it needs kernels as factors (GramStack.from_factors)"
            return f"it has no step for the {problem.loss.name} loss"
        if problem.bias not in self.bias:
            return "it needs bias=True" if True in self.bias else "it needs bias=False"
        if self.uses and (said := extras.missing(self.uses)):
            return said
        return self._too_large(problem)

    def _too_large(self, problem: Problem) -> str:
        """Why it would need too much memory.

        SVM solvers need no matrix for losses with a quadratic dual.
        """
        names, grams = self.keeps.split(", "), problem.grams
        if not self.draws and "quadratic" not in problem.loss.kinds(problem.y):
            names.append("matrix")
        for kept in map(KEEPS.__getitem__, names):
            if kept.numbers(grams) > kept.most:
                size = f"{8e-9 * kept.numbers(grams):.1f} GB"
                return f"it keeps {kept.words}, here {size}"
        return ""

    def promise(self, problem: Problem) -> float:
        """The relative gap that it reaches on problems of ordinary size.

        Parameters
        ----------
        problem : Problem
            The problem.

        Returns
        -------
        float
            The gap; infinite where nothing is promised.
        """
        return self.accuracy(problem) if callable(self.accuracy) else self.accuracy

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers. Then not every iterate is certified."""
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
    needs: Set[str] = frozenset(),
    losses: Set[str] = frozenset({"quadratic"}),
    bias: Set[bool] = frozenset({True, False}),
    accuracy: float | Callable[[Problem], float] = 1e-6,
    reference: str = "",
    guarantee: str = "",
    about: str = "",
    keeps: str = "",
    uses: str = "",
) -> Callable[[Callable[..., Steps]], Solver]:
    """Make a solver of a generator function, and register it by name.

    Parameters
    ----------
    name : str
        The name that `solve` will take.
    needs : set of str, optional
        Traits that the formulation must state (`formulations/base.py` has the table);
        "a or b": one of the two.
    losses : set of str, optional
        Names of losses, or kinds as in `Problem.kinds`. Default: a quadratic dual.
    bias : set of bool, optional
        Whether it takes problems with a bias, without, or both (the default).
    accuracy : float or function
        The relative gap it promises, or a function of the problem.
    reference : str
        The papers that describe it.
    guarantee : str
        What is proved of it, in one sentence.
    about : str, optional
        What it is. Default: the first line of the module's docstring.
    keeps : str
        "blocks" if it holds (M, n) arrays, "squares" (M, M) arrays, "full" all kernels
        in full storage, "matrix" Σθ_mK_m: it refuses problems that are too large for
        it.
    uses : str
        A package that it needs beside those of a plain `pip install mklopt`.

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
        text = about or sys.modules[steps.__module__].__doc__ or ""
        words = (reference, guarantee, text.strip().split("\n")[0])
        takes = (frozenset(needs), frozenset(losses), frozenset(bias))
        REGISTRY[name] = Solver(name, steps, *takes, accuracy, *words, keeps, uses)
        return REGISTRY[name]

    return register


def up_to_C(largest: float, accuracy: float) -> Callable[[Problem], float]:
    """A promise for well-conditioned problems: those without a larger C."""
    return lambda problem: accuracy if np.max(problem.costs) <= largest else np.inf
