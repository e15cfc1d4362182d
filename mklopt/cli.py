"""The command line: `mklopt certify | derive | list | verify`.

Every command is a thin shell around a function that a script can call as well.
"""

from __future__ import annotations

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mklopt")
def main() -> None:
    """Multiple kernel learning: declared once, solved fast, certified."""


@main.command()
@click.option("--jobs", default=2, show_default=True, help="Processes to use.")
@click.option("--loss", "losses", multiple=True, help="Only this loss (repeatable).")
@click.option(
    "--formulation", "kinds", multiple=True, help="Only this formulation (repeatable)."
)
@click.option("--tol", default=1e-8, show_default=True, help="Agreement asked for.")
def certify(
    jobs: int, losses: tuple[str, ...], kinds: tuple[str, ...], tol: float
) -> None:
    """Solve every declared formulation × loss and check it against its derived dual."""
    from .formulations import formulations, losses_by_name
    from .report import certify_everything

    _known("loss", losses, losses_by_name())
    _known("formulation", kinds, formulations())
    if jobs < 1:
        raise click.BadParameter(f"--jobs {jobs}: use at least one process")
    if not tol > 0:
        raise click.BadParameter(f"--tol {tol}: a tolerance is positive")
    raise SystemExit(0 if certify_everything(jobs, losses, kinds, tol) else 1)


@main.command()
@click.argument("file", type=click.Path())
def verify(file: str) -> None:
    """Check a certificate file in exact arithmetic (exit code 0: proved, 2: not).

    Example: mklopt verify sonar.certificate
    """
    from .checker import main as check

    raise SystemExit(check([file]))


@main.command("list")
def list_() -> None:
    """List the formulations and losses."""
    from .report import print_rooms

    print_rooms()


@main.command()
@click.argument("name", required=False)
@click.option("--latex", is_flag=True, help="Print LaTeX for a paper's appendix.")
def derive(name: str | None, latex: bool) -> None:
    """Print a derivation step by step, after SymPy has proved every step."""
    from .reference import symbolic

    if name is None:
        for known in symbolic.names():
            click.echo(f"{known:20s} {symbolic.derive(known).title}")
        return
    _known("derivation", (name,), dict.fromkeys(symbolic.names()))
    derivation = symbolic.derive(name)
    if not derivation.holds():
        raise click.ClickException(f"{name} does not hold: please report this")
    click.echo(derivation.latex() if latex else derivation.text())


def _known(what: str, given: tuple[str, ...], known: dict) -> None:
    for name in given:
        if name not in known:
            raise click.BadParameter(
                f"{what} {name!r} is not known; choose one of {', '.join(known)}"
            )
