"""Files of kernels: what they hold, and how they are read past the page cache.

A file of our own is three NumPy arrays, one after the other (numpy.load reads them):

    kernels     (M, L + tail)  of float64 or float32. Each row is the upper triangle of
                a kernel, L = n(n + 1)/2, and TAIL bytes: an upper bound of √λ_max
                (float64) and the CRC-32 of all before it in this row, seeded with the
                number of the kernel
    diagonals   (M, n + tail)  with tails of the same kind, the bound left 0
    sizes       (1, M + 2)     all bounds of √λ_max again, so that opening is quick

A row proves itself: it is checked each time that it is read, while it is in memory, and
a file that was written in part is good up to its first row that is not.

Why this format. n = 1000, M = 500 in float64, 2 GB, two cores, cold, in seconds:

                                              write     read
    this file, checked, with a quad           2.5       1.1 – 1.5
    zarr 3, uncompressed, CRC-32C, no quad    2.9 – 3.5   1.2 – 1.3
    plain reads of 32 MB, past the cache                1.5 – 1.8

So zarr is as fast. But it needs five more packages, has one file per kernel (or shards,
which are written whole), reads through the page cache into new memory each time, and
the rest (diagonals, bounds, resuming, order) would still be ours. A .npy needs NumPy
alone and can be read into buffers that are used again. CRC-32 runs at 4.2 GB/s here,
faster than the disk, and detects every change of up to 32 neighbouring bits; BLAKE2
(0.9 GB/s) would be slower than the disk.

An array (M, n, n) of somebody else, in one .npy, is read as it is: MatrixFile packs its
matrices as they come, and refuses what GramStack(K) refuses.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..util.checks import check_path
from ..util.files import forget_cached, open_raw, read_into
from .loops import TOGETHER
from .storage import Triangles, in_order
from .validation import matrices, matrix, place, refuse_indefinite

Array = np.ndarray
Part = TypeVar("Part")
Path = str | os.PathLike[str]
TAIL = 16  # bytes after the numbers of a row
PAGE = 4096  # bytes: reads past the cache begin and end at multiples of it
BATCH_BYTES = 2**25  # read at a time; smaller reads are slower
SPAN_BYTES = 2**23  # read at a time, if rows are moved or packed afterwards
BUFFERS, READERS = 4, 3  # one batch is computed with, three are read and checked
GAP_BYTES = 2**20  # to read what is not needed takes as long as to begin another read
DIRECT = getattr(os, "O_DIRECT", 0)


class Refused(ValueError):
    """A file that does not hold kernels, or not those that were written."""


# ---- bytes ---------------------------------------------------------------------------


class Buffer:
    """Memory for one batch: bytes as they come, or rows and behind them such bytes."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PAGE)

    def __len__(self) -> int:
        return len(self._memory)

    def memory(self, size: int) -> mmap.mmap:
        """At least so many bytes, which begin at a page; larger memory is new."""
        if len(self) < size:
            self._memory = mmap.mmap(-1, _pages(size))
        return self._memory

    def rows(self, count: int, width: int, dtype: np.dtype, behind: int) -> Array:
        """(count, width) numbers, with room for a read of so many bytes behind them."""
        size = count * width * dtype.itemsize
        memory = self.memory(_pages(size) + _pages(behind) + PAGE)
        return np.frombuffer(memory, dtype, count * width).reshape(count, width)


def _pages(size: int) -> int:
    """The bytes of the pages that have so many bytes."""
    return -(-size // PAGE) * PAGE


class Bytes:
    """A file that is read in pieces; nothing of it stays in the page cache."""

    def __init__(self, path: Path):
        check_path(path)
        self.path, self.direct = os.fspath(path), bool(DIRECT)
        try:
            self._file = open_raw(path, os.O_RDONLY | DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._file, self.direct = open_raw(path, os.O_RDONLY), False
        self.size = os.fstat(self._file).st_size
        self.bytes_read, self._lock = 0, Lock()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def read(
        self, at: int, size: int, buffer: Buffer, behind: int = 0
    ) -> tuple[mmap.mmap, int]:
        """Memory, and where in it the bytes at … at + size are.

        They are behind the first `behind` bytes. The read begins at a page before them,
        and ends at a page after them. At the end of the file there may be fewer bytes:
        the caller knows the size of the file.
        """
        first, last, place = at // PAGE * PAGE, _pages(at + size), _pages(behind)
        memory, have = buffer.memory(place + last - first), 0
        view = memoryview(memory)[place:]
        while first + have < at + size:
            got = self._some(view[have : last - first], first + have)
            if got == 0:
                raise Refused(f"{self.path} is shorter than when it was opened")
            have += got
        with self._lock:
            self.bytes_read += have
        if not self.direct:
            forget_cached(self._file, first, have)
        return memory, place + at - first

    def _some(self, view: memoryview, at: int) -> int:
        try:
            return read_into(self._file, view, at)
        except OSError as error:
            if error.errno != errno.EINVAL or not self.direct:
                raise
        os.close(self._file)  # this file system has no reads past the cache
        self._file, self.direct = open_raw(self.path, os.O_RDONLY), False
        return read_into(self._file, view, at)


def ahead(
    load: Callable[[Part, Buffer], Any], parts: Iterable[Part], buffers: list[Buffer]
) -> Iterator[tuple[Part, Any]]:
    """(part, load(part, buffer)) in order; the next ones are loaded meanwhile.

    What was loaded is valid until the next one is asked for.
    """
    left, waiting = iter(parts), deque[Any]()
    with ThreadPoolExecutor(READERS, "mklopt-disk") as pool:

        def submit(buffer: Buffer) -> None:
            for part in islice(left, 1):
                waiting.append((part, pool.submit(load, part, buffer), buffer))

        try:
            for buffer in buffers:
                submit(buffer)
            while waiting:
                part, job, buffer = waiting.popleft()
                yield part, job.result()
                submit(buffer)
        finally:
            for _, job, _ in waiting:
                job.cancel()


# ---- tables --------------------------------------------------------------------------


class Table(NamedTuple):
    """An array (rows, width) in a file, rows of numbers one after the other."""

    at: int  # the first byte
    rows: int
    width: int
    dtype: np.dtype

    @property
    def stride(self) -> int:
        """The bytes of a row."""
        return self.width * self.dtype.itemsize

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.at + self.rows * self.stride

    def rows_of(self, size: int) -> int:
        """How many rows have so many bytes, at least one."""
        return max(size // self.stride, 1)

    def spans(self, numbers: Array, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of `numbers` to read at once: upward, gaps are small, ≤ most rows."""
        gap, begin = GAP_BYTES // self.stride, 0
        for k in range(1, len(numbers) + 1):
            if (
                k == len(numbers)
                or not 0 < numbers[k] - numbers[k - 1] <= gap + 1
                or numbers[k] - numbers[begin] >= most
            ):
                yield begin, k
                begin = k


def tail(dtype: np.dtype) -> int:
    """The numbers that a tail takes in a row."""
    return TAIL // dtype.itemsize


def header(shape: tuple[int, int], dtype: np.dtype) -> bytes:
    """The header of a NumPy array, of the same length for any number of rows."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


def seal(rows: Array, first: int, sizes: Array | float = 0.0) -> None:
    """Write the tails of rows (count, width); the first one has this number."""
    tails = _tails(rows)
    tails["size"], tails["nothing"] = sizes, 0
    tails["check"] = [_check(row, first + k) for k, row in enumerate(rows)]


def first_broken(rows: Array, numbers: Array) -> int | None:
    """The place of the first row whose tail does not fit it."""
    for k, (check, number) in enumerate(zip(_tails(rows)["check"], numbers)):
        if check != _check(rows[k], int(number)):
            return k
    return None


def sealed_sizes(rows: Array) -> Array:
    """The bounds of √λ_max in the tails of rows."""
    return _tails(rows)["size"].copy()


def _tails(rows: Array) -> Array:
    end = rows.shape[1] * rows.itemsize
    kind: Any = {
        "names": ["size", "check", "nothing"],
        "formats": ["<f8", "<u4", "<u4"],
        "offsets": [end - 16, end - 8, end - 4],
        "itemsize": end,
    }
    return rows.view(np.dtype(kind))[:, 0]


def _check(row: Array, number: int) -> int:
    return zlib.crc32(row.view(np.uint8)[:-8].data, number & 0xFFFFFFFF)


# ---- files ---------------------------------------------------------------------------


class Stored:
    """M kernels of n samples in a file, loaded in batches of packed triangles."""

    n: int
    dtype: np.dtype
    root_sizes: Array

    def __init__(self, file: Bytes, table: Table):
        self.file, self.table, self.M = file, table, table.rows
        fours = BATCH_BYTES // (TOGETHER * table.stride)
        self.batch = TOGETHER * max(fours, 1)

    def load(self, numbers: Array, buffer: Buffer) -> Triangles:
        """These kernels, at most `batch` of them, in their order, checked."""
        raise NotImplementedError

    def diag(self, index: Array) -> Array:
        """(len, n): the diagonals."""
        raise NotImplementedError

    def checksums(self) -> bytes:
        """The checksums of all kernels."""
        raise NotImplementedError

    def refuse(self, number: int) -> Refused:
        """The error for a kernel that is not what was written."""
        return Refused(
            f"{self.file.path} was changed: kernel {number} is not what was written; "
            "write the file again"
        )


class PackedFile(Stored):
    """A file of our own."""

    def __init__(self, file: Bytes, table: Table):
        super().__init__(file, table)
        self.dtype, more = table.dtype, tail(table.dtype)
        self.n = samples_of(table.width - more)
        if self.n == 0 or self.M == 0:
            raise Refused(
                f"{file.path} is no stack of kernels; expected a file of "
                "GramStack.write, or an array (M, n, n) in a .npy"
            )
        if table.end > file.size:
            m = (file.size - table.at) // table.stride
            raise Refused(
                f"{file.path} was cut: kernel {m} of {self.M} is not complete; write "
                "the file again"
            )
        shapes = ((self.M, self.n + more, self.dtype), (1, self.M + 2, np.dtype(float)))
        self.diagonals = self._next(table.end, *shapes[0])
        sizes = self._next(self.diagonals.end, *shapes[1])
        if sizes.end != file.size:
            raise Refused(f"{file.path} is longer than it was; write the file again")
        row = self._rows(sizes, np.arange(1), Buffer())
        if first_broken(row, np.arange(1)) is not None:
            raise self._table_refused("sizes")
        self.root_sizes = row[0, : self.M].copy()

    def checksums(self) -> bytes:
        """The checksums of all kernels: the ends of their rows."""
        table, buffer, found = self.table, Buffer(), []
        for m in range(self.M):
            end = table.at + (m + 1) * table.stride
            memory, offset = self.file.read(end - TAIL, TAIL, buffer)
            found.append(memory[offset : offset + TAIL])
        return b"".join(found)

    def _next(self, at: int, count: int, width: int, dtype: np.dtype) -> Table:
        """The table at this place, as it has to be."""
        head = header((count, width), dtype)
        table = Table(at + len(head), count, width, dtype)
        if table.end > self.file.size:
            raise Refused(
                f"{self.file.path} was cut after its last kernel, {self.M - 1}, or it "
                "was not written by mklopt; write it with GramStack.write"
            )
        memory, offset = self.file.read(at, len(head), Buffer())
        if memory[offset : offset + len(head)] != head:
            raise Refused(
                f"{self.file.path} is no stack of mklopt: after {self.M} rows of "
                f"{self.table.width} numbers there is something else"
            )
        return table

    def _table_refused(self, name: str) -> Refused:
        return Refused(
            f"{self.file.path} was changed in its table of {name}; write it again"
        )

    def load(self, numbers: Array, buffer: Buffer) -> Triangles:
        """These kernels, at most `batch` of them, in their order, checked."""
        rows = self._rows(self.table, numbers, buffer)
        if (k := first_broken(rows, numbers)) is not None:
            raise self.refuse(int(numbers[k]))
        return Triangles(self.n, len(numbers), "packed", self.dtype, rows)

    def _rows(self, table: Table, numbers: Array, buffer: Buffer) -> Array:
        """Rows with these numbers; they are moved only if they are not neighbours."""
        if in_order(numbers):
            return self._span(table, int(numbers[0]), len(numbers), buffer)
        most = table.rows_of(SPAN_BYTES)
        behind = (len(numbers), table.width, table.dtype, most * table.stride)
        out = buffer.rows(*behind)
        for begin, end in table.spans(numbers, most):
            first, some = int(numbers[begin]), numbers[begin:end]
            count = int(some[-1]) - first + 1
            found = self._span(table, first, count, buffer, out.nbytes)
            out[begin:end] = found[some - first]
        return out

    def _span(
        self, table: Table, first: int, count: int, buffer: Buffer, behind: int = 0
    ) -> Array:
        at, size = table.at + first * table.stride, count * table.stride
        memory, offset = self.file.read(at, size, buffer, behind)
        rows = np.frombuffer(memory, table.dtype, count * table.width, offset)
        return rows.reshape(count, table.width)

    def diag(self, index: Array) -> Array:
        """(len, n): the diagonals."""
        out, buffer = np.empty((len(index), self.n)), Buffer()
        step = max(BATCH_BYTES // self.diagonals.stride, 1)
        for k in range(0, len(index), step):
            some = index[k : k + step]
            rows = self._rows(self.diagonals, some, buffer)
            if (broken := first_broken(rows, some)) is not None:
                raise self.refuse(int(some[broken]))
            out[k : k + step] = rows[:, : self.n]
        return out


class MatrixFile(Stored):
    """An array (M, n, n) of somebody else: read once to check and to measure it.

    What it held then is what it has to hold later: CRC-32 of each matrix are kept.
    """

    dtype = np.dtype(float)

    def __init__(self, file: Bytes, table: Table, n: int):
        super().__init__(file, table)
        self.n = n
        if table.end > file.size:
            m = (file.size - table.at) // table.stride
            raise Refused(f"{file.path} was cut: kernel {m} of {self.M} is incomplete")
        self.checks: Array | None = None
        checks, measured = np.empty(self.M, np.uint32), []
        self.diagonals = np.empty((self.M, n))
        buffers, M = [Buffer() for _ in range(BUFFERS)], self.M
        parts = [np.arange(a, min(a + self.batch, M)) for a in range(0, M, self.batch)]
        for numbers, (found, seen) in ahead(self._load, parts, buffers):
            measured.append(found.root_sizes)
            self.diagonals[numbers] = found.diag(np.arange(len(numbers)))
            checks[numbers] = seen
            refuse_indefinite(found, table.dtype.itemsize < 8, int(numbers[0]))
        self.root_sizes, self.checks = np.concatenate(measured), checks

    def load(self, numbers: Array, buffer: Buffer) -> Triangles:
        """These kernels, at most `batch` of them, in their order, checked."""
        return self._load(numbers, buffer)[0]

    def checksums(self) -> bytes:
        """The checksums of all kernels."""
        return b"" if self.checks is None else self.checks.tobytes()

    def _load(self, numbers: Array, buffer: Buffer) -> tuple[Triangles, Array]:
        n, t = self.n, self.table
        most = t.rows_of(SPAN_BYTES)
        width, behind = n * (n + 1) // 2, most * t.stride
        rows = buffer.rows(len(numbers), width, self.dtype, behind)
        found = Triangles(n, len(numbers), "packed", self.dtype, rows)
        seen = np.empty(len(numbers), np.uint32)
        for begin, end in t.spans(numbers, most):
            first, last = int(numbers[begin]), int(numbers[end - 1])
            at, size = t.at + first * t.stride, (last - first + 1) * t.stride
            memory, offset = self.file.read(at, size, buffer, rows.nbytes)
            for k in range(begin, end):
                m = int(numbers[k])
                where = offset + (m - first) * t.stride
                K = np.frombuffer(memory, t.dtype, n * n, where).reshape(n, n)
                seen[k] = zlib.crc32(K.data.cast("B"), 0)
                if self.checks is not None and seen[k] != self.checks[m]:
                    raise self.refuse(m)
                place(found, k, K, matrix(K, m, n), m)
        return found, seen

    def diag(self, index: Array) -> Array:
        """(len, n): the diagonals."""
        return self.diagonals[index]

    def refuse(self, number: int) -> Refused:
        """The error for a kernel that is not what it was."""
        return Refused(
            f"{self.file.path} was changed: kernel {number} is not what it was when "
            "the file was opened"
        )


def samples_of(size: int) -> int:
    """n of a triangle of n(n + 1)/2 numbers; 0 if there is none of this size."""
    n = (math.isqrt(8 * size + 1) - 1) // 2 if size > 0 else 0
    return n if n * (n + 1) // 2 == size else 0


def stored_in(path: Path) -> Stored:
    """The kernels in a file; ValueError says what is wrong with it."""
    file = Bytes(path)
    try:
        with open(path, "rb") as plain:
            shape, fortran, dtype = _header(plain)
            at = plain.tell()
    except Exception as error:  # whatever a broken header may raise
        reason = str(error).split("\n")[0][:200] or type(error).__name__
        raise Refused(f"{path} is no .npy of kernels: {reason}") from None
    if dtype.hasobject or fortran:
        what = "Python objects" if dtype.hasobject else "its array in Fortran order"
        raise Refused(f"{path} holds {what}; save numpy.ascontiguousarray(K) as float")
    if len(shape) == 2 and dtype in (np.float64, np.float32):
        return PackedFile(file, Table(at, *shape, dtype))
    M, n, _ = matrices(np.broadcast_to(0, shape)).shape
    return MatrixFile(file, Table(at, M, n * n, dtype), n)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    headers = np.lib.format
    first = headers.read_magic(file) == (1, 0)
    read = headers.read_array_header_1_0 if first else headers.read_array_header_2_0
    return read(file)
