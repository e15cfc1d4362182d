"""The command `mklopt paper`: claims checked, figures redrawn."""

import json
import math
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
@click.option(
    "--tiny",
    is_flag=True,
    help="Smallest sizes, to see that all runs; pages in papers/.work/tiny/.",
)
@click.option("--seed", default=0, help="Of all random numbers.")
@click.option(
    "--seeds",
    help="For empirical claims, instead of the registered ones: 10,11,12. Needs --out.",
)
@click.option("--only", multiple=True, help="A claim or a figure; the rest stays.")
@click.option("--hours", type=float, help="Stop after these; run again to go on.")
@click.option("--cluster", help="Address of a Dask scheduler.")
@click.option("--page", is_flag=True, help="Write the page from what was run before.")
@click.option("--register", is_flag=True, help="Freeze the rules of empirical claims.")
@click.option("--why", default="", help="Why a registered rule was changed.")
@click.option(
    "--registry",
    is_flag=True,
    help="Check that rules were registered before results were made.",
)
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
    seeds: str | None,
    only: tuple[str, ...],
    hours: float | None,
    cluster: str | None,
    page: bool,
    register: bool,
    why: str,
    registry: bool,
    out: str | None,
    counterexamples: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Check the claims of a paper and redraw its figures.

    KEY names a paper (see `mklopt list`), or is `all`. Writes README.md with the claims
    and their verdicts, and results/ with figures (PNG, PDF), their data (CSV) and
    tables (LaTeX). After an interruption the same command continues where it stopped.
    Empirical claims are registered before they run: --register, commit, run.
    Exit code 0: everything ran, and every check refutes a wrong statement, as it must,
    1: not, 2: usage error.
    """
    from ..claims.items import ROOT, known
    from ..claims.run import run_papers

    if counterexamples:
        raise SystemExit(_refute(key, as_json))
    if register or registry:
        raise SystemExit(_register(key, why) if register else _check(key))
    mode = "tiny" if tiny else "quick" if quick else "full"
    with usage_errors():
        chosen = known() if key == "all" else [key]
        if tiny and out is None:  # it says nothing: published pages stay
            out = str(ROOT / "papers" / ".work" / "tiny")
        if page:
            raise SystemExit(_page(chosen, mode))
        screen = console(as_json)
        done = run_papers(
            chosen, mode, seed=seed, seeds=_seeds(seeds), only=only, cluster=cluster,
            hours=math.inf if hours is None else hours, out=out, jobs=jobs,
            console=screen,
        )  # fmt: skip
    if as_json:
        home = ROOT / "papers" if out is None else Path(out)
        ledgers = [home / key / "results" / "ledger.json" for key in chosen]
        found = [json.loads(p.read_text(encoding="utf-8")) for p in ledgers if done]
        echo_json({"sound": done, "papers": found})
    raise SystemExit(0 if done else 1)


def _seeds(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(",")) if text else ()
    except ValueError:
        raise ValueError(f"--seeds {text}; give whole numbers: 10,11,12") from None


def _keys(key: str) -> list[str]:
    from ..claims.items import known

    return known() if key == "all" else [key]


def _page(keys: list[str], mode: str) -> int:
    """Write pages from records; figures and tables stay as they are."""
    from ..claims.items import ROOT, Scale, load
    from ..claims.page import write_page

    for one in keys:
        console(False).print(write_page(load(one), {}, Scale(mode), ROOT / "papers"))
    return 0


def _register(key: str, why: str) -> int:
    """Append what is not registered yet, and say what."""
    from ..claims.items import load
    from ..claims.registry import published, register

    screen = console(False)
    with usage_errors():
        for one in _keys(key):
            lines = register(load(one), published(one), why)
            for line in lines:
                screen.print(f"{one} {line['claim']} {line['registration']}")
            said = "commit them before you run" if lines else "all claims were before"
            screen.print(f"{one}: {len(lines)} registered; {said}")
    return 0


def _check(key: str) -> int:
    """Whether git's history has each registration before its results."""
    from ..claims.history import check

    with usage_errors():
        wrong = [line for one in _keys(key) for line in check(one)]
    screen = console(False)
    for line in wrong:
        screen.print(line, soft_wrap=True)
    screen.print(f"{len(wrong)} results or registries are out of order")
    return 1 if wrong else 0


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
