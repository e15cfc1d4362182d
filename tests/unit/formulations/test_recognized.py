"""Declarations made of known terms: twins, their closed forms, and what is left out."""

from __future__ import annotations

import pickle
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from mklopt import Problem, formulation, reference, solve, variational
from mklopt.formulations import (
    GroupLasso,
    NonIsotropic,
    Tikhonov,
    formulations,
    recognized,
    stripped,
)
from mklopt.formulations.derive.epigraph import Epigraph
from mklopt.judge.closed_forms import check_closed_forms
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
Y = TARGETS["binary"]
M = 6
D = np.array([1.0, 2.0, 0.5, 3.0, 1.5, 0.7])
pnorm: Any = cp.pnorm  # its annotations know whole exponents only
TREE = [[0, 1, 2, 3, 4, 5], [0, 1, 2], [3, 4], [0, 1]]

CLOSED = {
    "scaled sum": lambda u: 0.3 * cp.sum(u),
    "weighted sum": lambda u: D @ u,
    "sum of entries": lambda u: u[0] + u[1] + 2 * cp.sum(u[2:]),
    "norm": lambda u: 2 * cp.norm(u, 2),
    "norm 1.5": lambda u: pnorm(u, 1.5, approx=False),
    "norm 3": lambda u: 0.7 * pnorm(cp.multiply(D, u), 3.0, approx=False),
    "largest": lambda u: cp.max(u),
    "weighted largest": lambda u: 3 * cp.norm(cp.multiply(D, u), "inf"),
    "pairwise largest": lambda u: cp.sum(cp.maximum(u[:3], u[3:])),
    "groups": lambda u: cp.norm(u[:2]) + 2 * cp.norm(u[2:4], "inf") + cp.sum(u[4:]),
    "sparse group": lambda u: 0.4 * cp.sum(u) + cp.norm(u[[0, 2]]) + cp.norm(u[[1, 3]]),
    "mixed norm": lambda u: cp.mixed_norm(cp.reshape(u, (2, 3), order="C"), 2, 1),
    "elastic net": lambda u: 0.3 * cp.sum(u) + 0.7 * cp.sum_squares(u),
    "weighted elastic": lambda u: D @ u + cp.sum_squares(cp.multiply(D, u)) / 2,
    "squares of some": lambda u: cp.sum(u) + cp.sum_squares(u[:3]),
    "diagonal quadratic": lambda u: cp.quad_form(u, np.diag(D)),
    "scaled square of a norm": lambda u: 0.3 * cp.square(pnorm(u, 1.5, approx=False)),
    "weighted square of a sum": lambda u: cp.square(D @ u),
    "squares of sums": lambda u: cp.square(cp.sum(u[:2])) + cp.square(cp.sum(u[2:])),
    "power of a norm": lambda u: cp.power(cp.norm(u, 2), 1.5, approx=False),
    "powers": lambda u: D @ cp.power(u, 1.5, approx=False),
    "steep powers": lambda u: cp.sum(cp.power(u, 3)),
    "sorted": lambda u: cp.dotsort(u, np.array([2.0, 1.0, 0.5])),
    "largest two": lambda u: 0.5 * cp.sum_largest(u, 2) + 0.1 * cp.sum(u),
    "norm of norms": lambda u: cp.square(
        pnorm(cp.hstack([cp.norm(u[:2]), cp.norm(u[2:])]), 1.5, approx=False)
    ),
    "with a constant": lambda u: cp.sum(u) + cp.norm(u) + 5,
    "tree": lambda u: sum(cp.norm(u[g]) for g in TREE) + 0.1 * cp.sum(u),
    "tree with factors": lambda u: sum(c * cp.norm(u[g]) for c, g in zip(D, TREE)),
    "some squares": lambda u: (cp.sum_squares(u), [u[[0, 3]] <= 0]),
    "some kernels": lambda u: (cp.sum(u) + 2 * cp.norm(u), [u[1] + u[2] <= 0]),
    "square of some": lambda u: (0.5 * cp.square(cp.sum(u)), [u[5] == 0]),
    "sorted, of some": lambda u: (cp.dotsort(u, np.array([2.0, 1.0])), [u[:2] <= 0]),
}
PARTLY = {  # some operators are closed, the others derived
    "overlap": lambda u: cp.norm(u[:4]) + 2 * cp.norm(u[2:]),
    "overlapping maxima": lambda u: cp.max(u[:4]) + 2 * cp.max(u[2:]),
    "quadratic form": lambda u: cp.quad_form(u, np.eye(M) + 0.3),
    "norm of overlapping norms": lambda u: cp.norm(
        cp.hstack([cp.sum(u[:4]), cp.norm(u[2:], 2)])
    ),
    "cube of a norm": lambda u: cp.power(cp.norm(u), 3),
}


@pytest.mark.parametrize("name", [*CLOSED, *PARTLY])
def test_closed_forms_of_twins_are_what_the_declaration_gives(name):
    mine = formulation((CLOSED | PARTLY)[name]).bound(M)
    assert mine.closed("value") and mine.closed("weights")
    if name in CLOSED:
        assert mine.closed("conjugate") and mine.closed("prox")
    report = check_closed_forms(mine, M)
    assert report.passed, str(report)


@pytest.mark.parametrize("kind", formulations().values())
def test_a_formulation_declared_again_is_treated_as_itself(kind):
    for one in kind.examples(M):
        twin = formulation(one.penalty).twin(M)
        assert twin is not None
        mine = formulation(one.penalty).bound(M)
        missing = one.traits - mine.traits
        assert not missing or type(twin.formulation).__name__ == "LinearSquares"
        assert [n for n in ("value", "conjugate", "prox") if one.closed(n)] == [
            n for n in ("value", "conjugate", "prox") if mine.closed(n)
        ]


def test_nothing_is_compiled_and_the_zeros_are_the_same(monkeypatch):
    compiled = []
    monkeypatch.setattr(Epigraph, "_compile", lambda *a, **k: compiled.append(a))
    mine = formulation(lambda u: 1.0 * cp.sum(u))
    found = solve(Problem(GRAMS, Y, formulation=mine), tol=1e-8)
    known = solve(Problem(GRAMS, Y, formulation=GroupLasso()), tol=1e-8)
    np.testing.assert_array_equal(found.weights, known.weights)
    assert not compiled and found.certificate.lower == known.certificate.lower


@pytest.mark.parametrize("name", ["sparse group", "weighted elastic", "norm 3", "tree"])
def test_bounds_of_twins_contain_the_optimum(name):
    declare = (CLOSED | PARTLY)[name]
    problem = Problem(GRAMS, Y, formulation=formulation(declare))
    truth = reference.solve(problem.with_(formulation=stripped(formulation(declare))))
    found = solve(problem, tol=1e-6).certificate
    assert found.relative_gap <= 1e-6
    assert found.lower <= truth.upper and truth.lower <= found.upper


def test_a_rounded_constant_ends_the_claim_to_be_exact():
    half = formulation(lambda u: 0.5 * (0.3 * cp.sum(u))).bound(M)
    third = formulation(lambda u: 0.7 * (0.3 * cp.sum(u))).bound(M)
    assert half.exact and not third.exact and third.closed("prox")
    assert formulation(lambda u: cp.sum(u) / 4).bound(M).exact
    assert not formulation(lambda u: cp.sum(u) / 3).bound(M).exact
    assert not formulation(lambda u: cp.sum(u) + 5 + cp.max(u)).bound(M).exact


def test_a_wrong_rule_is_found_out(monkeypatch):
    """A table that says something else than the declaration is not used."""
    wrong = lambda form, M: GroupLasso()  # noqa: E731
    monkeypatch.setattr(recognized, "_whole", wrong)
    assert formulation(lambda u: 2.5 * cp.sum(u)).twin(M) is None
    assert formulation(lambda u: 1.5 * cp.norm(u)).twin(M) is None


@pytest.mark.parametrize(
    "declare",
    [
        lambda u: cp.sum(cp.exp(u)),
        lambda u: cp.sum(u[:3]),  # flat in the others
        lambda u: cp.sum(u) - 0.1 * u[0],
        lambda u: cp.sum(cp.sqrt(u)),
        lambda u: cp.norm(u - 1),
        lambda u: (cp.sum(u), [u <= 1]),
        lambda u: (cp.sum(u), [u <= 0]),
        lambda u: (cp.sum(u), [u[0] - u[1] <= 0]),
        lambda u: cp.norm(np.array([[1.0, -1.0, 0, 0, 0, 0]]) @ u) + cp.sum(u),
    ],
)
def test_what_is_not_in_the_table_has_no_twin(declare):
    assert formulation(declare).twin(M) is None
    assert not formulation(declare).bound(M).traits


def test_prices_of_kernel_weights_have_twins():
    tikhonov = variational(lambda theta: 0.7 * cp.square(cp.norm(theta, 2)))
    assert tikhonov.bound(M).traits >= Tikhonov(2.0).traits - {"priced"}
    u = np.arange(1.0, M + 1)
    assert tikhonov.value(u) == pytest.approx(Tikhonov(2.0, 0.7).value(u))
    ivanov = variational(lambda theta: (cp.Constant(0.0), [cp.norm(theta, 4) <= 1]))
    assert ivanov.bound(M).ball == pytest.approx(4)
    linear = variational(lambda theta: 0.5 * cp.sum(theta)).bound(M)
    assert linear.exact and linear.orthant == (0.5, 0.0)
    assert variational(lambda t: (cp.sum(t), [t <= 1])).twin(M) is None
    P = np.eye(M) - 0.1
    inside = variational(lambda t: (cp.Constant(0.0), [cp.quad_form(t, P) <= 2]))
    known = NonIsotropic(2 * np.linalg.inv(P))
    assert inside.bound(M).closed("conjugate") and not inside.bound(M).exact
    assert inside.conjugate(u) == pytest.approx(known.conjugate(u))


def test_an_ellipsoid_may_be_a_norm_of_products():
    A = np.array([[2.0, -1.0, 0], [0, 1.0, 0.5], [0, 0, 1.0]])
    mine = variational(lambda t: (cp.Constant(0.0), [cp.norm(A @ t, 2) <= 3]))
    known = NonIsotropic(9 * np.linalg.inv(A.T @ A))
    u = np.array([1.0, 2.0, 0.5])
    assert mine.bound(3).closed("conjugate")
    assert mine.value(u) == pytest.approx(known.value(u))
    shifted = variational(lambda t: (cp.Constant(0.0), [cp.norm(A @ t - 1, 2) <= 3]))
    assert shifted.twin(3) is None


def test_kernels_that_must_not_be_used_are_not_used():
    mine = formulation(lambda u: (cp.sum(u), [u[[0, 2]] <= 0]))
    found = solve(Problem(GRAMS, Y, formulation=mine), tol=1e-8)
    rest = solve(
        Problem(GRAMS.subset(np.array([1, 3, 4, 5])), Y, formulation=GroupLasso())
    )
    assert not np.any(found.weights[[0, 2]])
    assert found.certificate.lower <= rest.certificate.upper
    assert rest.certificate.lower <= found.certificate.upper
    assert "must not be used" in mine.twin(M).words


@formulation
def pickled(u, lam=0.5):
    return lam * cp.sum(u)


def test_a_bound_declaration_is_equal_to_itself_and_is_pickled():
    problem = Problem(GRAMS, Y, formulation=pickled(lam=2.0))
    assert problem.formulation == pickled(lam=2.0)
    assert problem.formulation.key() == pickled(lam=2.0).key()
    again = pickle.loads(pickle.dumps(problem.formulation))
    assert again == problem.formulation and again.traits == problem.formulation.traits
    other = problem.formulation(lam=3.0)
    assert other.value(np.ones(M)) == pytest.approx(18.0)


def test_another_number_of_kernels_has_a_twin_of_its_own():
    mine = formulation(lambda u: cp.sum(u) if u.size < 4 else cp.sum_squares(u))
    assert mine.value(np.full(3, 2.0)) == pytest.approx(6)
    assert mine.bound(3).value(np.full(5, 2.0)) == pytest.approx(20)
    assert "orthant" in mine.bound(3).traits and "orthant" not in mine.bound(5).traits
