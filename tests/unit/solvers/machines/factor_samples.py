"""What tests of factors share: no n × n matrix, the same with one, a solved SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from mklopt import GramStack, Problem
from mklopt.grams import stack
from mklopt.solvers.machines.factory import machine_for

THETA = np.array([1.0, 0.4, 2.0, 0.1])


def forbid_matrices(monkeypatch: Any) -> None:
    """Features also with few samples; an n × n matrix of factors is an error."""
    monkeypatch.setattr(stack, "FEATURE_SAMPLES", 50)
    for name in ("combine", "kernel", "dense", "full", "matvec"):
        method = getattr(GramStack, name)

        def checked(grams, *rest, method=method, name=name):
            assert grams.storage != "factors", f"{name} of factors"
            return method(grams, *rest)

        monkeypatch.setattr(GramStack, name, checked)


def made_dense(p: Problem) -> Problem:
    """The same problem with n × n matrices."""
    factors = p.grams.factors
    assert factors is not None
    return p.with_(grams=GramStack(np.stack([L @ L.T for L in factors])))


def solved(p: Problem, theta: Any = THETA, tol: float = 1e-8) -> Any:
    """An SVM solver that has met a tolerance at these weights."""
    machine = machine_for(p, second_order=True)
    machine.tol = tol
    machine.solve(theta)
    assert machine.gap <= tol
    return machine
