"""The command `mklopt paper`: claims checked, figures redrawn."""

import json
from pathlib import Path

import click

from .words import AS_JSON, JOBS, console, echo_json, usage_errors


@click.command("paper", epilog="Example: mklopt paper kloft2011 --quick")
@click.argument("key")
@click.option(
    "--quick/--full",
    default=True,
    help="Sizes for a laptop, or those of the paper.",
)
@click.option("--tiny", is_flag=True, help="Smallest sizes, to see that all runs.")
@click.option("--seed", default=0, help="Of all random numbers.")
@click.option("--out", help="Folder for the results.  [default: papers/]")
@JOBS
@AS_JSON
def command(
    key: str,
    quick: bool,
    tiny: bool,
    seed: int,
    out: str | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Check the claims of a paper and redraw its figures.

    KEY names a paper (see `mklopt list`), or is `all`. Writes README.md with the claims
    and their verdicts, and results/ with figures (PNG, PDF), their data (CSV) and
    tables (LaTeX). After an interruption the same command continues where it stopped.
    Exit code 0: everything ran, and every check refutes a wrong statement, as it must,
    1: not, 2: usage error.
    """
    from ..claims.items import ROOT, known
    from ..claims.run import run_papers

    mode = "tiny" if tiny else "quick" if quick else "full"
    with usage_errors():
        chosen = known() if key == "all" else [key]
        screen = console(as_json)
        done = run_papers(chosen, mode, seed=seed, out=out, jobs=jobs, console=screen)
    if as_json:
        home = ROOT / "papers" if out is None else Path(out)
        ledgers = [home / key / "results" / "ledger.json" for key in chosen]
        found = [json.loads(p.read_text(encoding="utf-8")) for p in ledgers if done]
        echo_json({"sound": done, "papers": found})
    raise SystemExit(0 if done else 1)
