"""Running papers: studies first, then claims, figures and tables; a page at the end.

Whatever is finished is on disk before the next thing begins, under a name that holds
the mode, the seed and a fingerprint of the code: the same command goes on where an
earlier one was stopped, and no old result is taken for a new one.
"""

import json
import math
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
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
from . import items, records, registry
from .empirical import Empirical
from .history import committed
from .items import Claim, Figure, Item, Outcome, Paper, Scale, Study
from .page import write_page, write_sheet
from .rows import Deadline, OutOfTime
from .source import Source

WORK = ".work"  # inside the folder of results: what an interrupted run left


def perform(
    key: str,
    name: str,
    scale: Scale,
    results: Path,
    seeds: tuple[int, ...] = (),
    ends: float = math.inf,
) -> Outcome:
    """Run one item of a paper; data that are missing are no error.

    seeds: in place of those that an empirical claim is registered with
    ends: when studies stop between two parts, as of time.time()
    """
    Deadline.ends = ends
    paper = items.load(key)
    (item,) = (item for item in paper.items() if item.name == name)
    begun = time.perf_counter()
    outcome = Outcome(key, type(item).__name__.lower(), name)
    try:
        with blas_alone():  # sums of several threads have other last bits
            outcome = _performed(item, scale, results, outcome, seeds)
    except DataNotFound as reason:
        outcome = replace(outcome, missing=str(reason.args[0]))
    except OutOfTime as reason:
        outcome = replace(outcome, unfinished=str(reason))
    except OSError:  # a full disk, say: every other item would meet it, too
        raise
    except Exception:
        outcome = replace(outcome, error=traceback.format_exc(limit=-3))
    finally:
        Deadline.ends = math.inf
    return replace(outcome, seconds=time.perf_counter() - begun)


def _performed(
    item: Item, scale: Scale, results: Path, outcome: Outcome, seeds: tuple[int, ...]
) -> Outcome:
    if isinstance(item, Empirical):
        return _judged(item, scale, outcome, seeds)
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


def _judged(
    item: Empirical, scale: Scale, outcome: Outcome, seeds: tuple[int, ...]
) -> Outcome:
    """An empirical claim over its seeds; at the smallest size nothing is published."""
    seeds = seeds or item.seeds_of(scale.mode)
    small = scale.mode == "tiny"
    name = "" if small else registry.check(item)
    if name and not committed(item.paper, name):
        raise registry.NotRegistered(
            f"the registration {name} of {item.name} is not committed: commit it, and "
            "run then"
        )
    (mine, others), studies = items.used(lambda: item.judge(scale, seeds))
    outcome = replace(outcome, **asdict(mine), studies=tuple(studies), seeds=seeds)
    if small:
        return outcome
    verdicts = tuple(other.verdict for other in others)
    said = "; ".join(f"{other.evidence}: {other.verdict}" for other in others)
    return replace(
        outcome,
        registration=name,
        controls=verdicts,
        contrary=", ".join(verdicts),
        contrary_evidence=said,
    )


# ---- everything ------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """An item of a paper at a seed."""

    item: Item
    scale: Scale


def run_papers(
    keys: Iterable[str],
    mode: str = "quick",
    *,
    seed: int = 0,
    seeds: tuple[int, ...] = (),
    only: tuple[str, ...] = (),
    hours: float = math.inf,
    cluster: str | None = None,
    out: str | Path | None = None,
    jobs: int = 2,
    console: Console | None = None,
) -> bool:
    """Run papers, write their pages; True when all ran and every check can fail.

    The verdicts themselves are findings, not failures.

    keys: of the papers;  mode, seed: of the `Scale`
    seeds: for empirical claims, in place of the registered ones; only with `out`
    only: names of claims, figures and tables; the rest of the page stays
    hours: after these, studies end with the part in hand; the same command goes on
    cluster: the address of a Dask scheduler whose workers see the same folders
    out: the folder for pages and results, by default papers/
    """
    console = console or Console()
    home = items.ROOT / "papers" if out is None else Path(out).resolve()
    if seeds and out is None:
        raise ValueError("other seeds than the registered ones: give --out, too")
    scale = Scale(mode, seed, home / WORK)
    papers = [items.load(key) for key in keys]
    (home / WORK).mkdir(parents=True, exist_ok=True)  # or say at once that it cannot
    how = records.made(time.strftime("%Y-%m-%d"))
    pool = Pool(home, seeds, time.time() + 3600 * hours, cluster, console)
    outcomes: list[Outcome] = []
    spent: dict[str, records.Records] = {}
    try:
        for paper in papers:
            chosen = _chosen(paper, only)
            needed = studies_of(paper, chosen, scale, seeds)
            todo = [Task(s, replace(scale, seed=k)) for s, ks in needed for k in ks]
            later = [Task(item, scale) for item in chosen]
            for part in (
                [t for t in todo if not _timed(t)],
                [t for t in todo if _timed(t)],
                later,
            ):
                alone = part and _timed(part[0])
                outcomes += _run_all(part, pool, 1 if alone else jobs)
            spent[paper.key] = {
                s.name: records.of_study(s, scale, ks, how) for s, ks in needed
            }
    except KeyboardInterrupt:
        console.print("[bold]interrupted[/]: the same command goes on from here")
        return False
    for paper in papers:
        mine = {o.name: o for o in outcomes if o.paper == paper.key}
        if left := [o for o in mine.values() if o.unfinished]:
            said = f"{len(left)} items are not finished: the same command goes on"
            console.print(f"[bold]{paper.key}[/]: {said}")
            continue
        new = spent[paper.key] | {
            item.name: records.of_outcome(item, mine[item.name], how)
            for item in _chosen(paper, only)
            if not (isinstance(item, Empirical) and mine[item.name].error)
        }
        page = write_page(paper, new, scale, home)
        console.print(_tally(paper, mine))
        if seeds:
            console.print(_agreement(paper, mine, mode))
        console.print(f"  {escape(str(page))}", soft_wrap=True)
    return all(outcome.sound for outcome in outcomes)


def _chosen(paper: Paper, only: tuple[str, ...]) -> list[Item]:
    """Claims, figures and tables that are asked for; all by default."""
    found = [item for item in paper.items() if not isinstance(item, Study)]
    if unknown := set(only) - {item.name for item in found}:
        raise ValueError(f"{paper.key} has no {', '.join(sorted(unknown))}")
    return [item for item in found if not only or item.name in only]


def studies_of(
    paper: Paper, chosen: list[Item], scale: Scale, seeds: tuple[int, ...] = ()
) -> list[tuple[Study, list[int]]]:
    """The studies that items rest on, each with the seeds that it is asked for."""
    needed: dict[str, set[int]] = {}
    for item in chosen:
        at = {scale.seed}
        source = Source(item.run)
        if isinstance(item, Empirical):
            source, at = item.source, set(seeds or item.seeds_of(scale.mode))
        for study in source.items:
            if isinstance(study, Study):
                needed.setdefault(study.name, set()).update(at)
    return [
        (s, sorted(needed[s.name])) for s in paper.studies.values() if s.name in needed
    ]


def _timed(task: Task) -> bool:
    return isinstance(task.item, Study) and task.item.timed


def _agreement(paper: Paper, outcomes: dict[str, Outcome], mode: str) -> str:
    """How many empirical claims have the verdict that is published at this size."""
    published = records.read(items.ROOT / "papers" / paper.key / "results", mode)
    names = [
        o.name for o in outcomes.values() if o.registration and o.name in published
    ]
    other = [n for n in names if outcomes[n].verdict != published[n]["verdict"]]
    said = f"{len(names) - len(other)} of {len(names)} verdicts as published"
    return f"  {said}" + (f"; others: {', '.join(other)}" if other else "")


@dataclass(frozen=True)
class Pool:
    """Where and until when tasks run."""

    home: Path
    seeds: tuple[int, ...]
    ends: float
    cluster: str | None
    console: Console

    def outcomes(self, todo: list[Task], jobs: int) -> Iterator[Outcome]:
        """As they come."""
        more = (self.home, self.seeds, self.ends)
        calls = [(t.item.paper, t.item.name, t.scale, *more) for t in todo]
        if self.cluster:
            return _on_cluster(self.cluster, calls, alone=jobs == 1)
        return _here(calls, jobs)


def _here(calls: list[tuple], jobs: int) -> Iterator[Outcome]:
    """In processes of this computer."""
    need("joblib")
    from joblib import Parallel, delayed, parallel_config

    more = ending_with_us("loky")
    with losses_reported(), parallel_config("loky", inner_max_num_threads=1, **more):
        workers = Parallel(jobs, return_as="generator_unordered")
        yield from workers(delayed(perform)(*call) for call in calls)


def _on_cluster(address: str, calls: list[tuple], alone: bool) -> Iterator[Outcome]:
    """On the workers of a Dask cluster, which see the same folders."""
    need("distributed")
    from distributed import Client, as_completed

    with Client(address) as client:
        if alone:  # one after the other
            for call in calls:
                yield client.submit(perform, *call, pure=False).result()
            return
        futures = [client.submit(perform, *call, pure=False) for call in calls]
        for future in as_completed(futures):
            yield future.result()


def _run_all(todo: list[Task], pool: Pool, jobs: int) -> list[Outcome]:
    """The outcomes of tasks, printed as they come."""
    found: list[Outcome] = []
    count, screen = len(todo), pool.console
    quiet = not screen.is_terminal or not todo
    done = pool.outcomes(todo, jobs) if todo else ()
    for outcome in track(done, "papers", count, console=screen, disable=quiet):
        found.append(outcome)
        screen.print(_line(outcome))
    return found


MARKS = {
    "confirmed": "green", "refuted": "red", "partly": "yellow", "vacuous": "cyan",
    "not testable": "dim", "inconclusive": "yellow", items.NOT_REPRODUCED: "red",
    "not run": "dim",
}  # fmt: skip


def _line(outcome: Outcome) -> str:
    what = f"{outcome.paper} {outcome.kind} [bold]{outcome.name}[/]"
    took = f"[dim]{outcome.seconds:.1f} s[/]"
    if outcome.error:
        return f"{what} [bold red]FAILED[/] {took}\n{escape(outcome.error)}"
    if outcome.unfinished:
        return f"{what} [bold]not finished[/]: {outcome.unfinished} {took}"
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
    claims = [outcomes[name] for name in paper.claims if name in outcomes]
    counts = {mark: sum(o.judged == mark for o in claims) for mark in MARKS}
    said = ", ".join(f"{count} {mark}" for mark, count in counts.items() if count)
    bad = sum(not outcome.sound for outcome in outcomes.values())
    more = f"; [bold red]{bad} FAILED[/]" if bad else ""
    return f"[bold]{paper.key}[/]: {len(claims)} claims: {said}{more}"
