"""Bounds of f*(C) for every C of an interval, from certificates at some C.

With the costs C·s_i, s fixed, f*(C) is the minimum over (w, b) of C·L(w, b) + Ω(w),
which is linear in C. So

    tangents   f*(C) ≤ C·L(w, b) + Ω(w)   at every C, for each certified point (w, b)
    chords     f* is concave: f*((1−t)C_0 + tC_1) ≥ (1−t)·lower_0 + t·lower_1

The chord has a dual point, too: C·V*(−α/C) is jointly convex in (C, α), and so is
Ω*(‖α‖_K) in α, so that (1−t)α_0 + tα_1 has at least the value of the chord.

On a piece of an interval with one tangent U and one chord, the relative gap (U − chord)
/U = 1 − chord/U is a quotient of linear functions of C: where U > 0 it is monotone, and
largest at an end of the piece. The pieces end at nodes and at crossings of tangents.
That a crossing is computed with errors does not matter: each of two tangents is a bound
on all of its piece, wherever that ends.

Guarantee. Bounds hold in exact arithmetic, for every float64 number C of the interval
and the costs fl(C·s_i), under the assumptions of the certificates. For one C per
sample V ≥ 0 is needed, so that the rounding of costs is worth a factor 1 ± 2u of C.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..util.rounding import TINY, U
from .certificate import Certificate

SLACK = 16 * U  # relative to the numbers that are added: their rounding, and that of C
NEAR = 4  # nodes on each side whose tangents are tried between two nodes


class Cut(NamedTuple):
    """What a certificate at C says: a lower bound there, an upper bound everywhere."""

    C: float
    lower: float  # f*(C) ≥ lower
    loss: float  # C·L(w, b) ≤ loss
    penalty: float  # Ω(w) ≤ penalty


class Piece(NamedTuple):
    """A part of an interval between two nodes, with a bound of the relative gap."""

    left: float
    right: float
    gap: float


def cut_of(certificate: Certificate, C: float) -> Cut:
    """The bounds of a certificate as a cut; C is the largest of its costs."""
    found = certificate.enclosure
    return Cut(C, found.lower, *found.parts)


class BoundsAlongC:
    """lower(C) ≤ f*(C) ≤ upper(C) between the first and the last node.

    Parameters
    ----------
    cuts : iterable of Cut
        The nodes.
    """

    def __init__(self, cuts: Iterable[Cut] = ()):
        self.cuts: list[Cut] = []  # all nodes, by C
        self.ends: list[Cut] = []  # of chords: nodes whose lower bounds are concave
        for cut in cuts:
            self.add(cut)

    def add(self, cut: Cut) -> None:
        """One more node; the lower bound of a node below a chord is not needed."""
        self.cuts.insert(bisect_left(_places(self.cuts), cut.C), cut)
        at = bisect_left(_places(self.ends), cut.C)
        if at < len(self.ends) and self.ends[at].C == cut.C:
            if cut.lower <= self.ends[at].lower:
                return
            del self.ends[at]
        self.ends.insert(at, cut)
        for step in (0, -1, 1):  # the node itself, or else its neighbours
            while self._is_below(near := self._place(cut, step)):
                del self.ends[near]

    def _place(self, cut: Cut, step: int) -> int:
        return bisect_left(_places(self.ends), cut.C) + step

    def _is_below(self, i: int) -> bool:
        """Whether a node lies below the chord of its neighbours."""
        if not 0 < i < len(self.ends) - 1:
            return False
        before, cut, after = self.ends[i - 1 : i + 2]
        return cut.lower <= _chord(before, after, cut.C)

    def lower(self, C: float) -> float:
        """A lower bound of f*(C); −∞ outside of the nodes."""
        at = bisect_right(_places(self.ends), C)
        if at and C == self.ends[at - 1].C:
            return self.ends[at - 1].lower
        if not 0 < at < len(self.ends):
            return -math.inf
        return _chord(self.ends[at - 1], self.ends[at], C)

    def upper(self, C: float) -> float:
        """An upper bound of f*(C), the smallest of all tangents."""
        return min((_tangent(cut, C) for cut in self.cuts), default=math.inf)

    def gap(self, C: float) -> float:
        """A bound of (upper(C) − lower(C))/|upper(C)|."""
        return _relative(self.upper(C), self.lower(C))

    def worst(self, first: float, last: float) -> Piece:
        """The piece of [first, last] with the largest gap; both are nodes."""
        places = _places(self.ends)
        start, end = bisect_right(places, first) - 1, bisect_left(places, last)
        pieces = (p for i in range(start, end) for p in self._pieces(i, first, last))
        return max(pieces, key=lambda piece: piece.gap, default=Piece(first, last, 0.0))

    def _pieces(self, i: int, first: float, last: float) -> Iterator[Piece]:
        """Pieces of chord i inside [first, last], with tangents of nodes near it."""
        x, z = max(self.ends[i].C, first), min(self.ends[i + 1].C, last)
        places = _places(self.cuts)
        at, end = bisect_left(places, x) - NEAR, bisect_right(places, z) + NEAR
        near = self.cuts[max(at, 0) : end]
        yield from self._split(i, near, x, _best(near, x), z, _best(near, z))

    def _split(
        self, i: int, near: list[Cut], x: float, at_x: Cut, z: float, at_z: Cut
    ) -> Iterator[Piece]:
        """Pieces of [x, z], from the tangents that are smallest at its ends."""
        y = _crossing(at_x, at_z, x, z)
        if y is None:  # one tangent is enough: the one with the smaller gap
            yield Piece(x, z, min(self._gap_on(i, x, z, cut) for cut in (at_x, at_z)))
            return
        best = _best(near, y)
        if _tangent(best, y) < _tangent(at_x, y) * (1 - 1e-9):
            yield from self._split(i, near, x, at_x, y, best)
            yield from self._split(i, near, y, best, z, at_z)
            return
        yield Piece(x, y, self._gap_on(i, x, y, at_x))
        yield Piece(y, z, self._gap_on(i, y, z, at_z))

    def _gap_on(self, i: int, x: float, z: float, cut: Cut) -> float:
        """A bound of the gap of one tangent and one chord between x and z."""
        a, b = self.ends[i : i + 2]
        ends = [(_tangent(cut, C), _chord(a, b, C)) for C in (x, z)]
        return max(_relative(*end) for end in ends) + 8 * SLACK  # that of `gap` itself


def _places(cuts: list[Cut]) -> list[float]:
    return [cut.C for cut in cuts]


def _best(cuts: list[Cut], C: float) -> Cut:
    return min(cuts, key=lambda cut: _tangent(cut, C))


def _chord(a: Cut, b: Cut, C: float) -> float:
    """A lower bound of f*(C) between two nodes."""
    t = (C - a.C) / (b.C - a.C)
    size = abs(a.lower) + abs(b.lower)
    found = (1 - t) * a.lower + t * b.lower
    return found - SLACK * size - TINY if math.isfinite(size) else -math.inf


def _tangent(cut: Cut, C: float) -> float:
    """An upper bound of f*(C) by the point of a node."""
    if not cut.loss < math.inf:
        return math.inf
    loss = C / cut.C * cut.loss
    found = loss + cut.penalty + SLACK * (abs(loss) + abs(cut.penalty)) + TINY
    return found if math.isfinite(found) else math.inf


def _relative(upper: float, lower: float) -> float:
    """A bound of (upper − lower)/upper for upper > 0; ∞ where there is none."""
    if not (0 < upper < math.inf and lower > -math.inf):
        return math.inf
    smaller = upper * (1 - 4 * SLACK) if lower < 0 else upper
    return max((upper - lower) / smaller * (1 + SLACK) + SLACK, 0.0)


def _crossing(a: Cut, b: Cut, x: float, z: float) -> float | None:
    """Where two tangents cross strictly between x and z; None if nowhere."""
    slope = a.loss / a.C - b.loss / b.C
    rise = b.penalty - a.penalty
    if not (slope and math.isfinite(slope) and math.isfinite(rise)):
        return None
    y = rise / slope
    return y if x < y < z else None
