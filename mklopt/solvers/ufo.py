"""UFO-MKL: follow the regularized leader, one sample at a time.

Problem. λ/2 ‖w‖²_{2,p} + λa‖w‖_{2,1} + (1/N) Σ ℓ(w, x_i, y_i), 1 < p ≤ 2, no bias:
SparseBlockNorm(p, a) with C = 1/(λN), or any formulation that states the trait
`strongly_convex`. The published choices are λ = 1/N, a = 0.01/λ and p dual to 2 ln M.

Algorithm (Orabona and Jie 2011). w_{t+1} minimizes the sum of the first t linearized
objectives, Σ ⟨z_s, w⟩ + tλΩ(w): w_{t+1} = ∇Ω*(α), α = −(1/(λt)) Σ z_s. With
v_m = ‖α‖_{K_m} and the threshold x_m = (v_m − a)₊,
w_m = (x_m/‖x‖_q)^{q−2} (x_m/v_m) Σ_i α_i ψ_m(x_i). With a = 0 it is pegasos.

Guarantee. E f − f* = O(qL² ln T/(λT)) for the mean of the w_t, ‖z‖_{2,q} ≤ L.
"""

from .base import solver, up_to_C
from .steps.epochs import follow_the_leader

ufo = solver(
    "ufo",
    needs={"strongly_convex"},
    losses={"pointwise"},
    bias={False},
    accuracy=up_to_C(1.0, 1e-2),
    keeps="blocks",
    reference="orabona2011",
    guarantee="the mean of T steps is within O(q ln T / (λT)) of the optimum",
    about=__doc__,
)(follow_the_leader)
