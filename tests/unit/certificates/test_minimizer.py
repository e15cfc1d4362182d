"""Facts about every minimizer: known solutions, what cannot be proved, new points."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mklopt import GramStack, Problem
from mklopt.certificates import minimizer
from mklopt.certificates.certificate import certify
from mklopt.certificates.minimizer import minimizer_facts
from mklopt.formulations import ElasticNet, GroupLasso, LpNorm
from mklopt.run.loop import solve


def two_kernels(c=1.0):
    """K_1 = c yyᵀ fits y alone; K_2 is the same for −y's complement, and useless."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    z = np.array([1.0, 1.0, -1.0, -1.0])
    return GramStack.from_factors([np.sqrt(c) * y[:, None], z[:, None]]), y


def random_problem(loss, formulation, C=2.0, bias=True, n=40, M=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, M))
    grams = GramStack(np.exp(-((X[:, None] - X[None]) ** 2)).transpose(2, 0, 1))
    grams.verify_psd()
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Problem(grams, y, loss, formulation, C, bias), X


def test_a_solution_by_hand():
    """Group lasso, squared loss, C = 1: w_1 = t along y, t = 1 − 1/(C n) = 3/4."""
    grams, y = two_kernels()
    problem = Problem(grams, y, "squared", GroupLasso(), 1.0, bias=False)
    facts = solve(problem, tol=1e-9).intervals()
    assert facts.unused.tolist() == [False, True]
    low, high = facts.predictions
    assert np.all(low <= 0.75 * y) and np.all(0.75 * y <= high)
    assert np.max(high - low) < 1e-3
    assert facts.norms.upper[1] == facts.weights.upper[1] == 0.0


def test_the_radius_is_the_distance_where_the_loss_is_linear():
    """With a small C all margins are violated: P is ½‖w − w*‖² plus a constant."""
    problem, _ = random_problem("hinge", LpNorm(p=np.inf), C=1e-3, bias=False)
    tight = solve(problem, tol=1e-12)
    loose = certify(problem, tight.dual, 0.5 * tight.weights)
    facts, u = minimizer_facts(loose), tight.certificate.norms
    distance = 0.5 * np.linalg.norm(u)  # ŵ = w*/2
    assert facts.radius == pytest.approx(distance, rel=1e-6)
    assert np.all(facts.norms.lower <= u) and np.all(u <= facts.norms.upper)


def test_the_interval_of_the_bias_is_tight_without_kernels():
    """K = 0: the objective is Σ½(b − y_i)², and b* ± d has the value of b* + d."""
    y, d = np.array([1.0, 2.0, 6.0]), 0.25
    problem = Problem(GramStack(np.zeros((1, 3, 3))), y, "squared", LpNorm(2), 1.0)
    tight = solve(problem, tol=1e-12)
    facts = minimizer_facts(certify(problem, tight.dual, np.ones(1), bias=3.0 + d))
    assert facts.bias == pytest.approx((3.0 - d, 3.0 + d), rel=1e-4)
    assert facts.bias[0] <= 3.0 - d and 3.0 + d <= facts.bias[1]


def test_a_loose_point_is_as_far_as_its_radius_says():
    problem, _ = random_problem("logistic", LpNorm(p=2))
    tight = solve(problem, tol=1e-12)
    loose = certify(problem, 0.9 * tight.dual, 1.2 * tight.weights)
    facts, truth = minimizer_facts(loose), tight.intervals()
    moved = np.abs(loose.norms - tight.certificate.norms)
    assert np.max(moved) > 0.01 * facts.radius  # the test can tell
    assert np.all(facts.norms.lower <= truth.norms.upper)
    assert np.all(facts.norms.upper >= truth.norms.lower)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("formulation", [GroupLasso(), LpNorm(p=1), ElasticNet(0.7)])
def test_most_unused_kernels_are_proved_at_1e_6(loss, formulation):
    problem, _ = random_problem(loss, formulation, C=0.3)
    facts = solve(problem, tol=1e-6).intervals()
    tight = solve(problem, tol=1e-11).certificate
    unused = tight.norms <= 1e-8 * np.max(tight.norms)
    assert np.any(unused) and not np.any(facts.unused & ~unused)
    assert np.sum(facts.unused) >= 0.9 * np.sum(unused)


def test_the_hinge_with_a_sum_of_norms_proves_nothing_and_says_why():
    problem, _ = random_problem("hinge", GroupLasso())
    facts = solve(problem).intervals()
    assert not np.any(facts.used | facts.unused) and facts.radius == np.inf
    assert [why.split(":")[0] for why in facts.reasons][:2] == [
        "norms from a ball", "α from a ball",
    ]  # fmt: skip
    assert np.all(facts.dual.lower >= np.minimum(0, 2 * problem.y) - 1e-12)
    assert "not proved" in str(facts)


def test_samples_of_the_hinge_at_their_bounds():
    problem, _ = random_problem("hinge", LpNorm(p=2), C=1.0)
    facts, tight = solve(problem, tol=1e-8).intervals(), solve(problem, tol=1e-12)
    at = facts.at_bound
    assert np.sum(at) > len(at) // 2
    assert tight.dual[at] == pytest.approx(facts.dual.lower[at], abs=1e-9)
    inside = (np.abs(tight.dual) > 1e-6) & (np.abs(tight.dual) < 1 - 1e-6)
    assert np.any(inside) and not np.any(at & inside)


def test_new_points():
    problem, X = random_problem("logistic", LpNorm(p=2))
    tight, loose = solve(problem, tol=1e-11), solve(problem, tol=1e-5)
    Z = np.random.default_rng(1).normal(size=(7, X.shape[1]))
    cross = np.exp(-((Z[:, None] - X[None]) ** 2)).transpose(2, 0, 1)
    low, high = loose.prediction_intervals(cross, np.ones((6, 7)))
    f = tight.decision(cross)
    assert np.all(low <= f) and np.all(f <= high) and np.max(high - low) < 1.0
    with pytest.raises(ValueError, match=r"diagonals has shape \(7,\)"):
        loose.prediction_intervals(cross, np.ones(7))


def test_claims_about_the_support():
    problem, _ = random_problem("squared", ElasticNet(0.7), C=0.3)
    result = solve(problem, tol=1e-9)
    used = np.flatnonzero(result.certificate.norms > 1e-6)
    assert result.proves(support=used)
    assert not result.proves(support=used[1:])
    assert result.proves(used=used[:1]) and not result.proves(unused=used[:1])
    with pytest.raises(ValueError, match="support=, used= or unused="):
        result.proves()


def test_nothing_is_proved_without_bounds(monkeypatch):
    problem, _ = random_problem("squared", GroupLasso())
    found = solve(problem, tol=1e-6).certificate
    nothing = found.enclosure._replace(reason="overflow", lower=-np.inf, upper=np.inf)
    facts = minimizer_facts(dataclasses.replace(found, bounds=nothing))
    assert facts.gap == np.inf and not np.any(facts.used | facts.unused)
    assert facts.reasons[0] == minimizer.NO_BOUNDS
    assert not np.any(facts.predictions.known)


def test_frames_and_words():
    problem, _ = random_problem("squared", ElasticNet(0.7), C=0.3)
    facts = solve(problem, tol=1e-9).intervals()
    frame = facts.to_frame()
    assert len(frame) == 6 and set(frame["proved"]) == {"used", "unused"}
    assert f"{np.sum(facts.used)} kernels are used and" in str(facts)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors_of_many_samples(dtype):
    """In feature space the same facts follow, without n × n matrices."""
    rng = np.random.default_rng(2)
    F = [rng.normal(size=(1200, 3)) / 10 for _ in range(3)]
    y = np.where(F[0][:, 0] > 0, 1.0, -1.0)
    problem = Problem(GramStack.from_factors(F, dtype=dtype), y, "logistic", LpNorm(2))
    loose, tight = solve(problem, tol=1e-3), solve(problem, tol=1e-9)
    assert loose.certificate.features is not None
    a, b = loose.intervals(), tight.intervals()
    for one, two in zip(a.norms.meet(a.norms), b.norms):
        assert one.shape == two.shape
    assert np.all(a.norms.lower <= b.norms.upper)
    assert np.all(b.norms.lower <= a.norms.upper)
    assert np.all(a.predictions.lower <= b.predictions.upper)
    assert np.all(b.predictions.lower <= a.predictions.upper)
    assert np.all(b.used)


@pytest.mark.parametrize("p", [4 / 3, 2, 3])
def test_intervals_of_weights_are_narrow_and_contain_the_weights(p):
    """Far narrower than the change that a wrong exponent of ‖w_m‖ would make."""
    problem, _ = random_problem("squared", LpNorm(p=p))
    result = solve(problem, tol=1e-10)
    low, high = result.intervals().weights
    assert np.all(high - low <= 5e-3 * np.max(high))
    assert np.all(low <= result.weights * (1 + 1e-6))
    assert np.all(result.weights <= high * (1 + 1e-6))
