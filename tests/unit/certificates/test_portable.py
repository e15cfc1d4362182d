"""Certificate files: whatever is written is proved by the checker, or not written."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.certificates import portable
from mklopt.certificates.certificate import certify
from mklopt.certificates.checker import check
from mklopt.certificates.portable import save_certificate
from mklopt.certificates.reading import FORMAT
from mklopt.formulations import VSKL, BlockL1, GroupLasso, LpNorm
from tests.unit.certificates.samples import solved, stack, written

LOSSES = ("hinge", "logistic", "squared", "eps_insensitive")
GROUPS = ((0, 2), (1,))


FORMULATIONS = (
    GroupLasso(),
    BlockL1(),
    LpNorm(1.0),
    LpNorm(1.01),
    LpNorm(4 / 3),
    LpNorm(2.0),
    LpNorm(np.inf),
    VSKL(GROUPS, 1),
    VSKL(GROUPS, 2.0),
    VSKL(GROUPS, np.inf),
)


def with_proof(problem: mklopt.Problem) -> mklopt.Problem:
    """The problem with the kernels K + δI that a file is about."""
    shifted = problem.with_(grams=problem.grams.apart())
    shifted.grams.verify_psd()
    return shifted


@pytest.mark.parametrize("kind", ["gram", "factors"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_what_is_true_is_proved(tmp_path, kind, loss, formulation):
    found, content = written(tmp_path, kind=kind, loss=loss, formulation=formulation)
    proved = check(content)
    assert proved["lower"] <= proved["upper"]
    assert proved["upper"] - proved["lower"] <= 1e-6 * abs(proved["upper"])
    shifted = with_proof(found.problem)
    assert proved["problem"] == shifted.digest()
    again = mklopt.certify(
        shifted,
        dual=found.certificate.alpha,
        weights=found.certificate.weights,
        coefficients=found.certificate.coefficients,
    )
    assert (proved["lower"], proved["upper"]) == (again.lower, again.upper)


@pytest.mark.parametrize("bias", [False, True])
def test_costs_per_sample_and_no_bias(tmp_path, bias):
    grams, X = stack("gram")
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    C = np.linspace(0.3, 3, len(y))
    problem = mklopt.Problem(grams, y, "hinge", GroupLasso(), C, bias)
    mklopt.solve(problem).save_certificate(tmp_path / "file.cert")
    assert check((tmp_path / "file.cert").read_bytes())["bias"] is bias


@pytest.mark.parametrize("loss", ["hinge", "multinomial", "multiclass_hinge"])
@pytest.mark.parametrize("point", ["weights", "coefficients", "features"])
def test_every_kind_of_point_is_proved(tmp_path, point, loss):
    """With one output and with three; no index can be taken for another."""
    grams, _ = stack("factors")
    rng, y = np.random.default_rng(5), np.arange(8) % 3
    y = np.where(y > 0, 1.0, -1.0) if loss == "hinge" else y
    problem = mklopt.Problem(grams, y, loss, LpNorm(3.0), np.linspace(1, 2, 8))
    k = problem.shape[1:]
    given: dict[str, Any] = {
        "weights": rng.uniform(size=3),
        "coefficients": rng.normal(size=(3, 8, *k)),
        "features": rng.normal(size=(6, *k)),
    }
    alpha = rng.normal(size=problem.shape)
    found = certify(problem, alpha, **{point: given[point]})
    save_certificate(found, tmp_path / "file.cert")
    proved = check((tmp_path / "file.cert").read_bytes())
    assert (proved["lower"], proved["upper"]) == (found.lower, found.upper)
    assert proved["upper"] == pytest.approx(found.primal, rel=1e-12)
    assert proved["lower"] == pytest.approx(found.dual, rel=1e-12)


def test_what_the_checker_does_not_know_is_not_written(tmp_path):
    """A declared loss is said to be missing from the format, in one sentence."""

    @mklopt.loss
    def risen(f, y):
        return cp.square(f - y) + cp.abs(f - y)

    grams, X = stack("factors")
    problem = mklopt.Problem(grams, X[:, 0], risen, LpNorm(2.0))
    found = mklopt.certify(problem, dual=np.zeros(8), weights=np.ones(3))
    with pytest.raises(ValueError, match=r"cannot state .*'risen' is not known here"):
        save_certificate(found, tmp_path / "file.cert")
    assert not list(tmp_path.iterdir())


def test_a_file_is_sealed_by_the_hash_of_its_claim():
    head, _, body = portable.seal({"lower": 1.0}).partition(b"\n")
    assert head == FORMAT + hashlib.sha256(body).hexdigest().encode()
    assert json.loads(body) == {"lower": 1.0}


def test_the_statement_has_every_digit_of_the_problem(tmp_path):
    problem = solved().problem
    stated = portable.statement(problem)
    first = np.frombuffer(base64.b64decode(stated["kernels"][0]), "<f8")
    np.testing.assert_array_equal(first, next(iter(problem.grams.content())))
    y = np.frombuffer(base64.b64decode(stated["y"]), "<f8")
    np.testing.assert_array_equal(y, problem.y)
    assert stated["problem"] == problem.digest() and stated["bias"] is True
    assert stated["loss"][0] == "hinge" and stated["formulation"][1] == {"p": 4 / 3}


def test_the_dual_point_is_written_in_integers():
    found = solved().certificate
    dual = portable.points_of(found)["dual"]
    whole = np.array(dual["integers"], float) * 2.0 ** -dual["exponent"]
    np.testing.assert_array_equal(whole, found.enclosure.alpha)


def test_infinite_bounds_are_not_written():
    problem = solved().problem
    with np.errstate(all="ignore"):
        found = mklopt.certify(problem, dual=problem.y, weights=np.full(3, 1e300))
        with pytest.raises(ValueError, match="is infinite: a file cannot prove it"):
            portable.points_of(found)


def test_the_problem_of_a_certificate_stays_what_it_is(tmp_path):
    """The proof takes δ > 0, which is part of the file's problem alone."""
    found = solved()
    before, shift = found.problem.digest(), found.problem.grams.shift
    found.save_certificate(tmp_path / "file.cert")
    assert found.problem.digest() == before and not np.any(shift)
    proved = portable.proved_problem(found.problem)
    content = (tmp_path / "file.cert").read_bytes()
    assert check(content)["problem"] == proved.digest() != before
    assert portable.proved_problem(proved) is proved


def test_what_the_checker_would_not_read_is_not_written(tmp_path, monkeypatch):
    found = solved(kind="factors")
    found.save_certificate(tmp_path / "file.cert")
    size = len((tmp_path / "file.cert").read_bytes())
    monkeypatch.setattr(portable, "MAX_BYTES", size)
    found.save_certificate(tmp_path / "file.cert")
    monkeypatch.setattr(portable, "MAX_BYTES", size - 1)
    with pytest.raises(ValueError, match=f"has {size} bytes; the checker reads at"):
        found.save_certificate(tmp_path / "other.cert")
    assert not (tmp_path / "other.cert").exists()


def test_arrays_are_little_endian_doubles():
    assert base64.b64decode(portable._text([1.0, -2.0])) == struct.pack("<2d", 1, -2)
    given = np.arange(6.0, dtype=">f8").reshape(2, 3).T
    assert base64.b64decode(portable._text(given)) == struct.pack(
        "<6d", 0, 3, 1, 4, 2, 5
    )


def test_points_are_those_of_the_enclosure(tmp_path):
    """Weights or coefficients, bias and stretch as they were certified."""
    found = solved().certificate
    point = portable.points_of(found)
    assert point["primal"]["stretch"] == found.enclosure.stretch
    assert point["primal"]["bias"] == found.bias
    assert point["dual"]["shrink"] == found.enclosure.shrink
    assert (point["lower"], point["upper"]) == (found.lower, found.upper)
    own = found.coefficients is None
    assert ("weights" in point["primal"]) is own
    mixed = mklopt.certify(
        found.problem, dual=found.alpha, coefficients=found.expansion
    )
    given = portable.points_of(mixed)["primal"]["coefficients"]
    assert [*map(len, map(base64.b64decode, given))] == [64] * 3


def test_the_stretch_is_written():
    found = solved().certificate
    assert portable._primal(found, 1.5)["stretch"] == 1.5


def test_saving_a_certificate_does_not_change_the_problem(tmp_path):
    """The proof takes δ > 0; results that were saved before and after are read."""
    K = np.ones((1, 30, 30)) * np.linspace(1, 2, 30) * np.linspace(1, 2, 30)[:, None]
    y = np.tile([1.0, -1.0], 15)
    problem, fresh = (mklopt.Problem(K, y, "hinge", BlockL1()) for _ in range(2))
    result = mklopt.solve(problem)
    result.save(tmp_path / "before.npz")
    result.save_certificate(tmp_path / "proof.cert")
    result.save(tmp_path / "after.npz")
    proved = check((tmp_path / "proof.cert").read_bytes())
    assert proved["shift"] > 0 and not problem.grams.shift.any()
    assert proved["problem"] == with_proof(fresh).digest() != problem.digest()
    assert problem.digest() == fresh.digest() and not problem.grams.proof
    for name in ("before", "after"):
        again = mklopt.Result.load(tmp_path / f"{name}.npz", fresh)
        assert again.certificate.primal == result.certificate.primal
