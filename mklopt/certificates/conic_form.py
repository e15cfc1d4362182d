"""Certificate files of own formulations: Ω by its conic form, and two exact points.

Given (A, b, K) with epi Ω = {z = (u, t, x): b − A z ∈ K} (derive/epigraph.py), u² and
v². Two small programs, each with a point e inside of its cones and a distance μ:

    multiplier   min bᵀy   Aᵀy = (v, −1, 0), y − μ e ∈ K*
    epigraph     min t     b − A z − μ e ∈ K, z_m ≥ u_m

Clarabel's solutions are near the cones and near the equations. A solution that is
pushed inside by μ stays inside while some of its numbers are moved, so that all
equations hold in rational numbers: μ is the smallest with which conic.py proves both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..formulations import Formulation
from ..formulations.derive.cones import Block, Cones
from .checker import DIGITS, Claim
from .conic import Conic
from .reading import MAX_DIGITS, Refused

Array = np.ndarray
NAMES = {"zero": "zero", "nonneg": "nonnegative", "soc": "second_order"}
NAMES |= {"exp": "exponential", "pow": "power"}
# A point inside of each cone, and one inside of its dual cone: how they begin.
INSIDE = {"zero": [0], "soc": [1], "exp": [0, 1, 2], "pow": [1, 1, 0]}
INSIDE_DUAL = {"zero": [0], "soc": [1], "exp": [-1, 0, 1], "pow": [1, 1, 0]}
PUSHES = 10.0 ** np.arange(-12, -4)  # μ, from the sharpest on
ROOM = 0.0, 1e-10, 1e-8, 1e-6, 1e-4  # by which a point at the border is shrunk
GRID = 2.0**-80  # of numbers that need not be moved, relative to the largest
SMALL = 1e-9  # of a pivot: what is below is another equation's


class NotFound(Refused):
    """No exact point was found."""


def completed(claim: dict[str, Any], formulation: Formulation) -> dict[str, Any]:
    """A claim with both points of Ω, and with the bounds that they show."""
    for room in ROOM:
        dual = {**claim["dual"], "shrink": claim["dual"]["shrink"] * (1 - room)}
        trial = {**claim, "dual": dual}
        with localcontext(DIGITS):
            found = Claim(trial).measured()
        _, v2, _, _, u2 = found
        try:
            dual["multiplier"] = multiplier(formulation, v2)
            break
        except NotFound:
            if room == ROOM[-1]:
                raise
    trial["primal"] = {**claim["primal"], "epigraph": epigraph_point(formulation, u2)}
    with localcontext(DIGITS):
        lower, upper = Claim(trial).bounds(*found)
    return trial | {"lower": _float(lower, -1), "upper": _float(upper, 1)}


def _float(x: Decimal, side: int) -> float:
    """The closest float on one side of x."""
    near = float(x)
    inside = Decimal(near) <= x if side < 0 else Decimal(near) >= x
    return near if inside else math.nextafter(near, side * math.inf)


def terms_of(formulation: Formulation, M: int) -> dict[str, Any]:
    """A, b and the cones of a formulation, u first, then t, as a file has them."""
    cones = ordered(formulation.epigraph(M).cones)
    A = cones.A.tocoo()
    return {
        "A": [[int(i), int(j), float(x)] for i, j, x in zip(A.row, A.col, A.data)],
        "b": cones.b.tolist(),
        "cones": [_cone(block) for block in cones.blocks],
    }


def _cone(block: Block) -> list:
    kind, size, exponent = block
    return [NAMES[kind], exponent if kind == "pow" else size]


def ordered(cones: Cones) -> Cones:
    """The same program with the columns of u first, then that of t; no zeros in A."""
    named = np.concatenate([cones.x, cones.t])
    order = [*named, *np.setdiff1d(np.arange(cones.A.shape[1]), named)]
    A, M = sp.csc_matrix(cones.A[:, order]), len(cones.x)
    A.eliminate_zeros()
    zeros = np.zeros(A.shape[1]), sp.csc_matrix((A.shape[1],) * 2)
    return Cones(
        zeros[1], zeros[0], A, cones.b, cones.blocks, np.arange(M), np.array([M]), 0.0
    )


def multiplier(formulation: Formulation, squares: list[Fraction]) -> list[int]:
    """y of a file, for v = √squares; NotFound if v is on the border of the domain."""
    M, v = len(squares), _roots(squares)
    cones = ordered(formulation.epigraph(M).cones)
    judge, e = Conic(terms_of(formulation, M), M), _start(cones, INSIDE_DUAL)
    equations = sp.csr_matrix(cones.A.T)
    for push in PUSHES * max(1.0, v.max()):
        goal = cones.cost(v + push * (1 + v), -1.0)
        found = cones.solve(push * (cones.A.T @ e) - goal)
        if found.status != "Solved":
            continue
        y = found.y + push * e
        exact = exactly(equations[M + 1 :], np.zeros(cones.A.shape[1] - M - 1), y)
        if exact is None:
            continue
        whole = integers(exact)
        if _holds(judge.conjugate, squares, whole[:-1]):
            return whole[:-1]
    raise NotFound("no exact multiplier was found")


def epigraph_point(formulation: Formulation, squares: list[Fraction]) -> list[int]:
    """z of a file and its denominator, for u = √squares."""
    M, u = len(squares), _roots(squares)
    cones = ordered(formulation.epigraph(M).cones)
    judge, e = Conic(terms_of(formulation, M), M), _start(cones, INSIDE)
    zero = sum(size for kind, size, _ in cones.blocks if kind == "zero")
    above = sp.csc_matrix(-cones.unit_rows())
    A = sp.csc_matrix(sp.vstack([cones.A, above]))
    for push in PUSHES * max(1.0, u.max()):
        larger = -u - push * (1 + u)
        b = np.concatenate([cones.b - push * e, larger])
        wide = replace(cones, A=A, b=b, blocks=[*cones.blocks, ("nonneg", M, 0.0)])
        found = wide.solve(cones.cost(0.0, 1.0))
        if found.status != "Solved":
            continue
        z = found.z
        z[M] += push * (1 + abs(z[M]))
        exact = exactly(sp.csr_matrix(cones.A[:zero]), cones.b[:zero], z)
        if exact is None:
            continue
        whole = integers(exact)
        if _holds(judge.penalty, squares, whole):
            return whole
    raise NotFound("no exact point of the epigraph was found")


def _holds(shown: Any, squares: list[Fraction], point: list[int]) -> bool:
    if max(map(abs, point)) >= 10 ** (MAX_DIGITS - 1):
        return False
    try:
        shown(squares, point)
    except Refused:
        return False
    return True


def _roots(squares: Iterable[Fraction]) -> Array:
    return np.sqrt(np.array([float(x) for x in squares]))


def _start(cones: Cones, points: dict[str, list]) -> Array:
    """A point inside of all cones."""
    parts = []
    for kind, size, _ in cones.blocks:
        part = np.ones(size)
        if kind != "nonneg":
            part = np.zeros(size)
            part[: len(points[kind])] = points[kind]
        parts.append(part)
    return np.concatenate(parts)


def exactly(rows: sp.csr_matrix, right: Array, x: Array) -> list[Fraction] | None:
    """Rational numbers near x, all equations `rows` x = `right` of which hold.

    As many numbers are moved as there are independent equations.
    """
    unit = GRID * 2.0 ** math.ceil(math.log2(max(np.abs(x).max(), 1.0)))
    step = Fraction(unit)
    found = [step * round(Fraction(float(value)) / step) for value in x]
    if not rows.shape[0]:
        return found
    places, moved = _independent(rows)
    A = [{int(j): Fraction(float(a)) for j, a in _entries(rows, i)} for i in places]
    short = [
        Fraction(float(right[i]))
        - sum((a * found[j] for j, a in row.items()), Fraction(0))
        for i, row in zip(places, A)
    ]
    steps = eliminated(
        [{j: a for j, a in row.items() if j in moved} for row in A], short
    )
    if steps is None:
        return None
    for j, change in steps.items():
        found[j] += change
    return found


def _entries(rows: sp.csr_matrix, i: int) -> Any:
    begin, end = rows.indptr[i : i + 2]
    return zip(rows.indices[begin:end], rows.data[begin:end])


def _independent(rows: sp.csr_matrix) -> tuple[list[int], set[int]]:
    """Equations that imply the others, and numbers that solve them."""
    full = rows.toarray()
    _, R, order = scipy.linalg.qr(full.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int(np.sum(sizes > SMALL * sizes[0])) if sizes.size else 0
    places = sorted(int(i) for i in order[:rank])
    _, _, order = scipy.linalg.qr(full[places], mode="economic", pivoting=True)
    return places, {int(j) for j in order[:rank]}


def eliminated(
    rows: list[dict[int, Fraction]], right: list[Fraction]
) -> dict[int, Fraction] | None:
    """The solution of a square sparse system in rational numbers; None: it has none."""
    work, done = list(zip(rows, right)), []
    while work:
        row, value = min(work, key=lambda one: len(one[0]))
        work = [one for one in work if one[0] is not row]
        if not row:
            return None
        pivot = max(row, key=lambda j: abs(row[j]))
        done.append((pivot, row, value))
        work = [_without(one, pivot, row, value) for one in work]
    found: dict[int, Fraction] = {}
    for pivot, row, value in reversed(done):
        rest = sum((a * found[j] for j, a in row.items() if j != pivot), Fraction(0))
        found[pivot] = (value - rest) / row[pivot]
    return found


def _without(one: tuple, pivot: int, row: dict, value: Fraction) -> tuple:
    """An equation after a multiple of another one is subtracted."""
    mine, right = one
    if pivot not in mine:
        return one
    factor = mine[pivot] / row[pivot]
    both = {
        j: mine.get(j, Fraction(0)) - factor * row.get(j, Fraction(0))
        for j in {*mine, *row}
    }
    return {j: a for j, a in both.items() if a and j != pivot}, right - factor * value


def integers(values: list[Fraction]) -> list[int]:
    """The numbers times their common denominator, and last the denominator."""
    common = math.lcm(*(x.denominator for x in values))
    return [int(x * common) for x in values] + [common]
