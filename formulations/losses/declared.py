"""Losses made of one function of (f, y): @loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..derive.declaration import Declaration
from .base import Loss
from .domains import Array


@dataclass(frozen=True)
class DeclaredLoss(Declaration, Loss):
    """A loss that is nothing but a function of (f, y).

    Parameters
    ----------
    function : callable
        Takes predictions f, a CVXPY expression, and labels y, and returns n convex
        expressions, one per sample.
    kind : {"real", "binary", "classes", "ones"}
        What the labels are.
    parameters : tuple
        Pairs of a name and a value: arguments of the function after f and y that do not
        have their defaults. Calling the loss sets them.
    """

    function: Callable[..., Any]
    kind: str = "real"
    parameters: tuple[tuple[str, Any], ...] = ()
    listed: ClassVar[bool] = False
    arguments: ClassVar[int] = 2

    def expression(self, f: Any, y: Array) -> Any:
        """V(f, y), as the function declares it.

        Parameters
        ----------
        f : cvxpy.Expression
            Predictions of shape (n,) or (n, k).
        y : ndarray of shape (n,)
            Labels.

        Returns
        -------
        cvxpy.Expression or tuple
            n expressions, or (expressions, [constraints]).
        """
        return self.declared(f, y)

    @property
    def labels(self) -> str:  # type: ignore[override]
        """What the labels are: the field `kind`.

        Returns
        -------
        str
        """
        return self.kind

    def validate(self, y: Array) -> Array:
        """Check labels as every loss does, and the declaration for these labels."""
        y = super().validate(y)
        self.read_again()
        self.epigraph(y).cones  # noqa: B018  # DCP, shape and type are checked here
        self.domain(y)
        return y

    def __repr__(self) -> str:
        return f"loss {self.label!r}"


def loss(function: Callable | None = None, *, labels: str = "real") -> Any:
    """Make a loss of one function of (f, y).

    Its values may depend on variables outside the function. When one of them changes,
    the next Problem sees it. They must not depend on files, clocks or random numbers.

    Parameters
    ----------
    function : callable, optional
        Takes predictions f, a CVXPY expression, and labels y, and returns n convex
        CVXPY expressions, one per sample, or (expressions, [constraints]). Its other
        arguments are parameters. Without it, a decorator is returned.
    labels : {"real", "binary", "classes"}
        What y holds: numbers, −1/+1, or 0 … k−1; then f has the shape (n, k).

    Returns
    -------
    DeclaredLoss or callable
        The loss, or a decorator that makes one.

    Raises
    ------
    ValueError
        Where something else than a function, or another kind of labels is given.

    Examples
    --------
    >>> @loss(labels="binary")
    ... def squared_hinge(f, y): return cp.square(cp.pos(1 - cp.multiply(y, f)))
    """
    if labels not in ("real", "binary", "classes"):
        raise ValueError(f"labels = {labels!r}; choose 'real', 'binary' or 'classes'")
    if function is None:
        return lambda inner: DeclaredLoss(inner, labels)
    if not callable(function):
        raise ValueError(f"loss takes a function of (f, y), got {function!r}")
    return DeclaredLoss(function, labels)


def stripped_loss(given: Loss) -> DeclaredLoss:
    """The same declaration with every closed form deleted: for comparisons.

    Parameters
    ----------
    given : Loss
        Any loss.

    Returns
    -------
    DeclaredLoss
    """
    return DeclaredLoss(given.expression, given.labels)
