"""mirrorVSKL: entropic mirror descent over a product of simplices.

Problem. VSKL, ½ (Σ_j (Σ_{k∈j} ‖w_k‖)^{2q})^{1/q} for q in [1, ∞]: the minimum of G(λ)
over λ_j in the simplex of each of the n groups, G and its oracle in simplex_oracle.py.
One group is sparse MKL; singleton groups leave the oracle only.

Algorithm (Aflalo et al. 2011, algorithm 3). With the gradient G' = −½θ_jv_k² of the
oracle, λ ← softmax(log λ − s_t G') in each group. Γ = Σ_j log n_j bounds the divergence
of any λ from the uniform one, and the entropy is σ = 1/n strongly convex in ℓ1:

    step = "gradient"    s_t = A √(Γσ/t) / ‖G'(λ_t)‖∞
    step = "lipschitz"   s_t = A √(2Γσ/t) / L with the constant of `lipschitz` below

The paper leaves A open; here it begins at `scale` and loses a tenth whenever G rises.

The yielded point is the last one, of which the loop keeps the best, or the average,
Σs_tw_t/Σs_t and Σs_tα_t/Σs_t, whose gap is below the bound; "both" yields the last and,
now and then, the average.

Polishing. Mirror descent is made for a gap of 1e-3. Below it, unless polish=False,
Newton's method on the product of simplices goes on (hessian.py): second derivatives of
G with the response of α and γ included.

Guarantee. With B = Σ λ* log(λ*/λ_1) ≤ Γ and the errors ε_s of the oracle, on every
iterate (theorem 3.1 item 1; the printed constant is 2/σ)

    min over s ≤ t of G(λ_s) − G* ≤ (B + Σ s_s²‖G'‖∞²/(2σ) + Σ s_sε_s) / Σ s_s
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from ..formulations.norms import dual_exponent
from ..problem import Problem
from .base import Iterate, Steps, solver
from .start import first_weights
from .steps.simplex_oracle import Oracle
from .steps.weight_newton import newton

Array = np.ndarray
POLISHED_GAP = 1e-3  # the relative gap at which polishing begins
AVERAGED_EVERY = 5  # iterates between two averages, for "both"


@solver(
    "mirror",
    needs={"simplices"},
    losses={"quadratic"},
    accuracy=1e-3,
    reference="aflalo2011",
    guarantee="the best of t iterates is within O(√(log M / t)) of the optimum",
)
def mirror(
    problem: Problem,
    *,
    start: Any = None,
    step: str = "gradient",
    scale: float = 5.0,
    iterate: str = "both",
    polish: bool = True,
) -> Steps:
    """step: "gradient" or "lipschitz"; scale: the factor A it begins with
    iterate: "last", "average" or "both"; polish: go on with Newton from 1e-3 on
    """
    theta, alpha = first_weights(problem, start)
    groups, q = problem.formulation.simplices(problem.grams.M)
    oracle = Oracle(problem, groups, q, alpha)
    rule = Rule(step, problem, oracle, scale)
    shown = Yielded(problem, iterate)
    lam = theta / oracle.sums(theta)[oracle.owner]
    for t in count(1):
        yield from oracle.solve(lam)
        slope, s = oracle.slope, rule.length(t, oracle)
        certificate = yield shown.point(oracle, t, s, lam=lam, slope=slope)
        oracle.set_tolerance(certificate)
        if polish and certificate.relative_gap <= POLISHED_GAP:
            yield from newton(oracle, lam)
        lam = softmax(np.log(np.maximum(lam, 1e-300)) - s * slope, oracle)


def softmax(logs: Array, oracle: Oracle) -> Array:
    """exp, each group normalized; shifted by its largest exponent."""
    top = np.full(len(oracle.theta), -np.inf)
    np.maximum.at(top, oracle.owner, logs)
    lam = np.exp(logs - top[oracle.owner])
    return np.asarray(lam / oracle.sums(lam)[oracle.owner])


def width(oracle: Oracle) -> tuple[float, float]:
    """Γ = Σ log n_j and σ = 1/n for n groups of n_j kernels."""
    sizes = oracle.sums(np.ones(len(oracle.owner)))
    return float(np.sum(np.log(sizes))), 1 / len(sizes)


class Rule:
    """The step sizes of section 3.2.1, with a factor A that falls when G rises."""

    def __init__(self, step: str, problem: Problem, oracle: Oracle, scale: float):
        number = isinstance(scale, int | float | np.integer | np.floating)
        if not number or not 0 < scale < np.inf:
            raise ValueError(f"scale = {scale!r}; give a finite positive number")
        if step not in ("gradient", "lipschitz"):
            raise ValueError(f"step = {step!r}; choose 'gradient' or 'lipschitz'")
        gamma, sigma = width(oracle)
        self.size, self.A, self.last = np.sqrt(gamma * sigma), scale, np.inf
        self.L = lipschitz(problem) if step == "lipschitz" else 0.0

    def length(self, t: int, oracle: Oracle) -> float:
        """The length of step t."""
        value = oracle.value
        if value > self.last and self.A > 1:
            self.A = max(0.9 * self.A, 1.0)
        self.last = value
        if self.L:
            return float(self.A * self.size * np.sqrt(2 / t) / self.L)
        steepest = max(float(np.max(np.abs(oracle.slope))), 1e-300)
        return float(self.A * self.size / (np.sqrt(t) * steepest))


def lipschitz(problem: Problem) -> float:
    """L with ‖G'(λ)‖∞ ≤ L for all λ, known before the first step.

    D_k = αᵀK_kα lies between τμ‖α‖² and μ‖α‖², μ the largest and τμ the smallest
    eigenvalue of all kernels. With e = 1/(q*+1), G' = −½ D_k (Σ_i D_i^{q*e})^{1/q*}
    / D_j^e and D_j ≥ τ max D, so L = ½ n^{1/q*} τ^{−e} μ ‖α‖², ‖α‖² ≤ Σ C_i² b_i² with
    b_i the largest |α_i|/C_i. (The appendix has 1/q* in place of e.)
    """
    groups, q = problem.formulation.simplices(problem.grams.M)
    dual = problem.loss.quadratic(problem.y, problem.costs)
    assert dual is not None
    most = float(np.sum(np.maximum(-dual.low, dual.high) ** 2))
    if not np.isfinite(most):
        raise ValueError(
            f"{problem.loss.name} has unbounded dual variables, and so no Lipschitz "
            "constant: use step='gradient'"
        )
    ends = [
        np.linalg.eigvalsh(problem.grams.kernel(m))[[0, -1]]
        for m in range(problem.grams.M)
    ]
    low, mu = float(np.min(ends)), float(np.max(ends))
    star = dual_exponent(q)
    if q == 1 or len(groups) == 1:
        return 0.5 * mu * most
    if low <= 1e-12 * mu:
        raise ValueError(
            "a kernel is singular, so that G has no Lipschitz constant for q > 1 and "
            "several groups: use step='gradient', or add a multiple of the identity"
        )
    return 0.5 * len(groups) ** (1 / star) * (mu / low) ** (1 / (star + 1)) * mu * most


class Yielded:
    """Which point is shown: the last, or the averages Σs_tα_t/Σs_t, Σs_tw_t/Σs_t."""

    def __init__(self, problem: Problem, which: str):
        if which not in ("last", "average", "both"):
            raise ValueError(f"iterate = {which!r}; choose last, average or both")
        self.which, self.total = which, 0.0
        self.alpha = np.zeros(problem.grams.n)
        self.w = np.zeros((problem.grams.M, problem.grams.n))

    def point(self, oracle: Oracle, t: int, s: float, **more: Any) -> Iterate:
        """The candidate after step t of length s."""
        more |= {"value": oracle.value, "bounds": oracle.bounds, "step": s}
        last = oracle.iterate(**more)
        if self.which == "last":
            return last
        self.total += s
        share = s / self.total if self.total else 1.0  # singletons take no steps
        self.alpha += share * (oracle.alpha - self.alpha)
        self.w += share * (oracle.coefficients() - self.w)
        if self.which == "both" and t % AVERAGED_EVERY:
            return last
        return Iterate(self.alpha.copy(), coefficients=self.w.copy(), info=last.info)
