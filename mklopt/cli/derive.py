"""The command `mklopt derive`: a derivation that SymPy has proved."""

import click

from .words import check_known


@click.command("derive", epilog="Example: mklopt derive theta_update --latex")
@click.argument("name", required=False)
@click.option("--latex", is_flag=True, help="Print LaTeX for the appendix of a paper.")
def command(name: str | None, latex: bool) -> None:
    """Print a derivation that SymPy has proved.

    SymPy proves every step before it is printed. Without NAME: list all derivations.
    """
    from ..reference import symbolic

    if name is None:
        for known in symbolic.names():
            click.echo(f"{known:20s} {symbolic.derive(known).title}")
        return
    check_known("derivation", (name,), dict.fromkeys(symbolic.names()))
    derivation = symbolic.derive(name)
    if not derivation.holds():
        raise click.ClickException(f"{name} does not hold; please report this")
    click.echo(derivation.latex() if latex else derivation.text())
