"""The process of a candidate: started, asked, timed and ended by the judge.

The judge never runs code of the candidate. A child runs it (trial.py); what comes back
is bytes (answer.py), with a time limit on the clock of the judge. A child that does not
answer in time is killed with all processes it started, and replaced for the next
question.

The child (child.py) finds neither the exam nor pytest in its arguments, environment and
list of modules.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from socket import socket
from typing import Any

from ...problem import Problem
from .answer import MAX_BYTES, Answer, unpack
from .child import Forked, Spawned, started

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
        self.solver, self.pairs, self.limit = solver, pairs, limit
        self.child: Forked | Spawned | None = None

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
        if self.child is not None:
            return self._timed(which, patience(self.limit))
        first = self._timed(which, patience(self.limit) + START_UP)
        if self.child is None or first.seconds <= patience(self.limit):
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
        try:
            if self.child is None:
                self.child = started(self.solver, self.pairs, self.limit)
            line, deadline = self.child.line, time.monotonic() + allowed
            line.sendall(b"%d\n" % which)
            (size,) = struct.unpack("<Q", _read(line, 8, deadline))
            if size > MAX_BYTES:
                raise Silent("bad answer", f"an answer of {size} bytes")
            return _read(line, size, deadline)
        except TimeoutError:
            words = f"no answer within {allowed:.3g} s: its process was ended"
            raise Silent("hangs", words) from None
        except OSError:
            raise Silent("died", self._epitaph()) from None

    def _epitaph(self) -> str:
        """How the process ended, once it has."""
        for _ in range(100 if self.child else 0):
            code = self.child.exit_code() if self.child else None
            if code is not None:
                return f"its process ended with exit code {code}"
            time.sleep(0.01)
        return "its process closed the line to the judge"

    def end(self) -> None:
        """Kill the other process, and all that it started."""
        if self.child is not None:
            self.child.kill()
            self.child = None


def _read(line: socket, size: int, deadline: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        line.settimeout(max(deadline - time.monotonic(), 1e-3))
        part = line.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionError
        parts += part
    return bytes(parts)
