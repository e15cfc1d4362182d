"""FISTA: the accelerated form of ISTA, with restarts.

Problem. Any formulation, any loss with a Lipschitz gradient.

Algorithm (Beck and Teboulle 2009, section 4). The step of ista.py from an extrapolated
point, Y = W_t + ((a_t − 1)/a_{t+1})(W_t − W_{t−1}), a_{t+1} = (1 + √(1 + 4a_t²))/2. The
momentum restarts (a = 1) where it points uphill, ⟨Y − W_{t+1}, W_{t+1} − W_t⟩ > 0
(O'Donoghue and Candès 2015). Without restarts the iterates oscillate; with them
convergence is linear where the objective is strongly convex near the solution.

Guarantee. F(W_t) − F* ≤ 2L ‖W_0 − W*‖² / (t + 1)² without restarts.
"""

import numpy as np

from ..problem import Problem
from ..util.checks import check_whole
from .base import Steps, solver, up_to_C
from .start import first_coefficients
from .steps.proximal_step import CERTIFIED_EVERY, Forward, begin


@solver(
    "fista",
    losses={"smooth"},
    accuracy=up_to_C(1.0, 1e-6),
    keeps="blocks, matrix",
    reference="suzuki2009",
    guarantee="F(W_t) − F* ≤ 2L‖W_0 − W*‖²/(t + 1)² without restarts",
)
def fista(
    problem: Problem,
    *,
    start: object = None,
    backtracking: bool = True,
    restart: bool = True,
    every: int = CERTIFIED_EVERY,
) -> Steps:
    """Accelerated proximal gradient steps.

    backtracking: search for L; False: the bound max C · Lip(V') · λ_max(ΣK_m)
    restart: restart the momentum where it points uphill
    every: steps between two certificates
    """
    check_whole(every, "every", 1)
    forward = Forward(problem, backtracking)
    W = begin(problem, first_coefficients(problem, start)[0])
    Y, a = W, 1.0
    while True:
        yield forward.iterate(W)
        for _ in range(every):
            new = forward.step(Y)
            uphill = np.vdot((Y - new)[0], (new - W)[1]) > 0
            if restart and uphill:
                Y, a = new, 1.0
            else:
                longer = 0.5 * (1 + np.sqrt(1 + 4 * a * a))
                Y, a = new + (a - 1) / longer * (new - W), longer
            W = new
