"""The command `mklopt check`: anybody's solver, judged and diagnosed."""

from __future__ import annotations

from typing import Any

import click


@click.command(
    "check",
    short_help="Judge anybody's solver, and say what is wrong.",
    epilog="Example: mklopt check mysolver:solve --loss logistic --tol 1e-5",
)
@click.argument("solver", metavar="MODULE:NAME")
@click.option(
    "--formulation", "kinds", multiple=True,
    help="What it solves, such as BlockL1 or 'LpNorm(p=1.5)' (repeatable).",
)  # fmt: skip
@click.option("--loss", "losses", multiple=True, help="What it solves (repeatable).")
@click.option("--grade", "grades", multiple=True, help="Only this grade (repeatable).")
@click.option("--leave-out", multiple=True, help="Not this problem (repeatable).")
@click.option("--bias/--no-bias", default=None, help="It knows only such problems.")
@click.option("--tol", type=float, help="Relative gap asked for  [default: 1e-6]")
@click.option("--time-limit", default=10.0, show_default=True, help="Seconds for each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    solver: str, kinds: tuple[str, ...], losses: tuple[str, ...], as_json: bool,
    grades: tuple[str, ...], **asked: Any,
) -> None:  # fmt: skip
    """Judge anybody's solver: certified gaps, and a diagnosis of what fails.

    MODULE:NAME is a generator of iterates, or a function of a problem that returns
    (weights, dual) or weights; the current directory is searched first. The name alone
    of one of our own solvers will do as well. Exit code 0: passed, 1: failed.
    """
    from rich.console import Console
    from rich.progress import Progress

    from ..judge.exam.exam import check_solver

    errors = Console(stderr=True)
    quiet = not errors.is_terminal
    bar = Progress(console=errors, transient=True, disable=quiet)
    task = bar.add_task(solver)
    try:
        with bar:
            found = check_solver(
                solver,
                formulations=kinds or None,
                losses=losses or None,
                grades=grades or None,
                progress=lambda done, all: bar.update(task, completed=done, total=all),
                **asked,
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(found.to_json())
    else:
        found.show(Console())
    raise SystemExit(0 if found.passed else 1)
