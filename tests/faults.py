"""Real faults for tests: full disks, killed processes, users who may not write."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """Inside, no file of this process or its children grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A disk of this size, mounted at a folder; skips where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def enlarge(folder: Path, size: str) -> None:
    """Give a disk of `small_disk` another size."""
    command = ["mount", "-o", f"remount,size={size}", str(folder)]
    subprocess.run(command, check=True)


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and theirs."""
    found: set[int] = set()
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, file.read_text().split()):
                found |= {child} | descendants(child)
    return found


def command_of(pid: int) -> str:
    """The command line of a process; "" when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def workers(pid: int) -> set[int]:
    """The workers of joblib that a process has started."""
    return {p for p in descendants(pid) if "loky" in command_of(p)}


def all_end(pids: set[int], seconds: float = 15.0) -> bool:
    """Whether these processes end by themselves in time; those left are killed."""
    until = time.monotonic() + seconds
    alive = set(pids)
    while alive and time.monotonic() < until:
        alive = {pid for pid in alive if command_of(pid)}
        time.sleep(0.05)
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not alive


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")  # but still root


def reader_of(folder: Path) -> tuple[str, ...]:
    """The beginning of a command whose process can read a folder and not write to it.

    The superuser may write anywhere: then it is another user, or has no such power.
    """
    code = "import os, sys, numpy; can = lambda how: os.access(sys.argv[1], how); "
    code += "sys.exit(can(os.W_OK) or not can(os.R_OK))"
    for prefix in ((), NOBODY, POWERLESS):
        command = [*prefix, sys.executable, "-c", code, str(folder)]
        with suppress(OSError):
            if subprocess.run(command, cwd=folder, capture_output=True).returncode == 0:
                return prefix
    pytest.skip("no user is known that can run Python and not write to a folder")
