"""The command `mklopt list`: everything that has a name, with one line each."""

import re
from collections.abc import Mapping

import click
from rich.console import Console
from rich.markup import escape

from ..util.tables import headless_table
from .words import AS_JSON, echo_json


@click.command("list", epilog="Example: mklopt list --json")
@AS_JSON
def command(as_json: bool) -> None:
    """List solvers, formulations, losses, data sets and papers."""
    found = catalogue()
    if as_json:
        echo_json(found)
        return
    console = Console()
    for title, known in found.items():
        table = headless_table(title)
        for name, line in known.items():
            table.add_row(f"[bold]{escape(name)}[/]", escape(line))
        console.print(table, "")


def catalogue() -> dict[str, dict[str, str]]:
    """Names and first lines: solvers, formulations, losses, data sets, papers, …"""
    from ..data.datasets import names, one_line
    from ..formulations import formulations, losses_by_name
    from ..gmkl.families import KernelFamily
    from ..gmkl.regularizers import Regularizer
    from ..solvers import solvers

    return {
        "solvers": {name: solver.about for name, solver in solvers().items()},
        "formulations": _first_lines(formulations()),
        "losses": _first_lines(losses_by_name()),
        "data sets": {name: one_line(name) for name in names()},
        "papers": _papers(),
        "kernel families": _first_lines(_children(KernelFamily)),
        "their regularizers": _first_lines(_children(Regularizer)),
    }


def _first_lines(known: Mapping[str, object]) -> dict[str, str]:
    return {k: (v.__doc__ or "").strip().split("\n")[0] for k, v in known.items()}


def _children(root: type) -> dict[str, type]:
    known: list[type] = root.__subclasses__()
    return {c.__name__: c for c in known if c.__module__.startswith("mklopt.")}


def _papers() -> dict[str, str]:
    """What each paper is; without a checkout, the solvers that name it."""
    from ..claims.items import NotACheckout, about, known
    from ..solvers import solvers

    try:
        return {key: about(key)[0] for key in known()}
    except NotACheckout:
        found: dict[str, list[str]] = {}
    for name, solver in solvers().items():
        for key in re.findall(r"[a-z]+\d{4}", solver.reference):
            found.setdefault(key, []).append(name)
    return {key: f"solvers {', '.join(found[key])}" for key in sorted(found)}
