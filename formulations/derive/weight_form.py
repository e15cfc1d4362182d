"""Declarations written with kernel weights θ as a variable: ½Σu²/θ + r(θ).

`weight_form` finds θ, r and the constraints of θ in a declaration such as

    theta = cp.Variable(u.shape, nonneg=True)
    half = 0.5 * sum(cp.quad_over_lin(u[m], theta[m]) for m in range(u.size))
    return half + cp.sum(theta)

or in one that writes Σu²/θ as Σs with rotated cones 4u² + (s − θ)² ≤ (s + θ)², as this
package does (norms.py, `declared_quadratic`).

Guarantee. What is found is the declaration, by exact algebra. None: it is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class WeightForm(NamedTuple):
    """½Σu²/θ + price, subject to constraints of θ ≥ 0."""

    theta: Any
    price: Any
    constraints: list


def weight_form(expression: Any, constraints: list, x: Any) -> WeightForm | None:
    """The kernel weights of a declaration in x, and what they cost."""
    import cvxpy as cp

    terms = list(_terms(expression, 1.0))
    quotients = [each for each in terms if type(each[1]).__name__ == "quad_over_lin"]
    cones = [each for each in constraints if type(each).__name__ == "SOC"]
    if quotients and not cones:
        theta = _below(quotients, x)
    elif len(cones) == 1 and not quotients:
        theta, total = _rotated(cones[0], x)
        quotients = [
            (c, node)
            for c, node in terms
            if c == 0.5 and type(node).__name__ == "Sum" and node.args[0] is total
        ]
        theta = theta if len(quotients) == 1 else None
    else:
        theta = None
    if theta is None or not theta.is_nonneg():
        return None
    halves = {id(node) for _, node in quotients}
    price = sum(
        (c * node for c, node in terms if id(node) not in halves), cp.Constant(0.0)
    )
    rest = [each for each in constraints if each not in cones]
    alone = all(v is theta for part in (price, *rest) for v in part.variables())
    return WeightForm(theta, price, rest) if alone else None


def _terms(node: Any, c: float) -> Iterator[tuple[float, Any]]:
    """The terms of a sum, each with its factor: a power of 2 from outside, or 1."""
    kind = type(node).__name__
    if kind == "AddExpression":
        for part in node.args:
            yield from _terms(part, c)
    elif kind == "Sum" and getattr(node, "axis", None) is None and _stacks(node):
        for part in node.args[0].args:
            yield from _terms(part, c)
    elif kind in ("multiply", "MulExpression", "DivExpression") and node.size == 1:
        factor, inner = _factor(node, kind)
        if factor is None or abs(np.frexp(factor)[0]) != 0.5:
            yield c, node
        else:  # products with a power of 2 are exact
            yield from _terms(inner, c * factor)
    elif kind == "reshape" and node.size == 1:
        yield from _terms(node.args[0], c)
    elif not (node.is_constant() and node.size == 1 and float(node.value) == 0):
        yield c, node


def _factor(node: Any, kind: str) -> tuple[float | None, Any]:
    """A number times an expression; None: it is another product."""
    inner, number = node.args
    if kind != "DivExpression" and inner.is_constant():
        inner, number = number, inner
    if not number.is_constant() or number.size > 1 or inner.size > 1:
        return None, node
    factor = float(np.ravel(number.value)[0])
    if kind == "DivExpression":
        factor = 1 / factor if factor else 0.0
    return factor, inner


def _stacks(node: Any) -> bool:
    """Whether a sum is over numbers written one by one."""
    inner = node.args[0]
    one_by_one = all(part.size == 1 for part in inner.args)
    return type(inner).__name__ in ("Hstack", "Vstack") and one_by_one


def _below(quotients: list, x: Any) -> Any:
    """θ, if the quotients are ½u_m²/θ_m, once for each m."""
    found: list[Any] = []
    for c, node in quotients:
        top, bottom = (_entry(part) for part in node.args)
        if c != 0.5 or top is None or bottom is None or top[1] != bottom[1]:
            return None
        if top[0] is not x or (found and bottom[0] is not found[0][0]):
            return None
        found.append(bottom)
    theta = found[0][0]
    same = theta.size == x.size and sorted(m for _, m in found) == list(range(x.size))
    return theta if same else None


def _entry(node: Any) -> tuple[Any, int] | None:
    """The variable and the number of an entry of a vector."""
    if type(node).__name__ not in ("index", "special_index") or node.size != 1:
        return None
    (vector,) = node.args
    if type(vector).__name__ != "Variable" or vector.ndim != 1:
        return None
    place = np.ravel(np.asarray(node.numeric([np.arange(vector.size)])))
    return vector, int(place[0])


def _rotated(cone: Any, x: Any) -> tuple[Any, Any]:
    """(θ, s) of the cones ‖(2x, s − θ)‖ ≤ s + θ; (None, None) for others."""
    bound, both = cone.args
    if type(bound).__name__ != "AddExpression" or len(bound.args) != 2:
        return None, None
    s, theta = bound.args
    if type(both).__name__ != "Vstack" or len(both.args) != 2 or cone.axis != 0:
        return None, None
    if type(theta).__name__ != "Variable" or type(s).__name__ != "Variable":
        return None, None
    twice, apart = both.args
    doubled = type(twice).__name__ in ("multiply", "MulExpression") and (
        twice.args[0].is_constant()
        and bool(np.all(twice.args[0].value == 2))
        and twice.args[1] is x
    )
    parts = apart.args if type(apart).__name__ == "AddExpression" else []
    minus = (
        len(parts) == 2
        and parts[0] is s
        and type(parts[1]).__name__ == ("NegExpression")
    )
    same = minus and parts[1].args[0] is theta and theta.shape == s.shape == x.shape
    return (theta, s) if doubled and same else (None, None)
