"""Wrong solvers with known mistakes: the true cause is first or second.

The mistakes and the expected causes were written down before the first run: twenty (the
list of a user who found the diagnosis wrong or empty, and two more), and five others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, Problem, kernels
from mklopt.formulations import LpNorm
from mklopt.formulations.losses.margin import SquaredHinge
from mklopt.solvers.machines.at_weights import dual_at_weights

RNG = np.random.default_rng(11)
N = 50
X = RNG.normal(size=(N, 5)) + 0.7
Y = np.sign(X[:, 0] + X[:, 1] ** 2 - 1.5 + 0.4 * RNG.normal(size=N))
PARTS = [X[:, [0]], X[:, [1]], X[:, :2], X[:, 2:], X]
K = np.array(
    [
        *(np.asarray(kernels.gaussians([s]).fit(Z).grams().dense())[0]
          for s, Z in zip((1.0, 0.5, 2.0, 1.0), PARTS)),
        0.3 * X @ X.T,
        2.0 * (X[:, :2] ** 2) @ (X[:, :2] ** 2).T,
    ]
)  # fmt: skip
PROBLEM = Problem(GramStack(K), Y, "hinge", LpNorm(p=2), C=3.0)
Pair = tuple[Any, Any]  # (weights, dual)


def solved(problem: Problem, **changes: Any) -> Pair:
    found = mklopt.solve(problem.with_(**changes), tol=1e-11)
    return found.weights, found.dual


def alternated(problem: Problem, rounds: int, update: Callable) -> Pair:
    """The SVM at the weights, an update, and again; from equal weights."""
    theta = np.full(problem.grams.M, problem.grams.M**-0.5)
    for _ in range(rounds):
        alpha = dual_at_weights(problem, theta)
        theta = update(theta, problem.grams.norms(alpha))
    return theta, dual_at_weights(problem, theta)


def analytic(theta: Any, v: Any) -> Any:
    """The update of LpNorm(2): θ ∝ (θ v)^{2/3}, of length 1."""
    u = (theta * v) ** (2 / 3)
    return u / np.linalg.norm(u)


def gradient_ascent(theta: Any, v: Any) -> Any:
    """A projected gradient step along +∇J = −v²/2 + …, the wrong way."""
    moved = np.maximum(theta - 0.1 * v**2 / np.max(v**2), 1e-3)
    return moved / np.linalg.norm(moved)


def wrong_C(factor: Callable[[Problem], float]) -> Callable[[Problem], Pair]:
    return lambda p: solved(p, C=factor(p) * np.asarray(p.C))


def with_kernels(change: Callable) -> Callable[[Problem], Pair]:
    return lambda p: solved(p, grams=GramStack(change(np.array(p.grams.dense()))))


def no_sign(p: Problem) -> Pair:
    theta, alpha = solved(p)
    return theta, p.y * alpha


def weights_squared(p: Problem) -> Pair:
    theta, alpha = solved(p)
    return theta**2, alpha


def block_norms(p: Problem) -> Pair:
    theta, alpha = solved(p)
    return theta * p.grams.norms(alpha), alpha


def sum_to_one(p: Problem) -> Pair:
    theta, alpha = solved(p)
    return theta / np.sum(theta), alpha


def single(p: Problem) -> Pair:
    rounded = GramStack(np.array(p.grams.dense(), np.float32).astype(float))
    theta, alpha = solved(p, grams=rounded)
    return theta.astype(np.float32), alpha.astype(np.float32)


def balanced(p: Problem) -> Pair:
    share = np.array([np.sum(p.y == label) for label in p.y])
    return solved(p, C=p.C * len(p.y) / (2 * share))


def permuted(p: Problem) -> Pair:
    theta, alpha = solved(p)
    return theta[[2, 0, 1, 5, 3, 4]], alpha


def stale(p: Problem) -> Pair:
    theta, _ = alternated(p, 40, analytic)
    before, _ = alternated(p, 2, analytic)
    return theta, dual_at_weights(p, before)


def without_a_kernel(p: Problem) -> Pair:
    most = int(np.argmax(solved(p)[0]))
    used = np.delete(np.arange(p.grams.M), most)
    part, alpha = solved(p, grams=p.grams.subset(used))
    return np.insert(part, most, 0.0), alpha


def in_units_of_C(p: Problem) -> Pair:
    theta, alpha = solved(p)
    return theta, alpha / p.C


def unit_diagonal(grams: Any) -> Any:
    roots = np.sqrt(np.einsum("mii->mi", grams))
    return grams / (roots[:, :, None] * roots[:, None])


def centred(grams: Any) -> Any:
    H = np.eye(grams.shape[1]) - 1 / grams.shape[1]
    return H @ grams @ H


def regularized_bias(p: Problem) -> Pair:
    theta = solved(p)[0]
    total = p.grams.combine(theta) + 1.0
    one = Problem(GramStack(total[None]), p.y, "hinge", LpNorm(p=1), p.C, False)
    return theta, dual_at_weights(one, np.ones(1))


def without_samples(p: Problem) -> Pair:
    keep = np.ones(len(p.y), bool)
    keep[np.argsort(-np.abs(solved(p)[1]))[:2]] = False
    some = GramStack(np.array(p.grams.dense())[:, keep][:, :, keep])
    theta, part = solved(p, grams=some, y=p.y[keep])
    alpha = np.zeros(len(p.y))
    alpha[keep] = part
    return theta, alpha


class Mistake(NamedTuple):
    solver: Callable[[Problem], Pair]
    cause: str  # the kind that is expected
    words: str = ""  # what it has to say
    problem: Problem = PROBLEM
    tol: float = 1e-6


NO_BIAS = PROBLEM.with_(bias=False)
TWENTY = {
    "C/n": Mistake(wrong_C(lambda p: 1 / p.grams.n), "other C", "C/n"),
    "C taken for λ": Mistake(
        wrong_C(lambda p: 1 / (p.grams.n * p.C**2)), "other C", "1/(n·C)"
    ),
    "2C": Mistake(wrong_C(lambda p: 2.0), "other C", "2·C"),
    "no bias": Mistake(lambda p: solved(p, bias=False), "bias missing"),
    "a bias": Mistake(lambda p: solved(p, bias=True), "bias added", "", NO_BIAS),
    "no sign": Mistake(no_sign, "label sign dropped"),
    "squared hinge": Mistake(
        lambda p: solved(p, loss=SquaredHinge()), "other loss", "squared_hinge"
    ),
    "θ²": Mistake(weights_squared, "weights transformed", "square"),
    "θ·v": Mistake(block_norms, "weights transformed", "norms"),
    "Σθ = 1": Mistake(sum_to_one, "not normalized"),
    "trace": Mistake(
        with_kernels(lambda k: k * N / np.einsum("mii->m", k)[:, None, None]),
        "kernels normalized",
        "trace",
    ),
    "unit diagonal": Mistake(
        with_kernels(unit_diagonal), "kernels normalized", "diagonal"
    ),
    "wrong sign of the gradient": Mistake(
        lambda p: alternated(p, 15, gradient_ascent), "gradient sign"
    ),
    "three steps": Mistake(lambda p: alternated(p, 3, analytic), "stopped early"),
    "float32": Mistake(single, "single precision", "", PROBLEM, 1e-11),
    "class weights": Mistake(balanced, "other C per class"),
    "another p": Mistake(
        lambda p: solved(p, formulation=LpNorm(p=1.4)), "other formulation"
    ),
    "permuted": Mistake(permuted, "weights permuted"),
    "stale dual": Mistake(stale, "stale dual"),
    "a kernel is lost": Mistake(without_a_kernel, "kernel ignored"),
}
MORE = {
    "centred": Mistake(with_kernels(centred), "kernels normalized", "centred", NO_BIAS),
    "least squares": Mistake(
        lambda p: solved(p, loss="squared"), "other loss", "squared()"
    ),
    "α in units of C": Mistake(in_units_of_C, "dual scaled"),
    "bias with a penalty": Mistake(regularized_bias, "bias regularized"),
    "samples are lost": Mistake(without_samples, "sample ignored"),
}


@cache
def diagnosed(name: str) -> Any:
    mistake = (TWENTY | MORE)[name]
    weights, dual = mistake.solver(mistake.problem)
    return mklopt.diagnose(mistake.problem, weights=weights, dual=dual, tol=mistake.tol)


def found(name: str) -> bool:
    """Whether the true cause is first or second, and says what it has to."""
    mistake, causes = (TWENTY | MORE)[name], diagnosed(name).causes
    firsts = [c for c in causes[:2] if c.kind == mistake.cause]
    return any(mistake.words in c.words for c in firsts)


@pytest.mark.parametrize("name", [*TWENTY, *MORE])
def test_no_wrong_cause_is_stated_as_certain(name):
    """A cause is certain if it alone explains everything; then it is the true one."""
    certain = diagnosed(name).certain
    assert certain is None or certain.kind == (TWENTY | MORE)[name].cause


def test_the_true_cause_of_twenty_is_first_or_second():
    missed = [name for name in TWENTY if not found(name)]
    assert len(TWENTY) == 20
    assert len(missed) <= 3, missed


def test_the_true_cause_of_five_more_is_first_or_second():
    missed = [name for name in MORE if not found(name)]
    assert len(missed) <= 1, missed
