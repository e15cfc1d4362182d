"""The command `mklopt solve`: one problem, its weights and its certificate."""

from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from .words import AS_JSON, echo_json, problem_options, usage_errors

MAX_ROWS = 15  # kernels in the table


@click.command(
    "solve",
    epilog="Example: mklopt solve sonar --formulation lp:p=2 --loss hinge --C 10",
)
@click.argument("given", metavar="NAME_OR_FILE")
@problem_options
@click.option("--solver", default="auto", help="The algorithm, or MODULE:NAME.")
@click.option("--tol", default=1e-6, help="Relative gap to reach.")
@click.option("--time-limit", type=float, help="Seconds.  [default: no limit]")
@click.option("--seed", default=0, help="Of samples and stochastic solvers.")
@click.option("--checkpoint", help="Go on from this file after a kill or Ctrl-C.")
@click.option("--intervals", is_flag=True, help="Say what is proved of weights.")
@click.option("--save", help="Write the result to this file.")
@click.option("--certificate", help="Write a file that `mklopt verify` checks.")
@AS_JSON
def command(
    given: str,
    as_json: bool,
    solver: str,
    tol: float,
    time_limit: float | None,
    seed: int,
    checkpoint: str | None,
    intervals: bool,
    save: str | None,
    certificate: str | None,
    **words: Any,
) -> None:
    """Solve one problem; print weights and certificate.

    NAME is a data set (see `mklopt list data`), such as wdbc or twonorm:n=3000.
    FILE.npz has labels y and features X (n, d) or kernels K (M, n, n). FILE.npy has
    kernels that stay on disk; --labels names a file with y (.npy, .npz or text). If it
    will take more than a minute, an estimate is printed first. Ctrl-C prints the best
    point so far. Exit code 0: solved to the tolerance, 1: not, 2: usage error.
    """
    from ..run.loop import solve
    from .estimates import announce
    from .problems import problem

    with usage_errors():
        found = problem(given, seed=seed, **words)
        announce({given: found.problem}, [solver], tol, time_limit)
        result = solve(
            found.problem,
            solver,
            tol=tol,
            time_limit=time_limit,
            seed=seed,
            checkpoint=checkpoint,
            verbose=True,
        )
        if save:
            result.save(save)
        if certificate:
            result.save_certificate(certificate)
    if as_json:
        echo_json(described(result, found.names, intervals))
    else:
        _show(result, found.names, intervals)
    raise SystemExit(0 if result.converged else 1)


def described(
    result: Any, names: Sequence[str], intervals: bool = False
) -> dict[str, Any]:
    """A result as plain values, for other programs."""
    certificate = result.certificate
    proved = {"intervals": _proved(result, names)} if intervals else {}
    return {
        "problem": repr(result.problem),
        "solver": result.solver,
        "choice": result.choice,
        "status": result.status,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "relative_gap": certificate.relative_gap,
        "assumptions": certificate.assumptions,
        "bias": np.asarray(result.bias).tolist(),
        "seconds": result.trace.last("seconds") if len(result.trace) else 0.0,
        "point": result.point,
        "hint": result.hint,
        "weights": dict(zip(names, result.weights.tolist())),
        **proved,
    }


def _proved(result: Any, names: Sequence[str]) -> dict[str, Any]:
    """What is proved of every minimizer, kernel by kernel; None: not bounded."""
    facts = result.intervals()
    ends = np.column_stack([*facts.norms, *facts.weights])
    rows = [[x if np.isfinite(x) else None for x in row] for row in ends.tolist()]
    words = np.select([facts.used, facts.unused], ["used", "unused"], "")
    return {
        name: {"proved": str(word), "norm": row[:2], "weight": row[2:]}
        for name, word, row in zip(names, words, rows)
    }


def _show(result: Any, names: Sequence[str], intervals: bool) -> None:
    from rich.console import Console

    from ..util.tables import plain_table

    console, theta = Console(highlight=False), result.weights
    console.print(f"{result.problem!r}\n{result}", markup=False)
    used = int(np.sum(theta > 0))
    whose = "" if result.point == "weights" else " (weights near the certified point)"
    console.print(f"{used} of {len(theta)} kernels in use{whose}")
    table = plain_table(
        "", ["kernel"], ["weight", *["at least", "at most"] * intervals]
    )
    for m in np.argsort(-theta, kind="stable")[: min(MAX_ROWS, used)]:
        ends = [f"{end[m]:.6g}" for end in result.intervals().weights] * intervals
        table.add_row(names[m], f"{theta[m]:.6g}", *ends)
    console.print(table)
    if used > MAX_ROWS:
        console.print(f"{used - MAX_ROWS} more kernels in use; --json prints all")
    if intervals:
        console.print(str(result.intervals()), markup=False)
