"""Kernels computed on demand: the same numbers, bounded memory, every solver."""

from __future__ import annotations

import pickle
import tracemalloc
from fractions import Fraction
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, LazyStack, Problem, kernels, solve
from mklopt.formulations import LpNorm
from mklopt.kernels import streaming as lazy
from mklopt.kernels.pairwise import distances
from mklopt.kernels.streaming import Cache
from mklopt.reference.contract_problems import STORE, Cell, small_cells, twonorm_cells
from mklopt.solvers import solvers, that_can
from mklopt.util import threads
from mklopt.util.rounding import gamma

rng = np.random.default_rng(11)
X = rng.normal(size=(150, 7))
Y = np.sign(X[:, 0] + 0.3 * rng.normal(size=150))
FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 2])
    + kernels.linear(on="single")
    + kernels.constant()
)
RBF: Any = "rbf"
STEPS = [None, "unit_trace", "spherical", "multiplicative", "centre"]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Several tiles of unequal size, shared out among threads."""
    monkeypatch.setattr(lazy, "TILE", 32)
    monkeypatch.setattr(threads, "MIN_SHARED_WORK", 0)
    with threads.threads(3):
        yield


@pytest.fixture
def tiled(monkeypatch):
    """Families by tiles, too, and not by compiled sweeps."""
    monkeypatch.setattr(lazy, "streams", lambda fitted, limit: None)


# ---- one matrix, whatever was asked for ----------------------------------------------


@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("steps", [*STEPS, ("centre", "spherical")])
def test_the_numbers_are_those_that_a_stored_stack_has(steps):
    if steps not in (None, "unit_trace", "spherical"):
        family = kernels.gaussians([0.7, "mean"], on="both") + kernels.polynomials(2)
    else:
        family = FAMILY
    fitted = family.fit(X, normalize=steps)
    K = fitted.grams().dense()
    grams = fitted.lazy(cache="100kB")
    np.testing.assert_array_equal(grams.dense(), K)
    np.testing.assert_array_equal(grams.diag(), K.diagonal(axis1=1, axis2=2))
    which = np.array([149, 0, 33, 33])
    for _ in range(2):  # computed, then kept
        np.testing.assert_array_equal(grams.rows(which), K[:, which])
    part = grams.subset(np.array([3, 1]))
    np.testing.assert_array_equal(part.rows(-1), K[[3, 1], -1])


@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("steps", STEPS)
def test_what_normalizations_learn_by_tiles_is_what_they_learn_at_once(steps):
    family = kernels.gaussians([0.7, "mean"], on="both") + kernels.polynomials(2)
    once, tiles = family.fit(X, steps), family.fit(X, steps)
    grams = tiles.lazy()
    K = once.grams().dense()
    top = np.max(np.abs(K), axis=(1, 2))[:, None, None]
    np.testing.assert_allclose(grams.dense() / top, K / top, atol=1e-13)
    np.testing.assert_allclose(
        tiles.cross(X[:9]) / top, once.cross(X[:9]) / top, atol=1e-12
    )
    np.testing.assert_array_equal(tiles.grams().dense(), grams.dense())


def test_a_sweep_learns_for_all_kernels_at_once():
    grams = kernels.gaussians(range(1, 7)).fit(X, "centre").lazy()
    assert grams.cache.misses == len(grams._store.grid)  # one sweep, one base


def test_threads_change_nothing(monkeypatch):
    points = rng.normal(size=(500, 3))  # large enough to be shared out
    y = np.sign(points[:, 0])

    def everything():
        grams = kernels.gaussians(["mean", 2], on="both").fit(points, "centre").lazy(0)
        return grams.dense(), grams.matvec(y), grams.quad(y)

    used = set()
    walk = lazy.Tiles._tile

    def watched(*at):
        used.add(get_ident())
        return walk(*at)

    monkeypatch.setattr(lazy.Tiles, "_tile", watched)
    many = everything()
    assert len(used) > 1
    with threads.threads(1):
        alone = everything()
    for one, other in zip(alone, many):
        np.testing.assert_array_equal(one, other)


# ---- operations ----------------------------------------------------------------------


def indexed(K):
    """Functions of sample numbers that look up given matrices."""
    at = [
        lambda A, B, k=k: k[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))] for k in K
    ]
    return LazyStack(np.arange(len(K[0]))[:, None], at, cache="200kB")


@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("kind", ["family", "functions"])
def test_operations_agree_with_their_definitions(kind):
    fitted = FAMILY.fit(X)
    K = fitted.grams().dense()
    grams = fitted.lazy("200kB") if kind == "family" else indexed(K)
    M, same = len(K), partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-9)
    a, A, B = rng.normal(size=150), rng.normal(size=(150, 2)), rng.normal(size=(M, 150))
    theta = rng.uniform(size=M)
    B[3] = 0.0
    theta[[0, 4]] = 0.0
    same(grams.matvec(a), K @ a)
    same(grams.matvec(A), K @ A)
    same(grams.quad(A), np.einsum("ik,mij,jk->m", A, K, A))
    same(grams.against(A @ A.T), np.einsum("mij,ij->m", K, A @ A.T))
    same(grams.apply(B), np.einsum("mij,mj->mi", K, B))
    same(grams.combine(theta), np.tensordot(theta, K, 1))
    np.testing.assert_array_equal(grams.combine(theta), grams.combine(theta).T)
    np.testing.assert_array_equal(grams.rows(np.array([140, 2])), K[:, [140, 2]])
    np.testing.assert_array_equal(grams.kernel(2), K[2])
    np.testing.assert_array_equal(grams.full().dense(), K)
    part = grams.subset(np.array([5, 2]))
    same(part.matvec(a), K[[5, 2]] @ a)
    same(part.combine(theta[:2]), np.tensordot(theta[:2], K[[5, 2]], 1))
    assert grams.storage == "lazy" and part.storage == "lazy"


@pytest.mark.usefixtures("tiled")
def test_large_results_have_fewer_parts(monkeypatch):
    fitted, A = FAMILY.fit(X), rng.normal(size=(150, 3))
    K = fitted.grams().dense()
    for spare in (1, 3 * K.shape[0] * 150 * 3 * 8):
        monkeypatch.setattr(lazy, "MAX_PARTIAL_BYTES", spare)
        np.testing.assert_allclose(fitted.lazy().matvec(A), K @ A, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("tiled")
def test_passes_count_the_numbers_of_the_tiles():
    grams = kernels.gaussians([1, 2, 3]).fit(X).lazy()
    grams.matvec(Y)
    share = (5 * 30 * 30 + 10 * 30 * 30) / 150**2  # tiles of the upper triangle
    assert grams.passes == pytest.approx(share)
    grams.rows(np.arange(15))
    assert grams.passes == pytest.approx(share + 0.1)


def test_the_digest_is_that_of_the_stored_kernels():
    fitted = FAMILY.fit(X)
    how = (Y, "hinge", LpNorm(2.0))
    assert (
        Problem(fitted.lazy(), *how).digest() == Problem(fitted.grams(), *how).digest()
    )


# ---- memory --------------------------------------------------------------------------


def test_what_was_used_last_is_kept_and_no_more_than_the_limit():
    cache, array = Cache(30 * 8), np.zeros(10)
    for key in "abc":
        cache.put((key,), array)
    assert cache.get(("a",)) is array and cache.used == 240
    cache.put(("d",), array)  # b has not been used for longest
    assert [cache.get((key,)) is not None for key in "abcd"] == [
        True,
        False,
        True,
        True,
    ]
    cache.put(("d",), np.zeros(5))
    assert cache.used == 200 and (cache.hits, cache.misses) == (4, 1)
    cache.put(("e",), np.zeros(31))
    assert cache.get(("e",)) is None and cache.used == 200


@pytest.mark.usefixtures("tiled")
def test_a_cache_for_half_of_the_tiles_saves_half_of_the_work():
    grams = kernels.gaussians([1, 2]).fit(X).lazy(cache=8 * 8 * 30 * 30)  # 8 of 15
    with threads.threads(1):  # with several, the order depends on their speed
        for _ in range(4):
            grams.matvec(Y)
    assert grams.cache.hits >= 3 * 6 and grams.cache.used <= grams.cache.limit


@pytest.mark.usefixtures("tiled")
def test_rows_are_computed_once():
    fitted = kernels.gaussians([1, 2]).fit(X)
    grams, K = fitted.lazy(), fitted.grams().dense()
    np.testing.assert_array_equal(grams.rows(np.arange(0, 150, 2)), K[:, ::2])
    np.testing.assert_array_equal(grams.rows(np.arange(150)), K)
    assert (grams.cache.hits, grams.cache.misses) == (75, 150)
    assert grams.cache.used == 150 * 150 * 8


@pytest.mark.usefixtures("tiled")
def test_bases_are_shared_by_kernels_on_the_same_features():
    grams = kernels.gaussians(range(1, 11)).fit(X).lazy()
    grams.matvec(Y)
    assert grams.cache.used == sum(
        8 * (a.stop - a.start) * (b.stop - b.start)
        for i, a in enumerate(grams._store.panels)
        for b in grams._store.panels[i:]
    )


def test_memory_is_the_cache_and_what_is_returned(monkeypatch):
    """n = 3000, M = 12: 432 MB as packed triangles, on 10 MB of cache."""
    monkeypatch.setattr(lazy, "TILE", 256)
    points = rng.normal(size=(3000, 8))
    fitted = kernels.gaussians([1, 2, 4], on="single").fit(points[:, :4], "centre")
    y, theta = np.sign(points[:, 0]), np.ones(12)
    tracemalloc.start()
    try:
        grams = fitted.lazy(cache="10MB")
        grams.matvec(y)
        grams.quad(y)
        grams.rows(np.arange(0, 3000, 300))
        small = tracemalloc.get_traced_memory()[1]
        grams.combine(theta)
        large = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert grams.M == 12 and 9e6 < grams.cache.used <= 10e6
    assert small < 10e6 + 25e6  # 3 threads with 4 tiles each, rows, products
    assert large < small + 8 * 3000**2 + 10e6


# ---- solvers and certificates --------------------------------------------------------


def lazily(problem: Problem) -> Problem:
    """The same kernels from their factors as features: exact on the contract's grid."""
    assert problem.grams.factors is not None
    features = dict(enumerate(problem.grams.factors))
    family = kernels.views(kernels.linear(), list(features))
    return problem.with_(grams=family.fit(features).lazy(cache="50kB"))


CHOSEN = {("hinge", repr(LpNorm(4 / 3))), ("logistic", "GroupLasso()")}


def cells_for(solver: str) -> list[Cell]:
    """The chosen ones, or the first that the solver can solve."""
    able = [
        cell
        for cell in [*twonorm_cells(), *small_cells()]
        if solver in that_can(cell.problem())
        and solvers()[solver].promise(cell.problem()) < np.inf
    ]
    wanted = [
        c for c in able if c.C == 1 and (c.loss.name, repr(c.formulation)) in CHOSEN
    ]
    return wanted or able[:1]


# Those that need factors have nothing to do with kernels that are computed on demand.
STREAMING = sorted(n for n, found in solvers().items() if found.losses != {"factors"})


@pytest.mark.parametrize("solver", STREAMING)
def test_every_solver_runs_on_it_and_meets_the_reference(solver, cell_counter):
    cells = cells_for(solver)
    assert cells, f"{solver} promises none of the contract problems; give it one"
    for cell in cells:
        problem, found = lazily(cell.problem()), STORE.load(cell.problem())
        assert found is not None
        tol = solvers()[solver].promise(problem)
        result = solve(problem, solver, tol=tol)
        assert result.status == "converged"
        certificate = result.certificate
        assert found.lower <= certificate.upper and certificate.lower <= found.upper
        cell_counter("run")


def test_positive_semi_definiteness_is_proved_and_the_enclosure_rests_on_nothing():
    fitted = kernels.gaussians([1.0, 3.0], on="both").fit(X[:60])
    how = (Y[:60], "hinge", LpNorm(2.0), 1.0)
    stored, found = GramStack(fitted), fitted.lazy()  # by Cholesky, by theorem
    assert 0 < np.max(found.verify_psd()) < np.max(stored.verify_psd()) < 1e-9
    assert (found.proof, stored.proof) == ("theorem", "Cholesky")
    result = solve(Problem(found, *how), tol=1e-8)
    assert result.certificate.assumptions == []
    other = solve(Problem(stored, *how), tol=1e-8).certificate
    assert other.lower <= result.certificate.upper
    assert result.certificate.lower <= other.upper


@pytest.mark.usefixtures("tiled")
def test_the_error_of_a_product_is_within_its_bound():
    """One large number first, then many that are half a unit of it: they get lost."""
    grams = (kernels.constant() + kernels.polynomials([2, 3])).fit(X).lazy()
    lost = np.where(np.arange(150) % 40 == 0, 1.0, 0.99 * 2.0**-53)
    for a in (rng.normal(size=150), lost):
        K, product = grams.dense(), grams.matvec(a)
        exact = [
            [float(sum(Fraction(x) * Fraction(y) for x, y in zip(row, a))) for row in k]
            for k in K[:, :20]
        ]
        error = np.abs(product[:, :20] - exact)
        size = (np.abs(K) @ np.abs(a))[:, :20]
        assert np.all(error <= gamma(grams.chain(150)) * size + 2.0**-53 * size)
    assert np.all(error[0] > 3 * 2.0**-53 * size[0])  # and the bound is of use


def test_new_points_in_blocks():
    fitted = kernels.gaussians([1.0, "mean"]).fit(X, "centre")
    result = solve(Problem(fitted.lazy(), Y, "hinge", LpNorm(2.0)), tol=1e-6)
    new = rng.normal(size=(23, 7))
    blocks = list(fitted.cross_blocks(new, size=10))
    assert [block.shape for block in blocks] == [
        (2, 10, 150),
        (2, 10, 150),
        (2, 3, 150),
    ]
    pieces = np.concatenate([result.decision(block) for block in blocks])
    np.testing.assert_allclose(pieces, result.decision(fitted.cross(new)), rtol=1e-12)


def test_views_and_functions_together():
    views = {"a": X[:, :3], "b": X[:, 3:]}

    def cosine(A, B):
        return A @ B.T / np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1))

    parts = [kernels.function(cosine), kernels.gaussians([1, 2])]
    grams = LazyStack(views, kernels.views(parts, ["b", "a"]), normalize="unit_trace")
    assert grams.kernels.names == ["b: cosine", "a: gaussian(1)", "a: gaussian(2)"]
    np.testing.assert_allclose(grams.kernel(0), cosine(X[:, 3:], X[:, 3:]) / 150)
    np.testing.assert_allclose(grams.diag(), 1 / 150)


def test_distances_are_not_copied_into_kernels():
    D = distances(X, X)
    fitted = kernels.from_distances([D, np.sqrt(D)])
    np.testing.assert_array_equal(fitted.lazy().dense(), fitted.grams().dense())


def test_it_survives_pickling():
    grams = FAMILY.fit(X).lazy()
    again = pickle.loads(pickle.dumps(grams))
    np.testing.assert_array_equal(again.matvec(Y), grams.matvec(Y))


# ---- wrong input ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "attempt, words",
    [
        (lambda: LazyStack(X, FAMILY, cache="many"), "cache = 'many'; give a number"),
        (lambda: LazyStack(X, FAMILY, cache="1.2.3MB"), "cache = '1.2.3MB'"),
        (lambda: LazyStack(X, FAMILY, cache=-5), "cache = -5"),
        (lambda: LazyStack(X, "gaussian"), "kernels = 'gaussian'; give a family"),
        (lambda: LazyStack(X, []), r"kernels = \[\]; give a family"),
        (lambda: LazyStack(X, 3), "kernels = 3; give a family"),
        (lambda: LazyStack(X * np.nan, FAMILY), "X has missing"),
        (lambda: LazyStack(X, [lambda A, B: A @ B.T - 9]), "negative k"),
        (lambda: LazyStack(X, lambda A, B: A[:, 0]), r"has shape .* expected \(64, 64"),
        (
            lambda: LazyStack(X, lambda A, B: A[:, :1] - B[:, 0] + 9).quad(Y),
            "symmetric",
        ),
        (lambda: LazyStack(1e200 * X, kernels.polynomials(1)).quad(Y), "NaN or inf"),
        (lambda: kernels.function(RBF), "k = 'rbf'; give a function"),
        (lambda: list(FAMILY.fit(X).cross_blocks(X, size=0)), "size = 0"),
    ],
)
def test_wrong_requests_get_one_clear_sentence(attempt, words):
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match=words),
    ):
        attempt()


def test_results_do_not_depend_on_earlier_sweeps(monkeypatch):
    monkeypatch.setattr(lazy, "TILE", 8)  # many tiles in each part
    X = np.random.default_rng(0).normal(size=(200, 3))
    stack = LazyStack(X, kernels.gaussians([1, 3]))
    a = np.random.default_rng(1).normal(size=200)
    for operation in (stack.quad, stack.matvec):
        first = np.array(operation(a))
        stack.forget()
        np.testing.assert_array_equal(first, operation(a))
        stack.forget()
