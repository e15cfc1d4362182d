"""Pegasos for squared block norms: OBSCURE without its first stage and its ball.

Problem. As obscure: λ/2 ‖w‖²_{2,p} + (1/N) Σ ℓ(w, x_i, y_i), 1 < p ≤ 2, no bias.

Algorithm. Stage 2 of OBSCURE with s_t = 0 and R = ∞: steps of length 1/(λt). Then
α = −(1/(λt)) Σ z is the mean subgradient; after each shuffled epoch it is feasible for
the dual.

Guarantee. E f − f* ≤ qc²(1 + ln T)/(2λT) for the mean of the w_t, c = λ max‖w_t‖ + L.

Reference: Shalev-Shwartz, Singer and Srebro (2007); Orabona et al. (2012), section 5.3.
"""

from .base import solver, up_to_C
from .steps.epochs import follow_the_leader

pegasos = solver(
    "pegasos",
    needs={"ball", "strongly_convex"},
    losses={"pointwise"},
    bias={False},
    accuracy=up_to_C(1.0, 1e-2),
    keeps="blocks",
    reference="orabona2012",
    guarantee="the mean of T steps is within O(q ln T / (λT)) of the optimum",
    about=__doc__,
)(follow_the_leader)
