"""`mklopt solve` and `mklopt list`: what is asked, what is printed, how it ends."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt.certificates import checker
from mklopt.cli import main
from mklopt.formulations import LpNorm


def mklopt_(*words: str):
    return CliRunner().invoke(main, list(words))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Features and kernels in NumPy archives."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = np.sign(X[:, 0])
    np.savez(folder / "features.npz", X=X, y=y)
    L = rng.normal(size=(3, 30, 5))
    np.savez(folder / "kernels.npz", K=L @ L.transpose(0, 2, 1), y=y)
    np.savez(folder / "neither.npz", Z=X)
    np.savez(folder / "oblong.npz", K=np.ones((2, 30, 29)), y=y)
    np.savez(folder / "short.npz", X=X[:20], y=y)
    np.savez(folder / "holes.npz", X=np.where(X > 1, np.nan, X), y=y)
    return folder


def test_weights_and_certificate_are_printed(files):
    words = ["--formulation", "lp:p=1.5", "--normalize", "none"]
    words += ["--kernels", "gaussian(2),linear"]
    done = mklopt_("solve", str(files / "features.npz"), *words)
    assert done.exit_code == 0, done.output
    assert "converged" in done.output and "≤ f* ≤" in done.output
    assert "gaussian(2)" in done.output and "2 of 2 kernels in use" in done.output
    said = " ".join(done.output.split())
    assert "assuming the kernels are positive semi-definite" in said
    assert "proved" not in done.output


def test_json_says_what_solve_returns(files):
    path = files / "kernels.npz"
    done = mklopt_("solve", str(path), "--json", "--C", "2", "--loss", "logistic")
    found = json.loads(done.output)
    with np.load(path) as arrays:
        K, y = mklopt.GramStack(arrays["K"]), arrays["y"]
    same = mklopt.Problem(K, y, "logistic", LpNorm(2), C=2.0)
    expected = mklopt.solve(same, tol=1e-9)
    assert found["lower"] <= expected.certificate.upper
    assert expected.certificate.lower <= found["upper"]
    assert found["status"] == "converged" and found["relative_gap"] <= 1e-6
    assert list(found["weights"]) == ["kernel 0", "kernel 1", "kernel 2"]
    np.testing.assert_allclose(
        list(found["weights"].values()), expected.weights, atol=1e-2
    )


def test_a_proof_and_a_result_are_saved(files, tmp_path):
    proof, kept = tmp_path / "a.cert", tmp_path / "a.result"
    words = ["--certificate", str(proof), "--save", str(kept), "--samples", "20"]
    assert mklopt_("solve", str(files / "kernels.npz"), *words).exit_code == 0
    assert checker.check(proof.read_bytes())["lower"] > 0
    assert kept.exists()


def test_a_checkpoint_is_used_and_one_of_another_run_is_refused(files, tmp_path):
    words = [str(files / "kernels.npz"), "--checkpoint", str(tmp_path / "run.ckpt")]
    assert mklopt_("solve", *words).exit_code == 0
    assert (tmp_path / "run.ckpt").stat().st_size > 500
    assert mklopt_("solve", *words).exit_code == 0
    done = mklopt_("solve", *words, "--C", "5")
    assert done.exit_code == 2 and "is of another run: its C was 1.0" in done.output
    done = mklopt_("solve", words[0], "--checkpoint", str(tmp_path / "no" / "a"))
    assert done.exit_code == 2 and "cannot be read or written" in done.output
    done = mklopt_("solve", words[0], "--checkpoint", words[0])
    assert done.exit_code == 2 and "is not a checkpoint" in done.output


def test_a_run_of_more_than_a_minute_is_announced(files, monkeypatch):
    monkeypatch.setattr("mklopt.tasks.estimate.seconds_of_read", lambda grams: 100.0)
    done = mklopt_("solve", str(files / "kernels.npz"), "--json")
    assert json.loads(done.stdout)["status"] == "converged"
    assert "analytic to a gap of 1e-06: about 12 min" in done.stderr


def test_a_hint_is_printed(files):
    done = mklopt_("solve", str(files / "kernels.npz"), "--C", "1e-6", "--no-bias")
    assert "try a larger C" in " ".join(done.output.split())
    done = mklopt_("solve", str(files / "kernels.npz"), "--json")
    assert json.loads(done.output)["hint"] == ""


def test_what_is_not_reached_has_another_exit_code(files):
    words = ["--tol", "0", "--solver", "simple", "--formulation", "l1"]
    words += ["--time-limit", "0.01"]
    assert mklopt_("solve", str(files / "features.npz"), *words).exit_code == 1


@pytest.mark.parametrize(
    "words, said",
    [
        (["sonarr"], "did you mean 'sonar'?"),
        (["missing.npz"], "missing.npz cannot be used"),
        (["notes.txt"], "or a file .npz or .npy"),
        (["wdbc", "--formulation", "lq"], "formulation 'lq' is not known"),
        (["wdbc", "--formulation", "lp:q=2"], "argument 'q'; it takes p"),
        (["wdbc", "--samples", "20", "--save", "/proc/x/y"], "/proc/x cannot be"),
        (["wdbc", "--loss", "hing"], "loss = 'hing' is not known"),
        (["wdbc", "--kernels", "rbf"], "cannot be read without samples; give γ"),
        (["wdbc", "--C", "-1", "--samples", "20"], "C must be positive"),
        (["wdbc", "--samples", "1"], "give a number from 2 to 569"),
        (["wdbc", "--solver", "simplex", "--samples", "20"], "simplex"),
        (["iris", "--loss", "hinge"], "hinge needs −1/+1"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(words, said):
    done = mklopt_("solve", *words)
    assert done.exit_code == 2, done.output
    assert said in done.output and "Traceback" not in done.output


def test_a_file_with_other_arrays_is_explained(files):
    done = mklopt_("solve", str(files / "neither.npz"))
    assert done.exit_code == 2 and "has the arrays Z" in done.output
    done = mklopt_("solve", str(files / "kernels.npz"), "--kernels", "linear")
    assert done.exit_code == 2 and "leave out --kernels" in done.output
    for name, said in [
        ("oblong", "K is (2, 30, 29) for 30 labels y; it must be (M, n, n)"),
        ("short", "X has shape (20, 4); expected (n, d), one row"),
        ("holes", "X has missing or infinite values"),
    ]:
        done = mklopt_("solve", str(files / f"{name}.npz"))
        assert done.exit_code == 2 and said in done.output
