"""Files: written whole or not at all, read and written at a place, and locked.

`write_whole` writes a temporary file that is flushed to disk and then renamed, so that
a crash leaves the old file or the new one, never half of one.

Unix reads and writes at any place of a file (pread, pwrite) and locks it (flock). On
Windows a file has one position, which one thread at a time moves here, and a lock on
one byte stands for the whole file. Locks end when the file is closed.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any

from .checks import check_path
from .extras import if_there

BINARY = getattr(os, "O_BINARY", 0)  # without it Windows changes bytes
LOCKED_BYTE = 2**31 - 2  # whose lock stands for the file; it need not exist
PAUSE = 0.05  # seconds between two attempts to lock

_position = Lock()


_unix, _windows = if_there("fcntl"), if_there("msvcrt")


def write_whole(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Replace the file at this path by content; missing folders are made."""
    check_path(path)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o644)  # mkstemp makes private files
        os.replace(scratch, target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
        if isinstance(error, OSError) and error.errno:
            error.filename = str(target)  # a full disk does not say where
        raise


def checksum(body: dict[str, Any]) -> str:
    """The SHA-256 of a JSON object, the same for any order of its keys."""
    canonical = json.dumps(body, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


# ---- at a place ------------------------------------------------------------------


def open_raw(path: str | os.PathLike[str], flags: int) -> int:
    """The number of an open file, whose bytes are read and written as they are."""
    return os.open(path, flags | BINARY, 0o644)


def read_into(file: int, view: Any, at: int) -> int:
    """Fill a part of memory from a place of a file; how many bytes there were."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [view], at)
    with _moved(file, at):
        found = os.read(file, len(view))
    view[: len(found)] = found
    return len(found)


def read_at(file: int, size: int, at: int) -> bytes:
    """At most so many bytes from a place of a file."""
    if hasattr(os, "pread"):
        return os.pread(file, size, at)
    with _moved(file, at):
        return os.read(file, size)


def write_at(file: int, view: Any, at: int) -> int:
    """Write bytes to a place of a file; how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file, view, at)
    with _moved(file, at):
        return os.write(file, view)


@contextmanager
def _moved(file: int, at: int) -> Iterator[None]:
    """The file at this place, for this thread alone; afterwards where it was."""
    with _position:
        before = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, at, os.SEEK_SET)
        try:
            yield
        finally:
            os.lseek(file, before, os.SEEK_SET)


def sync_content(file: int) -> None:
    """Wait until the content of a file is on the disk; its dates need not be."""
    getattr(os, "fdatasync", os.fsync)(file)


def sync_folder(folder: str) -> None:
    """Wait until the names in a folder are on the disk, where a system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def forget_cached(file: int, at: int, size: int) -> None:
    """Take a part of a file out of the page cache, where a system can."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, at, size, os.POSIX_FADV_DONTNEED)


def lock(file: int, wait: bool = False) -> None:
    """Lock a file for this process until it is closed.

    Raises
    ------
    OSError
        If another process has it, and this one does not wait.
    """
    if _unix:
        _unix.flock(file, _unix.LOCK_EX | (0 if wait else _unix.LOCK_NB))
    elif _windows:
        while not _byte_locked(file):
            if not wait:
                raise BlockingIOError("another process has the file")
            Event().wait(PAUSE)


def _byte_locked(file: int) -> bool:
    with _moved(file, LOCKED_BYTE):
        try:
            _windows.locking(file, _windows.LK_NBLCK, 1)
        except OSError:
            return False
    return True
