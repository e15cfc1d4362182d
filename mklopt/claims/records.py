"""Results that are published: papers/<key>/results/quick.json and full.json.

A file has one record for each item of the paper: what it came to, under which
registration, on which commit, day and processor. A run replaces the records of what it
ran. `current` drops those of an empirical claim that has changed since.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..util.files import write_whole
from .empirical import Empirical
from .items import Claim, Item, Outcome, Paper, Scale
from .registry import present
from .repository import commit
from .rows import took
from .source import Source

PACKAGES = ("mklopt", "numpy", "scipy", "numba", "cvxpy", "scikit-learn")
Records = dict[str, dict[str, Any]]  # by name


def read(results: Path, mode: str) -> Records:
    """The records of a mode; none where it was not run."""
    path = results / f"{mode}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write(
    results: Path, mode: str, new: Records, keep: Iterable[str] | None = None
) -> Records:
    """Replace the records of what was run; returns all of the mode.

    keep: the names of the paper's items; others go, unless they were registered
    """
    known = read(results, mode)
    if keep is not None:
        names = set(keep)
        known = {k: r for k, r in known.items() if k in names or r.get("registration")}
    return _written(results, mode, known | new)


def forget(results: Path, mode: str, names: Iterable[str]) -> None:
    """Drop records."""
    known = read(results, mode)
    left = {name: record for name, record in known.items() if name not in set(names)}
    if left != known:
        _written(results, mode, left)


def _written(results: Path, mode: str, found: Records) -> Records:
    text = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)
    write_whole(results / f"{mode}.json", text.encode() + b"\n")
    return found


def current(paper: Paper, found: Records) -> Records:
    """The records of what the paper has now; those of changed claims are left out."""
    kept = {}
    for item in paper.items():
        record = found.get(item.name)
        if record and (not isinstance(item, Claim) or _same(item, record)):
            kept[item.name] = record
    return kept


def _same(claim: Claim, record: dict[str, Any]) -> bool:
    if isinstance(claim, Empirical):
        return record.get("registration") == present(claim)
    return record.get("source") == Source(claim.run).digest


def made(day: str) -> dict[str, str]:
    """The commit, the day, the processor and the versions of a run."""
    said = [f"Python {platform.python_version()}"]
    said += [f"{name} {version(name)}" for name in PACKAGES]
    about = {"commit": commit(), "date": day, "cpu": processor()}
    return about | {"versions": ", ".join(said)}


def processor() -> str:
    """The name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def of_outcome(item: Item, outcome: Outcome, how: dict[str, str]) -> dict[str, Any]:
    """The record of a claim, a figure or a table."""
    about: dict[str, Any] = {"kind": outcome.kind, **how}
    about |= {"studies": list(outcome.studies)}
    if isinstance(item, Claim):
        about |= {
            "verdict": outcome.judged, "evidence": outcome.evidence or outcome.why_not,
            "numbers": outcome.numbers, "contrary": outcome.contrary,
            "contrary_evidence": outcome.contrary_evidence,
        }  # fmt: skip
        if isinstance(item, Empirical):
            names = ("registration", "seeds", "controls", "intervals")
            return about | {name: getattr(outcome, name) for name in names}
        return about | {"source": Source(item.run).digest}
    return about | {"left_out": outcome.why_not}


def of_study(
    item: Item, scale: Scale, seeds: Iterable[int], how: dict[str, str]
) -> dict[str, Any]:
    """The record of a study: its seeds, parts, and what they took."""
    seeds = sorted(seeds)
    at = [Scale(scale.mode, seed, scale.folder) for seed in seeds]
    files = [path for one in at if (path := item.kept(one, "jsonl"))]
    spent = {name: round(value, 1) for name, value in took(files).items()}
    return {"kind": "study", **how, "seeds": seeds, **spent}
