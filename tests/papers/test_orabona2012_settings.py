"""Problems and bounds of Orabona et al. (2012): the theorems on real runs."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem, certify, reference
from mklopt.formulations import BlockNorm
from mklopt.formulations.norms import norm
from mklopt.judge.rates import start_value, uncertainty
from mklopt.reference.contract_problems import load
from mklopt.solvers.steps.epochs import NOISE, PULL, TIME, UPDATES, Descent
from mklopt.tasks.one_vs_rest import kept
from papers.orabona2012 import settings
from papers.orabona2012.settings import descent, regret, regret_bound, steepest
from tests.problems import separable

GRAMS, TARGETS = load("small")
LABELS = {
    "hinge": "binary", "logistic": "binary", "one_class": "ones",
    "multiclass_hinge": "classes", "multinomial": "classes",
}  # fmt: skip
LOSSES = ["hinge", "logistic", "eps_insensitive", "huber", "quantile", "one_class",
          "multiclass_hinge", "multinomial"]  # fmt: skip


def problem(loss: str, C: float = 1.0) -> Problem:
    y = TARGETS[LABELS.get(loss, "real")]
    return Problem(GRAMS, y, loss, BlockNorm(1.25), C, bias=False)


# ---- section 5.2 -----------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_three_classes_need_one_kernel_together_and_all_of_them_apart(seed):
    """Section 5.2: certified solutions, with the kernels that the paper reports."""
    together, apart = settings.solved(settings.synthetic(60, seed))
    assert together.relative_gap <= 1e-8 and apart.relative_gap <= 1e-8
    assert list(kept(together.weights) + 1) == [4]
    for theta, kernel in zip(apart.weights, (2, 3, 1)):
        assert set(kept(theta) + 1) == {kernel, 4}
    assert len(kept(apart.weights)) == 4


def test_quadrants_are_four_squares_that_cover_the_image():
    parts = settings.quadrants(4)
    assert parts[0] == [0, 1, 4, 5] and parts[3] == [10, 11, 14, 15]
    assert sorted(np.ravel(parts)) == list(range(16))


# ---- runs ------------------------------------------------------------------------


def test_means_are_the_objectives_of_runs_from_zero():
    p = problem("hinge")
    found = settings.means(p, [1, 3], seeds=2)
    run = descent(p, seed=1)
    R = run.radius
    for _ in range(3):
        run.epoch(R=R)
    mean = run.coefficients("average")
    value = certify(p, dual=np.zeros(p.shape), coefficients=mean).primal
    assert found.shape == (2, 2) and found[1, 1] == value
    last = settings.means(p, [3], seeds=2, which="last")
    assert last[1, 0] == pytest.approx(run.objective, rel=1e-10)


def test_seconds_are_those_of_one_step(monkeypatch):
    """A clock that moves by one at every look: two looks for T steps or a few more."""
    ticks = iter(range(100))
    monkeypatch.setattr(settings.time, "process_time", lambda: next(ticks))
    p, made = problem("hinge"), []
    epoch = Descent.epoch

    def counted(run, **options):
        made.append(run)
        epoch(run, **options)

    monkeypatch.setattr(Descent, "epoch", counted)
    n, T = p.grams.n, 3 * p.grams.n - 1
    assert settings.seconds_of(p, R=1.0, T=T, rounds=2) == pytest.approx(1 / (3 * n))
    assert len(made) == 2 * 4  # one epoch of stage 1, three of stage 2
    assert made[-1].tally[TIME] == 3 * n


# ---- lemma 2 and the theorems ----------------------------------------------------


@pytest.mark.parametrize("sampling", ["iid", "shuffle"])
@pytest.mark.parametrize("eta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("k", [2, 3])
def test_stage_1_stops_within_theorem_4(k, eta, sampling):
    """Updates ≤ q(2/η + L²)‖v‖² and R ≤ (2 + ηL²)‖v‖, ‖v‖ from below."""
    p = separable(k)
    least = reference.hard_margin(p).norm[0]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        run = Descent(p, p.formulation.strongly_convex, rng, sampling=sampling)
        while not run.separated:
            run.epoch(eta=eta)
        updates, L = run.tally[UPDATES], steepest(run)
        assert 0 < updates <= run.q * (2 / eta + L**2) * least**2
        assert run.radius <= (2 + eta * L**2) * least


@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge"])
def test_theorem_4_holds_without_separability(loss):
    """For u = w* of several C, at the end of every epoch."""
    p = problem(loss)
    comparators = [reference.solve(p.with_(C=C), tol=1e-7) for C in (0.01, 0.1, 1.0)]
    run, eta, tightest = descent(p), 0.5, np.inf
    for _ in range(30):
        run.epoch(eta=eta)
        # A subgradient of a hinge has the entry ±1 at the sample's own output.
        own = run.G[:, 0] if loss == "hinge" else run.G[np.arange(len(p.y)), p.y]
        updates = run.tally[UPDATES]
        assert np.sum(np.abs(own)) == updates > 0
        for u in comparators:
            paid = float(np.abs(own) @ p.loss.value(u.predictions, p.y))
            factor = run.q * (2 / eta + steepest(run) ** 2)
            size = norm(u.norms, run.p) * np.sqrt(factor)
            bound = size**2 + paid + size * np.sqrt(paid)
            tightest = min(tightest, bound / updates)
            assert updates <= bound
    assert tightest < 20  # the bound says something


@pytest.mark.parametrize("loss", LOSSES)
def test_no_subgradient_is_longer_than_L(loss):
    """‖z‖_{2,q} of every sample at random predictions, and L is nearly met."""
    p = problem(loss, C=10.0)
    run, rng, most = descent(p), np.random.default_rng(0), 0.0
    _, cost, roots, _ = run.samples
    for _ in range(50):
        g = p.loss.gradient(5 * rng.normal(size=p.shape), p.y)
        size = np.linalg.norm(g.reshape(len(g), -1), axis=1)
        most = max(most, float(np.max(cost * roots * size)))
    assert 0.5 * steepest(run) < most <= steepest(run) * (1 + 1e-12)


def test_the_bound_of_lemma_2_is_read_off_the_run():
    """2R²s_T + ½ Σ qL_t²/(λt + s_t)."""
    run = descent(problem("hinge"))
    run.tally[[PULL, NOISE]] = 3.0, 8.0
    assert regret_bound(run, R=2.0) == 2 * 4 * 3 + 4


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_lemma_2_holds_along_every_run(loss, C):
    """Against w*, against 0 and against a bad point, after every epoch."""
    p = problem(loss, C=C)
    star = reference.solve(p, tol=1e-6)
    others = [(star.predictions, star.norms), (0 * star.predictions, 0 * star.norms)]
    others.append((-star.predictions, star.norms))
    for large in (None, 1e12):  # large: s_t stays near 0, as in pegasos
        run = descent(p)
        run.epoch(eta=1.0)
        run.begin()
        R = large or run.radius
        tightest = np.inf
        for _ in range(30):
            run.epoch(R=R)
            bound = regret_bound(run, R)
            for f, u in others:
                lost = regret(run, f, p.formulation.value(u))
                assert lost <= bound
                tightest = min(tightest, bound / max(lost, 1e-300))
        assert tightest < 1e3


@pytest.mark.parametrize(
    "loss, C, most", [("hinge", 0.02, 256), ("multiclass_hinge", 1.0, 64)]
)
def test_the_mean_over_seeds_lies_under_theorem_3(loss, C, most):
    """One-sided t at 10 checkpoints with Bonferroni; a claim 600 times less fails."""
    p = problem(loss, C=C)
    star, run = reference.solve(p, tol=1e-8), descent(p)
    epochs = np.unique(np.geomspace(1, most, 10).astype(int))
    off = run.lam * (settings.means(p, list(epochs), seeds=20) - star.lower)
    known = (run.q, run.lam, run.radius, steepest(run))
    bound = settings.theorem_3(p.grams.n * epochs, *known)
    least = np.mean(off, axis=0) - uncertainty(off)
    assert len(epochs) >= 9 and np.all(least <= bound)
    assert np.all(bound < 600 * least)
    # C = 1: the bound says less than f(0) does, at every checkpoint.
    vacuous = bound >= run.lam * (start_value(p) - star.lower)
    assert np.any(~vacuous) == (C == 0.02)


def test_theorem_3_has_two_rates():
    """1/√T while λ is small, ln T/(λT) later; the smaller one counts."""
    T = np.array([10.0, 1e9])
    found = settings.theorem_3(T, q=4.0, lam=1e-3, R=2.0, L=1.0)
    c = (1e-3 * 2.0 + 1.0) * np.sqrt(4.0 * (1 + np.log(T)))
    np.testing.assert_allclose(found[0], c[0] * 4 * 2.0 / np.sqrt(10.0))
    np.testing.assert_allclose(found[1], c[1] ** 2 / (1e-3 * 1e9))
