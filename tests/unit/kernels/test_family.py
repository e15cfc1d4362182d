"""Kernel families: formulas, recipes of the papers, views, and clear refusals."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from mklopt import kernels

rng = np.random.default_rng(11)
MEANS = np.array([0.0, 5.0, 0.0, -1.0])
X = rng.normal(size=(17, 4)) * [1.0, 3.0, 0.2, 1.0] + MEANS
X_NEW = rng.normal(size=(6, 4)) + MEANS
LINEAR = kernels.linear()


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


def test_laplacians_are_their_formula():
    fitted = kernels.laplacians([0.5, 2.0], on="both").fit(X)
    assert fitted.names[:2] == ["laplacian(0.5)", "laplacian(0.5) on x0"]
    assert fitted.names[5] == "laplacian(2)"
    K, C = stack(fitted), fitted.cross(X_NEW)
    apart = np.abs(X_NEW[:, None] - X)
    np.testing.assert_allclose(C[5], np.exp(-apart.sum(axis=2) / 2.0), rtol=1e-13)
    np.testing.assert_allclose(C[4], np.exp(-apart[:, :, 3] / 0.5), rtol=1e-13)
    assert K.shape == (10, 17, 17) and all(map(psd, K))
    assert pickle.loads(pickle.dumps(fitted)).names == fitted.names


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
    drawn = kernels.subset_gaussians(M, seed=1).expand({"": d})
    widths = np.sqrt(drawn.numbers / 2)
    assert widths.min() >= 0.1
    assert abs(widths.mean() - 5.1) < 0.2  # four standard errors: 4 · 5√2/√M
    assert abs(np.median(widths) - 2.375) < 0.15
    each = np.diff(drawn.ends)[drawn.base]
    sizes = np.bincount(each, minlength=d + 1)
    assert sizes[0] == 0 and np.all(abs(sizes[1:] - M / d) < 5 * np.sqrt(M / d))
    often = np.bincount(
        drawn.columns, np.bincount(drawn.base).repeat(np.diff(drawn.ends))
    )
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


def test_a_function_of_your_own_is_a_kernel_with_its_name():
    def dot(A, B):
        return A @ B.T

    fitted = (kernels.function(dot) + kernels.function(dot, "mine")).fit(X)
    assert fitted.names == ["dot", "mine"]
    np.testing.assert_allclose(stack(fitted)[0], X @ X.T)
    np.testing.assert_allclose(fitted.cross(X_NEW)[1], X_NEW @ X.T)
    with pytest.raises(ValueError, match="k = 3; give a function"):
        kernels.function(3)  # type: ignore[arg-type]


def test_families_are_immutable_values_that_can_be_stored():
    family = kernels.rakotomamonjy() + kernels.subset_gaussians(3)
    assert family == kernels.rakotomamonjy() + kernels.subset_gaussians(3)
    with pytest.raises(AttributeError):
        family.parts = ()  # type: ignore[misc]
    fitted = pickle.loads(pickle.dumps(family.fit(X, "centre")))
    np.testing.assert_array_equal(stack(fitted), stack(family.fit(X, "centre")))


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


# ---- errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attempt, words",
    [
        (lambda: kernels.gaussians([]), "0 kernels.*at least one"),
        (lambda: kernels.gaussians([1, -2]), "a width is -2; give positive"),
        (lambda: kernels.gaussians([1e-200]), "a width is 1e-200"),
        (lambda: kernels.gaussians(["median"]), "'median'; give a positive number"),
        (lambda: kernels.laplacians([1, 0]), "a width is 0; give positive numbers"),
        (lambda: kernels.laplacians("mean"), "a width = 'mean'; give a positive"),
        (lambda: kernels.laplacians([]), "there are 0 kernels"),
        (
            lambda: kernels.gaussians(1, on="each"),
            "on = 'each'; choose one of all, single",
        ),
        (lambda: kernels.polynomials([1.5]), "a degree = 1.5; give a whole number"),
        (lambda: kernels.polynomials(2, offset=-1), "offset = -1"),
        (lambda: kernels.subset_gaussians(0), "M = 0; give a whole number"),
        (lambda: kernels.views([LINEAR] * 2, range(3)), "2 families .* 3 views"),
        (
            lambda: LINEAR.fit(X, "sperical"),
            "'sperical' is not known; did you mean 'spherical'",
        ),
        (lambda: LINEAR.fit(X, ["centre", "unit"]), "not known; choose one of"),
        (lambda: LINEAR.fit(X[0]), r"X has shape \(4,\); expected \(n, d\)"),
        (lambda: LINEAR.fit(X * np.nan), "X has missing or infinite"),
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
