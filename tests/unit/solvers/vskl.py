"""The VSKL problem and its oracle, as the tests of mirror descent share them."""

from __future__ import annotations

from mklopt import Problem
from mklopt.formulations import VSKL
from mklopt.reference.contract_problems import GROUPINGS, load
from mklopt.solvers.steps.simplex_oracle import Oracle

INF = float("inf")
QS = (1.0, 1.5, 2.0, 3.0, INF)
THREE = GROUPINGS["three"]
GRAMS, TARGETS = load("twonorm")
Y = TARGETS["binary"]


def problem(q, C=1.0, groups=THREE, grams=GRAMS, y=Y) -> Problem:
    return Problem(grams, y, "hinge", VSKL(groups, q), C)


def oracle(p: Problem, tol=1e-11) -> Oracle:
    found = Oracle(p, *p.formulation.simplices(p.grams.M))
    found.machine.tol = found.wanted = tol
    return found


def settle(o: Oracle, lam) -> None:
    for _ in o.solve(lam):
        pass
