"""The command `mklopt check`: any solver, judged and diagnosed."""

from typing import Any

import click

from .words import AS_JSON, usage_errors


@click.command(
    "check",
    epilog="Example: mklopt check mysolver:solve --loss logistic --tol 1e-5",
)
@click.argument("solver", metavar="MODULE:NAME")
@click.option(
    "--formulation",
    "formulations",
    multiple=True,
    help="It solves this one, such as BlockL1 or 'LpNorm(p=1.5)' (repeatable).",
)
@click.option("--loss", "losses", multiple=True, help="A loss it solves (repeatable).")
@click.option(
    "--problems",
    metavar="MODULE:NAME",
    help="Own problems: a list or dict of them, or a function that returns one.",
)
@click.option("--html", metavar="FILE", help="Write the report to this page.")
@click.option("--grade", "grades", multiple=True, help="Only this grade (repeatable).")
@click.option("--leave-out", multiple=True, help="Skip this problem (repeatable).")
@click.option(
    "--bias/--no-bias", default=None, help="Only problems with a bias, or none."
)
@click.option("--tol", type=float, help="Relative gap to reach.  [default: 1e-6]")
@click.option("--seed", type=int, help="Repeat the fresh problems of a report.")
@click.option("--quick", is_flag=True, help="Ask fewer problems.")
@click.option("--time-limit", default=20.0, help="Seconds per problem.")
@AS_JSON
def command(
    solver: str, as_json: bool, problems: str | None, html: str | None, **asked: Any
) -> None:
    """Judge any solver and say what is wrong.

    The verdict rests on certified gaps; what fails is diagnosed.

    MODULE:NAME is a generator of iterates, an object with fit, or a function that takes
    a problem and returns (weights, dual) or weights. The current directory is searched
    first. The name of a solver of this package works as well. Exit code 0: passed, 1:
    failed, 2: usage error.
    """
    from rich.console import Console
    from rich.progress import Progress

    from ..judge.exam.exam import check_solver
    from ..run.own_solver import imported

    errors = Console(stderr=True)
    bar = Progress(console=errors, transient=True, disable=not errors.is_terminal)
    task = bar.add_task(solver)
    with usage_errors(ValueError), bar:
        given = {name: value for name, value in asked.items() if value != ()}
        if problems:
            own = imported(problems)
            given["problems"] = own() if callable(own) else own
        found = check_solver(
            solver,
            progress=lambda done, all: bar.update(task, completed=done, total=all),
            **given,
        )
    if html:
        found.html(html)
    if as_json:
        click.echo(found.to_json())
    else:
        found.show(Console())
    raise SystemExit(0 if found.passed else 1)
