"""The command `mklopt list`: everything that has a name, with one line each."""

import re

import click

from ..util.checks import snake_case
from ..util.tables import headless_table
from . import sources
from .words import AS_JSON, check_known, echo_json

KINDS = ("solvers", "formulations", "losses", "data", "papers", "families")


@click.command("list", epilog="Examples: mklopt list solvers, mklopt list --json")
@click.argument("kind", required=False, metavar="[KIND]")
@AS_JSON
def command(kind: str | None, as_json: bool) -> None:
    """List solvers, formulations, losses, data sets and papers.

    KIND is one of solvers, formulations, losses, data, papers and families. Without it:
    all of them.
    """
    if kind is not None:
        check_known("kind", (kind,), dict.fromkeys(KINDS))
    found = catalogue(kind)
    if as_json:
        echo_json(found)
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    for title, known in found.items():
        table = headless_table(title)
        for name, line in known.items():
            table.add_row(f"[bold]{escape(name)}[/]", escape(line))
        console.print(table, "")


def catalogue(kind: str | None = None) -> dict[str, dict[str, str]]:
    """Names and first lines: solvers, formulations, losses, data sets, papers, …"""
    parts = {
        "solvers": _solvers,
        "formulations": _formulations,
        "losses": _losses,
        "data": _data_sets,
        "papers": _papers,
        "families": _families,
    }
    found: dict[str, dict[str, str]] = {}
    for name in KINDS if kind is None else (kind,):
        found |= parts[name]()
    return found


Named = dict[str, dict[str, str]]  # names and first lines, by title


def _solvers() -> Named:
    return {"solvers": {name: one.about for name, one in sources.solvers().items()}}


def _formulations() -> Named:
    return {"formulations": sources.formulations()}


def _losses() -> Named:
    found = {snake_case(name): line for name, line in sources.losses().items()}
    return {"losses": dict(sorted(found.items()))}


def _data_sets() -> Named:
    from ..data.datasets import names, one_line

    return {"data sets": {name: one_line(name) for name in names()}}


def _families() -> Named:
    return {
        "kernel families": sources.children("KernelFamily", "gmkl/families"),
        "their regularizers": sources.children("Regularizer", "gmkl/regularizers"),
    }


def _papers() -> Named:
    """What each paper is; without a checkout, the solvers that name it."""
    from ..claims.items import NotACheckout, about, known

    try:
        return {"papers": {key: about(key)[0] for key in known()}}
    except NotACheckout:
        found: dict[str, list[str]] = {}
    for name, solver in sources.solvers().items():
        for key in re.findall(r"[a-z]+\d{4}", solver.reference):
            found.setdefault(key, []).append(name)
    lines = {key: f"solvers {', '.join(found[key])}" for key in sorted(found)}
    return {"papers": lines}
