"""The command `mklopt solve`: one problem, its weights and its certificate."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np

from .words import sentence

SHOWN = 15  # kernels, at most


@click.command(
    "solve",
    short_help="Solve one problem; print weights and certificate.",
    epilog="Example: mklopt solve sonar --formulation lp:p=2 --loss hinge --C 10",
)
@click.argument("given", metavar="NAME_OR_FILE.npz")
@click.option("--kernels", help="Such as 'gaussian(1),gaussian(3) on single,linear'.")
@click.option("--normalize", default="spherical", show_default=True, help="Or none.")
@click.option("--formulation", default="lp:p=2", show_default=True)
@click.option("--loss", help="By default what the labels call for.")
@click.option("--C", "C", default=1.0, show_default=True, help="Weight of the loss.")
@click.option("--bias/--no-bias", default=True, show_default=True)
@click.option("--samples", type=int, help="Take so many samples at random.")
@click.option("--solver", default="auto", show_default=True)
@click.option("--tol", default=1e-6, show_default=True, help="Relative gap.")
@click.option("--time-limit", type=float, help="Seconds.")
@click.option("--seed", default=0, show_default=True)
@click.option("--save", help="Write the result to a file.")
@click.option("--certificate", help="Write a proof for `mklopt verify` to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    given: str, as_json: bool, solver: str, tol: float, time_limit: float | None,
    seed: int, save: str | None, certificate: str | None, **words: Any,
) -> None:  # fmt: skip
    """Solve one problem; print kernel weights and the certificate.

    The file has labels y and features X (n, d) or kernels K (M, n, n). Exit code 0:
    solved to the tolerance, 1: not, 2: the question makes no sense.
    """
    from ..run.loop import solve as run
    from .problems import problem

    try:
        asked = problem(given, seed=seed, **words)
        how: dict[str, Any] = {"tol": tol, "time_limit": time_limit, "seed": seed}
        result = run(asked.problem, solver, **how)
        if save:
            result.save(save)
        if certificate:
            result.save_certificate(certificate)
        found = described(result, asked.names)
    except (ValueError, LookupError, OSError) as error:
        raise click.UsageError(sentence(error)) from None
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        _show(result, asked.names)
    raise SystemExit(0 if result.converged else 1)


def described(result: Any, names: list[str]) -> dict[str, Any]:
    """A result as plain values, for machines."""
    certificate = result.certificate
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
        "weights": dict(zip(names, result.weights.tolist())),
    }


def _show(result: Any, names: list[str]) -> None:
    from rich.console import Console

    from ..util.tables import plain_table

    console, theta = Console(highlight=False), result.weights
    console.print(f"{result.problem!r}\n{result}", markup=False)
    found = result.certificate
    console.print(f"  proved: {found.lower:.10g} ≤ f* ≤ {found.upper:.10g}")
    for assumption in found.assumptions:
        console.print(f"  assuming {assumption}", markup=False)
    used = int(np.sum(theta > 0))
    console.print(f"{used} of {len(theta)} kernels in use")
    table = plain_table("", ["kernel"], ["weight"])
    for m in np.argsort(-theta, kind="stable")[: min(SHOWN, used)]:
        table.add_row(names[m], f"{theta[m]:.6g}")
    console.print(table)
