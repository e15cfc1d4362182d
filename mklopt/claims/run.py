"""Running papers: studies first, then claims, figures and tables; a page at the end.

Whatever is finished is on disk before the next thing begins, under a name that holds
the mode, the seed and a fingerprint of the code: the same command goes on where an
earlier one was stopped, and no old result is taken for a new one.
"""

import json
import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from ..util.extras import MissingExtra, missing, need

if said := missing("rich", "pandas"):
    raise MissingExtra(said)

from rich.console import Console
from rich.markup import escape
from rich.progress import track

from ..data.datasets import DataNotFound
from ..util import style
from ..util.files import write_whole
from ..util.threads import blas_alone
from ..util.workers import ending_with_us, losses_reported
from . import items
from .items import Claim, Figure, Item, Outcome, Paper, Scale
from .page import write_page, write_sheet

WORK = ".work"  # inside the folder of results: what an interrupted run left


def perform(key: str, name: str, scale: Scale, results: Path) -> Outcome:
    """Run one item of a paper; data that are missing are no error."""
    paper = items.load(key)
    (item,) = (item for item in paper.items() if item.name == name)
    begun = time.perf_counter()
    outcome = Outcome(key, type(item).__name__.lower(), name)
    try:
        with blas_alone():  # sums of several threads have other last bits
            outcome = _performed(item, scale, results, outcome)
    except DataNotFound as reason:
        outcome = replace(outcome, missing=str(reason.args[0]))
    except OSError:  # a full disk, say: every other item would meet it, too
        raise
    except Exception:
        outcome = replace(outcome, error=traceback.format_exc(limit=-3))
    return replace(outcome, seconds=time.perf_counter() - begun)


def _performed(item: Item, scale: Scale, results: Path, outcome: Outcome) -> Outcome:
    if isinstance(item, Claim):
        return _checked(item, scale, outcome)
    found, studies = items.used_by(item, scale)
    if isinstance(item, Figure):
        style.write(found, results / item.paper / "results/figures" / item.name)
    elif outcome.kind == "sheet":
        write_sheet(found, results / item.paper / "results/tables" / item.name)
    return replace(outcome, studies=tuple(studies))


def _checked(item: Claim, scale: Scale, outcome: Outcome) -> Outcome:
    path = item.kept(scale, "json")
    if path is not None and path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        return Outcome(**{**known, "studies": tuple(known["studies"])})
    found, studies = items.used_by(item, scale)
    outcome = replace(outcome, **asdict(found), studies=tuple(studies))
    if item.wrong is not None and found.verdict in items.CONTRARY:
        other = item.check(scale, wrong=True)
        said = other.evidence
        outcome = replace(outcome, contrary=other.verdict, contrary_evidence=said)
    if path is not None:
        write_whole(path, json.dumps(asdict(outcome), ensure_ascii=False).encode())
    return outcome


# ---- everything ------------------------------------------------------------------


def run_papers(
    keys: Iterable[str],
    mode: str = "quick",
    *,
    seed: int = 0,
    out: str | Path | None = None,
    jobs: int = 2,
    console: Console | None = None,
) -> bool:
    """Run papers, write their pages; True when all ran and every check can fail.

    The verdicts themselves are findings, not failures.

    keys: of the papers;  mode, seed: of the `Scale`
    out: the folder for pages and results, by default papers/
    """
    console = console or Console()
    home = items.ROOT / "papers" if out is None else Path(out).resolve()
    scale = Scale(mode, seed, home / WORK)
    papers = [items.load(key) for key in keys]
    (home / WORK).mkdir(parents=True, exist_ok=True)  # or say at once that it cannot
    first: list[Item] = [s for paper in papers for s in paper.studies.values()]
    later = [item for p in papers for item in p.items() if item not in first]
    outcomes: list[Outcome] = []
    try:
        for todo in (first, later):
            outcomes += _run_all(todo, scale, home, jobs, console)
    except KeyboardInterrupt:
        console.print("[bold]interrupted[/]: the same command goes on from here")
        return False
    for paper in papers:
        mine = {o.name: o for o in outcomes if o.paper == paper.key}
        page = write_page(paper, mine, scale, home)
        console.print(_tally(paper, mine))
        console.print(f"  {escape(str(page))}", soft_wrap=True)
    return all(outcome.sound for outcome in outcomes)


def _run_all(
    todo: list[Item], scale: Scale, home: Path, jobs: int, console: Console
) -> list[Outcome]:
    """The outcomes of items, printed as they come."""
    need("joblib")
    from joblib import Parallel, delayed, parallel_config

    found: list[Outcome] = []
    count, quiet = len(todo), not console.is_terminal
    more = ending_with_us("loky")
    with losses_reported(), parallel_config("loky", inner_max_num_threads=1, **more):
        pool = Parallel(jobs, return_as="generator_unordered")
        done = pool(delayed(perform)(i.paper, i.name, scale, home) for i in todo)
        for outcome in track(done, "papers", count, console=console, disable=quiet):
            found.append(outcome)
            console.print(_line(outcome))
    return found


MARKS = {
    "confirmed": "green", "refuted": "red", "partly": "yellow", "vacuous": "cyan",
    "not testable": "dim",
}  # fmt: skip


def _line(outcome: Outcome) -> str:
    what = f"{outcome.paper} {outcome.kind} [bold]{outcome.name}[/]"
    took = f"[dim]{outcome.seconds:.1f} s[/]"
    if outcome.error:
        return f"{what} [bold red]FAILED[/] {took}\n{escape(outcome.error)}"
    if outcome.missing:
        return f"{what} left out: {escape(outcome.missing)}"
    if not outcome.verdict:
        return f"{what} {took}"
    mark = MARKS[outcome.verdict]
    said = f"{what} [{mark}]{outcome.verdict}[/] {took} {escape(outcome.evidence)}"
    if not outcome.sound:
        said += f"\n  [bold red]and its perturbed form is {outcome.contrary}[/]"
    return said


def _tally(paper: Paper, outcomes: dict[str, Outcome]) -> str:
    claims = [outcomes[name] for name in paper.claims]
    counts = {mark: sum(o.judged == mark for o in claims) for mark in MARKS}
    said = ", ".join(f"{count} {mark}" for mark, count in counts.items() if count)
    bad = sum(not outcome.sound for outcome in outcomes.values())
    more = f"; [bold red]{bad} FAILED[/]" if bad else ""
    return f"[bold]{paper.key}[/]: {len(claims)} claims: {said}{more}"
