"""The second checker of certificate files (checker-cpp/), built and run by tests."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from mklopt.util.files import lock

ROOT = Path(__file__).resolve().parents[1]
CHECKER = ROOT / "checker-cpp" / "certificate-checker"
PROBE = "#include <gmpxx.h>\n#include <mpfr.h>\nint main() { return !MPFR_VERSION; }\n"


@cache
def missing() -> str:
    """What the second checker cannot be built without; nothing if all is there."""
    for tool in ("make", "g++"):
        if shutil.which(tool) is None:
            return f"{tool} is missing"
    how = ["g++", "-x", "c++", "-fsyntax-only", "-"]
    probe = subprocess.run(how, input=PROBE, text=True, capture_output=True, timeout=60)
    return "gmpxx.h or mpfr.h is missing" if probe.returncode else ""


@cache
def built() -> Path:
    """The program, made anew if its source changed; skips the test without tools."""
    if missing():
        pytest.skip(f"the second checker cannot be built: {missing()}")
    with open(ROOT / "checker-cpp" / "main.cpp") as file:  # one worker builds
        lock(file.fileno(), wait=True)
        how = ["make", "-C", str(ROOT), "checker", "CXX=g++"]
        done = subprocess.run(how, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return CHECKER


def verdicts(contents: list[bytes], folder: Path) -> list[str]:
    """One line for each file: `proved: …` or `refused: …`."""
    program, paths = built(), []
    for place, content in enumerate(contents):
        paths.append(folder / f"{place}.cert")
        paths[-1].write_bytes(content)
    names = folder / "list"
    names.write_text("".join(f"{path}\n" for path in paths))
    how = [str(program), "--list", str(names)]
    done = subprocess.run(how, capture_output=True, text=True, timeout=600)
    assert not done.stderr, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    if len(lines) > 1:
        pairs = [line.partition(": ") for line in lines]
        assert [pair[0] for pair in pairs] == [*map(str, paths)]
        lines = [pair[2] for pair in pairs]
    good = all(line.startswith("proved: ") for line in lines)
    assert done.returncode == (0 if good else 2)
    return lines
