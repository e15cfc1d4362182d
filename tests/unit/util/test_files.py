"""Files that are written completely or not at all, and checksums."""

from __future__ import annotations

import hashlib
import os

import pytest

from mklopt.util.files import checksum, write_whole


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
