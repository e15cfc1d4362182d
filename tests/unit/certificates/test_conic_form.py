"""Files of own formulations: both points are exact, and the bounds are as good."""

from __future__ import annotations

import json
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import mklopt
from mklopt import formulations as F
from mklopt.certificates import conic_form
from mklopt.certificates.checker import check
from mklopt.certificates.portable import save_certificate
from mklopt.certificates.reading import Refused
from tests.second_checker import verdicts
from tests.unit.certificates.samples import stack


@mklopt.formulation
def bounded(u):  # Ω* is finite on a box alone
    return 0.7 * u[0] + cp.sum(u[1:])


@mklopt.formulation
def below_zero(u):
    return cp.sum_squares(u) + cp.sum(u) - 1.5


@mklopt.formulation
def exponential(u):
    return cp.sum(cp.exp(u)) + cp.norm(u[:2])


@mklopt.formulation
def irrational(u):
    return 0.5 * cp.square(cp.pnorm(u, np.sqrt(2), approx=False))


@mklopt.variational
def entropy(theta):
    return cp.sum(-cp.entr(theta)) + 2 * cp.sum(theta)


@mklopt.formulation
def as_elastic_net(u):
    return 0.5 * cp.sum(u) + 0.25 * cp.sum_squares(u)


OWN = (bounded, below_zero, exponential, irrational, entropy, as_elastic_net)


def solution(formulation, loss="hinge"):
    grams, X = stack("factors", n=10)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[0] = -y[0]
    return mklopt.solve(mklopt.Problem(grams, y, loss, formulation, 2.0), tol=1e-7)


@pytest.mark.parametrize("formulation", OWN, ids=lambda f: f.name)
def test_own_formulations_are_proved_by_both(tmp_path, formulation):
    loss = "logistic" if formulation is bounded else "hinge"
    result = solution(formulation, loss)
    result.save_certificate(tmp_path / "own.cert")
    content = (tmp_path / "own.cert").read_bytes()
    found = check(content)
    gap = (found["upper"] - found["lower"]) / abs(found["upper"])
    assert gap <= result.certificate.relative_gap + 1e-6
    assert found["lower"] <= result.certificate.upper
    assert found["upper"] >= result.certificate.lower
    assert verdicts([content], tmp_path)[0].startswith("proved: ")


def test_a_form_and_a_name_have_the_same_optimum(tmp_path):
    proved = []
    for place, formulation in enumerate((as_elastic_net, F.ElasticNet(0.5))):
        path = tmp_path / f"{place}.cert"
        solution(formulation).save_certificate(path)
        proved.append(check(path.read_bytes()))
    one, two = proved
    assert one["lower"] <= two["upper"] and two["lower"] <= one["upper"]
    assert one["formulation"][0] == "Conic" and two["formulation"][0] == "ElasticNet"


def test_a_class_with_the_name_of_ours_is_written_by_its_form(tmp_path):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class GroupLasso(F.Formulation):
        listed = False

        def penalty(self, u):
            return 2 * cp.sum(u)

    found = solution(GroupLasso())
    save_certificate(found.certificate, tmp_path / "own.cert")
    assert check((tmp_path / "own.cert").read_bytes())["formulation"][0] == "Conic"


def test_points_that_are_not_exact_are_not_written(tmp_path, monkeypatch):
    """Without the exact solution of the equations no push is enough."""
    result = solution(irrational)
    unit = lambda rows, right, x: [Fraction(float(a)) for a in x]  # noqa: E731
    monkeypatch.setattr(conic_form, "exactly", unit)
    with pytest.raises(ValueError, match="no exact multiplier"):
        result.save_certificate(tmp_path / "own.cert")
    assert not list(tmp_path.iterdir())


def test_a_point_that_is_too_long_for_the_file_is_none():
    assert not conic_form._holds(lambda *given: None, [], [10**999])
    assert conic_form._holds(lambda *given: None, [], [10**998])


@pytest.mark.parametrize("seed", range(5))
def test_equations_hold_exactly(seed):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(5, 9)) * (rng.random((5, 9)) < 0.6)
    dense[3] = 2 * dense[0]  # follows from another one
    x, rows = rng.normal(size=9), sp.csr_matrix(dense)
    right = dense @ x
    right[3] = 2 * right[0]
    found = conic_form.exactly(rows, right, x)
    assert found is not None
    for row, b in zip(dense, right):
        total = sum((Fraction(a) * z for a, z in zip(row, found)), Fraction(0))
        assert total == Fraction(b)
    np.testing.assert_allclose([float(z) for z in found], x, atol=1e-10)


def test_equations_without_a_solution():
    rows = [{0: Fraction(1)}, {0: Fraction(2)}]
    assert conic_form.eliminated(rows, [Fraction(1), Fraction(3)]) is None


def test_the_columns_of_a_form_are_u_then_t(tmp_path):
    terms = conic_form.terms_of(bounded, 3)
    assert json.loads(json.dumps(terms)) == terms
    conic = conic_form.Conic(terms, 3)
    u = [Fraction(1), Fraction(2), Fraction(3)]
    conic.penalty([a * a for a in u], [10, 20, 30, 57, *[0] * (conic.width - 4), 10])
    with pytest.raises(Refused):
        conic.penalty(
            [a * a for a in u], [10, 20, 30, 56, *[0] * (conic.width - 4), 10]
        )


@pytest.mark.parametrize("seed", range(3))
def test_points_show_no_more_than_closed_forms(seed):
    """Ω and Ω* of the elastic net are below what any point shows, also a forged one."""
    rng, omega = np.random.default_rng(seed), F.ElasticNet(0.5)
    conic = conic_form.Conic(conic_form.terms_of(as_elastic_net, 4), 4)
    x = rng.uniform(0, 2, 4) * (rng.random(4) < 0.7)
    squares = [Fraction(a) ** 2 for a in x]
    for make, shown, truth in (
        (conic_form.multiplier, conic.conjugate, omega.conjugate(x)),
        (conic_form.epigraph_point, conic.penalty, omega.value(x)),
    ):
        point = make(as_elastic_net, squares)
        assert 0 <= float(shown(squares, point)) - truth + 1e-14 < 1e-7
        accepted = 0
        for _ in range(300):
            i, k = rng.integers(len(point)), int(rng.integers(4, 45))
            other = list(point)
            other[i] += int(rng.choice([-1, 1])) * (abs(other[i]) >> k)
            try:
                value = shown(squares, other)
            except Refused:
                continue
            accepted += 1
            assert float(value) >= truth - 1e-14
        assert accepted > 5


def test_floats_are_rounded_outward():
    from decimal import Decimal

    third = Decimal(1) / Decimal(3)
    assert (
        Decimal(conic_form._float(third, -1))
        <= third
        <= Decimal(conic_form._float(third, 1))
    )
    assert conic_form._float(Decimal("0.5"), -1) == conic_form._float(Decimal("0.5"), 1)
