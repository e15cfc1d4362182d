"""Each hypothesis certifies the bug it stands for, and says its number."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.formulations import VSKL, FixedWeights, GroupLasso, LpNorm
from mklopt.formulations.losses import residual
from mklopt.judge.exam import diagnosis, other_points, other_problems
from mklopt.judge.exam import hypotheses as h
from mklopt.judge.exam.answer import Answer, Candidate
from mklopt.judge.exam.case import Case, Explanation, svm_dual
from mklopt.judge.exam.plan import plan
from mklopt.reference.graded_problems import reference_of

PAIRS = [[0, 1], [2, 3, 4]]
PROBLEM = plan(lambda p: None, grades=["easy"]).questions[0].problem


def solved(problem: Any = PROBLEM, **changes: Any) -> tuple[Any, Any]:
    """(dual, weights) of the problem, or of another one."""
    found = reference_of(problem.with_(**changes))
    return found.dual, found.weights


def case(dual: Any, weights: Any, problem: Any = PROBLEM, **answer: Any) -> Case:
    given = Candidate(dual, weights)
    facts = Answer("returned", "", given, given, given, **answer)
    return Case(problem, facts, 1e-6, given)


def best(hypothesis: Any, failure: Case) -> Explanation:
    """The explanation that certifies most, as a diagnosis ranks them."""
    found = max(hypothesis(failure), key=lambda e: diagnosis.decades(e, failure))
    assert found.error <= failure.explained < failure.error, found
    return found


def nothing(hypothesis: Any, failure: Case) -> bool:
    return not any(e.error <= failure.explained for e in hypothesis(failure))


@pytest.mark.parametrize("module", [other_points, other_problems])
def test_every_hypothesis_is_tried(module):
    own = [
        x
        for x in vars(module).values()
        if getattr(x, "__module__", "") == module.__name__
    ]
    public = [x for x in own if inspect.isgeneratorfunction(x) and x.__name__[0] != "_"]
    assert len(public) >= 9 and set(public) <= set(h.HYPOTHESES)


WRONG = case(0.3 * solved()[0], solved()[1][::-1])  # nothing simple explains it


@pytest.mark.parametrize("hypothesis", h.HYPOTHESES, ids=lambda f: f.__name__)
def test_what_is_wrong_in_two_ways_is_explained_by_none(hypothesis):
    assert nothing(hypothesis, WRONG)


@pytest.mark.parametrize(
    "factor, name", [(2.0, "2·C"), (0.25, "C/4"), (0.7, "0.7·C"), (0.5**0.5, "C/√2")]
)
def test_another_C_is_found(factor, name):
    failure = case(*solved(C=factor * PROBLEM.C))
    found = best(h.other_C, failure)
    assert (found.kind, f"C′ = {name}" in found.words) == ("other C", True), found


def test_an_ignored_C_per_sample_is_found():
    costs = np.linspace(0.5, 2.0, len(PROBLEM.y))
    failure = case(*solved(C=float(np.mean(costs))), problem=PROBLEM.with_(C=costs))
    assert "C per sample is ignored" in best(h.other_C, failure).words


def test_an_unbounded_dual_is_found():
    failure = case(*solved(C=1e3 * PROBLEM.C))
    assert "optimal for every C′ ≥" in next(iter(h.other_C(failure))).words


def test_a_bias_too_few_or_too_many_is_found():
    assert best(h.bias, case(*solved(bias=False))).kind == "bias missing"
    plain = PROBLEM.with_(bias=False)
    assert best(h.bias, case(*solved(), problem=plain)).kind == "bias added"


@pytest.mark.parametrize(
    "own, other, hint",
    [
        (LpNorm(2.0), LpNorm(4 / 3), "q = 2p/(p+1) was taken"),
        (LpNorm(1.5), LpNorm(3.0), "the exponent of the block norm|the dual exponent"),
        (LpNorm(2.0), LpNorm(1.7), "the weights follow another p"),
        (LpNorm(2.0), GroupLasso(), "GroupLasso()"),
        (VSKL(PAIRS, 2.0), VSKL([[1, 2], [3, 4, 0]], 2.0), "groups moved"),
        (VSKL(PAIRS, 2.0), VSKL(PAIRS, 4.0), "another q"),
    ],
    ids=repr,
)
def test_another_formulation_is_found(own, other, hint):
    problem = PROBLEM.with_(grams=PROBLEM.grams.subset(np.arange(5)))
    failure = case(
        *solved(problem, formulation=other), problem=problem.with_(formulation=own)
    )
    found = best(h.other_formulation, failure)
    assert any(part in found.words for part in hint.split("|")), found
    assert found.kind == ("wrong groups" if "groups" in hint else "other formulation")


def test_another_loss_is_found():
    found = best(h.other_loss, case(*solved(loss="logistic")))
    assert "optimal for logistic(), not hinge()" in found.words
    targets = PROBLEM.y * np.linspace(0.5, 2.0, len(PROBLEM.y))
    tube = PROBLEM.with_(loss=residual.EpsInsensitive(0.1), y=targets)
    without = solved(tube, loss=residual.EpsInsensitive(0.0))
    found = best(h.other_loss, case(*without, problem=tube))
    assert "eps_insensitive(eps=0), not eps_insensitive(eps=0.1)" in found.words


def test_an_ignored_kernel_is_found():
    least = np.argsort(solved()[1])
    used = np.sort(least[:-1])  # all but the most important one
    dual, part = solved(grams=PROBLEM.grams.subset(used))
    theta = np.zeros(PROBLEM.grams.M)
    theta[used] = part
    found = best(h.ignored_kernels, case(dual, theta))
    assert f"kernel {least[-1]} is ignored" in found.words


def test_an_ignored_sample_is_found():
    dual, _ = solved()
    silent = int(np.argmax(np.abs(dual)))
    keep = np.arange(len(dual)) != silent
    grams = GramStack(PROBLEM.grams.dense()[:, keep][:, :, keep])
    part, theta = solved(grams=grams, y=PROBLEM.y[keep])
    dual = np.zeros(len(keep))
    dual[keep] = part
    found = best(h.ignored_samples, case(dual, theta))
    assert f"sample {silent} takes no part" in found.words


def test_single_precision_is_found():
    dual, theta = (np.array(part, np.float32).astype(float) for part in solved())
    failure = case(dual, theta)
    assert "all numbers given are float32" in next(h.single_precision(failure)).words
    K = PROBLEM.grams.combine(theta).astype(np.float32).astype(float)
    rounded = PROBLEM.with_(grams=GramStack(K[None]), formulation=LpNorm(1.0))
    inner = case(svm_dual(rounded, np.ones(1)), theta)
    assert "rounded to float32" in best(h.single_precision, inner).words


def test_a_wrong_sign_is_found():
    dual, theta = solved()
    found = best(h.wrong_sign, case(PROBLEM.y * dual, theta))
    assert found.kind == "label sign dropped" and found.share == 1
    assert best(h.wrong_sign, case(-dual, theta)).kind == "sign reversed"
    ones = np.ones(len(theta))
    both = best(h.wrong_sign, case(PROBLEM.y * svm_dual(PROBLEM, ones), ones))
    assert "which are wrong too" in both.words and both.share < 1


def test_an_infeasible_dual_is_found():
    dual, theta = solved()
    outside = np.where(np.abs(dual) > 0.9999 * PROBLEM.C, 1.3 * dual, dual)
    assert "outside the box by 0.3·C" in best(h.infeasible, case(outside, theta)).words


def test_scaled_weights_are_found():
    dual, theta = solved()
    found = best(h.scaled_weights, case(dual, 3 * theta))
    assert "they are 3 times the right ones" in found.words
    double, weights = solved(C=2 * PROBLEM.C)
    used = best(h.scaled_weights, case(double / 2, 2 * weights))
    assert "acts like C′ = 2·C" in used.words


def test_permuted_weights_are_found():
    dual, theta = solved()
    for moved in (theta[::-1], np.roll(theta, 1)):
        found = best(h.permuted_weights, case(dual, moved))
        assert found.kind == "weights permuted"


def test_a_stale_dual_is_traced_to_its_weights():
    _, theta = solved()
    ones, old = np.ones(len(theta)), np.linspace(1, 2, len(theta))
    equal = best(h.stale, case(svm_dual(PROBLEM, ones), theta))
    assert (equal.kind, "weights that are all 1" in equal.words) == ("stale dual", True)
    stale_dual = svm_dual(PROBLEM, old)
    found = best(h.stale, case(stale_dual, theta, earlier=[old, theta]))
    assert "it belongs to the weights of 2 iterates before" in found.words
    unknown = best(h.stale, case(stale_dual, theta))  # nobody knows these weights
    assert "it solves the SVM at other weights" in unknown.words


def test_which_half_is_wrong_is_told_without_a_cause():
    dual, theta = solved()
    old = np.linspace(1, 2, len(theta))
    found = next(h.halves(case(svm_dual(PROBLEM, old), theta)))
    assert found.kind == "dual not optimal" and "cause is not known" in found.words
    found = best(h.halves, case(dual, old))
    assert found.kind == "weights not optimal" and found.share < 1


def test_another_C_for_one_class_is_found():
    C = np.where(PROBLEM.y > 0, 1.001, 1.0) * PROBLEM.C
    failure = case(*solved(C=C))
    found = best(h.other_C_per_class, failure)
    assert "C′ = 1.001·C where y = 1 and 1·C where y = −1" in found.words
    assert nothing(h.other_C, failure)


@pytest.mark.parametrize("price", [1.0, 0.3])
def test_a_price_on_the_bias_is_found(price):
    """One more kernel of ones, with a fixed weight."""
    theta = solved()[1]
    one = {"bias": False, "formulation": FixedWeights((1.0,))}
    K = PROBLEM.grams.combine(theta) + 1 / price
    raised = PROBLEM.with_(grams=GramStack(K[None]), **one)
    found = best(h.bias, case(svm_dual(raised, np.ones(1)), theta))
    assert found.kind == "bias regularized" and f"{price:.4g}/2·b²" in found.words
