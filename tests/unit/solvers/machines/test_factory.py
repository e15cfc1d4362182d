"""Which inner solver suits which loss."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.formulations import LpNorm
from mklopt.solvers.machines.crammer import CrammerMachine
from mklopt.solvers.machines.factory import dual_machine, machine_for
from mklopt.solvers.machines.smooth import SmoothMachine
from mklopt.solvers.machines.svm import SVMMachine


def problem(loss: str) -> Problem:
    y = np.array([0, 1, 2, 0]) if loss.startswith("multi") else np.ones(4)
    y = y if loss.startswith("multi") else y * [1, -1, 1, -1]
    return Problem(GramStack(np.eye(4)[None]), y, loss, LpNorm(2.0))


@pytest.mark.parametrize(
    "loss, plain, second_order",
    [
        ("hinge", SVMMachine, SVMMachine),
        ("squared", SVMMachine, SmoothMachine),
        ("logistic", SmoothMachine, SmoothMachine),
        ("multiclass_hinge", CrammerMachine, CrammerMachine),
    ],
)
def test_the_loss_decides(loss, plain, second_order):
    p = problem(loss)
    assert type(machine_for(p)) is plain
    found = machine_for(p, np.zeros(p.shape), 1e-3, second_order=True)
    assert type(found) is second_order and found.keep_products
    assert found.sharpness == 1e-3 and found.alpha is not None
    assert dual_machine(p) is (None if loss == "logistic" else plain)


def test_a_loss_without_an_inner_solver_is_refused():
    bare: Any = SimpleNamespace(loss=Bare(), y=None, costs=None, kinds=set())
    with pytest.raises(ValueError, match="no inner solver for the bare loss"):
        machine_for(bare)


class Bare:
    """A loss that states nothing."""

    name, twice_differentiable = "bare", False

    def margins(self, y):
        return None

    def quadratic(self, y, costs):
        return None
