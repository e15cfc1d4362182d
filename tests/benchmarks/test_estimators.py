"""The comparison of estimators: shared folds, honest noise, verdicts that can fail."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import estimators as bench
from mklopt import data
from mklopt.util import style


def test_noise_is_the_spread_of_differences_with_shared_samples():
    a, b = [0.9, 0.8, 0.7, 0.9], [0.8, 0.8, 0.8, 0.8]
    expected = np.std([0.1, 0.0, -0.1, 0.1], ddof=1) * np.sqrt(1 / 4 + 0.25)
    assert bench.noise(a, b, 0.25) == pytest.approx(expected)
    assert bench.noise(a, b, 1.0) > bench.noise(a, b, 0.25)


def test_a_clear_loss_fails_and_a_small_one_does_not():
    good, bad = [0.9, 0.91, 0.9, 0.89], [0.7, 0.72, 0.71, 0.7]
    assert bench.requirements("x", {"MKL": bad, "sum": good}, 0.25)[0].startswith(
        "FAIL"
    )
    assert bench.requirements("x", {"MKL": good, "sum": bad}, 0.25)[0].startswith(
        "pass"
    )
    close = {"MKL": [0.90, 0.80], "sum": [0.80, 0.91], "EasyMKL": []}
    assert [line[:4] for line in bench.requirements("x", close, 0.25)] == ["pass"]


def test_kernels_of_a_fold_see_its_training_samples_only():
    found = data.load("twonorm", n=40)
    train, test = np.arange(30), np.arange(30, 40)
    K, cross = bench.stacks(found, train, test)
    assert K.shape[1:] == (30, 30) and cross.shape[1:] == (10, 30)
    moved = data.Dataset("moved", np.where(np.arange(40)[:, None] < 30, 1, 5) * found.X,
                         found.y)  # fmt: skip
    assert np.array_equal(bench.stacks(moved, train, test)[0], K)


def test_it_runs_from_end_to_end(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "SETS", ("twonorm",))
    monkeypatch.setattr(bench, "METHODS", {"MKL": bench.mkl, "sum": bench.plain_sum})
    monkeypatch.setattr(bench, "COSTS", (1.0,))
    monkeypatch.setattr(bench, "PS", (2.0,))
    found = data.load("twonorm", n=60)
    monkeypatch.setattr(bench.data, "load", lambda name: found)
    monkeypatch.setattr(sys, "argv", ["bench", "--data", "twonorm", "--repeats", "1"])
    bench.METHODS["EasyMKL"] = bench.plain_sum  # taken out again where MKLpy is not
    bench.main()
    out = capsys.readouterr().out
    assert "twonorm: MKL minus sum" in out
    assert "| twonorm |" in (tmp_path / "estimators.md").read_text()


def test_boosting_learns_from_the_columns(monkeypatch):
    monkeypatch.setattr(bench, "RATES", (0.3,))
    monkeypatch.setattr(bench, "LEAVES", (7,))
    found = data.load("twonorm", n=150)
    train, test = np.arange(100), np.arange(100, 150)
    fold = bench.fold_of(found, train, test)
    assert np.mean(bench.boosting(fold) == found.y[test]) > 0.8
    blind = fold._replace(X=np.zeros_like(fold.X), X_new=np.zeros_like(fold.X_new))
    assert len(np.unique(bench.boosting(blind))) == 1
