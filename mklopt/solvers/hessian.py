"""HessianMKL: Newton's method in the kernel weights on the simplex.

Problem. Sparse MKL, ½(Σ‖w_m‖)² or LpNorm(1): min of J(θ) over θ ≥ 0, Σθ = 1. The same
steps serve VSKL on a product of simplices, with G of simplex_oracle.py in place of J,
and group lasso and elastic net on the orthant, with F of orthant_oracle.py (active.py
uses all three).

Algorithm (Chapelle and Rakotomamonjy 2008). J has the gradient −½v² and a Hessian that
costs one product with the kernels in the model (simplex_oracle.py). The step is the
minimum of the quadratic model on the simplex, shortened until J falls enough. Kernels
of weight 0 with v_m well below the largest are left out of the model.

Guarantee. J falls in every step; quadratic convergence once the free coordinates of the
SVM and the kernels in use no longer change. The paper stops at a predicted decrease of
1e-5, which does not even imply a gap of 1e-3; here the certificate decides.
"""

from ..problem import Problem
from .base import Steps, solver
from .start import first_weights
from .steps.simplex_oracle import Oracle
from .steps.weight_newton import newton


@solver(
    "hessian",
    needs={"simplex"},
    losses={"machine"},
    keeps="squares",
    reference="kloft2011",
    guarantee="J falls in every step; quadratic convergence near the solution",
)
def hessian(problem: Problem, *, start: object = None) -> Steps:
    """Newton's method on the simplex."""
    theta, alpha = first_weights(problem, start)
    everything = (tuple(range(problem.grams.M)),)
    yield from newton(Oracle(problem, everything, 1.0, alpha, 1e-5), theta)
