"""Checks of rates: each result is reached, and only where it is true."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack, Problem, solve
from mklopt.formulations import VSKL, ElasticNet, GroupLasso, LpNorm, formulation
from mklopt.judge import rates
from mklopt.judge.rates import (
    check_bound,
    check_mean,
    check_monotone,
    check_superlinear,
)
from mklopt.reference.contract_problems import load

T = np.arange(0, 50)


def claimed(t):
    return np.where(t >= 1, 10.0 / np.maximum(t, 1), np.inf)


def test_a_bound_that_holds_is_said_to_hold_with_its_slack():
    value = 1.0 + 8.0 / np.maximum(T, 0.8)
    found = check_bound(T, value, claimed(T), 1.0, 1.0)
    assert found.status == "holds" and found.slack == pytest.approx(1.25, rel=1e-6)


def test_a_bound_that_is_broken_once_is_violated_there():
    value = 1.0 + 8.0 / np.maximum(T, 0.8)
    value[17] = 1.0 + 10.5 / 17
    found = check_bound(T, value, claimed(T), 1.0, 1.0)
    assert (found.status, found.at) == ("violated", 17) and found.slack < 1


def test_what_the_interval_cannot_tell_is_not_testable():
    value = 1.0 + 9.9 / np.maximum(T, 0.8)
    found = check_bound(T, value, claimed(T), 0.9, 1.0)
    assert found.status == "not testable" and "too wide" in found.reason


def test_an_interval_never_hides_a_violation_beyond_it():
    value = 2.0 + 20.0 / np.maximum(T, 0.8)
    assert check_bound(T, value, claimed(T), 0.9, 1.0).status == "violated"


def test_a_bound_above_the_start_is_vacuous():
    value = 1.0 + 1e-3 / np.maximum(T, 0.8)
    assert check_bound(T, value, claimed(T), 1.0, 1.0).status == "vacuous"


def test_vacuous_begins_at_the_error_of_the_start():
    """Errors 3, 1, 1, …: a bound of 3 says nothing, a bound below 3 does."""
    value = 1.0 + np.array([3.0, 1.0, 1.0, 1.0])
    for least, status in ((3.0 + 1e-9, "vacuous"), (5.9, "vacuous"), (2.99, "holds")):
        bound = np.array([np.inf, 9.0, 9.0, least])
        assert check_bound(T[:4], value, bound, 1.0, 1.0).status == status


def test_one_iterate_says_nothing():
    assert check_bound(T[:1], np.ones(1), np.ones(1), 0.0, 0.0).status == "not testable"
    assert check_monotone(np.ones(1)).status == "not testable"


def test_monotone_or_not():
    value = 2.0 ** -np.arange(10.0)
    assert check_monotone(value).status == "holds"
    assert check_monotone(1 + 1e-15 * np.arange(10.0)).status == "holds"  # rounding
    value[6] = value[5] * (1 + 1e-9)
    found = check_monotone(value)
    assert (found.status, found.at) == ("violated", 6)


@pytest.mark.parametrize(
    "errors, status",
    [
        (0.5 ** np.cumsum(np.arange(1, 9)), "holds"),  # ratios 2^−t
        (0.05 ** np.arange(8.0), "violated"),  # linear, however fast
        (np.array([1, 0.5, 0.25]), "not testable"),
        (np.cumprod([1, 0.9, 0.8, 0.7, 0.6, 0.5]), "not testable"),
    ],
    ids=["superlinear", "linear", "short", "slow"],
)
def test_superlinear_is_told_from_linear(errors, status):
    assert check_superlinear(3.0 + errors, 3.0, 3.0 + 1e-14).status == status


def test_noise_does_not_count_as_convergence():
    errors = np.concatenate([0.05 ** np.arange(5.0), [1e-9, 1e-13, 1e-19]])
    found = check_superlinear(3.0 + errors, 3.0, 3.0 + 1e-6)
    assert found.status == "not testable"  # all that is left above it is linear, short


def runs(scale, seeds=20, noise=0.3):
    rng = np.random.default_rng(0)
    t = np.array([1, 2, 4, 8, 16, 32])
    return t, 1.0 + scale / t * (1 + noise * rng.normal(size=(seeds, len(t))))


@pytest.mark.parametrize(
    "scale, status", [(1.0, "holds"), (9.5, "not testable"), (20.0, "violated")]
)
def test_a_mean_is_held_against_its_bound(scale, status):
    t, values = runs(scale)
    found = check_mean(t, values, 10.0 / t, 1.0, 1.0)
    assert found.status == status
    if status == "holds":  # the power is what it says: 10/slack would be refuted
        smaller = check_mean(t, values, 10.0 / t / (1.001 * found.slack), 1.0, 1.0)
        assert smaller.status == "violated" and 8 < found.slack < 14


def test_more_checkpoints_need_more_evidence():
    """A claim in truth right is refuted at the level and no more often."""
    rng = np.random.default_rng(1)
    t, refuted = np.arange(1, 11), 0
    for _ in range(400):
        values = 1.0 + rng.normal(1.0, 0.5, size=(20, 10))  # the mean IS the bound
        refuted += check_mean(t, values, np.ones(10), 1.0, 1.0).status == "violated"
    assert refuted <= 35  # 5 % of 400 and three standard deviations


def test_one_seed_is_no_mean():
    t, values = runs(1.0, seeds=1)
    assert check_mean(t, values, 10.0 / t, 1.0, 1.0).status == "not testable"


def test_a_mean_below_a_vacuous_bound():
    t, values = runs(1.0)
    found = check_mean(t, values, np.full(6, 100.0), 1.0, 1.0, start=3.0)
    assert found.status == "vacuous"


# ---- constants ------------------------------------------------------------------


@formulation
def mine(u):
    import cvxpy as cp

    return cp.sum(u) + 0.5 * cp.sum_squares(u)


@pytest.mark.parametrize(
    "kind",
    [LpNorm(1.0), LpNorm(2.0), LpNorm(np.inf), GroupLasso(), ElasticNet(0.3), mine],
    ids=repr,
)
def test_the_radius_bounds_the_solution(kind):
    p = small(kind)
    found = solve(p, tol=1e-8)
    size = float(np.sum(found.certificate.norms**2))
    assert 0 < size <= rates.radius_squared(p)


def test_the_radius_is_exact_where_one_kernel_has_all():
    """½‖u‖² with one kernel: ‖w‖² ≤ 2F(0), attained when the loss can be nothing."""
    p = small(LpNorm(1.0))
    p = p.with_(grams=p.grams.subset([0]))
    assert rates.radius_squared(p) == pytest.approx(2 * rates.start_value(p), rel=1e-4)


def test_an_unbounded_radius_is_not_testable():
    """Where Ω is flat, nothing bounds the solution."""

    @formulation
    def flat(u):
        import cvxpy as cp

        return cp.pos(u[0] - 1.0) + 0 * cp.sum(u)

    with pytest.raises(rates.NotTestable, match="does not bound"):
        rates.radius_squared(small(flat))


# ---- the claims -----------------------------------------------------------------

GRAMS, TARGETS = load("wdbc")
GROUPS = (tuple(range(10)), tuple(range(10, 20)))


def small(kind, loss="squared", C=1.0):
    rng = np.random.default_rng(0)
    grams = GramStack.from_factors(rng.normal(size=(4, 25, 3)))
    return Problem(grams, np.sign(rng.normal(size=25)), loss, kind, C)


def wdbc(loss, kind, C):
    return Problem(GRAMS, TARGETS["binary"], loss, kind, C)


CELLS = [
    ("ista", "logistic", LpNorm(2.0), 0.1, "holds"),
    ("ista", "logistic", LpNorm(2.0), 1000.0, "vacuous"),
    ("ista", "hinge", LpNorm(2.0), 0.1, "not testable"),
    ("fista", "logistic", GroupLasso(), 0.1, "holds"),
    ("fista", "squared", LpNorm(4 / 3), 0.1, "holds"),
    ("mirror", "hinge", VSKL(GROUPS, 1.0), 100.0, "vacuous"),
    ("mirror", "hinge", VSKL(GROUPS, 2.0), 1.0, "not testable"),
    ("analytic descent", "hinge", LpNorm(4 / 3), 1.0, "holds"),
    ("spicy superlinear", "logistic", LpNorm(2.0), 1.0, "holds"),
    ("spg", "hinge", GroupLasso(), 1.0, "not testable"),
]


@pytest.mark.parametrize("name, loss, kind, C, status", CELLS)
def test_the_claims_of_the_papers(name, loss, kind, C, status):
    p = wdbc(loss, kind, C)
    interval = solve(p, "spicy", tol=1e-10).certificate
    found = rates.claims()[name].check(p, interval.lower, interval.upper)
    assert (found.claim, found.status) == (name, status), found.reason


def test_mirror_descent_where_its_constant_is_sharp():
    """One kernel is yyᵀ and C is small: no gradient could be larger than this one."""
    rng, y = np.random.default_rng(0), np.tile([1.0, -1.0], 16)
    others = [rng.permutation(y)[:, None] for _ in range(7)]
    grams = GramStack.from_factors([y[:, None], *others])
    p = Problem(grams, y, "hinge", VSKL((range(8),), 1.0), 1e-4)
    interval = solve(p, "spicy", tol=1e-10).certificate
    honest = rates.claims()["mirror"]
    found = honest.check(p, interval.lower, interval.upper)
    assert found.status == "holds" and found.slack < 10, found
    bold = lambda t, c: rates.mirror_bound(t, c) / (1.01 * found.slack)  # noqa: E731
    refuted = rates.replace(honest, decide=rates.bounded(bold, first=1))
    assert refuted.check(p, interval.lower, interval.upper).status == "violated"


def test_fixed_penalties_are_not_superlinear():
    p = wdbc("logistic", LpNorm(2.0), 1.0)
    interval = solve(p, "spicy", tol=1e-10).certificate
    claim = rates.claims()["spicy superlinear"]
    found = claim.check(p, interval.lower, interval.upper, growth=1.0)
    assert found.status in ("violated", "not testable")


def test_a_claim_too_bold_is_refuted():
    """The bound of FISTA divided by its slack, and 1 % more."""
    p = wdbc("logistic", LpNorm(2.0), 0.1)
    interval = solve(p, "spicy", tol=1e-10).certificate
    honest = rates.claims()["fista"]
    slack = honest.check(p, interval.lower, interval.upper).slack
    bold = lambda t, c: 2 * c["L"] * c["R²"] / (t + 1.0) ** 2 / (1.01 * slack)  # noqa: E731
    decide = rates.bounded(bold, every=20)
    found = rates.replace(honest, decide=decide).check(
        p, interval.lower, interval.upper
    )
    assert found.status == "violated"


def test_constants_and_bound_of_mirror_descent():
    p = small(VSKL([[0, 1, 2], [3]], 1.0), "hinge")
    c = rates.mirror_constants(p)
    assert c["Γ"] == pytest.approx(np.log(3)) and c["σ"] == 0.5 and c["L"] > 0
    given = {"Γ": 2.0, "σ": 0.5, "L": 4.0}  # steps √2/4, 1/4: (2 + s²·16)/Σs
    s1, s2 = 2**0.5 / 4, 0.25
    wanted = [(2 + 16 * s1**2) / s1, (2 + 16 * (s1**2 + s2**2)) / (s1 + s2)]
    assert rates.mirror_bound(np.array([1, 2]), given) == pytest.approx(wanted)


# ---- worst cases and old names ----------------------------------------------------


def test_a_claim_knows_its_worst_case(monkeypatch):
    monkeypatch.setattr(rates, "worst_case", lambda method, t: (method, t))
    found = rates.claims()
    assert found["ista"].worst_case(3) == ("proximal gradient", 3)
    assert found["fista"].worst_case(2) == ("accelerated proximal gradient", 2)
    with pytest.raises(rates.NotTestable, match="no worst case is known"):
        found["mirror"].worst_case(1)


@pytest.mark.parametrize("name", ["ista", "fista"])
def test_the_bound_of_a_claim_is_the_one_compared_with_the_worst_case(name):
    """On a trace that touches its statement: slack 1, whatever L and ‖w*‖² are."""
    claim, known = rates.claims()[name], {"L": 3.0, "R²": 5.0}
    k = np.arange(5)
    t = np.maximum(rates.CERTIFIED_EVERY * k, 1)
    limit = {"ista": 15 / (2 * t), "fista": 30 / (t + 1.0) ** 2}[name]
    limit[0] = 1e3
    trace: Any = SimpleNamespace(iteration=k, primal=limit)
    found = claim.decide(trace, known, 0.0, 0.0)
    assert found.slack == pytest.approx(1, rel=1e-9)


def test_old_names_warn_for_one_release():
    old = {"Claim", "Verdict", "judge", "judge_mean", "judge_monotone"}
    assert {*old, "judge_superlinear"} == set(rates.RENAMED)
    for name, now in rates.RENAMED.items():
        with pytest.warns(DeprecationWarning, match=f"{name} is now {now}"):
            assert getattr(rates, name) is vars(rates)[now]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rates.nothing  # noqa: B018


def test_old_names_are_found_in_the_old_module(monkeypatch):
    monkeypatch.delitem(sys.modules, "mklopt.rates", raising=False)
    with pytest.warns(DeprecationWarning, match=r"mklopt\.rates is now"):
        module = importlib.import_module("mklopt.rates")
    with pytest.warns(DeprecationWarning, match="judge is now check_bound"):
        assert module.judge is rates.check_bound
