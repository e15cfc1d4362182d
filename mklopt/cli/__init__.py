"""The command line: `mklopt certify | check | derive | library | list | …`.

One file per command, each with a function `command`: a thin layer over a function
that a script can call as well. A file is imported when its command is called or its
help is shown, so that short commands are quick.
"""

import importlib
from typing import Any

from ..util.extras import MissingExtra, missing

if said := missing("click", "rich"):
    raise MissingExtra(said)

import click

MODULES = {  # of each command
    "certify": "certify",
    "check": "check",
    "derive": "derive",
    "library": "library",
    "export-benchopt": "benchopt",
    "list": "listing",
    "paper": "paper",
    "race": "race",
    "solve": "solve",
    "verify": "verify",
    "warmup": "warmup",
}


class Commands(click.Group):
    """The commands of MODULES, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in alphabetical order."""
        return sorted(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None if there is none."""
        if cmd_name not in MODULES:
            return None
        module = importlib.import_module(f"{__name__}.{MODULES[cmd_name]}")
        found: click.Command = module.command
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that is meant; a usage error names the nearest ones."""
        if args[0] not in MODULES and args[0][:1].isalnum():
            from ..util.checks import unknown

            ctx.fail(unknown("command", args[0], MODULES))
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(package_name="mklopt")
def main() -> None:
    """Multiple kernel learning: declared once, solved fast, certified."""
