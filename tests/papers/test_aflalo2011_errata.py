"""Slips in Aflalo et al. (2011), each shown by a number; see papers/ERRATA.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference, solve
from mklopt.formulations import VSKL, Composite
from mklopt.judge.rates import mirror_bound
from mklopt.solvers.mirror import softmax, width
from mklopt.solvers.steps.simplex_oracle import Oracle
from papers.aflalo2011.settings import full_rank

INF = float("inf")


def problem(q: float = 2.0, C: float = 1.0, bias: bool = True) -> Problem:
    grams, y = full_rank(24, 6)
    return Problem(grams, y, "hinge", VSKL((range(3), range(3, 6)), q), C, bias)


def at(p: Problem, lam: Any, tol: float = 1e-12) -> Oracle:
    """The oracle, settled at λ."""
    o = Oracle(p, *p.formulation.simplices(p.grams.M))
    o.machine.tol = o.wanted = tol
    for _ in o.solve(np.asarray(lam, float)):
        pass
    return o


class Objective:
    """f_λ(α, γ) = 1ᵀα − ½ Σ_j αᵀQ_jα/γ_j with two matrices Q_j ≻ 0."""

    def __init__(self, seed: int = 0, m: int = 5):
        A = np.random.default_rng(seed).normal(size=(2, m, m))
        self.Q = A @ A.transpose(0, 2, 1) + np.eye(m)
        self.m = m

    def __call__(self, alpha: Any, gamma: Any) -> float:
        D = np.einsum("i,jik,k->j", alpha, self.Q, alpha)
        return float(np.sum(alpha) - 0.5 * np.sum(D / gamma))


# ---- theorem 3.1 and section 3.2 -----------------------------------------------------


def test_item_3_follows_from_item_1_for_a_fixed_horizon_only():
    """Running steps √(2σΓ/t)/L give (1 + H_t)√t/(2Σ1/√s) times the printed bound."""
    c = {"L": 3.0, "Γ": 2.5, "σ": 0.5}
    t = np.arange(1, 10001)
    printed = c["L"] * np.sqrt(2 * c["Γ"] / (c["σ"] * t))
    running = mirror_bound(t, c) / printed
    assert running[0] == pytest.approx(1.0)
    assert np.all(np.diff(running) > 0)  # a logarithm, from the second step on
    assert running[1] > 1.03 and running[-1] > 2.5
    T = 400
    step = np.sqrt(2 * c["σ"] * c["Γ"] / T) / c["L"]
    fixed = (c["Γ"] + T * step**2 * c["L"] ** 2 / (2 * c["σ"])) / (T * step)
    assert fixed == pytest.approx(printed[T - 1])


def test_item_3_as_printed_fails_in_the_plane():
    """f = max(⟨a, x⟩, ⟨b, x⟩ − ρ) on the unit disc, Φ = ½‖x‖²: L = σ = 1, Γ = ½.

    x_1 = 0, the step is 1 and x_2 = −a: f is 0 at both, and below −1/√2 elsewhere.
    """
    rho = 0.4
    a, b = np.array([1.0, 0.0]), np.array([-rho, np.sqrt(1 - rho**2)])

    def f(x: np.ndarray) -> float:
        return max(float(a @ x), float(b @ x) - rho)

    first = np.zeros(2)
    step = np.sqrt(2 * 1 * 0.5 / 1)  # √(2σΓ/(L²t)) at t = 1
    second = first - step * a  # a is the gradient at 0, where the other piece is −ρ
    assert f(first) == 0 and f(second) == pytest.approx(0, abs=1e-15)
    turned = np.linspace(np.pi, 2 * np.pi, 10001)
    best = min(f(np.array([np.cos(t), np.sin(t)])) for t in turned)
    printed = np.sqrt(2 * 0.5 / 2)  # L√(2Γ/(σt)) at t = 2
    assert -best > 1.01 * printed


def test_the_candidate_step_has_no_factor_1_over_n():
    """√(2σΓ) with σ = 1/n, Γ = n log n_max is √(2 log n_max): 1/n does not survive."""
    gamma, sigma = width(at(problem(), np.full(6, 1 / 3)))
    right, printed = np.sqrt(2 * np.log(3)), np.sqrt(2 / 2 * np.log(3))
    assert np.sqrt(2 * sigma * gamma) == pytest.approx(right)
    assert right > 1.4 * printed


def test_the_descent_of_algorithm_1_is_twice_the_gradient():
    """s_t αᵀQα/γ is added; −G' is half of αᵀQα/γ, by differences of G."""
    p, h, k = problem(3.0), 1e-4, 1
    lam = np.array([0.2, 0.5, 0.3, 0.6, 0.3, 0.1])
    o = at(p, lam)
    added = o.theta[0] * float(o.machine.v[k] ** 2)
    up, down = (at(p, lam + s * h * np.eye(6)[k]).value for s in (1, -1))
    assert (down - up) / (2 * h) == pytest.approx(0.5 * added, rel=1e-4)


# ---- section 2.1 ---------------------------------------------------------------------


def test_a_group_with_gamma_0_is_free_and_not_empty():
    """With the zero function only, γ = 0 leaves max 1ᵀα = F(0), above the primal.

    Section 2.1.1 keeps nothing of a group at γ_j = 0; but the price γ_j‖·‖² is then 0.
    """
    p = problem(2.0)
    nothing = float(np.sum(p.costs))  # α_i = C is balanced: no group is left
    assert np.sum(p.y) == 0
    exact = reference.solve(p, tol=1e-8)
    assert nothing > 1.1 * exact.upper


def silent() -> Problem:
    """Group 0 is a constant kernel, which α with Σα_i = 0 does not see."""
    grams, y = full_rank(24, 6)
    K = np.concatenate([np.ones((1, 24, 24)), grams.dense()[:2]])
    return Problem(GramStack(K), y, "hinge", VSKL(((0,), (1, 2)), 1.0), 1.0)


def test_gamma_is_1_for_a_group_that_is_not_used_if_q_is_1():
    """At q = 1 γ_j = 1 is optimal with D_j = 0 and w_j = 0: neither ⇔ nor "iff"."""
    o = at(silent(), [1.0, 0.5, 0.5])
    assert o.D[0] <= 1e-14 * o.D[1]  # (Σα)², up to the rounding of its sum
    np.testing.assert_allclose(1 / o.theta, 1.0)
    found = solve(silent(), "mirror", tol=1e-8)
    assert found.certificate.norms[0] <= 1e-6 * np.max(found.certificate.norms)


# ---- appendix A ----------------------------------------------------------------------


def test_the_gradient_of_a_silent_group_is_not_0_if_q_is_1():
    """λ on a kernel that α does not see: printed 0, and G falls all the same."""
    grams, y = full_rank(24, 6)
    K = np.concatenate([np.ones((1, 24, 24)), grams.dense()[:1]])
    p = Problem(GramStack(K), y, "hinge", VSKL(((0, 1),), 1.0), 0.01)
    here = at(p, [1.0, 0.0])
    assert here.D[0] <= 1e-12  # "otherwise": both derivatives are printed as 0
    h = 1e-3
    slope = (at(p, [1.0, h]).value - here.value) / h
    assert slope == pytest.approx(-0.5 * here.machine.v[1] ** 2, rel=1e-2)
    assert slope < -1e-4
    assert at(p, [0.5, 0.5]).value < here.value  # so 0 is no subgradient


# ---- section 3.3.2: convergence of block coordinate ascent ---------------------------


def test_a_strict_coordinatewise_maximum_need_not_be_a_local_one():
    """Lemma 3.2: −x² − y² + 3xy at 0. From g(0) > g(u) follows g'(0) ≤ 0, not < 0."""

    def f(x: Any, y: Any) -> Any:
        return -(x**2) - y**2 + 3 * x * y

    t = np.linspace(-1, 1, 201)
    t = t[np.abs(t) > 1e-9]
    assert np.all(f(t, 0) < 0) and np.all(f(0, t) < 0)
    assert np.all(f(t, t) > 0)


def test_f_is_constant_on_segments():
    """Lemma 3.3: at α = 0 for all γ; and on rays (tα, tγ) with f = 0."""
    f = Objective()
    zero, gamma = np.zeros(f.m), np.array([[0.2, 0.7], [0.6, 0.3]])
    values = [f(zero, (1 - t) * gamma[0] + t * gamma[1]) for t in np.linspace(0, 1, 5)]
    assert values == [0.0] * 5
    alpha = np.ones(f.m)
    spent = np.sum(alpha) - f(alpha, gamma[0])
    alpha *= np.sum(alpha) / spent  # then 1ᵀα is what is spent
    for t in (0.2, 0.5, 1.0):
        assert f(t * alpha, t * gamma[0]) == pytest.approx(0.0, abs=1e-12)


def test_the_derivative_along_a_segment_has_half_over_the_cube():
    """ġ = B_0 + ΣB_j/(t + s_j)² with B_j = ½ xᵀQ_jx/d_j³; printed is xᵀQ_jx/d_j."""
    f, rng = Objective(), np.random.default_rng(1)
    a, b = rng.uniform(size=(2, f.m))
    c, e = np.array([0.2, 0.5]), np.array([0.6, 0.3])
    d, step = e - c, b - a
    x = e[:, None] * a - c[:, None] * b
    square = np.einsum("ji,jik,jk->j", x, f.Q, x)
    first = np.sum(step) - 0.5 * np.sum(np.einsum("i,jik,k->j", step, f.Q, step) / d)

    def g(t: float) -> float:
        return f(a + t * step, c + t * d)

    for t in (0.2, 0.7):
        measured = (g(t + 1e-5) - g(t - 1e-5)) / 2e-5
        right = first + np.sum(0.5 * square / d**3 / (t + c / d) ** 2)
        printed = first + np.sum(square / d / (t + c / d) ** 2)
        assert right == pytest.approx(measured, rel=1e-6)
        assert abs(printed - measured) > 0.1 * abs(measured)


def test_between_two_gammas_f_is_above_the_mean_of_the_ends():
    """The proof of proposition 3.4 takes ≤ there; f is strictly concave in γ."""
    f, alpha = Objective(), np.full(5, 0.1)
    D = np.einsum("i,jik,k->j", alpha, f.Q, alpha)
    before, best = np.array([0.9, 0.1]), np.sqrt(D) / np.sum(np.sqrt(D))
    mean = 0.5 * (f(alpha, before) + f(alpha, best))
    assert f(alpha, 0.5 * (before + best)) > mean + 1e-3
    assert f(alpha, 0.5 * (before + best)) <= f(alpha, best)  # which is enough


# ---- section 1, the abstract, lemma 3.2 ----------------------------------------------


def test_p_equal_1_is_not_sparse_inside_groups():
    """Ω_(p,q) with p = 1 is ℓ2 inside groups (r = 2p): all kernels are used."""
    p = problem()
    whole = (range(6),)
    both = {}
    for name, form in (("p = 1", Composite(whole, 2.0, 2.0)), ("p = ½", VSKL(whole))):
        u = solve(p.with_(formulation=form), tol=1e-7).certificate.norms
        both[name] = int(np.sum(u > 1e-3 * np.max(u)))
    assert both["p = 1"] == 6 > both["p = ½"]


def test_errors_scale_with_the_constant_that_the_abstract_leaves_out():
    """Kernels K/c with the cost cC: the same steps, and c times G."""
    p, c = problem(1.0), 7.0
    stack = GramStack(p.grams.dense() / c)
    scaled = Problem(stack, p.y, "hinge", p.formulation, c)
    runs = []
    for one in (p, scaled):
        lam, values = np.full(6, 1 / 3), []
        for t in range(1, 6):
            o = at(one, lam)
            values.append(o.value)
            step = np.sqrt(np.prod(width(o)) / t) / np.max(np.abs(o.slope))
            lam = softmax(np.log(lam) - step * o.slope, o)
        runs.append(values)
    assert np.allclose(c * np.array(runs[0]), runs[1], rtol=1e-8)
    assert runs[0][-1] < runs[0][0]


def test_a_remainder_of_first_order_outweighs_a_slope():
    """f = −x + 2|y| − 0.1y at 0, moved along (t, t): the slopes say −1.1t, the
    remainder 2|y| is of the order t, and f rises."""
    for t in (1e-1, 1e-4):
        slopes, remainder = -t - 0.1 * t, 2 * abs(t)
        assert slopes < 0 and remainder <= 2 * np.hypot(t, t)
        assert slopes + remainder > 0
