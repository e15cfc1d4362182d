"""Words from and to the command line: names that are known, errors in one sentence."""

from __future__ import annotations

import click


def check_known(what: str, given: tuple[str, ...], known: dict) -> None:
    """A usage error for the first name that is not known."""
    for name in given:
        if name not in known:
            raise click.BadParameter(
                f"{what} {name!r} is not known; choose one of {', '.join(known)}"
            )


def sentence(error: Exception) -> str:
    """What an error says, without Python's brackets, quotes and numbers."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be read or written ({error.strerror})"
    return str(error.args[0] if isinstance(error, LookupError) else error)
