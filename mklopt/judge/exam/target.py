"""The solver to be judged: an object, the name of one of ours, or "module:name".

A module is imported by the process of the candidate alone. What it states about itself
comes back as plain words: a name, traits, losses, bias and accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...run.own_solver import callable_with_a_problem, name_of
from ...solvers import Solver, solvers
from ...util.checks import unknown
from .sandbox import Trials


@dataclass(frozen=True)
class Target:
    """What is run, what is known of it, and what it is called.

    solver: an object, or "module:name"
    stated: a Solver with the traits that it states, or None
    """

    solver: Any
    stated: Solver | None
    name: str


def find_solver(given: Any) -> Target:
    """The solver that was given; ValueError where it is none."""
    if isinstance(given, str) and ":" in given:
        with Trials(given, (), 0.0) as trials:
            return Target(given, _solver(trials.statement()), given)
    if isinstance(given, str) and given not in solvers():
        raise ValueError(unknown("solver", given, solvers(), "or module:name"))
    found = solvers()[given] if isinstance(given, str) else given
    found = callable_with_a_problem(found)
    stated = found if isinstance(found, Solver) else None
    return Target(found, stated, name_of(found))


def _solver(words: dict[str, Any]) -> Solver | None:
    """A solver with what was stated; its accuracy is asked of it later, if NaN."""
    if not words:
        return None
    accuracy = words["accuracy"]
    return Solver(
        str(words["name"]),
        _never,
        frozenset(map(str, words["needs"])),
        frozenset(map(str, words["losses"])),
        frozenset(map(bool, words["bias"])),
        math.nan if accuracy is None else float(accuracy),
    )


def _never(*_: Any) -> Any:
    """In place of the steps of a solver: they are in another process."""
    raise NotImplementedError
