"""The benchmarks of two papers: what they need, what they draw, what they count."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mklopt import bench_spg, bench_vskl, data, figures
from mklopt.bench_spg import Run, Task, ratios
from mklopt.families import Product


@pytest.mark.parametrize("bench", [bench_vskl, bench_spg])
def test_missing_data_gets_a_sentence(bench, monkeypatch):
    def nowhere(name, **options):
        raise data.DataNotFound(f"{name} was not found: MKLOPT_DATA is not set")

    monkeypatch.setattr(data, "load", nowhere)
    monkeypatch.setattr(sys, "argv", ["bench"])
    with pytest.raises(SystemExit, match="liver was not found: MKLOPT_DATA"):
        bench.main()


def test_figures_are_written_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "new")
    figure, axes = figures.panels(3)
    assert len(axes) == 3
    axes[0].plot([1, 2], [3, 4], **figures.look(0))
    paths = figures.save(figure, "trial")
    assert [p.name for p in paths] == ["trial.png", "trial.pdf"]
    assert all(p.stat().st_size > 1000 for p in paths)


def test_ratios_are_over_pgd():
    nothing = (np.zeros(1), np.zeros(1))
    runs = [{"spg": Run(m, 1.0, 2.0, True, nothing),
             "pgd": Run(10, 4.0, 2.0, True, nothing)} for m in (1, 2, 9)]  # fmt: skip
    assert ratios(runs, "spg") == [0.2, 0.25]
    assert bench_spg.apart(runs, "spg") == "+0e+00"


def test_a_task_is_solved_by_every_method_to_the_same_objective():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=40))
    task = Task("product", "toy", 1.0, Product.from_features(X), y)
    found = [task.run(s, **on) for s, on in bench_spg.METHODS.values()]
    assert all(run.ended for run in found)
    values = [run.objective for run in found]
    assert max(values) - min(values) <= 1e-3 * min(values)


def test_mirror_and_the_others_solve_the_same_problem(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    toy = data.Dataset("toy", X, np.sign(X[:, 0] + 0.5 * rng.normal(size=60)))
    monkeypatch.setattr(data, "load", lambda name: toy)
    found = [
        bench_vskl.solve(p, s, tol=1e-3).certificate.primal
        for s, p in bench_vskl.problems("toy", 2, 0).items()
    ]
    assert max(found) - min(found) <= 1.1e-3 * min(found)
