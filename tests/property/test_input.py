"""Malformed files: a sentence, never a traceback, never long, never code from a file.

A thing that reads files is given files that were cut, flipped, spliced or rebuilt with
wrong parts. It may take them or refuse them with one sentence; the commands then end
with exit code 2.
"""

from __future__ import annotations

import io
import json
import time
import warnings
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt import Problem, Result, Trace, data, solve
from mklopt.campaign.ledger import Ledger
from mklopt.cli import main
from mklopt.formulations import BlockL1

Random = np.random.Generator
CASES = [50, pytest.param(1700, marks=pytest.mark.full)]  # × 6 readers
WORDS = (
    b"", b"\n", b"\0", b"{", b"}", b"[" * 50, b'"', b",", b"null", b"NaN", b"1e999",
    b"-1", b"true", b"\xff\xfe", b"9" * 400, b"= 3", b"\\ud800", b"PK\x03\x04", b"'O'",
)  # fmt: skip
LONGEST = 1.0  # seconds of processor time


def changed(content: bytes, rng: Random) -> bytes:
    """The content with one to three accidents."""
    for _ in range(rng.integers(1, 4)):
        i, j = sorted(rng.integers(0, len(content) + 1, 2).tolist())
        accident = rng.integers(0, 5)
        if accident == 0:
            content = content[:i]
        elif accident == 1:
            content = content[:i] + content[min(j, i + 20) :]
        elif accident == 2 and content:
            i %= len(content)
            flipped = bytes([content[i] ^ (1 << rng.integers(0, 8))])
            content = content[:i] + flipped + content[i + 1 :]
        elif accident == 3:
            content = content[:i] + WORDS[rng.integers(len(WORDS))] + content[i:]
        else:
            content = content[:j] + content[i:]
    return content


def odd_array(rng: Random) -> np.ndarray:
    """Something that an archive may hold where numbers of a shape were expected."""
    shape = ((), (0,), (1,), (3,), (8,), (2, 8), (8, 8), (1, 8, 8), (2, 8, 8))
    values = rng.normal(size=shape[rng.integers(len(shape))])
    kinds: list = [float, np.float32, int, bool, complex, "S3", "U2", "M8[s]", "V4"]
    kind = kinds[rng.integers(len(kinds))]
    odd = rng.choice([0.0, np.nan, np.inf, 1e300, -1.0, 1.0])
    if kind is float:
        return values * odd if rng.random() < 0.7 else np.full(values.shape, odd)
    if kind in ("M8[s]", "V4"):
        return np.zeros(values.shape, kind)
    return values.astype(kind)


def rebuilt(content: bytes, rng: Random) -> bytes:
    """The archive with one of its parts exchanged, dropped, added or described anew."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    name = str(rng.choice(list(arrays)))
    how = rng.integers(0, 4)
    if how == 0 and len(arrays) > 1:
        del arrays[name]
    elif how == 1:
        arrays["more"] = odd_array(rng)
    elif "about.json" in arrays and how == 2:
        text = changed(arrays["about.json"].tobytes(), rng)
        arrays["about.json"] = np.frombuffer(text, np.uint8)
    else:
        arrays[name] = odd_array(rng)
    return archived(arrays, packed=rng.random() < 0.5)


def archive(content: bytes, rng: Random) -> bytes:
    return (rebuilt if rng.random() < 0.6 else changed)(content, rng)


@lru_cache(maxsize=1)
def problem() -> Problem:
    rng = np.random.default_rng(0)
    L = rng.normal(size=(2, 8, 3))
    return Problem(
        L @ L.transpose(0, 2, 1), np.tile([1.0, -1.0], 4), "hinge", BlockL1()
    )


def archived(arrays: dict[str, Any], packed: bool = False) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


# ---- the readers: (a good file, how it is broken, how it is read) -------------------


def command(*arguments: str) -> None:
    """Run mklopt; exit code 2 with a sentence becomes a ValueError here."""
    done = CliRunner().invoke(main, ["certify", "--jobs", "1", *arguments])
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    assert done.exit_code in (0, 1, 2), done.output
    if done.exit_code == 2:
        assert "Error: " in done.output, done.output
        raise ValueError(done.output.split("Error: ")[1])


TINY = ("--solver", "hessian", "--loss", "hinge", "--formulation", "BlockL1")


def rows(folder):
    out = ("--data", "small", "--out", str(folder))
    command(*TINY, *out)
    path = folder / "rows.jsonl"
    whole = path.read_bytes()
    other = whole.replace(b'"hessian"', b'"hessiam"')  # a broken one among good ones
    assert Ledger(path).rows

    def broken(content: bytes, rng: Random) -> bytes:
        return whole + changed(content, rng) + whole

    return path, other, broken, partial(command, *TINY, *out)


def config(folder):
    path = folder / "job.toml"
    text = b"""# a config
solver = ["hessian"]
loss = "hinge"
formulation = ['BlockL1']
data = ["small"]
quick = true
limit = 30.0
"""
    out = ("--out", str(folder), "--solver", "hessian", "--data", "small")
    return path, text, changed, partial(command, "--config", str(path), *out, *TINY)


def own(folder):
    path = folder / "mine.npz"
    content = archived({"K": problem().grams.dense(), "y": problem().y})
    out = ("--data", str(path), "--out", str(folder), "--quick")
    return path, content, archive, partial(command, *TINY, *out)


def trace_of(folder):
    path = folder / "trace.npz"
    solve(problem(), "hessian", max_iter=4).trace.save(path)

    def read():
        found = Trace.load(path)
        found.to_frame()
        assert str(found)

    return path, path.read_bytes(), archive, read


def result_of(folder):
    path = folder / "result.npz"
    solve(problem(), "hessian", max_iter=4).save(path)

    def read():
        found = Result.load(path, problem())
        assert str(found) and len(found.weights) == 2

    return path, path.read_bytes(), archive, read


def table_of(folder):
    path = folder / "liver.npz"
    content = archived({"X": np.ones((8, 2)), "y": np.tile([1.0, -1.0], 4)})
    return path, content, archive, partial(data.load, "liver")


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("reader", [rows, config, own, trace_of, result_of, table_of])
def test_malformed_files_get_a_sentence(reader, cases, tmp_path, monkeypatch):
    monkeypatch.setenv("MKLOPT_DATA", str(tmp_path))
    path, content, broken, read = reader(tmp_path)
    path.write_bytes(content if reader is not rows else path.read_bytes())
    read()  # the good file is read
    refused = 0
    for case in range(cases):
        rng = np.random.default_rng([case, len(reader.__name__)])
        path.write_bytes(broken(content, rng))
        begun = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                read()
        except ValueError as error:  # anything else is a traceback, and fails here
            refused += 1
            said = str(error).strip()
            assert 10 < len(said) < 2000, (case, said)
            taken = time.process_time() - begun
            assert taken < LONGEST, f"case {case} took {taken:.1f} s"
    assert refused > cases / 4


# ---- what no accident makes ---------------------------------------------------


class Trap:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("reader", [own, trace_of, result_of, table_of])
def test_no_code_is_run_from_a_file(reader, tmp_path, monkeypatch):
    monkeypatch.setenv("MKLOPT_DATA", str(tmp_path))
    path, content, _, read = reader(tmp_path)
    with np.load(io.BytesIO(content)) as found:
        names = list(found)
    trap = np.array([Trap(str(tmp_path / "sprung"))], dtype=object)
    path.write_bytes(archived(dict.fromkeys(names, trap)))
    with pytest.raises(ValueError, match="allow_pickle"):
        read()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("reader", [own, trace_of, result_of, table_of])
def test_a_small_file_cannot_ask_for_much(reader, tmp_path, monkeypatch):
    """200 MB of zeros pack into 200 kB, and are not unpacked."""
    monkeypatch.setenv("MKLOPT_DATA", str(tmp_path))
    path, content, _, read = reader(tmp_path)
    with np.load(io.BytesIO(content)) as found:
        names = list(found)
    zeros = np.zeros(25_000_000)
    path.write_bytes(archived({names[0]: zeros}, packed=True))
    begun = time.process_time()
    with pytest.raises(ValueError, match="unpacked it would take 200000"):
        read()
    assert time.process_time() - begun < LONGEST


def test_a_result_with_words_for_numbers_is_refused(tmp_path):
    path, content, _, read = result_of(tmp_path)
    with np.load(io.BytesIO(content)) as found:
        arrays = dict(found)
    about = json.loads(arrays["about.json"].tobytes())
    wrongs: list[dict[str, Any]] = [
        {"about": []}, {"about": {"tol": "x"}}, {"status": []}, {"kind": 3},
    ]  # fmt: skip
    for wrong in wrongs:
        note = np.frombuffer(json.dumps(about | wrong).encode(), np.uint8)
        path.write_bytes(archived(arrays | {"about.json": note}))
        with pytest.raises(ValueError, match=r"result\.npz"):
            read()
