"""Formulations as people write them on one line.

    "lp:p=2"   "LpNorm(p=2)"   "group_lasso"   "VSKL:groups=((0,1),(2,)),q=inf"

A name, then its parameters as literals. Case and underscores do not matter; "lp" is
LpNorm and "l1" is BlockL1.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from typing import Any

from ..util.checks import short, unknown
from . import Formulation, formulations

ALIASES = {"lp": "LpNorm", "l1": "BlockL1"}


def formulation_from(given: Any, p: float | None = None) -> Formulation:
    """A formulation from an instance or from text.

    Parameters
    ----------
    given : Formulation or str
        Text such as "lp:p=2" or "LpNorm(p=2)".
    p : float, optional
        Replaces the field p.

    Returns
    -------
    Formulation

    Raises
    ------
    ValueError
        Where the text cannot be read, or there is no field p.
    """
    made = read_formulation(given) if isinstance(given, str) else given
    if not isinstance(made, Formulation):
        raise ValueError(
            f"formulation = {short(given)}; give an instance, or text such as 'lp:p=2'"
        )
    if p is None:
        return made
    if "p" not in made.get_params():
        raise ValueError(
            f"p = {p} was given, but {given!r} has no parameter p; choose 'lp', or "
            "leave p out"
        )
    return made.with_(p=p)


def read_formulation(text: str) -> Formulation:
    """The formulation that a line of text names."""
    name, mark, rest = re.fullmatch(r"([^:(]*)([:(]?)(.*)", text.strip(), re.S).groups()  # type: ignore[union-attr]
    kind = known_kind(name)
    try:
        call = ast.parse(f"f({rest}" + ("" if mark == "(" else ")"), mode="eval").body
        return kind(*_arguments(call), **_parameters(call))
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        said = str(error) or "it is nested too deeply"
        said = said.replace(f"{kind.__name__}.__init__()", kind.__name__)
        takes = ", ".join(field.name for field in dataclasses.fields(kind))
        said += f"; it takes {takes or 'nothing'}" * isinstance(error, TypeError)
        raise ValueError(f"formulation {short(text)} cannot be read: {said}") from None


def _arguments(call: Any) -> list:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError("write a name and its parameters, such as 'lp:p=2'")
    return [_literal(one) for one in call.args]


def _parameters(call: Any) -> dict[str, Any]:
    found = {str(one.arg): _literal(one.value) for one in call.keywords}
    if len(found) < len(call.keywords):
        raise ValueError("a parameter is given twice")
    return found


def known_kind(name: str) -> type[Formulation]:
    """The class that a name means."""
    known = formulations()
    plain = {key.lower(): kind for key, kind in known.items()}
    name = name.strip()
    sought = ALIASES.get(name.lower(), name).replace("_", "").lower()
    if sought not in plain:
        raise ValueError(unknown("formulation", name, [*ALIASES, *known]))
    return plain[sought]


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    try:
        return ast.literal_eval(node)
    except ValueError:
        said = ast.unparse(node)
        raise ValueError(f"{said} is no plain number, tuple or inf") from None
