"""Low-rank kernels: what features multiply out to, ranks, traces, new points."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from mklopt import Problem, kernels, solve
from mklopt.formulations import LpNorm
from mklopt.kernels import low_rank
from mklopt.kernels.feature_maps import Fourier
from mklopt.util import threads

rng = np.random.default_rng(8)
X = rng.normal(size=(260, 4))
Y = np.sign(X[:, 0] * X[:, 1] + 0.2)
GAUSSIANS = kernels.gaussians([1, "mean", 6])
MIXED = (
    kernels.gaussians([2, "mean"], on="both")
    + kernels.polynomials([1, 2], offset=0.5)
    + kernels.linear(on="single")
    + kernels.constant()
)
WORD: Any = "gaussian"
STEPS = [None, "unit_trace", "spherical", ("spherical", "unit_trace")]


def side_by_side(grams) -> np.ndarray:
    """(n, R): all factors of a stack."""
    return np.hstack(list(grams.factors))


def distance(grams, K):
    """The largest error of an entry of each kernel, relative to its largest entry."""
    tops = np.max(np.abs(K), axis=(1, 2))
    apart = [np.max(np.abs(grams.kernel(m) - K[m])) for m in range(len(K))]
    return np.array(apart) / tops


# ---- what features multiply out to ---------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
def test_all_points_as_landmarks_give_the_kernels_themselves(steps):
    fitted = kernels.nystroem(MIXED, rank=260).fit(X, steps)
    K = MIXED.fit(X, steps).grams().dense()
    assert np.max(distance(fitted.grams(), K)) < 1e-7
    np.testing.assert_allclose(fitted.lost_trace, 0.0, atol=1e-7)
    assert fitted.names == MIXED.fit(X).names


@pytest.mark.parametrize("steps", STEPS)
def test_nystroem_is_exact_between_landmarks_and_all_points(steps):
    some = np.array([3, 50, 51, 120, 259])
    way = kernels.nystroem(GAUSSIANS, rank=9, landmarks=some)
    fitted, K = way.fit(X, steps), GAUSSIANS.fit(X, steps).grams().dense()
    np.testing.assert_array_equal(fitted.landmarks, some)
    for m in range(3):
        low = fitted.grams().kernel(m)
        np.testing.assert_allclose(low[some], K[m][some], atol=1e-9 * K[m].max())
        residual = np.linalg.eigvalsh(K[m] - low)
        assert residual[0] > -1e-9 * K[m].max()  # K̃ ⪯ K, but for rounding
        lost = np.sum(residual) / np.trace(K[m])
        assert fitted.lost_trace[m] == pytest.approx(lost, abs=1e-9)
    assert fitted.ranks.max() <= 5 and fitted.ranks.sum() == fitted.R


def test_random_features_are_unbiased():
    means = []
    for seed in range(30):
        family = kernels.random_features(GAUSSIANS, 100, seed=seed)
        means.append(family.fit(X[:20]).grams().dense())
    K = GAUSSIANS.fit(X[:20]).grams().dense()
    error = np.abs(np.mean(means, axis=0) - K)
    standard = np.std(means, axis=0) / np.sqrt(30) + 1e-12
    assert np.mean(error > 2 * standard) < 0.1 and np.max(error / standard) < 6
    one = kernels.random_features(GAUSSIANS, 100, seed=3).fit(X)
    np.testing.assert_allclose(one.lost_trace, 0.0, atol=1e-12)
    assert "the trace says nothing" in str(one) and one.ranks.tolist() == [100] * 3


def test_widths_have_different_frequencies_and_seeds_repeat():
    first, again = (kernels.random_features(GAUSSIANS, 8).fit(X) for _ in range(2))
    other = kernels.random_features(GAUSSIANS, 8, seed=1).fit(X)
    F = first.cross_features(X)
    assert F.tobytes() == again.cross_features(X).tobytes()
    assert not np.any(other.cross_features(X) == F)
    maps: Any = first.maps
    scaled = [m.omega * s for m, s in zip(maps[::2], (1, 6))]
    assert not np.any(np.isclose(scaled[0], scaled[1]))


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("offset", [0.0, 0.7])
@pytest.mark.parametrize("steps", STEPS)
def test_explicit_features_are_exact(degree, offset, steps):
    family = kernels.polynomials(degree, "both", offset=offset)
    fitted = kernels.explicit(family).fit(X, steps)
    K = family.fit(X, steps).grams().dense()
    assert np.max(distance(fitted.grams(), K)) < 1e-13
    np.testing.assert_allclose(fitted.lost_trace, 0.0, atol=1e-12)


def test_one_hot_columns_are_features_of_a_linear_kernel():
    codes = np.eye(3)[rng.integers(0, 3, 50)]
    fitted = kernels.explicit(kernels.linear()).fit(scipy.sparse.csr_matrix(codes))
    np.testing.assert_array_equal(side_by_side(fitted.grams()), codes)


def test_kernels_of_few_monomials_are_always_explicit():
    for make in (kernels.nystroem, kernels.random_features):
        fitted = make(kernels.linear() + kernels.constant() + GAUSSIANS, 20).fit(X)
        assert fitted.ranks.tolist()[:2] == [4, 1]
        np.testing.assert_allclose(fitted.lost_trace[:2], 0.0, atol=1e-14)


def test_views_and_functions_have_landmarks():
    own = kernels.function(lambda A, B: np.exp(-np.abs(A[:, :1] - B[:, 0])), "laplace")
    family = kernels.views([own, kernels.gaussians(2)], {"a": [0], "b": [1, 3]})
    fitted = kernels.nystroem(family, 260).fit(X)
    K = family.fit(X).grams().dense()
    assert np.max(distance(fitted.grams(), K)) < 1e-7
    two = {"a": X[:, :1], "b": X[:, [1, 3]]}
    named = kernels.nystroem(kernels.views(GAUSSIANS, two), 30).fit(two)
    assert named.M == 6 and named.cross_features(two).shape == (260, named.R)


def test_copies_of_points_lower_the_rank():
    fitted = kernels.nystroem(kernels.gaussians(1), 40).fit(np.repeat(X[:10], 5, 0))
    assert fitted.ranks.tolist() == [10] and "10 features" in str(fitted)


def test_the_lost_trace_falls_with_the_rank():
    lost = [kernels.nystroem(kernels.gaussians(1), r).fit(X).lost_trace[0]
            for r in (5, 20, 80, 240)]  # fmt: skip
    assert lost == sorted(lost, reverse=True) and lost[0] > 0.5 > 0.05 > lost[-1] > 0


# ---- storage, blocks, threads --------------------------------------------------------


def test_single_precision_rounds_the_factors():
    fitted = kernels.nystroem(GAUSSIANS, 30).fit(X)
    double, single = fitted.grams(), fitted.grams(dtype="float32")
    assert single.dtype == np.float32 and single.storage == "factors"
    a, b = side_by_side(double), side_by_side(single)
    np.testing.assert_array_equal(a.astype(np.float32), b)
    with pytest.raises(ValueError, match="dtype = 'float16'; did you mean 'float64'"):
        fitted.grams(dtype="float16")


def test_blocks_and_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(low_rank, "BLOCK", 64)
    monkeypatch.setattr(threads, "MIN_SHARED_WORK", 0)
    for way in (kernels.nystroem(MIXED, 30), kernels.random_features(MIXED, 30)):
        found = []
        for k in (1, 3):
            with threads.threads(k):
                fitted = way.fit(X, "unit_trace")
                grams = fitted.grams()
                found += [side_by_side(grams).tobytes(), fitted.lost_trace[0]]
        assert found[:2] == found[2:]


def test_five_widths_compute_their_distances_once(monkeypatch):
    calls = []
    plain = low_rank.fill_pairs
    monkeypatch.setattr(low_rank, "fill_pairs", lambda *a: calls.append(plain(*a)))
    kernels.nystroem(kernels.gaussians([1, 2, 3, 4, 5]), 20).fit(X).grams()
    assert len(calls) == 1


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("make", [kernels.nystroem, kernels.random_features])
def test_training_points_as_new_points_have_their_features(steps, make):
    fitted = make(MIXED, 40).fit(X, steps)
    F = side_by_side(fitted.grams())
    np.testing.assert_allclose(fitted.cross_features(X[7:99]), F[7:99], atol=1e-11)
    pieces = list(fitted.cross_blocks(X, size=100))
    assert [len(piece) for piece in pieces] == [100, 100, 60]
    np.testing.assert_allclose(np.concatenate(pieces), F, atol=1e-11)


def test_decisions_from_features_are_those_from_kernels():
    fitted = kernels.nystroem(GAUSSIANS, 30).fit(X)
    result = solve(Problem(fitted.grams(), Y, "hinge", LpNorm(p=2)), tol=1e-6)
    new = rng.normal(size=(17, 4))
    F = fitted.cross_features(new)
    ends = fitted.ends
    parts = zip(ends[:-1], ends[1:], result.problem.grams.factors)
    K = np.stack([F[:, i:j] @ L.T for i, j, L in parts])
    np.testing.assert_allclose(result.decision(F), result.decision(K), atol=1e-9)
    with pytest.raises(ValueError, match=r"expected .n_test, "):
        result.decision(F[:, :-1])


def test_compact_kernels_keep_landmarks_alone_and_give_the_same_features():
    fitted = kernels.nystroem(MIXED, 15).fit(X, "unit_trace")
    active = np.array([1, 4, 9])
    part, whole = fitted.compact(active), fitted.subset(active)
    new = rng.normal(size=(11, 4))
    F = fitted.cross_features(new)
    keep = np.isin(np.repeat(np.arange(fitted.M), fitted.ranks), active)
    np.testing.assert_allclose(part.cross_features(new), F[:, keep], atol=1e-12)
    np.testing.assert_allclose(whole.cross_features(new), F[:, keep], atol=1e-12)
    assert part.n == 15 and part.names == [fitted.names[m] for m in active]
    assert len(pickle.dumps(part)) < len(pickle.dumps(whole)) / 2
    with pytest.raises(ValueError, match="for new points alone"):
        part.grams()
    mask = np.zeros(fitted.M, bool)
    mask[active] = True
    assert fitted.compact(mask).names == part.names


def test_landmarks_expand_a_point_in_feature_space():
    fitted = kernels.nystroem(GAUSSIANS, 25).fit(X, "unit_trace")
    w, F = rng.normal(size=fitted.R), side_by_side(fitted.grams())
    K = GAUSSIANS.fit(X, "unit_trace").grams().dense()
    for m in range(3):
        own = slice(fitted.ends[m], fitted.ends[m + 1])
        beta = fitted.expansion(m, w[own])
        f = K[m][:, fitted.landmarks] @ beta
        np.testing.assert_allclose(f, F[:, own] @ w[own], atol=1e-8 * np.abs(f).max())


# ---- Laplacian kernels ---------------------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
def test_laplacians_have_landmarks_and_random_features(steps):
    family = kernels.laplacians([1, 4], on="both")
    K = family.fit(X, steps).grams().dense()
    near = kernels.nystroem(family, rank=260).fit(X, steps)
    assert np.max(distance(near.grams(), K)) < 1e-7
    waves = kernels.random_features(family, count=8000).fit(X, steps)
    # each entry is a mean of 4000 numbers in [−1, 1]: six standard deviations
    assert np.max(distance(waves.grams(), K)) < 6 / np.sqrt(4000)
    some = waves.cross_features(X[:7])
    np.testing.assert_allclose(some, side_by_side(waves.grams())[:7], atol=1e-14)


def test_a_width_of_a_laplacian_scales_its_frequencies():
    narrow, wide = (
        kernels.random_features(kernels.laplacians(s), 6).fit(X).maps[0]
        for s in (0.5, 2.0)
    )
    assert isinstance(narrow, Fourier) and isinstance(wide, Fourier)
    np.testing.assert_allclose(narrow.omega, 4 * wide.omega)


# ---- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: kernels.nystroem(WORD, 5), "family = 'gaussian'; give a family"),
        (lambda: kernels.nystroem(GAUSSIANS, 0), "rank = 0; give a whole number"),
        (lambda: kernels.nystroem(GAUSSIANS, 5, seed=-1), "seed = -1"),
        (lambda: kernels.nystroem(GAUSSIANS, 5, landmarks="all"), "give numbers of ro"),
        (lambda: kernels.nystroem(GAUSSIANS, 5, landmarks=[]), "give numbers of rows"),
        (lambda: kernels.random_features(GAUSSIANS, 5), "count = 5; give an even"),
        (
            lambda: kernels.nystroem(GAUSSIANS, 5, landmarks=[0, 260]).fit(X),
            "landmarks are rows 0 to 260; X has the rows 0 to 259",
        ),
        (
            lambda: kernels.random_features(kernels.polynomials(3), 4).fit(X),
            "polynomial.3., is not Gaussian or Laplacian",
        ),
        (lambda: kernels.explicit(GAUSSIANS).fit(X), "has no explicit features"),
        (
            lambda: kernels.nystroem(GAUSSIANS, 5).fit(X).cross_features(X[:, :2]),
            "X_new has columns .2. in its views",
        ),
        (
            lambda: kernels.nystroem(GAUSSIANS, 5).fit(X, "centre"),
            "needs whole kernel matrices",
        ),
        (
            lambda: kernels.explicit(kernels.linear()).fit(1e300 * X).grams("float32"),
            "features are too large",
        ),
        (
            lambda: kernels.random_features(GAUSSIANS, 4).fit(X).expansion(0, X[:4]),
            "has no landmarks",
        ),
    ],
)
def test_wrong_input_gets_one_clear_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_sparse_matrices_are_made_dense_if_they_are_not_too_large(monkeypatch):
    S = scipy.sparse.csr_matrix(X * (X > 0))
    way = kernels.nystroem(GAUSSIANS, 20)
    F = way.fit(S).cross_features(S)
    assert F.tobytes() == way.fit(S.toarray()).cross_features(S.toarray()).tobytes()
    family = kernels.views(kernels.linear(), ["a", "b"])
    both = kernels.explicit(family).fit({"a": S, "b": X})
    assert both.ranks.tolist() == [4, 4]
    monkeypatch.setattr(low_rank, "DENSE_BYTES", 1000)
    with pytest.raises(ValueError, match=r"sparse with shape .* too large to be dense"):
        way.fit(S)
