"""Problem: data, loss, formulation and C, validated and immutable.

min over w, b    Σ_i C_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖),   f = Σ_m ⟨w_m, ψ_m⟩ + b
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .formulations import Formulation, Loss, losses_by_name
from .formulations.declared import Declared
from .formulations.losses.base import Quadratic
from .formulations.losses.declared import DeclaredLoss
from .grams.stack import GramStack
from .util.arrays import Array, labels_array, real_array
from .util.checks import check_flag, choices, short
from .util.parameters import real_numbers


@dataclass(frozen=True, eq=False)
class Problem:
    """One learning problem, checked when it is made.

    Parameters
    ----------
    grams : GramStack, or array (M, n, n)
        The kernels on the training samples.
    y : array (n,)
        One label per sample, as the loss needs them: −1/+1, numbers, or 0 … k−1.
    loss : str or Loss
        A name ("hinge", "logistic", "squared", …), an instance, or a loss declared
        with @mklopt.loss.
    formulation : Formulation
        An instance such as LpNorm(p=2), or one declared with @mklopt.formulation.
    C : float, or array (n,)
        The weight of the loss, positive: one number, or one per sample.
    bias : bool
        Whether f has a constant term b.

    Raises
    ------
    ValueError
        If a part is not valid; the message says what was given and what to do.

    Examples
    --------
    >>> from mklopt.formulations import LpNorm
    >>> problem = Problem(np.eye(2)[None], [1, -1], formulation=LpNorm(p=2), C=10)
    >>> problem.with_(C=1.0).C
    1.0
    """

    grams: GramStack
    y: Array
    loss: Any = "hinge"  # a Loss; given by name, it is looked up
    formulation: Formulation = None  # type: ignore[assignment]  # must be given
    C: float | Array = 1.0
    bias: bool = True

    if TYPE_CHECKING:  # what may be given; the fields are what it becomes

        def __init__(
            self,
            grams: GramStack | Array | Sequence[Array],
            y: Array | Sequence[float],
            loss: str | Loss = "hinge",
            formulation: Formulation = ...,
            C: float | Array | Sequence[float] = 1.0,
            bias: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if not hasattr(self.grams, "matvec"):
            put("grams", GramStack(self.grams))
        put("loss", loss_from(self.loss))
        put("formulation", _formulation(self.formulation))
        put("y", self._labels())
        put("C", self._penalty())
        check_flag(self.bias, "bias")
        put("bias", bool(self.bias))
        self.formulation.validate(self.grams.M)
        put("formulation", self.formulation.bound(self.grams.M))
        if self.bias and not self.loss.bias_allowed:
            raise ValueError(
                f"{self.loss.name} with a bias is trivial (w = 0 is optimal): "
                "pass bias=False"
            )

    def _labels(self) -> Array:
        y = labels_array(self.y)
        if y.dtype.kind in "bO":
            y = real_array(y, "y", "numbers")
        if y.shape != (self.grams.n,):
            raise ValueError(
                f"y has shape {y.shape} but the kernels are {self.grams.n} × "
                f"{self.grams.n}; give one label per sample"
            )
        if y.dtype.kind not in "fiu":
            raise ValueError(
                f"y holds {y.dtype} values; map labels to numbers first, e.g. with "
                "numpy.unique(y, return_inverse=True)[1]"
            )
        y = np.array(self.loss.validate(y))
        y.flags.writeable = False
        return y

    def _penalty(self) -> float | Array:
        C = real_numbers(self.C, "C", "one number, or one per sample")
        if C.shape not in ((), (self.grams.n,)):
            raise ValueError(
                f"C has shape {C.shape}; give one number, or one per sample "
                f"({self.grams.n})"
            )
        if not np.all(np.isfinite(C) & (C > 0)):
            raise ValueError(f"C must be positive and finite, got {short(self.C)}")
        if C.ndim == 0:
            return float(C)
        C.flags.writeable = False
        return C

    @cached_property
    def costs(self) -> Array:
        """C as an array (n,), one number per sample."""
        return np.broadcast_to(np.asarray(self.C, float), (self.grams.n,))

    @property
    def spread_costs(self) -> Array:
        """`costs` shaped to multiply predictions: (n,), or (n, 1) for k outputs."""
        return self.costs if len(self.shape) == 1 else self.costs[:, None]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of predictions and dual variables: (n,) or (n, k)."""
        return self.loss.shape(self.y)

    @property
    def kinds(self) -> set[str]:
        """What solvers may ask for: the kinds of the loss, "features" and "factors".

        Both: kernels as factors, for which there is an SVM solver with second
        derivatives; "features" with k classes and few columns, "factors" with one
        output.
        """
        found = self.loss.kinds(self.y)
        if self.grams.in_feature_space:
            classes = self.loss.class_terms(self.y, self.costs) is not None
            found |= {"features"} if classes else set()
        if self.grams.storage == "factors" and len(self.shape) == 1:
            solvable = found & {"quadratic", "twice_differentiable"}
            found |= {"factors"} if solvable else set()
        return found

    def feasible(self, alpha: Array) -> Array:
        """A dual feasible point near alpha: in the domain of V*, Σα = 0 for a bias.

        Parameters
        ----------
        alpha : array of the shape of predictions

        Returns
        -------
        array of the same shape
        """
        return self.loss.domain(self.y).restore(alpha, self.costs, self.bias)

    def dual_loss(self, alpha: Array) -> float:
        """−Σ C V*(−α/C): the part of the dual value that does not depend on kernels.

        Parameters
        ----------
        alpha : array of the shape of predictions

        Returns
        -------
        float
            −inf outside the domain of V*.
        """
        a = -alpha / self.spread_costs
        return -float(self.costs @ self.loss.conjugate(a, self.y))

    def with_(self, **changes: Any) -> Self:
        """The same problem with some of its parts replaced, and checked again.

        Parameters
        ----------
        **changes
            Parameters of Problem, by name.

        Returns
        -------
        Problem
        """
        return replace(self, **changes)

    def __repr__(self) -> str:
        bias = "" if self.bias else ", no bias"
        C = self.C if isinstance(self.C, float) else "per sample"
        return (
            f"Problem({self.loss.name}, {self.formulation!r}, C={C}, "
            f"n={self.grams.n}, M={self.grams.M}{bias})"
        )

    def digest(self) -> str:
        """The SHA-256 of everything that determines the optimum, as 64 hex digits.

        Stored references and certificate files name their problem by it.
        """
        return self._hash(lambda parameters: parameters)

    def is_named(self, digest: Any) -> bool:
        """Whether this is the digest of the problem.

        Parameters
        ----------
        digest : str
            Version 0.1 wrote parameters that were given as integers as integers; a
            digest of its files is known, too.

        Returns
        -------
        bool
        """
        return digest == self.digest() or digest == self._hash(_whole_as_integers)

    def _hash(self, written: Callable[[Any], Any]) -> str:
        h = hashlib.sha256()
        grams = self.grams
        h.update(json.dumps(["mklopt problem 1", grams.M, grams.n, self.bias]).encode())
        for array in grams.content():
            h.update(json.dumps(array.shape).encode())
            h.update(np.ascontiguousarray(array, "<f8").tobytes())
        for array in (grams.shift, self.y, self.costs):
            h.update(np.ascontiguousarray(array, "<f8").tobytes())
        for part in (self.loss, self.formulation):
            said = written(describe(part, self))
            h.update(json.dumps(said, default=_no_digest).encode())
        return h.hexdigest()


def _whole_as_integers(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _whole_as_integers(value) for name, value in said.items()}
    if isinstance(said, list | tuple):
        return [_whole_as_integers(value) for value in said]
    whole = isinstance(said, float) and said.is_integer()
    return int(said) if whole else said


def _no_digest(value: Any) -> Any:
    raise ValueError(
        f"a parameter is {short(value)}, which files and hashes cannot name; use "
        "numbers, text and tuples of these"
    )


def quadratic_dual(problem: Problem) -> Quadratic:
    """The quadratic dual of the loss, with its bounds and kinks; else an error."""
    dual = problem.loss.quadratic(problem.y, problem.costs)
    if dual is None:
        raise ValueError(f"the dual of {problem.loss.name} is not quadratic")
    return dual


def describe(part: Formulation | Loss, problem: Problem) -> list:
    """A loss or formulation by name and parameters, a declared one by its cones."""
    if isinstance(part, Declared | DeclaredLoss):
        size = problem.y if isinstance(part, Loss) else problem.grams.M
        cones = part.epigraph(size).cones  # type: ignore[arg-type]
        h = hashlib.sha256(cones.A.toarray().tobytes() + cones.b.tobytes())
        return [part.name, h.hexdigest(), [list(block) for block in cones.blocks]]
    assert is_dataclass(part)
    return [part.name, {f.name: getattr(part, f.name) for f in fields(part)}]


def loss_from(given: Any) -> Loss:
    """The loss of this name; an instance is returned as it is."""
    if isinstance(given, Loss):
        return given
    known = losses_by_name()
    if isinstance(given, str) and given in known:
        return known[given]()
    raise ValueError(
        f"loss = {short(given)} is not known; "
        f"{choices(given, known, 'or make one with @mklopt.loss')}"
    )


def _formulation(given: Any) -> Formulation:
    if isinstance(given, type) and issubclass(given, Formulation):
        raise ValueError(
            f"formulation = {given.__name__} is a class; call it with its parameters, "
            "such as LpNorm(p=2)"
        )
    if not isinstance(given, Formulation):
        raise ValueError(
            f"formulation = {short(given)} is not a formulation; give an instance such "
            "as mklopt.formulations.LpNorm(p=2), or make one with @mklopt.formulation"
        )
    kind = type(given)
    if "__dataclass_fields__" not in vars(kind) and "__init__" in vars(kind):
        raise ValueError(
            f"{kind.__name__} has parameters but is no dataclass: put "
            "@dataclass(frozen=True) above it and declare them as fields"
        )
    try:
        hash(given)
    except TypeError:
        raise ValueError(
            f"{kind.__name__} has a parameter that cannot be hashed; store tuples "
            "instead of arrays or lists"
        ) from None
    return given
