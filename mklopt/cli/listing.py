"""Everything that has a name here, with one line each: `mklopt list`."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

Rooms = dict[str, dict[str, str]]


@click.command("list", epilog="Example: mklopt list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List solvers, formulations, losses, data sets and papers."""
    print_everything(as_json)


def rooms() -> Rooms:
    """Names and first lines: solvers, formulations, losses, data sets, papers, …"""
    from ..formulations import formulations, losses_by_name
    from ..gmkl.families import KernelFamily
    from ..gmkl.regularizers import Regularizer
    from ..solvers import solvers

    homes = {name: sys.modules[s.steps.__module__] for name, s in solvers().items()}
    return {
        "solvers": _first_lines(homes),
        "formulations": _first_lines(formulations()),
        "losses": _first_lines(losses_by_name()),
        "data sets": _data_sets(),
        "papers": _papers(),
        "kernel families": _first_lines(_children(KernelFamily)),
        "their regularizers": _first_lines(_children(Regularizer)),
    }


def print_everything(as_json: bool = False, console: Console | None = None) -> None:
    found, console = rooms(), console or Console()
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    for title, known in found.items():
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        for name, line in known.items():
            table.add_row(f"[bold]{escape(name)}[/]", escape(line))
        console.print(table)
        console.print()


def _first_lines(known: dict[str, Any]) -> dict[str, str]:
    return {
        name: (item.__doc__ or "").strip().split("\n")[0]
        for name, item in known.items()
    }


def _children(root: type) -> dict[str, type]:
    known: list[type] = root.__subclasses__()
    return {c.__name__: c for c in known if c.__module__.startswith("mklopt.")}


def _data_sets() -> dict[str, str]:
    from ..data.datasets import names, one_line

    return {name: one_line(name) for name in names()}


def _papers() -> dict[str, str]:
    """What each paper is; without a checkout, the solvers that name it."""
    from ..claims.items import NotACheckout, known, load
    from ..solvers import solvers

    try:
        return {key: load(key).title for key in known()}
    except NotACheckout:
        found: dict[str, list[str]] = {}
    for name, solver in solvers().items():
        for key in re.findall(r"[a-z]+\d{4}", solver.reference):
            found.setdefault(key, []).append(name)
    return {key: f"solvers {', '.join(found[key])}" for key in sorted(found)}
