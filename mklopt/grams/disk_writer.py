"""Kernels to a file: in one stream, whole or not at all, resumable after a kill.

Rows go to PATH.part, which becomes PATH when all are there. If a write was stopped, the
next one with the same kernels goes on: rows of PATH.part that prove themselves
(disk_format.py) are kept, the first that does not and all after it are written again.
Whether the kernels are the same is checked: kernels that come one after the other have
to be made again and are all compared; where any kernel can be made alone, so are the
first, the middle and the last row that are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import numpy as np

from ..util.checks import check_path
from ..util.files import (
    forget_cached,
    lock,
    open_raw,
    read_at,
    read_into,
    sync_content,
    sync_folder,
    write_at,
)
from .disk_format import (
    BATCH_BYTES,
    TAIL,
    Path,
    Table,
    first_broken,
    header,
    samples_of,
    seal,
    sealed_sizes,
    tail,
)
from .loops import TOGETHER
from .storage import Triangles
from .validation import NO_KERNELS, matrix, place, refuse_indefinite

Array = np.ndarray
SYNC_BYTES = 2**28  # written between two waits for the disk


class Parts:
    """M kernels that can be made in any order, as packed triangles.

    part(first, last): the kernels first, …, last − 1 of n samples, of this type
    """

    def __init__(
        self, M: int, n: int, dtype: np.dtype, part: Callable[[int, int], Triangles]
    ):
        self.M, self.part, self.step = M, part, batch(n, dtype)

    def stream(self, first: int) -> Iterator[Triangles]:
        """All kernels from this one on, in parts of about BATCH_BYTES."""
        for k in range(first, self.M, self.step):
            yield self.part(k, min(k + self.step, self.M))


class Matrices:
    """(n, n) arrays that come one after the other, checked as GramStack(K) does."""

    def __init__(self, given: Iterable[Any], dtype: np.dtype):
        self.given, self.dtype = given, dtype

    def stream(self) -> Iterator[Triangles]:
        """All kernels, in parts of about BATCH_BYTES."""
        store: Triangles | None = None
        coarse, here, number = self.dtype == np.float32, 0, 0
        for given in self.given:
            kernel = matrix(given, number, None if store is None else store.n)
            if store is None:
                n = len(kernel)
                store = Triangles(n, batch(n, self.dtype), "packed", self.dtype)
            coarse |= place(store, here, given, kernel, number)
            here, number = here + 1, number + 1
            if here == len(store.P):
                yield _checked(store, here, coarse, number - here)
                here = 0
        if store is None:
            raise ValueError(NO_KERNELS)
        if here:
            yield _checked(store, here, coarse, number - here)


def _checked(store: Triangles, count: int, coarse: bool, first: int) -> Triangles:
    part = Triangles(store.n, count, "packed", store.dtype, store.P[:count])
    refuse_indefinite(part, coarse, first)
    return part


def batch(n: int, dtype: np.dtype) -> int:
    """How many kernels of n samples are written at a time."""
    fours = BATCH_BYTES // (TOGETHER * n * (n + 1) // 2 * dtype.itemsize)
    return TOGETHER * max(fours, 1)


def write_kernels(path: Path, kernels: Parts | Matrices, dtype: np.dtype) -> None:
    """Write all kernels to the file, or leave what was there."""
    check_path(path)
    target = os.path.abspath(path)
    folder, partial = os.path.dirname(target), f"{target}.part"
    os.makedirs(folder, exist_ok=True)
    handle = open_raw(partial, os.O_RDWR | os.O_CREAT)
    try:
        _lock(handle, path)
        with tempfile.TemporaryFile(dir=folder) as diagonals:
            _Writing(handle, diagonals, dtype).run(kernels)
        if os.name == "nt":  # Windows renames and removes no open file
            os.close(handle)
            handle = -1
        os.replace(partial, target)
        sync_folder(folder)
    except ValueError:  # these are no kernels: there is nothing to go on with
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    finally:
        if handle >= 0:
            os.close(handle)


def _lock(handle: int, path: Path) -> None:
    try:
        lock(handle)
    except OSError:
        raise RuntimeError(f"{path} is being written by another process") from None


class _Writing:
    """One write: the rows that are there, the rows that come, and the tables."""

    def __init__(self, handle: int, diagonals: IO[bytes], dtype: np.dtype):
        self.handle, self.diagonals, self.dtype = handle, diagonals, dtype
        self.n, self.number, self.unsynced = 0, 0, 0  # number: of the next kernel
        self.sizes: list[Array] = []
        self.there: list[bytes] = []  # tails of rows that need not be written

    def run(self, kernels: Parts | Matrices) -> None:
        """Keep what is there of these kernels, and write the others."""
        self._verify()
        if isinstance(kernels, Matrices):
            self._to_the_first()
            parts = kernels.stream()
        else:
            if not self._same(kernels):
                self._to_the_first()
                self.there = []
            parts = kernels.stream(self.number)
        for part in parts:
            self._put(part)
        self._finish()

    @property
    def table(self) -> Table:
        """Where the rows of kernels are in the file."""
        width = self.n * (self.n + 1) // 2 + tail(self.dtype)
        head = len(header((0, width), self.dtype))
        return Table(head, self.number, width, self.dtype)

    # ---- what is there ---------------------------------------------------------------

    def _verify(self) -> None:
        """Note the rows that prove themselves, up to the first that does not."""
        self.n = self._samples_there()
        if self.n == 0:
            return
        rows = np.empty((batch(self.n, self.dtype), self.table.width), self.dtype)
        whole = True
        while whole:
            end = self.table.end
            count = read_into(self.handle, rows.data.cast("B"), end)
            count //= self.table.stride
            broken = first_broken(rows[:count], self.number + np.arange(count))
            good = rows[: count if broken is None else broken]
            self._note(good)
            self.there += _tails(good)
            forget_cached(self.handle, end, good.nbytes)
            whole = len(good) == len(rows)

    def _samples_there(self) -> int:
        """n of the file that was begun; 0 if there is none, or of another type."""
        start = read_at(self.handle, 128, 0)
        found = re.search(rb"\(0, (\d{1,18})\)", start)
        n = samples_of(int(found[1]) - tail(self.dtype)) if found else 0
        width = n * (n + 1) // 2 + tail(self.dtype)
        return n if start == header((0, width), self.dtype) else 0

    def _same(self, kernels: Parts) -> bool:
        """Whether some rows that are there are those of these kernels."""
        if not 0 < self.number <= kernels.M:
            return False
        for m in {0, self.number // 2, self.number - 1}:
            part = kernels.part(m, m + 1)
            if (
                part.n != self.n
                or _tails(self._sealed(part, m)) != self.there[m : m + 1]
            ):
                return False
        return True

    def _to_the_first(self) -> None:
        self.number, self.sizes = 0, []
        self.diagonals.seek(0)
        self.diagonals.truncate()

    # ---- what comes ------------------------------------------------------------------

    def _put(self, part: Triangles) -> None:
        """Write the next kernels, if they are not there."""
        if part.n != self.n:
            self.n, self.there = part.n, []
        if self.number == 0:
            self._write(0, header((0, self.table.width), self.dtype))
        rows = self._sealed(part, self.number)
        if self.there[self.number : self.number + len(rows)] != _tails(rows):
            self.there = []
            self._write(self.table.end, rows.data)
        self._note(rows)

    def _sealed(self, part: Triangles, first: int) -> Array:
        rows = np.zeros((len(part.P), part.size + tail(self.dtype)), self.dtype)
        rows[:, : part.size] = part.P
        seal(rows, first, part.root_sizes)
        return rows

    def _note(self, rows: Array) -> None:
        """Remember the sizes and diagonals of the next rows."""
        diagonals = np.zeros((len(rows), self.n + tail(self.dtype)), self.dtype)
        starts = Triangles(self.n, 0, "packed", self.dtype).starts
        diagonals[:, : self.n] = rows[:, starts]
        seal(diagonals, self.number)
        self.diagonals.write(diagonals.data)
        self.sizes.append(sealed_sizes(rows))
        self.number += len(rows)

    def _finish(self) -> None:
        """Write the tables, then the header with the number of kernels."""
        if self.number == 0:
            raise ValueError(NO_KERNELS)
        table, M = self.table, self.number
        end = self._write(table.end, header((M, self.n + tail(self.dtype)), self.dtype))
        self.diagonals.seek(0)
        while some := self.diagonals.read(BATCH_BYTES):
            end = self._write(end, some)
        sizes = np.zeros((1, M + tail(np.dtype(float))))
        sizes[0, :M] = np.concatenate(self.sizes)
        seal(sizes, 0)
        end = self._write(end, header(sizes.shape, sizes.dtype))
        end = self._write(end, sizes.data)
        os.ftruncate(self.handle, end)
        self._write(0, header((M, table.width), self.dtype))
        os.fsync(self.handle)
        forget_cached(self.handle, 0, end)

    def _write(self, at: int, given: bytes | memoryview) -> int:
        """Write bytes; returns the first byte after them."""
        left = memoryview(given).cast("B")
        begin = at
        while len(left):
            done = write_at(self.handle, left, at)
            at, left = at + done, left[done:]
        self.unsynced += at - begin
        if self.unsynced > SYNC_BYTES:
            sync_content(self.handle)
            forget_cached(self.handle, 0, at)
            self.unsynced = 0
        return at


def _tails(rows: Array) -> list[bytes]:
    return [end.tobytes() for end in rows.view(np.uint8)[:, -TAIL:]]
