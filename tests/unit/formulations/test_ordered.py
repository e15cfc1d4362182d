"""Sorted sums in closed form."""

import numpy as np

from mklopt.formulations.ordered import OrderedWeightedL1
from mklopt.judge.closed_forms import check_closed_forms


def test_closed_forms_are_those_of_the_declaration():
    report = check_closed_forms(OrderedWeightedL1((2.0, 1.0, 0.5)), 3)
    assert report.passed, str(report)


def test_like_kernels_move_together():
    lam = OrderedWeightedL1((2.0, 1.0, 0.0))
    z = lam.prox(np.array([3.0, 2.9, 0.5]), 1.0)
    assert z[0] == z[1] and z[2] == 0.5
