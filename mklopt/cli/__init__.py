"""The command line: `mklopt certify | check | derive | library | list | …`.

One file per command, each with a function `command`: a thin layer over a function
that a script can call as well.
"""

from ..util.extras import MissingExtra, missing

if said := missing("click", "rich"):
    raise MissingExtra(said)

import click

from . import (
    benchopt,
    certify,
    check,
    derive,
    library,
    listing,
    paper,
    race,
    solve,
    verify,
    warmup,
)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="mklopt")
def main() -> None:
    """Multiple kernel learning: declared once, solved fast, certified."""


COMMANDS = (
    *(benchopt, certify, check, derive, library, listing),
    *(paper, race, solve, verify),
)
for module in (*COMMANDS, warmup):
    main.add_command(module.command)
