"""What every formulation has: guarded closed forms, derived operators, groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from mklopt import Problem, reference
from mklopt.formulations import Formulation, GroupLasso, LpNorm, formulations
from mklopt.formulations.base import (
    TRAITS,
    as_groups,
    check_count,
    check_partition,
    check_range,
    owners,
    stated,
)
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
Y = TARGETS["binary"]


@dataclass(frozen=True)
class Plain(Formulation):
    """½‖u‖² + Σu with nothing but a declaration."""

    def penalty(self, u):
        return 0.5 * cp.sum_squares(u) + cp.sum(u)


def test_every_operator_is_derived_from_the_declaration():
    mine, u, step = Plain(), np.array([1.5, 2.0]), np.array([1.0, 0.5])
    assert mine.value(u) == pytest.approx(0.5 * u @ u + u.sum(), rel=1e-8)
    v = np.array([3.0, 0.5])
    assert mine.conjugate(v) == pytest.approx(0.5 * 2.0**2, rel=1e-7)
    assert mine.weights(u) == pytest.approx(u / (u + 1), rel=1e-6)
    prox = np.maximum(u - step, 0) / (1 + step)
    assert mine.prox(u, step) == pytest.approx(prox, abs=1e-5)
    slope = np.diag(1 / (1 + step))
    assert mine.prox_slope(u, step) == pytest.approx(slope, abs=1e-3)
    assert mine.feasible_scale(v) == 1.0 and not mine.closed("prox")
    by_theta, by_v = mine.elasticities(np.ones(2), np.ones(2))
    assert np.diag(by_v) == pytest.approx(0.5, rel=1e-3)  # θ = θv/(θv + 1) at 1
    assert by_theta == pytest.approx(by_v, abs=1e-3)
    assert mine.rounding(2) == pytest.approx(1e-8 * 2**53)


@dataclass(frozen=True)
class Bounded(Formulation):
    """Σu, its conjugate in closed form: the scale is found by bisection."""

    def penalty(self, u):
        return cp.sum(u)

    def conjugate(self, v):
        return 0.0 if np.max(v) <= 1 else np.inf


def test_the_feasible_scale_is_found_from_the_conjugate_or_from_the_cones():
    v = np.array([0.5, 4.0])
    assert Bounded().feasible_scale(v) == pytest.approx(0.25, rel=1e-12)
    scaled = np.array([0.0, 4.0])
    assert Plain().feasible_scale(scaled) == 1.0


@pytest.mark.parametrize(
    "ask, words",
    [
        (lambda f: f.ball, "no ball"),
        (lambda f: f.strongly_convex, "no strong convexity"),
        (lambda f: f.simplices(2), "no simplices"),
        (lambda f: f.price(np.ones(2)), "no price"),
        (lambda f: f.orthant, "no separate price"),
        (lambda f: f.dual_weights(np.ones(2)), "no weights as a function"),
        (lambda f: Formulation().penalty(np.ones(2)), "declares no penalty"),
    ],
)
def test_what_is_not_stated_is_refused(ask, words):
    with pytest.raises(TypeError, match=words):
        ask(Plain())


def test_classes_with_parameters_must_be_dataclasses():
    class Scaled(Formulation):
        scale: float

        def __init__(self, scale):
            object.__setattr__(self, "scale", scale)

        def penalty(self, u):
            return self.scale * cp.sum(u)

    with pytest.raises(ValueError, match="no dataclass"):
        Problem(GRAMS, Y, formulation=Scaled(2.0))

    @dataclass(frozen=True)
    class Weighted(Formulation):
        scale: object

        def penalty(self, u):
            return cp.sum(cp.multiply(self.scale, u))

    with pytest.raises(ValueError, match="cannot be hashed"):
        Problem(GRAMS, Y, formulation=Weighted(np.ones(6)))
    found = reference.solve(Problem(GRAMS, Y, formulation=Weighted(1.0)))
    assert 0 <= found.relative_gap <= 3e-7  # the domain of Ω* is derived, to 1e-7


def test_closed_forms_mind_their_domain():
    block = LpNorm(2.0)
    assert block.conjugate(np.array([0.4, -0.8])) == block.conjugate(
        np.array([0.4, 0.0])
    )
    assert block.prox(np.array([1.0, -2.0]), 0.5)[1] == 0
    with pytest.raises(ValueError, match="u ≥ 0"):
        block.value(np.array([-1.0]))
    with pytest.raises(ValueError, match="positive steps"):
        block.prox(np.array([1.0]), -0.5)


def test_a_subclass_with_another_declaration_inherits_no_closed_forms():
    """`penalty` is the declaration: change it, and what followed from it is gone."""

    @dataclass(frozen=True)
    class Plus(LpNorm):
        def penalty(self, u):
            return super().penalty(u) + 5 * cp.sum(u)

    u = np.array([1.0, 2.0])
    plus = Plus(2.0)
    assert plus.value(u) == pytest.approx(LpNorm(2.0).value(u) + 15.0, rel=1e-7)
    assert plus.traits == frozenset() and not plus.exact


def test_traits_name_what_they_give():
    for name, trait in TRAITS.items():
        assert trait.words
        having = [
            one
            for kind in formulations().values()
            for one in kind.examples(6)
            if name in one.traits
        ]
        assert having, name
        for one in having:
            if trait.attribute:
                assert getattr(one, trait.attribute) is not None
    assert stated(ball=True, simplex=False) == {"ball"}


def test_groups_are_read_and_checked():
    given: Any = [[2, 0], np.array([1])]
    groups = as_groups(given, "Test")
    assert groups == ((2, 0), (1,))
    assert list(owners(groups)) == [0, 1, 0]
    check_partition(groups, 3, "Test")
    with pytest.raises(ValueError, match="list every kernel 0 to 3"):
        check_partition(groups, 4, "Test")
    with pytest.raises(ValueError, match="lists of kernel numbers"):
        as_groups(given[1], "Test")
    with pytest.raises(ValueError, match="share no kernel"):
        as_groups([[0], [0]], "Test")


def test_parameters_are_checked():
    check_range("Test", "p", 1.0, 1.0, 2.0)
    wrong: Any
    for wrong in (0.9, 2.1, float("nan")):
        with pytest.raises(ValueError, match=r"Test: p = .* is not a number in"):
            check_range("Test", "p", wrong, 1.0, 2.0)
    check_count("Test", "prior", (1.0, 2.0), 2)
    with pytest.raises(ValueError, match="prior has 2 entries but the stack has 3"):
        check_count("Test", "prior", (1.0, 2.0), 3)


def test_names_of_version_0_1_are_found():
    from mklopt.formulations import base, declared

    assert base.Declared is declared.Declared
    assert base._look_up("mklopt.formulations", "Loss").__name__ == "Loss"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        base.Nothing  # noqa: B018


def test_a_class_is_compiled_once_for_equal_parameters():
    assert LpNorm(2.0).epigraph(3) is LpNorm(2.0).epigraph(3)
    assert LpNorm(2.0).epigraph(3) is not LpNorm(2.0).epigraph(4)
    assert GroupLasso().key() == GroupLasso()
