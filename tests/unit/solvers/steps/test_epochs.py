"""Epochs of stochastic steps: the paper's pseudo-code, storages, averages, starts."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, kernels, solve
from mklopt.formulations import BlockNorm, ElasticNet, SparseBlockNorm
from mklopt.formulations.norms import dual_exponent, norm
from mklopt.grams import rows as reading
from mklopt.kernels import streams
from mklopt.reference.contract_problems import load
from mklopt.solvers.steps import epochs as stochastic
from mklopt.solvers.steps.epochs import Descent, epoch_range

GRAMS, TARGETS = load("small")
LABELS = {
    "hinge": "binary", "logistic": "binary", "one_class": "ones",
    "multiclass_hinge": "classes", "multinomial": "classes",
}  # fmt: skip
LOSSES = ["hinge", "logistic", "eps_insensitive", "huber", "quantile", "one_class",
          "multiclass_hinge", "multinomial"]  # fmt: skip


def problem(loss="hinge", formulation=None, C=1.0, grams=GRAMS, y=None) -> Problem:
    y = TARGETS[LABELS.get(loss, "real")] if y is None else y
    return Problem(grams, y, loss, formulation or BlockNorm(1.25), C, bias=False)


def descent(p: Problem, seed=0, **options) -> Descent:
    shape = p.formulation.strongly_convex
    return Descent(p, shape, np.random.default_rng(seed), **options)


class Transcript:
    """Algorithms 1 and 2 line by line, in explicit features and the paper's letters."""

    def __init__(self, p: Problem):
        self.problem, self.phi = p, p.grams.factors
        self.p = p.formulation.strongly_convex[0]
        self.q, self.lam = dual_exponent(self.p), 1 / float(np.sum(p.costs))
        self.cost = p.grams.n * self.lam * p.costs
        k = p.shape[1] if len(p.shape) == 2 else 1
        self.theta = [np.zeros((L.shape[1], k)) for L in self.phi]
        self.w = [0 * t for t in self.theta]
        self.history: list[list[np.ndarray]] = []
        self.slopes: list[float] = []
        self.s, self.t, self.updates = 0.0, 0, 0

    def subgradient(self, i: int) -> list[np.ndarray]:
        p, one = self.problem, slice(i, i + 1)
        f = sum(L[i] @ w for L, w in zip(self.phi, self.w)).reshape(1, *p.shape[1:])
        y = p.y[one]
        if len(p.shape) == 2:  # all classes must be known to the loss
            f, y = np.repeat(f, 2, axis=0), np.array([p.y[i], p.shape[1] - 1])
        g = self.cost[i] * p.loss.gradient(f, y)[0].reshape(-1)
        self.updates += bool(np.any(g))
        return [np.outer(L[i], g) for L in self.phi]

    def size(self, blocks) -> float:
        return norm(np.array([np.linalg.norm(b) for b in blocks]), self.q)

    def mirror(self) -> None:  # lines 7 and 11
        total = self.size(self.theta) or 1.0
        self.w = [
            (np.linalg.norm(t) / total) ** (self.q - 2) * t / self.q for t in self.theta
        ]

    def stage_1(self, order, eta: float) -> None:
        for i in order:
            z = self.subgradient(i)
            self.theta = [t - eta * zj for t, zj in zip(self.theta, z)]
            self.mirror()

    def stage_2(self, order, R: float) -> None:
        q, lam = self.q, self.lam
        for i in order:
            self.t += 1
            self.history.append(self.w)
            z = self.subgradient(i)
            d = lam * self.t + self.s
            slope = lam / q * self.size(self.theta) + self.size(z)
            self.slopes.append(slope)
            self.s += 0.5 * (np.sqrt(d**2 + q * slope**2 / R**2) - d)
            eta = q / (lam * self.t + self.s)
            half = [(1 - lam * eta / q) * t - eta * zj for t, zj in zip(self.theta, z)]
            scale = min(1.0, q * R / max(self.size(half), 1e-300))
            self.theta = [scale * h for h in half]
            self.mirror()


def explicit(p: Problem, coefficients: np.ndarray) -> list[np.ndarray]:
    n = p.grams.n
    return [L.T @ B.reshape(n, -1) for L, B in zip(p.grams.factors, coefficients)]


def assert_same(found, expected) -> None:
    scale = max(float(np.max(np.abs(e))) for e in expected)
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("q", [1.1, 2.0])
@pytest.mark.parametrize("sampling", ["iid", "shuffle"])
def test_the_epochs_are_the_paper_s_pseudo_code(loss, q, sampling):
    """One α for all kernels, lazy scales and averages: the same w to 1e-10."""
    p = problem(loss, BlockNorm(q), C=np.linspace(0.5, 3, GRAMS.n))
    run, plain = descent(p, sampling=sampling), Transcript(p)
    rng = np.random.default_rng(0)
    n = p.grams.n

    def order():
        return rng.integers(n, size=n) if sampling == "iid" else rng.permutation(n)

    run.epoch(eta=0.7)
    plain.stage_1(order(), 0.7)
    assert_same(explicit(p, run.coefficients("last")), plain.w)
    run.begin()
    R = 0.5 * run.radius  # small, so that the projection is at work
    for _ in range(5):
        run.epoch(R=R)
        plain.stage_2(order(), R)
    assert_same(explicit(p, run.coefficients("last")), plain.w)
    mean = [np.mean(blocks, axis=0) for blocks in zip(*plain.history)]
    assert_same(explicit(p, run.coefficients("average")), mean)
    late = [np.mean(blocks[2 * n :], axis=0) for blocks in zip(*plain.history)]
    assert_same(explicit(p, run.coefficients("suffix")), late)
    assert run.tally[stochastic.PULL] == pytest.approx(plain.s, rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge", "multinomial"])
@pytest.mark.parametrize("storage", ["full", "packed", "float32", "blocks"])
def test_predictions_are_those_of_the_coefficients(loss, storage, monkeypatch):
    whole = np.array([GRAMS.kernel(m) for m in range(GRAMS.M)])
    full = "full" if storage in ("full", "float32") else "packed"
    dtype = "float32" if storage == "float32" else "float64"
    grams = GramStack(whole, storage=full, dtype=dtype)
    if storage == "blocks":
        monkeypatch.setattr(reading, "MAX_WHOLE", 0)
        monkeypatch.setattr(reading, "MOST_ROWS", 7)
    p = problem(loss, C=10.0, grams=grams)
    run = descent(p)
    for _ in range(20):
        run.epoch(R=3.0)
    f = np.sum(grams.apply(run.coefficients("last")), axis=0)
    np.testing.assert_allclose(run.predictions, f, rtol=0, atol=1e-10)
    found = certify(p, dual=run.dual(), coefficients=run.coefficients("last"))
    assert found.primal == pytest.approx(run.objective, rel=1e-10)
    assert (run.reader.whole is None) == (storage in ("float32", "blocks"))


def test_every_storage_makes_the_same_run(monkeypatch):
    """Blocks of one epoch have each of their rows once."""
    whole = np.array([GRAMS.kernel(m) for m in range(GRAMS.M)])
    monkeypatch.setattr(reading, "MOST_ROWS", 7)
    shown, n = [], GRAMS.n
    for large, storage in ((2**27, "full"), (0, "packed")):
        monkeypatch.setattr(reading, "MAX_WHOLE", large)
        grams = GramStack(whole, storage=storage)
        run = descent(problem("multiclass_hinge", grams=grams))
        before, rng, rows = grams.passes, np.random.default_rng(0), 0.0
        for _ in range(4):
            run.epoch(R=2.0)
            order = rng.integers(n, size=n)
            rows += sum(len(set(order[i : i + 7])) for i in range(0, n, 7))
        rows = run.tally[stochastic.UPDATES] if large else rows
        assert grams.passes - before == pytest.approx(rows / n)
        shown.append(run.coefficients("average"))
    np.testing.assert_allclose(shown[0], shown[1], rtol=0, atol=1e-12)


POINTS = np.random.default_rng(5).normal(size=(90, 6)) + 2.0
DIGITS = np.arange(90) % 3
FAMILY = kernels.views(
    kernels.linear() + kernels.polynomials([3]) + kernels.gaussians([2, "mean"]),
    [[0, 1, 2], [3, 4, 5]],
)


@pytest.mark.parametrize("sampling", ["iid", "shuffle"])
@pytest.mark.parametrize("wide", [True, False])  # tiles or sweeps behind the stack
def test_streamed_epochs_are_those_of_stored_kernels(sampling, wide, monkeypatch):
    """Both stages: the same coefficients to 1e-10, and only rows that changed."""
    monkeypatch.setattr(streams, "WIDE", 0 if wide else 64)
    monkeypatch.setattr(reading, "MOST_COMPUTED", 16)
    fitted = FAMILY.fit(POINTS, normalize="spherical")
    shown, work = [], []
    for grams in (fitted.grams(storage="full"), fitted.lazy("0")):
        p = problem("multiclass_hinge", C=3.0, grams=grams, y=DIGITS)
        run, before = descent(p, sampling=sampling), grams.passes
        run.epoch(eta=0.7)
        R = run.radius
        run.begin()
        for _ in range(3):
            run.epoch(R=R)
        shown.append([run.coefficients(which) for which in stochastic.ITERATES])
        work.append((grams.passes - before) * grams.n)
        assert (run.reader.computed is None) == (grams.storage == "full")
    for stored, streamed in zip(*shown):
        scale = np.max(np.abs(stored))
        np.testing.assert_allclose(streamed, stored, rtol=0, atol=1e-10 * scale)
    inner = 4 * (5 * 16**2 + 10**2) / 90  # rows between the samples of blocks
    if sampling == "shuffle":
        assert work[1] == pytest.approx(work[0] + inner)
    else:  # samples that are drawn twice for a block are read once
        assert 0.7 * work[0] < work[1] < work[0] + inner


def test_streamed_epochs_take_little_memory():
    """n = 6000, M = 4: one kernel alone would take 288 MB, rows of a block 96 MB."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 3)) + 2.0
    grams = (kernels.gaussians([1, 3]) + kernels.polynomials([1, 2])).fit(X).lazy("0")
    p = problem(grams=grams, y=np.sign(X[:, 0] - 2 + 0.1 * rng.normal(size=6000)))
    tracemalloc.start()
    try:
        run = descent(p)
        run.epoch(eta=0.1)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()
    rows = grams.passes * grams.n
    assert rows < 6000 * 512 / 6000 + run.updates < 0.6 * 6000


def test_a_streamed_start_is_forgotten_everywhere():
    """The first step of pegasos sets K_mα to 0 at samples of other blocks, too."""
    fitted = FAMILY.fit(POINTS, normalize="spherical")
    runs = []
    for grams in (fitted.grams(storage="full"), fitted.lazy("0")):
        p = problem("multiclass_hinge", C=3.0, grams=grams, y=DIGITS)
        start = (np.ones(8), 3.0 * np.eye(3)[DIGITS] - 1)
        runs.append(descent(p, start=start))
        assert np.all(runs[-1].F[2])
        runs[-1].reader.size = 16
        runs[-1].epoch()
    np.testing.assert_allclose(runs[1].F, runs[0].F, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        runs[1].coefficients("average"), runs[0].coefficients("average"), atol=1e-10
    )


def test_no_square_matrix_for_very_many_samples(monkeypatch):
    """The improvement of dual points needs one: it is left out."""
    p = problem("hinge")
    asked = []

    def improve(problem, alpha, theta):
        asked.append(len(alpha))
        return alpha

    run = descent(p, improve=improve)
    run.epoch()
    assert run.dual_point().shape == p.shape and asked == [p.grams.n]
    monkeypatch.setattr(stochastic, "MAX_SQUARE", p.grams.n**2 - 1)
    assert run.dual_point().shape == p.shape and len(asked) == 1


def test_pegasos_is_its_mean_subgradient():
    """α = −(1/(λt)) Σ z: feasible for the dual after whole epochs."""
    p = problem("multiclass_hinge", C=2.0)
    run = descent(p, sampling="shuffle")
    for _ in range(4):
        run.epoch()
    mean = -p.spread_costs * run.G / run.seen[:, None]
    np.testing.assert_allclose(run.B, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(p.feasible(run.B), run.B, atol=1e-10)


@pytest.mark.parametrize(
    "formulation", [SparseBlockNorm(1.5, 2.5), SparseBlockNorm(1.1, 4.0), ElasticNet()]
)
def test_ufo_minimizes_what_it_has_seen(formulation):
    """w = ∇Ω*(α), where Fenchel and Young are equal; small kernels vanish."""
    p = problem("hinge", formulation)
    run = descent(p)
    for _ in range(3):
        run.epoch()
    v = np.sqrt(p.grams.quad(run.B[:, 0]))
    u = run.omega * v
    assert u @ v - formulation.value(u) == pytest.approx(formulation.conjugate(v))
    assert np.array_equal(u == 0, v <= formulation.strongly_convex[1])
    assert np.any(u > 0) and (np.any(u == 0) or formulation == ElasticNet())


def test_the_printed_right_side_of_lemma_2_is_no_smaller():
    """Σ 4ξ_tR² + qL_t²/(λt + Σξ), minimized over constant ξ, beside the sharp one."""
    p = problem("hinge", C=10.0)
    plain, run, R = Transcript(p), descent(p), 3.0
    rng, n = np.random.default_rng(0), p.grams.n
    for _ in range(5):
        run.epoch(R=R)
        plain.stage_2(rng.integers(n, size=n), R)
    t, L = np.arange(1, plain.t + 1), np.array(plain.slopes)
    printed = min(
        np.sum(4 * xi * R**2 + plain.q * L**2 / (t * (plain.lam + xi)))
        for xi in np.append(0.0, np.logspace(-6, 2, 200))
    )
    pull, noise = run.tally[[stochastic.PULL, stochastic.NOISE]]
    assert 0 < 2 * R**2 * pull + 0.5 * noise <= printed * (1 + 1e-12)


def test_the_best_of_all_iterates_is_shown():
    p = problem("hinge", C=10.0)
    run = descent(p)
    for _ in range(6):
        run.epoch()

    def value(B):
        return certify(p, dual=np.zeros(p.shape), coefficients=B).primal

    each = {which: value(run.coefficients(which)) for which in stochastic.ITERATES}
    assert value(run.best()) == min(each.values())
    assert len(set(each.values())) == 3
    assert run.objective == pytest.approx(each["last"], rel=1e-10)


def test_pegasos_forgets_its_start_in_the_first_step():
    """But w_1 is the start, and counts as one of the n points of the mean."""
    p = problem("hinge")
    known = solve(p, "analytic", tol=1e-10)
    cold, warm = descent(p), descent(p, start=known)
    began = warm.coefficients("last")
    f, n = p.loss.value(warm.predictions, p.y), p.grams.n
    # The subgradients of the first step must agree: a sample that pays a loss in both.
    first = np.random.default_rng(0).integers(n, size=n)[0]
    assert f[first] > 0
    cold.epoch()
    warm.epoch()
    np.testing.assert_allclose(warm.coefficients("last"), cold.coefficients("last"))
    apart = n * (warm.coefficients("average") - cold.coefficients("average"))
    np.testing.assert_allclose(apart, began, atol=1e-10)
    found = solve(p, "pegasos", start=known, epochs=2, tol=0.0)
    assert found.certificate.primal == pytest.approx(known.certificate.primal, rel=1e-4)


def test_the_number_of_epochs():
    assert list(epoch_range(3, 10, "T1")) == [0, 1, 2]
    assert len(epoch_range(None, 1000, "T1")) == 2000
    assert len(epoch_range(None, 10**7, "T1")) == 5
    wrongs: list[Any] = [-1, 2.5, True]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"T1 = .*; give a whole number"):
            epoch_range(wrong, 10, "T1")
