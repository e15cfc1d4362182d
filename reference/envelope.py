"""The gradient of an envelope against differences of values that OSQP finds.

∇W(d) of gmkl/ rests on Danskin's theorem and on the α of our own SVM solver. Here W is
computed without either: r(d) plus the optimal value of the SVM as a quadratic program,
at d ± h in each direction.
"""

from typing import Any

import numpy as np

from .exact import run
from .programs import svm_program

SETTINGS = {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 100_000, "polishing": True}


def envelope_value(problem: Any, d: np.ndarray) -> float:
    """W(d) with the value of the SVM at d that OSQP reports."""
    found = run(svm_program(problem.machine(d), np.ones(1)), "OSQP", SETTINGS)
    if found is None:
        raise RuntimeError("OSQP found no solution of the SVM at d")
    return float(problem.regularizer.value(d) + found)


def envelope_agreement(result: Any, *, step: float = 1e-3, most: int = 5) -> float:
    """max |∇W − differences of W| over the largest parameters of a result, relative.

    Parameters
    ----------
    result : FamilyResult
        What `mklopt.gmkl.solve` returned.
    step : float, default=1e-3
        The step of the central differences, relative to each parameter.
    most : int, default=5
        How many parameters are tried, the largest first.

    Returns
    -------
    float
        The largest difference, divided by the larger of max |∇W| and max |∇r|: ∇W
        itself vanishes at a minimum inside the set.

    Raises
    ------
    RuntimeError
        Where OSQP finds no solution.
    """
    problem, d = result.problem, result.d
    size = max(float(np.max(np.abs(result.slope))), 1e-300)
    scale = max(float(np.max(np.abs(problem.regularizer.gradient(d)))), size)
    worst = 0.0
    for m in np.argsort(-d)[:most]:
        if d[m] <= 0:
            continue
        h = step * d[m] * (np.arange(len(d)) == m)
        up, down = (envelope_value(problem, d + s * h) for s in (1, -1))
        slope = (up - down) / (2 * step * d[m])
        worst = max(worst, abs(slope - result.slope[m]))
    return worst / scale
