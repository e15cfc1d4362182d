"""ε-paths: every C is enclosed, whatever it is, with few solutions."""

from __future__ import annotations

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt import formulations as F
from mklopt.reference.contract_problems import load
from mklopt.tasks.epsilon_path import EpsilonPath, at_C

SMALL, TARGETS = load("small")
HALVES = [[0, 1, 2], [3, 4, 5]]


def problem(loss="logistic", formulation=None, **more) -> Problem:
    y = TARGETS["real" if loss in ("squared", "huber") else "binary"]
    return Problem(SMALL, y, loss, formulation or F.GroupLasso(), **more)


def fresh(p: Problem):
    """An interval around f* that knows nothing of a path."""
    return mklopt.solve(p, tol=1e-8).certificate


CASES = [
    ("logistic", F.GroupLasso(), None),
    ("squared", F.ElasticNet(0.5), None),
    ("hinge", F.GroupLasso(), None),
    ("hinge", F.LpNorm(4 / 3), [0.1, 5.0]),
    ("squared", F.VSKL(HALVES), [0.1, 5.0]),
    ("huber", F.BlockL1(), [0.1, 5.0]),
]


@pytest.mark.parametrize("loss, formulation, Cs", CASES)
def test_every_C_is_enclosed(loss, formulation, Cs):
    p = problem(loss, formulation)
    path = mklopt.path(p, Cs, span=20.0, everywhere=1e-2)
    assert isinstance(path, EpsilonPath) and path.converged and path.gap <= 1e-2
    assert len(path) == path.solves <= 14
    assert all(r.converged and r.trace.about["tol"] == 5e-4 for r in path)
    rng = np.random.default_rng(0)
    first, last = np.log(path.C[[0, -1]])
    for C in np.exp(rng.uniform(first, last, 12)):
        truth = fresh(at_C(p, C))
        low, high = path.lower(C), path.upper(C)
        assert low <= truth.upper and truth.lower <= high
        assert high - low <= 1e-2 * high
        at = path.at(C).certificate
        assert at.problem.C == C
        assert at.lower <= truth.upper and truth.lower <= at.upper
        assert at.width <= 1e-2


def test_below_the_first_C_of_a_path_from_zero_the_weights_are_zero():
    path = mklopt.path(problem(), span=2.0, everywhere=1e-2)
    C = 0.3 * path.C[0]
    at = path.at(C).certificate
    assert not np.any(at.weights) and at.width <= 1e-6
    assert at.lower <= path.upper(C) and path.lower(C) <= at.upper
    assert path.upper(C) - path.lower(C) <= 1e-6 * path.upper(C)


def test_a_path_of_given_ends_knows_nothing_outside():
    path = mklopt.path(problem(formulation=F.LpNorm(2)), [0.5, 1.0], everywhere=0.02)
    for C in (0.4, 1.1):
        assert path.lower(C) == -np.inf
        with pytest.raises(ValueError, match=r"goes from 0\.5 to 1"):
            path.at(C)
    assert path.at(0.5) is path[0]


def test_all_given_values_are_solved():
    path = mklopt.path(
        problem(formulation=F.LpNorm(2)), [0.5, 0.9, 2.0], everywhere=0.02
    )
    assert {0.5, 0.9, 2.0} <= set(path.C) and path.C[-1] == 2.0


def test_one_C_per_sample_keeps_its_ratios():
    costs = np.linspace(1.0, 2.0, 40)
    p = problem("hinge", F.LpNorm(2), C=costs)
    path = mklopt.path(p, [1.0, 6.0], everywhere=1e-2)
    at = path.at(3.3).certificate
    np.testing.assert_allclose(at.problem.C, 3.3 * costs / 2)
    truth = fresh(at.problem)
    assert path.converged and at.width <= 1e-2
    assert path.lower(3.3) <= truth.upper and truth.lower <= path.upper(3.3)


def test_one_C_per_sample_needs_a_loss_that_is_not_negative():
    @mklopt.loss
    def lowered(f, y):
        import cvxpy as cp

        return cp.square(f - y) - 1

    p = problem("squared", F.LpNorm(2)).with_(loss=lowered)
    with pytest.raises(ValueError, match="V ≥ 0"):
        mklopt.path(p.with_(C=np.linspace(1, 2, 40)), [1.0, 2.0], everywhere=1e-2)


def test_points_between_cost_no_solve(monkeypatch):
    from mklopt.tasks import epsilon_path as module

    calls, plain = [], module.solve

    def counted(*given, **options):
        calls.append(1)
        return plain(*given, **options)

    monkeypatch.setattr(module, "solve", counted)
    path = mklopt.path(problem(), span=20.0, everywhere=1e-2)
    count = len(calls)
    assert count == path.solves
    frame = path.nodes_to_frame()
    assert np.sum(frame["solved"]) == count < len(frame)
    assert np.all(frame["gap_to_next"] <= 1e-2)
    path.at(float(np.sqrt(path.C[0] * path.C[-1])))
    assert len(calls) == count


def test_a_callback_ends_it_and_then_it_says_how_far_it_came():
    seen: list[float] = []

    def third(result):
        seen.append(result.problem.C)
        return len(seen) == 3

    path = mklopt.path(problem(), span=20.0, everywhere=1e-2, callback=third)
    assert path.solves == 3 and path.C[-1] < 19 * path.C[0]
    assert not path.converged
    assert path.lower(1.01 * path.C[-1]) == -np.inf


def test_solutions_that_are_too_loose_do_not_prove_it():
    path = mklopt.path(
        problem("hinge", F.LpNorm(2)), [0.5, 1.0], everywhere=1e-6, tol=1e-3
    )
    assert not path.converged and path.gap > 1e-6
    assert path.solves <= 4


def test_a_tighter_epsilon_takes_more_solutions():
    p = problem("hinge", F.ElasticNet(0.5))
    loose, tight = (mklopt.path(p, span=5.0, everywhere=e) for e in (3e-2, 1e-3))
    assert loose.solves < tight.solves and tight.gap <= 1e-3 < loose.gap


def test_factors_and_classes():
    rng = np.random.default_rng(1)
    L = rng.normal(size=(3, 24, 2))
    grams = GramStack.from_factors(L)
    y = np.digitize(L[0, :, 0], [-0.4, 0.4])
    p = Problem(grams, y, "multinomial", F.LpNorm(2), 1.0)
    path = mklopt.path(p, [0.2, 2.0], everywhere=1e-2)
    truth = fresh(at_C(p, 0.77))
    assert path.converged
    assert path.lower(0.77) <= truth.upper and truth.lower <= path.upper(0.77)


@pytest.mark.parametrize("epsilon", [0, -1e-3, 1.0, "small", np.nan])
def test_epsilon_is_a_number_between_0_and_1(epsilon):
    with pytest.raises(ValueError, match="everywhere"):
        mklopt.path(problem(), everywhere=epsilon)


def test_it_shows_what_it_proves():
    path = mklopt.path(problem(), span=3.0, everywhere=1e-2)
    assert f"{path.solves} solves" in repr(path) and "every C in" in repr(path)
    shown = path._repr_html_()
    assert shown.count("<tr>") == path.solves + 1 and "every C in" in shown


# Fixed before the run: the bar of the project for whole paths.
BARS = {"squared": 25, "logistic": 25, "hinge": 40}
SPANNED = [F.GroupLasso(), F.ElasticNet(0.5), F.BlockL1(), F.LpNorm(4 / 3), "vskl"]


@pytest.mark.full
@pytest.mark.parametrize("which", range(len(SPANNED)))
@pytest.mark.parametrize("loss", BARS)
@pytest.mark.parametrize("name, n", [("wdbc", 100), ("twonorm", 100)])
def test_a_hundredfold_of_C_with_few_solutions(name, n, loss, which):
    """C_zero to 100 C_zero within 1e-3; fresh solutions at 500 random C agree."""
    train, _ = mklopt.data.load(name).standardized().split(n, seed=0)
    family = mklopt.kernels.gaussians([1, 3, 10], on="both")
    grams = family.fit(train.X, normalize="spherical").grams()
    groups = [list(range(i, grams.M, 4)) for i in range(4)]
    omega = F.VSKL(groups) if SPANNED[which] == "vskl" else SPANNED[which]
    p = Problem(grams, train.y, loss, omega)
    first = float(mklopt.C_zero(p.with_(formulation=F.GroupLasso())))
    path = mklopt.path(p, [first, 100 * first], everywhere=1e-3)
    assert path.converged and path.solves <= BARS[loss]
    rng, start = np.random.default_rng(0), None
    low_C, high_C = np.log(path.C[[0, -1]])
    for C in np.sort(np.exp(rng.uniform(low_C, high_C, 500))):
        low, high = path.lower(C), path.upper(C)
        assert high - low <= 1e-3 * high
        start = mklopt.solve(at_C(p, C), start=start, tol=1e-5)
        assert low <= start.certificate.upper and start.certificate.lower <= high
        assert path.at(C).certificate.width <= 1e-3
