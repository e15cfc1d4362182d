"""The process of a candidate: started, asked, timed and ended by the judge.

The judge never runs code of the candidate. A child runs it (trial.py); what comes back
is bytes (answer.py), with a time limit on the clock of the judge. A child that does not
answer in time is killed with all processes it started, and replaced for the next
question.

The child is forked from a thread, so that nothing but trial.py is on its stack, and it
finds neither the exam nor pytest in its arguments, environment and list of modules.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from ...problem import Problem
from . import trial
from .answer import MAX_BYTES, Answer, unpack

START_UP = 60.0  # seconds more for the first answer: imports, and code to be compiled
Pair = tuple[Problem, float]  # what is asked: the problem, and the gap to reach


class Silent(Exception):
    """The other process does not answer: what happened, in words."""


def patience(limit: float) -> float:
    """How long an answer may take, from question to answer, on a busy computer."""
    return 1.1 * limit + 0.5


class Trials:
    """All trials of one solver, one after the other in one other process.

    solver: an object, or "module:name", which only the other process imports
    """

    def __init__(self, solver: Any, pairs: Sequence[Pair], limit: float):
        if not hasattr(os, "fork"):
            raise ValueError(
                "solvers are judged in a process of their own, which this system "
                "cannot fork; use Linux or macOS"
            )
        self.solver, self.pairs, self.limit = solver, pairs, limit
        self.pid = 0

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()

    def statement(self) -> dict[str, Any]:
        """What a solver "module:name" states about itself; ValueError without one."""
        try:
            found = json.loads(self._ask(-1, START_UP))
        except Silent as error:
            self.end()
            raise ValueError(f"importing {self.solver}: {error.args[1]}") from None
        if "error" in found:
            raise ValueError(str(found["error"]))
        return found

    def run(self, which: int) -> Answer:
        """The answer to one question; a process that takes too long is killed.

        A new process has more time: it imports and compiles. Then it is asked again.
        """
        if self.pid:
            return self._timed(which, patience(self.limit))
        first = self._timed(which, patience(self.limit) + START_UP)
        if not self.pid or first.seconds <= patience(self.limit):
            return first
        return self._timed(which, patience(self.limit))

    def _timed(self, which: int, allowed: float) -> Answer:
        begun = time.perf_counter()
        try:
            answer = unpack(self._ask(which, allowed))
        except Silent as error:
            kind, words = error.args
            answer = Answer(kind, words)
            self.end()
        except ValueError as error:
            answer = Answer("bad answer", str(error))
            self.end()
        return replace(answer, seconds=time.perf_counter() - begun)

    def _ask(self, which: int, allowed: float) -> bytes:
        if not self.pid:
            self._begin()
        deadline = time.monotonic() + allowed
        try:
            self.line.sendall(b"%d\n" % which)
            (size,) = struct.unpack("<Q", self._read(8, deadline))
            if size > MAX_BYTES:
                raise Silent("bad answer", f"an answer of {size} bytes")
            return self._read(size, deadline)
        except TimeoutError:
            words = f"no answer within {allowed:.3g} s: its process was ended"
            raise Silent("hangs", words) from None
        except OSError:
            raise Silent("died", self._epitaph()) from None

    def _read(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self.line.settimeout(max(deadline - time.monotonic(), 1e-3))
            part = self.line.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionError
            parts += part
        return bytes(parts)

    def _epitaph(self) -> str:
        """How the process ended, once it has."""
        for _ in range(100):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._kill_group()
                self.pid = 0
                code = os.waitstatus_to_exitcode(status)
                return f"its process ended with exit code {code}"
            time.sleep(0.01)
        return "its process closed the line to the judge"

    def _begin(self) -> None:
        self.line, other = socket.socketpair()
        self.pid = _forked(other, self.line, self.solver, self.pairs, self.limit)
        other.close()

    def end(self) -> None:
        """Kill the other process, and all that it started."""
        if self.pid:
            self._kill_group()
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        if hasattr(self, "line"):
            self.line.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


@cache
def _neutral() -> dict[str, Any]:
    """What trial.py defines, under names of files and modules that tell nothing."""
    space: dict[str, Any] = {"__name__": "__main__"}
    source = Path(trial.__file__).read_text("utf-8")
    exec(compile(source, "<string>", "exec"), space)
    return space


def _forked(*work: Any) -> int:
    """The number of a new process that does this work, with an empty stack."""
    pids: list[int] = []
    target = partial(_neutral()["fork"], pids, *work)
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Threads of numerical libraries survive a fork: they are idle here.
        warnings.simplefilter("ignore", DeprecationWarning)
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    return pids[0]
