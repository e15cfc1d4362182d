"""What git says of registrations and results.

A result is worth something only if its rule was stated first. For each published result
with a registration this is checked on the history of the repository:

    the commit that added the registration is an ancestor of the one that added the
    result, and another one;
    it is an ancestor of the commit that the result was made on, or the same;
    no commit took a line out of a registry.
"""

from __future__ import annotations

from . import items
from .records import read
from .registry import registrations
from .repository import git


def committed(key: str, registration: str) -> bool:
    """Whether a registration is in the commit that is checked out; no git: yes."""
    if not git("rev-parse", "HEAD"):
        return True
    return registration in git("show", f"HEAD:{_registry(key)}")


def check(key: str) -> list[str]:
    """What is wrong with the order of registrations and results, in sentences."""
    return [*_removed(key), *_late(key)]


def _registry(key: str) -> str:
    return f"papers/{key}/registry.jsonl"


def _removed(key: str) -> list[str]:
    log = git("log", "--format=%h", "--numstat", "--no-merges", "--", _registry(key))
    said, at = [], ""
    for line in log.splitlines():
        words = line.split()
        if len(words) == 1:
            at = words[0]
        elif len(words) == 3 and words[1] != "0":
            said.append(f"{key}: {at} takes {words[1]} lines out of the registry")
    return said


def _late(key: str) -> list[str]:
    said = []
    known = {line["registration"] for line in registrations(key)}
    for mode in ("quick", "full"):
        results = items.ROOT / "papers" / key / "results"
        for name, record in sorted(read(results, mode).items()):
            registration = record.get("registration")
            if registration:
                where = f"{key} {name}, {mode}"
                path = f"papers/{key}/results/{mode}.json"
                wrong = _order(key, registration, path, record["commit"])
                if registration not in known:
                    wrong = "its registration is not in the registry"
                said += [f"{where}: {wrong}"] if wrong else []
    return said


def _order(key: str, registration: str, path: str, made_on: str) -> str:
    """Why a registration does not precede a result; empty where it does."""
    registered, published = (
        _added(_registry(key), registration),
        _added(path, registration),
    )
    if not registered:
        return "its registration is not committed"
    if made_on.endswith("+"):
        return f"it was made on {made_on}: commit the code, then run"
    if not _before(registered, made_on):
        return f"it was made on {made_on}, before it was registered in {registered}"
    if published and published == registered:
        return f"{published} has both the registration and the result"
    if published and not _before(registered, published):
        return f"it was published in {published}, before {registered} registered it"
    return ""


def _added(path: str, text: str) -> str:
    """The first commit in which a file has a text."""
    found = git("log", "--reverse", "--format=%h", f"-S{text}", "--", path)
    return found.split("\n")[0]


def _before(one: str, other: str) -> bool:
    """Whether a commit is an ancestor of another, or the same."""
    return bool(other) and git("merge-base", one, other)[: len(one)] == one
