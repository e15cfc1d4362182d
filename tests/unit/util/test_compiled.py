"""Compiled functions: their signatures, and where nothing can be cached."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import float64, int64

from mklopt.util import compiled
from mklopt.util.compiled import READ_ONLY, STACK, VECTOR
from tests.faults import full_disk


def test_signatures_are_compiled_at_once_and_take_read_only_arrays():
    @compiled.compiled(float64(VECTOR, READ_ONLY, STACK, int64))
    def corner(a, b, c, i):
        return a[i] + b[i, i] + c[i, i, i]

    assert len(corner.signatures) == 1
    arrays = [np.full((2,) * d, float(d)) for d in (1, 2, 3)]
    for array in arrays:
        array.flags.writeable = False
    assert corner(*arrays, 1) == 6.0
    with pytest.raises(TypeError):  # nothing is compiled later
        corner(*[array.astype(np.float32) for array in arrays], 1)


# ---- without a cache --------------------------------------------------------------

MODULE = """
from numba import float64
from mklopt.util.compiled import compiled

@compiled(float64(float64))
def twice(x):
    return 2 * x

@compiled(float64(float64))
def thrice(x):
    return 3 * x
"""
USE = "import warnings; warnings.simplefilter('always'); import some; "
USE += "print(some.twice(2.0), some.thrice(2.0))"


def used(folder: Path, code: str = USE, **more: str) -> subprocess.CompletedProcess:
    """A module with compiled functions, imported in a new process."""
    (folder / "some.py").write_text(MODULE)
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), **more}
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=env | {"PYTHONPATH": path}, capture_output=True, text=True
    )


def test_where_nothing_can_be_written_it_works_and_says_so_once(tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    nowhere = {"XDG_CACHE_HOME": "/dev/null", "NUMBA_CACHE_DIR": "/dev/null"}
    (tmp_path / "__pycache__").write_text("in the way")
    done = used(tmp_path, **nowhere)
    assert done.stdout.split() == ["4.0", "6.0"], done.stderr
    assert done.stderr.count("compiled code cannot be cached (cannot cache fun") == 1
    worker = used(tmp_path, **nowhere, MKLOPT_UNCACHED="1")
    assert worker.stdout == done.stdout and worker.stderr == ""


def test_a_full_disk_or_a_damaged_cache_does_not_stop_an_import(tmp_path):
    with full_disk(200):
        done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"], done.stderr
    assert done.stderr.count("cannot be cached ([Errno 27] File too large") == 1
    done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"] and done.stderr == ""
    indices = list((tmp_path / "cache").rglob("*.nbi"))
    assert len(indices) == 2
    for path in indices:
        path.write_bytes(path.read_bytes()[:10])
    done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"], done.stderr
    assert done.stderr.count("cannot be cached") == 1


def test_a_mistake_in_a_function_is_not_taken_for_a_fault_of_the_cache():
    with pytest.raises(Exception, match="not defined"):

        @compiled.compiled(float64(float64))
        def wrong(x):
            return x + nothing  # type: ignore[name-defined]  # noqa: F821

    assert not compiled._uncached


def _asks(text: str) -> bool:
    return "cache=True" in text or "enable_caching" in text


def test_all_that_is_cached_can_do_without():
    """Only `compiled` asks numba for its cache."""
    root = Path(compiled.__file__).parents[1]
    homes = (root, *(root.parent / name for name in ("formulations", "reference")))
    files = {path.resolve() for home in homes for path in home.rglob("*.py")}
    asking = {path.name for path in files if _asks(path.read_text("utf-8"))}
    assert len(files) > 100 and asking == {"compiled.py"}
