"""A benchmark for the program benchopt: `mklopt export-benchopt DIR`.

Its objective certifies whatever a solver returns, outside of the clock: primal and dual
value and relative gap of (dual, coefficients), so that solvers of other people can be
added as one more file in solvers/ and are judged in the same way.

    benchopt run DIR -d "mklopt[data=wdbc]" -s auto -s spicy

The files are written from those in templates/.
"""

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import click

from ..util.checks import unknown
from ..util.files import write_whole
from .words import AS_JSON, echo_json, listed, usage_errors


@click.command(
    "export-benchopt", epilog="Example: mklopt export-benchopt benchmark_mkl"
)
@click.argument("folder")
@click.option("--solvers", help="Names, separated by commas.  [default: all]")
@AS_JSON
def command(folder: str, solvers: str | None, as_json: bool) -> None:
    """Write the files of a benchmark for the program benchopt."""
    with usage_errors():
        written = export(folder, listed(solvers or ""))
    if as_json:
        echo_json({"folder": folder, "files": written})
    else:
        click.echo(f"{folder}: {len(written)} files; now: benchopt run {folder}")


def export(folder: str | os.PathLike, names: Sequence[str] = ()) -> list[str]:
    """Write the benchmark; the files written. names: solvers, by default all."""
    from ..solvers import solvers

    for name in names:
        if name not in solvers():
            raise ValueError(unknown("solver", name, solvers()))
    written = {
        "objective.py": _text("objective"),
        "datasets/mklopt.py": _text("dataset"),
    }
    for name in names or solvers():
        written[f"solvers/{name}.py"] = _text("solver").replace("{name}", name)
    for path, text in written.items():
        write_whole(Path(folder) / path, text.encode())
    return sorted(written)


def _text(name: str) -> str:
    """The template of a file."""
    template = files(__package__).joinpath(f"templates/{name}.py.txt")
    return template.read_text(encoding="utf-8")
