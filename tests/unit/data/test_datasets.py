"""Data sets: generators against their mathematics, files, OpenML, and its absence."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from mklopt import data
from mklopt.data import datasets
from mklopt.data.datasets import DataNotFound, Dataset, load

N = 100_000
SIGMAS = 4.5  # how many standard errors a Monte Carlo mean may be off


def close(rate, expected, n=N):
    return abs(rate - expected) < SIGMAS * np.sqrt(expected * (1 - expected) / n)


# ---- generators ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["twonorm", "ringnorm", "waveform"])
def test_a_seed_gives_the_same_bits_and_another_seed_does_not(name):
    first, again, other = (load(name, n=60, seed=s) for s in (4, 4, 5))
    assert first.X.tobytes() == again.X.tobytes() and np.all(first.y == again.y)
    assert first.X.shape[0] == 60 and first.X.tobytes() != other.X.tobytes()


def test_twonorm_has_its_moments_and_bayes_error():
    d = load("twonorm", n=N, seed=1)
    assert d.kind == "binary" and d.X.shape == (N, 20)
    for label in (-1, 1):
        X = d.X[d.y == label]
        np.testing.assert_allclose(X.mean(axis=0), label * 2 / np.sqrt(20), atol=0.025)
        np.testing.assert_allclose(np.cov(X.T), np.eye(20), atol=0.03)
    assert close(np.mean(d.y == 1), 0.5)
    error = np.mean(np.sign(d.X.sum(axis=1)) != d.y)  # the Bayes rule
    assert close(error, ndtr(-2.0)) and round(100 * ndtr(-2.0), 1) == 2.3


def test_ringnorm_has_its_moments_and_breimans_bayes_error():
    d, a = load("ringnorm", n=N, seed=2), 2 / np.sqrt(20)
    wide, narrow = d.X[d.y == 1], d.X[d.y == -1]
    np.testing.assert_allclose(wide.mean(axis=0), 0.0, atol=0.045)
    np.testing.assert_allclose(np.cov(wide.T), 4 * np.eye(20), atol=0.12)
    np.testing.assert_allclose(narrow.mean(axis=0), a, atol=0.025)
    np.testing.assert_allclose(np.cov(narrow.T), np.eye(20), atol=0.03)
    log_wide = -np.sum(d.X**2, axis=1) / 8 - 20 * np.log(2)
    log_narrow = -np.sum((d.X - a) ** 2, axis=1) / 2
    error = np.mean(np.where(log_wide > log_narrow, 1, -1) != d.y)
    assert close(error, 0.0125)  # Breiman: 1.3 %; a = 1/√20 would give 1.5 %
    assert not close(error, 0.0150)


def test_waveform_has_its_triangles_and_bayes_error():
    d = load("waveform", n=30_000, seed=3)
    assert d.kind == "classes" and d.X.shape == (30_000, 21)
    i = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - abs(i - c), 0) for c in (7, 15, 11))
    pairs = [(h1, h2), (h1, h3), (h2, h3)]
    scores = []
    for label, (a, b) in enumerate(pairs):
        X, slope = d.X[d.y == label], (a - b).astype(float)
        # Without noise u a + (1 − u) b: mean (a + b)/2, covariance slope slopeᵀ/12.
        np.testing.assert_allclose(X.mean(axis=0), (a + b) / 2, atol=0.1)
        covariance = np.eye(21) + np.outer(slope, slope) / 12
        np.testing.assert_allclose(np.cov(X.T), covariance, atol=0.25)
        # ∫ N(x; b + u slope, I) du over (0, 1) is a Gaussian integral in u.
        s2 = slope @ slope
        best = (d.X - b) @ slope / s2
        rest = np.sum((d.X - b - best[:, None] * slope) ** 2, axis=1)
        mass = ndtr((1 - best) * np.sqrt(s2)) - ndtr(-best * np.sqrt(s2))
        tail = log_ndtr(-np.maximum(-best, best - 1) * np.sqrt(s2))  # where it is 0
        log_mass = np.where(mass > 1e-12, np.log(np.maximum(mass, 1e-300)), tail)
        scores.append(-rest / 2 + log_mass - np.log(s2) / 2)
    error = np.mean(np.argmax(scores, axis=0) != d.y)
    assert abs(error - 0.14) < 0.01  # CART: 14 %


@pytest.mark.parametrize("nu, ones", [(0.0, 50), (0.64, 18), (0.92, 4), (0.98, 1)])
def test_kloft_toy_has_the_means_of_the_paper_and_one_bayes_error(nu, ones):
    d = load("kloft_toy", n=20_000, nu=nu, seed=6)
    assert d.X.shape == (20_000, 50) and np.sum(d.y == 1) == 10_000
    mean = 1.75 / np.sqrt(ones) * (np.arange(50) < ones)
    np.testing.assert_allclose((d.X * d.y[:, None]).mean(axis=0), mean, atol=0.035)
    residual = d.X - d.y[:, None] * mean
    np.testing.assert_allclose(np.cov(residual.T), np.eye(50), atol=0.05)
    error = np.mean(np.sign(d.X @ mean) != d.y)
    assert close(error, ndtr(-1.75), 20_000)
    assert np.linalg.norm(mean) == pytest.approx(1.75)


def test_orabona_toy_has_three_views_for_one_class_each_and_one_for_all():
    d = load("orabona_toy", n=3000, seed=7)
    np.testing.assert_array_equal(d.y, np.repeat([0, 1, 2], 1000))
    np.testing.assert_array_equal(d.X, np.hstack(list(d.views.values())))
    for view, special in zip(("view 1", "view 2", "view 3"), (2, 0, 1)):
        means = np.array([d.views[view][d.y == c].mean(axis=0) for c in range(3)])
        same = [c for c in range(3) if c != special]
        np.testing.assert_allclose(means[same[0]], means[same[1]], atol=0.2)
        assert np.linalg.norm(means[special] - means[same[0]]) == pytest.approx(
            5, abs=0.2
        )
    means = np.array([d.views["view 4"][d.y == c].mean(axis=0) for c in range(3)])
    sides = [np.linalg.norm(means[i] - means[i - 1]) for i in range(3)]
    np.testing.assert_allclose(sides, 10.0, atol=0.2)


def test_orabona_toy_selects_the_kernels_that_the_paper_reports():
    """One against all picks two kernels per class, the joint problem the fourth."""
    import mklopt
    from mklopt import kernels
    from mklopt.formulations import BlockL1

    d = load("orabona_toy", n=60)
    K = np.stack(list(kernels.views(kernels.gaussians("mean"), d.views).fit(d.views)))

    def selected(y, loss, bias):
        problem = mklopt.Problem(K, y, loss, BlockL1(), C=6 / 60, bias=bias)
        weights = mklopt.reference.solve(problem).weights
        return set(np.flatnonzero(weights > 1e-3 * weights.sum()) + 1)

    assert selected(d.y, "multiclass_hinge", False) == {4}
    for label, kernel in enumerate((2, 3, 1)):
        y = np.where(d.y == label, 1.0, -1.0)
        assert selected(y, "hinge", True) == {kernel, 4}


@pytest.mark.parametrize(
    "name, options, words",
    [
        ("kloft_toy", {"n": 51}, "even n"),
        ("kloft_toy", {"nu": 1.0}, "at least 1"),
        ("kloft_toy", {"nu": 0.005}, "whole number of informative"),
        ("orabona_toy", {"n": 100}, "multiple of 3"),
        ("twonorm", {"n": 0}, "n = 0; give a whole number"),
        ("ringnorm", {"n": 2.5}, "n = 2.5"),
        ("twonorm", {"size": 3}, "twonorm has no option size; it takes n, seed"),
        ("iris", {"n": 3}, "iris has no option n; it takes nothing"),
    ],
)
def test_wrong_options_get_one_clear_sentence(name, options, words):
    with pytest.raises(ValueError, match=words):
        load(name, **options)


# ---- sets of scikit-learn, names, and the Dataset itself ----------------------------


@pytest.mark.parametrize(
    "name, shape, kind, counts",
    [
        ("wdbc", (569, 30), "binary", [357, 212]),
        ("wine", (178, 13), "classes", [59, 71, 48]),
        ("iris", (150, 4), "classes", [50, 50, 50]),
        ("digits", (1797, 64), "classes", None),
        ("diabetes", (442, 10), "real", None),
    ],
)
def test_built_in_sets(name, shape, kind, counts):
    d = load(name)
    assert d.X.shape == shape and d.kind == kind and "scikit-learn" in d.source
    if counts:
        assert np.unique(d.y, return_counts=True)[1].tolist() == counts
    if name == "wdbc":  # malignant, the smaller class with the larger cells, is +1
        assert d.X[d.y == 1, 0].mean() > d.X[d.y == -1, 0].mean()


@pytest.mark.parametrize("name", ["wdbc", "wine", "iris"])
def test_sets_from_files_have_the_bits_of_scikit_learn(name, monkeypatch):
    quick = load(name)
    monkeypatch.setattr(datasets, "_FILES", {})
    slow = load(name)
    assert quick.X.tobytes() == slow.X.tobytes() and quick.X.flags.c_contiguous
    assert quick.y.dtype == slow.y.dtype and quick.y.tobytes() == slow.y.tobytes()
    assert quick.source == slow.source


def test_the_first_set_of_the_readme_does_not_wait_for_scikit_learn():
    code = "import sys; from mklopt import data; data.load('wdbc')"
    code += "; sys.exit('sklearn' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_names_are_known_and_near_misses_are_recognized():
    assert {"wdbc", "ringnorm", "kloft_toy", "pima", "mfeat"} <= set(data.names())
    assert data.names() == sorted(set(data.names()))
    with pytest.raises(
        DataNotFound, match="'Ringnom' is not known; did you mean 'ringnorm'"
    ):
        load("Ringnom")
    with pytest.raises(LookupError, match="'zzz' is not known; choose one of 100"):
        load("zzz")


@pytest.mark.parametrize(
    "name, words",
    [
        ("twonorm", "exact distribution"),
        ("iris", "classes labels, comes with scikit-learn"),
        ("pima", "768 × 8, binary labels, MKLOPT_DATA or OpenML"),
    ],
)
def test_every_set_is_described_in_one_line(name, words):
    assert words in datasets.one_line(name)


def test_splits_are_disjoint_complete_and_repeatable():
    d = load("orabona_toy", n=30)
    train, test = d.split(0.7, seed=3)
    assert len(train.y) == 21 and len(test.y) == 9
    rows = np.vstack([train.X, test.X])
    assert {r.tobytes() for r in rows} == {r.tobytes() for r in d.X}
    np.testing.assert_array_equal(train.views["view 2"], train.X[:, 2:4])
    again, other = d.split(21, seed=3)[0], d.split(21, seed=4)[0]
    assert again.X.tobytes() == train.X.tobytes() != other.X.tobytes()
    for size in (0, 30, 1.0, 0.001):
        with pytest.raises(ValueError, match="side of the split empty"):
            d.split(size)


def test_standardized_uses_training_statistics_and_spares_constants():
    X = np.column_stack([np.arange(8.0) * 1e6, np.full(8, 0.1), np.arange(8.0) ** 2])
    d = Dataset("mine", X, np.tile([-1, 1], 4), {"part": X[:, 1:]})
    train, test = d.split(5, seed=0)
    scaled, other = train.standardized(), test.standardized(by=train)
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(scaled.X.std(axis=0), [1, 0, 1], atol=1e-14)
    mean, std = train.X.mean(axis=0), train.X.std(axis=0)
    np.testing.assert_allclose(other.X[:, 0], (test.X[:, 0] - mean[0]) / std[0])
    np.testing.assert_array_equal(other.X[:, 1], 0.0)
    np.testing.assert_array_equal(other.views["part"], other.X[:, 1:])
    with pytest.raises(ValueError, match="other features"):
        load("iris").standardized(by=d)


def test_datasets_are_read_only_and_checked():
    d = load("twonorm", n=5)
    with pytest.raises(ValueError, match="read-only"):
        d.X[0, 0] = 1.0
    with pytest.raises(AttributeError):
        d.name = "other"  # type: ignore[misc]
    X = np.ones((3, 2))
    wrong: list[tuple[tuple, str]] = [
        ((X, [0, 1, 1]), r"y of mine .*values such as \[0. 1.\]; expected binary"),
        ((X, [1, -1]), r"X of mine has shape \(3, 2\).*the 2 labels"),
        ((X * np.nan, [1, -1, 1]), "X of mine has missing"),
        ((X, [1, -1, 1], {"v": X[:2]}), "v of mine has shape"),
        ((X, [0, 1, 0.5], {}, "classes"), "expected classes labels"),
        ((X, [0, 1, 2], {}, "multi"), "kind = 'multi'; choose one of binary"),
    ]
    for arguments, words in wrong:
        with pytest.raises(ValueError, match=words):
            Dataset("mine", *arguments)


# ---- files --------------------------------------------------------------------------

needs_files = pytest.mark.skipif(
    not os.environ.get("MKLOPT_DATA"), reason="MKLOPT_DATA is not set: no UCI files"
)


@needs_files
@pytest.mark.parametrize("name", sorted(datasets._TABLES))
def test_files_of_the_data_folder(name):
    if not os.path.exists(os.path.join(os.environ["MKLOPT_DATA"], f"{name}.npz")):
        pytest.skip(f"MKLOPT_DATA has no {name}.npz")
    d, table = load(name), datasets._TABLES[name]
    assert d.X.shape == table.shape and d.X.dtype == float
    labels = [-1, 1] if d.kind == "binary" else list(range(len(table.labels)))
    assert np.unique(d.y).tolist() == labels
    if table.test:
        assert load(name, part="test").X.shape == (table.test, table.shape[1])
    if name == "mfeat":
        assert list(d.views) == ["fou", "fac", "kar", "pix", "zer", "mor"]
        assert [v.shape[1] for v in d.views.values()] == [76, 216, 64, 240, 47, 6]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLOPT_DATA", str(tmp_path))
    return tmp_path


def test_a_file_of_ones_own(folder):
    X, y = np.arange(8).reshape(4, 2), np.array([1, -1, 1, 1])
    np.savez(folder / "pima.npz", X=X.astype(np.int16), y=y.astype(np.int8))
    d = load("pima")
    np.testing.assert_array_equal(d.X, X)
    np.testing.assert_array_equal(d.y, y)
    assert d.source == "pima.npz" and d.X.dtype == d.y.dtype == float


def test_an_official_test_set_is_a_part_of_the_file(folder):
    X, y = np.arange(8).reshape(4, 2), np.array([1, -1, 1, 1])
    np.savez(folder / "a9a.npz", X=X, y=y, X_test=X[:2] + 10, y_test=y[:2])
    np.testing.assert_array_equal(load("a9a").X, X)
    test = load("a9a", part="test")
    np.testing.assert_array_equal(test.X, X[:2] + 10)
    np.testing.assert_array_equal(test.y, y[:2])
    with pytest.raises(ValueError, match="choose one of train, test"):
        load("a9a", part="both")
    with pytest.raises(ValueError, match="a8a has no option part"):
        load("a8a", part="test")


def write_text(path):
    path.write_text("no archive")


def write_half(path):
    np.savez(path, X=np.eye(200), y=np.ones(200))
    path.write_bytes(path.read_bytes()[:5000])


def write_npy(path):
    with open(path, "wb") as file:
        np.save(file, np.eye(3))


@pytest.mark.parametrize(
    "write, words",
    [
        (write_text, "sonar.npz is not a NumPy archive .* write it again"),
        (write_half, "sonar.npz is not a NumPy archive"),
        (write_npy, "sonar.npz is not a NumPy archive"),
        (
            lambda p: np.savez(p, X=np.eye(2), z=1),
            "numbers X, y .it has the arrays X, z",
        ),
        (lambda p: np.savez(p, X=np.array([{}]), y=[1]), "archive of plain numbers"),
        (lambda p: np.savez(p, X=np.eye(2), y=[0, 1]), "expected binary labels"),
    ],
)
def test_broken_files_get_one_clear_sentence(folder, write, words):
    write(folder / "sonar.npz")
    with pytest.raises(ValueError, match=words):
        load("sonar")


@pytest.mark.parametrize("name", ["mnist5k", "wpbc", "german", "a1a", "mnist", "w8a"])
def test_what_openml_does_not_have_says_so(folder, name):
    with pytest.raises(
        DataNotFound, match=f"has no {name}.npz, and OpenML has it only"
    ):
        load(name)
