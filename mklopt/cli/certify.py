"""The command `mklopt certify`: every solver on every problem, judged."""

import tomllib

import click

from .words import AS_JSON, JOBS, check_known, console, echo_json, usage_errors


def _settings(context: click.Context, _: object, path: str | None) -> None:
    """Options from a TOML file; those on the command line come first."""
    if path is None:
        return
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise click.BadParameter(f"{path} is not a TOML file: {error}") from None
    own = [p for p in context.command.params if p.expose_value and p.name != "as_json"]
    known = {p.name: p for p in own}
    for name, value in found.items():
        if name not in known:
            raise click.BadParameter(
                f"{path} has an option {name!r}; known are {', '.join(sorted(known))}"
            )
        values = value if known[name].multiple and isinstance(value, list) else [value]
        if not all(isinstance(v, str | int | float) for v in values):
            raise click.BadParameter(f"{name} in {path} is not a plain value")
        found[name] = list(map(str, values)) if known[name].multiple else value
    context.default_map = found


@click.command("certify", epilog="Example: mklopt certify --quick --solver analytic")
@click.option(
    "--quick/--full",
    default=False,
    help="Each case at least once (two minutes), or all problems.",
)
@click.option("--solver", multiple=True, help="Only this solver (repeatable).")
@click.option("--loss", multiple=True, help="Only this loss (repeatable).")
@click.option("--formulation", multiple=True, help="Only this one (repeatable).")
@click.option("--data", multiple=True, help="Only this set, or FILE.npz (repeatable).")
@click.option("--out", default="certify-out", help="Folder for the results.")
@JOBS
@click.option("--backend", default="loky", help="Backend of joblib, or dask.")
@click.option("--limit", default=30.0, help="Processor seconds per run.")
@AS_JSON
@click.option(
    "--config",
    is_eager=True,
    expose_value=False,
    callback=_settings,
    help="Read options from this TOML file.",
)
def command(
    quick: bool,
    out: str,
    jobs: int,
    backend: str,
    limit: float,
    as_json: bool,
    **only: tuple[str, ...],
) -> None:
    """Run every solver on every problem and judge it.

    A solver runs on every problem that it supports; its results are compared with known
    optima. They go to one folder: rows.jsonl (one line per run, written when it ends),
    summary.md and report.html. After an interruption the same command continues where
    it stopped. Exit code 0: every solver kept its promises, 1: not, 2: usage error.
    """
    from ..campaign.job import REFERENCE, Campaign, NoBackend, Selection
    from ..campaign.screen import certify_everything
    from ..formulations import formulations, losses_by_name
    from ..reference.contract_problems import DATA
    from ..solvers import solvers

    sets = dict.fromkeys((*DATA, "FILE.npz"))
    own = {name: None for name in only["data"] if name.endswith(".npz")}
    check_known("solver", only["solver"], {**solvers(), REFERENCE: None})
    check_known("loss", only["loss"], losses_by_name())
    check_known("formulation", only["formulation"], formulations())
    check_known("data set", only["data"], sets | own)
    if not limit > 0:
        raise click.BadParameter(f"--limit {limit}: give a positive time")
    chosen = {name: frozenset(names) for name, names in only.items()}
    with usage_errors():
        job = Campaign(out, Selection(quick, limit, **chosen))
    if not job.runs:
        raise click.UsageError("no solver supports this combination: `mklopt list`")
    with usage_errors(NoBackend, OSError):
        holds = certify_everything(job, jobs, backend, console(as_json))
    if as_json:
        wrong = [f"{r.solver} on {r.cell}: {r.reason}" for r in job.rows if not r.holds]
        counts = {"runs": len(job.runs), "done": len(job.rows), "fails": wrong}
        echo_json({"holds": holds, **counts, "folder": str(job.folder)})
    raise SystemExit(0 if holds else 1)
