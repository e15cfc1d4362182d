"""Kernel families, normalizations on training and new points, alignment."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from mklopt import GramStack, kernels
from mklopt.kernels.functions import Gaussian

rng = np.random.default_rng(11)
MEANS = np.array([0.0, 5.0, 0.0, -1.0])
X = rng.normal(size=(17, 4)) * [1.0, 3.0, 0.2, 1.0] + MEANS
X_NEW = rng.normal(size=(6, 4)) + MEANS
LINEAR, SINGLE = kernels.linear(), kernels.linear("single")
NORMALIZATIONS = ["multiplicative", "spherical", "unit_trace", "centre"]


def stack(fitted):
    return np.stack(list(fitted))


def gaussian(A, B, sigma):
    return np.array(
        [[np.exp(-np.sum((a - b) ** 2) / (2 * sigma**2)) for b in B] for a in A]
    )


def psd(K):
    return np.linalg.eigvalsh(K).min() >= -1e-13 * np.trace(K)


# ---- the families -------------------------------------------------------------------


def test_gaussians_and_polynomials_are_their_formulas():
    family = kernels.gaussians([0.5, 2.0], on="both") + kernels.polynomials([1, 3])
    fitted = family.fit(X)
    K, C = stack(fitted), fitted.cross(X_NEW)
    assert len(fitted) == len(fitted.names) == 2 * 5 + 2 and K.shape == (12, 17, 17)
    assert fitted.names[:4] == [
        "gaussian(0.5)",
        "gaussian(2)",
        "gaussian(0.5) on x0",
        "gaussian(2) on x0",
    ]
    np.testing.assert_allclose(K[1], gaussian(X, X, 2.0), rtol=1e-13)
    np.testing.assert_allclose(K[2 + 2 * 3], gaussian(X[:, [3]], X[:, [3]], 0.5))
    np.testing.assert_allclose(C[1], gaussian(X_NEW, X, 2.0), rtol=1e-13)
    np.testing.assert_allclose(C[5], gaussian(X_NEW[:, [1]], X[:, [1]], 2.0))
    np.testing.assert_allclose(K[11], (X @ X.T + 1) ** 3, rtol=1e-13)
    np.testing.assert_allclose(C[11], (X_NEW @ X.T + 1) ** 3, rtol=1e-13)


def test_gaussians_are_exactly_symmetric_with_unit_diagonal_and_semi_definite():
    far = X + 1e4  # where ‖x‖² + ‖z‖² − 2⟨x, z⟩ would lose half of the digits
    near = np.vstack([far, far[:3]])  # and the same points twice
    for K in kernels.suzuki().fit(near):
        np.testing.assert_array_equal(K, K.T)
        assert psd(K)
    for K in kernels.gaussians([0.01, 1.0, 30.0], on="both").fit(near):
        np.testing.assert_array_equal(np.diag(K), 1.0)
    assert K[0, 17] == 1.0
    np.testing.assert_allclose(
        stack(kernels.gaussians(1).fit(far))[0], gaussian(X, X, 1)
    )


def test_width_mean_is_the_mean_over_training_pairs():
    fitted = kernels.gaussians("mean").fit(X)
    D = np.sum((X[:, None] - X) ** 2, axis=2)
    gamma = D.sum() / (17 * 16)
    np.testing.assert_allclose(stack(fitted)[0], np.exp(-D / gamma))
    D_new = np.sum((X_NEW[:, None] - X) ** 2, axis=2)
    np.testing.assert_allclose(fitted.cross(X_NEW)[0], np.exp(-D_new / gamma))


@pytest.mark.parametrize(
    "family, per_subset",
    [(kernels.rakotomamonjy(), 13), (kernels.suzuki(), 27)],
)
def test_the_recipes_have_their_sizes(family, per_subset):
    names = family.fit(X).names
    assert len(names) == len(set(names)) == per_subset * (4 + 1)
    assert sum("on x2" in name for name in names) == per_subset
    assert sum("polynomial" in name for name in names) == 3 * 5
    assert "gaussian(20) on x3" in names and "polynomial(3)" in names


def test_the_recipes_have_their_widths():
    ten = {f"gaussian({w})" for w in (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)}
    assert ten <= set(kernels.rakotomamonjy().fit(X).names)
    more = {f"gaussian({w})" for w in (0.1, 0.25, 0.5, 0.75, *range(1, 21))}
    assert more <= set(kernels.suzuki().fit(X).names)
    ladder = stack(kernels.kloft(4).fit(X))
    D = np.sum((X[:, None] - X) ** 2, axis=2)
    np.testing.assert_allclose(ladder[3], np.exp(-D / 1.2**3))


def test_subset_gaussians_follow_the_seed_and_start_alike():
    few, many = (kernels.subset_gaussians(M, seed=5).fit(X) for M in (7, 60))
    np.testing.assert_array_equal(stack(few), stack(many)[:7])
    assert few.names == many.names[:7]
    other = kernels.subset_gaussians(60, seed=6).fit(X)
    assert not np.array_equal(stack(many), stack(other))


def test_subset_gaussians_have_the_widths_of_the_paper():
    """σ = 5χ² + 0.1 with one degree of freedom: mean 5.1, median 5 · 0.4549 + 0.1."""
    M, d = 20_000, 9
    drawn: list = kernels.subset_gaussians(M, seed=1).expand({"": d})
    widths = np.sqrt([kernel.rule.scale / 2 for kernel in drawn])
    assert widths.min() >= 0.1
    assert abs(widths.mean() - 5.1) < 0.2  # four standard errors: 4 · 5√2/√M
    assert abs(np.median(widths) - 2.375) < 0.15
    sizes = np.bincount([len(kernel.columns) for kernel in drawn], minlength=d + 1)
    assert sizes[0] == 0 and np.all(abs(sizes[1:] - M / d) < 5 * np.sqrt(M / d))
    often = np.bincount(np.concatenate([kernel.columns for kernel in drawn]))
    assert np.all(abs(often - M * (d + 1) / (2 * d)) < 5 * np.sqrt(M))
    Z = np.tile(X, 3)[:, :d]
    K = list(kernels.subset_gaussians(4, seed=1).fit(Z))[3]
    part = Z[:, drawn[3].columns]
    np.testing.assert_allclose(K, gaussian(part, part, widths[3]))


def test_families_add_and_the_constant_kernel_is_one():
    fitted = (kernels.linear() + kernels.constant()).fit(X)
    assert fitted.names == ["linear", "constant"]
    np.testing.assert_array_equal(stack(fitted)[1], 1.0)
    np.testing.assert_array_equal(fitted.cross(X_NEW)[1], np.ones((6, 17)))
    np.testing.assert_allclose(stack(fitted)[0], X @ X.T)


def test_families_are_immutable_values_that_can_be_stored():
    family = kernels.rakotomamonjy() + kernels.subset_gaussians(3)
    assert family == kernels.rakotomamonjy() + kernels.subset_gaussians(3)
    with pytest.raises(AttributeError):
        family.parts = ()  # type: ignore[misc]
    fitted = pickle.loads(pickle.dumps(family.fit(X, "centre")))
    np.testing.assert_array_equal(stack(fitted), stack(family.fit(X, "centre")))


def test_bases_are_computed_once_for_the_kernels_that_share_them(monkeypatch):
    calls = []
    base = Gaussian.base

    def counted(*args):
        calls.append(1)
        return base(*args)

    monkeypatch.setattr(Gaussian, "base", counted)
    fitted = kernels.suzuki().fit(X, normalize="multiplicative")
    list(fitted)
    assert len(calls) == 5  # all features, and four single ones, for 24 widths each
    fitted.cross(X_NEW)
    assert len(calls) == 10


def test_matrices_come_one_at_a_time_and_are_the_callers_own():
    fitted = kernels.gaussians([1, 2]).fit(X)
    iterator = iter(fitted)
    first = next(iterator)
    first[:] = 0.0
    np.testing.assert_allclose(next(iterator), gaussian(X, X, 2))
    np.testing.assert_allclose(next(iter(fitted)), gaussian(X, X, 1))


def test_grams_makes_a_stack():
    fitted = kernels.rakotomamonjy().fit(X, normalize="unit_trace")
    grams = fitted.grams()
    assert isinstance(grams, GramStack) and grams.M == 65 and grams.n == 17
    np.testing.assert_allclose(grams.diag().sum(axis=1), 1.0)
    alpha = rng.normal(size=17)
    np.testing.assert_allclose(grams.quad(alpha), alpha @ stack(fitted) @ alpha)


def test_importing_does_not_import_sklearn():
    code = "import sys, mklopt.kernels, mklopt.data; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


# ---- views --------------------------------------------------------------------------


def test_views_of_a_dict_a_list_and_columns_agree():
    parts = {"a": X[:, :3], "b": X[:, [3, 1]]}
    new = {"a": X_NEW[:, :3], "b": X_NEW[:, [3, 1]]}
    family = kernels.gaussians([1.0], on="both") + kernels.constant()
    by_name = kernels.views(family, parts).fit(parts, "unit_trace")
    assert by_name.names[0] == "a: gaussian(1)" and len(by_name) == 5 + 4
    assert by_name.names[-2:] == ["b: gaussian(1) on x1", "b: constant"]
    direct = [
        *family.fit(parts["a"], "unit_trace"),
        *family.fit(parts["b"], "unit_trace"),
    ]
    np.testing.assert_array_equal(stack(by_name), direct)
    by_place = kernels.views(family, range(2)).fit(list(parts.values()), "unit_trace")
    groups = {"a": range(3), "b": [3, 1]}
    by_columns = kernels.views(family, groups).fit(X, "unit_trace")
    assert by_columns.names == by_name.names
    for fitted, points in [(by_place, list(new.values())), (by_columns, X_NEW)]:
        np.testing.assert_array_equal(stack(fitted), stack(by_name))
        np.testing.assert_array_equal(fitted.cross(points), by_name.cross(new))


def test_one_family_per_view_and_a_common_constant():
    parts = {"a": X[:, :3], "b": X[:, 3:]}
    family = kernels.views([kernels.linear(), kernels.gaussians([1, 2])], ["b", "a"])
    fitted = (family + kernels.constant()).fit(parts)
    names = ["b: linear", "a: gaussian(1)", "a: gaussian(2)", "constant"]
    assert fitted.names == names
    np.testing.assert_allclose(stack(fitted)[0], parts["b"] @ parts["b"].T)
    np.testing.assert_allclose(stack(fitted)[2], gaussian(parts["a"], parts["a"], 2))


# ---- distances ----------------------------------------------------------------------


def test_distances_become_kernels_with_the_training_mean():
    D = np.stack([np.abs(X[:, None, j] - X[:, j]) for j in range(3)])
    D_new = np.stack([np.abs(X_NEW[:, None, j] - X[:, j]) for j in range(3)])
    for given, new in [(D, D_new), (list(D), list(D_new))]:
        fitted = kernels.from_distances(given)
        means = D.sum(axis=(1, 2)) / (17 * 16)
        np.testing.assert_allclose(stack(fitted), np.exp(-D / means[:, None, None]))
        cross = fitted.cross(new)
        np.testing.assert_allclose(cross, np.exp(-D_new / means[:, None, None]))
        assert cross.shape == (3, 6, 17) and all(map(psd, fitted))
    named = kernels.from_distances({"colour": D[0], "shape": D[1]}, normalize="centre")
    assert named.names == ["exp(−d/mean) of colour", "exp(−d/mean) of shape"]
    np.testing.assert_allclose(stack(named).sum(axis=2), 0.0, atol=1e-13)
    np.testing.assert_allclose(
        named.cross({"colour": D[0], "shape": D[1]}), stack(named)
    )


def test_distances_with_rounding_errors_are_made_exactly_symmetric():
    D = np.abs(X[:, None, 0] - X[:, 0]) * (1 + 1e-12 * rng.random((17, 17))) + 1e-12
    (K,) = kernels.from_distances([D])
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1.0)


# ---- normalizations -----------------------------------------------------------------

FAMILY = (
    kernels.gaussians([0.7, "mean"], on="both")
    + kernels.polynomials([1, 2])
    + kernels.linear()
)


def features(K):
    """ψ with K = ψψᵀ, to state normalizations in feature space."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def test_multiplicative_normalization_gives_variance_one_in_feature_space():
    for K in FAMILY.fit(X, normalize="multiplicative"):
        psi = features(K)
        variance = np.mean(np.sum((psi - psi.mean(axis=0)) ** 2, axis=1))
        assert variance == pytest.approx(1.0, abs=1e-10)


def test_spherical_normalization_is_the_cosine():
    for raw, K in zip(FAMILY.fit(X), FAMILY.fit(X, normalize="spherical")):
        np.testing.assert_array_equal(np.diag(K), 1.0)
        d = np.sqrt(np.diag(raw))
        np.testing.assert_allclose(K, raw / d[:, None] / d, rtol=1e-12)


def test_unit_trace():
    for raw, K in zip(FAMILY.fit(X), FAMILY.fit(X, normalize="unit_trace")):
        assert np.trace(K) == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(K * np.trace(raw), raw, rtol=1e-13)


def test_centring_moves_the_mean_to_the_origin():
    H = np.eye(17) - 1 / 17
    for raw, K in zip(FAMILY.fit(X), FAMILY.fit(X, normalize="centre")):
        top = np.max(np.abs(raw))
        np.testing.assert_allclose(K, H @ raw @ H, atol=1e-13 * top)
        np.testing.assert_allclose(K.sum(axis=1), 0.0, atol=1e-12 * top)


@pytest.mark.parametrize(
    "steps",
    [
        None,
        *NORMALIZATIONS,
        ("centre", "spherical"),
        ("spherical", "centre", "unit_trace"),
        ("centre", "multiplicative"),
    ],
)
def test_training_points_as_new_points_give_the_training_matrices(steps):
    fitted = FAMILY.fit(X, normalize=steps)
    K = stack(fitted)
    np.testing.assert_array_equal(K, K.transpose(0, 2, 1))
    assert all(map(psd, K))
    C = fitted.cross(X)
    top = np.abs(K).max(axis=(1, 2))[:, None, None]
    np.testing.assert_allclose(C / top, K / top, atol=1e-12)
    np.testing.assert_array_equal(C[:, 4:9], fitted.cross(X[4:9]))


@pytest.mark.parametrize("steps", [*NORMALIZATIONS, ("centre", "spherical")])
def test_new_points_are_normalized_with_training_statistics(steps):
    """Explicit features of the polynomial (x + 1)² on one column: x², √2 x, 1."""
    column, new = X[:, [0]], X_NEW[:, [0]]

    def psi(x):
        return np.hstack([x**2, np.sqrt(2) * x, np.ones_like(x)])

    A, B = psi(column), psi(new)
    for step in [steps] if isinstance(steps, str) else steps:
        if step == "multiplicative":
            scale = np.sqrt(np.mean(np.sum((A - A.mean(axis=0)) ** 2, axis=1)))
            A, B = A / scale, B / scale
        if step == "unit_trace":
            A, B = A / np.linalg.norm(A), B / np.linalg.norm(A)
        if step == "centre":
            A, B = A - A.mean(axis=0), B - A.mean(axis=0)
        if step == "spherical":
            A, B = (P / np.linalg.norm(P, axis=1, keepdims=True) for P in (A, B))
    fitted = kernels.polynomials(2).fit(column, normalize=steps)
    np.testing.assert_allclose(stack(fitted)[0], A @ A.T, atol=1e-12)
    np.testing.assert_allclose(fitted.cross(new)[0], B @ A.T, atol=1e-12)


def test_cross_does_not_need_the_training_matrices_first():
    fitted = FAMILY.fit(X, normalize="multiplicative")
    early = fitted.cross(X_NEW)
    list(fitted)
    np.testing.assert_array_equal(early, fitted.cross(X_NEW))


def test_a_constant_feature_gives_ones_and_no_nan():
    Z = np.column_stack([X[:, 0], np.full(17, 3.7)])
    family = kernels.rakotomamonjy() + kernels.gaussians("mean", on="single")
    for steps in (None, "unit_trace", "spherical"):
        fitted = family.fit(Z, normalize=steps)
        assert np.all(np.isfinite(stack(fitted))) and np.all(
            np.isfinite(fitted.cross(Z))
        )
    ones = [K for K, name in zip(family.fit(Z), fitted.names) if "mean) on x1" in name]
    np.testing.assert_array_equal(ones[0], 1.0)


@pytest.mark.parametrize(
    "family, steps, words",
    [
        (kernels.constant(), "multiplicative", "kernel 0, constant, is the same at"),
        (kernels.constant(), "centre", "constant, is the same .* centring"),
        (kernels.gaussians(2, "single"), "multiplicative", r"gaussian\(2\) on x1, is"),
        (kernels.polynomials(3, "single"), "centre", r"polynomial\(3\) on x1, is the"),
        (SINGLE, "unit_trace", "kernel 1, linear on x1, is zero"),
        (SINGLE, "spherical", "kernel 0, linear on x0, is zero at point 5"),
        (SINGLE, ("centre", "spherical"), "linear on x1, is the same"),
    ],
)
def test_what_cannot_be_normalized_is_named(family, steps, words):
    Z = np.column_stack([X[:, 0], np.zeros(17)])
    Z[5, 0] = 0.0
    fitted = family.fit(Z, normalize=steps)
    with pytest.raises(ValueError, match=words):
        list(fitted)
    with pytest.raises(ValueError, match=words):
        fitted.cross(Z)


def test_a_point_at_the_mean_has_no_place_on_the_sphere():
    Z = np.array([[0.1], [0.2], [0.3]])  # the centred kernel at 0.2 is rounding
    with pytest.raises(ValueError, match="linear, is zero at point 1"):
        list(kernels.linear().fit(Z, normalize=("centre", "spherical")))
    fitted = kernels.linear().fit(Z, normalize="spherical")
    with pytest.raises(ValueError, match="linear, is zero at point 1"):
        fitted.cross([[1.0], [0.0]])


# ---- alignment ----------------------------------------------------------------------


def brute_force(K, L, centred):
    H = np.eye(len(K)) - 1 / len(K)
    K, L = (H @ K @ H, H @ L @ H) if centred else (K, L)
    return np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("slab", [2**22, 1, 17 * 8 * 5])
def test_alignments_are_their_definition(centred, slab, monkeypatch):
    monkeypatch.setattr("mklopt.kernels.alignments.SLAB_ENTRIES", slab)
    K = stack(FAMILY.fit(X))[:8]
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0)
    expected = [[brute_force(k, l, centred) for l in K] for k in K]
    for grams in (K, GramStack(K)):
        A = kernels.alignment(grams, centred=centred)
        np.testing.assert_allclose(A, expected, atol=1e-13)
        np.testing.assert_array_equal(A, A.T)
        target = kernels.target_alignment(grams, y, centred=centred)
        expected_target = [brute_force(k, np.outer(y, y), centred) for k in K]
        np.testing.assert_allclose(target, expected_target, atol=1e-13)


def test_target_alignment_of_classes_is_that_of_their_indicators():
    K, classes = stack(FAMILY.fit(X)), np.arange(17) % 3
    Y = np.eye(3)[classes]
    expected = [brute_force(k, Y @ Y.T, True) for k in K]
    np.testing.assert_allclose(kernels.target_alignment(K, Y), expected, atol=1e-13)
    assert kernels.target_alignment([Y @ Y.T], Y)[0] == pytest.approx(1.0, abs=1e-14)


def test_alignment_neither_cancels_nor_overflows():
    """A large constant part and large scales change nothing when centred."""
    K = stack(kernels.gaussians([1, 3], on="single").fit(X))
    A = kernels.alignment(K)
    np.testing.assert_allclose(kernels.alignment(K + 1e6), A, atol=1e-8)
    scales = np.logspace(-200, 200, len(K))[:, None, None]
    np.testing.assert_allclose(kernels.alignment(scales * K), A, atol=1e-14)
    y = np.sign(X[:, 0])
    target = kernels.target_alignment(K, y)
    np.testing.assert_allclose(kernels.target_alignment(scales * K, 1e200 * y), target)


def test_alignment_of_nothing_is_refused():
    K = stack((kernels.gaussians(1) + kernels.constant()).fit(X))
    with pytest.raises(ValueError, match="kernel 1 is zero, or the same at all points"):
        kernels.alignment(K)
    assert kernels.alignment(K, centred=False).shape == (2, 2)
    with pytest.raises(ValueError, match="y is the same"):
        kernels.target_alignment(K[:1], np.ones(17))
    with pytest.raises(ValueError, match=r"y has shape \(3,\).*17 × 17"):
        kernels.target_alignment(K, np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(17, 17\); expected \(M, n, n\)"):
        kernels.alignment(K[0])


# ---- errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attempt, words",
    [
        (lambda: kernels.gaussians([]), "0 kernels.*at least one"),
        (lambda: kernels.gaussians([1, -2]), "a width is -2; give positive"),
        (lambda: kernels.gaussians([1e-200]), "a width is 1e-200"),
        (lambda: kernels.gaussians(["median"]), "a width must be a positive number"),
        (lambda: kernels.gaussians(1, on="each"), "on = 'each'.*'single'"),
        (lambda: kernels.polynomials([1.5]), "a degree is 1.5; give a whole number"),
        (lambda: kernels.polynomials(2, offset=-1), "offset = -1"),
        (lambda: kernels.subset_gaussians(0), "M is 0; give a whole number from 1"),
        (lambda: kernels.views([LINEAR] * 2, range(3)), "2 families .* 3 views"),
        (lambda: LINEAR.fit(X, "sperical"), "'sperical' is not known; choose from"),
        (lambda: LINEAR.fit(X, ["centre", "unit"]), "not known; choose from"),
        (lambda: LINEAR.fit(X[0]), r"X has shape \(4,\); expected \(n, d\)"),
        (lambda: LINEAR.fit(X * np.nan), "X has NaN or infinite"),
        (lambda: LINEAR.fit([["a"]]), "X must be an .* got values of type"),
        (lambda: LINEAR.fit([X, X]), "kernels.views which views"),
        (lambda: LINEAR.fit({"a": X, "b": X[:3]}), "rows; give each sample"),
        (lambda: kernels.views(LINEAR, ["c"]).fit({"a": X}), "'c' .* not in X"),
        (lambda: kernels.views(LINEAR, [[9]]).fit(X), "'view 0' .* not in X"),
        (lambda: kernels.views(LINEAR, ["a"]).fit(X), "'a' .* not in X"),
        (lambda: LINEAR.fit(X).cross(X[:, :2]), r"columns \[2\].*have \[4\]"),
        (lambda: kernels.from_distances([X]), "not a matrix of distances"),
        (lambda: kernels.from_distances([np.ones((3, 3))]), "zero diagonal"),
        (lambda: kernels.from_distances([np.eye(3) - 1]), "not negative"),
        (lambda: kernels.from_distances([1 - np.eye(3)]).cross([X]), "X_new has col"),
    ],
)
def test_wrong_requests_get_one_clear_sentence(attempt, words):
    with pytest.raises(ValueError, match=words):
        attempt()
