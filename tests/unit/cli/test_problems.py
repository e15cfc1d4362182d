"""Problems from words: data sets and files, kernels, losses, samples."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import GramStack, data
from mklopt.cli.problems import problem
from mklopt.formulations import LpNorm


def test_losses_follow_the_labels():
    assert problem("wdbc", samples=40).problem.loss.name == "hinge"
    assert problem("iris", samples=40).problem.loss.name == "multiclass_hinge"
    assert problem("diabetes", samples=40).problem.loss.name == "squared"
    alone = problem("wdbc", loss="one_class", samples=40).problem
    assert not alone.bias and set(alone.y) == {1.0}
    some = problem("wdbc", "gaussian(1) on single,linear", samples=40)
    assert len(some.names) == 31 == some.problem.grams.M


def test_words_become_the_parts_of_a_problem():
    found = problem(
        "wdbc", "gaussian(2),linear", "lp:p=1.5", "logistic", 3.0, bias=False
    )
    assert found.names == ["gaussian(2)", "linear"]
    p = found.problem
    assert (p.loss.name, p.formulation, p.C, p.bias) == (
        *("logistic", LpNorm(1.5), 3.0, False),
    )
    np.testing.assert_allclose(p.grams.diag(), 1.0)  # spherical
    plain = problem("wdbc", "linear", normalize="none", samples=30).problem
    assert plain.grams.n == 30 and np.ptp(plain.grams.diag()) > 1


def test_samples_are_drawn_with_the_seed():
    first, again, other = (
        problem("wdbc", samples=25, seed=s).problem for s in (1, 1, 2)
    )
    assert np.array_equal(first.grams.dense(), again.grams.dense())
    assert not np.array_equal(first.grams.dense(), other.grams.dense())
    with pytest.raises(ValueError, match="give a number from 2 to 569"):
        problem("wdbc", samples=1)
    with pytest.raises(ValueError, match="samples = 570, and the data have 569; give"):
        problem("wdbc", samples=570)
    assert problem("iris", samples=150).problem.grams.n == 150


def test_random_sets_take_options():
    found = problem("twonorm:n=60,seed=3", "linear").problem
    assert found.grams.n == 60
    np.testing.assert_array_equal(found.y, data.load("twonorm", n=60, seed=3).y)
    toy = problem("kloft_toy: n=20, nu=0.5, d=10", "linear").problem
    assert toy.grams.n == 20
    with pytest.raises(ValueError, match="twonorm has no option size; it takes n"):
        problem("twonorm:size=3")
    with pytest.raises(ValueError, match="write the options of a data set as in"):
        problem("twonorm:n=many")
    with pytest.raises(ValueError, match="write the options of a data set as in"):
        problem("twonorm:3000")


def test_samples_of_a_file_with_kernels_are_rows_and_columns(tmp_path):
    rng = np.random.default_rng(0)
    L, y = rng.normal(size=(2, 9, 3)), rng.normal(size=9)
    K = L @ L.transpose(0, 2, 1)
    np.savez(tmp_path / "mine.npz", K=K, y=y)
    whole = problem(str(tmp_path / "mine.npz")).problem
    np.testing.assert_array_equal(whole.grams.dense(), K)
    some = problem(str(tmp_path / "mine.npz"), samples=4).problem
    rows = [int(np.flatnonzero(y == v)[0]) for v in some.y]
    assert rows == sorted(rows) and len(rows) == 4
    np.testing.assert_array_equal(some.grams.dense(), K[np.ix_([0, 1], rows, rows)])


def test_kernels_on_disk_come_with_a_file_of_labels(tmp_path):
    rng = np.random.default_rng(0)
    L, y = rng.normal(size=(2, 9, 3)), np.where(np.arange(9) % 2, 1.0, -1.0)
    stack, labels = str(tmp_path / "K.npy"), str(tmp_path / "y.txt")
    K = L @ L.transpose(0, 2, 1)
    GramStack.write(stack, K)
    np.savetxt(labels, y)
    found = problem(stack, labels=labels)
    assert found.problem.grams.storage == "disk" and len(found.names) == 2
    assert found.problem.loss.name == "hinge"
    np.testing.assert_array_equal(found.problem.grams.dense(), K)
    some = problem(stack, labels=labels, samples=4).problem
    assert some.grams.dense().shape == (2, 4, 4) and some.y.shape == (4,)
    with pytest.raises(ValueError, match="name a file with y"):
        problem(stack)
    with pytest.raises(ValueError, match=r"--labels is for kernels in a \.npy"):
        problem("wdbc", labels=labels)
    with pytest.raises(ValueError, match="leave out --kernels"):
        problem(stack, "linear", labels=labels)
    np.savetxt(labels, y[:5])
    with pytest.raises(ValueError, match="5 labels for 9 samples"):
        problem(stack, labels=labels)
