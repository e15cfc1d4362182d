"""A class keeps no closed form of another declaration, and `exact` ends in time."""

# mypy: disable-error-code="arg-type,attr-defined,list-item,call-arg,misc,operator"

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.formulations import (
    VSKL,
    GroupLasso,
    Ivanov,
    LpNorm,
    formulations,
    losses_by_name,
)
from mklopt.formulations.losses import Hinge, Huber, Logistic, Loss
from mklopt.formulations.restricted import Restricted

L = np.random.default_rng(3).integers(-4, 5, size=(2, 8, 2)) / 4.0
GRAMS, Y = mklopt.GramStack.from_factors(L), np.array([1.0, -1] * 4)
PARENTS = [*formulations().values(), *losses_by_name().values(), Restricted]


def test_every_class_of_the_package_states_for_itself_that_it_is_exact():
    for kind in PARENTS:
        assert kind.exact, kind
    for kind in formulations().values():
        for one in kind.examples(4):
            assert one.exact and Restricted(one, (0, 1), 4).exact
    assert not mklopt.formulations.stripped(LpNorm()).exact
    assert not Restricted(mklopt.formulations.stripped(LpNorm()), (0,), 4).exact


@dataclass(frozen=True)
class Steep(Hinge):
    """Three times the hinge, and nothing else is said."""

    def expression(self, f, y):
        return 3 * cp.pos(1 - cp.multiply(y, f))


def test_a_loss_with_another_expression_keeps_no_closed_form_of_its_parent():
    """It was certified as 9.06 where f* is 27.0: the hinge in its parent's formulas."""
    steep = Steep()
    assert not steep.exact and steep.labels == "binary" and steep.name == "steep"
    f, y = np.array([0.5, -2.0]), np.array([1.0, 1.0])
    np.testing.assert_allclose(steep.value(f, y), [1.5, 9.0])
    np.testing.assert_allclose(steep.conjugate(np.array([-1.5, -2.9]), y), [-1.5, -2.9],
                               atol=1e-6)  # fmt: skip
    assert steep.quadratic(y, y) is None and steep.pointwise() is None
    assert not any(
        steep.closed(name) for name in ("value", "conjugate", "prox", "domain")
    )
    found = mklopt.solve(mklopt.Problem(GRAMS, Y, steep, LpNorm(2.0)), tol=1e-6)
    same = mklopt.solve(mklopt.Problem(GRAMS, Y, "hinge", LpNorm(2.0), C=3.0), tol=1e-9)
    assert found.certificate.lower <= same.certificate.upper * (1 + 1e-7)
    assert found.certificate.upper >= same.certificate.lower * (1 - 1e-7)
    assert any("steep" in words for words in found.certificate.assumptions)


def test_smooth_losses_lose_their_constants_with_the_declaration():
    @dataclass(frozen=True)
    class Doubled(Logistic):
        def expression(self, f, y):
            return 2 * super().expression(f, y)

    @dataclass(frozen=True)
    class Deeper(Doubled):
        pass

    for loss in (Doubled(), Deeper()):
        assert loss.smoothness is None and not loss.twice_differentiable
        assert loss.compiled == () and not loss.exact
        assert "smooth" not in loss.kinds(Y)


OVERRIDES: dict[str, Any] = {
    "value": lambda self, *given: 0.0,
    "conjugate": lambda self, *given: 0.0,
    "prox": lambda self, *given: given[0],
    "rounding": lambda self, M: 0.0,
    "feasible_scale": lambda self, v: 1.0,
    "domain": lambda self, y: None,
    "gradient": lambda self, f, y: f,
    "best_bias": lambda self, f, y, C: 0.0,
    "exponent": property(lambda self: 1.0),
    "exponents": property(lambda self: (1.0, 1.0)),
    "power": property(lambda self: (2.0, 3.0)),
    "traits": property(lambda self: frozenset({"ball"})),
    "_root": property(lambda self: np.ones(4)),
    "_ends": property(lambda self: 0),
    "labels": "real",
    "smoothness": 1e-9,
}


@pytest.mark.parametrize("name", OVERRIDES)
def test_overriding_anything_ends_exact(name):
    parents = [kind for kind in PARENTS if hasattr(kind, name)]
    if name == "_ends":
        from mklopt.formulations.losses.face import Face

        parents = [Face]
    assert parents
    for parent in parents:
        child = type("Child", (parent,), {name: OVERRIDES[name]})
        mixin = type("Mixin", (), {name: OVERRIDES[name]})
        mixed = type("Mixed", (mixin, parent), {})
        assert not child.exact and not mixed.exact and parent.exact
        assert not type("Deeper", (child,), {}).exact
        speaks = type("Speaks", (parent,), {name: OVERRIDES[name], "exact": True})
        assert speaks.exact  # its author says so


@pytest.mark.parametrize("parent", PARENTS)
def test_what_closed_forms_do_not_depend_on_may_change(parent):
    members = {"examples": None, "listed": False, "of_my_own": 3, "__doc__": "Mine."}
    assert dataclass(frozen=True)(type("Child", (parent,), members)).exact


def test_fields_with_other_defaults_or_new_ones_are_harmless():
    @dataclass(frozen=True)
    class Steeper(LpNorm):
        p: float = 3.0
        note: str = field(default="mine")

        @cached_property
        def slow(self):
            return 1.0

    made = Steeper()
    assert made.slow == 1.0 and made.exact and Steeper.exact

    @dataclass(frozen=True)
    class Hidden(LpNorm):
        exponent: float = 3.0  # type: ignore[assignment]

    assert not Hidden.exact


def test_methods_that_are_replaced_later_end_exact_and_restored_ones_do_not(
    monkeypatch,
):
    for kind, name in ((LpNorm, "conjugate"), (GroupLasso, "value"), (Hinge, "value")):
        assert kind.exact
        with monkeypatch.context() as patch:
            patch.setattr(kind, name, lambda self, *given: 0.0)
            assert not kind.exact and not kind().exact
            if kind is LpNorm:
                assert not Ivanov.exact  # inherits it
        assert kind.exact and kind().exact


def test_instances_that_hide_a_method_are_not_exact():
    for made, name in ((LpNorm(2.0), "value"), (Huber(1.0), "conjugate")):
        assert made.exact
        object.__setattr__(made, name, lambda *given: 0.0)
        assert not made.exact
    made = LpNorm(2.0)
    object.__setattr__(made, "p", np.float32(2.0))  # not converted any more
    assert not made.exact


def test_a_part_of_a_formulation_is_no_loophole():
    @dataclass(frozen=True)
    class Cheap(Restricted):
        def conjugate(self, v):
            return 0.0

    assert not Cheap(LpNorm(2.0), (0, 1), 4).exact


def test_two_parents_do_not_speak_for_each_other():
    assert not type("Both", (LpNorm, GroupLasso), {}).exact
    assert not type("Both", (VSKL, GroupLasso), {}).exact


def test_a_mixin_with_another_declaration_drops_closed_forms():
    class Twice:
        def penalty(self, u):
            return 2 * cp.sum(u)

    class Mixed(Twice, GroupLasso):
        pass

    assert not Mixed().exact and not Mixed().closed("value")
    assert Mixed().value(np.ones(3)) == pytest.approx(6.0)


def test_a_class_that_states_exact_keeps_what_it_inherits():
    class Same(GroupLasso):
        exact: ClassVar[bool] = True

        def penalty(self, u):
            return cp.norm1(u)

    assert Same.exact and Same().closed("prox")
    assert not type("Unsure", (GroupLasso,), {"exact": False}).exact
    assert not Loss.exact
