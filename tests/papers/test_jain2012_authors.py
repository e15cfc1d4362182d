"""SPG and PGD as the authors have them: each rule, and what they reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, gmkl, solve
from mklopt.formulations import FixedWeights, Tikhonov
from mklopt.gmkl.families import Product
from mklopt.gmkl.problem import KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm
from papers.jain2012 import authors
from papers.jain2012.authors import ABLATION, METHODS, Inner, Price
from papers.jain2012.settings import Sums

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sign(X[:, 0] + 0.3 * RNG.normal(size=40))
K = np.stack([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", [1.0, 1.33, 2.0])
def test_every_method_ends_at_the_optimum_of_the_convex_problem(method, p):
    rules, family = METHODS[method], Sums(GramStack(K))
    inner = Inner(family, Price(p), Y, 10.0, rules.precision)
    state, found = authors.run(inner, rules, 5000)
    problem = Problem(family.stack, Y, "hinge", Tikhonov(p, 0.5), 10.0)
    exact = solve(problem, tol=1e-7).certificate
    assert found["there"] and state.value == pytest.approx(exact.primal, rel=1e-3)
    assert certify(problem, dual=inner.alpha, weights=state.d).relative_gap < 5e-3


@pytest.mark.parametrize("method", METHODS)
def test_products_end_where_ours_do(method):
    family, rules = Product.from_features(X), METHODS[method]
    inner = Inner(family, Price(2.0), Y, 1.0, rules.precision)
    state, found = authors.run(inner, rules, 5000)
    problem = KernelFamilyProblem(family, Y, "hinge", SquaredNorm(2.0), 1.0)
    assert found["there"] and found["gap"] == np.inf
    least = gmkl.solve(problem, tol=1e-4, max_iter=2000).value
    assert state.value == pytest.approx(least, rel=1e-3)


def test_libsvm_stops_at_its_precision_and_goes_on_from_there():
    """No pair violates its condition by ε; the value is that of our SVM."""
    S, y, C = K.sum(axis=0), Y, 10.0
    alpha, g = np.zeros(40), Y.copy()
    moves = [authors.libsvm(S, y, C, alpha, g, eps, 10**6) for eps in (0.1, 1e-8, 1e-8)]
    assert moves[0] > 0 and moves[1] > 0 and moves[2] == 0
    assert np.allclose(g, y - S @ alpha, atol=1e-9) and abs(np.sum(alpha)) < 1e-9
    up = np.max(g[alpha < np.where(y > 0, C, 0)])
    down = np.min(g[alpha > np.where(y > 0, 0, -C)])
    assert up - down < 1e-8
    problem = Problem(S[None], y, "hinge", FixedWeights([1.0]), C)
    found = certify(problem, dual=alpha, weights=np.ones(1))
    value = y @ alpha - 0.5 * alpha @ S @ alpha
    assert found.primal == pytest.approx(value, rel=1e-6)


def test_the_reported_gap_is_W_less_the_dual_value():
    family, p = Sums(GramStack(K)), 1.33
    inner, d = Inner(family, Price(p), Y, 10.0, 1e-10), np.array([0.5, 2.0, 1.0])
    value = inner.value(d)
    inner.gradient(d)
    v = np.sqrt(family.stack.quad(inner.alpha))
    dual = Y @ inner.alpha - Tikhonov(p, 0.5).conjugate(v)
    assert value - inner.gap(value) == pytest.approx(dual, rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 1.1, 2.0])
def test_the_price_and_its_slope(p):
    price, d = Price(p), np.array([0.3, 2.0, 1.0])
    h = 1e-6 * np.eye(3)
    ends = [(price.value(d + e) - price.value(d - e)) / 2e-6 for e in h]
    assert np.allclose(price.gradient(d), ends, rtol=1e-6)
    cut = Price(1.1).gradient(np.array([0.0, 1.0]))
    assert cut[0] == pytest.approx(1e-4**0.1)


def test_steps_are_those_of_the_program_or_of_the_print():
    s, y = np.array([1.0, 0.0]), np.array([1e4, 0.0])
    g = np.array([4.0, 1.0])
    assert authors.spectral(s, y, g, printed=False) == 0.01
    assert authors.spectral(s, y, g, printed=True) == pytest.approx(1e-4)
    assert authors.spectral(s, -y, g, printed=False) == 0.25
    assert authors.spectral(s, -y, g, printed=True) == 10.0
    assert authors.spectral(s, 1e-4 * s, g, printed=True) == 10.0
    assert authors.shorter(1.0, rise=1.0, falls=1.0, printed=True) == 0.5
    assert authors.shorter(1.0, rise=1.0, falls=1.0, printed=False) == 0.25
    assert authors.shorter(1.0, rise=99.0, falls=1.0, printed=False) == 0.5
    assert authors.shorter(0.05, rise=9.0, falls=1.0, printed=False) == 0.025
    assert authors.mixed(0.5, 1.0) == 0.525 and authors.mixed(0.5, 0.05) == 0.475
    assert authors.mixed(0.5, 0.5) == 0.5 and authors.mixed(0.11, 0.0) == 0.1
    assert authors.finer_precision(9.0, 0.1) == 0.1
    assert authors.finer_precision(3.0, 0.1) == 0.01
    assert authors.finer_precision(0.5, 1e-4) == 1e-4


def test_the_components_are_switched_on_one_by_one():
    on = [r.spectral + r.nonmonotone + r.tuned for r in ABLATION.values()]
    assert on == [0, 1, 1, 2, 3]
    assert ABLATION["SPG"] == METHODS["SPG"] and ABLATION["PGD"] == METHODS["PGD"]
    fixed = replace(METHODS["SPG"], tuned=False)
    inner = Inner(Sums(GramStack(K)), Price(2.0), Y, 10.0, 1e-6)
    eps = {s.eps for s, _ in zip(authors.descend(inner, np.ones(3), fixed), range(5))}
    assert eps == {1e-6}
    tuned = authors.descend(inner, np.ones(3), METHODS["SPG"])
    assert next(tuned).eps == 0.1
