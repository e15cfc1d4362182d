"""Certificates of any candidates: true bounds, repaired points, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify
from mklopt.certificates.certificate import (
    best_shrink,
    dual_value,
    primal_value,
    relative,
)
from mklopt.formulations import (
    BlockL1,
    GroupLasso,
    LpNorm,
    losses_by_name,
)
from mklopt.reference.contract_problems import STORE, load, small_cells
from tests.unit.certificates.samples import random_problem

INF = float("inf")


@pytest.mark.parametrize("seed", range(4))
def test_any_candidate_at_all_gives_a_true_interval(seed):
    """Nonsense in, a wide but true interval out: it contains the stored reference."""
    rng = np.random.default_rng(seed)
    for cell in list(small_cells())[seed::29]:
        problem = cell.problem()
        alpha = rng.normal(size=problem.shape) * 10.0 ** rng.integers(-3, 4)
        theta = rng.exponential(size=6) * 10.0 ** rng.integers(-3, 3)
        certificate = certify(problem, dual=alpha, weights=theta)
        reference = STORE.load(problem)
        assert reference is not None
        assert certificate.lower <= reference.upper, cell.name
        assert certificate.upper >= reference.lower, cell.name
        assert certificate.relative_gap >= 0, cell.name


def test_weights_and_coefficients_say_the_same():
    problem = random_problem(5, formulation=LpNorm(2.0))
    alpha, theta = 0.3 * problem.y, np.array([0.1, 0.5, 0.0])
    first = certify(problem, dual=alpha, weights=theta)
    second = certify(
        problem, dual=alpha, coefficients=np.multiply.outer(theta, first.alpha)
    )
    assert first.primal == pytest.approx(second.primal, rel=1e-13)
    assert first.dual == second.dual
    assert first.upper == pytest.approx(second.upper, rel=1e-11)


def test_the_order_of_repair_keeps_every_constraint():
    """Scaling for Ω* comes last: the point behind the dual value is feasible."""
    problem = random_problem(2, formulation=GroupLasso(), C=50.0)
    certificate = certify(problem, dual=40.0 * problem.y, weights=np.ones(3))
    point = certificate.shrink * certificate.alpha
    assert certificate.shrink < 1
    assert abs(np.sum(point)) < 1e-12
    assert np.max(np.sqrt(problem.grams.quad(point))) <= 1 + 1e-12
    assert np.all(point * problem.y >= 0) and np.all(point * problem.y <= 50)


def test_shrinking_finds_the_best_multiple():
    """For Ω = ½(Σu)² and the hinge the best multiple of α has a closed form."""
    problem = random_problem(3, formulation=BlockL1(), C=10.0)
    balanced = np.where(problem.y > 0, 5.0, -5.0)
    certificate = certify(problem, dual=balanced, weights=np.ones(3))
    gain, price = np.sum(np.abs(balanced)), np.max(problem.grams.quad(balanced))
    best = min(1.0, gain / price)
    assert certificate.dual == pytest.approx(
        best * gain - best**2 * price / 2, rel=1e-9
    )


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(dual=np.ones(5), weights=np.ones(3)), r"dual has shape \(5,\); expected"),
        (dict(dual=np.ones(12), weights=np.ones(2)), "weights has shape"),
        (dict(dual=np.ones(12), weights=-np.ones(3)), "weights are ≥ 0"),
        (dict(dual=np.full(12, np.nan), weights=np.ones(3)), "NaN"),
        (dict(dual=np.ones(12), weights=np.array([1, 1, np.inf])), "finite"),
        (dict(), "give dual= alone, or one of weights="),
        (
            dict(dual=np.ones(12), coefficients=np.ones((3, 5))),
            "coefficients has shape",
        ),
    ],
)
def test_bad_candidates_get_one_clear_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        certify(random_problem(0), **given)


def test_best_of_takes_the_better_half_of_each():
    problem = random_problem(8, formulation=LpNorm(2.0))
    good_dual = certify(problem, dual=0.05 * problem.y, weights=np.zeros(3))
    good_primal = certify(problem, dual=np.zeros(12), weights=np.zeros(3))
    a = certify(problem, dual=0.05 * problem.y, weights=5 * np.ones(3))
    joined = a.best_of(good_primal)
    assert joined.dual == max(a.dual, good_primal.dual) == good_dual.dual
    assert joined.primal == min(a.primal, good_primal.primal)
    assert joined.lower <= joined.upper
    assert joined.upper == pytest.approx(joined.primal, rel=1e-10)


def test_a_certificate_speaks_of_the_kernels_it_was_made_for():
    """A later proof for K + δI does not turn an interval for K into a theorem."""
    problem = random_problem(4, formulation=LpNorm(2.0), exact=False)
    early = certify(problem, dual=0.1 * problem.y, weights=np.ones(3))
    interval = early.enclosure
    problem.grams.verify_psd()
    assert early.assumptions and early.enclosure[:2] == interval[:2]
    late = certify(problem, dual=0.1 * problem.y, weights=np.ones(3))
    assert late.assumptions == [] and np.all(late.shift > 0)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_saturated_multinomial_candidates_do_not_hang(size):
    grams, targets = load("small")
    loss = losses_by_name()["multinomial"]()
    problem = Problem(grams, targets["classes"], loss, LpNorm(2.0), C=size)
    alpha = 0.3 * size * np.random.default_rng(0).normal(size=(40, 3))
    found = certify(problem, dual=alpha, weights=size * np.ones(6))
    assert np.isfinite(found.upper) and found.relative_gap >= 0


def test_an_indefinite_kernel_shows_as_broken_duality():
    grams = GramStack(np.eye(2)[None])
    grams._store.P[0, 1] = 3.0  # given as such, it would have been refused
    problem = Problem(grams, np.array([1.0, -1.0]), "hinge", LpNorm(2.0), C=10.0)
    found = certify(problem, dual=[10.0, -10.0], coefficients=[[-1.0, 1.0]])
    assert (found.lower, found.upper) == (found.dual, found.primal) == (-INF, INF)
    assert "weak duality fails" in found.enclosure.reason
    assert found.enclosure.reason in str(found) and found.relative_gap == INF


@pytest.mark.parametrize("loss", ["hinge", "squared", "multinomial"])
@pytest.mark.parametrize("kind", ["weights", "coefficients"])
def test_a_fresh_certificate_pays_for_its_enclosure_and_repeats_itself(loss, kind):
    """The bounds cost no further pass; the point certified again is the same point."""
    rng = np.random.default_rng(0)
    problem = random_problem(5, "hinge", LpNorm(2.0), exact=False)
    y = np.arange(12) % 3 if loss == "multinomial" else problem.y
    problem = problem.with_(y=y, loss=loss)
    for scale in 1.0, 1 - 2**-53, 1e-3, 1e-310:
        alpha = scale * rng.choice([1.0, 1 - 2**-53, 0.3], size=problem.shape)
        alpha = alpha if loss == "multinomial" else alpha * problem.y
        shape = (3,) if kind == "weights" else (3, *problem.shape)
        point = {kind: rng.uniform(size=shape)}
        first = certify(problem, dual=alpha, **point)
        before = problem.grams.passes
        assert first.lower <= first.upper
        assert problem.grams.passes == before
        again = certify(problem, dual=first.alpha, **point)
        np.testing.assert_array_equal(again.alpha, first.alpha)
        assert (again.primal, again.dual) == (first.primal, first.dual)
        assert again.enclosure[:2] == first.enclosure[:2]
        np.testing.assert_array_equal(first.enclosure.alpha, first.alpha)


def test_assumptions_are_printed_with_the_bounds():
    problem = random_problem(4, formulation=LpNorm(2.0), exact=False)
    early = str(certify(problem, dual=0.1 * problem.y, weights=np.ones(3)))
    assert "assuming the kernels are positive semi-definite" in early
    assert "proved" not in early
    problem.grams.verify_psd()
    late = str(certify(problem, dual=0.1 * problem.y, weights=np.ones(3)))
    assert "\nproved: " in late and "assuming" not in late


def test_values_are_their_formulas():
    """Hinge and ½(Σu)²: Σ C max(0, 1 − yf) + ½(Σu)², and Σ α y − ½ max v²."""
    problem = random_problem(6, formulation=BlockL1(), C=3.0)
    f, u = np.linspace(-2, 2, 12), np.array([0.5, 1.0, 0.0])
    losses = 3.0 * np.sum(np.maximum(0, 1 - problem.y * f))
    assert primal_value(problem, f, u) == pytest.approx(losses + 1.5**2 / 2)
    alpha, v = 2.0 * problem.y, np.array([1.0, 4.0, 2.0])
    assert dual_value(problem, alpha, v) == pytest.approx(24 - 8)
    assert dual_value(problem, 1.01 * alpha * 1.5, v) == -np.inf  # α y > C


def test_the_dual_point_is_shrunk_to_the_best_multiple():
    problem = random_problem(3, formulation=BlockL1(), C=10.0)
    alpha = 5.0 * problem.y
    v = problem.grams.norms(alpha)
    s, value = best_shrink(problem, alpha, v)
    for other in (0.0, 0.9 * s, min(1.0, 1.1 * s), 1.0):
        assert value >= dual_value(problem, other * alpha, other * v) - 1e-12
    assert 0 < s < 1 and value == dual_value(problem, s * alpha, s * v)


def test_relative_differences():
    assert relative(1.0, -4.0) == 0.25 and relative(0.0, 0.0) == 0.0
    assert (
        relative(1.0, 0.0) == relative(np.inf, 1.0) == relative(1.0, np.inf) == np.inf
    )


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_block_norms_are_those_of_the_kernels_with_their_shift(shift):
    problem = random_problem(7, formulation=LpNorm(2.0), exact=False)
    problem.grams.shift = np.full(3, shift)
    theta = np.array([0.3, 0.0, 2.0])
    found = certify(problem, dual=0.1 * problem.y, weights=theta)
    K = problem.grams.dense() + shift * np.eye(12)
    expected = theta * np.sqrt([found.alpha @ k @ found.alpha for k in K])
    np.testing.assert_allclose(found.norms, expected, rtol=1e-12)
    same = certify(problem, dual=0.1 * problem.y, coefficients=found.expansion)
    np.testing.assert_allclose(same.norms, expected, rtol=1e-12)
    assert same.primal == pytest.approx(found.primal, rel=1e-12)
    assert found.gap == found.primal - found.dual
    assert found.relative_gap == pytest.approx(found.gap / found.primal)


def test_the_width_is_the_relative_gap_of_the_proved_bounds():
    problem = random_problem(5, formulation=LpNorm(2.0))
    found = certify(problem, dual=0.3 * problem.y, weights=np.ones(3))
    width = (found.upper - found.lower) / found.upper
    assert found.width == width >= found.relative_gap * (1 - 1e-9)
    assert f"{found.lower:.12g} ≤ f* ≤ {found.upper:.12g}" in str(found)


def test_remembered_products_give_the_same_bounds_for_fewer_passes():
    problem = random_problem(5, formulation=LpNorm(2.0), exact=False)
    alpha, theta = 0.3 * problem.y, np.array([0.1, 0.5, 0.0])
    first = certify(problem, dual=alpha, weights=theta)
    problem.grams.quad(first.alpha), problem.grams.combine(theta)
    before = problem.grams.passes
    again = certify(problem, dual=first.alpha, weights=theta, remembered=True)
    assert problem.grams.passes == before
    assert again.primal == pytest.approx(first.primal, rel=1e-13)
    assert again.dual == pytest.approx(first.dual, rel=1e-13)


def test_points_cannot_be_changed_under_their_bounds():
    """lower and upper are computed on first use, from these arrays."""
    problem = random_problem(4, formulation=LpNorm(2.0))
    weights, B = np.ones(3), np.zeros((3, len(problem.y)))
    one = certify(problem, dual=0.1 * problem.y, weights=weights)
    two = certify(problem, dual=0.1 * problem.y, coefficients=B)
    found = (one.alpha, one.weights, one.norms, one.shift, two.coefficients)
    for array in (*found, problem.y, problem.costs):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 7.0
    weights[0] = B[0, 0] = 2.0  # those that were given stay the caller's
    assert np.all(one.weights == 1.0) and one.lower <= one.upper


def test_a_notebook_shows_the_bounds():
    problem = random_problem(0)
    found = certify(
        problem, dual=np.zeros(problem.shape), weights=np.ones(problem.grams.M)
    )
    assert f"{found.relative_gap:.1e}" in found.facts()["relative gap"]
    assert "f* ≤" in found._repr_html_() and "with all rounding" in found._repr_html_()
