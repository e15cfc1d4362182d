"""The one loop: what it certifies, when it stops, what it brings back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from mklopt import GramStack, Problem, certify, solve
from mklopt.formulations import VSKL, Composite, GroupLasso, LpNorm
from mklopt.solvers import Iterate, solver, solvers, that_can
from mklopt.solvers.base import REGISTRY
from tests.problems import subset_gaussians
from tests.stopwatch import stopwatch

K, Y = subset_gaussians(60, 6)
GRAMS = GramStack(K)


def problem(**changes) -> Problem:
    return Problem(GRAMS, Y, "hinge", LpNorm(4 / 3), C=1.0).with_(**changes)


@pytest.fixture
def temporary():
    """A solver that exists for one test only."""
    made = []

    def make(steps):
        found = solver("temporary")(steps)
        made.append(found.name)
        return found

    yield make
    for name in made:
        REGISTRY.pop(name, None)


BEST = solve(problem(), "analytic", tol=1e-6)
ALPHA, THETA = BEST.dual, BEST.certificate.weights


def test_the_gap_is_the_same_whatever_else_a_solver_claims(temporary):
    """It lies in every field but dual and weights; its certificate does not change."""
    rough = solve(problem(), "analytic", tol=1e-2)
    alpha, theta = rough.dual, rough.certificate.weights

    @temporary
    def liar(problem):
        yield Iterate(alpha, theta, bias=1e9, info={"gap": 0.0, "svm_solves": 10**6})

    found = solve(problem(), liar, tol=1e-9)
    assert found.status == "finished"
    assert found.relative_gap == rough.relative_gap > 1e-9
    assert found.bias == rough.bias


def test_a_solver_cannot_spoil_the_memory_of_the_stack(temporary):
    @temporary
    def vandal(problem):
        quad = problem.grams.quad(problem.feasible(ALPHA))
        with pytest.raises(ValueError, match="read-only"):
            quad *= 0
        yield Iterate(ALPHA, THETA)

    assert solve(problem(), vandal).relative_gap == BEST.relative_gap


def test_certificates_cost_nothing_twice():
    """One combine and one quad per iterate, both asked for by the solver anyway."""
    found = solve(problem(), "analytic", tol=1e-6, accelerate="anderson")
    per_iterate = 2 * (61 / 120)  # packed triangles: half a pass each, and a diagonal
    assert found.trace.passes[-1] == pytest.approx(per_iterate * len(found.trace))


def test_an_error_inside_a_solver_brings_back_the_best_so_far(temporary):
    @temporary
    def breaks(problem):
        yield Iterate(ALPHA, THETA)
        yield Iterate(0 * ALPHA, THETA)
        raise ZeroDivisionError("inside the solver")

    found = solve(problem(), breaks, tol=0.0)
    assert found.status == "failed" and "inside the solver" in found.message
    assert found.relative_gap == BEST.relative_gap and len(found.trace) == 2


def test_an_error_before_the_first_iterate_is_raised(temporary):
    @temporary
    def breaks(problem):
        raise ZeroDivisionError("at once")
        yield

    with pytest.raises(ZeroDivisionError, match="at once"):
        solve(problem(), breaks)


def test_an_interrupt_brings_back_the_best_so_far(temporary):
    @temporary
    def interrupted(problem):
        yield Iterate(ALPHA, THETA)
        raise KeyboardInterrupt

    found = solve(problem(), interrupted, tol=0.0)
    assert found.status == "interrupted"
    assert found.relative_gap == BEST.relative_gap


def test_control_c_in_a_real_process():
    code = """
import mklopt
from tests.problems import subset_gaussians
K, y = subset_gaussians(300, 10)
problem = mklopt.Problem(K, y, "hinge", mklopt.formulations.LpNorm(1.01), C=100.0)
print("ready", flush=True)
result = mklopt.solve(problem, "smo_mkl", tol=0.0)
print(result.status, result.relative_gap >= 0, len(result.trace) > 0)
"""
    command = [sys.executable, "-c", code]
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=heard
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=15)
    assert out.split() == ["interrupted", "True", "True"]


def factors(grams: GramStack) -> GramStack:
    """Nearly the same kernels, as factors with few columns."""
    found = []
    for K in grams.dense():
        values, vectors = np.linalg.eigh(K)
        found.append(vectors[:, -8:] * np.sqrt(np.maximum(values[-8:], 0.0)))
    return GramStack.from_factors(found)


def suited(name, p):
    """The problem with a formulation that the solver can solve."""
    halves = (range(p.grams.M // 2), range(p.grams.M // 2, p.grams.M))
    others = (LpNorm(1.0), GroupLasso(), VSKL(halves, np.inf), Composite(halves))
    for other in (
        p,
        *(p.with_(formulation=f) for f in others),
        p.with_(bias=False),
        p.with_(loss="squared", bias=False),
        p.with_(grams=factors(p.grams)),
    ):
        if name in that_can(other):
            return other
    raise LookupError(f"no problem here suits {name}")


IN_A_SWEEP = """
import time
import numpy as np
import mklopt
from mklopt.formulations import BlockL1
from mklopt.grams.storage import Triangles
from mklopt.util.sweeps import report
from tests.problems import subset_gaussians

K, y = subset_gaussians(100, 40)
make = lambda: mklopt.Problem(mklopt.GramStack(K), y, "hinge", BlockL1(), C=10.0)
fresh, problem = make(), make()
plain, rows, sweeps, ended = Triangles.quad, [], [], []

def slow(self, index, A):  # in batches, as stores do that are not in memory
    out = np.empty(len(index))
    for first in range(0, len(index), 4):
        out[first : first + 4] = plain(self, index[first : first + 4], A)
        if rows:  # after the first iterate
            if len(index) == 40 and first == 8 and not sweeps:
                sweeps.append(len(rows))
                print("sweep", flush=True)
            time.sleep(0.2)
        report(min(first + 4, len(index)), len(index))
    ended.append(len(rows))
    return out

Triangles.quad = slow
result = mklopt.solve(
    problem, "interleaved", tol=0.0, callback=lambda certificate, trace: rows.append(1)
)
Triangles.quad = plain
again = mklopt.certify(fresh, result.dual, result.weights)
print(result.status, [len(result.trace)] == sweeps, ended.count(sweeps[0]))
found = result.certificate
print(again.lower <= found.upper and found.lower <= again.upper)
print(abs(again.relative_gap - result.relative_gap) < 1e-9)
one, two = mklopt.solve(problem, tol=1e-8), mklopt.solve(fresh, tol=1e-8)
print(np.array_equal(one.weights, two.weights), np.array_equal(one.dual, two.dual))
"""


def test_control_c_in_the_middle_of_a_sweep():
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_SWEEP],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heard,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sweep\n"
        process.send_signal(signal.SIGINT)
        first = process.stdout.readline()
        rest = process.stdout.read().split()
    assert first == "interrupted True 1\n"  # of the certificate at the end
    assert rest == ["True"] * 4


@pytest.mark.parametrize("name", list(solvers()))
def test_time_limits_are_kept(name):
    kernels, y = subset_gaussians(300, 20)
    p = suited(name, Problem(kernels, y, "hinge", LpNorm(4 / 3), C=100.0))
    solve(p, name, tol=0.0, time_limit=0.1)  # compiles: that cannot be stopped
    seconds = stopwatch()
    found = solve(p, name, tol=0.0, time_limit=0.5)
    assert seconds() < 1.5
    ended = ("time_limit", "stagnated", "finished", "failed", "rounding")
    assert found.status in ended  # rounding: a gap of 0 was reached in time
    assert found.relative_gap >= 0


def test_limits_and_callbacks():
    seen = []

    def third_time(certificate, trace):
        seen.append(certificate.primal)
        return len(trace) == 3

    found = solve(problem(), "analytic", tol=0.0, callback=third_time)
    assert found.status == "stopped" and len(seen) == 3
    assert solve(problem(), "analytic", tol=0.0, max_iter=2).status == "max_iter"


def test_standing_still_is_noticed(temporary):
    @temporary
    def lazy(problem):
        while True:
            yield Iterate(0.5 * ALPHA, THETA)

    found = solve(problem(), lazy, tol=1e-9)
    assert found.status == "stagnated" and len(found.trace) < 1000


def test_the_best_primal_meets_the_best_dual(temporary):
    """Neither iterate is good; together they are, and the result is certified so."""
    good = certify(problem(), dual=ALPHA, weights=THETA)
    zero = np.zeros_like(ALPHA)

    @temporary
    def halves(problem):
        yield Iterate(ALPHA, 0 * THETA)  # a good dual point, and w = 0
        yield Iterate(zero, coefficients=lambda: good.expansion)  # and the converse

    found = solve(problem(), halves, tol=1e-6)
    assert found.status == "converged" and len(found.trace) == 2
    assert 0 <= found.relative_gap <= 1e-6
    np.testing.assert_allclose(found.weights, BEST.weights, rtol=1e-4)


def test_a_warm_start_begins_where_it_ended():
    near = problem(C=1.05)
    cold = solve(near, "analytic")
    for start in (BEST, (BEST.weights, BEST.dual)):
        warm = solve(near, "analytic", start=start)
        assert warm.converged and len(warm.trace) < len(cold.trace)
    assert len(solve(problem(), "analytic", start=BEST).trace) <= 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(solver="nothing"), "not known; choose one of active, analytic"),
        (dict(solver="analytic", speed=3), "no option speed; it has: accelerate"),
        (dict(solver="analytic", tol=-1.0), "tol = -1.0"),
        (dict(solver="analytic", tol="small"), "tol = 'small'"),
        (dict(solver="analytic", max_iter=0), "max_iter = 0"),
        (dict(solver="analytic", time_limit=-1), "time_limit = -1"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        solve(problem(), **arguments)
    with pytest.raises(ValueError, match="takes a Problem"):
        solve(K, **arguments)


# ---- hard cases ----------------------------------------------------------------


def linear(X):
    """Five kernels of rank 3."""
    return [part @ part.T for part in np.split(X, 5, axis=1)]


def test_an_error_in_the_callback_is_the_callers():
    def wrong(certificate, trace):
        raise ZeroDivisionError("in the callback")

    with pytest.raises(ZeroDivisionError, match="in the callback"):
        solve(problem(), "analytic", callback=wrong)


def test_the_gap_and_the_enclosure_speak_of_the_same_kernels():
    """After the proof K + δI is certified, in floats and in the enclosure alike."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 15)), np.sign(rng.normal(size=100))
    grams = GramStack(linear(X))
    assert np.any(grams.verify_psd() > 0)
    p = Problem(grams, y, "squared", LpNorm(2.0), 1e6)
    found = solve(p, "analytic", time_limit=1.0).certificate
    assert found.lower <= found.dual * (1 + 1e-9)
    assert found.primal <= found.upper * (1 + 1e-9)


def test_crossed_bounds_are_no_evidence(temporary):
    """Two iterates whose values cross by rounding do not make a gap of 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 15)), np.sign(rng.normal(size=100))
    p = Problem(GramStack(linear(X)), y, "squared", LpNorm(1.0), 1e12)
    found = solve(p, "hessian", time_limit=1.0)
    assert found.trace.gap[-1] > 0 or found.relative_gap <= 1e-6


@pytest.mark.parametrize("name", ["analytic", "lp_newton", "interleaved", "hessian"])
def test_a_kernel_of_weight_0_can_come_back(name):
    p = problem(formulation=LpNorm(1.0 if name == "hessian" else 4 / 3))
    found = solve(p, name, start=(np.eye(6)[0], None))
    assert found.converged


@pytest.mark.parametrize("name", ["analytic", "interleaved", "smo_mkl"])
def test_kernels_in_single_precision(name):
    p = problem(grams=GramStack(K, dtype="float32"))
    assert solve(p, name).converged


@pytest.mark.parametrize("name", [s for s in solvers() if s != "lbfgs"])
def test_time_limits_are_kept_where_nothing_can_be_separated(name):
    """Rank 3, random labels, C = 1e6: no SVM is ever solved; the limit must hold."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 15)), np.sign(rng.normal(size=600))
    p = suited(name, Problem(GramStack(linear(X)), y, "hinge", LpNorm(4 / 3), 1e6))
    solve(p, name, time_limit=0.1)  # compiles
    seconds = stopwatch()
    found = solve(p, name, time_limit=1.0)
    assert seconds() < 2.5
    assert found.relative_gap >= 0


def test_solvers_that_draw_are_certified_on_a_geometric_schedule(temporary):
    asked, sent = [], []

    @temporary
    def draws(problem, *, rng, epochs=30):
        for epoch in range(1, epochs + 1):
            made = 0.5 if epoch < epochs else 1.0  # the last point is the best
            sent.append((yield Iterate(partial(seen, epoch, made), THETA)))

    def seen(epoch, made):
        asked.append(epoch)
        return made * ALPHA

    found = solve(problem(), draws, tol=0.0)
    assert asked == [1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30]
    assert list(found.trace.iteration) == [epoch - 1 for epoch in asked]
    assert found.status == "finished" and found.relative_gap == BEST.relative_gap
    assert len(sent) == 30 and len({id(c) for c in sent}) == 12  # the newest each time

    for options, last in (
        ({"max_iter": 10}, 10),
        ({"max_iter": 9}, 9),
        ({"time_limit": 0.0}, 1),
        ({"epochs": 8}, 8),
    ):
        asked.clear()
        found = solve(problem(), draws, tol=0.0, **options)
        assert asked[-1] == last == found.trace.last("iteration") + 1
