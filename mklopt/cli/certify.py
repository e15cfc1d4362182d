"""The command `mklopt certify`: every solver on every problem, judged."""

from __future__ import annotations

import click

from .words import check_known


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


@click.command(
    "certify",
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
def command(
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

    from ..campaign.job import REFERENCE, Certification, Choice, NoBackend
    from ..campaign.screen import certify_everything
    from ..formulations import formulations, losses_by_name
    from ..reference.contract_problems import DATA
    from ..solvers import solvers

    check_known("solver", solver, {**solvers(), REFERENCE: None})
    check_known("loss", loss, losses_by_name())
    check_known("formulation", formulation, formulations())
    named = tuple(name for name in data if not name.endswith(".npz"))
    check_known("data set", named, dict.fromkeys((*DATA, "FILE.npz")))
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
