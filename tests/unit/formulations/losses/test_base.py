"""What every loss has: derived operators, the best bias, kinds."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations.losses import Hinge, Huber, Logistic, Loss, MulticlassHinge
from mklopt.formulations.losses.base import (
    Quadratic,
    crossing,
    minimize_in_space,
    minimize_on_line,
    per_sample,
)
from mklopt.formulations.losses.domains import Box, Projected

Y = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True)
class Tilted(Loss):
    """max(2(f − y), y − f) with nothing but a declaration."""

    def expression(self, f, y):
        return cp.maximum(2 * (f - y), y - f)


@dataclass(frozen=True)
class Spread(Loss):
    """‖f‖ of k outputs, with nothing but a declaration."""

    labels = "classes"

    def expression(self, f, y):
        return cp.norm(f, axis=1)


def test_operators_are_derived_from_the_declaration():
    mine, f = Tilted(), np.array([2.0, -3.0, 1.5])
    assert mine.value(f, Y) == pytest.approx([2.0, 2.0, 1.0])
    assert mine.gradient(f, Y) == pytest.approx([2.0, -1.0, 2.0], abs=1e-6)
    assert mine.conjugate(np.array([1.0, -1.5, 2.5]), Y)[1:] == pytest.approx(np.inf)
    assert mine.conjugate(np.array([1.0, 0.5, 0.0]), Y) == pytest.approx(
        [1.0, -0.5, 0.0], abs=1e-7
    )
    assert mine.prox(f, Y, 0.25) == pytest.approx([1.5, -2.75, 1.0], abs=1e-5)
    domain = mine.domain(Y)
    assert isinstance(domain, Box)
    assert domain.low == pytest.approx(-1.0) and domain.high == pytest.approx(2.0)
    assert np.all(domain.low > -1.0) and np.all(domain.high < 2.0)  # on the safe side
    assert mine.epigraph(Y) is Tilted().epigraph(Y.copy())


def test_the_best_bias_of_a_derived_loss():
    f, C = np.zeros(3), np.array([1.0, 5.0, 1.0])
    b = Tilted().best_bias(f, np.array([0.0, 1.0, 3.0]), C)  # slopes −7, −4, 11
    assert b == pytest.approx(1.0, abs=1e-6)
    shift = minimize_in_space(
        Spread(), np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0, 1]), np.ones(2)
    )
    assert shift == pytest.approx([-1.0, -2.0], abs=1e-5)


def test_a_domain_of_several_outputs_is_known_by_projection():
    y = np.array([0, 1])
    domain = Spread().domain(y)
    assert isinstance(domain, Projected)
    alpha = np.array([[3.0, 4.0], [0.1, 0.2]])
    near = domain.restore(alpha, np.ones(2), bias=False)
    assert near == pytest.approx(np.array([[0.6, 0.8], [0.1, 0.2]]), abs=1e-5)
    assert Spread().shape(y) == (2, 2) and Spread().outputs(y) == 2


def test_the_best_bias_from_slopes_is_a_root():
    rng = np.random.default_rng(0)
    f, y = 20 * rng.normal(size=40), np.sign(rng.normal(size=40))
    C = rng.uniform(0.1, 3.0, 40)
    b = Logistic().best_bias(f, y, C)
    assert abs(C @ Logistic().gradient(f + b, y)) < 1e-10
    real = rng.normal(size=40)
    b = Huber(0.5).best_bias(f, real, C)
    assert abs(C @ Huber(0.5).gradient(f + b, real)) < 1e-10


def test_a_minimum_on_the_line_and_a_crossing():
    assert minimize_on_line(lambda b: (b - 300.0) ** 2) == pytest.approx(300.0)
    assert minimize_on_line(lambda b: b * b) == 0.0
    points, jumps = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert crossing(points, jumps, -1.5) == 2.0
    assert crossing(points, jumps, -1.0) == 1.5  # flat between 1 and 2


def test_kinds_say_what_solvers_may_ask_for():
    hinge = {"hinge", "any", "quadratic", "machine", "pointwise"}
    assert Hinge().kinds(Y) == hinge
    assert Huber().kinds(Y) == {"huber", "smooth", *hinge} - {"hinge"}
    smooth = {"logistic", "any", "smooth", "pointwise", "twice_differentiable"}
    assert Logistic().kinds(Y) == smooth
    many = np.array([0, 1, 2])
    assert MulticlassHinge().kinds(many) == {
        "multiclass_hinge", "any", "machine", "pointwise",
    }  # fmt: skip
    assert Tilted().kinds(Y) == {"tilted", "any"}


@pytest.mark.parametrize(
    "ask, words",
    [
        (lambda: Tilted().curvature(Y, Y), "states no V''"),
        (lambda: Tilted().inverse(Y, Y), "no inverse of V'"),
        (lambda: Tilted().root(Y, Y), "no root of V''"),
        (lambda: Loss().expression(Y, Y), "declares no expression"),
    ],
)
def test_what_is_not_stated_is_refused(ask, words):
    with pytest.raises(TypeError, match=words):
        ask()


def test_free_coordinates_are_off_their_bounds_and_kinks():
    dual = Quadratic(
        *np.array([[0.0] * 4, [1.0] * 4, [0.0] * 4, [-1.0] * 4, [2.0] * 4])
    )
    assert list(dual.free(np.array([-1.0, 0.0, 1.0, 2.0]))) == [2]
    smooth = dual._replace(kink=np.zeros(4))
    assert list(smooth.free(np.array([-1.0, 0.0, 1.0, 1.9]), room=0.2)) == [1, 2]


def test_a_step_per_sample_is_one_column():
    assert per_sample(np.ones(3), np.ones((3, 2))).shape == (3, 1)
    assert per_sample(0.5, np.ones(3)) == 0.5
