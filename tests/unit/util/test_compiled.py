"""Compiled functions: their signatures, and where nothing can be cached."""

from __future__ import annotations

import gc
import os
import pickle
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import float64, int64, njit
from numba.core import event

from mklopt.util import compiled
from mklopt.util.compiled import READ_ONLY, read_only
from tests.faults import full_disk

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


def test_signatures_are_compiled_at_once_and_take_read_only_arrays():
    @compiled.compiled(float64(READ_ONLY, int64))
    def corner(a, i):
        return a[i, i]

    assert len(corner.signatures) == 1
    assert corner(np.eye(2), 1) == corner(read_only(np.eye(2)), 1) == 1.0
    with pytest.raises(TypeError):  # nothing is compiled later
        corner(np.eye(2, dtype=np.float32), 1)


def test_read_only_views_have_one_type_and_leave_the_array_alone():
    @compiled.compiled()
    def first(a):
        return a[0, 0]

    given = np.eye(3)
    for array in (given, read_only(given), given.T.copy("F"), given[:, ::-1]):
        first(read_only(array))
    assert len(first.signatures) == 1 and given.flags.writeable
    assert np.shares_memory(given, read_only(given))
    with pytest.raises(ValueError, match="read-only"):
        read_only(given)[0, 0] = 2.0


# ---- what was compiled ------------------------------------------------------------


def test_what_is_compiled_is_counted_once_and_other_people_s_is_not(monkeypatch):
    monkeypatch.setattr(compiled, "_cache", lambda *_: None)

    @compiled.compiled()
    def ours(x):
        return abs(x) + 1

    before, seconds = compiled.compilation.count, compiled.compilation.seconds
    njit(lambda x: x + 2)(1.0)
    event.end_event("numba:compile", data=None)  # of another version, another target
    event.end_event("numba:compile", data={"dispatcher": None})
    assert compiled.compilation.count == before
    ours(1.0), ours(2.0)
    assert compiled.compilation.count == before + 1
    assert 0 < compiled.compilation.seconds - seconds < 20
    ours(1)  # another type
    assert compiled.compilation.count == before + 2


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_afterwards_as_before(collecting, monkeypatch):
    monkeypatch.setattr(compiled, "_cache", lambda *_: None)
    inner = compiled.compiled()(lambda x: x + 1)

    @compiled.compiled()
    def good(x):
        return inner(x) + 2

    @compiled.compiled()
    def bad(x):
        return good(x) + nothing  # type: ignore[name-defined]  # noqa: F821

    try:
        gc.enable() if collecting else gc.disable()
        for function in (bad, good):
            with suppress(Exception):
                function(1.0)
            assert gc.isenabled() == collecting
        assert good(1.0) == 4.0
    finally:
        gc.enable()


def said_on_a_terminal(folder: Path, code: str, **more: str) -> str:
    """What a new process writes to a terminal that is its standard error."""
    ours, its = os.openpty()
    try:
        done = used(folder, code, its, **more)
        assert done.stdout.split() == ["4.0", "6.0"]
        return os.read(ours, 10_000).decode() if _waiting(ours) else ""
    finally:
        os.close(ours)
        os.close(its)


def _waiting(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0.0)[0])


SOON = "from mklopt.util import compiled; compiled.NOTICE_AFTER = 0.0; "


def test_a_terminal_is_told_once_that_code_is_compiled(tmp_path):
    said = said_on_a_terminal(tmp_path, SOON + USE)
    assert said.count("mklopt: compiling once, about") == 1 and said.count("\n") == 1
    assert said_on_a_terminal(tmp_path, SOON + USE) == ""  # it is cached


def test_workers_pipes_and_short_waits_are_not_told(tmp_path):
    worker = {"MKLOPT_COMPILING": "1"}  # the process that started it has told
    assert said_on_a_terminal(tmp_path / "a", SOON + USE, **worker) == ""
    assert used(tmp_path / "b", SOON + USE).stderr == ""
    assert said_on_a_terminal(tmp_path / "c", USE) == ""  # 0.3 s
    child = "import multiprocessing as m; m.parent_process = lambda: m; "
    assert said_on_a_terminal(tmp_path / "d", child + SOON + USE) == ""


# ---- without a cache --------------------------------------------------------------


def used(
    folder: Path, code: str = USE, stderr: Any = subprocess.PIPE, **more: str
) -> subprocess.CompletedProcess:
    """A module with compiled functions, imported in a new process."""
    folder.mkdir(exist_ok=True)
    if not (folder / "some.py").exists():  # numba 0.61 asks when it was written
        (folder / "some.py").write_text(MODULE)
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), **more}
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command,
        env=env | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
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


def test_a_cache_with_a_class_that_is_gone_is_made_anew(tmp_path):
    used(tmp_path)
    indices = list((tmp_path / "cache").rglob("*.nbi"))
    for path in indices:  # a global of a module, as old pickles name a class
        version = pickle.dumps(numba.__version__)
        path.write_bytes(version + b"cmklopt.problem\nGone\n.")
    done = used(tmp_path)
    assert done.stdout.split() == ["4.0", "6.0"] and done.stderr == ""
    assert not any(path.read_bytes().endswith(b"Gone\n.") for path in indices)


def test_a_mistake_in_a_function_is_not_taken_for_a_fault_of_the_cache():
    with pytest.raises(Exception, match="not defined"):

        @compiled.compiled(float64(float64))
        def wrong(x):
            return x + nothing  # type: ignore[name-defined]  # noqa: F821

    assert not compiled._uncached


def _asks(text: str) -> bool:
    return any(
        word in text for word in ("cache=True", "enable_caching", "FunctionCache")
    )


def test_all_that_is_cached_can_do_without():
    """Only `compiled` asks numba for its cache."""
    root = Path(compiled.__file__).parents[1]
    homes = (root, *(root.parent / name for name in ("formulations", "reference")))
    files = {path.resolve() for home in homes for path in home.rglob("*.py")}
    asking = {path.name for path in files if _asks(path.read_text("utf-8"))}
    assert len(files) > 100 and asking == {"compiled.py"}
