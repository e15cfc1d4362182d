"""Claims are registered before they are run: papers/<key>/registry.jsonl.

Each line is a registration: statement and place, what is measured, on which data, with
which seeds, the rule with its bounds, the controls, and the hash of their source. The
name of a registration is the hash of all that. Lines are only appended. A claim that is
changed needs a new line, and a reason where results were known; results name the
registration that they were made under, and those of an old one are not shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..util.files import checksum
from . import items
from .bounds import Bound
from .empirical import Empirical
from .items import Claim, Paper

APART = ("registration", "why", "before", "seen")  # what the hash does not cover


class NotRegistered(ValueError):
    """An empirical claim was not registered as it is now."""


def path_of(key: str) -> Path:
    """The file with the registrations of a paper."""
    return items.ROOT / "papers" / key / "registry.jsonl"


def registrations(key: str) -> list[dict[str, Any]]:
    """The lines of a paper, oldest first."""
    path = path_of(key)
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def content(claim: Empirical) -> dict[str, Any]:
    """What is registered of a claim."""
    controls = {control.statement: _said(control.rule) for control in claim.controls}
    about = {
        "claim": claim.name, "place": claim.place, "statement": claim.words,
        "measured": claim.measured, "data": claim.data,
        "seeds": {"quick": claim.seeds, "full": claim.full_seeds},
        "interval": claim.kind, "rule": _said(claim.rule), "controls": controls,
        "whole": claim.whole, "stand_in": claim.stand_in,
        "source": claim.source.digest,
    }  # fmt: skip
    return json.loads(json.dumps(about))


def _said(rule: Mapping[str, Bound]) -> dict[str, str]:
    return {name: bound.words() for name, bound in rule.items()}


def digest(about: dict[str, Any]) -> str:
    """The name of a registration."""
    body = {name: value for name, value in about.items() if name not in APART}
    return checksum(body)[:16]


def present(claim: Empirical) -> str:
    """The name that the registration of a claim has, as the claim is now."""
    return digest(content(claim))


def check(claim: Empirical) -> str:
    """The name of the claim's registration; an error where it has none."""
    name = present(claim)
    if name not in [line["registration"] for line in registrations(claim.paper)]:
        raise NotRegistered(
            f"{claim.name} is not registered as it is now: "
            f"`mklopt paper {claim.paper} --register`, commit, then run"
        )
    return name


def empirical_of(paper: Paper) -> list[Empirical]:
    """The claims of a paper that have to be registered."""
    claims: list[Claim] = list(paper.claims.values())
    return [claim for claim in claims if isinstance(claim, Empirical)]


def published(key: str) -> dict[str, str]:
    """The verdicts that are known of registered claims, by name."""
    found = {}
    for mode in ("quick", "full"):
        path = path_of(key).parent / "results" / f"{mode}.json"
        known = json.loads(path.read_text("utf-8")) if path.exists() else {}
        for name, record in known.items():
            if record.get("registration"):
                found[name] = f"{mode}: {record['verdict']}"
    return found


def register(
    paper: Paper, verdicts: dict[str, str], why: str = ""
) -> list[dict[str, Any]]:
    """Append what is not registered yet; returns the new lines.

    verdicts: what was published of claims, by name;  why: the reason for a new rule,
    asked for where one of them changed after its result was known
    """
    known = registrations(paper.key)
    names = {line["registration"] for line in known}
    last = {line["claim"]: line["registration"] for line in known}
    added = []
    for claim in empirical_of(paper):
        if not claim.controls:
            raise ValueError(f"{claim.name} has no control: add one before registering")
        about = content(claim)
        line = {"registration": digest(about), **about}
        if line["registration"] in names:
            continue
        if claim.name in last:
            seen = verdicts.get(claim.name, "")
            if seen and not why:
                raise ValueError(
                    f"{claim.name} was changed after its result was known ({seen}): "
                    "say why with --why"
                )
            line |= {"before": last[claim.name], "why": _why(seen, why), "seen": seen}
        added.append(line)
    _append(path_of(paper.key), added)
    return added


def _why(seen: str, why: str) -> str:
    return f"{why} (before: {seen})" if seen else why or "no result was known"


def _append(path: Path, lines: list[dict[str, Any]]) -> None:
    if not lines:
        return
    with open(path, "a", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
