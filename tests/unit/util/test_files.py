"""Files: written completely or not at all, read and locked also as Windows does."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mklopt.util import files
from mklopt.util.files import (
    LOCKED_BYTE,
    checksum,
    forget_cached,
    lock,
    open_raw,
    read_at,
    read_into,
    sync_content,
    sync_folder,
    write_at,
    write_whole,
)

UNIX_ONLY = ("preadv", "pread", "pwrite", "fdatasync", "posix_fadvise")
HOLD = """
import os, sys
from mklopt.util.files import lock, open_raw
lock(open_raw(sys.argv[1], os.O_RDWR))
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_and_its_folders_are_made_and_replaced(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    for content in (b"first", memoryview(b"second")):
        write_whole(path, content)
        assert path.read_bytes() == bytes(content)
    assert [p.name for p in path.parent.iterdir()] == ["file"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def broken(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_checksum_ignores_the_order_of_keys_and_nothing_else():
    known = hashlib.sha256(b'{"a": 1, "b": [2]}').hexdigest()
    assert checksum({"b": [2], "a": 1}) == checksum({"a": 1, "b": [2]}) == known
    assert checksum({"a": 1, "b": [3]}) != known


# ---- at a place ------------------------------------------------------------------


@pytest.fixture(params=["unix", "windows"])
def system(request, monkeypatch):
    if request.param == "windows":
        for name in UNIX_ONLY:
            monkeypatch.delattr(os, name, raising=False)
    return request.param


def test_bytes_are_read_and_written_at_any_place(system, tmp_path):
    handle = open_raw(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        assert write_at(handle, b"a\nb\r\nc", 3) == 6
        assert write_at(handle, b"xyz", 0) == 3
        os.lseek(handle, 2, os.SEEK_SET)
        memory = bytearray(4)
        assert read_into(handle, memoryview(memory), 1) == 4 and memory == b"yza\n"
        assert read_into(handle, memoryview(memory), 7) == 2
        assert read_at(handle, 100, 0) == b"xyza\nb\r\nc"
        assert read_at(handle, 100, 9) == b""
        assert os.lseek(handle, 0, os.SEEK_CUR) == 2  # where it was
        sync_content(handle)
        forget_cached(handle, 0, 9)
    finally:
        os.close(handle)
    sync_folder(str(tmp_path))


def test_another_process_that_has_the_file_is_noticed(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    command = [sys.executable, "-c", HOLD, str(path)]
    root = Path(files.__file__).parents[2]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=root, **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline().strip() == b"locked"
        handle = open_raw(path, os.O_RDWR)
        with pytest.raises(OSError):
            lock(handle)
        other.stdin.close()
        lock(handle, wait=True)
        os.close(handle)


def test_windows_locks_one_byte_and_waits_for_it(tmp_path, monkeypatch):
    asked = []

    def locking(file, mode, size):
        asked.append((os.lseek(file, 0, os.SEEK_CUR), mode, size))
        if len(asked) < 3:
            raise PermissionError

    windows = SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setattr(files, "_unix", None)
    monkeypatch.setattr(files, "_windows", windows)
    handle = open_raw(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with pytest.raises(BlockingIOError):
        lock(handle)
    lock(handle, wait=True)
    os.close(handle)
    assert asked == [(LOCKED_BYTE, 2, 1)] * 3
