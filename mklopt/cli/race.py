"""The command `mklopt race`: solvers on the same problems, drawn for a paper."""

from typing import Any

import click
import numpy as np

from ..util.extras import need
from .words import AS_JSON, echo_json, listed, problem_options, usage_errors


@click.command(
    "race",
    epilog="Example: mklopt race --data sonar --formulation lp:p=2 --loss hinge "
    "--solvers analytic,spg,simple,auto",
)
@click.option(
    "--data",
    multiple=True,
    required=True,
    help="Data set, such as wdbc or twonorm:n=3000, or FILE.npz (repeatable).",
)
@click.option("--solvers", required=True, help="Names, or MODULE:NAME, with commas.")
@problem_options
@click.option(
    "--seeds",
    default="0",
    help="Random seeds for stochastic solvers, separated by commas.",
)
@click.option("--repeats", default=1, help="How many times each run is timed.")
@click.option("--tol", default=1e-6, help="Relative gap to reach.")
@click.option("--time-limit", default=30.0, help="Seconds per run.")
@click.option("--venue", help="Sizes of the figure: neurips, icml, jmlr or siam-2col.")
@click.option("--out", default="race-out", help="Folder for the results.")
@AS_JSON
def command(
    data: tuple[str, ...],
    solvers: str,
    seeds: str,
    repeats: int,
    tol: float,
    time_limit: float,
    venue: str | None,
    out: str,
    as_json: bool,
    **words: Any,
) -> None:
    """Race solvers; write figures, traces, a table.

    All solvers run on the same problems. Ctrl-C ends the race, and the runs so far are
    written. Exit code 0: on every problem some solver reached the tolerance, 1: not, or
    the race was stopped, 2: usage error.
    """
    need("pandas", "matplotlib")
    import pandas  # noqa: F401  (now, and not after Ctrl-C)

    from ..tasks.race import race
    from ..util.paper_sizes import venue_of
    from .estimates import announce
    from .problems import problem

    with usage_errors():
        venue_of(venue)
        named = {name: problem(name, **words).problem for name in data}
        numbers, names = _numbers(seeds), listed(solvers)
        announce(named, names, tol, time_limit)
        limits: dict[str, Any] = {
            "repeats": repeats,
            "tol": tol,
            "time_limit": time_limit,
        }
        found = race(named, names, seeds=numbers, **limits, verbose=True)
        written = found.save(out, **({"venue": venue} if venue else {}))
    if as_json:
        echo_json(_described(found))
    else:
        click.echo(f"{found}\n{found.summary()}\n{out}: {', '.join(written)}")
        if found.stopped:
            click.echo(f"redraw.py in {out} draws the figures")
    solved = bool(np.all(np.isfinite(found.times().min(axis=1))))
    raise SystemExit(0 if solved and not found.stopped else 1)


def _numbers(seeds: str) -> list[int]:
    try:
        return [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise ValueError(
            f"--seeds {seeds}: give whole numbers with commas, such as 0,1,2"
        ) from None


def _described(found: Any) -> dict[str, Any]:
    """A race as plain values, for other programs."""
    runs = [
        {
            "problem": run.problem,
            "solver": run.solver,
            "seed": run.seed,
            "repeat": run.repeat,
            "status": run.result.status,
            "gap": run.result.relative_gap,
            "seconds": run.result.trace.last("seconds"),
        }
        for run in found.runs
    ]
    more = {"left_out": found.left_out, "stopped": found.stopped}
    return {"runs": runs, "intervals": found.intervals, **more}
