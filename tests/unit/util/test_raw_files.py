"""Reads, writes and locks of files, also as Windows has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mklopt.util import raw_files
from mklopt.util.raw_files import (
    LOCKED_BYTE,
    forget_cached,
    lock,
    open_raw,
    read_at,
    read_into,
    sync_content,
    sync_folder,
    write_at,
)

UNIX_ONLY = ("preadv", "pread", "pwrite", "fdatasync", "posix_fadvise")
HOLD = """
import os, sys
from mklopt.util.raw_files import lock, open_raw
lock(open_raw(sys.argv[1], os.O_RDWR))
print("locked", flush=True)
sys.stdin.read()
"""


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
    root = Path(raw_files.__file__).parents[2]
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
    monkeypatch.setattr(raw_files, "_unix", None)
    monkeypatch.setattr(raw_files, "_windows", windows)
    handle = open_raw(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with pytest.raises(BlockingIOError):
        lock(handle)
    lock(handle, wait=True)
    os.close(handle)
    assert asked == [(LOCKED_BYTE, 2, 1)] * 3
