"""Unit balls: points of the boundary lie on it, and the figures are written."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.judge.unit_balls import MAX_RADIUS, dual_norm, dual_radius, radius


@mklopt.formulation
def elastic(u):
    return cp.sum(u) + 0.1 * cp.sum_squares(u)


@pytest.mark.parametrize("formulation", [GroupLasso(), LpNorm(1.5), elastic], ids=repr)
def test_points_of_the_boundary_lie_on_it(formulation):
    found = mklopt.inspect(formulation, 2)
    level = 0.5 if found.squared else 1.0
    for angle in (0.0, 0.4, np.pi / 4, 1.2):
        d = np.array([np.cos(angle), np.sin(angle)])
        u = radius(found, d) * d
        assert formulation.value(u) == pytest.approx(level, abs=1e-2)
    if found.norm or found.squared:  # polar bodies: the product of supports is 1
        assert (
            radius(found, np.eye(2)[0]) * dual_radius(found, np.eye(2)[0]) <= 1 + 1e-9
        )


@pytest.mark.parametrize("M", [2, 3])
def test_unit_balls_are_drawn(M, tmp_path):
    mklopt.inspect(elastic, M).draw(tmp_path / "ball.png")
    assert (tmp_path / "ball.png").stat().st_size > 5000
    mklopt.inspect(GroupLasso(), M).draw(tmp_path / "both")
    assert {f.name for f in tmp_path.iterdir()} == {"ball.png", "both.png", "both.pdf"}
    with pytest.raises(ValueError, match="M = 2 or M = 3"):
        mklopt.inspect(elastic, 4).draw()


def test_dual_norms_are_the_known_ones():
    v = np.array([3.0, 4.0])
    assert dual_norm(GroupLasso(), v, 1.0) == pytest.approx(4)  # of Σu: max
    assert dual_norm(LpNorm(np.inf), v, 2.0) == pytest.approx(5)  # ½‖u‖²: itself
    assert dual_norm(elastic, v, None) == pytest.approx(2.5 * (2**2 + 3**2))


def test_a_ball_that_never_ends_is_cut_off():
    @mklopt.formulation
    def first_alone(u):
        return u[0] + 0 * cp.sum(u)

    found = mklopt.inspect(first_alone, 2)
    assert radius(found, np.array([1.0, 0.0])) == pytest.approx(1, rel=1e-2)
    assert radius(found, np.array([0.0, 1.0])) == MAX_RADIUS
