"""The command `mklopt race`: solvers on the same problems, drawn for a paper."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np

from .words import sentence


@click.command(
    "race",
    short_help="Race solvers; write figures, traces, a table.",
    epilog="Example: mklopt race --data sonar --formulation lp:p=2 --loss hinge "
    "--solvers analytic,spg,simple,auto",
)
@click.option("--data", multiple=True, required=True, help="Name or FILE.npz; repeat.")
@click.option("--solvers", required=True, help="Names with commas between them.")
@click.option("--kernels", help="Such as 'gaussian(1),gaussian(3) on single,linear'.")
@click.option("--normalize", default="spherical", show_default=True, help="Or none.")
@click.option("--formulation", default="lp:p=2", show_default=True)
@click.option("--loss", help="By default what the labels call for.")
@click.option("--C", "C", default=1.0, show_default=True, help="Weight of the loss.")
@click.option("--bias/--no-bias", default=True, show_default=True)
@click.option("--samples", type=int, help="Take so many samples at random.")
@click.option("--seeds", default="0", show_default=True, help="Of solvers that draw.")
@click.option("--tol", default=1e-6, show_default=True, help="Relative gap.")
@click.option("--time-limit", default=30.0, show_default=True, help="Seconds a run.")
@click.option("--out", default="race-out", show_default=True, help="Folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: tuple[str, ...], solvers: str, seeds: str, tol: float, time_limit: float,
    out: str, as_json: bool, **words: Any,
) -> None:  # fmt: skip
    """Race solvers on the same problems; write figures, traces and a table.

    Exit code 0: some solver reached the tolerance on every problem, 1: not.
    """
    from ..tasks.race import race as run
    from .problems import problem

    try:
        named = {name: problem(name, **words).problem for name in data}
        listed = [name.strip() for name in solvers.split(",")]
        numbers = _numbers(seeds)
        how: dict[str, Any] = {"tol": tol, "time_limit": time_limit}
        found = run(named, listed, seeds=numbers, **how)
        written = found.save(out)
    except (ValueError, LookupError, OSError) as error:
        raise click.UsageError(sentence(error)) from None
    if as_json:
        click.echo(json.dumps(_described(found), ensure_ascii=False))
    else:
        click.echo(f"{found}\n{out}: {', '.join(written)}")
    raise SystemExit(0 if np.all(np.isfinite(found.times().min(axis=1))) else 1)


def _numbers(seeds: str) -> list[int]:
    try:
        return [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise ValueError(
            f"--seeds {seeds}: give whole numbers with commas, such as 0,1,2"
        ) from None


def _described(found: Any) -> dict[str, Any]:
    runs = [
        {"problem": run.problem, "solver": run.solver, "seed": run.seed,
         "status": run.result.status, "gap": run.result.relative_gap,
         "seconds": run.result.trace.last("seconds")}
        for run in found.runs
    ]  # fmt: skip
    return {"runs": runs, "intervals": found.intervals, "left_out": found.left_out}
