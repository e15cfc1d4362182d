"""mirrorVSKL: entropic mirror descent over a product of simplices.

Problem. VSKL, ½ (Σ_j (Σ_{k∈j} ‖w_k‖)^{2q})^{1/q} for q in [1, ∞]: the minimum of G(λ)
over λ_j in the simplex of each of the n groups, G and its oracle in simplex_oracle.py.
One group is sparse MKL; with one kernel per group only the oracle has work to do.

Algorithm (Aflalo et al. 2011, algorithm 3). With the gradient G' = −½θ_jv_k² of the
oracle, λ ← softmax(log λ − s_t G') in each group. Γ = Σ_j log n_j bounds the divergence
of any λ from the uniform one, and the entropy is σ = 1/n strongly convex in ℓ1:

    step = "gradient"    s_t = A √(Γσ/t) / ‖G'(λ_t)‖∞
    step = "lipschitz"   s_t = A √(2Γσ/t) / L with the constant of `lipschitz` below

The paper leaves A open. Here it begins at `scale` and falls by a tenth whenever G
rises, but not below 1.

The yielded point is the last one (the loop keeps the best) or the weighted average
Σs_tw_t/Σs_t, Σs_tα_t/Σs_t, whose gap obeys the bound below. "both" yields the last
point, and every few iterates the average.

Polishing. Mirror descent is made for a gap of 1e-3. From there on, unless polish=False,
Newton's method on the product of simplices continues (weight_newton.py).

Guarantee. With B = Σ λ* log(λ*/λ_1) ≤ Γ and the errors ε_s of the oracle, on every
iterate (theorem 3.1 item 1; the printed constant is 2/σ)

    min over s ≤ t of G(λ_s) − G* ≤ (B + Σ s_s²‖G'‖∞²/(2σ) + Σ s_sε_s) / Σ s_s
"""

from itertools import count
from typing import Any

import numpy as np

from ..formulations.norms import dual_exponent
from ..grams.stack import GramStack
from ..problem import Problem, quadratic_dual
from ..util.checks import check_choice, check_positive
from .base import Array, Iterate, Steps, solver
from .start import first_weights
from .steps.proximal_step import largest
from .steps.simplex_oracle import Oracle
from .steps.weight_newton import newton

POLISHED_GAP = 1e-3  # the relative gap at which polishing begins
AVERAGED_EVERY = 5  # iterates between two averages, for "both"


@solver(
    "mirror",
    needs={"simplices"},
    accuracy=1e-3,
    keeps="blocks",
    reference="aflalo2011",
    guarantee="the best of t iterates is within O(√(log M / t)) of the optimum",
)
def mirror(
    problem: Problem,
    *,
    start: object = None,
    step: str = "gradient",
    scale: float = 5.0,
    iterate: str = "both",
    polish: bool = True,
) -> Steps:
    """Mirror descent on the in-group weights λ.

    step: "gradient" or "lipschitz"; scale: the first value of the factor A
    iterate: "last", "average" or "both"; polish: continue with Newton from 1e-3 on
    """
    check_choice(step, "step", ("gradient", "lipschitz"))
    check_choice(iterate, "iterate", ("last", "average", "both"))
    A = check_positive(scale, "scale", finite=True)
    L = lipschitz(problem) if step == "lipschitz" else 0.0
    theta, alpha = first_weights(problem, start)
    groups, q = problem.formulation.simplices(problem.grams.M)
    oracle, mean = Oracle(problem, groups, q, alpha), Average(problem)
    size, before = float(np.sqrt(np.prod(width(oracle)))), np.inf
    lam = theta / oracle.sums(theta)[oracle.owner]
    for t in count(1):
        yield from oracle.solve(lam)
        slope, value = oracle.slope, oracle.value
        if value > before and A > 1:
            A = max(0.9 * A, 1.0)
        s, before = step_length(t, A * size, slope, L), value
        info = {"lam": lam, "slope": slope, "value": value, "step": s}
        last = oracle.iterate(bounds=oracle.bounds, **info)
        if iterate != "last":
            mean.add(s, oracle)
        shown = iterate == "average" or (iterate == "both" and t % AVERAGED_EVERY == 0)
        certificate = yield mean.iterate(last.info) if shown else last
        oracle.set_tolerance(certificate)
        if polish and certificate.relative_gap <= POLISHED_GAP:
            yield from newton(oracle, lam)
        lam = softmax(np.log(np.maximum(lam, 1e-300)) - s * slope, oracle)


def step_length(t: int, size: float, slope: Array, L: float) -> float:
    """The length of step t, size = A√(Γσ); L = 0: by the size of the gradient."""
    if L:
        return float(size * np.sqrt(2 / t) / L)
    return float(size / (np.sqrt(t) * max(np.max(np.abs(slope)), 1e-300)))


class Average:
    """The averages Σs_tα_t/Σs_t and Σs_tw_t/Σs_t."""

    def __init__(self, problem: Problem):
        M, n = problem.grams.M, problem.grams.n
        self.total, self.alpha, self.w = 0.0, np.zeros(n), np.zeros((M, n))

    def add(self, s: float, oracle: Oracle) -> None:
        """Include the point of the oracle with weight s."""
        self.total += s
        share = s / self.total if self.total else 1.0  # singletons make no steps: s = 0
        self.alpha += share * (oracle.alpha - self.alpha)
        self.w += share * (oracle.coefficients() - self.w)

    def iterate(self, info: dict[str, Any]) -> Iterate:
        """The averages as a candidate."""
        return Iterate(self.alpha.copy(), coefficients=self.w.copy(), info=info)


def softmax(logs: Array, oracle: Oracle) -> Array:
    """exp(logs), normalized in each group; shifted by the largest exponent first."""
    top = np.full(len(oracle.theta), -np.inf)
    np.maximum.at(top, oracle.owner, logs)
    lam = np.exp(logs - top[oracle.owner])
    return np.asarray(lam / oracle.sums(lam)[oracle.owner])


def width(oracle: Oracle) -> tuple[float, float]:
    """Γ = Σ log n_j and σ = 1/n for n groups of n_j kernels."""
    sizes = oracle.sums(np.ones(len(oracle.owner)))
    return float(np.sum(np.log(sizes))), 1 / len(sizes)


def lipschitz(problem: Problem) -> float:
    """L with ‖G'(λ)‖∞ ≤ L for all λ, known before the first step.

    D_k = αᵀK_kα lies between τμ‖α‖² and μ‖α‖², μ the largest and τμ the smallest
    eigenvalue of all kernels. With e = 1/(q*+1), G' = −½ D_k (Σ_i D_i^{q*e})^{1/q*}
    / D_j^e and D_j ≥ τ max D, so L = ½ n^{1/q*} τ^{−e} μ ‖α‖², ‖α‖² ≤ Σ C_i² b_i² with
    b_i the largest |α_i|/C_i. (The appendix has 1/q* in place of e.)
    """
    groups, q = problem.formulation.simplices(problem.grams.M)
    dual, M = quadratic_dual(problem), problem.grams.M
    largest = float(np.sum(np.maximum(-dual.low, dual.high) ** 2))
    if not np.isfinite(largest):
        raise ValueError(
            f"{problem.loss.name} has unbounded dual variables, and so no Lipschitz "
            "constant: use step='gradient'"
        )
    ends = [ends_of_spectrum(problem.grams.subset(np.array([m]))) for m in range(M)]
    low, mu = float(np.min(ends)), float(np.max(ends))
    if q == 1 or len(groups) == 1:
        return 0.5 * mu * largest
    if low <= 1e-12 * mu:
        raise ValueError(
            "a kernel is singular, so that G has no Lipschitz constant for q > 1 and "
            "several groups: use step='gradient', or add a multiple of the identity"
        )
    star = dual_exponent(q)
    spread = len(groups) ** (1 / star) * (mu / low) ** (1 / (star + 1))
    return 0.5 * spread * mu * largest


def ends_of_spectrum(grams: GramStack) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of the kernel of a stack of one."""
    if grams.in_feature_space:  # fewer columns than rows: singular
        return 0.0, largest(grams)
    values = np.linalg.eigvalsh(grams.kernel(0))
    return float(values[0]), float(values[-1])
