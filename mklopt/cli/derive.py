"""The command `mklopt derive`: a derivation that SymPy has proved."""

import click

from .words import AS_JSON, check_known, echo_json


@click.command("derive", epilog="Example: mklopt derive theta_update --latex")
@click.argument("name", required=False)
@click.option("--latex", is_flag=True, help="Print LaTeX for the appendix of a paper.")
@AS_JSON
def command(name: str | None, latex: bool, as_json: bool) -> None:
    """Print a derivation that SymPy has proved.

    SymPy proves every step before it is printed. Without NAME: list all derivations.
    """
    from ..reference import symbolic

    if name is None:
        titles = {known: symbolic.derive(known).title for known in symbolic.names()}
        if as_json:
            echo_json(titles)
        for known, title in {} if as_json else titles.items():
            click.echo(f"{known:20s} {title}")
        return
    check_known("derivation", (name,), dict.fromkeys(symbolic.names()))
    derivation = symbolic.derive(name)
    if not derivation.holds():
        raise click.ClickException(f"{name} does not hold; please report this")
    text = derivation.latex() if latex else derivation.text()
    if as_json:
        echo_json({"name": name, "title": derivation.title, "text": text})
    else:
        click.echo(text)
