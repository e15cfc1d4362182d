"""Whether two expression trees of CVXPY are the same function of their variables.

One may have parameters where the other has numbers. They are the same where node by
node the atoms, their options and their shapes are, where parts without variables have
the same values, and where variables stand for each other one by one. Sufficient, not
necessary: two ways to write one function are not the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDED = 1e-14  # relative: products of constants are rounded in another order


def same_declaration(one: tuple[Any, list], other: tuple[Any, list]) -> bool:
    """Whether two pairs of an expression and constraints are the same."""
    pairs: dict[int, int] = {}
    mine, theirs = [one[0], *one[1]], [other[0], *other[1]]
    same = len(mine) == len(theirs)
    return same and all(_same(a, b, pairs) for a, b in zip(mine, theirs))


def _same(a: Any, b: Any, pairs: dict[int, int]) -> bool:
    if a.shape != b.shape:
        return False
    if not a.variables() or not b.variables():
        return not a.variables() and not b.variables() and _close(a, b)
    if not a.args and not b.args:
        return pairs.setdefault(a.id, b.id) == b.id
    if _wraps(a) or _wraps(b):
        inside = a.args[0] if _wraps(a) else a
        return _same(inside, b.args[0] if _wraps(b) else b, pairs)
    alike = type(a) is type(b) and len(a.args) == len(b.args)
    if not alike or _options(a) != _options(b):
        return False
    return all(_same(x, y, pairs) for x, y in zip(a.args, b.args))


def _options(node: Any) -> str:
    """The options of an atom or a constraint, without its number."""
    number = getattr(node, "id", None)
    return repr([one for one in node.get_data() or () if one is not number])


def _wraps(node: Any) -> bool:
    """Whether a node only says that its argument is non-negative."""
    return type(node).__name__ == "nonneg_wrap"


def _close(a: Any, b: Any) -> bool:
    if not hasattr(a, "value"):
        return repr(a) == repr(b)
    x, y = (np.asarray(node.value, float) for node in (a, b))
    return bool(np.allclose(x, y, rtol=ROUNDED, atol=0.0))
