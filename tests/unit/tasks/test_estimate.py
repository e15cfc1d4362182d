"""Estimates: reads, time and memory near those of real runs."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, LazyStack, Problem, estimate, kernels, solve
from mklopt.formulations import BlockL1, GroupLasso, LpNorm
from mklopt.grams.storage import Triangles
from mklopt.solvers import solvers
from mklopt.tasks.estimate import READS, Estimate, in_bytes
from tests.problems import subset_gaussians

FORMS = (LpNorm(1.5), LpNorm(3.0), BlockL1(), GroupLasso())


def problem(n=150, M=40, form=FORMS[0], loss="hinge", C=10.0):
    K, y = subset_gaussians(n, M, seed=5)
    return Problem(GramStack(K), y, loss, form, C=C)


@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_reads_of_the_default_solver_are_within_a_factor_of_3(form, loss, tol):
    p = problem(form=form, loss=loss)
    expected = estimate(p, tol=tol)
    found = solve(p, tol=tol)
    reads = found.trace.last("passes") / p.grams.full_read
    assert expected.reads / 3 < reads < 3 * expected.reads
    assert found.choice.startswith(f"{expected.solver}:")


@pytest.mark.parametrize("form", [LpNorm(1.5), GroupLasso()], ids=repr)
def test_time_and_memory_of_slow_kernels_are_within_a_factor_of_3(form, monkeypatch):
    def slow(before):
        def ask(self, index, *arguments):
            time.sleep(0.004 * len(index))
            return before(self, index, *arguments)

        return ask

    for name in ("quad", "combine", "matvec"):
        monkeypatch.setattr(Triangles, name, slow(getattr(Triangles, name)))
    p = problem(form=form)
    solve(p, tol=1e-2)  # compiles
    begun = time.perf_counter()
    expected = estimate(p, tol=1e-4)
    measuring = time.perf_counter() - begun
    found = solve(p, tol=1e-4)
    assert expected.read_seconds == pytest.approx(0.16, rel=0.5)
    seconds = found.trace.last("seconds")
    assert expected.seconds / 3 < seconds < 3 * expected.seconds
    assert measuring < seconds


@pytest.mark.parametrize("size", [(100, 200), (400, 20)], ids=["many", "large"])
@pytest.mark.parametrize("form", [LpNorm(1.5), BlockL1()], ids=repr)
def test_memory_is_within_a_factor_of_3(size, form):
    n, M = size
    p = problem(n, M, form)
    expected = estimate(p)
    stored = p.grams.M * p.grams.n * (p.grams.n + 1) // 2 * 8
    assert expected.kernel_bytes == pytest.approx(stored)
    solve(problem(n, M, form))  # compiles; a stack keeps its memory for the next solve
    tracemalloc.start()
    solve(p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert expected.solver_bytes / 3 < peak < 3 * expected.solver_bytes
    assert expected.memory == expected.kernel_bytes + expected.solver_bytes


def test_kernels_that_are_not_in_memory():
    X = np.random.default_rng(0).normal(size=(60, 3))
    stack = LazyStack(X, kernels.gaussians([1, 3]))
    found = estimate(Problem(stack, np.tile([1.0, -1.0], 30), "hinge", LpNorm(2)))
    assert found.kernel_bytes == 0 and "not in memory" in str(found)
    assert stack.passes == 0  # measuring is not counted


def test_it_is_printed_in_three_lines():
    found = Estimate("analytic", 1e-6, 7.0, 20.0, 1.6e11, 2.0, 0.0, 1.2e9, True)
    assert str(found).split("\n") == [
        "analytic to a gap of 1e-06: about 2 min",
        "  7 reads of all kernels, 20 s each (160 GB, not in memory)",
        "  memory about 1.2 GB: kernels 0 bytes, solver 1.2 GB",
    ]
    assert found.seconds == 147.0


def test_a_solver_without_experience_says_so():
    assert "no experience" in str(estimate(problem(), "silp"))
    assert "no experience" not in str(estimate(problem(), "spicy"))


def test_every_solver_of_the_table_exists():
    assert set(READS) <= set(solvers())


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"tol": 0.0}, "a gap between 0 and 1"),
        ({"tol": "small"}, "tol = 'small'"),
        ({"solver": "simple"}, "simple cannot solve"),
        ({"solver": "nobody"}, "nobody"),
    ],
)
def test_mistakes_are_one_sentence(arguments, said):
    with pytest.raises(ValueError, match=said):
        estimate(problem(40, 3), **arguments)


def test_it_takes_a_problem():
    with pytest.raises(ValueError, match="estimate takes a Problem first, got int"):
        mklopt.estimate(3)


@pytest.mark.parametrize(
    "count, words",
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1200, "1.2 kB"),
        (16e9, "16 GB"),
        (5e16, "50000 TB"),
    ],
)
def test_bytes_in_words(count, words):
    assert in_bytes(count) == words


def test_by_rows_there_is_no_matrix_of_all_samples(monkeypatch):
    from mklopt.kernels import by_rows
    from mklopt.tasks import estimate as module

    monkeypatch.setattr(by_rows, "MATRIX_BYTES", 0)
    monkeypatch.setattr(module, "LARGEST", 50)
    X = np.random.default_rng(0).normal(size=(300, 3))
    grams = kernels.gaussians([1.0, 2.0, 3.0]).fit(X).lazy(cache="1MB")
    p = Problem(grams, np.sign(X[:, 0]), "hinge", LpNorm(1.5))
    found = estimate(p, tol=1e-3)
    assert found.solver == "analytic" and found.kernel_bytes == 0
    assert found.memory == 1e6 + 8 * (module.VECTORS * 3 + module.SQUARES * 50**2)
