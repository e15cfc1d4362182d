"""The command `mklopt paper`: claims checked, figures redrawn."""

import json
from pathlib import Path

import click

from .words import AS_JSON, JOBS, console, echo_json, usage_errors


@click.command("paper", epilog="Example: mklopt paper kloft2011 --quick")
@click.argument("key")
@click.option(
    "--quick/--full",
    default=True,
    help="Sizes for a laptop, or those of the paper.",
)
@click.option("--tiny", is_flag=True, help="Smallest sizes, to see that all runs.")
@click.option("--seed", default=0, help="Of all random numbers.")
@click.option("--out", help="Folder for the results.  [default: papers/]")
@click.option(
    "--counterexamples",
    is_flag=True,
    help="Run the problems on which printed rates fail, and nothing else.",
)
@JOBS
@AS_JSON
def command(
    key: str,
    quick: bool,
    tiny: bool,
    seed: int,
    out: str | None,
    counterexamples: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Check the claims of a paper and redraw its figures.

    KEY names a paper (see `mklopt list`), or is `all`. Writes README.md with the claims
    and their verdicts, and results/ with figures (PNG, PDF), their data (CSV) and
    tables (LaTeX). After an interruption the same command continues where it stopped.
    Exit code 0: everything ran, and every check refutes a wrong statement, as it must,
    1: not, 2: usage error.
    """
    from ..claims.items import ROOT, known
    from ..claims.run import run_papers

    if counterexamples:
        raise SystemExit(_refute(key, as_json))
    mode = "tiny" if tiny else "quick" if quick else "full"
    with usage_errors():
        chosen = known() if key == "all" else [key]
        screen = console(as_json)
        done = run_papers(chosen, mode, seed=seed, out=out, jobs=jobs, console=screen)
    if as_json:
        home = ROOT / "papers" if out is None else Path(out)
        ledgers = [home / key / "results" / "ledger.json" for key in chosen]
        found = [json.loads(p.read_text(encoding="utf-8")) for p in ledgers if done]
        echo_json({"sound": done, "papers": found})
    raise SystemExit(0 if done else 1)


def _refute(key: str, as_json: bool) -> int:
    """Run the counter-examples; 0 if each of them refutes its printed rate."""
    from ..claims.counterexamples import counterexamples

    with usage_errors():
        examples = counterexamples(key)
    runs = [one.run() for one in examples]
    if as_json:
        rows = [
            {
                "paper": one.paper,
                "place": one.place,
                "printed": one.printed,
                "steps": [step._asdict() for step in run],
                "refuted": one.refutes(run),
            }
            for one, run in zip(examples, runs)
        ]
        echo_json({"counterexamples": rows})
    else:
        screen = console(as_json)
        for one, run in zip(examples, runs):
            screen.print(one.table(run))
        screen.print(f"{len(examples)} printed rates with counter-examples")
    return 0 if all(one.refutes(run) for one, run in zip(examples, runs)) else 1
