"""The command `mklopt paper`: claims checked, figures redrawn."""

from __future__ import annotations

import click


@click.command("paper", epilog="Example: mklopt paper kloft2011 --quick")
@click.argument("key")
@click.option(
    "--quick/--full", default=True, help="Sizes for a laptop (default), or the paper's."
)
@click.option("--tiny", is_flag=True, help="Smallest sizes: does everything run?")
@click.option("--seed", default=0, show_default=True)
@click.option("--out", help="Folder for pages and results  [default: papers/]")
@click.option("--jobs", default=2, show_default=True, help="Processes to use.")
def command(
    key: str, quick: bool, tiny: bool, seed: int, out: str | None, jobs: int
) -> None:
    """Check the claims of a paper and redraw its figures; KEY may be `all`.

    Writes README.md with the ledger of claims, and results/ with figures (PNG, PDF),
    their data (CSV) and tables (LaTeX). A run that was stopped goes on where it was.
    Exit code 0: everything ran, and every check can fail; 1: not.
    """
    from ..claims.items import NotACheckout, known
    from ..claims.run import run_papers

    if jobs < 1:
        raise click.BadParameter(f"--jobs {jobs}: use at least one process")
    mode = "tiny" if tiny else "quick" if quick else "full"
    try:
        chosen = known() if key == "all" else [key]
        done = run_papers(chosen, mode, seed=seed, out=out, jobs=jobs)
    except (NotACheckout, ValueError, OSError) as error:
        said = error.args[0] if isinstance(error, LookupError) else error
        raise click.UsageError(str(said)) from None
    raise SystemExit(0 if done else 1)
