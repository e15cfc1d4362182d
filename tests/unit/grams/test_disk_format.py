"""Files of kernels: what was cut or changed is refused, with the kernel's number."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from mklopt import GramStack
from mklopt.grams import disk_format
from mklopt.grams.disk_format import Buffer, Bytes, Table, ahead, header, samples_of

N, M = 6, 9
ROW = (N * (N + 1) // 2 + 2) * 8
HEAD = 128
rng = np.random.default_rng(4)


def some_kernels(n=N):
    L = rng.normal(size=(M, n, 3))
    return L @ L.transpose(0, 2, 1)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "K.npy"
    GramStack.write(path, some_kernels())
    return path


def swept(path):
    grams = GramStack.open(path, 0)
    grams.quad(np.ones(N))
    return grams


def test_numpy_reads_the_file(tmp_path):
    K = some_kernels()
    GramStack.write(tmp_path / "K.npy", K)
    with open(tmp_path / "K.npy", "rb") as file:
        rows, diagonals, sizes = np.load(file), np.load(file), np.load(file)
        assert file.read() == b""
    grams = GramStack(K)
    np.testing.assert_array_equal(rows[:, :-2], grams._store.P)
    np.testing.assert_array_equal(diagonals[:, :-2], grams.diag())
    np.testing.assert_array_equal(sizes[0, :-2], grams._store.root_sizes)
    np.testing.assert_array_equal(rows[:, -2], grams._store.root_sizes)


@pytest.mark.parametrize("place", [0, 8, ROW - 17, ROW - 16, ROW - 8])
@pytest.mark.parametrize("m", [0, 4, M - 1])
def test_a_changed_kernel_is_refused_by_its_number(file, m, place):
    """One bit of the triangle, of the bound or of the checksum itself."""
    content = bytearray(file.read_bytes())
    content[HEAD + m * ROW + place] ^= 1
    file.write_bytes(content)
    grams = GramStack.open(file)
    with pytest.raises(ValueError, match=f"changed: kernel {m} is not what was"):
        grams.quad(np.ones(N))
    with pytest.raises(ValueError, match=f"changed: kernel {m} is not what was"):
        grams.subset([m]).combine(np.ones(1))
    grams.subset([(m + 1) % M]).combine(np.ones(1))


def test_kernels_that_changed_places_are_refused(file):
    content = bytearray(file.read_bytes())
    two, five = HEAD + 2 * ROW, HEAD + 5 * ROW
    content[two : two + ROW], content[five : five + ROW] = (
        content[five : five + ROW],
        content[two : two + ROW],
    )
    file.write_bytes(content)
    with pytest.raises(ValueError, match="kernel 2 is not what"):
        swept(file)


@pytest.mark.parametrize("m", [0, 3, M - 1])
@pytest.mark.parametrize("more", [0, 1, ROW - 1])
def test_a_cut_file_is_refused_by_the_first_kernel_that_is_missing(file, m, more):
    file.write_bytes(file.read_bytes()[: HEAD + m * ROW + more])
    with pytest.raises(ValueError, match=f"cut: kernel {m} of {M} is not complete"):
        GramStack.open(file)


def test_every_cut_is_refused(file):
    content = file.read_bytes()
    for size in [*range(0, len(content), 37), len(content) - 1]:
        file.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"K\.npy"):
            GramStack.open(file)
    file.write_bytes(content + b"\0")
    with pytest.raises(ValueError, match="longer"):
        GramStack.open(file)


def test_every_changed_byte_is_refused_or_has_no_effect(file):
    """No change is believed: numbers are what was written, or nothing is returned."""
    content, a = file.read_bytes(), rng.normal(size=N)

    def read():
        grams = GramStack.open(file, 0)
        return [grams.quad(a), grams.diag(), grams._store.root_sizes]

    expected, refused = read(), 0
    places = [*range(HEAD), *range(HEAD, len(content), 41)]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        try:
            found = read()
        except ValueError:
            refused += 1
            continue
        for got, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, right)
    assert refused > 0.7 * len(places)  # spaces of headers have no effect


def test_a_file_that_is_cut_while_it_is_open_is_refused(file):
    grams = GramStack.open(file, 0)
    os.truncate(file, HEAD + 3 * ROW + 5)
    with pytest.raises(ValueError, match="shorter than when it was opened"):
        grams.quad(np.ones(N))


@pytest.mark.parametrize("shape", [(3, 4), (M, 23), (5,), (), (2, 3, 4), (0, 3, 3)])
def test_other_arrays_are_refused_by_their_shape(tmp_path, shape):
    path = tmp_path / "K.npy"
    np.save(path, np.ones(shape))
    with pytest.raises(ValueError, match=r"stack|expected|written by mklopt"):
        GramStack.open(path)


def test_other_files_get_one_clear_sentence(tmp_path):
    path = tmp_path / "K.npy"
    with pytest.raises(FileNotFoundError):
        GramStack.open(path)
    path.write_text("kernels")
    with pytest.raises(ValueError, match=r"no \.npy of kernels"):
        GramStack.open(path)
    np.save(path, np.asfortranarray(some_kernels()))
    with pytest.raises(ValueError, match="Fortran order"):
        GramStack.open(path)
    np.save(path, np.array([None]))
    with pytest.raises(ValueError, match="Python objects"):
        GramStack.open(path)
    np.save(path, np.full((2, 3, 3), "a"))
    with pytest.raises(ValueError, match="kernel 0 must be an"):
        GramStack.open(path)


SPOILS = {
    "NaN": lambda K: K[7].__setitem__((1, 2), np.nan),
    "not symmetric": lambda K: K[7].__setitem__((1, 2), 5.0),
    "negative diagonal": lambda K: K[7].__setitem__((1, 1), -5.0),
    "not positive semi-definite": lambda K: K[7].__setitem__(
        slice(None), 1 - np.eye(N)
    ),
}


@pytest.mark.parametrize("words", SPOILS)
def test_bad_kernels_of_others_get_the_sentences_of_a_stack(
    monkeypatch, tmp_path, words
):
    monkeypatch.setattr(disk_format, "BATCH_BYTES", 1)
    K = some_kernels()
    SPOILS[words](K)
    np.save(tmp_path / "K.npy", K)
    with pytest.raises(ValueError, match=words) as in_memory:
        GramStack(K)
    with pytest.raises(ValueError, match=words) as on_disk:
        GramStack.open(tmp_path / "K.npy")
    assert str(on_disk.value) == str(in_memory.value)
    assert "kernel 7" in str(on_disk.value)


def test_arrays_of_others_that_are_cut_or_changed_are_refused(tmp_path):
    path, size = tmp_path / "K.npy", 8 * N * N
    np.save(path, some_kernels())
    content = path.read_bytes()
    path.write_bytes(content[: HEAD + 4 * size + 3])
    with pytest.raises(ValueError, match=f"cut: kernel 4 of {M} is incomplete"):
        GramStack.open(path)
    path.write_bytes(content)
    grams = GramStack.open(path)
    changed = bytearray(content)
    changed[HEAD + 6 * size] ^= 1
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="kernel 6 is not what it was when"):
        grams.quad(np.ones(N))


# ---- reading -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["past the cache", "no flag", "refused", "late"])
def test_file_systems_without_direct_reads(file, monkeypatch, kind):
    """The flag does not exist, the file is not opened, or the read is not allowed."""
    preadv, open_, direct = os.preadv, os.open, disk_format.DIRECT

    def refused(path, flags, *more):
        if flags & direct:
            raise OSError(errno.EINVAL, "Invalid argument")
        return open_(path, flags, *more)

    late: list[int] = []

    def not_allowed(*arguments):
        if not late:
            late.append(1)
            raise OSError(errno.EINVAL, "Invalid argument")
        return preadv(*arguments)

    expected = swept(file).quad(np.ones(N))
    if kind == "no flag":
        monkeypatch.setattr(disk_format, "DIRECT", 0)
    elif kind == "refused":
        monkeypatch.setattr(os, "open", refused)
    elif kind == "late" and direct:
        monkeypatch.setattr(os, "preadv", not_allowed)
    grams = swept(file)
    np.testing.assert_array_equal(grams.quad(np.ones(N)), expected)
    if kind != "past the cache":
        assert not grams._store.file.file.direct


def test_bytes_anywhere_in_a_file(tmp_path):
    content = rng.bytes(3 * disk_format.PAGE + 100)
    (tmp_path / "bytes").write_bytes(content)
    file, buffer = Bytes(tmp_path / "bytes"), Buffer()
    for at, size in ((0, 10), (4095, 2), (5000, 4096), (len(content) - 1, 1)):
        memory, offset = file.read(at, size, buffer)
        assert memory[offset : offset + size] == content[at : at + size]
    assert file.bytes_read >= 4096 + 8192
    with pytest.raises(ValueError, match="shorter"):
        file.read(len(content) - 1, 2, buffer)


def test_parts_come_in_order_and_the_next_ones_are_loaded():
    started = []

    def load(part, buffer):
        started.append(part)
        return part, buffer

    buffers = [Buffer() for _ in range(3)]
    found = ahead(load, range(10), buffers)
    part, (same, _) = next(found)
    assert part == same == 0
    rest = list(found)
    assert [part for part, _ in rest] == list(range(1, 10))
    assert sorted(started) == list(range(10))
    assert [buffer for _, (_, buffer) in rest] == (buffers[1:] + buffers * 3)[:9]


def test_an_error_of_a_load_is_the_readers():
    def load(part, buffer):
        if part == 2:
            raise ValueError("kernel 2")
        return part

    found = ahead(load, range(5), [Buffer(), Buffer()])
    assert [next(found)[1], next(found)[1]] == [0, 1]
    with pytest.raises(ValueError, match="kernel 2"):
        next(found)


def test_neighbours_and_near_rows_are_read_at_once(monkeypatch):
    monkeypatch.setattr(disk_format, "GAP_BYTES", 2 * 80)
    table = Table(0, 100, 10, np.dtype(float))

    def spans(*numbers, most=8):
        return [numbers[a:b] for a, b in table.spans(np.array(numbers), most)]

    assert spans(3, 4, 5) == [(3, 4, 5)]
    assert spans(3, 6, 7) == [(3, 6, 7)] and spans(3, 7) == [(3,), (7,)]
    assert spans(5, 4) == [(5,), (4,)] and spans(5, 5) == [(5,), (5,)]
    assert spans(0, 2, 4, 6, 8, 10) == [(0, 2, 4, 6), (8, 10)]
    assert spans(9) == [(9,)]


def test_headers_have_one_length():
    for shape in ((0, 3), (10**12, 10**12)):
        assert len(header(shape, np.dtype("f4"))) == HEAD


def test_the_samples_of_a_triangle():
    assert [samples_of(size) for size in (-1, 0, 1, 2, 3, 6, 7)] == [
        0,
        0,
        1,
        0,
        2,
        3,
        0,
    ]
