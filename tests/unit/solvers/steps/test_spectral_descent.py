"""Spectral projected gradient descent, on a quadratic whose minimum is known."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from mklopt.solvers.steps.spectral_descent import (
    Average,
    by_size,
    descend,
    first_length,
    parabola,
    spectral_length,
)


class Bowl:
    """½⟨d − a, H(d − a)⟩ over d ≥ 0, exact."""

    noise = 0.0

    def __init__(self, curves, a):
        self.curves, self.a, self.asked, self.sharpened = curves, a, 0, 0
        self.work = 0.0

    def value(self, d):
        self.asked, self.d, self.work = self.asked + 1, d, self.work + 0.125
        return 0.5 * float(self.curves @ (d - self.a) ** 2)

    def gradient(self):
        return self.curves * (self.d - self.a)

    def project(self, d):
        return np.maximum(d, 0.0)

    def sharpen(self):
        self.sharpened += 1


A = np.array([1.0, -1.0, 2.0, 0.5])


CURVES = np.array([1.0, 3.0, 100.0, 10.0])


def steps_to(bowl, tol=1e-8, most=3000, **switches):
    for count, point in enumerate(descend(bowl, np.ones(4), **switches)):
        if np.max(np.abs(point.d - np.maximum(A, 0.0))) <= tol:
            return count
        if count == most:
            return most
    return most


def test_spectral_steps_see_the_curvature():
    slow = steps_to(Bowl(CURVES, A), spectral=False, nonmonotone=False, scaled=False)
    fast = steps_to(Bowl(CURVES, A), scaled=False)
    assert fast <= 40 and slow >= 4 * fast


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("nonmonotone", [False, True])
def test_a_bowl_is_solved_with_any_switches(nonmonotone, scaled):
    bowl = Bowl(CURVES, A)
    assert steps_to(bowl, nonmonotone=nonmonotone, scaled=scaled) <= 300


def test_armijo_never_rises_and_the_average_may():
    values = [p.value for p in islice(descend(Bowl(CURVES, A), np.ones(4),
                                              nonmonotone=False), 40)]  # fmt: skip
    assert np.all(np.diff(values) <= 0)
    loose = [p.value for p in islice(descend(Bowl(CURVES, A), np.ones(4)), 40)]
    assert np.any(np.diff(loose) > 0)


def test_one_step_of_the_right_length_solves_a_round_bowl():
    assert spectral_length(A, 4 * A, np.ones(4), 1.0) == pytest.approx(0.25)
    assert spectral_length(A, -A, np.ones(4), 2.0) == 20.0
    assert spectral_length(A, -A, np.ones(4), 2.0, longest=10.0) == 10.0
    assert spectral_length(A, 1e-3 * A, np.ones(4), 2.0, longest=10.0) == 10.0
    assert spectral_length(A, 1e-3 * A, np.ones(4), 2.0) == pytest.approx(1e3)
    assert steps_to(Bowl(np.full(4, 7.0), A), scaled=False) <= 3


def test_the_search_goes_to_the_minimum_of_a_parabola():
    # W(t) = −t + 2t²: at t = 1 it has risen by 1, its minimum is at 1/4.
    assert parabola(1.0, 1.0, 1.0) == pytest.approx(0.25)
    assert parabola(1.0, 100.0, 1.0) == pytest.approx(0.1)
    assert parabola(1.0, -0.9, 1.0) == 0.5


def test_the_average_of_zhang_and_hager():
    average = Average(10.0, nonmonotone=True)
    average.add(4.0, gain=0.05)  # η = 1: the plain mean
    assert average.level == pytest.approx(7.0) and average.mixing == 1.0
    average.add(10.0, gain=-1.0)
    assert average.level == pytest.approx(8.0)
    assert average.mixing == pytest.approx(0.975)
    armijo = Average(10.0, nonmonotone=False)
    armijo.add(4.0, gain=1.0)
    assert armijo.level == 4.0 and armijo.mixing == 0.0


def test_a_wrong_gradient_asks_for_precision():
    class Liar(Bowl):
        def gradient(self):
            return -super().gradient()

    bowl = Liar(CURVES, A)
    steps = descend(bowl, np.ones(4), spectral=False, nonmonotone=False)
    shown = [point.value for point in islice(steps, 5)]
    assert bowl.sharpened == 2
    # On its way to nowhere each search shows its eighth trial.
    assert shown[0] == shown[2] == shown[4] < shown[1] == shown[3]


def test_the_metric_and_the_first_step():
    np.testing.assert_allclose(by_size(np.array([4.0, 1.0, 0.0])), [1.0, 0.25, 1e-4])
    assert first_length(np.array([0.5, -4.0])) == 0.25
