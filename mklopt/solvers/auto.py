"""What runs when no solver is named: the quickest that the traits allow, then others.

Problem. Every formulation, every loss.

Algorithm. By what the formulation and the loss state:

    Ω* smooth, a machine for the loss        `analytic`: all kernels are in use, Newton
                                             in log θ
    simplices or an orthant of weights, and  `active`: a working set of kernels, Newton
    a machine for the loss                   in θ inside it
    weights that majorize, no closed prox    `analytic`, with Anderson's acceleration
    everything else, and whatever fails      `spicy`, from the best point so far; where
                                             that fails, too, `analytic` if it can

What was picked and why is in `Result.choice`.

Tried and left out, since they save nothing: a copy of the kernels in single precision
(n = 1000: it costs 0.7 passes, an iterate with it 0.25 less; there are three to five
of them); spheres around α* that prove kernels unused, ‖α − α*‖² ≤ 2 C L gap for a loss
with an L-Lipschitz gradient (n = 500, M = 100: of about 80 unused kernels 60 are proved
so at a gap of 1e-5 with the logistic loss and C = 1, none at 4e-7 with C = 100, none at
7e-4 with the squared loss; the certificate after these is the last one).

Guarantee. That of the solver picked. If it raises, ends or makes no progress for
PATIENCE iterates, the next one goes on; `spicy` takes every formulation and loss.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..problem import Problem
from .active import active
from .analytic import analytic
from .base import Iterate, Solver, Steps, solver
from .spicy import spicy

PATIENCE = 30  # iterates …
PROGRESS = 0.9  # … in which the gap must fall to this part of itself


@solver(
    "auto",
    losses={"any"},
    accuracy=1e-6,
    reference="kloft2011, chapelle2008, suzuki2009",
    guarantee="that of the solver it picks; switches when progress stalls",
)
def auto(problem: Problem, *, start: Any = None) -> Steps:
    """The solver that the traits point to, and others should it fail."""
    for method, why in plan(problem):
        ended = yield from followed(method.steps(problem, start=start), why)
        start = start if ended is None else ended


def plan(problem: Problem) -> Iterator[tuple[Solver, str]]:
    """The solver to begin with, and why; then others that can, should it fail."""
    name, loss = problem.formulation.name, problem.loss.name
    if "smooth_dual" in problem.formulation.traits and not analytic.why_not(problem):
        first, why = analytic, f"{name} uses all kernels, and {loss} has an SVM solver"
    elif not active.why_not(problem):
        first, why = (
            active,
            f"{name} leaves kernels unused, and {loss} has an SVM solver",
        )
    elif not problem.formulation.closed("prox") and not analytic.why_not(problem):
        first, why = analytic, f"{name} has weights in closed form, but no prox"
    else:
        first, why = spicy, "it takes every formulation and loss"
    yield first, f"{first.name}: {why}"
    for other, why in (
        (spicy, "it takes every formulation and loss"),
        (analytic, f"{loss} has an SVM solver"),
    ):
        if other is not first and not other.why_not(problem):
            yield other, f"{other.name}: {why}; {first.name} failed"


def followed(steps: Steps, why: str) -> Generator[Iterate, Certificate, Any]:
    """The iterates of a solver until it fails; the best certificate comes back."""
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
        if idle > PATIENCE:
            steps.close()
            return best
