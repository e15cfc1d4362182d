"""The default: the fastest solver that the traits allow, then others if it fails.

Problem. Every formulation, every loss.

Algorithm. By what the formulation and the loss state:

    several kernels as factors with few      `proximal_newton`: Newton in the feature
    columns, an inner solver for the loss    weights of all kernels at once
    Ω* smooth, an inner solver for the loss  `analytic`: all kernels are in use, Newton
                                             in log θ
    weights on simplices or an orthant, and  `active`: a working set of kernels, Newton
    an inner solver for the loss             in θ inside it
    weights that majorize, and no closed     `analytic`, with Anderson's acceleration
    prox, or no kernel that can be unused,
    or factors with few columns
    weights that majorize, a closed prox     `analytic` to a gap of ROUGH, then `spicy`,
    (trees of groups, …), and the hinge or   which makes weights of unused kernels 0
    another loss with kinks
    everything else, or one of these failed  `spicy`, from the best point so far; if it
                                             fails, too, `analytic` where possible

`Result.choice` says which solver was picked, and why. For trees of groups with the
hinge (n = 500, M = 50) `analytic` takes two thirds of the time of `spicy`, but no
weight becomes 0; one after the other take half of the time, and weights become 0.

Two ideas were tried and left out, because they save nothing. (1) A copy of the kernels
in single precision: at n = 1000 the copy costs 0.7 passes and saves 0.25 per iterate,
of which there are three to five. (2) Spheres around α* that prove kernels unused,
‖α − α*‖² ≤ 2 C L gap for a loss with an L-Lipschitz gradient. At n = 500, M = 100, with
about 80 unused kernels: 60 are proved unused with the logistic loss and C = 1 at a gap
of 1e-5, none with C = 100 at 4e-7, none with the squared loss at 7e-4. The certificate
after these is already the last one.

Guarantee. That of the solver picked. If it raises an error, ends, or makes no progress
for PATIENCE iterates, the next one goes on from the best point. `spicy` takes every
formulation and loss.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem
from .active import active
from .analytic import analytic
from .base import Iterate, Solver, Steps, Unsupported, solver
from .proximal_newton import proximal_newton
from .spicy import spicy

PATIENCE = 30  # iterates in which the gap must fall …
PROGRESS = 0.9  # … to this part of its value
ROUGH = 1e-2  # relative gap; `analytic` is fast up to here, `spicy` afterwards
SLIGHT, ACCURATE = 1e-12, 1e-6  # a block norm near 0; what `auto` promises


class Stage(NamedTuple):
    """A solver, why it was picked, and the relative gap up to which it runs."""

    solver: Solver
    why: str
    until: float = 0.0


@solver(
    "auto",
    losses={"any"},
    accuracy=ACCURATE,
    reference="kloft2011, chapelle2008, suzuki2009",
    guarantee="that of the solver it picks; switches when progress stalls",
)
def auto(problem: Problem, *, start: object = None) -> Steps:
    """The solver that the traits allow, and others if it fails."""
    for method, why, until in plan(problem, warm=start is not None):
        steps = method.steps(problem, start=start)
        ended = yield from followed(steps, why, until)
        start = start if ended is None else ended


def plan(problem: Problem, warm: bool = False) -> Iterator[Stage]:
    """The solver to begin with, and why; then the others that can solve the problem.

    warm: whether a start is given, near the solution
    """
    formulation, anything = problem.formulation, "it takes every formulation and loss"
    name, solvable = formulation.name, f"{problem.loss.name} has an SVM solver"
    several, few_columns = problem.grams.M > 1, problem.grams.in_feature_space
    reweights = not analytic.why_not(problem)
    if several and few_columns and not proximal_newton.why_not(problem):
        first, why = proximal_newton, f"factors with few columns, and {solvable}"
    elif "smooth_dual" in formulation.traits and reweights:
        first, why = analytic, f"{name} uses all kernels, and {solvable}"
    elif not active.why_not(problem):
        first, why = active, f"{name} leaves kernels unused, and {solvable}"
    elif few_columns and reweights:
        first, why = analytic, f"factors with few columns, and {solvable}"
    elif not formulation.closed("prox") and reweights:
        first, why = analytic, f"{name} has weights in closed form, but no prox"
    elif reweights and uses_all(problem):
        first, why = analytic, f"{name} uses all kernels, and {solvable}"
    elif reason := spicy.why_not(problem):
        raise Unsupported(f"auto cannot solve {problem}: spicy could, but {reason}")
    elif reweights:
        first, why = spicy, f"{name} has a prox in closed form"
        if not warm and problem.loss.smoothness is None:
            yield Stage(analytic, "analytic: the first steps, before spicy", ROUGH)
    else:
        first, why = spicy, anything
    yield Stage(first, f"{first.name}: {why}")
    others = [(spicy, anything), (analytic, solvable)]
    if few_columns:  # those that form no n × n matrix come first
        others = [(active, solvable), (analytic, solvable), (spicy, anything)]
    for other, why in others:
        if other is not first and not other.why_not(problem):
            yield Stage(other, f"{other.name}: {why}; {first.name} failed")


def uses_all(problem: Problem) -> bool:
    """Whether no kernel has u_m = 0 at the optimum: the prox of a slight u is not 0.

    `analytic` must also reach the accuracy that is promised here.
    """
    u = np.full(problem.grams.M, SLIGHT)
    u[0] = 1.0
    prox = problem.formulation.prox(u, 1.0)
    return bool(np.all(prox > 0)) and analytic.promise(problem) <= ACCURATE


def followed(
    steps: Steps, why: str, until: float = 0.0
) -> Generator[Iterate, Certificate, Any]:
    """The iterates of a solver until it fails, or to a gap; the best certificate."""
    sent, best, idle = None, None, 0
    while True:
        try:
            iterate = steps.send(sent)  # type: ignore[arg-type]
        except (StopIteration, ArithmeticError, np.linalg.LinAlgError):
            return best
        sent = yield replace(iterate, info={**iterate.info, "choice": why})
        if best is None or sent.relative_gap <= PROGRESS * best.relative_gap:
            best, idle = sent, 0
        else:
            idle += 1
        if idle > PATIENCE or sent.relative_gap <= until:
            steps.close()
            return best
