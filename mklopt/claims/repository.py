"""The repository that a run was made in, as git knows it."""

from __future__ import annotations

import subprocess

from . import items

CODE = ("mklopt", "formulations", "reference", "papers/*.py", "papers/*/*.py")


def git(*words: str) -> str:
    """What a git command prints; empty where it fails or there is no repository."""
    command = ["git", "-C", str(items.ROOT), *words]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def commit() -> str:
    """The commit that is checked out; "+" where code differs from it."""
    found = git("rev-parse", "--short=12", "HEAD")
    changed = found and git("status", "--porcelain", "--", *CODE)
    return f"{found}+" if changed else found
