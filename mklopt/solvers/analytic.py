"""The SVM wrapper with an analytic step in the kernel weights.

Problem. Any formulation that ½Σu²/θ majorizes (ℓp for all p in [1, ∞], group lasso,
Tikhonov, elastic net, …), any loss with a quadratic dual, and the logistic loss.

Algorithm (Kloft et al. 2011, algorithm 1). Repeat: solve the SVM with the kernel
Σθ_mK_m for α; u_m = θ_m ‖α‖_{K_m}; θ ← u / ∂Ω(u), for ℓp
θ_m = u_m^{2/(p+1)} / (Σ u^{2p/(p+1)})^{1/p}. For block norms with q > 2 no such θ
majorizes Ω; the paper's eq. 31 diverges for q > 3, even when it is normalized rightly.
There the step comes from the dual: θ = ∂Ω*(v)/v (Aflalo et al. 2011, proposition 3.3)
never lowers the dual value. At q = ∞ some kernels become silent: K_mα = 0, and their
weights have no bound. The weights are then bounded such that this costs at most half of
the gap; larger ones would make the SVM ill-conditioned.

Guarantee. Both steps are majorize–minimize: with exact SVM solutions the objective
never rises. If an accelerated step (acceleration.py) raises it, the plain step is taken
instead. Cost per iterate: one combine and one product K_mα with each kernel, together
one pass of packed storage; the Newton step needs no more.

Many kernels. The first α is the solution on some of them (fewer_kernels.py), and the
first θ = ∂Ω*(v)/v is that of the norms of all kernels at this α. From there on a few
steps of Anderson's method are enough, which needs nothing of the size (M, n).

Many samples. If the weights are far from equal ones (ℓp with p near 1), the first θ and
α come from the problem on few samples (fewer_samples.py): it saves an iterate.
"""

import numpy as np

from ..problem import Problem
from .base import Array, Steps, solver
from .machines.factory import machine_for
from .start import first_weights, weights_of
from .steps.acceleration import Ahead
from .steps.fewer_kernels import MANY, coarse, on_kernels, spread
from .steps.fewer_samples import on_all, on_samples, samples_of

SOME = 4000  # kernels of the smaller problem
PART, NEAR_ONE = 8, 1.5  # one sample of so many is enough; for ℓp with p below this
COARSE_GAP, COARSE_ITERATES = 1e-3, 30  # where it ends
COARSE_SAMPLE_GAP = 0.05  # the same on few samples
# The first gap of the SVM solver, relative to the gap there, or to the primal value of
# the problem on few samples.
SHARPNESS = 1e-3


def promised(problem: Problem) -> float:
    """1e-6; 1e-5 at q = ∞: ‖α‖_K of silent kernels has only half of the digits."""
    weights = problem.formulation.weights(np.arange(1.0, problem.grams.M + 1))
    return 1e-6 if np.all(np.isfinite(weights)) else 1e-5


@solver(
    "analytic",
    needs={"reweighted"},
    losses={"machine", "twice_differentiable", "features"},
    accuracy=promised,
    reference="kloft2011",
    guarantee="the objective never rises; limit points are optimal for p > 1",
)
def analytic(
    problem: Problem, *, start: object = None, accelerate: str | None = "newton"
) -> Steps:
    """Inner problem and analytic step in turn.

    accelerate: "newton" or "anderson" extrapolate the plain steps; None: the plain
        steps of Algorithm 1
    """
    smooth = "smooth_dual" in problem.formulation.traits
    alpha: Array | None
    if start is None and smooth and problem.grams.M > MANY:
        theta, alpha, tol = from_fewer_kernels(problem)
    elif start is None and (few := few_samples(problem)) is not None:
        theta, alpha, tol = from_fewer_samples(problem, few)
    else:
        (theta, alpha), tol = first_weights(problem, start), np.inf
    machine = machine_for(problem, alpha, second_order=problem.grams.M <= MANY)
    machine.tol = min(machine.tol, tol)
    ahead, best, plain, slack = Ahead(machine, accelerate), np.inf, theta, 1.0
    while True:
        machine.solve(theta)
        certificate = yield machine.iterate()
        machine.set_tolerance(certificate)
        if certificate.primal > best * (1 + 1e-12) + machine.gap:
            ahead.retreat()
            theta, best = plain, np.inf
            continue
        best = certificate.primal
        slack = min(slack, 0.5 * certificate.relative_gap)
        plain = problem.formulation.reweight(theta, machine.v, slack)
        theta = ahead.step(theta, plain, certificate.relative_gap)


def few_samples(problem: Problem) -> Array | None:
    """The samples to begin with; None if equal weights are a good start."""
    traits = problem.formulation.traits
    far = {"smooth_dual", "ball"} <= traits and problem.formulation.ball < NEAR_ONE
    return samples_of(problem, PART) if far else None


def from_fewer_samples(problem: Problem, few: Array) -> tuple[Array, Array, float]:
    """θ and α from the problem on some of the samples, and a tolerance for the SVM."""
    small = on_samples(problem, few)
    found = coarse(small, analytic.steps(small), COARSE_SAMPLE_GAP, COARSE_ITERATES)
    start = (weights_of(found), on_all(problem, few, found.alpha))
    theta, alpha = first_weights(problem, start)
    assert alpha is not None
    return theta, alpha, SHARPNESS * abs(found.primal)


def from_fewer_kernels(problem: Problem) -> tuple[Array, Array, float]:
    """θ and α from the problem on some of the kernels, and a tolerance for the SVM."""
    small = on_kernels(problem, spread(problem.grams.M, SOME))
    steps = analytic.steps(small.problem, accelerate="anderson")
    found = coarse(small.problem, steps, COARSE_GAP, COARSE_ITERATES)
    alpha = problem.feasible(found.alpha / small.scale)
    v = problem.grams.norms(alpha)
    theta = problem.formulation.dual_weights(np.maximum(v, 1e-12 * np.max(v)))
    return theta, alpha, SHARPNESS * found.gap / small.scale
