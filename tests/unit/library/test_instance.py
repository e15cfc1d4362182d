"""A problem of the library: a Problem that knows its name and its optimum."""

from __future__ import annotations

import pickle

import pytest

import mklopt
from mklopt import library
from mklopt.library.instance import LibraryProblem
from mklopt.problem import Problem


def test_the_reference_is_certified_and_contains_what_is_solved():
    problem = library.get("toy-p4")
    assert isinstance(problem, Problem) and problem.instance.name == "toy-p4"
    found = mklopt.solve(problem, tol=1e-9)
    assert problem.reference.lower <= found.certificate.upper
    assert found.certificate.lower <= problem.reference.upper
    assert problem.reference.certificate.assumptions == []
    assert problem.record.lower == pytest.approx(problem.reference.lower, rel=1e-9)


def test_what_is_made_of_it_is_a_plain_problem():
    problem = library.get("tiny-hinge")
    other = problem.with_(C=2.0)
    assert type(other) is Problem and other.C == 2.0
    assert type(problem.with_()) is Problem
    assert problem.with_().digest() == problem.digest()


def test_a_problem_without_a_stored_solution_says_so():
    instance = library.instances()["tiny-hinge"]
    plain = library.get("tiny-hinge").with_(C=3.0)
    parts = (plain.grams, plain.y, plain.loss, plain.formulation, plain.C, plain.bias)
    other = LibraryProblem(*parts).of(instance)
    assert other.stored is None
    with pytest.raises(LookupError, match="no stored solution"):
        _ = other.reference


def test_it_is_pickled_with_its_name():
    again = pickle.loads(pickle.dumps(library.get("tiny-hinge")))
    assert again.instance.name == "tiny-hinge"
    assert again.reference.relative_gap <= 1e-9


def test_the_origin_is_the_recipe():
    origin = library.instances()["digits-3-8"].origin
    assert origin == "Real(name='digits', classes=(3, 8)), kernels Columns(width=8)"
    origin = library.instances()["tiny-hinge"].origin
    assert origin == "Drawn(n=38, blocks=Blocks(M=3, rank=2, seed=1))"
