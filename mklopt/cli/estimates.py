"""What a command will cost, said before it begins if it will take long."""

import math
from collections.abc import Mapping, Sequence

import click

from ..problem import Problem

LONG = 60.0  # seconds; what is shorter is not announced


def announce(
    problems: Mapping[str, Problem],
    solvers: Sequence[str],
    tol: float,
    time_limit: float | None,
) -> bool:
    """Print estimates to the error output if all runs take more than a minute.

    Each run counts up to the time limit. Returns whether they were printed. Wrong
    arguments are left to the solvers, which say what is wrong.
    """
    from ..run.clock import in_words
    from ..tasks.estimate import estimate

    limit, found = math.inf if time_limit is None else time_limit, []
    for name, problem in problems.items():
        for solver in solvers:
            try:
                found.append((name, estimate(problem, solver, tol=tol)))
            except ValueError:
                continue
    total = sum(min(cost.seconds, limit) for _, cost in found)
    if not total > LONG:
        return False
    for name, cost in found:
        limited = cost.seconds > limit
        stops = f"\n  the time limit of {in_words(limit)} comes first" * limited
        click.echo(f"{name}: {cost}{stops}", err=True)
    if len(found) > 1:
        click.echo(f"{len(found)} runs: about {in_words(total)}", err=True)
    return True
