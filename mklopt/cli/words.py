"""Words from and to the command line: options, known names, errors in one sentence."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..util.checks import unknown


def check_known(what: str, given: tuple[str, ...], known: dict) -> None:
    """A usage error for the first name that is not known."""
    for name in given:
        if name not in known:
            raise click.BadParameter(unknown(what, name, known))


def listed(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def usage_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds become one sentence and exit code 2.

    By default: values, names and files that are wrong.
    """
    expected = kinds or (ValueError, LookupError, OSError)
    try:
        yield
    except expected as error:
        raise click.UsageError(sentence(error)) from None


def sentence(error: Exception) -> str:
    """What an error says, without Python's brackets, quotes and numbers."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be read or written ({error.strerror})"
    return str(error.args[0] if isinstance(error, LookupError) else error)


def console(as_json: bool) -> Any:
    """Where a command shows its progress: not on the output if that is JSON."""
    from rich.console import Console

    return Console(stderr=as_json)


def echo_json(found: Any) -> None:
    """Print one JSON object for other programs."""
    click.echo(json.dumps(found, ensure_ascii=False))


AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of tables."
)
JOBS = click.option(
    "--jobs", type=click.IntRange(1), default=2, help="Number of processes."
)
PROBLEM_OPTIONS = (
    click.option(
        "--kernels",
        help="Such as 'gaussian(1),gaussian(3) on single,linear', or "
        "'subset_gaussians(100000)'.",
    ),
    click.option("--normalize", default="spherical", help="Normalization, or `none`."),
    click.option("--formulation", default="lp:p=2", help="The regularizer."),
    click.option("--loss", help="The loss; by default one that fits the labels."),
    click.option("--C", "C", default=1.0, help="Weight of the loss."),
    click.option(
        "--bias/--no-bias", default=True, help="A constant term in f, or not."
    ),
    click.option("--labels", help="A file with y, for kernels in a .npy on disk."),
    click.option("--samples", type=int, help="Use so many, drawn at random."),
    click.option("--cluster", help="Dask scheduler, such as tcp://host:8786."),
)


def problem_options(command: Callable) -> Callable:
    """The options of a command that say which problem on given data is meant."""
    for option in reversed(PROBLEM_OPTIONS):
        command = option(command)
    return command
