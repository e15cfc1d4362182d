"""The slips of Suzuki and Tomioka (2009), each shown on the smallest example."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt.claims import items as papers
from mklopt.formulations import BlockL1, GroupLasso

papers.load("suzuki2009")
F = import_module("papers.suzuki2009.formulas")
algebra = import_module("papers.suzuki2009.algebra_studies")
instance, conic_step = algebra.instance, algebra.conic_step


def step(loss: str = "squared", seed: int = 0, **sizes: int):
    return instance(np.random.default_rng(seed), loss, **sizes)


# ---- table 1 and section 3.2 -------------------------------------------------------


def test_table_1_with_its_fixed_rho_ignores_the_kernels():
    """With ρ^(t) inside the soft threshold that term is constant, and the minimizer
    does not depend on kernels at all; with ρ it is the minimizer of (7)."""
    at = step()
    right = at.minimum()
    # what is left of the objective as printed: f*(−ρ) = ρ²/4 − yρ and the bias
    n, g, y = len(right), at.gamma_b, at.loss.y
    printed = np.linalg.solve(0.5 * np.eye(n) + g * np.ones((n, n)), y - at.b)
    other = replace(at, K=2 * at.K)
    assert np.max(np.abs(other.minimum() - right)) > 1e-2  # kernels do matter
    assert at.phi(printed) > at.phi(right) + 0.1
    assert np.max(np.abs(at.gradient(right))) < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_phi_has_no_hessian_where_a_kernel_becomes_active(seed):
    """On ‖α + γρ‖ = γC the slope is continuous and the curvature jumps: along ρ, for
    one kernel and α = 0, by γ dᵀKd with d = ρ/|ρ|."""
    at = step(seed=seed, M=1).moved(np.zeros((1, 14)), 0.0)
    K, gamma, h = at.K[0], float(at.gamma[0]), 1e-6
    d = np.random.default_rng(seed).normal(size=14)
    edge = d * at.C / np.sqrt(d @ K @ d)
    d = edge / np.linalg.norm(edge)
    below, here, above = (at.gradient(edge + t * d) @ d for t in (-h, 0.0, h))
    jump = (above - here) / h - (here - below) / h
    assert jump == pytest.approx(gamma * (d @ K @ d), rel=1e-3)
    assert abs(above - below) < 1e-4
    inside, outside = (at.hessian(edge + t * d) for t in (-h, h))
    Kv = K @ d / np.sqrt(d @ K @ d)  # (9) with q = 1: the first of its terms is 0
    assert outside - inside == pytest.approx(gamma * np.outer(Kv, Kv), abs=1e-4)


# ---- section 3.4 -------------------------------------------------------------------


def test_the_printed_set_of_section_3_4_misses_active_kernels():
    """One sample, one kernel k = 1, γ = C = 1, α = 2, ρ = 0 and a short step: the
    kernel is active all along, and the printed set does not have it."""
    at = replace(
        step(n=1, M=1), K=np.ones((1, 1, 1)), alpha=np.full((1, 1), 2.0),
        gamma=np.ones(1), C=1.0,
    )  # fmt: skip
    rho, move = np.zeros(1), np.full(1, 0.1)
    for c in (0.0, 0.5, 1.0):
        assert at.active(rho + c * move).all()
        shifted = c * move / at.gamma
        printed = F.norms(at.K, rho + shifted) > at.C
        assert not printed.any()
        assert not (F.norms(at.K, rho + move + shifted) > at.C).any()
    assert at.active(rho).all() and at.active(rho + move).all()


@pytest.mark.parametrize("seed", range(20))
def test_kernels_active_at_neither_end_are_not_active_in_between(seed):
    rng = np.random.default_rng(seed)
    at = step(seed=seed, M=30)
    rho, move = rng.normal(size=(2, 14)) * 0.3
    ends = at.active(rho) | at.active(rho + move)
    between = [at.active(rho + c * move) for c in np.linspace(0, 1, 101)]
    assert not np.any(np.any(between, axis=0) & ~ends)
    assert np.any(ends) and not np.all(ends)


# ---- section 4.1 -------------------------------------------------------------------


def rises(K: np.ndarray, gamma: float, gamma_b: float) -> float:
    """By how much the objective rises along section 4.1's steps, squared loss."""
    M, n = K.shape[:2]
    loss = F.Squared(np.where(np.arange(n) < 10, 1.0, -1.0))
    zero = np.zeros((M, n))
    at = F.Step(K, loss, 0.01, zero, 0.0, np.full(M, gamma), gamma_b)
    values = [at.objective(at.alpha, at.b)]
    for _ in range(40):
        at = at.moved(*at.linearized())
        values.append(at.objective(at.alpha, at.b))
    return float(np.max(np.diff(values)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_linearized_steps_need_bounded_penalties(share):
    """Lip(ℓ') λ_max(Σγ_mK_m + γ_b11ᵀ) ≤ 1 is enough, whatever the ratio of γ_b to γ_m:
    a step for the bias of its own is no slip. Penalties that grow, as those of eq. (3)
    do, leave that range, and the objective rises."""
    K = step().K
    size, n = float(np.trace(np.sum(K, axis=0))), 14
    both = (1 - share) * np.sum(K, axis=0) / size + share * np.ones((n, n)) / n
    most = 1 / (2 * np.linalg.eigvalsh(both)[-1])
    gamma, gamma_b = most * (1 - share) / size, most * share / n
    assert rises(K, gamma, gamma_b) <= 1e-12
    assert rises(K, 3 * gamma, 3 * gamma_b) > 1.0


def test_kernels_and_bias_share_one_bound():
    """Each penalty within its own bound is not enough: they share the predictions."""
    n = 14
    K = (np.ones((n, n)) / n + 1e-3 * np.eye(n))[None]
    gamma = 1.5 / (2 * np.linalg.eigvalsh(K[0])[-1])
    gamma_b = 1.5 / (2 * n)
    assert rises(K, gamma, 1e-3 * gamma_b) <= 1e-12
    assert rises(K, 1e-3 * gamma, gamma_b) <= 1e-12
    assert rises(K, gamma, gamma_b) > 0.1


# ---- eq. (13) ----------------------------------------------------------------------


def test_eq_13_multiplies_where_it_must_divide():
    """C' = C/S leaves the predictions as they are, C' = C S does not."""
    at = step(n=30, M=5)
    problem = Problem(GramStack(at.K), at.loss.y, "logistic", GroupLasso(), 1 / 0.5)
    found = solve(problem, "auto", tol=1e-9)
    S = float(np.sum(found.certificate.norms))
    f = found.decision(problem.grams)
    assert abs(np.log(S)) > 0.1  # S = 1 would hide it

    def away(C: float) -> float:
        other = problem.with_(formulation=BlockL1(), C=1 / C)
        there = solve(other, "spicy", tol=1e-9).decision(problem.grams)
        return float(np.max(np.abs(there - f)) / np.max(np.abs(f)))

    assert away(0.5 / S) < 1e-4 and away(0.5 * S) > 0.05


# ---- section 5.1 -------------------------------------------------------------------


def test_the_recipe_of_section_5_1_leaves_the_domain_of_the_hinge():
    """K = I, C = 1: a ρ inside the ball and inside 0 ≤ yρ ≤ 1 is pushed out of the
    latter by centring; balanced inside the domain it stays there."""
    y = np.array([1.0, 1.0, 1.0, -1.0])
    K = np.eye(4)[None]
    rho = np.array([0.9, 0.05, 0.05, -0.1])  # 0 ≤ yρ ≤ 1, ‖ρ‖ < 1
    assert np.all((y * rho >= 0) & (y * rho <= 1)) and F.norms(K, rho)[0] < 1
    tilde = F.projected(K, rho, 1.0)
    assert abs(np.sum(tilde)) < 1e-12
    assert np.min(y * tilde) < -0.1  # outside: −f*(−ρ̃) = −∞
    problem = Problem(GramStack(K), y, "hinge", GroupLasso(), 1.0)
    ours = problem.feasible(rho)
    assert np.all(y * ours >= -1e-12) and abs(np.sum(ours)) < 1e-12


def test_centring_last_leaves_the_balls():
    """K = eeᵀ sees one sample only, and centring moves that one out of the ball."""
    e = np.array([0.0, 0.0, 0.0, 1.0])
    K = np.outer(e, e)[None]
    rho = np.array([2.0, 2.0, 2.0, 0.0])
    assert F.norms(K, rho)[0] <= 1  # nothing to scale
    assert F.norms(K, F.projected(K, rho, 1.0))[0] == pytest.approx(1.5)
    right = F.projected(K, rho, 1.0, centred_first=True)
    assert F.norms(K, right)[0] <= 1 + 1e-12 and abs(np.sum(right)) < 1e-12


def test_the_bias_moves_by_the_penalty_of_its_step():
    """Table 1 and the end of appendix A have γ_b where eq. (6) has γ_b of step t."""
    first = step()
    second = first.moved(*first.after(first.minimum()), growth=3.0)
    rho = second.minimum()
    _, right, _ = conic_step(second)
    ours = abs(second.after(rho)[1] - right)
    printed = second.b + first.gamma_b * float(np.sum(rho))
    assert ours <= 1e-4 and abs(printed - right) > 100 * ours
