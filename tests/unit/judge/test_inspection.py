"""What is said about regularizers: known degrees, kinks, dual norms and solvers."""

from __future__ import annotations

import clarabel
import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.formulations import (
    VSKL,
    BlockPower,
    ElasticNet,
    FixedWeights,
    GroupLasso,
    LpNorm,
    formulations,
    gallery,
    stripped,
)
from mklopt.formulations.derive.epigraph import Epigraph


@mklopt.formulation
def elastic(u):
    return cp.sum(u) + 0.1 * cp.sum_squares(u)


@mklopt.formulation
def overlap(u):
    return 0.5 * cp.square(cp.norm(u[:2]) + cp.norm(u[1:]))


@mklopt.formulation
def forgetful(u):
    return cp.sum(u[1:])


@mklopt.formulation
def torn(u):
    return cp.square(u[0] - u[1]) + cp.sum(u)


@mklopt.formulation
def concave(u):
    return cp.sum(cp.sqrt(u))


# ---- inspect ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "formulation, degree, kink, sparse, curvature",
    [
        (GroupLasso(), 1, 1.0, True, 0.0),
        (LpNorm(1), 2, 0.0, True, 0.0),
        (LpNorm(np.inf), 2, 0.0, False, 1.0),
        (BlockPower(1.5), 1.5, 0.0, False, None),
        (BlockPower(1.0001), 1.0001, 0.0, True, None),
        (elastic, None, 1.0, True, 0.2),
        (gallery.owl([3, 2, 1]), 1, 3.0, True, 0.0),
        (gallery.log_barrier(), None, 0.0, False, None),
        (gallery.k_support(2), 2, 0.0, True, None),
        (overlap, 2, 0.0, True, None),
    ],
    ids=repr,
)
def test_degree_kink_and_curvature_are_the_known_ones(
    formulation, degree, kink, sparse, curvature
):
    found = mklopt.inspect(formulation, 3)
    assert found.convex and found.increasing
    assert found.degree == (None if degree is None else pytest.approx(degree))
    assert found.norm == (degree == 1) and found.squared == (degree == 2)
    assert found.kink == {m: pytest.approx(kink, abs=1e-4) for m in range(3)}
    assert found.sparse == sparse
    dropped = "not seen at sample points" not in str(found)
    assert dropped == sparse and ("w = 0 is optimal" in str(found)) == (kink > 0)
    if curvature is not None:
        assert found.curvature == pytest.approx(curvature, abs=1e-3)


def test_dual_norms_at_sample_points():
    ramp = "(1, 2, 3)"
    assert mklopt.inspect(GroupLasso()).dual[ramp] == pytest.approx(3)
    assert mklopt.inspect(LpNorm(np.inf)).dual[ramp] == pytest.approx(np.sqrt(14))
    assert mklopt.inspect(elastic).dual[ramp] == pytest.approx(2.5 * (0 + 1 + 4))
    assert mklopt.inspect(gallery.owl([3, 2, 1])).dual["1"] == pytest.approx(0.5)


def test_what_falls_is_shown_with_a_counter_example():
    found = mklopt.inspect(torn, 2)
    assert found.convex and not found.increasing and not found.norm
    assert (
        "u = [1. 0.] it falls from 2 to 1.91 when u_1 grows by 0.1" in found.violation
    )
    assert "not increasing: at u" in str(found)
    with pytest.raises(ValueError, match="cannot be drawn"):
        found.draw()


def test_what_is_not_convex_is_said_with_the_reason():
    found = mklopt.inspect(concave)
    assert not found.convex and not found.increasing
    assert "not a convex CVXPY expression" in str(found)


def test_C_zero_is_that_of_the_problem():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(4, 20, 2))
    y = np.sign(L[0, :, 0])
    problem = mklopt.Problem(
        mklopt.GramStack.from_factors(L), y, "logistic", GroupLasso()
    )
    found = mklopt.inspect(elastic, problem=problem)
    assert found.M == 4
    assert found.C_zero == pytest.approx(mklopt.C_zero(problem), rel=1e-4)
    assert "all weights are zero up to C" in str(found)


def test_closed_forms_traits_and_solvers_are_listed():
    found = mklopt.inspect(LpNorm(2))
    assert "prox" in found.closed and found.derived == ("feasible_scale",)
    assert {"analytic", "smo_mkl", "spicy"} <= set(found.solvers)
    assert "prox" in mklopt.inspect(elastic).closed  # that of its twin
    found = mklopt.inspect(stripped(elastic))
    assert found.closed == () and "prox" in found.derived
    assert set(found.solvers) == {"auto", "fista", "ista", "spicy"}


def test_what_is_shown_to_be_dropped_is_dropped():
    """The point of a drop, given to the prox: orthogonal kernels and squared loss."""
    made = [f for kind in formulations().values() for f in kind.examples(4)]
    made += [gallery.k_support(2), gallery.latent_groups([[0, 1], [1, 2, 3]]), overlap]
    slow = "NonIsotropic"  # in seconds; it has no closed prox
    shown = [
        found for f in made if f.name != slow and (found := mklopt.inspect(f, 4)).drop
    ]
    assert len(shown) >= 18
    for found in shown:
        u, m, s = found.drop.u, found.drop.kernel, min(found.drop.slope, 1e3)
        axis, f = np.arange(4) == m, found.formulation.value
        for t in np.geomspace(2 * found.drop.h, 10, 20):  # no longer w_m is better
            assert f(u + t * axis) - 0.999 * s * t > f(u) - 1e-8
        if found.formulation == VSKL(((0,), (1, 2), (3,)), np.inf):
            continue  # all groups attain the maximum: Ω has many slopes at u
        slope = np.where(u > 0, u / np.maximum(found.formulation.weights(u), 1e-9), 0.0)
        point = u + np.where(u > 0, slope, 0.0) + 0.9 * s * (np.arange(4) == m)
        z = found.formulation.prox(point, 1.0)
        assert z[m] <= 2 * found.drop.h, found
        np.testing.assert_allclose(np.delete(z, m), np.delete(u, m), atol=2e-3)


@pytest.mark.parametrize("p", [1.0, 1.001, 1.1, 1.5])
def test_no_kernel_is_said_to_stay_that_a_solution_drops(p):
    L = np.random.default_rng(0).normal(size=(6, 30, 2))
    y = np.sign(L[0, :, 0] + 0.3 * L[1, :, 0])
    problem = mklopt.Problem(mklopt.GramStack.from_factors(L), y, "hinge", LpNorm(p))
    u = mklopt.solve(problem, tol=1e-8).certificate.norms
    if np.min(u) <= 1e-9 * np.max(u):
        assert mklopt.inspect(problem.formulation, 6).sparse


def test_a_sum_that_forgets_a_kernel_is_no_norm():
    found = mklopt.inspect(forgetful)
    assert not found.norm and "neither a norm nor half the square" in str(found)
    assert "w = 0 is optimal" not in str(found)  # kernel 0 costs nothing


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 0.999, 0.99999])
def test_the_modulus_that_is_shown_is_not_too_small(rho):
    for formulation, modulus in (
        (ElasticNet(rho), 1 - rho),
        (stripped(ElasticNet(rho)), 1 - rho),
        (FixedWeights([1.0, 1 / (1.01 - rho), 1.0]), min(1.0, 1.01 - rho)),
    ):
        shown = str(mklopt.inspect(formulation)).split("convexity: at most ")[1]
        assert modulus <= float(shown.split()[0]) <= 1.01 * modulus + 0.11


def test_sentences_about_what_cannot_be_inspected():
    for wrong in (0, -1, 2.5, "3", True, 10**400):
        for ask in (mklopt.inspect, mklopt.check_formulation):
            with pytest.raises(ValueError, match="give a whole number from 1"):
                ask(LpNorm(2), wrong)
    with pytest.raises(ValueError, match="give a Problem, or leave it out"):
        mklopt.inspect(LpNorm(2), problem=3)

    @mklopt.formulation
    def no_number(u):
        return cp.sum(u) + np.nan

    @mklopt.formulation
    def misspelled(u):
        raise KeyError("mine")

    @mklopt.formulation
    def from_one_on(u):
        return cp.sum(u), [u[0] >= 1]

    assert "not known to be convex" in (text := str(mklopt.inspect(no_number)))
    assert "numbers that are NaN or infinite" in text
    assert "cannot be evaluated" in str(mklopt.inspect(misspelled))
    assert "falls from inf" in mklopt.inspect(from_one_on).violation
    for wrong, words in ((no_number, "NaN"), (from_one_on, "infinite at u = 0")):
        with pytest.raises(ValueError, match=words):
            mklopt.Problem(np.eye(4)[None], [1, -1, 1, -1], "hinge", wrong)


def test_the_number_of_kernels_follows_from_groups_and_priors():
    assert mklopt.inspect(VSKL([[0, 1], [2, 3, 4]])).M == 5
    assert mklopt.inspect(gallery.prior_l1([1, 2])).M == 2
    assert mklopt.inspect(torn).M == 3
    with pytest.raises(ValueError, match="takes a formulation"):
        mklopt.inspect(LpNorm)


# ---- what derived operators cost ----------------------------------------------------


@pytest.mark.parametrize(
    "formulation",
    [
        elastic,
        gallery.k_support(5),
        gallery.log_barrier(),
        gallery.sparse_group([range(i, i + 5) for i in range(0, 100, 5)]),
        gallery.latent_groups([range(i, min(i + 8, 100)) for i in range(0, 100, 5)]),
    ],
    ids=repr,
)
def test_operators_are_compiled_once_and_solved_at_once_or_nearly(
    formulation, monkeypatch
):
    """At M = 100 a program takes 1 to 10 ms: so do its operators, after the first."""
    u = np.random.default_rng(0).uniform(0, 1, 100)
    u[::3] = 0.0
    slope = formulation.epigraph(100).subgradient(u + 0.1)

    operators = {
        "value": lambda: formulation.value(u),
        "conjugate": lambda: formulation.conjugate(0.9 * slope),
        "weights": lambda: formulation.weights(u + 0.1),
        "prox": lambda: formulation.prox(u, 0.5),
    }
    for operator in operators.values():
        operator()
    solved, plain = [], clarabel.DefaultSolver

    def never(*_, **__):
        raise AssertionError("a declaration was compiled again")

    def counted(*parts):
        solved.append(parts)
        return plain(*parts)

    monkeypatch.setattr(Epigraph, "_compile", never)
    monkeypatch.setattr(clarabel, "DefaultSolver", counted)
    for name, operator in operators.items():
        solved.clear()
        operator()
        assert len(solved) <= 3, name  # attempts, in a hard case
