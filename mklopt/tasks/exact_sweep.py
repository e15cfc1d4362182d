"""K_mα of exact kernels, streamed: bands of rows, each on disk before the next begins.

    (K_mα)_i = Σ_{j: α_j ≠ 0} k_m(x_i, x_j) α_j        all i, all m, entries not stored

The file of a sweep is append-only: a header that names the sweep, then one record per
band, each with the SHA-256 of its content. Whatever kills the process costs the band
that it was working on: a record that is not whole at the end of the file is cut off,
and the sweep goes on after it. A band has the same bits whoever computes it, so that
the result does not depend on interruptions. A file of another sweep is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import dataclass
from typing import IO

import numpy as np

from ..kernels.entries import Entries, Products
from ..run.pace import Pace, in_words
from ..util.checks import check_path
from ..util.files import lock

Array = np.ndarray
BAND_WORK = 4e8  # entries of a band, over all features sets: a few seconds
TRIAL_WORK = 3e7  # entries that are timed for an estimate
HEAD = struct.Struct("<8sqq")  # a word, and the first and the last row
WORD = b"mklband1"


@dataclass(frozen=True)
class Cost:
    """What a sweep takes, measured on a part of it.

    Parameters
    ----------
    rows, columns : int
        All points, and those with α ≠ 0.
    kernels : int
    seconds : float
        For the whole sweep, on the threads in use now.
    megabytes : float
        Of memory, besides the data and the factors.
    """

    rows: int
    columns: int
    kernels: int
    seconds: float
    megabytes: float

    def __str__(self) -> str:
        return (
            f"about {in_words(self.seconds)} and {self.megabytes:.0f} MB for "
            f"{self.rows:,} × {self.columns:,} entries of {self.kernels} kernels"
        )


class Sweep:
    """K_mα for one α: its cost, and the products with a bound of their error."""

    def __init__(self, entries: Entries, alpha: Array):
        self.entries = entries
        columns = alpha.reshape(entries.n, -1)
        which = np.flatnonzero(np.any(columns != 0, axis=1))
        which = which if len(which) else np.arange(1)
        self.products = Products(entries, which, np.ascontiguousarray(columns[which]))
        self.n, self.columns = entries.n, len(which)

    @property
    def band(self) -> int:
        """The rows of a band."""
        rows = int(BAND_WORK / (self.columns * len(self.entries.groups)))
        return min(max(rows, 32), self.n)

    def cost(self) -> Cost:
        """What the sweep will take; it computes a few rows twice."""
        rows = int(TRIAL_WORK / (self.columns * len(self.entries.groups)))
        rows = min(max(rows, 64), self.n)
        self.products.at(slice(0, min(8, self.n)))  # compiled, if it was not yet
        pace = Pace("", self.n, False)
        self.products.at(slice(0, rows))
        pace.step(rows)
        k, M = self.products.k, self.entries.M
        numbers = M * k * (self.n + self.columns) + 2 * self.columns * 64
        seconds = pace.seconds * self.n / rows
        return Cost(self.n, self.columns, M, seconds, 8 * numbers / 1e6)

    def run(self, path: str | os.PathLike | None, verbose: bool) -> Array:
        """(M, n, k): the products at all points."""
        out = np.empty((self.entries.M, self.n, self.products.k))
        if path is None:
            self._fill(out, 0, None, verbose)
            return out
        check_path(path)
        with open(path, "a+b") as file:
            _lock(file, path)
            begin = _read(file, path, self.name(), out)
            self._fill(out, begin, file, verbose)
        return out

    def _fill(self, out: Array, begin: int, file: IO | None, verbose: bool) -> None:
        pace = Pace("exact kernels", self.n, verbose, begin)
        for first in range(begin, self.n, self.band):
            last = min(first + self.band, self.n)
            out[:, first:last] = self.products.at(slice(first, last))
            if file is not None:
                _append(file, first, last, out[:, first:last])
            pace.step(last - first)

    def name(self) -> str:
        """A hash of all that the products depend on."""
        h, entries = hashlib.sha256(b"mklopt exact sweep 1"), self.entries
        for group in entries.groups:
            columns = group.kernel.columns
            some = list(columns) if isinstance(columns, tuple) else "all"
            said: list = [list(group.numbers), group.kind, str(group.kernel.view), some]
            said += [entries.spherical, entries.traces[list(group.numbers)].tolist()]
            h.update(json.dumps(said).encode())
            h.update(group.degrees.astype("<i8").tobytes())
            h.update(group.factors.astype("<f8").tobytes())
        for block in entries.blocks.values():
            h.update(np.ascontiguousarray(block, "<f8").data)
        h.update(self.products.which.astype("<i8").tobytes())
        h.update(np.ascontiguousarray(self.products.coefficients, "<f8").data)
        return h.hexdigest()


# ---- the file ------------------------------------------------------------------------


def _lock(file: IO, path: str | os.PathLike) -> None:
    try:
        lock(file.fileno())
    except OSError:
        raise ValueError(f"{path} is in use by another process; wait for it") from None


def _append(file: IO, first: int, last: int, part: Array) -> None:
    """One record in one piece, on the disk when this returns."""
    body = HEAD.pack(WORD, first, last) + np.ascontiguousarray(part, "<f8").tobytes()
    file.write(body + hashlib.sha256(body).digest())
    file.flush()
    os.fsync(file.fileno())


def _read(file: IO, path: str | os.PathLike, name: str, out: Array) -> int:
    """Fill `out` from the file, cut off what is not whole; the first row to compute."""
    header = json.dumps({"kind": "exact sweep", "name": name}).encode() + b"\n"
    file.seek(0)
    found = file.read(len(header))
    if found != header:
        if not header.startswith(found):
            raise ValueError(
                f"{path} belongs to another sweep: data, kernels or dual point differ; "
                "give another file, or delete it"
            )
        file.truncate(0)  # empty, or a header that was not finished
        file.write(header)
        file.flush()
        return 0
    M, n, k = out.shape
    row, end = 0, len(header)
    while True:
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            break
        word, first, last = HEAD.unpack(head)
        if word != WORD or first != row or not first < last <= n:
            break
        size = 8 * M * (last - first) * k
        body, digest = file.read(size), file.read(32)
        if len(digest) < 32 or hashlib.sha256(head + body).digest() != digest:
            break
        out[:, first:last] = np.frombuffer(body, "<f8").reshape(M, last - first, k)
        row, end = last, end + HEAD.size + size + 32
    file.truncate(end)
    file.seek(0, os.SEEK_END)
    return row
