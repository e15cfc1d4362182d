"""All statements of a paper: papers/<key>/statements.toml.

    version = "JMLR 12 (2011) 953–997; numbers of equations are those of the journal"

    [data]
    sonar = "UCI, 208 samples, 60 features"

    [[statement]]
    place = "Table 4"
    says = "With r(d) = Σd SPG is an order of magnitude faster than SimpleMKL."
    claims = ["spg_beats_simplemkl"]

    [[statement]]
    place = "Section 5"
    says = "With 581,012 samples training takes 64 hours."
    reason = "the machine of the paper cannot be had"

A statement has claims, or a reason why it has none. Every claim belongs to a statement.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field

from . import items
from .empirical import Empirical
from .items import Paper


@dataclass(frozen=True)
class Statement:
    """What a paper says somewhere, and what was done about it."""

    place: str
    says: str
    claims: list[str] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True)
class Coverage:
    """The statements of a paper, the version of its text, its data."""

    version: str
    data: dict[str, str]
    statements: list[Statement]


def read(key: str) -> Coverage:
    """The statements of a paper; none where there is no file."""
    path = items.ROOT / "papers" / key / "statements.toml"
    known = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    stated = [Statement(**one) for one in known.get("statement", [])]
    return Coverage(known.get("version", ""), known.get("data", {}), stated)


def gaps(paper: Paper, known: Coverage) -> list[str]:
    """What is missing, in sentences; empty where all is covered."""
    said = [] if known.version else ["the version of the paper is not named"]
    for one in known.statements:
        if not one.claims and not one.reason:
            said.append(f"{one.place}: neither a claim nor a reason: {one.says}")
        wrong = [name for name in one.claims if name not in paper.claims]
        said += [f"{one.place}: there is no claim {name}" for name in wrong]
    covered = {name for one in known.statements for name in one.claims}
    said += [
        f"{name} belongs to no statement" for name in paper.claims.keys() - covered
    ]
    for claim in paper.claims.values():
        if isinstance(claim, Empirical):
            lost = [name for name in claim.data if name not in known.data]
            said += [f"{claim.name}: no source for the data {name}" for name in lost]
    return said
