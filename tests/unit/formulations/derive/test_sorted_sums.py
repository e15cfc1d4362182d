"""Declarations that sort: answers in one order against those of the M² inequalities."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations import formulation, gallery, stripped, variational
from mklopt.formulations.derive import sorted_sums as ordered
from mklopt.formulations.derive.epigraph import Epigraph

M = 8
LAM = np.linspace(2.0, 0.25, M)
PRIOR = np.random.default_rng(3).uniform(0.5, 2.0, M)


@formulation
def sorted_sum(u):
    return cp.dotsort(u, LAM)


@formulation
def shorter_list_of_absolute_values(u):
    return cp.dotsort(cp.abs(u), [1.0, 3.0, 2.0])


@formulation
def squared_and_with_a_prior(u):
    return 0.5 * cp.square(cp.sum_largest(u, 3)) + PRIOR @ u


@formulation
def two_sorted_sums_and_a_norm(u):
    return cp.sum_largest(u, 2.5) + 0.1 * cp.dotsort(u, LAM) + cp.norm(u)


@formulation
def as_a_constraint(u):
    t = cp.Variable()
    return t + 0.1 * cp.sum_squares(u), [cp.dotsort(u, LAM) <= t, cp.sum(u) <= 9]


DECLARED = [
    sorted_sum,
    shorter_list_of_absolute_values,
    squared_and_with_a_prior,
    two_sorted_sums_and_a_norm,
    as_a_constraint,
]
LINES = [sorted_sum, shorter_list_of_absolute_values, two_sorted_sums_and_a_norm]


def plain(declared):
    """The same declaration, sorted as CVXPY sorts."""
    found = Epigraph(declared.penalty, (M,), nonneg=True)
    found.__dict__["_orders"] = {}
    return found


def points():
    rng = np.random.default_rng(0)
    for _ in range(4):
        u = rng.uniform(0.0, 3.0, M)
        yield u, np.round(u), rng.uniform(0.2, 3.0, M)
    yield np.ones(M), np.zeros(M), rng.uniform(0.2, 3.0, M)


@pytest.mark.parametrize("declared", DECLARED, ids=lambda d: d.name)
def test_operators_are_those_of_the_whole_epigraph(declared):
    here, there = Epigraph(declared.penalty, (M,), nonneg=True), plain(declared)
    for u, tied, step in points():
        for x in (u, tied):
            for how in (0.7, step):
                near, nearest = here.prox(x, how), there.prox(x, how)
                cost, least = (
                    there.value(np.maximum(z, 0))[0] + np.sum((z - x) ** 2 / how) / 2
                    for z in (near, nearest)
                )
                assert cost == pytest.approx(least, rel=1e-8, abs=1e-9)
                assert near == pytest.approx(nearest, abs=2e-5)
            v = 0.9 * here.subgradient(0.3 * x)
            above = there.value(0.1 * u) - there.value(0.3 * x)
            assert above >= v / 0.9 @ (0.1 * u - 0.3 * x) - 1e-7
            assert here.conjugate(v) == pytest.approx(there.conjugate(v), abs=1e-7)
            if declared in LINES:
                assert here.feasible_scale(u) == pytest.approx(
                    there.feasible_scale(u), rel=1e-7
                )
    assert set(here.__dict__["_orders"]) == {"total", "cones"}
    assert "total" not in vars(here)  # every answer came in order


def test_conjugate_is_infinite_where_one_sum_of_slopes_is_too_large():
    here = Epigraph(sorted_sum.penalty, (M,), nonneg=True)
    v = LAM[[3, 0, 7, 1, 2, 4, 6, 5]]
    assert here.conjugate(0.999 * v)[0] == pytest.approx(0.0, abs=1e-9)
    assert here.conjugate(1.001 * v)[0] == np.inf


def test_equal_block_norms_get_equal_slopes():
    here = Epigraph(sorted_sum.penalty, (M,), nonneg=True)
    slope = here.subgradient(np.array([1.0, 3.0, 1.0, 2.0, 0.0, 1.0, 0.0, 4.0]))
    runs = [[7], [1], [3], [0, 2, 5], [4, 6]]
    assert slope[np.concatenate(runs)] == pytest.approx(
        np.concatenate([[np.mean(LAM[a : a + len(run)])] * len(run)
                        for a, run in zip((0, 1, 2, 3, 6), runs)])
    )  # fmt: skip


def test_what_does_not_settle_is_answered_all_the_same(monkeypatch):
    u, step = np.linspace(10.0, 1.0, M), np.linspace(1.0, 0.02, M)
    wanted = plain(sorted_sum).prox(u, step)
    monkeypatch.setattr(ordered, "MAX_ORDERS", 1)
    here = Epigraph(sorted_sum.penalty, (M,), nonneg=True)
    assert here.prox(u, step) == pytest.approx(wanted, abs=2e-6)
    assert "total" in vars(here)  # the first order was not the last


def test_only_what_sorts_the_block_norms_is_put_in_order():
    def orders(penalty):
        return Epigraph(penalty, (M,), nonneg=True)._orders

    assert not orders(lambda u: cp.sum(u) + cp.max(u))
    assert not orders(lambda u: cp.sum_largest(cp.multiply(PRIOR, u), 2))
    assert orders(lambda u: cp.sum(u) + cp.sum_largest(u, 2))
    price = variational(lambda theta: (0, [cp.sum_largest(theta, 2) <= 1]))
    assert not orders(price.penalty)  # it is θ that is sorted


@pytest.mark.parametrize("size", [1, 2, 40])
def test_owl_without_closed_forms_is_owl(size):
    owl = gallery.owl(np.linspace(1.0, 0.1, size))
    derived = stripped(owl)
    rng = np.random.default_rng(size)
    for _ in range(5):
        u = rng.uniform(0.1, 3.0, size)
        step = rng.uniform(0.3, 2.0, size)
        assert derived.prox(u, step) == pytest.approx(owl.prox(u, step), abs=2e-6)
        assert derived.weights(u) == pytest.approx(owl.weights(u), rel=1e-8)
        assert derived.feasible_scale(u) == pytest.approx(
            owl.feasible_scale(u), rel=1e-8
        )
    assert "total" not in vars(derived.epigraph(size))
    assert derived.conjugate(np.zeros(size)) == pytest.approx(0.0, abs=1e-12)


def test_errors_speak_of_u_and_not_of_what_stands_for_it():
    with pytest.raises(
        ValueError, match=r"\(DCP\): its part PowerApprox\(Sum\(u, .*0\.5\)"
    ):
        Epigraph(lambda u: cp.sqrt(cp.sum(u)), (M,), nonneg=True).total  # noqa: B018


def test_a_better_order_is_found_by_the_slopes():
    """Slopes (1, 2) on equal s: no slopes of λ = (1.5, 1.5), but slopes of (2, 1)."""
    form: Any = SimpleNamespace(s=np.array([0, 1]))
    improved = ordered.Ordered._improved
    slopes = np.array([1.0, 2.0])
    found: Any = SimpleNamespace(z=np.ones(2), y=np.array([0.5, 0.0]))
    better = improved(form, slopes, found)
    assert better is not None and list(better) == [1, 0]
    found.y = np.array([1.0, 0.0])
    assert improved(form, slopes, found) is None
