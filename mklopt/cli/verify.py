"""The command `mklopt verify`: a certificate file, or a folder of results, checked."""

import json
import sys
from io import TextIOWrapper
from pathlib import Path

import click

from .words import AS_JSON, console, echo_json, usage_errors


@click.command(
    "verify", epilog="Examples: mklopt verify sonar.cert, mklopt verify certify-out"
)
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--data", multiple=True, help="FILE.npz that was certified (repeatable).")
@click.option("--page", type=click.Path(path_type=Path), help="Write an HTML page.")
@click.option("--pyodide", type=click.Path(path_type=Path), help="Pyodide, for it.")
@AS_JSON
def command(
    path: Path | None,
    data: tuple[str, ...],
    page: Path | None,
    pyodide: Path | None,
    as_json: bool,
) -> None:
    """Check a certificate in exact arithmetic.

    PATH is a certificate file, or a folder that `mklopt certify` wrote. For a folder
    every number of every row is computed again from the point that was saved with it,
    and every certificate is checked. Exit code 0: proved, 2: invalid certificate, wrong
    number, or usage error.

    --page FILE writes one HTML page that checks certificate files in a browser, without
    a server. With --pyodide FOLDER, the unpacked npm package of Pyodide goes into the
    page, which then needs no network.
    """
    if page is not None:
        from ..certificates.browser_page import write_page

        with usage_errors():
            write_page(page, pyodide)
        click.echo(f"written: {page}")
        return
    if path is None:
        raise click.UsageError("give a certificate file, a folder, or --page FILE")
    from ..certificates.checker import main as check

    if not path.is_dir():
        raise SystemExit(_as_json(path) if as_json else check([str(path)]))
    from ..campaign.screen import recompute_everything

    if isinstance(sys.stdout, TextIOWrapper):  # not every terminal has ≤ and δ
        sys.stdout.reconfigure(errors="backslashreplace")
    with usage_errors():
        same = recompute_everything(path, data, console(as_json))
    if as_json:
        echo_json({"proved": same, "folder": str(path)})
    raise SystemExit(0 if same else 2)


def _as_json(path: Path) -> int:
    """Print what a certificate proves, or why nothing; the exit code."""
    from ..certificates.checker import check
    from ..certificates.reading import Refused, read

    try:
        found = {"proved": True, **check(read(path))}
    except (Refused, OSError) as reason:
        found = {"proved": False, "reason": str(reason)}
    click.echo(json.dumps(found))  # ASCII, whatever the terminal has
    return 0 if found["proved"] else 2
