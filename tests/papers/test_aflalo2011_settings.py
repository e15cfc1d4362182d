"""Problems of Aflalo et al. (2011): the same optimum for all solvers, known spectra."""

from __future__ import annotations

import numpy as np

from mklopt import data, solve
from papers.aflalo2011 import settings


def test_mirror_and_the_others_solve_the_same_problem(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    toy = data.Dataset("toy", X, np.sign(X[:, 0] + 0.5 * rng.normal(size=60)))
    monkeypatch.setattr(data, "load", lambda name: toy)
    found = settings.problems("toy", 2, 0)
    assert {p.grams.M for p in found.values()} == {4}
    assert {p.grams.n for p in found.values()} == {42}
    values = [solve(p, s, tol=1e-3).certificate.primal for s, p in found.items()]
    assert max(values) - min(values) <= 1.1e-3 * min(values)


def test_full_rank_kernels_are_well_conditioned():
    grams, y = settings.full_rank(24, 6)
    least = [np.linalg.eigvalsh(K)[0] for K in grams.dense()]
    assert grams.M == 6 and min(least) >= 0.25 - 1e-12
    assert np.sum(y) == 0
