"""Bounds for exact kernels from low-rank solutions: true, honest, printed."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import certify_exact, kernels, solve
from mklopt.certificates.enclosure import exact_point
from mklopt.formulations import BlockL1, GroupLasso, LpNorm
from mklopt.tasks import certify_exact as certify_exact_module
from mklopt.tasks.exact_sweep import Cost, Sweep
from mklopt.tasks.exact_values import Images
from tests.unit.tasks.low_rank_samples import FAMILY, points, solved

NYSTROEM, RANDOM = kernels.nystroem(FAMILY, 25), kernels.random_features(FAMILY, 40)
MIXED = FAMILY + kernels.polynomials(2, on="both") + kernels.constant()


def holds(bounds, exact, tol=1e-7):
    """Whether the bounds contain the optimum of the exact problem."""
    found = solve(exact, tol=tol)
    assert found.converged
    # Stored entries are rounded, and here they are not: 1e-12 is for that.
    room = 1e-12 * abs(found.certificate.upper)
    return (
        bounds.lower <= found.certificate.upper + room
        and bounds.upper >= found.certificate.lower - room
    )


@pytest.mark.parametrize("way", [NYSTROEM, RANDOM])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(
    "loss, formulation, bias",
    [
        ("hinge", LpNorm(p=2), True),
        ("hinge", BlockL1(), False),
        ("squared", LpNorm(p=4 / 3), True),
        ("logistic", GroupLasso(), True),
        ("multiclass_hinge", LpNorm(p=2), False),
    ],
)
def test_bounds_contain_the_exact_optimum(way, C, loss, formulation, bias):
    fitted, result, exact = solved(way, 160, loss, formulation, C, bias)
    bounds = certify_exact(fitted, result)
    assert np.isfinite(bounds.lower) and np.isfinite(bounds.upper)
    assert bounds.lower < bounds.upper and holds(bounds, exact)
    assert bounds.assumptions == []


@pytest.mark.parametrize("steps", ["unit_trace", "spherical"])
def test_normalized_and_mixed_kernels(steps):
    way = kernels.nystroem(MIXED, 12)
    fitted, result, exact = solved(way, 160, C=3.0, normalize=steps)
    bounds = certify_exact(fitted, result, passes=2)
    assert holds(bounds, exact)


def test_with_all_points_as_landmarks_both_problems_are_one():
    fitted, result, _ = solved(kernels.nystroem(FAMILY, 160))
    bounds = certify_exact(fitted, result)
    assert bounds.relative_gap < 2e-5
    low, high = bounds.approximated
    assert bounds.lower == pytest.approx(low, rel=1e-6)
    assert bounds.upper == pytest.approx(high, rel=1e-6)


def test_the_landmark_point_has_nearly_the_value_of_the_approximated_problem():
    """Nyström: the same w, in exact kernels; the sweep's point is worse here."""
    fitted, result, _ = solved(NYSTROEM, C=10.0)
    bounds = certify_exact(fitted, result)
    assert bounds.point == "landmarks"
    sweep, landmarks = bounds.steps
    assert landmarks.upper == pytest.approx(result.certificate.upper, rel=1e-6)
    assert sweep.upper > 1.01 * landmarks.upper
    assert landmarks.lower == sweep.lower


def test_random_features_take_the_upper_bound_of_the_sweep():
    fitted, result, _ = solved(RANDOM)
    bounds = certify_exact(fitted, result)
    assert bounds.point == "sweep" and [s.name for s in bounds.steps] == ["sweep"]


def test_single_precision_factors_are_evaluated_on_exact_entries():
    fitted, _, exact = solved(NYSTROEM)
    problem = exact.with_(grams=fitted.grams(dtype="float32"))
    bounds = certify_exact(fitted, solve(problem, tol=1e-5))
    assert holds(bounds, exact)


@pytest.mark.parametrize("way", [NYSTROEM, RANDOM])
def test_passes_improve_both_bounds_and_say_so(way):
    fitted, result, exact = solved(way, 300, C=5.0)
    bounds = certify_exact(fitted, result, passes=3)
    lows, highs = zip(*((step.lower, step.upper) for step in bounds.steps))
    assert list(lows) == sorted(lows) and list(highs) == sorted(highs, reverse=True)
    assert bounds.steps[-1].name == "pass 3" and bounds.relative_gap < 1e-3
    assert bounds.steps[0].relative_gap > 0.05 and holds(bounds, exact)
    assert (
        mklopt.certify(exact, dual=bounds.dual, weights=bounds.weights).relative_gap
        < 2e-3
    )


def test_what_is_printed_keeps_the_two_problems_apart():
    fitted, result, _ = solved(NYSTROEM)
    text = str(certify_exact(fitted, result, passes=1))
    lines = text.split("\n")
    assert lines[0].startswith("exact kernels: ") and "rounding counted" in lines[0]
    assert lines[1].startswith("approximated kernels, another problem: ")
    assert lines[2].startswith("lost trace in %: ")
    assert [line.split(":")[0] for line in lines[3:]] == [
        "sweep", "landmarks", "pass 1",
    ]  # fmt: skip


def test_progress_and_an_estimate_are_told(capsys):
    fitted, result, _ = solved(NYSTROEM)
    certify_exact(fitted, result, verbose=True)
    said = capsys.readouterr().err
    assert said.startswith("exact kernels: about ") and "160 × " in said
    assert "\nsweep: " in said
    certify_exact(fitted, result)
    assert capsys.readouterr().err == ""
    cost = certify_exact(fitted, result, dry_run=True)
    assert isinstance(cost, Cost) and 0 < cost.seconds < 60 and cost.rows == 160
    assert cost.columns == np.count_nonzero(result.dual) < 160 and cost.kernels == 3


def test_your_own_function_is_an_assumption():
    own = kernels.function(lambda A, B: np.exp(-np.abs(A[:, :1] - B[:, 0])), "laplace")
    way = kernels.nystroem(own + FAMILY, 30)
    fitted, result, exact = solved(way)
    bounds = certify_exact(fitted, result)
    assert holds(bounds, exact)
    assert bounds.assumptions == ["your own kernel functions are exact and positive"]
    assert "assuming your own kernel functions" in str(bounds)


def test_wrong_arguments_get_one_clear_sentence():
    fitted, result, exact = solved(NYSTROEM)
    X = points()[0]
    with pytest.raises(ValueError, match="takes low-rank kernels first, got Family"):
        certify_exact(FAMILY, result)
    with pytest.raises(ValueError, match="takes a Result second, got Problem"):
        certify_exact(fitted, result.problem)
    with pytest.raises(ValueError, match=r"is not the grams.. of these low-rank"):
        certify_exact(kernels.nystroem(FAMILY, 9).fit(X), result)
    with pytest.raises(ValueError, match=r"is not the grams.. of these low-rank"):
        certify_exact(fitted, solve(exact))
    with pytest.raises(ValueError, match="passes = -1"):
        certify_exact(fitted, result, passes=-1)
    fitted, result, _ = solved(NYSTROEM, loss="logistic", formulation=GroupLasso())
    with pytest.raises(ValueError, match="the dual of logistic is not quadratic"):
        certify_exact(fitted, result, passes=1)


def test_norms_of_landmark_points_where_all_terms_cancel(monkeypatch):
    """Two landmarks at a distance of 1e-9: βᵀKβ is rounding, the norm is not 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[1] = X[0] + [1e-9, 0.0]
    way = kernels.nystroem(kernels.gaussians([1.0]), 2, landmarks=[0, 1])
    fitted = way.fit(X)
    problem = mklopt.Problem(fitted.grams(), np.sign(X[:, 0]), "hinge", LpNorm(2.0))
    result = solve(problem)
    alpha = exact_point(problem, result.dual)
    sweep = Sweep(fitted.entries, alpha)
    images = Images(fitted.entries, sweep.run(None, False), sweep.products.spread)
    beta = 1e8 * np.array([[1.0], [-1.0]])
    monkeypatch.setattr(type(fitted), "expansion", lambda self, m, w: beta)
    best = certify_exact_module._Best(fitted, problem, lambda step: None)
    u = best._landmark_point(result, alpha, images)[2]
    apart = float(np.sum((X[1] - X[0]) ** 2))
    exact = 1e8 * np.sqrt(-2 * np.expm1(-apart / 2))
    assert exact > 0.09 and u[0] >= exact
