"""Claims are judged by our certificate alone, and kept where they are better."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mklopt
from mklopt import library
from mklopt.certificates.portable import save_certificate
from mklopt.library.stored_records import HOME, points_in, records
from mklopt.library.submissions import compact, submit

NAME = "tiny-hinge"
PROBLEM = library.get(NAME)


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A library that has no stored points, and an own folder."""
    own = tmp_path / "own"
    monkeypatch.setenv("MKLOPT_LIBRARY", str(own))
    for module in ("submissions", "instance"):
        name = f"mklopt.library.{module}.reference_of"
        monkeypatch.setattr(name, lambda problem: points_in(own).load(problem))
    return own


def claim(path, tol, **more):
    found = mklopt.solve(PROBLEM, tol=tol)
    body = {
        "name": NAME,
        "dual": found.dual.tolist(),
        "weights": found.weights.tolist(),
    }
    path.write_text(json.dumps(body | more))
    return found


def test_better_claims_are_kept_and_worse_ones_are_not(alone, tmp_path):
    rough = claim(tmp_path / "rough.json", 1e-2)
    first = submit(tmp_path / "rough.json", source="me")
    assert first.kept and first.before is None
    assert (first.lower, first.upper) == first.after
    assert first.upper == pytest.approx(rough.certificate.upper)
    claim(tmp_path / "fine.json", 1e-8)
    second = submit(tmp_path / "fine.json")
    assert second.kept and second.before == first.after
    assert second.after[0] > first.after[0] and second.after[1] <= first.after[1]
    third = submit(tmp_path / "rough.json")
    assert not third.kept and third.after == second.after and not third.where
    assert records()[NAME].relative_gap <= 1e-8
    assert library.get(NAME).reference.relative_gap <= 1e-8
    assert list(points_in(alone))  # and the package is as it was
    assert not list(points_in(HOME))


def test_bounds_of_two_claims_are_joined(alone, tmp_path):
    fine = mklopt.solve(PROBLEM, tol=1e-9)
    body = {"name": NAME, "dual": fine.dual.tolist()}
    bad = (fine.weights + 0.5).tolist()
    (tmp_path / "dual.json").write_text(json.dumps(body | {"weights": bad}))
    wide = submit(tmp_path / "dual.json")
    assert wide.kept and wide.relative_gap > 1e-3
    worse = (0.9 * fine.dual).tolist()
    other = {"name": NAME, "dual": worse, "weights": (fine.weights / 0.9).tolist()}
    (tmp_path / "primal.json").write_text(json.dumps(other))
    joined = submit(tmp_path / "primal.json")
    assert joined.kept and joined.relative_gap > 1e-3
    assert joined.after[1] - joined.after[0] < 1e-8 * joined.after[1]


def test_a_certificate_file_and_an_archive_are_claims(alone, tmp_path):
    found = mklopt.solve(PROBLEM, tol=1e-6)
    found.save_certificate(tmp_path / "mine.cert")
    first = submit(tmp_path / "mine.cert")
    assert first.name == NAME and first.kept
    assert first.relative_gap == pytest.approx(found.certificate.width, rel=0.5)
    np.savez(tmp_path / "mine.npz", dual=found.dual, weights=found.weights)
    assert submit(tmp_path / "mine.npz", NAME).relative_gap <= 2e-6
    for name in ("toy-qinf", "twonorm-5000"):  # coefficients or features
        problem = library.get(name)
        known = points_in(HOME).load(problem)
        save_certificate(known.certificate, tmp_path / "other.cert")
        found = submit(tmp_path / "other.cert")
        assert found.name == name and found.relative_gap <= 1e-9


def test_a_lie_about_the_value_is_not_read(alone, tmp_path):
    claim(tmp_path / "lie.json", 1e-2, lower=11.0)
    with pytest.raises(ValueError, match="lower"):
        submit(tmp_path / "lie.json")


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "neither a certificate"),
        ("[1, 2]", "no JSON object"),
        ('{"dual": [1]}', "give --name"),
        ('{"name": "tiny-hing", "dual": [1]}', "did you mean 'tiny-hinge'"),
        ('{"name": "tiny-hinge", "dual": [1, 2], "weights": [1, 1, 1]}', "shape"),
        ('{"name": "tiny-hinge", "dul": [1]}', "did you mean 'dual'"),
        ("mklopt certificate 2 0000\n{}", "not a valid certificate"),
    ],
)
def test_what_is_no_claim_gets_a_sentence(tmp_path, text, words):
    path = tmp_path / "claim.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        submit(path)


def test_a_certificate_of_another_problem_is_refused(tmp_path):
    other = mklopt.solve(PROBLEM.with_(C=7.0), tol=1e-3)
    other.save_certificate(tmp_path / "other.cert")
    with pytest.raises(ValueError, match="no problem of the library"):
        submit(tmp_path / "other.cert")
    mklopt.solve(PROBLEM, tol=1e-3).save_certificate(tmp_path / "tiny.cert")
    with pytest.raises(ValueError, match="certificate of tiny-hinge"):
        submit(tmp_path / "tiny.cert", "toy-p4")


def test_coefficients_become_features_where_there_are_factors():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 38))
    given = mklopt.certify(PROBLEM, dual=PROBLEM.y / 2, coefficients=B)
    small = compact(given)
    assert small.coefficients is None and small.features.shape == (6,)
    assert small.upper == pytest.approx(given.upper, rel=1e-12)
