"""Fresh problems find solvers that are wrong only here and there."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem
from mklopt.formulations import VSKL, LpNorm
from mklopt.judge.exam import exam
from mklopt.judge.exam.exam import examine
from mklopt.judge.exam.fresh import (
    MEDIUM,
    QUICK,
    RANGES,
    SITUATIONS,
    STORAGES,
    facts,
    varied,
    with_other_kernels,
)
from mklopt.judge.exam.plan import plan
from mklopt.problem import loss_from

SEED = 20
REFUSALS = (ValueError, NotImplementedError)


def drawn(seed: int = 0, loss: str = "hinge", bias: Any = None) -> dict[str, Problem]:
    rng = np.random.default_rng(seed)
    make = lambda M, rng: LpNorm(2.0)  # noqa: E731
    return {
        s.name: s.problem(rng, make, loss_from(loss), bias)
        for s in SITUATIONS
        if bias is None or s.bias is None
    }


def test_a_seed_repeats_everything_and_another_one_nothing():
    first, same, other = (
        {name: problem.digest() for name, problem in drawn(seed).items()}
        for seed in (3, 3, 4)
    )
    assert first == same
    assert not set(first.values()) & set(other.values())


def test_situations_are_what_they_are_called():
    found = drawn()
    assert found["n from 150"].grams.n >= 150 and MEDIUM.n[0] >= 150
    assert found["n over 256"].grams.n > 256 and found["n about 400"].grams.n >= 380
    for name in ("packed", "full", "factors"):
        assert found[name].grams.storage == name
    assert found["float32"].grams.dtype == np.float32
    assert found["C from 1000"].C > 1000 and found["C near 1e5"].C > 5e4
    assert found["C below 0.01"].C < 0.01
    assert np.ptp(found["one C per sample"].costs) > 0
    assert not found["no bias"].bias and found["with a bias"].bias
    shares = {name: np.mean(problem.y > 0) for name, problem in found.items()}
    assert shares["few positive"] < 0.15 and shares["few negative"] > 0.85
    assert all(0 < share < 1 for share in shares.values())
    assert np.sum(np.diff(found["labels in order"].y) != 0) == 1
    twins = found["every sample twice"].grams
    half = twins.kernel(0)[: twins.n // 2, : twins.n // 2]
    np.testing.assert_allclose(half, twins.kernel(0)[twins.n // 2 :, : twins.n // 2])
    assert min(np.ptp(K) for K in map(np.ravel, dense(found["a zero kernel"]))) == 0
    same = dense(found["identical kernels"])
    np.testing.assert_allclose(same[: len(same) // 2], same[len(same) // 2 :])
    sizes = np.trace(dense(found["kernels of other sizes"]), axis1=1, axis2=2)
    assert np.max(sizes) > 5 * np.min(sizes)
    assert np.linalg.matrix_rank(dense(found["full rank"])[0]) == len(
        found["full rank"].y
    )
    assert found["many kernels"].grams.M > 32 and found["a single kernel"].grams.M == 1
    assert found["few samples"].grams.n <= 6
    assert np.mean(found["large kernels"].grams.diag()) > 50
    assert np.mean(found["small kernels"].grams.diag()) < 0.02


def dense(problem: Problem) -> Any:
    return np.stack([problem.grams.kernel(m) for m in range(problem.grams.M)])


def test_chance_decides_what_a_situation_leaves_open():
    some = [drawn(seed)["some problem"] for seed in range(25)]
    assert {p.bias for p in some} == {True, False}
    assert len({(p.grams.storage, p.grams.dtype) for p in some}) >= len(STORAGES)
    assert len({p.grams.n for p in some}) > 8 and len({p.grams.M for p in some}) > 3
    assert all(p.bias for p in drawn(bias=True).values())


@pytest.mark.parametrize("loss", mklopt.formulations.losses_by_name())
def test_every_loss_has_targets_and_kernels_are_positive(loss):
    for name, problem in drawn(seed=1, loss=loss).items():
        if problem.grams.n > 100:
            continue
        lowest = np.linalg.eigvalsh(dense(problem))[:, 0]
        scale = np.max(np.abs(dense(problem)), axis=(1, 2))
        assert np.all(lowest >= -1e-12 * problem.grams.n * scale), name


def test_parameters_vary_within_their_ranges_and_groups_are_partitions():
    rng = np.random.default_rng(0)
    ps = [varied(LpNorm(2.0), rng).p for _ in range(20)]
    low, high = RANGES["p"]
    assert len(set(ps)) > 10 and low <= min(ps) and max(ps) <= high
    groups = {varied(VSKL([[0, 1], [2, 3, 4]]), rng).groups for _ in range(20)}
    assert len(groups) > 5
    assert all(sorted(sum(g, ())) == [0, 1, 2, 3, 4] for g in groups)
    taus = {varied(loss_from("quantile"), rng).tau for _ in range(5)}
    assert len(taus) > 1 and varied(loss_from("hinge"), rng) == loss_from("hinge")


def test_facts_of_a_problem_are_told():
    problem = drawn()["float32"]
    told = facts(problem)
    assert (told["n"], told["M"]) == (problem.grams.n, problem.grams.M)
    assert (told["C"], told["bias"]) == (problem.C, problem.bias)
    assert told["storage"] == f"{problem.grams.storage} float32"
    own = drawn()["one C per sample"]
    assert facts(own)["C"] == np.max(own.C)
    assert facts(drawn()["packed"])["storage"] == "packed"


# ---- solvers that are wrong here and there -----------------------------------


@pytest.fixture(scope="module")
def asked() -> Any:
    """The questions of a quick exam of a function, and right answers to them."""
    made = plan(lambda p: None, grades=["fresh"], quick=True, seed=SEED).questions
    known = {}
    for question in made:
        found = mklopt.solve(question.problem, tol=1e-8).certificate
        weights = found.weights
        if weights is None:
            weights = question.problem.formulation.weights(found.norms)
        known[question.problem.digest()] = (weights, found.alpha)
    return made, known


def wrong_where(condition: Any, change: Any = None) -> Any:
    """A solver that is right but where a condition holds."""
    change = change or (lambda weights, dual: (1.01 * weights, dual))

    def solver(problem, right):
        weights, dual = right(problem)
        return change(weights, dual) if condition(problem) else (weights, dual)

    return solver


def shrunk(weights, dual):
    return weights, 0.99 * dual


def turned(weights, dual):
    return weights[::-1], dual


def one_forgotten(weights, dual):
    last = np.flatnonzero(np.abs(dual).reshape(len(dual), -1).sum(axis=1))[-1]
    return weights, np.where(np.arange(len(dual)) == last, 0.0, dual.T).T


def stateful(when: Any) -> Any:
    """A solver that is wrong in some of its calls."""
    calls = count()

    def solver(problem, right):
        weights, dual = right(problem)
        return (weights, 0.99 * dual) if when(next(calls), problem) else (weights, dual)

    return solver


def remembers(key: Any) -> Any:
    """A solver that gives the answer it gave before."""
    memory: dict[Any, Any] = {}

    def solver(problem, right):
        return memory.setdefault(key(problem), right(problem))

    return solver


def in_place(part: Any) -> Any:
    """A solver that works in what it was given."""

    def solver(problem, right):
        answer = right(problem)
        part(problem)
        return answer

    return solver


def writes_y(problem):
    problem.y.flags.writeable = True
    problem.y[:] = -problem.y


def sets_C(problem):
    object.__setattr__(problem, "C", 1.0)


def writes_kernels(problem):
    P = problem.grams._store.P
    for array in P if isinstance(P, list | tuple) else [P]:
        array.flags.writeable = True
        array *= 2


STORED = {  # of the graded problems, from the store of references
    question.problem.digest(): None
    for question in plan(lambda p: None, grades=["easy"]).questions
}
rng = np.random.default_rng(7)

WRONG: dict[str, Any] = {
    # sizes
    "n ≥ 150": wrong_where(lambda p: p.grams.n >= 150),
    "n ≥ 150, dual": wrong_where(lambda p: p.grams.n >= 150, shrunk),
    "n > 128, order": wrong_where(lambda p: p.grams.n > 128, turned),
    # storages
    "packed": wrong_where(lambda p: p.grams.storage == "packed"),
    "packed, dual": wrong_where(lambda p: p.grams.storage == "packed", shrunk),
    "not packed": wrong_where(lambda p: p.grams.storage != "packed", turned),
    # C
    "C > 1000": wrong_where(lambda p: np.max(p.C) > 1000),
    "C > 1000, dual": wrong_where(lambda p: np.max(p.C) > 1000, shrunk),
    "C > 500, one α": wrong_where(lambda p: np.max(p.C) > 500, one_forgotten),
    "C per sample": wrong_where(lambda p: np.ndim(p.C) > 0),
    # formulations and losses
    "p ≠ 2": wrong_where(lambda p: getattr(p.formulation, "p", 2.0) != 2.0),
    "not LpNorm(2)": wrong_where(lambda p: p.formulation != LpNorm(2.0), shrunk),
    "p taken for 2": wrong_where(lambda p: p.formulation.name == "LpNorm"
                                 and p.formulation.p != 2, turned),
    "not the hinge": wrong_where(lambda p: p.loss.name != "hinge"),
    "real targets": wrong_where(lambda p: p.loss.labels == "real", shrunk),
    "a quadratic dual only": wrong_where(
        lambda p: p.loss.quadratic(p.y, p.costs) is None or p.loss.name != "hinge"),
    # bias and labels
    "no bias": wrong_where(lambda p: not p.bias),
    "bias": wrong_where(lambda p: p.bias, shrunk),
    "few positive": wrong_where(lambda p: np.mean(p.y > 0) < 0.2, shrunk),
    # inputs
    "changes y": in_place(writes_y),
    "changes C": in_place(sets_C),
    "changes the kernels": in_place(writes_kernels),
    # memory
    "remembers n": remembers(lambda p: p.grams.n),
    "remembers the shape": remembers(lambda p: (p.loss.name, p.shape, p.grams.M)),
    "remembers stored problems": wrong_where(lambda p: p.digest() not in STORED),
    "remembers repr": remembers(lambda p: repr(p)[:30]),
    "right once": stateful(lambda k, p: k > 0),
    "one of five": stateful(lambda k, p: rng.random() < 0.2),
    "wrong after six": stateful(lambda k, p: k >= 6),
    # numbers
    "not finite": lambda p, right: (right(p)[0], right(p)[1] * np.nan),
    "negative": lambda p, right: (right(p)[0] - 1e-3, right(p)[1]),
    "huge": lambda p, right: (1e300 * right(p)[0], right(p)[1]),
    "tiny": lambda p, right: (1e-300 * right(p)[0], right(p)[1]),
    "zeros": lambda p, right: (0 * right(p)[0], 0 * right(p)[1]),
    "float16": lambda p, right: [np.float16(x) for x in right(p)],
    "too long": lambda p, right: (np.append(right(p)[0], 0), right(p)[1]),
    "sign": lambda p, right: (right(p)[0], -right(p)[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_solver_that_is_wrong_somewhere_is_caught(name, asked, monkeypatch):
    monkeypatch.setattr(exam, "MAX_DIAGNOSED", 0)  # here it counts that it fails
    questions, known = asked
    solver = lambda p: WRONG[name](p, lambda p: known[p.digest()])  # noqa: E731
    rows, refused = examine(solver, questions)
    assert not all(row.passed for row in rows)
    assert len(rows) + len(refused) == len(questions)


def test_a_right_solver_passes_and_may_refuse(asked):
    questions, known = asked
    rows, refused = examine(lambda p: known[p.digest()], questions)
    assert all(row.passed for row in rows) and not refused

    def picky(problem):
        if (problem.loss.name, problem.formulation) != ("hinge", LpNorm(2.0)):
            raise NotImplementedError("the usual SVM only")
        return known[problem.digest()]

    rows, refused = examine(picky, questions)
    assert all(row.passed for row in rows) and len(rows) >= QUICK
    assert len(refused) >= 5 and all("(refused)" in words for words in refused)


@pytest.mark.parametrize("storage", STORAGES)
def test_other_kernels_leave_all_else_alike(storage):
    L = np.random.default_rng(0).normal(size=(3, 12, 4))
    if storage == "factors":
        grams = GramStack.from_factors(L)
    else:
        K = L @ L.transpose(0, 2, 1) + 0.1 * np.eye(12)
        dtype = "float32" if storage == "float32" else "float64"
        grams = GramStack(K, storage="full" if storage == "full" else "packed",
                          dtype=dtype)  # fmt: skip
    one = Problem(grams, np.tile([1.0, -1.0], 6), "hinge", LpNorm(1.5), C=2.0)
    other = with_other_kernels(one, np.random.default_rng(1))
    assert (other.grams.storage, other.grams.dtype) == (grams.storage, grams.dtype)
    assert np.array_equal(other.y, one.y) and other.formulation == one.formulation
    theta = np.ones(3)
    before, after = (np.linalg.eigvalsh(p.grams.combine(theta)) for p in (one, other))
    np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-5)
    assert not np.allclose(one.grams.combine(theta), other.grams.combine(theta))
    assert np.array_equal(other.grams.diag(), one.grams.diag())
