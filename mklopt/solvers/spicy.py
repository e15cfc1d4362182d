"""SpicyMKL: proximal minimization, each step by Newton's method on its dual.

Problem. Any formulation, any loss: min over w, b of C Σ V(f_i) + Ω(‖w_1‖, …, ‖w_M‖).

Algorithm (Suzuki and Tomioka 2009, table 1). Repeat: minimize the augmented Lagrangian
φ_γ(ρ; β, b) over ρ (augmented_lagrangian.py); β_m ← (z_m/s_m)(β_m + γ_mρ), b ← b + γ_b
Σρ; raise γ. φ is minimized over a working set: the kernels in use, and those that would
come into use if ρ were a tenth longer. Section 3.4 asks for the norms of kernels that
are active at either end of a step (the printed set is wrong). Here all other kernels
are priced at the end of the step, with the product that the certificate needs anyway;
if some of them should have been active, the step continues with these. So a full pass
is made once per iterate, not once per Newton step.

γ. The published code starts at 10 (kernels), 1 (bias), 10 (slacks), in units of 1/C for
the canonical objective, with K_ii ≤ 1. K_mρ grows with the trace of K_m, and a longer
step takes more of Newton's steps: by default γ of kernels is smaller in proportion for
traces above 200; gamma=10 is the published one for all. The code multiplies γ by 10
where a residual exceeds half of the best so far, and adds 10 elsewhere. With
schedule="brisk" the residual has to fall to a tenth: fewer steps, each a little harder;
it is the default after a start, with a larger γ. "geometric" always multiplies: the
schedule of the theory.

Iterates. The coefficients are those of the step that is certified, and the dual
candidate is ρ. The loop makes it feasible for all kernels, and keeps the best dual
value of all steps.

Guarantee. With φ minimized exactly each step is a proximal step: the objective never
rises, and the error falls by a factor of order 1/γ_t: superlinearly as γ_t grows.
"""

from .base import solver
from .steps.proximal_minimization import proximal_minimization

spicy = solver(
    "spicy",
    losses={"any"},
    accuracy=lambda problem: 1e-8 if problem.loss.twice_differentiable else 1e-7,
    keeps="blocks, matrix",
    reference="suzuki2009",
    guarantee="superlinear as the penalties grow; the objective never rises",
    about=__doc__,
)(proximal_minimization)
