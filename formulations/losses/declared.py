"""Losses made of one function of (f, y): @loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..base import by_name
from .base import Loss, derived_domain, epigraph_of
from .domains import Array


@dataclass(frozen=True)
class DeclaredLoss(Loss):
    """A loss that is nothing but a function of (f, y)."""

    function: Callable[[Any, Array], Any]
    kind: str = "real"
    listed: ClassVar[bool] = False

    def expression(self, f: Any, y: Array) -> Any:
        return self.function(f, y)

    @property
    def labels(self) -> str:  # type: ignore[override]
        return self.kind

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "declared")

    def validate(self, y: Array) -> Array:
        """Labels as for every loss; the declaration is compiled afresh and checked."""
        y = super().validate(y)
        epigraph_of.cache_clear()  # what the function refers to may have changed
        derived_domain.cache_clear()
        self.epigraph(y).cones  # noqa: B018  # DCP, shape and type are checked here
        self.domain(y)
        return y

    def __repr__(self) -> str:
        return f"loss {self.name!r}"

    def __reduce__(self) -> tuple:
        parts = (self.function, self.kind)
        return by_name(self, self.function, DeclaredLoss, *parts)


def loss(function: Callable | None = None, *, labels: str = "real") -> Any:
    """Make a loss of one function of (f, y): n convex CVXPY expressions.

    labels says what y holds: "real" numbers (the default), "binary" −1/+1, or "classes"
    0 … k−1, and then f is (n, k).

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
    """The same declaration with every closed form deleted."""
    return DeclaredLoss(given.expression, given.labels)
