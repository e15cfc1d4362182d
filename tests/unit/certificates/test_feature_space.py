"""Certificates of feature weights: in exact arithmetic, from any point, for any n."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, certify
from mklopt.certificates.checker import Refused, check
from mklopt.formulations import BlockL1, GroupLasso, LpNorm
from mklopt.grams import stack as stack_module

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def features(monkeypatch):
    """Small factors count as large ones."""
    monkeypatch.setattr(stack_module, "FEATURE_SAMPLES", 1)


def problem(loss="hinge", formulation=None, n=40, C=1.0, bias=True, dtype="float64"):
    F = rng.normal(size=(n, 7))
    y = np.sign(F[:, 0] + rng.normal(size=n))
    grams = GramStack.from_factors(F.astype(dtype), ranks=[2, 4, 1], dtype=dtype)
    return Problem(grams, y, loss, formulation or LpNorm(2.0), C, bias)


def exact_predictions(p: Problem, w, bias) -> list[Fraction]:
    F = p.grams.panel().F
    return [
        sum((Fraction(float(a)) * Fraction(b) for a, b in zip(row, w)), Fraction(bias))
        for row in F
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("formulation", [BlockL1(), GroupLasso()], ids=repr)
def test_upper_and_lower_hold_in_exact_arithmetic(formulation, dtype):
    for C in (0.1, 10.0):
        p = problem(formulation=formulation, C=C, dtype=dtype)
        w, candidate = rng.normal(size=7), p.y * rng.uniform(0, C, size=40)
        found = certify(p, candidate, features=w)
        bounds, t = found.enclosure, Fraction(found.enclosure.stretch)
        f = exact_predictions(p, w, found.bias)
        margins = [1 - int(y) * t * g for y, g in zip(p.y, f)]
        losses = sum((max(m, Fraction(0)) for m in margins), Fraction(0))
        u = sum(np.linalg.norm(part) for part in np.split(w, [2, 6]))
        omega = u**2 / 2 if isinstance(formulation, BlockL1) else u
        stretched = float(t) ** (2 if isinstance(formulation, BlockL1) else 1)
        total = float(losses) * C + omega * stretched
        assert total <= bounds.upper * (1 + 1e-15)
        assert bounds.upper <= found.primal * (1 + 1e-10)
        alpha = [Fraction(a) * Fraction(bounds.shrink) for a in bounds.alpha]
        assert sum(alpha) == 0
        F = p.grams.panel().F.astype(float)
        h = [sum(Fraction(x) * a for x, a in zip(col, alpha)) for col in F.T]
        v = max(float(sum(x * x for x in part)) for part in (h[:2], h[2:6], h[6:]))
        linear = float(sum(int(y) * a for y, a in zip(p.y, alpha)))
        dual = linear - (v / 2 if isinstance(formulation, BlockL1) else 0.0)
        assert bounds.lower <= dual + 1e-15 * abs(linear)
        assert bounds.lower >= found.dual - 1e-9 * abs(found.primal)


def test_errors_of_predictions_and_norms_are_really_bounded():
    """A test that would notice a missing term: rounding is made large by float32."""
    p = problem(n=2000)
    w, alpha = 1e3 * rng.normal(size=7), p.feasible(p.y * rng.uniform(size=2000))
    from mklopt.certificates.feature_space import FeatureBounds

    bounds = FeatureBounds(p, alpha, w)
    f, error, u = bounds.predictions(0.1)
    for one, true, e in zip(f[:, 0], exact_predictions(p, w, 0.1), error[:, 0]):
        assert abs(Fraction(one) - true) <= e
    F = p.grams.panel().F
    for m, part in enumerate(np.split(np.arange(7), [2, 6])):
        square = Fraction(0)
        for column in F[:, part].T:
            square += sum(Fraction(x) * Fraction(a) for x, a in zip(column, alpha)) ** 2
        assert Fraction(bounds.norms_above[m]) ** 2 >= square
        assert u[m] >= np.linalg.norm(w[part])


def test_weights_and_coefficients_become_feature_weights():
    p = problem(C=3.0)
    theta, alpha = np.array([0.5, 0.0, 2.0]), p.feasible(p.y * rng.uniform(size=40))
    one = certify(p, alpha, theta)
    factors = np.hstack(p.grams.factors)
    w = theta[p.grams.owner] * (factors.T @ one.alpha)
    np.testing.assert_allclose(one.features, w, atol=1e-12)
    assert one.weights is not None
    other = certify(p, alpha, coefficients=np.multiply.outer(theta, alpha))
    same = certify(p, alpha, features=one.features)
    assert other.weights is None and same.weights is None
    assert same.primal == one.primal and same.upper == one.upper
    assert other.primal == pytest.approx(one.primal)
    dense = GramStack([L @ L.T for L in p.grams.factors])
    plain = certify(p.with_(grams=dense), alpha, theta)
    assert one.primal == pytest.approx(plain.primal)
    assert one.dual == pytest.approx(plain.dual)
    np.testing.assert_allclose(one.norms, plain.norms, atol=1e-12)


def test_the_better_points_of_two_certificates():
    p = problem()
    zero, alpha = np.zeros(40), p.feasible(0.01 * p.y)
    good = certify(p, zero, features=0.1 * np.eye(7)[0])
    both = good.best_of(certify(p, alpha, features=10 * np.ones(7)))
    assert both.primal == good.primal and both.dual > good.dual
    np.testing.assert_array_equal(both.features, good.features)
    assert both.upper >= both.lower


def test_what_is_asked_wrongly_is_refused():
    p = problem()
    with pytest.raises(ValueError, match="features has shape"):
        certify(p, np.zeros(40), features=np.zeros(6))
    with pytest.raises(ValueError, match="one of weights=, coefficients= and features"):
        certify(p, np.zeros(40), np.ones(3), features=np.zeros(7))
    dense = p.with_(grams=GramStack(np.eye(40)[None]))
    with pytest.raises(ValueError, match="given as factors"):
        certify(dense, np.zeros(40), features=np.zeros(7))
    with pytest.raises(ValueError, match="no coefficients"):
        _ = certify(p, np.zeros(40), features=np.zeros(7)).expansion


def test_a_file_of_feature_weights_is_proved_and_a_changed_one_refused(tmp_path):
    from mklopt.certificates.portable import points_of, seal, statement

    p = problem(n=25, formulation=BlockL1())
    result = mklopt.solve(p, tol=1e-5)
    assert result.point == "features"
    result.save_certificate(tmp_path / "proof.cert")
    proved = check((tmp_path / "proof.cert").read_bytes())
    assert proved["upper"] == result.certificate.upper
    claim = {**statement(p), **points_of(result.certificate)}
    low = {**claim, "upper": claim["lower"]}
    short = {**claim, "primal": {**claim["primal"], "features": [""] * 3}}
    for wrong in (low, short):
        with pytest.raises(Refused):
            check(seal(wrong))
    result.save(tmp_path / "result.npz")
    again = mklopt.Result.load(tmp_path / "result.npz", p)
    assert again.point == "features" and again.relative_gap == result.relative_gap
