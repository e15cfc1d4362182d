"""The time of a read, measured on some of the kernels."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mklopt import GramStack, kernels
from mklopt.grams.storage import Triangles
from mklopt.kernels import by_rows
from mklopt.kernels.by_rows import ByRows
from mklopt.run import read_time
from mklopt.run.read_time import seconds_of_cholesky, seconds_of_read


@pytest.fixture
def slow(monkeypatch):
    """Reads of 1 ms per kernel; the numbers of kernels of each read."""
    read, before = [], Triangles.quad

    def quad(self, index, A):
        read.append(index)
        time.sleep(0.001 * len(index))
        return before(self, index, A)

    monkeypatch.setattr(Triangles, "quad", quad)
    return read


def test_a_large_stack_is_read_in_part(slow):
    stack = GramStack(np.ones((2000, 2, 2)))
    assert 2.0 <= seconds_of_read(stack) < 4.0
    assert sum(map(len, slow)) < 600
    places = slow[-1]
    assert len(places) == 256 and {0, 500, 1000, 1500} <= set(places.tolist())
    assert stack.passes == 0


def test_a_small_stack_is_read_as_a_whole(slow):
    assert 0.01 <= seconds_of_read(GramStack(np.ones((10, 2, 2)))) < 0.1
    assert len(slow[-1]) == 10


def test_by_rows_some_samples_are_read(monkeypatch):
    monkeypatch.setattr(by_rows, "MATRIX_BYTES", 0)
    monkeypatch.setattr(read_time, "FEW_ROWS", 20)
    X = np.random.default_rng(0).normal(size=(400, 3))
    stack = kernels.gaussians([1.0, 2.0, 3.0]).fit(X).lazy()
    computed: list[int] = []
    pairs, quad = by_rows.pairs, ByRows.quad

    def counted(A, *more):
        computed.append(len(A))
        return pairs(A, *more)

    def slow(*given):
        time.sleep(0.01)
        return quad(*given)

    monkeypatch.setattr(by_rows, "pairs", counted)
    monkeypatch.setattr(read_time, "LONG_ENOUGH", 0.0)
    monkeypatch.setattr(ByRows, "quad", slow)
    assert seconds_of_read(stack) == pytest.approx(0.01 * 20**2, rel=0.5)
    assert sum(computed) == 20


def test_large_factorizations_are_extrapolated():
    seconds_of_cholesky(1000)
    small, large = seconds_of_cholesky(1000), seconds_of_cholesky(4000)
    assert 0 < small < 1 and 64 / 10 < large / small < 64 * 10
