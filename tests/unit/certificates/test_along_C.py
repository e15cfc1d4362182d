"""Chords and tangents: bounds in exact arithmetic, and where their gap is largest."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mklopt.certificates.along_C import BoundsAlongC, Cut


def cut(C, value, slope, error=0.0):
    """The node of a concave function with this value and slope at C."""
    return Cut(C, value - error, C * slope, value - C * slope + error)


def root(C, error=0.0):
    """The node of √C."""
    return cut(C, math.sqrt(C), 0.5 / math.sqrt(C), error)


def test_bounds_enclose_a_concave_function_and_the_worst_gap_is_the_largest():
    bounds = BoundsAlongC(root(C, 1e-3) for C in (1.0, 2.0, 3.5, 10.0))
    grid = np.linspace(1.0, 10.0, 4001)
    gaps = []
    for C in grid:
        assert bounds.lower(C) <= math.sqrt(C) <= bounds.upper(C)
        gaps.append(bounds.gap(C))
    worst = bounds.worst(1.0, 10.0)
    assert max(gaps) <= worst.gap <= max(gaps) * 1.001
    part = bounds.worst(1.0, 2.0)
    inside = [gap for C, gap in zip(grid, gaps) if C <= 2]
    assert part.gap < worst.gap and max(inside) <= part.gap <= max(inside) * 1.001
    assert 1 <= part.left < part.right <= 2


def test_the_worst_gap_of_two_nodes_is_at_the_crossing_of_their_tangents():
    """√C at 1 and 4: (1 + C)/2 and 1 + C/4 cross at C = 2, chord (2 + C)/3."""
    bounds = BoundsAlongC([root(1.0), root(4.0)])
    worst = bounds.worst(1.0, 4.0)
    assert worst.gap == pytest.approx(1 - (4 / 3) / 1.5, rel=1e-12)
    assert 2.0 in (pytest.approx(worst.left), pytest.approx(worst.right))


def test_of_three_tangents_the_one_in_the_middle_counts():
    """A node above its chord by nothing, but with a better tangent than both ends."""
    ends = [root(1.0), root(4.0)]
    middle = root(2.0)._replace(lower=0.0)
    bounds = BoundsAlongC([*ends, middle])
    assert len(bounds.ends) == 2 and len(bounds.cuts) == 3
    assert bounds.lower(2.0) == BoundsAlongC(ends).lower(2.0)
    grid = np.linspace(1.0, 4.0, 3001)
    most = max(bounds.gap(C) for C in grid)
    assert most <= bounds.worst(1.0, 4.0).gap <= 1.001 * most
    assert most < 0.8 * BoundsAlongC(ends).worst(1.0, 4.0).gap


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 0, 3, 1)])
def test_a_bad_lower_bound_does_no_harm_in_any_order(order):
    nodes = [root(1.0), root(2.0), root(2.0 + 1e-15)._replace(lower=1.0), root(4.0)]
    found = BoundsAlongC(nodes[i] for i in order)
    plain = BoundsAlongC([nodes[0], nodes[1], nodes[3]])
    for C in np.linspace(1.0, 4.0, 50):
        assert found.lower(C) == pytest.approx(plain.lower(C), rel=1e-12)


def test_two_nodes_at_one_C_keep_the_better_bounds():
    bounds = BoundsAlongC([root(1.0, 0.1), root(4.0), root(1.0, 0.01), root(1.0, 0.3)])
    assert bounds.lower(1.0) == 0.99
    assert bounds.upper(1.0) == pytest.approx(1.01)


def exact_chord(a: Cut, b: Cut, C: float) -> Fraction:
    t = (Fraction(C) - Fraction(a.C)) / (Fraction(b.C) - Fraction(a.C))
    return (1 - t) * Fraction(a.lower) + t * Fraction(b.lower)


def exact_tangent(node: Cut, C: float) -> Fraction:
    slope = Fraction(node.loss) / Fraction(node.C)
    return Fraction(C) * slope + Fraction(node.penalty)


@pytest.mark.parametrize("seed", range(40))
def test_rounding_is_counted(seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-8, 8, 4)
    a, b = (
        Cut(C, size[2] * rng.uniform(0.1, 2), size[3] * rng.random(), size[2])
        for C in np.sort(size[:2])
    )
    bounds = BoundsAlongC([a, b])
    points = [*rng.uniform(a.C, b.C, 20), np.nextafter(a.C, b.C), np.nextafter(b.C, 0)]
    for C in map(float, points):
        low, high = Fraction(bounds.lower(C)), Fraction(bounds.upper(C))
        assert low <= exact_chord(a, b, C)
        assert high >= min(exact_tangent(node, C) for node in (a, b))
        gap = (high - low) / high
        assert gap <= Fraction(bounds.gap(C))
        assert low < high or bounds.gap(C) >= 0


@pytest.mark.parametrize("seed", range(20))
def test_no_C_has_a_larger_gap_than_the_worst_piece_says(seed):
    """In exact arithmetic, at random C and next to all ends of pieces."""
    rng = np.random.default_rng(seed)
    places = np.sort(10 ** rng.uniform(-2, 2, 6))
    nodes = [root(float(C), 10.0 ** rng.uniform(-9, -2)) for C in places]
    bounds = BoundsAlongC(nodes)
    worst = Fraction(bounds.worst(places[0], places[-1]).gap)
    for C in map(float, rng.uniform(places[0], places[-1], 50)):
        upper = min(exact_tangent(node, C) for node in nodes)
        chords = [
            exact_chord(a, b, C)
            for i, a in enumerate(nodes)
            for b in nodes[i + 1 :]
            if a.C <= C <= b.C
        ]
        assert (upper - max(chords)) / upper <= worst


def test_without_a_positive_upper_bound_there_is_no_relative_gap():
    bounds = BoundsAlongC([cut(1.0, -1.0, 1.0), cut(3.0, 1.0, 1.0)])
    assert bounds.gap(1.5) == math.inf
    assert bounds.worst(1.0, 3.0).gap == math.inf
    assert BoundsAlongC([root(1.0), root(4.0)]).gap(5.0) == math.inf


def test_outside_of_the_nodes_there_is_no_lower_bound():
    bounds = BoundsAlongC([root(1.0), root(4.0)])
    assert bounds.lower(0.5) == bounds.lower(5.0) == -math.inf
    assert bounds.upper(5.0) >= math.sqrt(5.0)
    assert BoundsAlongC().upper(1.0) == math.inf


def test_a_node_without_a_tangent_has_a_lower_bound():
    bounds = BoundsAlongC([Cut(0.0, 0.0, math.inf, math.inf), root(1.0)])
    assert bounds.lower(0.25) == pytest.approx(0.25)
    assert bounds.upper(0.25) == pytest.approx(0.625)
