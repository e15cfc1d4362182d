"""The command `mklopt list`: everything that has a name, with one line each."""

import re
from collections.abc import Mapping

import click
from rich.console import Console
from rich.markup import escape

from ..util.tables import headless_table
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
    from ..solvers import solvers

    return {"solvers": {name: solver.about for name, solver in solvers().items()}}


def _formulations() -> Named:
    from ..formulations import formulations

    return {"formulations": _first_lines(formulations())}


def _losses() -> Named:
    from ..formulations import losses_by_name

    return {"losses": _first_lines(losses_by_name())}


def _data_sets() -> Named:
    from ..data.datasets import names, one_line

    return {"data sets": {name: one_line(name) for name in names()}}


def _families() -> Named:
    from ..gmkl.families import KernelFamily
    from ..gmkl.regularizers import Regularizer

    return {
        "kernel families": _first_lines(_children(KernelFamily)),
        "their regularizers": _first_lines(_children(Regularizer)),
    }


def _first_lines(known: Mapping[str, object]) -> dict[str, str]:
    return {k: (v.__doc__ or "").strip().split("\n")[0] for k, v in known.items()}


def _children(root: type) -> dict[str, type]:
    known: list[type] = root.__subclasses__()
    return {c.__name__: c for c in known if c.__module__.startswith("mklopt.")}


def _papers() -> Named:
    """What each paper is; without a checkout, the solvers that name it."""
    from ..claims.items import NotACheckout, about, known
    from ..solvers import solvers

    try:
        return {"papers": {key: about(key)[0] for key in known()}}
    except NotACheckout:
        found: dict[str, list[str]] = {}
    for name, solver in solvers().items():
        for key in re.findall(r"[a-z]+\d{4}", solver.reference):
            found.setdefault(key, []).append(name)
    lines = {key: f"solvers {', '.join(found[key])}" for key in sorted(found)}
    return {"papers": lines}
