"""Failures of whole runs are named, in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import check_solver
from mklopt.formulations import BlockNorm, FixedWeights, GroupLasso, LpNorm
from mklopt.judge.exam.answer import Answer, Candidate
from mklopt.judge.exam.case import Case, svm_dual
from mklopt.judge.exam.diagnosis import diagnose, explanations, observed
from mklopt.judge.exam.plan import plan
from mklopt.reference.graded_problems import reference_of
from mklopt.solvers import Iterate, solvers

BRIEF: Any = {"grades": ["easy"], "leave_out": ["twonorm"]}  # three problems


def right(problem):
    """(weights, dual) of the reference."""
    found = reference_of(problem)
    return found.weights, found.dual


def instead(**changes):
    """A solver of another problem: the bug that every change stands for."""

    def solver(problem):
        made = {k: v(problem) if callable(v) else v for k, v in changes.items()}
        return right(problem.with_(**made))

    return solver


def signless(problem):
    weights, dual = right(problem)
    return weights, problem.y * dual


def labels_forgotten(problem):
    """α ≥ 0 all along: in αᵀK_mα, too, and so in the weights."""
    theta = np.full(problem.grams.M, problem.grams.M**-0.5)
    for _ in range(30):
        alpha: Any = svm_dual(problem, theta)
        v = np.sqrt(problem.grams.quad(np.abs(alpha)))
        theta = LpNorm(2.0).weights(theta * v)
    return theta, np.abs(alpha)


def backwards(problem):
    weights, dual = right(problem)
    return weights, -dual


def off_centre(problem):
    weights, dual = right(problem)
    return weights, dual + 0.02 * problem.C


def beyond(problem):
    """Right after clipping, and so certified: only what was given is wrong."""
    weights, dual = right(problem)
    return weights, np.where(np.abs(dual) > 0.9999 * problem.C, 1.3 * dual, dual)


def stale(problem):
    weights, _ = right(problem)
    return weights, svm_dual(problem, np.ones(len(weights)))


def priced_bias(problem):
    """b²/2 in the objective: one more kernel of ones, at its own fixed weight."""
    theta = right(problem)[0]
    if not problem.bias:
        return right(problem)
    for _ in range(40):
        K = problem.grams.combine(theta) + 1.0
        one = {"bias": False, "formulation": FixedWeights((1.0,))}
        svm: Any = problem.with_(grams=mklopt.GramStack(K[None]), **one)
        alpha: Any = svm_dual(svm, np.ones(1))
        theta = LpNorm(2.0).weights(theta * problem.grams.norms(alpha))
    return theta, alpha


def old_weights(problem):
    weights, dual = right(problem)
    return np.full(len(weights), len(weights) ** -0.5), dual


def shuffled(problem):
    weights, dual = right(problem)
    return weights[::-1], dual


def single(problem):
    return tuple(np.float32(part) for part in right(problem))


def early(problem):
    found = mklopt.solve(problem, "interleaved", max_iter=8)
    return found.certificate.weights, svm_dual(problem, found.certificate.weights)


def cut_short(problem):
    steps: Any = solvers()["interleaved"].steps(problem)
    certificate = None
    for _ in range(6):
        certificate = yield steps.send(certificate)


def noise(problem):
    rng = np.random.default_rng(0)
    dual = rng.uniform(size=problem.shape) * problem.y * problem.C
    return rng.uniform(size=problem.grams.M), problem.feasible(dual)


DIAGNOSES = {
    "C/n": (instead(C=lambda p: p.C / len(p.y)), "other C", "C′ = C/n"),
    "2C": (instead(C=lambda p: 2 * p.C), "other C", "C′ = 2·C"),
    "C'": (instead(C=lambda p: 0.7 * p.C), "other C", "C′ = 0.7·C"),
    "bias": (instead(bias=False), "bias missing", "bias missing"),
    "q": (instead(formulation=LpNorm(4 / 3)), "other formulation", "q = 2p/(p+1)"),
    "unsquared": (instead(formulation=GroupLasso()), "other formulation", "GroupLasso"),
    "block": (instead(formulation=BlockNorm(2.0)), "other formulation", "block norm"),
    "loss": (instead(loss="logistic"), "other loss", "optimal for logistic"),
    "signless": (signless, "label sign dropped", "multiply it by y"),
    "labels": (labels_forgotten, "label sign dropped", "which are wrong too"),
    "backwards": (backwards, "sign reversed", "−α is certified"),
    "off centre": (off_centre, "dual infeasible", "where a bias asks for 0"),
    "beyond": (beyond, "dual infeasible", "outside the box by 0.3·C"),
    "stale": (stale, "stale dual", "it belongs to weights that are all 1"),
    "old weights": (old_weights, "weights not optimal", "cause is not known"),
    "C + 0.01 %": (instead(C=lambda p: 1.0001 * p.C), "other C", "1.0001·C"),
    "C − 0.03 %": (instead(C=lambda p: 0.9997 * p.C), "other C", "0.9997·C"),
    "class weight": (
        instead(C=lambda p: p.costs * np.where(p.y > 0, 1.001, 1.0)),
        "other C per class",
        "1.001·C where y = 1",
    ),
    "priced bias": (priced_bias, "bias regularized", "1/2·b² added"),
    "shuffled": (shuffled, "weights permuted", "change places"),
    "early": (early, "stopped early", "stopped early"),
    "cut short": (cut_short, "stopped early", "still falling"),
    "noise": (noise, "not diagnosed", "not diagnosed"),
}


@pytest.mark.parametrize("name", DIAGNOSES)
def test_a_failure_is_named(name):
    solver, kind, words = DIAGNOSES[name]
    found = check_solver(solver, **BRIEF)
    assert not found.passed
    assert (found.kind, words in found.diagnosis) == (kind, True), found


def test_single_precision_is_named():
    found = check_solver(single, tol=1e-9, **BRIEF)
    assert (found.passed, found.kind) == (False, "single precision"), found


def test_a_stale_dual_of_a_generator_is_traced_to_its_weights():
    def late(problem):
        weights, _ = right(problem)
        old: Any = np.ones(len(weights))
        alpha: Any = svm_dual(problem, old)
        yield Iterate(alpha, old)
        yield Iterate(alpha, weights)

    found = check_solver(late, **BRIEF)
    assert found.kind == "stale dual"
    assert "weights of the iterate before" in found.diagnosis


# ---- by hand -----------------------------------------------------------------

PROBLEM = plan(right, **BRIEF).questions[0].problem


def case(dual: Any, weights: Any, **answer: Any) -> Case:
    given = Candidate(dual, weights)
    known: Any = {"ended": "returned", "given": given, "last": given} | answer
    return Case(PROBLEM, Answer(**known), 1e-6, given)


def test_what_is_observed_depends_on_how_the_run_ended():
    weights, dual = right(PROBLEM)
    rough: Any = (0.5 * dual, weights)
    falling: Any = {"gaps": (0.5, 0.2)}
    assert observed(case(*rough, ended="finished", **falling)).kind == "stopped early"
    late = observed(case(*rough, ended="time_limit", gaps=(0.5, 0.4, 0.1)))
    assert late.kind == "out of time" and "fell to 1.0e-01" in late.words
    assert math.isnan(late.error)  # nothing was certified
    assert observed(case(dual, 0 * weights)).words == "all weights are 0"
    fair = np.linspace(1, 2, len(weights))
    apart = case(svm_dual(PROBLEM, fair), fair)
    assert observed(apart).kind == "wrong weights"
    assert "of their length from the reference" in observed(apart).words
    outside = case(dual * np.where(PROBLEM.y > 0, 40.0, 1.0), fair)
    assert observed(outside).kind == "dual infeasible"


def test_the_best_explanation_comes_first():
    weights, dual = right(PROBLEM)
    found = explanations(case(-dual, weights))
    assert found[0].kind == "sign reversed" and found[0].error < 1e-6
    wandered = case(0.3 * dual, weights[::-1])
    lucky = replace(wandered.answer, given=Candidate(-dual, weights))
    (first, *_) = explanations(replace(wandered, answer=lucky))
    assert first.kind == "sign reversed"  # of the best point on the way


def test_what_explains_most_failures_is_said_of_all_it_explains():
    weights, dual = right(PROBLEM)
    cases = [case(-dual, weights), case(-dual, weights), case(dual, 2 * weights)]
    kinds = [found.kind for found in diagnose(cases)]
    assert kinds[:2] == ["sign reversed"] * 2 and kinds[2] == "not normalized"
    assert diagnose([]) == []
