"""Kernels to a file: from any source, whole or not at all, resumed after a kill."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mklopt import GramStack, LazyStack, kernels
from mklopt.grams import disk_writer

N, M = 12, 26
rng = np.random.default_rng(6)
X = rng.normal(size=(N, 4))
FAMILY = kernels.subset_gaussians(M).fit(X, "unit_trace")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Four kernels at a time."""
    monkeypatch.setattr(disk_writer, "BATCH_BYTES", 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "K.npy"


def noted(monkeypatch):
    """The places of all writes to come."""
    places, write = [], os.pwrite

    def pwrite(handle, given, at):
        places.append(at)
        return write(handle, given, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    return places


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_source_gives_the_same_file(path, dtype):
    K = np.stack(list(FAMILY))
    stack = GramStack(K)
    sources = {
        "array": K,
        "list": list(K),
        "iterator": iter(K),
        "stack": stack,
        "full": GramStack(K, storage="full"),
        "subset": GramStack(np.concatenate([K[:3], K])).subset(np.arange(3, M + 3)),
    }
    contents = {}
    for name, source in sources.items():
        GramStack.write(path, source, dtype=dtype)
        contents[name] = path.read_bytes()
        assert os.listdir(path.parent) == ["K.npy"]
    assert len(set(contents.values())) == 1
    GramStack.write(path, GramStack.open(path))  # onto itself, in its own type
    assert path.read_bytes() == contents["array"]
    again = GramStack.open(path)
    stored = GramStack(K, dtype=dtype)
    np.testing.assert_array_equal(again.dense(), stored.dense())
    np.testing.assert_array_equal(again._store.root_sizes, stored._store.root_sizes)


def test_a_family_gives_the_numbers_of_its_stack(path):
    stack = FAMILY.grams()
    for source in (FAMILY, LazyStack.of(FAMILY), stack):
        GramStack.write(path, source)
        found = GramStack.open(path)
        np.testing.assert_array_equal(found.dense(), stack.dense())
        np.testing.assert_array_equal(found._store.root_sizes, stack._store.root_sizes)


def test_factors_are_multiplied_out(path):
    stack = GramStack.from_factors([rng.normal(size=(N, 2)) for _ in range(5)])
    GramStack.write(path, stack)
    np.testing.assert_array_equal(GramStack.open(path).dense(), stack.dense())


def test_the_type_of_a_stack_is_kept(path):
    GramStack.write(path, GramStack(np.eye(3)[None], dtype="float32"))
    assert GramStack.open(path).dtype == np.float32
    GramStack.write(path, np.eye(3, dtype=np.float32)[None])
    assert GramStack.open(path).dtype == np.float64
    with pytest.raises(ValueError, match="choose 'float64' or 'float32'"):
        GramStack.write(path, np.eye(3)[None], dtype="float16")


@pytest.mark.parametrize(
    "spoil, words",
    [
        (np.full((N, N), np.nan), "kernel 9 has NaN"),
        (np.eye(N + 1), "kernel 9 has shape .* like the first"),
        (np.triu(np.ones((N, N))), "kernel 9 is not symmetric"),
        (1 - np.eye(N), "kernel 9 is not positive semi-definite"),
    ],
)
def test_what_is_no_kernel_is_refused_and_nothing_changes(path, spoil, words):
    GramStack.write(path, FAMILY)
    before = path.read_bytes()
    K = [*FAMILY][:20]
    K[9] = spoil
    with pytest.raises(ValueError, match=words):
        GramStack.write(path, iter(K))
    assert path.read_bytes() == before and os.listdir(path.parent) == ["K.npy"]


@pytest.mark.parametrize("nothing", [[], iter([]), np.zeros((0, 3, 3)), 5])
def test_no_kernels_are_refused(path, nothing):
    with pytest.raises(ValueError, match=r"kernels|shape"):
        GramStack.write(path, nothing)
    assert os.listdir(path.parent) == []


class Stopped(Exception):
    """A source that fails in the middle."""


def stopped(count):
    for m, K in enumerate(FAMILY):
        if m == count:
            raise Stopped
        yield K


@pytest.mark.parametrize("source", ["iterator", "family"])
@pytest.mark.parametrize("damage", ["none", "torn", "changed", "later"])
def test_a_write_goes_on_where_it_was(path, monkeypatch, source, damage):
    whole = path.parent / "whole"
    GramStack.write(whole, iter(FAMILY) if source == "iterator" else FAMILY)
    size = (N * (N + 1) // 2 + 2) * 8
    good = 16
    if source == "iterator":
        with pytest.raises(Stopped):
            GramStack.write(path, stopped(19))  # the last three are not yet written
    else:
        part = FAMILY.subset

        def subset(index):
            if index[-1] >= 16:
                raise Stopped
            return part(index)

        monkeypatch.setattr(FAMILY, "subset", subset)
        with pytest.raises(Stopped):
            GramStack.write(path, FAMILY)
        monkeypatch.setattr(FAMILY, "subset", part)
    begun = path.parent / "K.npy.part"
    assert not path.exists() and begun.stat().st_size == 128 + good * size
    content = bytearray(begun.read_bytes())
    if damage == "torn":
        content, good = content[:-5], 15
    elif damage == "changed":
        content[128 + 6 * size] ^= 1
        good = 6
    elif damage == "later":  # something after the rows, of a write that nearly ended
        content += rng.bytes(3 * size)
    begun.write_bytes(content)
    places = noted(monkeypatch)
    GramStack.write(path, iter(FAMILY) if source == "iterator" else FAMILY)
    assert path.read_bytes() == whole.read_bytes()
    first = 128 + good * size
    if source == "iterator":  # which comes in fours
        first = 128 + good // 4 * 4 * size
    assert min(place for place in places if place > 0) == first


@pytest.mark.parametrize("source", ["iterator", "family"])
def test_other_kernels_are_not_mixed_with_what_is_there(path, source):
    with pytest.raises(Stopped):
        GramStack.write(path, stopped(19))
    other = kernels.subset_gaussians(M, seed=1).fit(X)
    more = kernels.subset_gaussians(M).fit(rng.normal(size=(N + 1, 4)))
    for family in (other, more):
        begun = (path.parent / "K.npy.part").read_bytes() if not path.exists() else None
        GramStack.write(path, iter(family) if source == "iterator" else family)
        np.testing.assert_array_equal(
            GramStack.open(path).dense(), GramStack(family).dense()
        )
        assert begun is None or len(begun) > 128
    with pytest.raises(Stopped):
        GramStack.write(path, stopped(19))
    GramStack.write(path, iter(FAMILY), dtype="float32")
    assert GramStack.open(path).dtype == np.float32


def test_fewer_kernels_than_are_there(path):
    with pytest.raises(Stopped):
        GramStack.write(path, stopped(19))
    GramStack.write(path, FAMILY.subset(np.arange(7)))
    assert GramStack.open(path).M == 7


def test_a_file_that_is_being_written_is_left_alone(path):
    with open(path.parent / "K.npy.part", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match="being written by another process"):
            GramStack.write(path, FAMILY)
    GramStack.write(path, FAMILY)


def test_a_full_disk_leaves_what_can_be_gone_on_with(path, monkeypatch):
    def full(handle, given, at):
        if at > 3000:
            raise OSError(28, "No space left on device")
        return write(handle, given, at)

    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        GramStack.write(path, FAMILY)
    assert not path.exists()
    monkeypatch.setattr(os, "pwrite", write)
    GramStack.write(path, FAMILY)
    assert GramStack.open(path).M == M


SLOWLY = """
import sys, time
import numpy as np
from mklopt import GramStack, kernels
from mklopt.grams import disk_writer
disk_writer.BATCH_BYTES = 1
X = np.random.default_rng(0).normal(size=(12, 4))
def slowly():
    for m, K in enumerate(kernels.subset_gaussians(200).fit(X)):
        print(m, flush=True)
        time.sleep(0.002)
        yield K
GramStack.write(sys.argv[1], slowly())
"""


def test_killed_again_and_again(path):
    """kill −9 at random moments: each time it goes on, and the file is the same."""
    family = kernels.subset_gaussians(200).fit(
        np.random.default_rng(0).normal(size=(12, 4))
    )
    GramStack.write(path.parent / "whole", iter(family))
    begun, sizes = path.parent / "K.npy.part", []
    for kernel in (20, 61, 150):
        command = [sys.executable, "-c", SLOWLY, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() == str(kernel):
                    break
            time.sleep(0.003 * rng.uniform())
            process.send_signal(signal.SIGKILL)
        assert not path.exists()
        sizes.append(begun.stat().st_size)
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    GramStack.write(path, iter(family))
    assert path.read_bytes() == (path.parent / "whole").read_bytes()
