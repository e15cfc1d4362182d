"""Closed forms are checked against the declaration: ours pass, wrong ones are named."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

import mklopt
from mklopt.formulations import (
    ElasticNet,
    Formulation,
    LpNorm,
    formulations,
    stripped,
)
from mklopt.judge.closed_forms import CHECKS, TOL, check_closed_forms


@mklopt.formulation
def elastic(u):
    return cp.sum(u) + 0.1 * cp.sum_squares(u)


FIRST = [kind.examples(4)[0] for kind in formulations().values()]


@pytest.mark.parametrize("formulation", FIRST, ids=lambda f: f.name)
def test_our_closed_forms_pass(formulation):
    report = mklopt.check_formulation(formulation, 4)
    assert report.passed, report


WRONG = {
    "value": lambda self, u: 1.001 * ElasticNet.value(self, u),
    "conjugate": lambda self, v: 1.001 * ElasticNet.conjugate(self, v),
    "weights": lambda self, u: 1.01 * ElasticNet.weights(self, u),
    "prox": lambda self, u, step: 0.99 * ElasticNet.prox(self, u, step),
    "prox_slope": lambda self, u, step: 1.01 * ElasticNet.prox_slope(self, u, step),
    "dual_weights": lambda self, v: np.ones(len(v)),
    "feasible_scale": lambda self, v: 0.5,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_closed_form_is_found_and_named(name):
    mutant: type[Formulation] = dataclass(frozen=True)(
        type("Mutant", (ElasticNet,), {name: WRONG[name]})
    )
    report = mklopt.check_formulation(mutant())
    assert not report.passed
    assert report.failures[0].operator == name
    assert f"wrong: {name}" in repr(report) and "FAILS at" in str(report)


def test_nothing_to_check_holds():
    report = mklopt.check_formulation(stripped(elastic))
    assert report.passed and "0 closed forms hold" in repr(report)
    with pytest.raises(ValueError, match="takes a formulation"):
        mklopt.check_formulation("lp")


def test_another_declaration_has_no_closed_forms():
    @dataclass(frozen=True)
    class Other(LpNorm):
        def penalty(self, u):
            return cp.sum(u)

    assert not any(Other().closed(name) for name in ("value", "conjugate", "prox"))


def test_every_operator_has_a_row_with_its_error():
    report = check_closed_forms(LpNorm(2.0), 3)
    assert [row.operator for row in report.rows] == list(CHECKS)
    derived = [row for row in report.rows if not row.closed]
    assert [row.operator for row in derived] == ["feasible_scale"]
    assert all(row.error == 0 for row in derived)
    assert 0 < max(row.error for row in report.rows) <= TOL  # really computed
    assert repr(report) == "FormulationReport(LpNorm, M = 3: 6 closed forms hold)"


def test_weights_that_are_not_numbers_fail():
    @dataclass(frozen=True)
    class Nan(ElasticNet):
        def weights(self, u):
            return np.full(len(u), np.nan)

    (wrong,) = check_closed_forms(Nan(), 3).failures
    assert (wrong.operator, wrong.error) == ("weights", np.inf)
