"""ISTA: iterative shrinkage and thresholding on the coefficients of all kernels.

Problem. Any formulation, any loss with a Lipschitz gradient.

Algorithm (Suzuki and Tomioka 2009, section 4.1). Linearize the loss, make a step
against its gradient, shrink each block: proximal_step.py. The bias is minimized out;
the paper's separate step γ_b only approximates this. L may fall between steps: for
monotone descent the bound has to hold at each step only.

Guarantee. F(W_t) − F* ≤ L ‖W_0 − W*‖² / (2t), with L the largest constant that the
backtracking needed; the objective never rises (Beck and Teboulle 2009, theorem 3.1).
"""

from ..problem import Problem
from ..util.checks import check_whole
from .base import Steps, solver, up_to_C
from .start import first_coefficients
from .steps.proximal_step import CERTIFIED_EVERY, Forward, begin


@solver(
    "ista",
    losses={"smooth"},
    accuracy=up_to_C(1.0, 1e-3),
    keeps="blocks, matrix",
    reference="suzuki2009",
    guarantee="F(W_t) − F* ≤ L‖W_0 − W*‖²/(2t); the objective never rises",
)
def ista(
    problem: Problem,
    *,
    start: object = None,
    backtracking: bool = True,
    every: int = CERTIFIED_EVERY,
) -> Steps:
    """Proximal gradient steps; backtracking and every: as in fista."""
    check_whole(every, "every", 1)
    forward = Forward(problem, backtracking, relax=0.8)
    W = begin(problem, first_coefficients(problem, start)[0])
    while True:
        yield forward.iterate(W)
        for _ in range(every):
            W = forward.step(W)
