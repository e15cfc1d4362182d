"""The command line: `mklopt certify | check | derive | list | paper | race | …`.

Every command is a thin shell around a function that a script can call as well.
"""

from __future__ import annotations

from typing import Any

import click

from .cli_paper import paper
from .cli_race import race
from .cli_solve import sentence, solve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mklopt")
def main() -> None:
    """Multiple kernel learning: declared once, solved fast, certified."""


main.add_command(paper)
main.add_command(race)
main.add_command(solve)


def _settings(context: click.Context, _: object, path: str | None) -> None:
    """Options from a TOML file; those on the command line come first."""
    import tomllib

    if path is None:
        return
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise click.BadParameter(f"{path} is not a TOML file: {error}") from None
    known = {p.name: p for p in context.command.params if isinstance(p, click.Option)}
    for name, value in found.items():
        if name not in known or name in ("config", "help"):
            takes = ", ".join(sorted(set(known) - {"config", "help"}))
            raise click.BadParameter(
                f"{path} has an option {name!r}; known are {takes}"
            )
        values = value if known[name].multiple and isinstance(value, list) else [value]
        if not all(isinstance(v, str | int | float) for v in values):
            raise click.BadParameter(f"{name} in {path} is not a plain value")
        found[name] = list(map(str, values)) if known[name].multiple else value
    context.default_map = found


@main.command(
    short_help="Run every solver on every problem and judge it.",
    epilog="Example: mklopt certify --quick --solver analytic",
)
@click.option(
    "--quick/--full",
    default=False,
    help="A covering slice in two minutes, or everything (the default).",
)
@click.option("--solver", multiple=True, help="Only this solver (repeatable).")
@click.option("--loss", multiple=True, help="Only this loss (repeatable).")
@click.option("--formulation", multiple=True, help="Only this formulation.")
@click.option("--data", multiple=True, help="Only this set; or a file with K and y.")
@click.option("--out", default="certify-out", show_default=True, help="Folder.")
@click.option("--jobs", default=2, show_default=True, help="Processes to use.")
@click.option("--backend", default="loky", show_default=True, help="Of joblib.")
@click.option(
    "--limit", default=30.0, show_default=True, help="Processor seconds for a run."
)
@click.option(
    "--config",
    is_eager=True,
    expose_value=False,
    callback=_settings,
    help="Take options from a TOML file.",
)
def certify(
    quick: bool,
    solver: tuple[str, ...],
    loss: tuple[str, ...],
    formulation: tuple[str, ...],
    data: tuple[str, ...],
    out: str,
    jobs: int,
    backend: str,
    limit: float,
) -> None:
    """Run every solver on every problem it supports and judge it by references.

    Results go to one folder: rows.jsonl (one line per run, as it ends), summary.md and
    report.html. A run that was killed goes on where it was.
    """
    from pathlib import Path

    from .certification import REFERENCE, Certification, Choice, NoBackend
    from .formulations import formulations, losses_by_name
    from .reference.contract import DATA
    from .report import certify_everything
    from .solvers import solvers

    _known("solver", solver, {**solvers(), REFERENCE: None})
    _known("loss", loss, losses_by_name())
    _known("formulation", formulation, formulations())
    named = tuple(name for name in data if not name.endswith(".npz"))
    _known("data set", named, dict.fromkeys((*DATA, "FILE.npz")))
    if jobs < 1:
        raise click.BadParameter(f"--jobs {jobs}: use at least one process")
    if not limit > 0:
        raise click.BadParameter(f"--limit {limit}: give a positive time")
    only = {"solvers": solver, "losses": loss, "formulations": formulation}
    sets = {k: frozenset(v) for k, v in (only | {"data": data}).items()}
    try:
        job = Certification(Path(out), Choice(quick, limit=limit, **sets))
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    if not job.runs:
        raise click.UsageError("no solver supports what is asked for: `mklopt list`")
    try:
        holds = certify_everything(job, jobs, backend)
    except (NoBackend, OSError) as error:
        raise click.UsageError(str(error)) from None
    raise SystemExit(0 if holds else 1)


@main.command(
    short_help="Check a certificate in exact arithmetic.",
    epilog="Examples: mklopt verify sonar.cert, mklopt verify certify-out",
)
@click.argument("path", type=click.Path())
@click.option("--data", multiple=True, help="A file of one's own that a folder names.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (of a file).")
def verify(path: str, data: tuple[str, ...], as_json: bool) -> None:
    """Check a certificate file in exact arithmetic (exit code 0: proved, 2: not).

    Of a folder that `mklopt certify` wrote every number of every row is computed again
    from the point that was saved with it, and every certificate is checked.
    """
    from pathlib import Path

    from .checker import main as check

    if not Path(path).is_dir():
        raise SystemExit(_verified(Path(path)) if as_json else check([path]))
    if as_json:
        raise click.UsageError(
            f"--json is for one certificate; {path} is a folder, its rows.jsonl is JSON"
        )
    from .report import recompute_everything

    try:
        same = recompute_everything(Path(path), data)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    raise SystemExit(0 if same else 2)


def _verified(path: Any) -> int:
    """What a certificate proves, or why nothing, as JSON; the exit code."""
    import json

    from .checker import Refused
    from .checker import check as prove

    try:
        found = {"proved": True, **prove(path.read_bytes())}
    except (Refused, OSError) as reason:
        found = {"proved": False, "reason": str(reason)}
    click.echo(json.dumps(found, ensure_ascii=False))
    return 0 if found["proved"] else 2


@main.command(
    short_help="Judge anybody's solver, and say what is wrong.",
    epilog="Example: mklopt check mysolver:solve --loss logistic --tol 1e-5",
)
@click.argument("solver", metavar="MODULE:NAME")
@click.option(
    "--formulation", "kinds", multiple=True,
    help="What it solves, such as BlockL1 or 'LpNorm(p=1.5)' (repeatable).",
)  # fmt: skip
@click.option("--loss", "losses", multiple=True, help="What it solves (repeatable).")
@click.option("--grade", "grades", multiple=True, help="Only this grade (repeatable).")
@click.option("--leave-out", multiple=True, help="Not this problem (repeatable).")
@click.option("--bias/--no-bias", default=None, help="It knows only such problems.")
@click.option("--tol", type=float, help="Relative gap asked for  [default: 1e-6]")
@click.option("--time-limit", default=10.0, show_default=True, help="Seconds for each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def check(
    solver: str, kinds: tuple[str, ...], losses: tuple[str, ...], as_json: bool,
    grades: tuple[str, ...], **asked: Any,
) -> None:  # fmt: skip
    """Judge anybody's solver: certified gaps, and a diagnosis of what fails.

    MODULE:NAME is a generator of iterates, or a function of a problem that returns
    (weights, dual) or weights; the current directory is searched first. The name alone
    of one of our own solvers will do as well. Exit code 0: passed, 1: failed.
    """
    from rich.console import Console
    from rich.progress import Progress

    from .conformance import check_solver

    errors = Console(stderr=True)
    quiet = not errors.is_terminal
    bar = Progress(console=errors, transient=True, disable=quiet)
    task = bar.add_task(solver)
    try:
        with bar:
            found = check_solver(
                solver,
                formulations=kinds or None,
                losses=losses or None,
                grades=grades or None,
                progress=lambda done, all: bar.update(task, completed=done, total=all),
                **asked,
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(found.to_json())
    else:
        found.show(Console())
    raise SystemExit(0 if found.passed else 1)


@main.command("export-benchopt", epilog="Example: mklopt export-benchopt benchmark_mkl")
@click.argument("folder")
@click.option("--solvers", default="", help="Names with commas; by default all.")
def export_benchopt(folder: str, solvers: str) -> None:
    """Write a benchmark that the program benchopt runs."""
    from .benchopt_export import export

    names = [name.strip() for name in solvers.split(",") if name.strip()]
    try:
        written = export(folder, names)
    except (ValueError, OSError) as error:
        raise click.UsageError(sentence(error)) from None
    click.echo(f"{folder}: {len(written)} files; now: benchopt run {folder}")


@main.command("list", epilog="Example: mklopt list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List solvers, formulations, losses, data sets and papers."""
    from .listing import print_everything

    print_everything(as_json)


@main.command(
    short_help="Print a derivation that SymPy has proved.",
    epilog="Example: mklopt derive theta_update --latex",
)
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
