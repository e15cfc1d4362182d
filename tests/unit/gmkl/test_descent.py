"""The descent over kernel families: where it ends, what it says, what it refuses."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mklopt import gmkl, reference
from mklopt.gmkl.descent import STATUS, _confirmed
from mklopt.gmkl.families import Product
from mklopt.gmkl.problem import KernelFamilyProblem
from mklopt.gmkl.regularizers import Total
from mklopt.solvers.steps.spectral_descent import Point
from tests.unit.gmkl.samples import D0, FAMILIES, D, X, Y, family_problem

NONE: Any = None
TEXT: Any = "a"
ANY: Any = lambda given: given  # noqa: E731


@pytest.mark.parametrize(
    "price, solver",
    [
        *((p, s) for p in ("total", "half square", "mixed") for s in ("spg", "pgd")),
        ("p", "spg"),
        ("log det", "spg"),
    ],
)
def test_a_descent_over_products_ends_where_it_says(price, solver):
    found = gmkl.solve(family_problem(r=price), solver, tol=1e-3)
    assert found.status == "stationary" and found.stationarity <= 1e-3
    assert found.machine.relative_gap <= 1e-8
    slope = found.slope
    inside = found.d > 1e-6
    assert np.all(np.abs(slope[inside]) <= 2e-2) and np.all(slope[~inside] >= -1e-3)
    assert np.all(np.diff(found.history["svm_solves"]) >= 0)
    assert found.value <= found.history["value"][0]


def test_a_loose_machine_does_not_end_the_descent():
    """Stationary means with a precise SVM; else the descent goes on."""
    p = family_problem(C=10.0)
    for tol in (3e-1, 1e-1, 1e-2, 1e-4):
        found = gmkl.solve(p, tol=tol)
        assert found.status == "stationary" and found.stationarity <= tol
        assert found.history["stationarity"][-1] <= tol
    loose = gmkl.Envelope(p, tune=True)
    loose.noise = loose.worst
    loose.value(D0)
    sharp = gmkl.Envelope(p, tune=False).precisely(D0)[2]
    assert _confirmed(loose, D0, tol=1e-9) == pytest.approx(sharp, rel=1e-3)
    assert loose.noise == pytest.approx(0.1 * loose.worst)


def test_a_status_is_what_the_returned_point_earns(monkeypatch):
    found = gmkl.solve(family_problem(), tol=1e-3, threshold=0.9)
    assert found.status == "thresholded" and found.stationarity > 1e-3
    assert "threshold less" in str(found)
    harmless = gmkl.solve(family_problem(), tol=1e-3, threshold=1e-9)
    assert harmless.status == "stationary" and harmless.stationarity <= 1e-3
    monkeypatch.setattr(
        "mklopt.gmkl.descent._verdict", lambda *given: "stationary"
    )  # is it?
    loose = gmkl.solve(family_problem(C=10.0), tol=1e-3, start=np.ones(5))
    assert loose.status == "imprecise" and loose.stationarity > 1e-3
    assert "with a precise SVM" in str(loose)


def test_a_stationary_point_is_returned_and_not_a_lower_one_before_it(monkeypatch):
    found = gmkl.solve(family_problem(), tol=1e-3)
    lower = Point(D0, found.value - 1.0, np.ones(5), np.ones(5))
    last = Point(found.d, found.value, found.slope, found.slope)
    module = "mklopt.gmkl.descent.descend"
    monkeypatch.setattr(module, lambda *given, **more: iter([lower, last]))
    again = gmkl.solve(family_problem(), tol=1e-3)
    assert again.status == "stationary" and len(again.history["value"]) == 2
    np.testing.assert_array_equal(again.d, found.d)


def test_thresholding_stays_inside_the_set():
    def box(d):
        return np.clip(d, 0.1, 0.4)

    found = gmkl.solve(family_problem(project=box), tol=1e-4, threshold=0.9)
    assert np.all((found.d >= 0.1) & (found.d <= 0.4))


def test_what_falls_without_end_is_called_unbounded():
    pair = (lambda d: -float(np.sum(d)), lambda d: -np.ones(5))
    for family in ("sum", "product"):
        p = KernelFamilyProblem(FAMILIES[family], Y, regularizer=pair)
        found = gmkl.solve(p)
        assert found.status == "unbounded" and found.stationarity > 0.1
        assert "without end" in str(found)


def test_an_indefinite_kernel_is_not_certified():
    """exp(−D) of distances that are not of negative type."""
    rng = np.random.default_rng(0)
    wild = rng.uniform(0.1, 3.0, size=(3, 60, 60))
    wild = (wild + wild.transpose(0, 2, 1)) * (1 - np.eye(60))
    p = KernelFamilyProblem(Product(0.01 * wild), Y, "hinge", Total(weight=1e-2), 10.0)
    found = gmkl.solve(p, tol=1e-2, max_iter=5)
    assert np.linalg.eigvalsh(p.family.combine(found.d))[0] < -1e-3
    assert found.status == "indefinite" and found.machine is None
    assert "not positive semi-definite" in found.message
    assert "not certified" in str(found) and np.all(np.isfinite(found.dual))


def test_the_shift_of_the_certified_kernel_is_printed():
    found = gmkl.solve(family_problem(), tol=1e-2)
    assert found.machine.proof == "Cholesky" and not found.machine.assumptions
    assert f"δ = {found.machine.shift[0]:.1e}" in str(found)
    assert found.machine.lower <= found.machine.upper


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ArithmeticError("no luck")])
def test_what_was_found_comes_back_after_an_interruption(error):
    calls = []

    def price(d):
        calls.append(d)
        if len(calls) == 8:
            raise error
        return float(np.sum(d))

    p = family_problem(C=10.0)
    own = KernelFamilyProblem(p.family, Y, "hinge", (price, np.ones_like), 10.0)
    found = gmkl.solve(own, tol=1e-6)
    stopped = isinstance(error, KeyboardInterrupt)
    assert found.status == ("interrupted" if stopped else "failed")
    assert stopped or "ArithmeticError: no luck" in str(found)
    assert found.value == pytest.approx(np.min(found.history["value"]), rel=1e-2)


@pytest.mark.parametrize("loss", ["squared", "eps_insensitive", "huber"])
def test_other_losses(loss):
    y = X[:, 0] * X[:, 1]
    p = KernelFamilyProblem(FAMILIES["product"], y, loss, Total(), 1.0)
    found = gmkl.solve(p, tol=1e-2)
    assert found.status == "stationary" and found.machine.relative_gap <= 1e-8


def test_every_switch_is_one_call():
    p = family_problem(C=10.0)
    names = ("spectral", "nonmonotone", "tune")
    ablation: list[Any] = [
        dict(zip(names, map(bool, on)))
        for on in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1))
    ]
    found = [
        gmkl.solve(p, "spg", scaled=False, tol=1e-2, max_iter=4000, **switches)
        for switches in ablation
    ]
    for result in found:
        assert result.status == "stationary"
        assert result.value == pytest.approx(found[0].value, rel=1e-3)
    for one, other in combinations(found, 2):  # every switch does something
        assert not np.array_equal(one.history["value"], other.history["value"])
    solves = [int(result.history["svm_solves"][-1]) for result in found]
    assert max(solves[3:]) < solves[0]
    plain = gmkl.solve(p, "pgd", tol=1e-2, max_iter=4000)
    assert int(plain.history["svm_solves"][-1]) == solves[0]


def test_the_stop_of_the_paper_is_an_option():
    loose = gmkl.solve(family_problem(), stop="paper", tol=1e-9)
    assert loose.status == "stationary" and loose.history["stationarity"][-1] <= 0.04
    with pytest.raises(ValueError, match="choose 'paper' or None"):
        gmkl.solve(family_problem(), stop="soon")


def test_any_convex_set_of_parameters():
    def box(d):
        return np.clip(d, 0.1, 0.4)

    found = gmkl.solve(family_problem(project=box), tol=1e-4)
    assert found.status == "stationary"
    assert np.all((found.d >= 0.1) & (found.d <= 0.4))
    slope = found.slope
    assert np.all(slope[found.d == 0.1] > 0) and np.all(slope[found.d == 0.4] < 0)


def test_limits_are_kept():
    p = family_problem(C=100.0)
    assert gmkl.solve(family_problem(), max_iter=None).status == "stationary"
    assert gmkl.solve(p, tol=0.0, max_iter=3).status == "max_iter"
    found = gmkl.solve(p, "pgd", tol=0.0, time_limit=0.2, max_iter=10**6)
    assert found.status in ("time_limit", "stalled")
    assert found.history["seconds"][-1] < 1.0


def test_the_decision_is_that_of_the_machine():
    found = gmkl.solve(family_problem(), tol=1e-2)
    f = found.decision(D)
    assert np.mean(np.sign(f) == Y) > 0.8
    inner = found.machine
    losses = np.maximum(1 - Y * f, 0.0)
    penalty = 0.5 * inner.alpha @ FAMILIES["product"].combine(found.d) @ inner.alpha
    assert inner.primal == pytest.approx(np.sum(losses) + penalty)
    machine = found.problem.machine(found.d)
    exact = reference.at_weights(machine, np.ones(1), solver="CLARABEL")
    assert inner.primal == pytest.approx(exact.upper, rel=1e-7)


def test_nothing_is_called_optimal_or_a_gap_where_nothing_is_certified():
    found = gmkl.solve(family_problem(), tol=1e-2)
    names = [n for n in dir(found) if not n.startswith("_")]
    texts = [str(found), repr(found), found.message, *names, *STATUS.values()]
    for text in texts:
        assert not re.search(r"optim|gap", text, re.IGNORECASE), text
    assert found.stationarity >= 0


def test_every_parameter_thresholded_away():
    strong = KernelFamilyProblem(FAMILIES["sum"], Y, "hinge", Total(weight=1e4), 0.1)
    found = gmkl.solve(strong)
    assert found.status == "empty" and "no kernel is left" in str(found)
    gone = gmkl.solve(family_problem(), tol=1e-2, threshold=2.0)
    assert gone.status == "empty" and "thresholded away" in gone.message
    with pytest.raises(ValueError, match="begin with some d > 0"):
        gmkl.solve(family_problem(), start=np.zeros(5))


def test_a_gradient_of_the_wrong_shape_gets_a_sentence():
    pair = (np.sum, lambda d: 1.0)
    with pytest.raises(ValueError, match="one number per parameter"):
        gmkl.solve(KernelFamilyProblem(FAMILIES["sum"], Y, regularizer=pair))


# ---- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: gmkl.solve(ANY(3)), "takes a KernelFamilyProblem first, got int"),
        (lambda: gmkl.solve(family_problem(), tol=-1.0), "tol = -1.0; give"),
        (lambda: gmkl.solve(family_problem(), tol=TEXT), "tol = 'a'; give"),
        (lambda: gmkl.solve(family_problem(), tol=NONE), "tol = None; give"),
        (lambda: gmkl.solve(family_problem(), max_iter=0), "max_iter = 0; give"),
        (lambda: gmkl.solve(family_problem(), time_limit=TEXT), "time_limit = 'a'"),
        (lambda: gmkl.solve(family_problem(), threshold=-1.0), "threshold = -1.0"),
        (lambda: gmkl.solve(family_problem(), longest=-1.0), "longest = -1.0"),
        (lambda: gmkl.solve(family_problem(), start=TEXT), "start must be 5 finite"),
        (
            lambda: gmkl.solve(
                KernelFamilyProblem(
                    FAMILIES["sum"], Y, regularizer=(lambda d: np.inf, np.ones_like)
                )
            ),
            "both must be finite",
        ),
        (lambda: gmkl.solve(family_problem(), "newton"), "choose one of spg, pgd"),
        (lambda: gmkl.solve(family_problem(), speed=True), "has no option speed"),
        (lambda: gmkl.solve(family_problem(), start=[1.0]), "one per parameter"),
        (lambda: gmkl.solve(family_problem(project=sum)), "project.d. has shape"),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
