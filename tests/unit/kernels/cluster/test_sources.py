"""What workers make kernels from: the same kernels after a pickle, few bytes sent."""

import pickle

import numpy as np
import pytest

from mklopt import GramStack, kernels
from mklopt.kernels.cluster.sources import (
    FactorSource,
    FamilySource,
    FileSource,
    Neighbours,
    PointSource,
    StackSource,
)

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def fitted() -> kernels.FittedKernels:
    widths = np.linspace(1, 3, 9)
    return kernels.gaussians(widths).fit(X, normalize="unit_trace")


def sent(source):
    return pickle.loads(pickle.dumps(source))


def check_store(store, stack, first, last):
    some, a = np.arange(last - first), np.arange(40.0)
    found = store.quad(some, a[:, None])
    np.testing.assert_allclose(found, stack.quad(a)[first:last], rtol=1e-12)
    np.testing.assert_array_equal(store.kernel(1), stack.kernel(first + 1))


@pytest.mark.parametrize("storage", ["packed", "lazy"])
def test_a_family_is_computed_where_it_is_needed(fitted, storage):
    source = sent(FamilySource(fitted, storage))
    check_store(source.store(2, 6), fitted.grams(), 2, 6)


@pytest.mark.parametrize("storage", ["packed", "lazy"])
def test_a_file_is_read_where_it_is_needed(fitted, storage, tmp_path):
    GramStack.write(tmp_path / "kernels.npy", fitted)
    source = FileSource(tmp_path / "kernels.npy", 9, 40, storage)
    source.store(0, 1)  # an open file is not sent
    there = sent(source).store(3, 7)
    check_store(there, fitted.grams(), 3, 7)
    assert isinstance(there, Neighbours) == (storage == "lazy")
    np.testing.assert_array_equal(
        there.root_sizes[:4], fitted.grams()._store.root_sizes[3:7]
    )


def test_a_stack_is_not_sent_with_its_source(fitted):
    stack = fitted.grams().subset([8, 0, 3])
    source = StackSource(stack)
    there = sent(source)
    assert (there.M, there.n, there.store(0, 2)) == (3, 40, None)
    check_store(source.store(1, 3), stack, 1, 3)
    np.testing.assert_array_equal(source.packed(1, 3), np.array([*stack.content()])[1:])


def test_rows_of_factors_are_sent_piece_by_piece():
    stack = GramStack.from_factors([X, X[:, :1], X[:, 1:]])
    source = FactorSource(stack.subset([0, 2]))
    there = sent(source)
    assert there.store(0, 5) is None and there.ranks.tolist() == [3, 2]
    found = there.made(source.packed(5, 9))
    np.testing.assert_array_equal(found.factor(1), X[5:9, 1:])


def test_points_become_features_where_they_are_needed():
    fitted = kernels.nystroem(kernels.gaussians([1.0, 2.0]), 6).fit(X)
    source = PointSource(fitted, np.dtype("float32"))
    there = sent(source)
    assert there.views is None and there.store(0, 3) is None
    found = there.made(source.packed(10, 20))
    here = fitted.grams(dtype="float32")._store
    np.testing.assert_array_equal(found.factor(1), here.factor(1)[10:20])
