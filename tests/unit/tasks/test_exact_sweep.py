"""The streamed sweep: its file survives kills, and gives the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels.entries import Entries, Products
from mklopt.tasks import exact_sweep
from mklopt.tasks.exact_sweep import Sweep
from tests.unit.tasks.low_rank_samples import FAMILY, points

N = 400
PLAIN = Products.at
X, Y = points(N)
ALPHA = np.where(np.arange(N) % 3 == 0, 0.0, Y)


@pytest.fixture(autouse=True)
def small_bands(monkeypatch):
    monkeypatch.setattr(exact_sweep, "BAND_WORK", 40 * N)


def sweep(alpha=ALPHA, family=FAMILY, points=X):
    return Sweep(Entries.of(family.fit(points)), alpha)


def counted(monkeypatch, stop_after=10**9):
    """The bands that are computed, until one is interrupted."""
    bands: list[int] = []

    def at(self, rows, blocks=None):
        if len(bands) == stop_after:
            raise KeyboardInterrupt
        bands.append(rows.start)
        return PLAIN(self, rows, blocks)

    monkeypatch.setattr(Products, "at", at)
    return bands


def test_only_points_with_a_dual_variable_are_columns():
    found = sweep()
    assert found.columns == np.count_nonzero(ALPHA)
    K = FAMILY.fit(X).grams().dense()
    np.testing.assert_allclose(found.run(None, False)[:, :, 0], K @ ALPHA, atol=1e-11)
    zero = sweep(np.zeros(N))
    np.testing.assert_array_equal(zero.run(None, False), 0.0)


def test_an_interrupted_sweep_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    path, whole = tmp_path / "progress", sweep().run(None, False)
    bands = counted(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        sweep().run(path, False)
    assert len(bands) == 3
    bands = counted(monkeypatch)
    again = sweep().run(path, False)
    assert again.tobytes() == whole.tobytes()
    step = sweep().band
    assert bands == list(range(3 * step, N, step)) and len(bands) > 2
    bands.clear()
    assert sweep().run(path, False).tobytes() == whole.tobytes()
    assert bands == []


@pytest.mark.parametrize("cut", [1, 31, 33, 500])
def test_a_record_that_is_not_whole_is_cut_off(tmp_path, monkeypatch, cut):
    path, whole = tmp_path / "progress", sweep().run(None, False)
    sweep().run(path, False)
    path.write_bytes(path.read_bytes()[:-cut])
    bands = counted(monkeypatch)
    assert sweep().run(path, False).tobytes() == whole.tobytes()
    assert len(bands) == 1
    bands.clear()
    sweep().run(path, False)
    assert bands == []


def test_a_damaged_record_and_all_after_it_are_computed_again(tmp_path, monkeypatch):
    path, whole = tmp_path / "progress", sweep().run(None, False)
    sweep().run(path, False)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    bands = counted(monkeypatch)
    assert sweep().run(path, False).tobytes() == whole.tobytes()
    assert 1 < len(bands) < -(-N // sweep().band)


@pytest.mark.parametrize(
    "other",
    [
        lambda: sweep(2 * ALPHA),
        lambda: sweep(np.roll(ALPHA, 1)),
        lambda: sweep(family=kernels.gaussians([0.8, 2, 5.1])),
        lambda: sweep(family=kernels.gaussians([0.8, 2])),
        lambda: sweep(points=X + 1e-9),
        lambda: Sweep(Entries.of(FAMILY.fit(X, "unit_trace")), ALPHA),
    ],
)
def test_a_file_of_another_sweep_is_refused(tmp_path, other):
    path = tmp_path / "progress"
    sweep().run(path, False)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="belongs to another sweep: data, kernels"):
        other().run(path, False)
    assert path.read_bytes() == before


def test_a_file_of_something_else_is_refused_and_kept(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("chapter one")
    with pytest.raises(ValueError, match="belongs to another sweep"):
        sweep().run(path, False)
    assert path.read_text() == "chapter one"
    with pytest.raises(ValueError, match="path = 7"):
        sweep().run(7, False)


def test_two_processes_do_not_write_to_one_file(tmp_path):
    path = tmp_path / "progress"
    with open(path, "a+b") as file:
        exact_sweep._lock(file, path)
        with pytest.raises(ValueError, match="in use by another process"):
            sweep().run(path, False)


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from mklopt.kernels.entries import Products
from tests.unit.tasks import test_exact_sweep as here
here.exact_sweep.BAND_WORK = 40 * here.N
plain, bands = Products.at, []
def at(self, rows, blocks=None):
    if len(bands) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    bands.append(rows)
    return plain(self, rows, blocks)
Products.at = at
here.sweep().run({path!r}, False)
"""


def test_a_killed_process_costs_one_band(tmp_path, monkeypatch):
    path, root = tmp_path / "progress", Path(__file__).parents[3]
    code = KILLED.format(root=str(root), path=str(path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=root)
    assert done.returncode == -signal.SIGKILL and os.path.getsize(path) > 0
    whole = sweep().run(None, False)
    bands = counted(monkeypatch)
    assert sweep().run(path, False).tobytes() == whole.tobytes()
    assert bands[0] == 2 * sweep().band


def test_the_cost_is_measured(monkeypatch):
    cost = sweep().cost()
    assert cost.rows == N and cost.columns == sweep().columns and cost.kernels == 3
    assert 0 < cost.seconds < 60 and "entries of 3 kernels" in str(cost)
