"""Intervals that contain the minimizer, through its optimality conditions.

    u* ∈ ∂Ω*(v*)            norms and unused kernels from v*, weights from norms
    α_i* ∈ −C_i ∂V(f_i*)    α* from predictions, and predictions from α*

with u* = (‖w_m*‖)_m and v* = (‖α*‖_{K_m})_m. Each function takes intervals that contain
one of these, and returns intervals that contain another one.

Guarantee. Rounding is counted: what goes in and what comes out are bounds in exact
arithmetic. What a formulation or a loss does not allow is an infinite interval.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..formulations.losses.domains import Box
from ..formulations.norms import dual_exponent, norm
from ..problem import Problem

Array = np.ndarray
INF = math.inf
SLACK = 1 + 1e-10  # relative: for the rounding of radii, norms, values of V and Ω


class Interval(NamedTuple):
    """Numbers between two others, one interval for each."""

    lower: Array
    upper: Array

    def meet(self, other: Interval) -> Interval:
        """What is in both."""
        lower = np.maximum(self.lower, other.lower)
        return Interval(lower, np.maximum(np.minimum(self.upper, other.upper), lower))

    @property
    def known(self) -> Array:
        """Which intervals are bounded on both sides."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)


def unknown(shape: tuple[int, ...], least: float = -math.inf) -> Interval:
    """Intervals that say nothing, or only that numbers are at least `least`."""
    return Interval(np.full(shape, least), np.full(shape, math.inf))


# ---- norms and weights ---------------------------------------------------------------


def norms_from_dual(problem: Problem, v: Interval) -> Interval:
    """‖w_m*‖ = ∂Ω*(v*) where Ω* is differentiable in closed form."""
    formulation = problem.formulation
    if "strongly_convex" not in formulation.traits:
        return unknown(v.lower.shape, 0.0)
    p, a, c = formulation.strongly_convex
    if a and p == 2:
        low, high = (np.maximum(x - a, 0.0) / c for x in v)
        return Interval(low / SLACK, high * SLACK)
    if a or not np.all(v.known):
        return unknown(v.lower.shape, 0.0)
    e = dual_exponent(p)  # u = v^{e−1} ‖v‖_e^{2−e}/c with e ≥ 2
    small, large = norm(v.lower, e) / SLACK, norm(v.upper, e) * SLACK
    if e > 2 and not small > 0:
        return unknown(v.lower.shape, 0.0)
    low = v.lower ** (e - 1) * large ** (2 - e) / c
    high = v.upper ** (e - 1) * small ** (2 - e) / c
    return Interval(low / SLACK, high * SLACK)


def unused_kernels(problem: Problem, v: Interval) -> Array:
    """Kernels that u* ∈ ∂Ω*(v*) cannot use."""
    formulation, traits = problem.formulation, problem.formulation.traits
    found = np.zeros(len(v.upper), bool)
    if "orthant" in traits:  # the price of u_m is √(2c) u_m + ½κu_m²
        found |= v.upper < math.sqrt(2 * formulation.orthant[0]) / SLACK
    if "simplex" in traits:
        found |= v.upper < np.max(v.lower)
    if "sums" in traits:
        for group in formulation.simplices(len(found))[0]:
            part = list(group)
            found[part] |= v.upper[part] < np.max(v.lower[part])
    return found


def weights_from_norms(problem: Problem, u: Interval) -> Interval:
    """θ_m* from the norms, where it is a monotone function of each of them."""
    formulation, traits = problem.formulation, problem.formulation.traits
    zero = u.upper == 0
    found = unknown(u.lower.shape, 0.0)
    if "orthant" in traits:
        c, kappa = formulation.orthant  # θ = u/(a + κu)
        low, high = (x / (math.sqrt(2 * c) + kappa * x) for x in u)
        high = np.where(np.isfinite(u.upper), high, 1 / kappa if kappa else INF)
        found = Interval(low / SLACK, high * SLACK)
    elif "strongly_convex" in traits and formulation.strongly_convex[1] == 0:
        p, _, c = formulation.strongly_convex  # θ = u^{2−p} ‖u‖_p^{p−2}/c
        small, large = norm(u.lower, p) / SLACK, norm(u.upper, p) * SLACK
        if p == 2:
            low = high = np.full(len(zero), 1 / c)
        elif small > 0 and math.isfinite(large):
            low = u.lower ** (2 - p) * large ** (p - 2) / c
            high = u.upper ** (2 - p) * small ** (p - 2) / c
        else:
            low, high = found
        found = Interval(low / SLACK, high * SLACK)
    return Interval(np.where(zero, 0.0, found.lower), np.where(zero, 0.0, found.upper))


def dual_domain(problem: Problem) -> Interval:
    """α_i* in −C_i times the domain of V*, for one output."""
    domain = problem.loss.domain(problem.y)
    if not isinstance(domain, Box):
        return unknown(problem.shape)
    return Interval(-problem.costs * domain.high, -problem.costs * domain.low)


def dual_from_predictions(problem: Problem, f: Interval) -> Interval:
    """α_i* ∈ −C_i ∂V(f_i*), for one output; V' increases."""
    if f.lower.ndim > 1:
        return unknown(problem.shape)
    loss, y, C = problem.loss, problem.y, problem.costs
    below, above = _wider(f)
    box = np.where(np.isfinite(below), below, 0.0), np.where(above < INF, above, 0.0)
    least, most = (loss.gradient(end, y) for end in box)
    low = np.where(above < INF, -C * most, -INF)
    high = np.where(np.isfinite(below), -C * least, INF)
    flat = low == high  # exact: the loss has one slope there
    if loss.smoothness is not None:
        pad = 1e-12 * C * (1 + np.abs(y))
        low, high = low - pad, high + pad
        flat = np.zeros_like(flat)
    return Interval(np.where(flat, high, low), high)


def _wider(f: Interval) -> Interval:
    """A little more than an interval: a kink at its end is inside."""
    more = 1e-12 * (1 + np.abs(f.lower)), 1e-12 * (1 + np.abs(f.upper))
    return Interval(f.lower - more[0], f.upper + more[1])


def predictions_from_dual(problem: Problem, alpha: Interval) -> Interval:
    """f_i* with V'(f_i*) = −α_i*/C_i, for losses that are twice differentiable."""
    if not problem.loss.twice_differentiable or alpha.lower.ndim > 1:
        return unknown(problem.shape)
    domain, ends = problem.loss.domain(problem.y), []
    assert isinstance(domain, Box)
    middle = 0.5 * (domain.low + domain.high)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    for side, a in ((-1, -alpha.upper), (1, -alpha.lower)):
        a = a / problem.costs
        inside = (a > domain.low) & (a < domain.high)
        f = problem.loss.inverse(np.where(inside, a, middle), problem.y)
        room = 1e-9 * (1 + np.abs(f))
        ends.append(np.where(inside, f + side * room, side * INF))
    return Interval(*ends)
