"""Certificates for exact kernels of a family: written by rules, proved for K*."""

from __future__ import annotations

import json

import mpmath
import numpy as np
import pytest

import mklopt
from mklopt import kernels
from mklopt.certificates.by_rule import by_rule, rules_of
from mklopt.certificates.certificate import certify
from mklopt.certificates.checker import check
from mklopt.certificates.portable import save_certificate
from mklopt.formulations import BlockL1, GroupLasso, LpNorm
from tests.unit.certificates.rationals import values_of

FAMILY = kernels.gaussians([0.5, 2.0, "mean"], on="both") + kernels.polynomials([1, 3])
STEPS = (None, "unit_trace", "spherical", ("multiplicative", "spherical"))


def solved(normalize=None, loss="hinge", formulation=None, n=10):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    y = np.arange(n) % 3 if loss.startswith("mult") else y
    fitted = FAMILY.fit(X, normalize=normalize)
    problem = mklopt.Problem(fitted.grams(), y, loss, formulation or LpNorm(4 / 3), 2.0)
    return fitted, mklopt.solve(problem, tol=1e-6, time_limit=2.0)


def written(result, fitted, tmp_path):
    result.save_certificate(tmp_path / "file.cert", kernels=fitted)
    content = (tmp_path / "file.cert").read_bytes()
    return content, json.loads(content.partition(b"\n")[2])


@pytest.mark.parametrize("normalize", STEPS, ids=str)
@pytest.mark.parametrize(
    "loss, formulation",
    [("hinge", LpNorm(4 / 3)), ("logistic", GroupLasso()), ("multinomial", BlockL1())],
)
def test_exact_kernels_are_proved(tmp_path, normalize, loss, formulation):
    """Within 1e-10 of the bounds for computed kernels, and true with 60 digits."""
    fitted, result = solved(normalize, loss, formulation)
    content, claim = written(result, fitted, tmp_path)
    proved = check(content)
    room = 1e-10 * abs(result.certificate.upper)
    assert result.certificate.lower - room <= proved["lower"]
    assert proved["upper"] <= result.certificate.upper + room
    if "weights" in claim["primal"]:
        with mpmath.workdps(60):
            low, up = values_of(claim)
        assert proved["lower"] <= low <= up <= proved["upper"]
    assert proved["shift"] == 0.0


def test_what_float64_would_not_show_is_counted(tmp_path):
    """Bounds without the errors of entries are for K, and are not written."""
    fitted, result = solved()
    exact = by_rule(result.certificate, fitted)
    plain = certify(exact.problem, exact.alpha, exact.weights)
    assert exact.lower < plain.lower and plain.upper < exact.upper


def test_rules_are_those_of_the_family():
    """Points, columns and divisors give the matrices of the stack."""
    fitted, _ = solved(("unit_trace", "spherical"))
    stated = rules_of(fitted)
    assert np.array_equal(np.array(stated["points"]).T, fitted.blocks[""])
    for (name, terms), K in zip(stated["kernels"], fitted, strict=True):
        X = np.array(stated["points"])[terms["columns"]].T
        if name == "gaussian":
            found = np.exp(-terms["rate"] * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        else:
            found = (X @ X.T + terms["offset"]) ** terms["degree"]
        for step in terms["divisors"]:
            found /= step if np.ndim(step) == 0 else np.outer(step, step)
        np.testing.assert_allclose(found, K, rtol=1e-12)


def test_coefficients_too(tmp_path):
    fitted, result = solved()
    B = np.random.default_rng(1).normal(size=(fitted.M, fitted.n)) / 10
    found = certify(result.problem, result.dual, coefficients=B)
    save_certificate(found, tmp_path / "file.cert", fitted)
    proved = check((tmp_path / "file.cert").read_bytes())
    assert proved["upper"] == pytest.approx(found.upper, rel=1e-11)


def test_a_file_by_rules_is_small(tmp_path):
    fitted, result = solved(n=40)
    content, _ = written(result, fitted, tmp_path)
    result.save_certificate(tmp_path / "entries.cert")
    assert 4 * len(content) < (tmp_path / "entries.cert").stat().st_size
    text = check(content)["statement"]
    assert "M = 11" in text and "by rules of points" in text


def test_other_kernels_are_refused_in_one_sentence(tmp_path):
    fitted, result = solved()
    X = fitted.blocks[""]
    for other, why in (
        (kernels.gaussians([1.0]).fit(X), "the problem has 11 on 10"),
        (FAMILY.fit(X[:5]), "has 11 kernels on 5 points"),
        (FAMILY.fit(X, normalize="centre"), "leave out `kernels`"),
        (kernels.laplacians(list(range(1, 12))).fit(X), "leave out `kernels`"),
    ):
        with pytest.raises(ValueError, match=why):
            result.save_certificate(tmp_path / "file.cert", kernels=other)
        assert not list(tmp_path.iterdir())


def test_other_kernels_than_those_solved_with_are_proved_for_themselves(tmp_path):
    """The file is true of the kernels that it states, whichever were solved with."""
    fitted, result = solved()
    wider = kernels.gaussians([5.0, 9.0, 2.5], on="both") + kernels.polynomials([2, 4])
    content, claim = written(result, wider.fit(fitted.blocks[""]), tmp_path)
    proved = check(content)
    assert proved["upper"] - proved["lower"] > 1e-3 > result.certificate.gap
    with mpmath.workdps(60):
        low, up = values_of(claim)
    assert claim["lower"] <= low <= up <= claim["upper"]
