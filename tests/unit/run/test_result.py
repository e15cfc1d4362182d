"""Results: what they say, predictions, weights and files."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from mklopt import GramStack, Problem, Result, certify, kernels, solve
from mklopt.formulations import LpNorm
from mklopt.run.trace import Trace
from tests.problems import subset_gaussians

K, Y = subset_gaussians(60, 6)
GRAMS = GramStack(K)


def problem(**changes) -> Problem:
    return Problem(GRAMS, Y, "hinge", LpNorm(4 / 3), C=1.0).with_(**changes)


BEST = solve(problem(), "analytic", tol=1e-9)
ALPHA, THETA = BEST.dual, BEST.certificate.weights


def test_a_result_says_what_happened():
    assert BEST.converged and 0 <= BEST.relative_gap <= 1e-9
    again = certify(problem(), dual=BEST.dual, weights=THETA)
    assert again.relative_gap == BEST.relative_gap
    assert again.lower == BEST.certificate.lower <= again.upper
    np.testing.assert_allclose(BEST.weights, THETA, rtol=1e-3)
    assert "converged" in str(BEST) and "analytic" in repr(BEST)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.4])
def test_a_hint_where_nearly_all_dual_variables_are_at_C(bias, share):
    y = np.where(np.arange(60) < 60 * share, 1.0, -1.0)
    small = solve(problem(y=y, C=1e-5, bias=bias), tol=1e-4)
    assert "try a larger C" in small.hint
    assert small.hint in str(small) and "\n" not in small.hint
    large = solve(problem(y=y, C=100.0, bias=bias), tol=1e-4)
    assert large.hint == "" and "larger C" not in str(large)


def test_no_hint_where_it_would_mislead():
    few = np.where(np.arange(60) < 3, 1.0, -1.0)  # all three may be at C at any C
    for changes in (
        {"y": few},
        {"loss": "squared"},  # no bounds
        {"loss": "logistic"},
        {"loss": "quantile"},  # at most residuals α is at a bound
        {"loss": "multiclass_hinge", "y": np.arange(60) % 3},
    ):
        assert solve(problem(C=1e-5, **changes), tol=1e-3).hint == ""
    zero = certify(
        problem(C=1e-5), dual=0 * ALPHA, weights=THETA
    )  # a point that is far from f*
    assert replace(BEST, problem=problem(C=1e-5), certificate=zero).hint == ""


def test_results_survive_a_file_and_are_certified_on_return(tmp_path):
    path = tmp_path / "result.npz"
    BEST.save(path)
    again = Result.load(path, problem())
    assert again.relative_gap == BEST.relative_gap and again.status == BEST.status
    np.testing.assert_array_equal(again.dual, BEST.dual)
    with pytest.raises(ValueError, match="another problem"):
        Result.load(path, problem(C=2.0))
    with np.load(path) as archive:
        tampered = {name: archive[name] for name in archive.files}
    tampered["dual"] = 0.9 * tampered["dual"]
    np.savez(path, **tampered)
    assert Result.load(path, problem()).relative_gap > 1e-4  # a new point, a new gap


def test_a_loaded_result_is_as_good_as_its_gap_says(tmp_path):
    path = tmp_path / "result.npz"
    BEST.save(path)
    with np.load(path) as archive:
        tampered = {name: archive[name] for name in archive.files}
    tampered["dual"] = 0 * tampered["dual"]
    np.savez(path, **tampered)
    again = Result.load(path, problem())
    assert not again.converged and "the gap is 1.0e+00" in again.message
    del tampered["dual"]
    np.savez(path, **tampered)
    with pytest.raises(ValueError, match="not a file written by mklopt"):
        Result.load(path, problem())


def test_decisions_on_new_points():
    train, test = np.arange(40), np.arange(40, 60)
    grams = GramStack(K[:, train][:, :, train])
    found = solve(Problem(grams, Y[train], "hinge", LpNorm(2.0), C=1.0), "analytic")
    cross = K[:, test][:, :, train]
    theta = found.certificate.weights
    expected = np.tensordot(theta, cross, 1) @ found.dual + found.bias
    np.testing.assert_allclose(found.decision(cross), expected, rtol=1e-10)
    own = found.decision(grams)
    np.testing.assert_allclose(own, grams.combine(theta) @ found.dual + found.bias)
    for wrong in (cross[:2], cross.transpose(0, 2, 1), cross[0]):
        with pytest.raises(ValueError, match="test points in rows"):
            found.decision(wrong)


def test_decisions_from_fitted_kernels_and_points():
    X = np.random.default_rng(1).normal(size=(50, 3))
    fitted = kernels.gaussians([1, 2], "both").fit(X[:40])
    y = np.sign(X[:40, 0])
    at = Problem(fitted.grams(), y, "hinge", LpNorm(1.5), C=1.0)
    found = solve(at, "analytic")
    expected = found.decision(fitted.cross(X[40:]))
    np.testing.assert_allclose(found.decision(fitted, X[40:]), expected, atol=1e-12)
    B = found.certificate.expansion * np.linspace(1, 2, 8)[:, None]
    other = replace(found, certificate=certify(at, dual=found.dual, coefficients=B))
    expected = other.decision(fitted.cross(X[40:]))
    np.testing.assert_allclose(other.decision(fitted, X[40:]), expected, atol=1e-12)
    wrongs = [fitted.subset(np.arange(3)), fitted.cross(X[40:])]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="give the 8 fitted kernels on the 40"):
            found.decision(wrong, X[40:])


def test_decisions_of_many_kernels_take_little_memory():
    """M = 50,000: coefficients would be (M, n), 24 MB, the kernels 960 MB."""
    rng = np.random.default_rng(2)
    X, M = rng.normal(size=(60, 4)), 50_000
    fitted = kernels.subset_gaussians(M).fit(X)
    at = Problem(fitted.lazy("0"), np.sign(X[:, 0]), "hinge", LpNorm(2.0), C=1.0)
    found = certify(at, dual=0.01 * at.y, weights=rng.uniform(size=M) / M)
    result = Result(at, "", "finished", "", found, Trace())
    result.decision(fitted, X[:2])  # compiled
    tracemalloc.start()
    try:
        f = result.decision(fitted, X[:40])
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    theta = found.weights
    K = at.grams.combine(theta)
    np.testing.assert_allclose(f, (K @ found.alpha)[:40] + found.bias, atol=1e-12)


def test_the_weights_are_those_of_the_certified_point():
    rough = solve(problem(), "analytic", tol=1e-1)
    assert rough.point == "weights" and rough.weights is rough.certificate.weights
    again = certify(problem(), dual=rough.dual, weights=rough.weights)
    assert again.relative_gap == rough.relative_gap > 1e-6


def test_weights_near_coefficients_are_shown_and_said_to_be():
    found = BEST.certificate
    B = np.random.default_rng(0).uniform(0.9, 1.1, size=(6, 60)) * found.expansion
    other = replace(
        BEST, certificate=certify(problem(), dual=found.alpha, coefficients=B)
    )
    assert other.point == "coefficients" and other.weights.shape == (6,)
    assert (
        certify(problem(), dual=other.dual, weights=other.weights).gap
        < other.certificate.gap
    )


def test_a_notebook_shows_status_bounds_and_kernels():
    K, y = subset_gaussians(40, 4)
    problem = Problem(GramStack(K), y, "hinge", LpNorm(2))
    result = solve(problem)
    shown = result._repr_html_()
    assert "auto: converged" in shown and "≤ f* ≤" in shown
    assert "4 of 4 in use" in shown and f"<p>{result.choice}</p>" in shown
    assert f"{result.relative_gap:.1e}" in shown and "<table>" in shown
