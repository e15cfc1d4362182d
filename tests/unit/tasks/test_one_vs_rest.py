"""One against the rest, and the three classes of Orabona et al. (2012), figure 1."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mklopt
from benchmarks import multiclass as bench_multiclass
from mklopt import GramStack, Problem, data, one_vs_rest
from mklopt.formulations import LpNorm
from mklopt.tasks.one_vs_rest import kept
from mklopt.util import style

rng = np.random.default_rng(2)
X = rng.normal(size=(60, 3))
Y = np.argmax(X + 0.3 * rng.normal(size=(60, 3)), axis=1)
K = np.stack([np.exp(-((X[:, [j]] - X[:, j]) ** 2)) for j in range(3)])
TRAIN, TEST = np.arange(40), np.arange(40, 60)
PROBLEM = Problem(
    GramStack(K[:, :40, :40]), Y[TRAIN], "multiclass_hinge", LpNorm(2.0), C=3.0
)


def test_one_against_the_rest_is_one_problem_per_class():
    found = one_vs_rest(PROBLEM, "analytic", tol=1e-8)
    cross = K[:, 40:, :40]
    assert found.weights.shape == (3, 3) and found.converged
    assert found.relative_gap <= 1e-8
    for c, (result, certificate) in enumerate(zip(found.results, found.certificates)):
        y = np.where(Y[TRAIN] == c, 1.0, -1.0)
        assert result.problem.grams is PROBLEM.grams  # shared, not copied
        alone = mklopt.solve(PROBLEM.with_(y=y, loss="hinge"), "analytic", tol=1e-8)
        assert certificate.dual == pytest.approx(alone.certificate.primal, rel=2e-8)
        np.testing.assert_allclose(found.weights[c], alone.weights, rtol=1e-3)
        np.testing.assert_array_equal(
            found.decision(cross)[:, c], result.decision(cross)
        )
    predicted = found.predict(cross)
    np.testing.assert_array_equal(predicted, np.argmax(found.decision(cross), axis=1))
    assert np.mean(predicted == Y[TEST]) > 0.6
    assert "3 classes" in repr(found)


def test_any_solver_and_any_binary_loss():
    found = one_vs_rest(PROBLEM, "spicy", loss="logistic", tol=1e-6)
    assert found.converged
    assert {r.problem.loss.name for r in found.results} == {"logistic"}
    assert not one_vs_rest(PROBLEM, max_iter=1, tol=0.0).converged


@pytest.mark.parametrize(
    "given, options, words",
    [
        (np.eye(3), {}, "takes a multi-class Problem first"),
        (
            Problem(K, np.where(Y == 0, 1.0, -1.0), "hinge", LpNorm(2.0)),
            {},
            r"takes a multi-class Problem first, .* got Problem\(hinge",
        ),
        (PROBLEM, {"loss": "multinomial"}, "'multinomial' is for many classes"),
        (PROBLEM, {"loss": "hing"}, "loss = 'hing' is not known"),
        (PROBLEM, {"solver": "analytik"}, "did you mean 'analytic'"),
    ],
)
def test_wrong_input_gets_one_clear_sentence(given, options, words):
    with pytest.raises(ValueError, match=words):
        one_vs_rest(given, **options)


def test_kernels_are_kept_by_their_share():
    theta = np.array([[1.0, 0.0, 1e-9], [0.0, 2.0, 1e-9]])
    assert list(kept(theta)) == [0, 1] and list(kept(theta[1])) == [1]
    assert list(kept(theta, share=1e-12)) == [0, 1, 2]
    assert len(kept(np.zeros(3))) == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_three_classes_need_one_kernel_together_and_all_of_them_apart(seed):
    """Section 5.2: certified solutions, with the kernels that the paper reports."""
    together, apart = bench_multiclass.solved(bench_multiclass.toy(60, seed))
    assert together.relative_gap <= 1e-8 and apart.relative_gap <= 1e-8
    assert list(kept(together.weights) + 1) == [4]
    for theta, kernel in zip(apart.weights, (2, 3, 1)):
        assert set(kept(theta) + 1) == {kernel, 4}
    assert len(kept(apart.weights)) == 4


def test_the_figure_is_drawn_without_the_data_of_the_second_part(
    tmp_path, monkeypatch, capsys
):
    load = data.load

    def only_generators(name, **options):
        if name == "mfeat":
            raise data.DataNotFound("mfeat was not found: MKLOPT_DATA is not set")
        return load(name, **options)

    monkeypatch.setattr(data, "load", only_generators)
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", "--n", "60"])
    bench_multiclass.main()
    shown = capsys.readouterr().out
    assert "more one by one: met" in shown and "mfeat was not found" in shown
    for kind in ("png", "pdf"):
        assert (tmp_path / f"multiclass_toy.{kind}").stat().st_size > 5000


def test_the_batch_solver_on_a_small_mfeat(monkeypatch):
    """The table, with six random views in place of the real ones."""
    X = {f"view {m}": rng.normal(size=(50, 2)) + Y[:50, None] for m in range(2)}
    toy = data.Dataset("toy", np.hstack(list(X.values())), Y[:50], X, "classes")
    monkeypatch.setattr(data, "load", lambda name: toy)
    table = bench_multiclass.batch(1e-6)
    gaps = [float(str(cell)) for cell in table.columns[2].cells]
    assert len(gaps) == 18 and max(gaps) <= 1e-6


def test_a_size_that_three_classes_do_not_share_gets_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", "--n", "61"])
    with pytest.raises(SystemExit):
        bench_multiclass.main()
    assert "multiple of 3" in capsys.readouterr().err
