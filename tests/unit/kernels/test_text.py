"""Lists of kernels from users: strings, functions, columns, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels.text import family_of, usual_family

X = np.random.default_rng(3).normal(size=(9, 3)) * [1.0, 5.0, 0.1]


def dot(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    "text, family",
    [
        ("linear", kernels.linear()),
        ("laplacian(2) on single", kernels.laplacians(2, on="single")),
        ("gaussian", kernels.gaussians("mean")),
        ("gaussian(mean)", kernels.gaussians("mean")),
        (" gaussian(2.5) ", kernels.gaussians(2.5)),
        ("polynomial", kernels.polynomials(2)),
        ("polynomial(3) on both", kernels.polynomials(3, on="both")),
        ("linear on single", kernels.linear("single")),
        ("constant", kernels.constant()),
        ("suzuki", kernels.suzuki()),
        ("kloft(4)", kernels.kloft(4)),
        ("rakotomamonjy", kernels.rakotomamonjy()),
        ("subset_gaussians(70)", kernels.subset_gaussians(70)),
    ],
)
def test_a_text_is_its_family(text, family):
    assert family_of(text, 3) == family_of([text], 3) == family


@pytest.mark.parametrize(
    "columns, expected",
    [
        ([0, 2], [0, 2]),
        (-1, [2]),
        (slice(1, None), [1, 2]),
        (["b", "a"], [1, 0]),
        (np.array([True, False, True]), [0, 2]),
    ],
)
def test_a_kernel_on_some_columns(columns, expected):
    family = family_of([(columns, "linear")], 3, ["a", "b", "c"])
    (K,) = family.fit(X)
    np.testing.assert_allclose(K, X[:, expected] @ X[:, expected].T)


def test_a_list_is_the_sum_of_its_kernels():
    family = family_of(["linear", dot, kernels.kloft(2), ([0], "gaussian(1)")], 3)
    names = ["linear", "dot", "gaussian(0.707107)", "gaussian(0.774597)"]
    assert family.fit(X).names == [*names, "x[0]: gaussian(1)"]
    assert family_of(dot, 3).fit(X).names == ["dot"]


def test_the_usual_family_follows_the_scale_of_the_data():
    weight = np.ones(9)
    family = usual_family(X, weight)
    s = np.sqrt(np.sum(X.var(axis=0)))
    r2 = np.mean(np.sum(X**2, axis=1))
    K = np.stack(list(family.fit(X)))
    D = np.sum((X[:, None] - X) ** 2, axis=2)
    expected = [np.exp(-D / (2 * (s * 2.0**k) ** 2)) for k in range(-2, 4)]
    expected += [(X @ X.T + r2) ** p for p in (1, 2, 3)]
    np.testing.assert_allclose(K, expected)
    twice = usual_family(np.vstack([X, X[:1]]), np.ones(10))
    weight[0] = 2.0
    weighted = np.stack(list(usual_family(X, weight).fit(X)))
    np.testing.assert_allclose(weighted, list(twice.fit(X)))  # 2 is the same as a copy


@pytest.mark.parametrize(
    "given, words",
    [
        ([], r"kernels = \[\]; give a list of kernels"),
        (3, "kernels = 3; give a list"),
        ([3], "a kernel is 3; give a string"),
        ("gauss", "kernel 'gauss' is not known; did you mean 'gaussian'"),
        ("gaussian(2", "is not known"),
        ("gaussian(-1)", "'gaussian\\(-1\\)' cannot be read: a width is -1"),
        ("constant on single", "'constant on single' cannot be read"),
        ("linear(2)", "cannot be read"),
        ([([5], "linear")], "on column 5; X has the columns 0 to 2 or one of a, b, c"),
        ([(["z"], "linear")], "on column 'z'"),
        ([([True], "linear")], "on column True"),
    ],
)
def test_wrong_lists_get_one_clear_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        family_of(given, 3, ["a", "b", "c"])
