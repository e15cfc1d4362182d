"""SpicyMKL: proximal minimization, each step by Newton's method on its dual.

Problem. Any formulation, any loss: min over w, b of C Σ V(f_i) + Ω(‖w_1‖, …, ‖w_M‖).

Algorithm (Suzuki and Tomioka 2009, table 1). Repeat: minimize the augmented Lagrangian
φ_γ(ρ; β, b) over ρ (augmented_lagrangian.py); β_m ← (z_m/s_m)(β_m + γ_mρ), b ← b + γ_b
Σρ; raise γ. Minimized is φ over a working set: the kernels in use, and those that would
come into use if ρ were a tenth longer. Section 3.4 asks for the norms of kernels active
at either end of a step (the printed set is garbled); here all others are priced when
the step is complete, by the product that the certificate needs anyhow, and the step
goes on with those that would have been active. So a full pass is made once per yield,
not per step of Newton's method.

γ. The published code starts at 10 (kernels), 1 (bias), 10 (slacks), in units of 1/C for
the canonical objective, multiplies by 10 where a residual exceeds half the best so far
and adds 10 elsewhere. `schedule="brisk"` asks for a tenth: fewer steps, each a little
harder; it is what a start is continued with, at a larger γ. `"geometric"` multiplies
always: the schedule of the theory.

What comes back. The coefficients of each certified step, not those after γ moved on,
and ρ as the dual candidate: the loop restores its feasibility over all kernels in the
order that keeps everything, and keeps the best dual value of all steps.

Guarantee. With φ minimized exactly each step is a proximal step: the objective never
rises, and the error falls by a factor of order 1/γ_t: superlinearly as γ_t grows.
"""

from __future__ import annotations

from typing import Any

from ..problem import Problem
from .base import Steps, solver
from .steps.proximal_minimization import proximal_minimization


@solver(
    "spicy",
    losses={"any"},
    accuracy=lambda problem: 1e-8 if problem.loss.twice_differentiable else 1e-7,
    reference="suzuki2009",
    guarantee="superlinear as the penalties grow; the objective never rises",
)
def spicy(
    problem: Problem,
    *,
    start: Any = None,
    schedule: str | None = None,
    growth: float | None = None,
    gamma: float = 10.0,
    gamma_bias: float = 1.0,
    gamma_loss: float = 10.0,
    precision: float = 0.1,
) -> Steps:
    """Proximal minimization by Newton's method on the dual.

    schedule: "published", "brisk" or "geometric"; default: published without a start,
        brisk with one
    growth: by which factor γ grows, instead of 10
    gamma, gamma_bias, gamma_loss: the first γ of kernels, bias and predictions
    precision: how exact the first steps are, as a share of what they move
    """
    gammas = (gamma, gamma_bias, gamma_loss)
    return proximal_minimization(
        problem, start, schedule, growth, gammas, precision=precision
    )
