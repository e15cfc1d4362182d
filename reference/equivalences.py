"""Equivalent formulations, each with its parameter map in both directions.

One principle carries them all. If Ω and Ω' have proportional (sub)gradients at the
block norms u* of a solution, ∂Ω'(u*) = s ∂Ω(u*), then (w*, b*), optimal for
C Σ V + Ω, is optimal for s C Σ V + Ω': the stationarity conditions are the same up to
the factor s. Dual variables scale like C, so α' = s α and the kernel weights
θ = ‖w‖/‖α‖_K become θ' = θ/s. The proportionality holds whenever Ω and Ω' are
increasing functions of the same norm; s is the ratio of their slopes at N = ‖u*‖.

Each map below states its s in closed form and derives it in its docstring; the tests
solve both sides exactly and compare decision functions and weights. All of them need
w* ≠ 0: at w* = 0 the size of u* is lost and there is no map (a ValueError says so).
Where weights are not unique (identical kernels) decision functions still agree; where
solutions are not unique, the mapped one is among them.

Reference: Kloft et al. (2011), theorem 1 and proposition 5; Suzuki and Tomioka (2009),
section 4.2; Aflalo et al. (2011), section 2; Jain et al. (2012); Orabona et al. (2012).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..formulations.base import Formulation
from ..formulations.block_norm import BlockL1, BlockNorm
from ..formulations.block_power import BlockPower
from ..formulations.group_lasso import GroupLasso
from ..formulations.ivanov import Ivanov, Tikhonov
from ..formulations.lp_norm import LpNorm
from ..formulations.mixed_norm import VSKL
from ..formulations.norms import INF, block_exponent, norm
from ..grams.stack import GramStack
from ..problem import Problem
from .exact import Reference, attempts, runs
from .programs import Program, factors

Array = np.ndarray


def block_norms(solution: Reference) -> Array:
    """u* = (‖w_m‖)_m of a solution; refused where all of them vanish."""
    u, problem = solution.norms, solution.certificate.problem
    # Interior-point methods stop short of 0: what weighs less than the gap is nothing.
    if problem.formulation.value(u) <= 1e-6 * abs(solution.upper):
        raise ValueError(
            "the solution is w* = 0: every larger penalty gives it too, so there is no "
            "parameter to map to; increase C"
        )
    return u


def _scaled(problem: Problem, s: float, formulation: Formulation) -> Problem:
    return problem.with_(C=s * np.asarray(problem.C), formulation=formulation)


def _expect(problem: Problem, *kinds: type) -> Any:
    if type(problem.formulation) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"this map starts from {names}, but the problem has {problem.formulation!r}"
        )
    return problem.formulation


# ---- Tikhonov and Ivanov: Kloft, theorem 1 -----------------------------------


def to_ivanov(problem: Problem, solution: Reference) -> Problem:
    """Tikhonov(p, μ) with C̃ → Ivanov(p) with C = C̃ t, t = ‖θ*‖_p, and κ = 1/t.

    For fixed t the best shape of θ leaves N²/(2t) + μt² with N = ‖u‖_q, so that
    t³ = N²/(4μ) at the optimum. Holding t there and multiplying the objective by t
    gives C̃ t Σ V + ½N², the Ivanov form; its weights have norm 1, so θ' = θ/t.
    """
    formulation = _expect(problem, Tikhonov)
    t = tikhonov_size(block_norms(solution), formulation)
    return _scaled(problem, t, Ivanov(formulation.p))


def to_tikhonov(problem: Problem, solution: Reference, mu: float = 1.0) -> Problem:
    """Ivanov(p) with C → Tikhonov(p, μ) with C̃ = C/t, t³ = N²/(4μ), for any μ > 0.

    The same identity read backwards: every μ names a point (C̃, μ) of the Tikhonov
    family with this solution, which is why one of its two parameters is redundant.
    """
    formulation = _expect(problem, Ivanov, LpNorm)
    target = Tikhonov(formulation.p, mu)
    t = tikhonov_size(block_norms(solution), target)
    return _scaled(problem, 1 / t, target)


def tikhonov_size(u: Array, formulation: Tikhonov) -> float:
    """t = ‖θ*‖_p = (‖u‖_q² / 4μ)^(1/3)."""
    N = norm(u, formulation.exponent)
    return (N**2 / (4 * formulation.mu)) ** (1 / 3)


# ---- ℓp weights, block norms, powers -----------------------------------------


def lp_to_block_norm(problem: Problem, solution: Reference | None = None) -> Problem:
    """LpNorm(p) with C → BlockNorm(q) with the same C, q = 2p/(p+1).

    Hölder with exponents (p+1)/p and p+1 gives min over ‖θ‖_p ≤ 1 of Σu²/θ = ‖u‖_q².
    """
    return _scaled(problem, 1.0, BlockNorm(block_exponent(_expect(problem, LpNorm).p)))


def block_norm_to_lp(problem: Problem, solution: Reference | None = None) -> Problem:
    """BlockNorm(q), 1 ≤ q ≤ 2, with C → LpNorm(p) with the same C, p = q/(2−q)."""
    q = _expect(problem, BlockNorm).q
    if q > 2:
        raise ValueError(
            f"BlockNorm(q={q}) is no ℓp-norm MKL: kernel weights in the denominator "
            "reach q ≤ 2 only; see sup_form for q ≥ 2"
        )
    return _scaled(problem, 1.0, LpNorm(INF if q == 2 else q / (2 - q)))


def to_block_power(problem: Problem, solution: Reference) -> Problem:
    """BlockNorm(q) with C → BlockPower(q) with (q/2) N^(q−2) C, N = ‖u*‖_q.

    ∂(½Σu^q) = (q/2) u^(q−1) and ∂(½N²) = N^(2−q) u^(q−1): their ratio is s. (The proof
    of proposition 5 sets C̃ = ζ C with ζ = N^(q−2) and loses q/2.)
    """
    q = _expect(problem, BlockNorm).q
    s = q / 2 * norm(block_norms(solution), q) ** (q - 2)
    return _scaled(problem, s, BlockPower(q))


def to_block_norm(problem: Problem, solution: Reference) -> Problem:
    """BlockPower(q) with C → BlockNorm(q) with C (2/q) N^(2−q)."""
    q = _expect(problem, BlockPower).q
    s = 2 / q * norm(block_norms(solution), q) ** (2 - q)
    return _scaled(problem, s, BlockNorm(q))


def to_block_l1(problem: Problem, solution: Reference) -> Problem:
    """GroupLasso with C → BlockL1 with C S, S = Σu*: since ∂(½S²) = S ∂S.

    In Suzuki's notation, with the parameter on the penalty, C' = C/S; eq. (13) of the
    paper multiplies where it must divide.
    """
    _expect(problem, GroupLasso)
    return _scaled(problem, float(np.sum(block_norms(solution))), BlockL1())


def to_group_lasso(problem: Problem, solution: Reference) -> Problem:
    """BlockL1 with C → GroupLasso with C/S."""
    _expect(problem, BlockL1)
    return _scaled(problem, 1 / float(np.sum(block_norms(solution))), GroupLasso())


# ---- grouped kernels ---------------------------------------------------------


def one_group(problem: Problem, solution: Reference | None = None) -> Problem:
    """BlockL1 → VSKL with all kernels in one group, any q, the same C.

    A single group leaves (S^{2q})^{1/q}/2 = ½S².
    """
    _expect(problem, BlockL1)
    return _scaled(problem, 1.0, VSKL((tuple(range(problem.grams.M)),), 2.0))


def from_one_group(problem: Problem, solution: Reference | None = None) -> Problem:
    """VSKL with one group → BlockL1 with the same C."""
    if len(_expect(problem, VSKL).groups) != 1:
        raise ValueError(f"{problem.formulation!r} has more than one group")
    return _scaled(problem, 1.0, BlockL1())


def singletons(problem: Problem, solution: Reference | None = None) -> Problem:
    """LpNorm(∞), the SVM on ΣK_m → VSKL with singleton groups and q = 1, the same C.

    Each group sum is u_m itself and q = 1 leaves ½Σu².
    """
    if _expect(problem, LpNorm).p != INF:
        raise ValueError("only p = ∞ is the plain SVM on the sum of kernels")
    return _scaled(problem, 1.0, VSKL(tuple((m,) for m in range(problem.grams.M)), 1.0))


def from_singletons(problem: Problem, solution: Reference | None = None) -> Problem:
    """VSKL with singleton groups and q = 1 → LpNorm(∞) with the same C."""
    formulation = _expect(problem, VSKL)
    if formulation.q != 1 or any(len(group) != 1 for group in formulation.groups):
        raise ValueError(f"{formulation!r} does not have singleton groups and q = 1")
    return _scaled(problem, 1.0, LpNorm(INF))


# ---- other papers' dialects --------------------------------------------------


def from_orabona(
    grams: GramStack, y: Array, lam: float, p: float, **loss: Any
) -> Problem:
    """λ/2 ‖w‖²_{2,p} + 1/N Σ ℓ, no bias → BlockNorm(q = p) with C = 1/(λN).

    Dividing the objective by λ changes no minimizer.
    """
    C = 1 / (lam * grams.n)
    return Problem(grams, y, formulation=BlockNorm(p), C=C, bias=False, **loss)


def to_orabona(problem: Problem) -> tuple[float, float]:
    """(λ, p) of a BlockNorm problem without bias: λ = 1/(C N)."""
    q = _expect(problem, BlockNorm).q
    if problem.bias:
        raise ValueError("Orabona's problem has no bias: pass bias=False")
    return 1 / (float(np.asarray(problem.C)) * problem.grams.n), q


def suzuki_C(penalty: float, half_squared: bool = True) -> float:
    """Σ ℓ + C_s Σ‖f_m‖ → GroupLasso with C = 1/C_s.

    The paper's squared loss is (y − f)², twice ours: pass half_squared=False for it,
    and C = 2/C_s. Its own inverse: the same function maps C back to C_s.
    """
    return (1 if half_squared else 2) / penalty


def jain_l1(
    problem: Problem, solution: Reference | None = None, weight: float = 1.0
) -> Problem:
    """½Σu²/d + Σd + C ΣV (Jain, r(d) = Σd) → GroupLasso with C/√2; wΣd: C/√(2w).

    min over d of u²/(2d) + wd is √(2w) u, at d = u/√(2w). The problem given here
    carries C of Jain's objective; its formulation is replaced.
    """
    return _scaled(problem, (2 * weight) ** -0.5, GroupLasso())


def from_group_lasso_to_jain(C: Any) -> Any:
    """The C of Jain's r(d) = Σd that meets GroupLasso with C: √2 C."""
    return 2**0.5 * C


def jain_lp(problem: Problem, p: float, weight: float = 1.0) -> Problem:
    """½Σu²/d + (w/2)‖d‖_p² + C ΣV (Jain: w = 1) → Tikhonov(p, w/2), same C."""
    return _scaled(problem, 1.0, Tikhonov(p, 0.5 * weight))


# ---- block norms q ≥ 2 as a supremum: Kloft, eq. (30) ------------------------


def sup_form(problem: Problem, solution: Reference) -> Array:
    """θ* of BlockNorm(q) as sup over θ ≥ 0, ‖θ‖_r ≤ 1 of C ΣV + ½Σθu², r = q/(q−2).

    The supremum over θ of ½Σθu² is ½‖u²‖_{r*} with r* = q/2, which is ½‖u‖_q²; Hölder
    is an equality at θ = (u/‖u‖_q)^(q−2). At θ* the inner problem is the SVM with
    kernel weights 1/θ*; its value is the largest among all θ.
    """
    q = _expect(problem, BlockNorm).q
    if q < 2:
        raise ValueError(f"q = {q} < 2: there the weights stand in the denominator")
    u = block_norms(solution)
    if q == INF:
        raise ValueError("q = ∞: θ* is a subgradient of the maximum and not a formula")
    return np.asarray((u / norm(u, q)) ** (q - 2))


# ---- p = 1 as Lanckriet's QCQP -----------------------------------------------


@dataclass(frozen=True, eq=False)
class QCQP:
    """The solution of Lanckriet's program: α, kernel weights, optimal value."""

    value: float
    alpha: Array
    weights: Array


def lanckriet(problem: Problem) -> QCQP:
    """BlockL1 with the hinge as max yᵀα − ½t, αᵀK_mα ≤ t, 0 ≤ yα ≤ C, Σα = 0.

    Written out by hand, apart from all declarations. The multipliers μ_m of the
    quadratic constraints sum to ½, and θ_m = 2μ_m are the kernel weights.
    Reference: Lanckriet et al. (2004).
    """
    import cvxpy as cp

    _expect(problem, BlockL1)
    if problem.loss.name != "hinge" or not problem.bias:
        raise ValueError("Lanckriet's QCQP is for the hinge with a bias")
    alpha, t = cp.Variable(problem.grams.n), cp.Variable()
    # αᵀKα as ‖Lᵀα‖²: the form of the matrix itself loses half of the digits.
    cones = [cp.sum_squares(L.T @ alpha) <= t for L in factors(problem.grams)]
    margin = cp.multiply(problem.y, alpha)
    box = [margin >= 0, margin <= problem.costs, cp.sum(alpha) == 0]
    made = cp.Problem(cp.Maximize(problem.y @ alpha - 0.5 * t), [*cones, *box])
    _, value = next(runs(Program(made, alpha), attempts("CLARABEL")))
    weights = np.array([2 * float(np.squeeze(cone.dual_value)) for cone in cones])
    return QCQP(value, np.array(alpha.value), np.maximum(weights, 0.0))


# ---- the ledger: what the tests go through -----------------------------------

Map = Callable[[Problem, Reference], Problem]


@dataclass(frozen=True)
class Equivalence:
    """Two formulations that share their solutions, and the maps between them."""

    name: str
    left: Formulation
    right: Formulation
    to_right: Map
    to_left: Map


def ledger(M: int) -> list[Equivalence]:
    """Every pair with maps in both directions, for M kernels."""
    both = [
        Equivalence(f"Tikhonov(p={p:.3g}, mu={mu:g}) ~ Ivanov", Tikhonov(p, mu),
                    Ivanov(p), to_ivanov, partial(to_tikhonov, mu=mu))
        for p in (1.0, 4 / 3, 2.0)
        for mu in (0.5, 2.0)
    ]  # fmt: skip
    both += [
        Equivalence(f"LpNorm(p={p:.3g}) ~ BlockNorm", LpNorm(p),
                    BlockNorm(block_exponent(p)), lp_to_block_norm, block_norm_to_lp)
        for p in (1.0, 4 / 3, 2.0, INF)
    ]  # fmt: skip
    both += [
        Equivalence(f"BlockNorm(q={q:g}) ~ BlockPower", BlockNorm(q), BlockPower(q),
                    to_block_power, to_block_norm)
        for q in (1.0, 1.5, 2.0, 3.0)
    ]  # fmt: skip
    whole, single = (tuple(range(M)),), tuple((m,) for m in range(M))
    return [
        *both,
        Equivalence("GroupLasso ~ BlockL1", GroupLasso(), BlockL1(),
                    to_block_l1, to_group_lasso),
        Equivalence("BlockL1 ~ VSKL, one group", BlockL1(), VSKL(whole, 2.0),
                    one_group, from_one_group),
        Equivalence("SVM on the sum ~ VSKL, singletons", LpNorm(INF), VSKL(single, 1.0),
                    singletons, from_singletons),
    ]  # fmt: skip
