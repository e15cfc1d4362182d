"""Records: found again by another process, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from mklopt.run.record_log import RecordLog, key_of

HEADER = {"name": "value"}


def written(path, arrays) -> bytes:
    log = RecordLog(path)
    log.begin(HEADER)
    for k, array in enumerate(arrays):
        log.add(key_of(k), (float(k), 0.5), array)
    log.close()
    return path.read_bytes()


def opened(path) -> RecordLog:
    log = RecordLog(path)
    assert log.begin(HEADER) == HEADER
    return log


ARRAYS = [np.arange(5.0), np.ones((2, 3)), np.empty(0), np.full((1, 2, 1, 2), np.nan)]


def test_arrays_and_numbers_are_found_again(tmp_path):
    written(tmp_path / "a", ARRAYS)
    log = opened(tmp_path / "a")
    for k, array in enumerate(ARRAYS):
        found = log.array(key_of(k))
        assert found.shape == array.shape and found.tobytes() == array.tobytes()
        assert log.found[key_of(k)].numbers == (k, 0.5)
    assert key_of(9) not in log.found
    log.close()


@pytest.mark.parametrize("more", [0, 1, 7, 30, 100])
def test_a_cut_record_is_dropped_and_the_others_stay(more, tmp_path):
    path = tmp_path / "a"
    first = len(written(path, ARRAYS[:2]))
    path.unlink()
    whole = written(path, ARRAYS[:3])
    path.write_bytes(whole[: min(first + more, len(whole) - 1)])
    log = opened(path)
    assert len(log.found) == 2
    assert log.end == first == os.path.getsize(path)
    log.add(key_of(2), (2.0, 0.5), ARRAYS[2])
    log.close()
    assert path.read_bytes() == whole


def test_every_byte_counts(tmp_path):
    path = tmp_path / "a"
    header = len(written(path, []))
    path.unlink()
    whole = written(path, ARRAYS[:1])
    for place in range(header, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x40
        path.write_bytes(changed)
        log = opened(path)
        assert not log.found, place
        log.close()


@pytest.mark.parametrize("length", [0, 3, 22, 40])
def test_a_cut_header_is_written_again(length, tmp_path):
    path = tmp_path / "a"
    whole = written(path, ARRAYS)
    path.write_bytes(whole[:length])
    assert written(path, ARRAYS) == whole


def test_other_files_are_refused_and_stay_as_they_are(tmp_path):
    path = tmp_path / "a"
    whole = bytearray(written(path, ARRAYS))
    whole[30] ^= 1
    for content, said in [
        (b"notes of a user, longer than any header of ours" * 3, "not a checkpoint"),
        (b"x", "not a checkpoint"),
        (bytes(whole), "was changed"),
    ]:
        path.write_bytes(content)
        log = RecordLog(path)
        with pytest.raises(ValueError, match=said):
            log.begin(HEADER)
        log.close()
        assert path.read_bytes() == content


def test_one_writer_at_a_time(tmp_path):
    log = opened(tmp_path / "a")
    code = "import sys; from mklopt.run.record_log import RecordLog; "
    code += "RecordLog(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "is in use by another run" in done.stderr
    log.close()
    assert subprocess.run(command).returncode == 0


def test_an_interrupt_in_the_middle_of_a_write_leaves_whole_records(
    tmp_path, monkeypatch
):
    path, pwrite = tmp_path / "a", os.pwrite
    whole = written(path, ARRAYS[:2])
    path.unlink()
    log = opened(path)
    log.add(key_of(0), (0.0, 0.5), ARRAYS[0])

    def interrupted(file, view, place):
        pwrite(file, bytes(view)[:3], place)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "pwrite", interrupted)
        log.add(key_of(1), (1.0, 0.5), ARRAYS[1])
    log.add(key_of(1), (1.0, 0.5), ARRAYS[1])
    log.close()
    assert path.read_bytes() == whole


def test_a_key_is_written_once_and_not_found_by_its_writer(tmp_path):
    log = opened(tmp_path / "a")
    log.add(key_of("k"), (1.0, 2.0), np.ones(3))
    size = log.end
    log.add(key_of("k"), (1.0, 2.0), np.ones(3))
    assert log.end == size and key_of("k") not in log.found
    log.close()


def test_keys_tell_arrays_apart():
    a = np.arange(6.0)
    different = [a, a.astype("f4"), a.reshape(2, 3), a.astype(int), a[::-1], "a", 1]
    assert len({key_of(part) for part in different}) == len(different)
    assert key_of(a.reshape(2, 3).T) == key_of(a.reshape(2, 3).T.copy())
    assert key_of("ab", "c") != key_of("a", "bc")
