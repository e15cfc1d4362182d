"""The solvers, one file per algorithm. New files are found by scanning the folder."""

import importlib
import pkgutil
from functools import cache

from ..problem import Problem
from ..util.checks import choices, short
from .base import REGISTRY, Iterate, Solver, Unsupported, solver

__all__ = ["Iterate", "Solver", "Unsupported", "find", "solver", "solvers", "that_can"]


def solvers() -> dict[str, Solver]:
    """All solvers by name."""
    _scan()
    return dict(sorted(REGISTRY.items()))


@cache
def _scan() -> None:
    """Done once: reading the folder takes as long as solving a small problem."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")


def that_can(problem: Problem) -> list[str]:
    """The names of the solvers that can solve a problem.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return [name for name, found in solvers().items() if not found.why_not(problem)]


def find(name: str, problem: Problem) -> Solver:
    """A solver by name.

    Parameters
    ----------
    name : str
        The name.
    problem : Problem
        The problem that it should solve.

    Returns
    -------
    Solver
        The solver.

    Raises
    ------
    ValueError
        If there is no such solver.
    Unsupported
        If it cannot solve the problem; the message names those that can.
    """
    known = solvers()
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"solver = {short(name)} is not known; {choices(name, known)}")
    if reason := known[name].why_not(problem):
        able = ", ".join(that_can(problem))
        raise Unsupported(f"{name} cannot solve {problem}: {reason}; these can: {able}")
    return known[name]
