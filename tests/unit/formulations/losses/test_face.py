"""The support function of an interval of slopes."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses.face import Face

FACE = Face((-1.0, 0.5, 0.0), (2.0, 1.0, 0.0))
Y = np.zeros(3)


def test_values_slopes_and_conjugate():
    f = np.array([3.0, -2.0, 5.0])
    assert FACE.value(f, Y) == pytest.approx([6.0, -1.0, 0.0])
    assert FACE.gradient(f, Y) == pytest.approx([2.0, 0.5, 0.0])
    assert FACE.gradient(np.zeros(3), Y) == pytest.approx([0.0, 0.5, 0.0])
    a = FACE.gradient(f, Y)
    assert FACE.conjugate(a, Y) == pytest.approx(0.0)
    assert np.all(np.isinf(FACE.conjugate(np.array([2.1, 0.4, 0.1]), Y)))


@pytest.mark.parametrize("step", [0.7, np.array([0.1, 1.0, 3.0])])
def test_prox_is_stationary(step):
    f = np.array([1.5, 0.4, -2.0])
    z = FACE.prox(f, Y, step)
    g = (f - z) / step
    assert FACE.value(z, Y) == pytest.approx(g * z, abs=1e-14)
    assert FACE.conjugate(g, Y) == pytest.approx(0.0)


def test_its_dual_is_linear_on_a_box():
    C = np.array([1.0, 2.0, 3.0])
    dual = FACE.quadratic(Y, C)
    assert dual.low == pytest.approx([-2.0, -2.0, 0.0])
    assert dual.high == pytest.approx([1.0, -1.0, 0.0])
    assert not np.any(dual.linear) and not np.any(dual.ridge)
    assert list(FACE.validate(np.array([4.0, 5.0, 6.0]))) == [0.0, 0.0, 0.0]
    assert FACE.domain(Y).radius == pytest.approx([2.0, 1.0, 0.0])
