"""OBSCURE: two stages of stochastic subgradients for squared block norms.

Problem. λ/2 ‖w‖²_{2,p} + (1/N) Σ ℓ(w, x_i, y_i), 1 < p ≤ 2, q dual to p, no bias, any
Lipschitz loss: the canonical problem with C = 1/(λN). The published choice q = 2 ln M
is the formulation BlockNorm(published_exponent(M)).

Algorithm (Orabona, Jie and Caputo 2012). Stage 1 (Algorithm 1) is a multi-kernel
perceptron: α ← α − (η/q)z, w = ∇½‖α‖²_{2,q}, until no sample has a loss or T1 epochs
are over. Its objective bounds the solution: R² = (2/λ) min(f(w), f(0)) ≥ ‖w*‖².
Stage 2 (Algorithm 2) makes steps of length 1/(λt + s_t) inside the ball of radius R,

    s_t = s_{t−1} + ½(√(d² + qL_t²/R²) − d),   d = λt + s_{t−1},
    L_t = λ‖α‖_{2,q} + ‖z‖_{2,q}

Guarantee. On every run, for every u in the ball (lemma 2), g_t being the objective on
the sample of step t: Σ g_t(w_t) − g_t(u) ≤ 2R²s_T + ½Σ qL_t²/(λt + s_t). So for the
mean of w_1 … w_T, or one of them drawn at random (theorem 3; not proved for w_T), with
c = λR + L,

    E f − f* ≤ c√(q(1 + ln T)) min(c√(q(1 + ln T))/(λT), 4R/√T)

Stage 1 on separable data makes at most q(2/η + L²)‖v‖² updates, v the separator of
least norm with margins 1, and then R ≤ (2 + ηL²)‖v‖ (theorem 4).
"""

from collections.abc import Callable

import numpy as np

from ..formulations.norms import dual_exponent
from ..problem import Problem
from ..util.checks import check_positive
from .base import Steps, solver, up_to_C
from .steps.dual_improvement import improve as improved
from .steps.epochs import Descent, epoch_range


@solver(
    "obscure",
    needs={"ball", "strongly_convex"},
    losses={"pointwise"},
    bias={False},
    accuracy=up_to_C(1.0, 1e-2),
    keeps="blocks",
    reference="orabona2012",
    guarantee="the mean of T steps is within O(√(q ln T / T)) of the optimum",
)
def obscure(
    problem: Problem,
    *,
    rng: np.random.Generator,
    start: object = None,
    T1: int | None = 5,
    T2: int | None = None,
    eta: float | None = None,
    R: float | None = None,
    sampling: str = "iid",
    iterate: str = "all",
    improve: Callable | None = improved,
) -> Steps:
    """Two stages of stochastic subgradient steps.

    T1, T2: epochs of the two stages (published: 5 and 5); None: two million steps.
        Stage 1 ends when no sample has a loss; it is skipped if there is a start.
    eta: the step of stage 1 (published: M^(−2/q))
    R: the radius of the ball, instead of the one that stage 1 finds
    sampling: "iid" or "shuffle"
    iterate: "last", "average", "suffix", or "all" for the best of them
    improve: a function (problem, α, θ) that returns a better α for the dual candidate;
        None: α itself
    """
    n, M, options = problem.grams.n, problem.grams.M, (sampling, iterate, improve)
    run = Descent(problem, problem.formulation.strongly_convex, rng, *options, start)
    step = check_positive(M ** (-2 / run.q) if eta is None else eta, "eta")
    first, second = epoch_range(T1, n, "T1"), epoch_range(T2, n, "T2")
    ball = None if R is None else check_positive(R, "R")
    if start is not None:
        yield run.iterate()
        first = range(0)
    for _ in first:
        run.epoch(eta=step)
        yield run.iterate()
        if run.separated:
            break
    ball = run.radius if ball is None else ball
    run.begin()
    for _ in second:
        run.epoch(R=ball)
        yield run.iterate()


def published_exponent(M: int) -> float:
    """The block exponent whose dual is q = 2 ln M (at least 2)."""
    return dual_exponent(max(2.0, 2 * float(np.log(M))))
