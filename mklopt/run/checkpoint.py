"""Checkpoints: a run that was killed goes on, bit for bit.

A run is deterministic: given what the kernels answer, the same solver with the same
options takes the same steps. So the file holds the answers of the kernels, and nothing
of the solver. A run that starts again takes all of its steps again, and what had
to be computed from many kernels comes from the file:

    key   a hash of (operation, numbers of the kernels, argument)
    value the result, and the time of the run when it was known

Recorded are results that took longer than LEAST_SECONDS, and long for their size. All
else is computed again: products with the kernels in use, the SVMs, Newton steps. Each
certified iterate has a record, too, with its time, so that a trace goes on with its
clock.

Guarantee. The result and the trace, except for its seconds, have the bits that they
would have without the kill. It needs kernels whose answers depend on the arguments
alone, and the same processor: elsewhere results are as valid, but the last bits may
differ, and then all is computed again from there on. A time limit and a callback are
asked again: where they read a clock, they may stop elsewhere.

The file holds at most MAX_BYTES; what comes later is computed again. A file of another
problem, solver, option, seed, start or version is refused. `tol` and limits may change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np

from ..problem import Problem, describe
from ..util.checks import short
from .clock import Clock
from .record_log import RecordLog, key_of

Array = np.ndarray
LEAST_NUMBERS = 5_000_000  # that an operation reads: fewer take a few milliseconds
LEAST_SECONDS = 0.05  # that it takes: less is computed again
RATE = 50e6  # bytes per second of computing that are worth a record
MAX_BYTES = 8_000_000_000  # of the file
PACKAGES = ("numpy", "scipy", "numba", "llvmlite")
NOTHING = np.empty(0)


class Checkpoint:
    """The answers of the kernels in a file, and the clock of the run."""

    def __init__(
        self, path: str | os.PathLike[str], identity: dict[str, Any], clock: Clock
    ):
        self.log, self.clock, self.used = RecordLog(path), clock, 0
        try:
            self._compare(self.log.begin(identity), identity)
        except BaseException:
            self.log.end = 0  # cut nothing off a file of others
            self.log.close()
            raise

    def _compare(self, kept: dict[str, Any], identity: dict[str, Any]) -> None:
        for name in identity | kept:
            before, value = kept.get(name), identity.get(name)
            if before != value:
                told = _told(name, before, value)
                raise ValueError(
                    f"the checkpoint {self.log.path} is of another run: {told}; delete "
                    "it, or give another path"
                )

    def answer(self, key: bytes) -> Array | None:
        """What an earlier process has recorded; the clock goes on to that time."""
        record = self.log.found.get(key)
        if record is None:
            return None
        self.used += 1
        self.clock.move_to(max(self.clock.seconds, record.numbers[0]))
        return self.log.array(key)

    def keep(self, key: bytes, array: Array, took: float) -> None:
        """Record a result if it took long."""
        plain = array.dtype == np.float64 and array.flags.c_contiguous
        worth = took >= LEAST_SECONDS and array.nbytes <= RATE * took
        if plain and worth and array.ndim <= 4:
            self._add(key, (self.clock.seconds, took), array)

    def times(self, row: dict[str, float]) -> dict[str, float]:
        """A row of the trace with the times it had when it was first written."""
        # Passes are a difference of counts: its last bits depend on earlier runs.
        said = [name for name in row if "seconds" not in name and name != "passes"]
        key = key_of("row", np.array([row[name] for name in said], float))
        record = self.log.found.get(key)
        if record is None:
            self._add(key, (row["seconds"], row["solver_seconds"]), NOTHING)
            return row
        self.clock.move_to(record.numbers[0])
        return row | dict(zip(("seconds", "solver_seconds"), record.numbers))

    def _add(self, key: bytes, numbers: tuple[float, float], array: Array) -> None:
        if self.log.end + array.nbytes > MAX_BYTES or self.log.file < 0:
            return
        try:
            self.log.add(key, numbers, array)
        except OSError as error:  # a full disk must not end a run of hours
            self.log.close()
            why = error.strerror or type(error).__name__
            warnings.warn(
                f"the checkpoint {self.log.path} cannot be written any more ({why}); "
                "the run goes on without it",
                RuntimeWarning,
                stacklevel=2,
            )


class Recorded:
    """A store whose expensive answers go to a checkpoint, or come from it."""

    def __init__(self, store: Any, checkpoint: Checkpoint):
        self.store, self.checkpoint = store, checkpoint

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["store"], name)

    def __reduce__(self) -> tuple:
        return _itself, (self.store,)  # in another process nothing is recorded

    def quad(self, index: Array, A: Array) -> Array:
        """As the store; recorded."""
        return self._ask("quad", index, A)

    def against(self, index: Array, S: Array) -> Array:
        """As the store; recorded."""
        return self._ask("against", index, S)

    def combine(self, index: Array, theta: Array) -> Array:
        """As the store; recorded."""
        return self._ask("combine", index, theta)

    def matvec(self, index: Array, A: Array) -> Array:
        """As the store; recorded."""
        return self._ask("matvec", index, A)

    def inside(self, index: Array, A: Array) -> Array:
        """As the store; recorded."""
        return self._ask("inside", index, A)

    def _ask(self, operation: str, index: Array, argument: Array) -> Array:
        ask, store = getattr(self.store, operation), self.store
        if len(index) * store.n**2 * store.cost < LEAST_NUMBERS:
            return np.asarray(ask(index, argument))
        key = key_of(operation, index, argument)
        found = self.checkpoint.answer(key)
        new = operation == "quad" and getattr(store, "squares", 0) is None
        if found is None:
            before = self.checkpoint.clock.seconds
            found = np.asarray(ask(index, argument))
            took = self.checkpoint.clock.seconds - before
            self.checkpoint.keep(key, found, took)
            if new and store.squares is not None:  # it was measured on the way
                self.checkpoint.keep(key_of("squares", index), store.squares, took)
        elif new:
            store.squares = self.checkpoint.answer(key_of("squares", index))
        return found


def _itself(store: Any) -> Any:
    return store


@contextmanager
def recording(
    path: str | os.PathLike[str] | None,
    problem: Problem,
    options: dict[str, Any],
    clock: Clock,
) -> Iterator[Checkpoint | None]:
    """Inside, what the kernels answer is recorded in the file; None: nothing is."""
    if path is None:
        yield None
        return
    checkpoint = Checkpoint(path, identity(problem, options), clock)
    clock.move_to(0.0)  # reading the file is no part of the run
    try:
        with problem.grams.asking(lambda store: Recorded(store, checkpoint)):
            yield checkpoint
    finally:
        checkpoint.log.close()


# ---- which run a file belongs to -----------------------------------------------------


def identity(problem: Problem, options: dict[str, Any]) -> dict[str, Any]:
    """What decides the steps of a run, as plain values."""
    parts = {
        "kernels": problem.grams.identity(),
        "labels": _hashed(problem.y),
        "C": _hashed(problem.C),
        "bias": problem.bias,
        "loss": _hashed(describe(problem.loss, problem)),
        "formulation": _hashed(describe(problem.formulation, problem)),
    }
    parts |= {name: _hashed(value) for name, value in options.items()}
    ours = sys.modules[__name__.split(".")[0]].__version__
    parts["version of mklopt"] = ours
    parts["version of Python"] = ".".join(map(str, sys.version_info[:2]))
    parts |= {f"version of {name}": version(name) for name in PACKAGES}
    return dict(json.loads(json.dumps(parts)))


def _hashed(value: Any) -> Any:
    """A short value as it is; a hash of a long one."""
    if value is None or isinstance(value, bool | int | float | str):
        return value if len(str(value)) < 80 else _hash(str(value))
    if isinstance(value, np.ndarray):
        return key_of(value).hex()
    if hasattr(value, "certificate"):  # a Result
        value = value.certificate
    if hasattr(value, "alpha"):  # a certificate
        value = (value.alpha, value.weights, value.coefficients)
    if isinstance(value, dict):
        value = sorted(value.items())
    if isinstance(value, list | tuple):
        parts = [_hashed(part) for part in value]
        text = json.dumps(parts)
        return parts if len(text) < 80 else _hash(text)
    return _hash(re.sub(r" at 0x[0-9a-f]+", "", repr(value)))  # of this process


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _told(name: str, before: Any, value: Any) -> str:
    """What differs, with both values where a person can read them."""
    if isinstance(value, str) and len(value) >= 32:
        return f"its {name} differ{'' if name.endswith('s') else 's'}"
    return f"its {name} was {short(before)}, now it is {short(value)}"
