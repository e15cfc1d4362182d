"""Unit balls of a regularizer, drawn: {u : Ω(|u|) ≤ level}, and the dual ball.

The level is 1 for a norm, ½ for half the square of one (the ball of that norm), and
Ω(0) + 1 for everything else. A point of the boundary in direction d is r d with
Ω(r d) = level: r has a formula where Ω is homogeneous, and is a root elsewhere.

M = 2: both balls in the plane. A corner on an axis is what drops a kernel.
M = 3: the unit ball in space.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from ..formulations import Formulation
from ..formulations.derive.epigraph import DerivationError
from ..util.style import COLOURS, done, panels, styled

if TYPE_CHECKING:
    from .inspection import Inspection

Array = np.ndarray
MAX_RADIUS = 1e3  # unbounded balls are cut off here
ROUNDED_ZERO = 1e-11  # an interior-point method leaves so much of 0


@styled
def draw(found: Inspection, path: str | os.PathLike | None = None) -> Any:
    """The figure of an inspected formulation; written to a path, if there is one."""
    if not found.increasing or found.M not in (2, 3):
        raise ValueError(
            f"{found.formulation!r} with M = {found.M} cannot be drawn; inspect a "
            "convex, increasing formulation with M = 2 or M = 3"
        )
    return done((_plane if found.M == 2 else _space)(found), path)


def radius(found: Inspection, direction: Array) -> float:
    """r with r d on the boundary of the unit ball: Ω(r d) = level."""
    value, level = found.formulation.value, 0.5 if found.squared else 1.0
    if found.degree is None:
        level += value(np.zeros(found.M))
    return _radius(value, direction, found.degree, level)


def dual_radius(found: Inspection, direction: Array) -> float:
    """r with r d on the dual sphere, or with Ω*(r d) = Ω*(0) + 1."""
    f: Formulation = found.formulation
    if found.norm or found.squared:
        norm = lambda v: dual_norm(f, v, found.degree)  # noqa: E731
        return _radius(norm, direction, 1.0, 1.0)
    return _radius(f.conjugate, direction, None, f.conjugate(np.zeros(found.M)) + 1.0)


def dual_norm(formulation: Formulation, v: Array, degree: float | None) -> float:
    """Ω° for a norm, N° for N²/2; Ω* for everything else."""
    if degree == 1:
        far = 1e3 / formulation.value(v)  # ⟨v, v⟩ > Ω(v): outside of the unit ball
        return 1.0 / (far * formulation.feasible_scale(far * v))
    size = float(formulation.conjugate(v))
    size = 0.0 if abs(size) < ROUNDED_ZERO else size
    return float(np.sqrt(2 * size)) if degree == 2 else size


def _radius(
    value: Callable[[Array], float], d: Array, degree: float | None, level: float
) -> float:
    """r with value(r d) = level, for an increasing function; MAX_RADIUS: none below."""
    if degree is not None:  # value(r d) = r^degree value(d)
        size = value(d)
        return min((level / size) ** (1 / degree), MAX_RADIUS) if size else MAX_RADIUS

    def excess(r: float) -> float:
        try:
            return float(np.clip(value(r * d) - level, -1.0, 1.0))  # it may be ∞
        except DerivationError:  # at the boundary of the domain
            return 1.0

    high = 1.0
    while excess(high) < 0 and high < MAX_RADIUS:
        high *= 2
    if high >= MAX_RADIUS:
        return MAX_RADIUS
    return float(brentq(excess, 0.0, high, xtol=1e-3))


def _plane(found: Inspection, rays: int = 65) -> Any:
    figure, axes = panels(2, height=3.8)
    angles = np.linspace(0, np.pi / 2, rays)
    d = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    names = ("unit ball of Ω", "dual ball")
    for axis, length, name, colour in zip(axes, (radius, dual_radius), names, COLOURS):
        u, v = (np.array([length(found, one) for one in d])[:, None] * d).T
        around = np.concatenate(
            [[u, v], [-u[::-1], v[::-1]], [-u, -v], [u[::-1], -v[::-1]]], axis=1
        )
        axis.fill(*around, color=colour, alpha=0.15)
        axis.plot(*around, color=colour, linewidth=1.6)
        axis.axhline(0, color="0.6", linewidth=0.6)
        axis.axvline(0, color="0.6", linewidth=0.6)
        axis.set_aspect("equal")
        axis.set_title(name, fontsize=10)
    axes[0].set(xlabel="$u_0$", ylabel="$u_1$")
    axes[1].set(xlabel="$v_0$", ylabel="$v_1$")
    figure.suptitle(found.formulation.name, fontsize=11)
    figure.tight_layout()
    return figure


def _space(found: Inspection) -> Any:
    rays = 12 if found.degree is None else 25  # a root costs more than a formula
    figure, _ = panels(1, columns=1, height=4.2)
    figure.clear()
    axis: Any = figure.add_subplot(projection="3d")
    axis.locator_params(nbins=4)  # so that numbers do not run into each other
    turn, lift = np.meshgrid(*[np.linspace(0, np.pi / 2, rays)] * 2)
    d = np.stack([np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn),
                  np.sin(lift)])  # fmt: skip
    r = np.array([radius(found, one) for one in d.reshape(3, -1).T]).reshape(rays, rays)
    for signs in np.stack(np.meshgrid(*[[1, -1]] * 3), axis=-1).reshape(-1, 3):
        octant = signs[:, None, None] * d * r
        axis.plot_surface(*octant, color=COLOURS[4], alpha=0.9, linewidth=0)
    axis.set(xlabel="$u_0$", ylabel="$u_1$", zlabel="$u_2$")
    axis.set_box_aspect((1, 1, 1))
    axis.set_title(f"unit ball of {found.formulation.name}", fontsize=10)
    return figure
