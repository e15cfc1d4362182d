"""Every slip in the formulas of Kloft et al. (2011), shown: what is printed fails here,
what papers/ERRATA.md puts in its place holds.
"""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference
from mklopt.claims import items as papers
from mklopt.formulations import (
    BlockL1,
    BlockNorm,
    GroupLasso,
    Ivanov,
    LpNorm,
    NonIsotropic,
    Tikhonov,
)
from mklopt.formulations.losses.margin import Hinge, Logistic
from mklopt.formulations.losses.residual import EpsInsensitive, Squared
from mklopt.formulations.norms import dual_exponent, norm
from mklopt.reference import equivalences as maps
from mklopt.reference.contract_problems import load
from mklopt.solvers.machines.factory import machine_for

papers.load("kloft2011")  # puts the room on the path
chunking = importlib.import_module("papers.kloft2011.chunking")
claims = importlib.import_module("papers.kloft2011.claims")
bounds = importlib.import_module("papers.kloft2011.bounds")

GRAMS, TARGETS = load("small")
M, N, INF = GRAMS.M, GRAMS.n, float("inf")
SHARP = 1e-7


def problem(loss="hinge", formulation=None, C=1.0, bias=True) -> Problem:
    labels = {"squared": "real", "eps_insensitive": "real", "one_class": "ones"}
    y = TARGETS[labels.get(loss, "binary")]
    return Problem(GRAMS, y, loss, formulation or LpNorm(2.0), C, bias=bias)


def unit(n: int) -> Problem:
    """n samples with K = I, labels in turn."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return Problem(np.eye(n)[None], y, "hinge", LpNorm(2.0), 0.1)


# ---- section 2 -------------------------------------------------------------------


def test_the_form_with_two_parameters_is_the_penalized_one():
    """(P) bounds ‖θ‖ and has C alone; in (4) ‖θ‖ is free and one parameter idle."""
    sizes = []
    for C in (0.3, 3.0):
        here = reference.solve_sharply(problem("squared", Ivanov(2.0), C))
        assert norm(here.weights, 2.0) == pytest.approx(1)
        for mu in (0.2, 5.0):
            mapped = maps.to_tikhonov(here.certificate.problem, here, mu=mu)
            there = reference.solve_sharply(mapped)
            assert np.max(np.abs(there.predictions - here.predictions)) <= SHARP
            sizes.append(norm(there.weights, 2.0))
    assert len(set(np.round(sizes, 3))) == 4
    assert Tikhonov(2.0, 0.2) != Tikhonov(2.0, 5.0)  # the penalized form is ours, too


def test_not_every_loss_bounds_the_training_error():
    """An error costs at least 1 with the hinge, less with other convex losses."""
    y, wrong = np.ones(1), -0.1 * np.ones(1)
    assert Hinge().value(wrong, y) >= 1
    assert Logistic().value(wrong, y) < 0.8 and Squared().value(wrong, y) < 0.8


def test_c_does_not_multiply_the_multiplier_terms():
    """inf over t of C V(t) + αt is −C V*(−α/C); with C(V + αt) it is unbounded."""
    C, alpha, t = 2.0, 1.5, np.linspace(-50, 50, 2001)
    V = np.maximum(0, 1 - t)
    known = -C * float(Hinge().conjugate(np.array([-alpha / C]), np.ones(1))[0])
    assert np.min(C * V + alpha * t) == pytest.approx(known)
    assert np.min(C * (V + alpha * t)) < -40


def test_the_best_theta_without_its_sign_may_be_negative():
    """sup over θ of xᵀθ − ½θᵀE⁻¹θ is attained at Ex, outside θ ≥ 0 for this E."""
    E, x = np.array([[1.0, -0.8], [-0.8, 1.0]]), np.array([1.0, 0.2])
    best = E @ x
    np.testing.assert_allclose(x - np.linalg.solve(E, best), 0, atol=1e-12)
    assert best[1] < 0
    free, bound = 0.5 * x @ E @ x, 2 * NonIsotropic(E).conjugate(np.sqrt(x)) ** 2
    assert bound < free * (1 - 1e-3)


# ---- section 3 -------------------------------------------------------------------


def test_the_conjugate_of_a_norm_is_not_its_dual_norm():
    """sup over θ of xθ − |θ| is 0 or ∞; only squares are conjugate to squares."""
    theta = np.linspace(-1e6, 1e6, 2001)
    for x, known in ((0.9, 0.0), (1.0, 0.0), (1.1, 1e5)):
        assert np.max(x * theta - np.abs(theta)) == pytest.approx(known)


def test_eq_14_and_the_next_display_have_different_c():
    C = 1.0
    lasso = problem("squared", GroupLasso(), 2 * C, bias=False)  # twice (14)
    here = reference.solve_sharply(lasso)
    same = reference.solve_sharply(lasso.with_(formulation=BlockL1(), C=C))
    right = 2 * C * np.sum(here.norms)
    there = reference.solve_sharply(lasso.with_(formulation=BlockL1(), C=right))
    assert np.max(np.abs(here.predictions - same.predictions)) > 0.1
    assert np.max(np.abs(here.predictions - there.predictions)) <= SHARP


@pytest.mark.parametrize("labels", ["real", "binary"])
def test_eqs_15_and_16_have_no_y(labels):
    """Not even ±1 can be meant: α → Yα would turn yᵀα into 1ᵀα."""
    p = problem("squared", Ivanov(1.0), bias=False).with_(y=TARGETS[labels])
    known = reference.solve_sharply(p).upper
    assert claims.printed_qcqp(p, np.ones(N)) == pytest.approx(known, rel=SHARP)
    assert abs(claims.printed_qcqp(p, p.y) / known - 1) > 0.1


def test_the_primal_of_section_3_5_has_the_value_0():
    """max(0, f) at w = 0 costs nothing, and its dual is positive."""
    p = problem("one_class", bias=False)
    found = reference.solve_sharply(p)
    a = found.dual
    dual = np.sum(a) - 0.5 * norm(GRAMS.quad(a), 2.0)
    assert dual == pytest.approx(found.upper, rel=SHARP) and dual > 1
    assert np.min(a) >= 0 and np.max(a) <= p.C


def test_the_printed_non_isotropic_dual_has_a_gap():
    """The dual of squared loss is strict, so its one maximizer decides."""
    E = np.where(np.eye(M), 1.0, -0.9 / (M - 1))
    p = problem("squared", NonIsotropic(E), bias=False)
    found = reference.solve_sharply(p)
    x = GRAMS.quad(found.dual)
    printed = p.dual_loss(found.dual) - 0.5 * np.sqrt(x @ E @ x)
    assert found.relative_gap < 1e-8 and printed < 0.95 * found.lower
    for A, B in np.random.default_rng(0).normal(size=(20, 2, 5, 3)):
        assert np.sum((A @ A.T) * (B @ B.T)) >= 0  # so alignments are never negative


# ---- section 4 -------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.2, 2.0, 5.0])
def test_zeta_of_proposition_2_is_a_reciprocal(p):
    u = np.array([0.3, 1.0, 2.0])
    printed = np.sum(u ** (2 * p / (p + 1))) ** (1 / p)
    theta = u ** (2 / (p + 1))
    assert norm(theta / printed, p) == pytest.approx(1)
    assert norm(theta * printed, p) == pytest.approx(printed**2) and printed**2 > 1.5
    np.testing.assert_allclose(theta / printed, LpNorm(p).weights(u))


def test_a_feasible_start_is_not_enough_for_algorithm_1():
    """θ_m = 0 gives w_m = 0 and θ_m = 0 again: the limit lacks a kernel."""
    p, theta = problem(), np.ones(M)
    theta[0] = 0.0
    _, gap = claims.alternation(p, theta / norm(theta, 2.0), 100)
    _, other = claims.alternation(p, np.full(M, M**-0.5), 100)
    assert gap > 1e-2 and other < 1e-9


def test_the_first_test_of_algorithm_2_is_lost():
    """(−∞) − (−∞) is no number, no comparison with it holds, and line 11 breaks off."""
    run = chunking.algorithm_2(problem(), 1e-3)
    assert run.pairs == 1 and run.gap > 0.9
    assert chunking.algorithm_2(problem(), 1e-3, S=0.0).pairs > 10


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_the_box_of_algorithm_2_lacks_the_test_of_its_text(C):
    p, right = problem(C=C), {"S": 0.0, "violation": 1e-3}
    assert chunking.algorithm_2(p, 1e-3, S=0.0).gap > 50e-3
    assert chunking.algorithm_2(p, 1e-3, **right).gap < 5e-3


def test_the_margins_of_theorem_4_need_their_labels():
    """f_i + b ≥ 1 − ξ_i is met by w = 0, b = 1 at no cost, whatever the labels."""
    w_part, b = np.zeros(N), 1.0
    printed = np.maximum(0, 1 - (w_part + b))
    assert np.sum(printed) == 0
    assert reference.solve(problem()).lower > 1


def test_the_dual_norm_is_the_conjugate_of_half_the_square():
    """½‖x‖_*² = sup ⟨x, u⟩ − ½‖u‖²; sup ⟨x, u⟩ − ½‖u‖ is 0 or ∞, and so is its square.

    On rays u = t e, e where Hölder's inequality is sharp: the suprema over t.
    """
    t, x = np.linspace(0, 10, 10_001), np.array([0.3, 1.1, 0.7])
    for p in (4 / 3, 2.0, 4.0):
        e = x ** (dual_exponent(p) - 1)
        e /= norm(e, p)
        assert np.isclose(norm(x, dual_exponent(p)), x @ e)
        assert np.isclose(np.max(t * (x @ e) - t**2 / 2), 0.5 * (x @ e) ** 2, rtol=1e-5)
        printed = t * (x @ e) - t / 2
        assert np.argmax(printed) == len(t) - 1 and printed[-1] > 1  # it has no maximum


def test_powers_of_norms_increase():
    """‖exp θ‖_p² is convex because ‖·‖_p² is convex and non-decreasing, θ ≥ 0."""
    rng = np.random.default_rng(0)
    value = lambda x, p: norm(np.exp(x), p) ** 2  # noqa: E731
    for p in (1.1, 2.0, 4.0):
        for _ in range(50):
            x, y = rng.normal(size=(2, 4))
            more = np.exp(x) + rng.uniform(size=4)
            assert norm(more, p) ** 2 > value(x, p)
            assert value((x + y) / 2, p) <= (value(x, p) + value(y, p)) / 2


def test_the_bias_of_an_svm_need_not_be_unique():
    """Two samples, K = I, small C: every |b| ≤ 0.9 costs the same."""
    p = unit(2)
    w = 0.1 * p.y
    cost = [0.1 * np.sum(np.maximum(0, 1 - p.y * (w + b))) for b in (-0.9, 0, 0.5, 0.9)]
    best = reference.solve(p)
    np.testing.assert_allclose(np.array(cost) + 0.5 * w @ w, best.upper, rtol=1e-8)


def test_a_silent_kernel_gets_weight_0_by_eq_17():
    """Eq. (2), which the text names there, is the model."""
    u = np.array([0.0, 1.0, 2.0])
    theta = LpNorm(2.0).weights(u)
    assert theta[0] == 0 and norm(theta, 2.0) == pytest.approx(1)
    np.testing.assert_allclose(theta[1:], LpNorm(2.0).weights(u[1:]))


def test_without_its_linear_term_one_class_learns_nothing():
    """−½‖(αᵀK_mα)_m‖ over 0 ≤ α ≤ C is largest at α = 0; section 3.5 has 1ᵀα."""
    rng = np.random.default_rng(0)
    values = [-0.5 * norm(GRAMS.quad(rng.uniform(size=N)), 2.0) for _ in range(20)]
    assert max(values) < 0
    assert np.max(reference.solve(problem("one_class", bias=False)).dual) > 0.1


def test_the_targets_of_regression_enter_with_a_plus():
    """For signed α = α⁺ − α⁻, −C V*(−α/C) is yα − ε(α⁺ + α⁻)."""
    y, eps, alpha = np.array([0.7]), 0.1, np.array([0.4])
    gain = -EpsInsensitive(eps).conjugate(-alpha, y)[0]
    assert gain == pytest.approx(0.7 * 0.4 - 0.1 * 0.4)
    assert gain != pytest.approx(-0.7 * 0.4 - 0.1 * 0.4)


# ---- section 4.5 -----------------------------------------------------------------


@pytest.mark.parametrize("p", [4 / 3, 3.0])
def test_proposition_5_needs_q_half(p):
    block = maps.lp_to_block_norm(problem("squared", LpNorm(p)))
    q = 2 * p / (p + 1)
    right = claims.apart(block, maps.to_block_power)[0]
    printed = claims.apart(block, maps.to_block_power, 2 / q)[0]
    assert right <= SHARP < 1e-2 < printed


@pytest.mark.parametrize("q", [2.5, 4.0])
def test_the_supremum_of_eq_30_is_a_square(q):
    """sup over ‖θ‖_r ≤ 1 of ½Σθu² is ½‖u‖_q², not ½Σu^q: C̃ is another."""
    u, r = np.array([0.3, 1.0, 2.0]), q / (q - 2)
    best = (u / norm(u, q)) ** (q - 2)
    assert norm(best, r) == pytest.approx(1)
    assert best @ u**2 == pytest.approx(norm(u, q) ** 2)
    assert abs(np.sum(u**q) - best @ u**2) > 0.1
    others = np.random.default_rng(0).uniform(size=(500, 3))
    assert max(t @ u**2 / norm(t, r) for t in others) <= best @ u**2


@pytest.mark.parametrize("q", [2.5, 2.9])
def test_eq_31_as_printed_solves_another_problem(q):
    p = problem(formulation=BlockNorm(q))
    assert claims.eq_31(p, q, printed=False, rounds=100)[0] < 1e-6
    assert claims.eq_31(p, q, printed=True, rounds=100)[0] > 1e-2


def separate(C: float, q: float) -> Problem:
    """Three kernels that share no sample: each machine sees its own four."""
    parts = [np.diag(np.where(np.arange(12) // 4 == m, 1.0 + m, 0.0)) for m in range(3)]
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    return Problem(GramStack.from_factors(parts), y, "hinge", BlockNorm(q), C)


def test_eq_31_may_converge_for_q_above_3():
    """Where every margin is met, w does not depend on θ, and one step is enough."""
    for q in (4.0, 20.0):
        assert claims.eq_31(separate(100.0, q), q, printed=False)[0] < 1e-6
    assert claims.eq_31(separate(0.01, 4.0), 4.0, printed=False)[0] > 0.5


def test_eq_31_contracts_for_q_below_3():
    """∂ log v/∂ log θ has eigenvalues in [−1, 0] near any θ, so that |2 − q| bounds
    the factor of log θ ← (2 − q)(log θ + log v); at −0 it is attained.
    """
    for C in (0.01, 1.0, 100.0):
        p, rng = problem(C=C), np.random.default_rng(3)
        theta, h = rng.uniform(0.2, 1, size=M), 1e-4
        slopes = np.array([(log_v(p, theta * np.exp(h * e)) - log_v(p, theta)) / h
                           for e in np.eye(M)])  # fmt: skip
        values = np.linalg.eigvals(slopes)
        assert np.max(np.abs(values.imag)) < 1e-2
        assert np.min(values.real) >= -1.01 and np.max(values.real) <= 0.01
        assert C > 0.01 or np.max(np.abs(values)) < 0.2  # nearly nothing moves


def log_v(p: Problem, theta) -> np.ndarray:
    machine = machine_for(p)
    machine.tol = 1e-12
    machine.solve(theta)
    return np.log(machine.v)


# ---- appendices ------------------------------------------------------------------


def equal_kernels(n: int, M: int, p: float) -> float:
    """The Rademacher complexity of H^p with M times the kernel I."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(50, n))
    quads = bounds.sign_quads([np.eye(n)] * M, signs)
    return bounds.complexity(quads, n, p)[0]


def test_a_product_distribution_has_nothing_to_learn():
    """P_X × P_Y: every classifier errs as often as a constant one at least."""
    x, y = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6])
    errors = []
    for signs in np.ndindex(2, 2, 2):
        errors.append(sum(x[i] * y[1 - s] for i, s in enumerate(signs)))
    assert min(errors) == pytest.approx(min(y))


def test_remark_7_converts_the_other_way():
    """R(H^1) ≤ c R(H^∞) with c = 1 bounds nothing of H^∞ by H^1."""
    one, top = equal_kernels(12, 8, 1.0), equal_kernels(12, 8, INF)
    assert one <= top  # so c = 1, and yet:
    assert top == pytest.approx(8**0.5 * one)  # what theorem 6 allows, attained


def test_the_corollary_of_theorem_8_is_about_h_p():
    """Equal kernels: H^∞ exceeds the bound of H^1, and keeps to its own."""
    assert equal_kernels(20, 64, INF) > bounds.sparse_bound(20, 64)
    for p in (1.0, 4 / 3, 2.0, INF):
        assert equal_kernels(20, 64, p) <= bounds.complexity_bound(20, 64, p)


def test_the_quoted_bound_of_cortes_needs_no_e():
    """E (σᵀKσ)^r ≤ (r tr K)^r over all signs: with ‖x‖_r ≤ (Σx^r)^{1/r} and Jensen it
    gives √(p* M^{1/p*} R²/n), which is below the quoted bound by √(ce).
    """
    signs = np.array(list(np.ndindex(*[2] * 8))) * 2.0 - 1
    for L in np.random.default_rng(0).normal(size=(20, 8, 3)):
        quad = np.sum((signs @ L) ** 2, axis=1)
        for r in (1, 2, 3, 4):
            assert np.mean(quad**r) <= (r * np.sum(L**2)) ** r * (1 + 1e-12)
    quoted, right = (
        bounds.cortes_bound(50, 20, 4 / 3),
        bounds.direct_bound(50, 20, 4 / 3),
    )
    assert quoted / right == pytest.approx((23 / 22 * math.e) ** 0.5)


def test_p_equal_2_and_infinity_have_whole_conjugate_exponents():
    for p, whole in ((2.0, 2.0), (INF, 1.0)):
        assert dual_exponent(p) == whole
    assert dual_exponent(3.0) == 1.5


def test_a_bias_has_no_rademacher_complexity():
    """b ∈ [−B, B] adds B E|mean σ|, and (P) has a b that it does not bound."""
    plain, bound = equal_kernels(20, 64, INF), bounds.complexity_bound(20, 64, INF)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(50, 20))
    best = [max(b * np.mean(s) for b in (-100, 0, 100)) for s in signs]
    assert plain <= bound < 0.5 * (plain + np.mean(best))
    assert abs(reference.solve_sharply(problem(C=0.01)).bias) > 1e-3


def test_proposition_11_needs_one_solution():
    """f = 1 − x, g = x on [0, 1], σ = 1: all of [0, 1] against one point."""
    scale = papers.Scale("tiny")
    item = claims.penalty_and_constraint_have_the_same_sets_of_solutions
    assert item.check(scale).verdict == "refuted"
    assert item.check(scale, wrong=True).verdict == "confirmed"


def test_theorem_1_does_not_need_proposition_11_for_many_solutions():
    """Solutions of (4) share ‖w‖: the penalty c N^{4/3} is strictly convex in N."""
    N = np.linspace(0, 3, 50)
    value = 3 * 2 ** (-4 / 3) * N ** (4 / 3)
    assert np.all(np.diff(value, 2) > 0)
    assert Tikhonov(2.0, 1.0).value(np.array([2.0])) == pytest.approx(
        3 * 2 ** (-4 / 3) * 2 ** (4 / 3)
    )
