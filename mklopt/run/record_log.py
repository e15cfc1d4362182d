"""An append-only file of checked records: what a killed process has written stays.

    header   MAGIC, the length of a JSON object, the object, its checksum
    record   key (16 bytes), two numbers, a shape, float64 numbers, a checksum of these

A process may die at any byte. Records are read until the first one that is not whole or
whose checksum is wrong; what follows is cut off. One process writes at a time: the file
is locked, and the lock ends with the process.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import time
from typing import Any, NamedTuple

import numpy as np

from ..util.checks import check_path
from ..util.files import lock, open_raw, read_at, read_into, write_at

Array = np.ndarray
MAGIC = b"mklopt checkpoint 1\n"
HEAD = struct.Struct("<16s2d5q")  # key, two numbers, dimensions, four lengths
LENGTH = struct.Struct("<q")
CHECKSUM = 16  # bytes
MAX_HEADER = 1 << 24
MAX_DIMENSIONS = 4
SYNC_SECONDS = 5.0  # between two calls of fsync: a power failure costs no more


class Record(NamedTuple):
    """Where a record is, and its two numbers."""

    place: int
    numbers: tuple[float, float]


def key_of(*parts: Any) -> bytes:
    """16 bytes for names, numbers and arrays; others with practical certainty."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            h.update(f"{part.dtype.str}{part.shape}".encode())
            h.update(np.ascontiguousarray(part).view(np.uint8).data)
        else:
            h.update(repr(part).encode())
        h.update(b"\0")
    return h.digest()


class RecordLog:
    """The records of a file. What this process adds is written, but not found again."""

    def __init__(self, path: str | os.PathLike[str]):
        check_path(path)
        self.path, self.found = os.fspath(path), dict[bytes, Record]()
        self.file = open_raw(path, os.O_RDWR | os.O_CREAT)
        self.end, self.synced, self.written = 0, time.monotonic(), set[bytes]()
        try:
            lock(self.file)
        except OSError:
            self.close()
            raise ValueError(f"{self.path} is in use by another run") from None

    def begin(self, header: dict[str, Any]) -> dict[str, Any]:
        """The header of the file; a new file gets this one. Then records are read."""
        text = json.dumps(header, sort_keys=True).encode()
        wanted = MAGIC + LENGTH.pack(len(text)) + text + _checksum(text)
        size = os.fstat(self.file).st_size
        if size < len(wanted) and read_at(self.file, size, 0) == wanted[:size]:
            self._write(wanted)  # new, or cut inside its header
            return header
        given = self._header()
        self._read()
        os.ftruncate(self.file, self.end)
        return given

    def _header(self) -> dict[str, Any]:
        start = len(MAGIC) + LENGTH.size
        head = read_at(self.file, start, 0)
        size = LENGTH.unpack(head[-LENGTH.size :])[0] if len(head) == start else -1
        if head[: len(MAGIC)] != MAGIC or not 0 <= size <= MAX_HEADER:
            raise ValueError(f"{self.path} is not a checkpoint; give another path")
        text = read_at(self.file, size, start)
        if read_at(self.file, CHECKSUM, start + size) != _checksum(text):
            raise ValueError(
                f"{self.path} was changed; delete it, or give another path"
            )
        self.end = start + size + CHECKSUM
        return dict(json.loads(text))

    def _read(self) -> None:
        """Find all records up to the first one that is not whole."""
        size = os.fstat(self.file).st_size
        while self.end + HEAD.size + CHECKSUM <= size:
            head = read_at(self.file, HEAD.size, self.end)
            key, *rest = HEAD.unpack(head)
            count = _count(rest[2:])
            length = HEAD.size + 8 * count + CHECKSUM
            if count < 0 or self.end + length > size:
                return
            h = hashlib.blake2b(head, digest_size=CHECKSUM)
            h.update(self._numbers(self.end, count).view(np.uint8).data)
            place = self.end + length - CHECKSUM
            if read_at(self.file, CHECKSUM, place) != h.digest():
                return
            self.found[key] = Record(self.end, (rest[0], rest[1]))
            self.end += length

    def _numbers(self, place: int, count: int) -> Array:
        out = np.empty(count)
        view, done = out.view(np.uint8), 0
        while done < len(view):
            got = read_into(self.file, view[done:].data, place + HEAD.size + done)
            if got == 0:
                raise ValueError(f"{self.path} became shorter while it was read")
            done += got
        return out

    def array(self, key: bytes) -> Array:
        """The array of a record that was found."""
        place = self.found[key].place
        _, _, _, dimensions, *lengths = HEAD.unpack(
            read_at(self.file, HEAD.size, place)
        )
        shape = tuple(lengths[:dimensions])
        return self._numbers(place, math.prod(shape)).reshape(shape)

    def add(self, key: bytes, numbers: tuple[float, float], array: Array) -> None:
        """Append a record, once for each key; array: C-contiguous float64."""
        if key in self.found or key in self.written:
            return
        lengths = [*array.shape, *[0] * (MAX_DIMENSIONS - array.ndim)]
        head = HEAD.pack(key, *numbers, array.ndim, *lengths)
        h = hashlib.blake2b(head, digest_size=CHECKSUM)
        h.update(array.view(np.uint8).data)
        self._write(head, array.reshape(-1).view(np.uint8).data, h.digest())
        self.written.add(key)

    def _write(self, *parts: bytes | memoryview) -> None:
        """Append; an interrupt in the middle leaves `end` where it was."""
        place = self.end
        for part in parts:
            view = memoryview(part)
            while len(view):
                count = write_at(self.file, view, place)
                place, view = place + count, view[count:]
        self.end = place
        if time.monotonic() > self.synced + SYNC_SECONDS:
            os.fsync(self.file)
            self.synced = time.monotonic()

    def close(self) -> None:
        """Cut off what is not whole, and give the lock back."""
        if self.file >= 0:
            if self.end:
                os.ftruncate(self.file, self.end)
                os.fsync(self.file)
            os.close(self.file)
            self.file = -1


def _count(shape: list[int]) -> int:
    """How many numbers an array of this shape has; −1 if it is no shape."""
    dimensions, *lengths = shape
    if not 0 <= dimensions <= MAX_DIMENSIONS or min(lengths) < 0:
        return -1
    return math.prod(lengths[:dimensions])


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM).digest()
