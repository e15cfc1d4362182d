"""Compiled losses of one sample: values, subgradients, and their parameter."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses import EpsInsensitive, Huber, Quantile, Squared
from mklopt.formulations.losses import pointwise as compiled
from mklopt.formulations.losses.pointwise import at_a_sample


@pytest.mark.parametrize(
    "function, f, y, parameter, value, slope",
    [
        (compiled.hinge, [0.4], 1.0, 0.0, 0.6, [-1.0]),
        (compiled.hinge, [-2.0], -1.0, 0.0, 0.0, [0.0]),
        (compiled.logistic, [0.0], -1.0, 0.0, np.log(2), [0.5]),
        (compiled.logistic, [-900.0], 1.0, 0.0, 900.0, [-1.0]),
        (compiled.eps_insensitive, [2.0], 1.0, 0.25, 0.75, [1.0]),
        (compiled.eps_insensitive, [0.9], 1.0, 0.25, 0.0, [0.0]),
        (compiled.huber, [4.0], 1.0, 0.5, 1.375, [0.5]),
        (compiled.huber, [0.75], 1.0, 0.5, 0.03125, [-0.25]),
        (compiled.quantile, [3.0], 1.0, 0.2, 1.6, [0.8]),
        (compiled.quantile, [0.0], 1.0, 0.2, 0.2, [-0.2]),
        (compiled.multiclass_hinge, [0.0, 0.5, 0.2], 0.0, 0.0, 1.5, [-1.0, 1.0, 0.0]),
        (compiled.multiclass_hinge, [3.0, 0.5, 0.2], 0.0, 0.0, 0.0, [0.0, 0.0, 0.0]),
        (compiled.multinomial, [0.0, 0.0], 1.0, 0.0, np.log(2), [0.5, -0.5]),
    ],
)
def test_value_and_subgradient(function, f, y, parameter, value, slope):
    g = np.empty(len(f))
    found = at_a_sample(function)(np.array(f), y, parameter, g)
    assert found == pytest.approx(value, abs=1e-15)
    assert g == pytest.approx(slope, abs=1e-15)


def test_a_loss_states_its_function_and_parameter():
    assert EpsInsensitive(0.3).pointwise() == (
        at_a_sample(compiled.eps_insensitive),
        0.3,
    )
    assert Huber(0.4).pointwise() == (at_a_sample(compiled.huber), 0.4)
    assert Quantile(0.2).pointwise() == (at_a_sample(compiled.quantile), 0.2)
    assert Squared().pointwise() is None
