"""The command `mklopt verify`: a certificate file, or a folder of them, checked."""

from __future__ import annotations

from typing import Any

import click


@click.command(
    "verify",
    short_help="Check a certificate in exact arithmetic.",
    epilog="Examples: mklopt verify sonar.cert, mklopt verify certify-out",
)
@click.argument("path", type=click.Path())
@click.option("--data", multiple=True, help="A file of one's own that a folder names.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (of a file).")
def command(path: str, data: tuple[str, ...], as_json: bool) -> None:
    """Check a certificate file in exact arithmetic (exit code 0: proved, 2: not).

    Of a folder that `mklopt certify` wrote every number of every row is computed again
    from the point that was saved with it, and every certificate is checked.
    """
    from pathlib import Path

    from ..certificates.checker import main as check

    if not Path(path).is_dir():
        raise SystemExit(_verified(Path(path)) if as_json else check([path]))
    if as_json:
        raise click.UsageError(
            f"--json is for one certificate; {path} is a folder, its rows.jsonl is JSON"
        )
    from ..campaign.screen import recompute_everything

    try:
        same = recompute_everything(Path(path), data)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    raise SystemExit(0 if same else 2)


def _verified(path: Any) -> int:
    """What a certificate proves, or why nothing, as JSON; the exit code."""
    import json

    from ..certificates.checker import Refused
    from ..certificates.checker import check as prove

    try:
        found = {"proved": True, **prove(path.read_bytes())}
    except (Refused, OSError) as reason:
        found = {"proved": False, "reason": str(reason)}
    click.echo(json.dumps(found, ensure_ascii=False))
    return 0 if found["proved"] else 2
