"""Worked examples of regularizers: known special cases, duals, and solved problems."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.formulations import BlockL1, GroupLasso, LpNorm, gallery

RNG = np.random.default_rng(0)
POINTS = [*RNG.uniform(0.1, 2.0, size=(3, 4)), np.array([0.0, 1.0, 1.0, 0.5])]
OVERLAPPING = [[0, 1, 2], [2, 3]]
EXAMPLES = {
    "k_support": gallery.k_support(2),
    "owl": gallery.owl([2.0, 1.5, 1.0, 0.5]),
    "sparse_group": gallery.sparse_group([[0, 1], [2, 3]], a=0.3),
    "latent_groups": gallery.latent_groups(OVERLAPPING),
    "log_barrier": gallery.log_barrier(0.1, c=2.0),
    "prior_l1": gallery.prior_l1([1.0, 2.0, 4.0, 0.5]),
}


def problem(formulation):
    rng = np.random.default_rng(1)
    L = rng.normal(size=(4, 24, 3))
    y = np.sign(L[0, :, 0] + 0.5 * L[2, :, 1] + 0.3 * rng.normal(size=24))
    return mklopt.Problem(
        mklopt.GramStack.from_factors(L), y, "logistic", formulation, C=1.0
    )


@pytest.mark.parametrize("u", POINTS, ids=str)
def test_values_are_those_of_the_literature(u):
    one, four = gallery.k_support(1), gallery.k_support(4)
    assert one.value(u) == pytest.approx(BlockL1().value(u), rel=1e-7)
    assert four.value(u) == pytest.approx(0.5 * u @ u, rel=1e-7)
    sorted_down = np.sort(u)[::-1]
    assert EXAMPLES["owl"].value(u) == pytest.approx(
        sorted_down @ [2, 1.5, 1, 0.5], rel=1e-9
    )
    assert gallery.owl(np.ones(4)).value(u) == pytest.approx(GroupLasso().value(u))
    across = np.linalg.norm(u[:2]) + np.linalg.norm(u[2:])
    assert EXAMPLES["sparse_group"].value(u) == pytest.approx(
        0.3 * u.sum() + 0.7 * across
    )
    apart = gallery.latent_groups([[0, 1], [2, 3]])
    assert apart.value(u) == pytest.approx(across, rel=1e-6)
    theta = (0.1 + np.sqrt(0.01 + 4 * u**2)) / 4
    barrier = 0.5 * u**2 / theta + 2 * theta - 0.1 * np.log(theta)
    assert EXAMPLES["log_barrier"].value(u) == pytest.approx(barrier.sum(), rel=1e-7)
    assert EXAMPLES["prior_l1"].value(u) == pytest.approx(u @ [1, 0.5, 0.25, 2])


@pytest.mark.parametrize("v", POINTS, ids=str)
def test_derived_dual_norms_are_those_of_the_literature(v):
    def dual(formulation):
        return formulation.epigraph(4).feasible_scale(v) ** -1

    largest = np.cumsum(np.sort(v)[::-1]) / np.cumsum([2, 1.5, 1, 0.5])
    assert dual(EXAMPLES["owl"]) == pytest.approx(np.max(largest), rel=1e-7)
    groups = [np.linalg.norm(v[group]) for group in OVERLAPPING]
    assert dual(EXAMPLES["latent_groups"]) == pytest.approx(max(groups), rel=1e-7)
    two = np.sort(v)[-2:]  # the k-support norm has the k largest as its dual
    assert EXAMPLES["k_support"].conjugate(v) == pytest.approx(
        0.5 * two @ two, rel=1e-7
    )
    assert dual(EXAMPLES["prior_l1"]) == pytest.approx(np.max(v * [1, 2, 4, 0.5]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_solved_and_agrees_with_its_reference(name):
    one = problem(EXAMPLES[name])
    result = mklopt.solve(one, tol=1e-5, time_limit=20.0)
    reference = mklopt.reference.solve(one)
    assert result.converged
    assert result.certificate.dual <= reference.upper + 1e-7
    assert reference.lower <= result.certificate.primal + 1e-7


@pytest.mark.parametrize("solver", ["spicy", "fista", "analytic"])
def test_named_solvers_take_a_price_of_the_weights(solver):
    one = problem(EXAMPLES["log_barrier"])
    result = mklopt.solve(one, solver, tol=1e-4, time_limit=20.0)
    assert result.relative_gap <= 1e-4


def test_a_smooth_price_qualifies_for_spectral_gradients():
    @mklopt.variational(smooth=True)
    def square(theta):
        return 0.5 * cp.sum_squares(theta)

    one = problem(square).with_(loss="hinge")
    known = one.with_(formulation=mklopt.formulations.Tikhonov(p=2, mu=0.5))
    found = mklopt.solve(one, "spg", tol=1e-4, time_limit=20.0)
    expected = mklopt.solve(known, tol=1e-8)
    assert found.relative_gap <= 1e-4
    assert found.certificate.primal == pytest.approx(
        expected.certificate.primal, rel=1e-4
    )
    value, slope = square.price(np.array([1.0, 2.0]))
    assert value == pytest.approx(2.5)
    np.testing.assert_allclose(slope, [1.0, 2.0], rtol=1e-7)


def test_a_budget_on_the_weights_is_lp_norm_mkl():
    @mklopt.variational
    def budget(theta):
        return cp.Constant(0.0), [cp.norm(theta) <= 1]

    for u in POINTS:
        assert budget.value(u) == pytest.approx(LpNorm(2).value(u), rel=1e-7)
        assert budget.conjugate(u) == pytest.approx(LpNorm(2).conjugate(u), rel=1e-7)
        step = np.array([0.5, 1.0, 0.1, 2.0])
        np.testing.assert_allclose(
            budget.prox(u, step), LpNorm(2).prox(u, step), atol=1e-5
        )
    with pytest.raises(ValueError, match="function of theta"):
        mklopt.variational(3)


def test_weights_of_owl_must_decrease_and_be_as_many_as_kernels():
    with pytest.raises(ValueError, match="decreasing order"):
        gallery.owl([1.0, 2.0])
    with pytest.raises(ValueError, match="give one for each kernel"):
        problem(gallery.owl([2.0, 1.0]))


@pytest.mark.parametrize("lam", [[2, 1.5, 1, 0.5], [1, 1, 0, 0], np.linspace(3, 0, 9)])
def test_closed_forms_of_owl_agree_with_its_declaration(lam):
    report = mklopt.check_formulation(gallery.owl(lam), M=len(lam))
    assert report.passed, report
    assert {"prox", "conjugate", "weights"} <= {
        row.operator for row in report.rows if row.closed
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("digits", [1, 16])
def test_prox_of_owl_is_optimal_for_many_kernels_and_steps_of_any_size(seed, digits):
    """Ω(z) = ⟨g, z⟩ and Ω*(g) = 0 for g = (u − z)/step; digits = 1 has many ties."""
    rng = np.random.default_rng(seed)
    u = np.round(rng.uniform(0, 3, 100), digits)
    step = rng.uniform(0.01, 2.0, 100)
    owl = gallery.owl(np.sort(rng.uniform(0, 2, 100))[::-1])
    z = owl.prox(u, step)
    g = (u - z) / step
    assert 0 < np.count_nonzero(z) < 100
    assert owl.value(z) == pytest.approx(g @ z, rel=1e-11)
    assert owl.conjugate(np.maximum(g, 0.0) * (1 - 1e-11)) == 0.0
    assert owl.conjugate(np.maximum(g, 0.0) * (1 + 1e-9)) == np.inf
