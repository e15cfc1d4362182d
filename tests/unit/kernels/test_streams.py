"""Streamed kernels: the entries of stored ones, bounded errors, memory and sizes."""

import pickle
import tracemalloc
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from mklopt import LazyStack, Problem, kernels, solve
from mklopt.formulations import LpNorm
from mklopt.kernels import streams
from mklopt.kernels.streams import Streams, can_stream
from mklopt.kernels.sweeps import BLOCK, Direct
from mklopt.util import threads
from mklopt.util.rounding import gamma
from mklopt.util.sweeps import listening

rng = np.random.default_rng(21)
X = rng.normal(size=(70, 9))
FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 2, 3])
    + kernels.linear(on="single")
    + kernels.constant()
    + kernels.subset_gaussians(60)
    + kernels.views(kernels.gaussians(2) + kernels.linear(), [[3, 1], [5, 2, 0]])
)
STEPS = [
    None,
    "unit_trace",
    "spherical",
    ("unit_trace", "spherical"),
    ("spherical", "unit_trace"),
]


@pytest.fixture(autouse=True)
def several_threads(monkeypatch):
    monkeypatch.setattr(threads, "MIN_SHARED_WORK", 0)
    with threads.threads(3):
        yield


# ---- entries and operations ----------------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
def test_entries_are_those_of_stored_kernels(steps):
    fitted = FAMILY.fit(X, steps)
    stored, grams = fitted.grams(), fitted.lazy(cache=0)
    assert isinstance(grams._store, Streams)
    np.testing.assert_array_equal(grams.dense(), stored.dense())
    np.testing.assert_array_equal(grams.diag(), stored.diag())
    which = np.array([69, 0, 33, 33])
    np.testing.assert_array_equal(grams.rows(which), stored.rows(which))
    some, points = rng.permutation(fitted.M)[:20], np.array([2, 3, 40, 69])
    np.testing.assert_array_equal(
        grams.subset(some).samples(points).dense(),
        stored.subset(some).samples(points).dense(),
    )
    kept = fitted.lazy()
    np.testing.assert_array_equal(kept.rows(which), stored.rows(which))
    np.testing.assert_array_equal(kept.combine(np.ones(fitted.M)),
                                  stored.combine(np.ones(fitted.M)))  # fmt: skip


@pytest.mark.parametrize("steps", STEPS)
def test_operations_agree_with_their_definitions(steps):
    fitted = FAMILY.fit(X, steps)
    grams, K = fitted.lazy(cache=0), fitted.grams().dense()
    M, n = K.shape[:2]
    same = partial(np.testing.assert_allclose, rtol=0)
    a, A, B = (np.array(rng.normal(size=size)) for size in ((n,), (n, 2), (M, n)))
    S, theta = A @ A.T, np.array(rng.uniform(size=M))
    size = np.einsum("ik,mij,jk->m", np.abs(A), np.abs(K), np.abs(A))
    exact = np.einsum("ik,mij,jk->m", A, K, A)
    same(grams.quad(A) / size, exact / size, atol=1e-14)
    same(grams.against(S) / size, exact / size, atol=1e-14)
    pairs: list = [(a, K @ a), (A, K @ A)]
    for given, product in pairs:
        top = np.max(np.abs(K), axis=(1, 2)).reshape(-1, *[1] * given.ndim)
        same(grams.matvec(given) / top, product / top, atol=1e-12)
    top = np.max(np.abs(K), axis=(1, 2))[:, None]
    same(grams.apply(B) / top, np.einsum("mij,mj->mi", K, B) / top, atol=1e-12)
    total = np.tensordot(theta, K, 1)
    same(grams.combine(theta) / total.max(), total / total.max(), atol=1e-14)
    np.testing.assert_array_equal(grams.combine(theta), grams.combine(theta).T)
    part = grams.subset(np.array([5, 2, 5, 40]))
    same(part.matvec(a), K[[5, 2, 5, 40]] @ a, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 31, 33])
def test_few_points(n):
    fitted = kernels.subset_gaussians(5).fit(X[:n], "unit_trace")
    grams, stored = fitted.lazy(cache=0), fitted.grams()
    np.testing.assert_array_equal(grams.dense(), stored.dense())
    a = rng.normal(size=n)
    np.testing.assert_allclose(grams.matvec(a), stored.matvec(a), atol=1e-14)
    np.testing.assert_allclose(grams.quad(a), stored.quad(a), atol=1e-14)


def test_threads_blocks_and_parts_change_nothing(monkeypatch):
    fitted = kernels.subset_gaussians(BLOCK + 100).fit(X[:40], "unit_trace")
    a, theta = rng.normal(size=40), rng.uniform(size=fitted.M)

    def everything():
        grams = fitted.lazy(cache=0)
        return grams.quad(a), grams.combine(theta), grams.matvec(a), grams.rows(3)

    many = everything()
    with threads.threads(1):
        alone = everything()
    monkeypatch.setattr(streams, "BATCH_ENTRIES", 1)  # a report after every few units
    batches = everything()
    for one, other, third in zip(alone, many, batches):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
    K = fitted.grams()
    np.testing.assert_allclose(alone[0], K.quad(a), rtol=1e-12)
    np.testing.assert_allclose(alone[1], K.combine(theta), rtol=1e-12)
    np.testing.assert_array_equal(alone[3], K.rows(3))


def test_a_sweep_says_how_far_it_is(monkeypatch):
    monkeypatch.setattr(streams, "BATCH_ENTRIES", 1)
    grams = kernels.subset_gaussians(3 * BLOCK).fit(X[:40]).lazy(cache=0)
    told: list[tuple[int, int]] = []
    for work in (
        lambda: grams.quad(X[:40, 0]),
        lambda: grams.combine(np.ones(grams.M)),
    ):
        told.clear()
        with listening(lambda done, total: told.append((done, total))):
            work()
        assert len(told) >= 2 and told[-1] == (grams.M, grams.M)
        assert told == sorted(told)


# ---- rounding ------------------------------------------------------------------------


def exact_quad(K, a):
    a = [Fraction(x) for x in a]
    rows = (sum(Fraction(k) * x for k, x in zip(row, a)) for row in K)
    return sum(x * y for x, y in zip(rows, a))


def test_errors_are_within_their_bounds():
    """One large number first, then many that are half a unit of it: they get lost."""
    fitted = (kernels.constant() + kernels.subset_gaussians(8)).fit(X, "unit_trace")
    grams, K = fitted.lazy(cache=0), fitted.grams().dense()
    lost = np.where(np.arange(70) % 40 == 0, 1.0, 0.99 * 2.0**-53)
    worst = 0.0
    for a in (rng.normal(size=70), lost):
        squares, products = grams.quad(a), grams.matvec(a)
        for m in range(grams.M):
            size = np.abs(a) @ np.abs(K[m]) @ np.abs(a)
            error = abs(float(Fraction(squares[m]) - exact_quad(K[m], a)))
            assert error <= gamma(grams._store.quad_chain(1)) * size
            row = [Fraction(k) * Fraction(x) for k, x in zip(K[m, 69], a)]
            off = abs(float(Fraction(products[m, 69]) - sum(row)))
            assert off <= gamma(grams.chain(70)) * (np.abs(K[m, 69]) @ np.abs(a))
            worst = max(worst, error / size)
    assert worst > 2.0**-53  # the bounds are of use


def test_chains_count_parts_and_tiles():
    few = Streams(Direct.of(kernels.gaussians([1, 2]).fit(X)), 0)
    n, WIDTH = 3000, streams.WIDTH
    many = Streams(few.kernels._replace(X=np.zeros((9, n)), roots=np.empty((0, n))), 0)
    tiles = -(-n * (n + 1) // 2 // WIDTH)
    bounds = many._bounds(streams.triangle(n), 2, 2)
    assert bounds[0] == 0 and bounds[-1] == tiles and len(bounds) > streams.UNITS
    assert many.quad_chain(1) >= np.diff(bounds).max() + len(bounds) + streams.DOT_CHAIN
    assert few.chain(10) > 10


@pytest.mark.parametrize("steps", STEPS)
def test_sizes_are_upper_bounds_and_do_not_depend_on_what_was_asked(steps):
    fitted = FAMILY.fit(X, steps)
    K = fitted.grams().dense()
    size, some = np.linalg.norm(K, axis=(1, 2)), np.arange(0, fitted.M, 2)
    one, other = fitted.lazy(cache=0), fitted.lazy(cache=0)
    other.subset(some).quad(X[:, 0])
    assert other._store.squares is None
    other.quad(X[:, 0])
    assert other._store.squares is not None
    found = one._store.root_sizes
    np.testing.assert_array_equal(found, other._store.root_sizes)
    assert np.all(found**2 >= size) and np.all(found**2 <= size * (1 + 1e-10))


# ---- memory --------------------------------------------------------------------------


def test_kernels_in_use_are_kept(monkeypatch):
    fitted = kernels.subset_gaussians(40).fit(X, "unit_trace")
    stored, grams = fitted.grams(), fitted.lazy(cache=10 * 8 * 70 * 71 // 2)
    fetched, fetch = list[int](), grams._store.cache.fetch

    def watched(index, P):
        fetched.extend(index)
        fetch(index, P)

    monkeypatch.setattr(grams._store.cache, "_fetch", lambda: watched)
    some, a = np.array([30, 2, 7, 5]), rng.normal(size=70)
    part, same = grams.subset(some), stored.subset(some)
    for ask in ("matvec", "quad"):  # a quad alone, as for pricing, keeps nothing
        np.testing.assert_array_equal(getattr(part, ask)(a), getattr(same, ask)(a))
    assert sorted(fetched) == sorted(some)
    grams.quad(a)  # too many to be kept
    assert len(fetched) == 4


def test_memory_does_not_grow_with_kernels_times_points():
    """M n = 4·10⁶ numbers are 32 MB, M n²/2 would be 3.2 GB."""
    M, n = 20_000, 200
    fitted = kernels.subset_gaussians(M).fit(rng.normal(size=(n, 4)), "unit_trace")
    a = rng.normal(size=n)
    tracemalloc.start()
    try:
        grams = fitted.lazy(cache=0)
        grams._store.quad(np.arange(M), a[:, None])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * M * n / 5  # bytes: a fifth of one array (M, n)


def test_it_survives_pickling():
    grams = FAMILY.fit(X, "spherical").lazy(cache="1MB")
    a = rng.normal(size=70)
    grams.quad(a)
    again = pickle.loads(pickle.dumps(grams))
    np.testing.assert_array_equal(again.quad(a), grams.quad(a))


# ---- digests and solvers -------------------------------------------------------------


def test_the_content_is_the_triangles_or_for_many_kernels_the_table(monkeypatch):
    fitted = FAMILY.fit(X, "spherical")
    streamed, stored = fitted.lazy(cache=0), fitted.grams()
    for one, other in zip(streamed.content(), stored.content(), strict=True):
        np.testing.assert_array_equal(one, other)
    y = np.sign(X[:, 0])

    def digest(X):
        grams = FAMILY.fit(X, "spherical").lazy(cache=0)
        return Problem(grams, y, "hinge", LpNorm(2.0)).digest()

    names = {FAMILY.fit(points).lazy()._store.identity() for points in (X, X, X + 1e-9)}
    assert len(names) == 2
    monkeypatch.setattr(streams, "CONTENT_NUMBERS", 0)
    monkeypatch.setattr(Streams, "triangle", None)  # nothing is computed
    assert digest(X) == digest(X) != digest(X + 1e-12)


def test_a_solve_is_that_of_stored_kernels():
    y = np.sign(X[:, 0] + 0.3 * X[:, 1])
    fitted = kernels.subset_gaussians(50).fit(X, "unit_trace")
    for cache in (0, "1MB"):
        streamed = Problem(fitted.lazy(cache), y, "hinge", LpNorm(p=4 / 3), 100.0)
        stored = streamed.with_(grams=fitted.grams())
        one, other = solve(streamed, tol=1e-7), solve(stored, tol=1e-7)
        assert one.status == other.status == "converged"
        assert one.certificate.lower <= other.certificate.upper
        assert other.certificate.lower <= one.certificate.upper


# ---- which kernels -------------------------------------------------------------------


def test_what_is_streamed_here():
    points = rng.normal(size=(20, 300))
    assert can_stream(FAMILY.fit(X, "unit_trace"))
    assert can_stream(kernels.gaussians(range(1, 20)).fit(points))  # one base for all
    assert not can_stream(kernels.gaussians([1, 2]).fit(points))
    assert can_stream(FAMILY.fit(X, ("spherical", "multiplicative")))
    assert not can_stream(FAMILY.fit(X, ("multiplicative", "unit_trace")))
    assert not can_stream(FAMILY.fit(X, "centre"))
    assert not can_stream(kernels.function(lambda A, B: A @ B.T).fit(X))
    assert not can_stream(kernels.from_distances(np.ones((3, 3)) - np.eye(3)))


@pytest.mark.parametrize("steps", ["multiplicative", ("spherical", "multiplicative")])
def test_variances_are_learned_in_a_sweep(steps):
    """The numbers of matrices up to rounding; then all entries have the same bits."""
    family = kernels.gaussians([0.7, "mean"], on="both") + kernels.polynomials([2, 3])
    by_matrices, fitted = family.fit(X, steps), family.fit(X, steps)
    K, grams = by_matrices.grams().dense(), fitted.lazy(0)
    assert isinstance(grams._store, Streams)
    for m in range(fitted.M):
        found, expected = fitted.learned[m], by_matrices.learned[m]
        np.testing.assert_allclose(found[len(expected) - 1], expected[max(expected)],
                                   rtol=1e-12)  # fmt: skip
        np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_array_equal(grams.dense(), fitted.grams().dense())
    np.testing.assert_allclose(grams.dense(), K, rtol=1e-11, atol=1e-12)
    weights = np.linspace(0, 1, fitted.M)
    summed = np.vstack(list(fitted.cross_sums(X[:9] + 1, weights)))
    crossed = by_matrices.cross(X[:9] + 1)
    np.testing.assert_allclose(summed, np.tensordot(weights, crossed, 1), rtol=1e-11)
    assert np.all(np.isfinite(grams.verify_psd())) and grams.proof == "theorem"


def test_what_a_kernel_learns_does_not_depend_on_the_others():
    family = kernels.subset_gaussians(40, seed=3)
    whole, parts = (family.fit(X, ("spherical", "multiplicative")) for _ in range(2))
    whole.learn()
    for some in (np.array([39, 3]), np.array([7])):
        parts.subset(some)
    parts.learn()
    assert whole.learned.steps[1].tobytes() == parts.learned.steps[1].tobytes()


def test_a_kernel_without_variance_is_named():
    points = np.column_stack([X[:, 0], np.ones(len(X))])
    family = kernels.gaussians(2, on="single")
    with pytest.raises(ValueError, match=r"kernel 1, gaussian\(2\) on x1, is the same"):
        family.fit(points, "multiplicative").lazy()


def test_entries_that_are_not_finite_are_refused():
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(
            ValueError, match=r"kernel 1, .* NaN or infinite entries; rescale"
        ),
    ):
        LazyStack(1e100 * X, kernels.polynomials([1, 2]))


def test_positive_semi_definite_by_theorem_without_a_matrix():
    X = np.random.default_rng(5).normal(size=(30, 4))
    fitted = kernels.subset_gaussians(12).fit(X, "unit_trace")
    lazy, stored = fitted.lazy(), fitted.grams()
    np.testing.assert_array_equal(lazy.verify_psd(), stored.verify_psd())
    assert lazy.proof == stored.proof == "theorem" and 0 < np.max(lazy.shift) < 1e-12
    part = fitted.lazy().subset(np.arange(3, 7))
    np.testing.assert_array_equal(part.verify_psd(), stored.shift[3:7])
