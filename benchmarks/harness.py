"""What several benchmarks share: problems, clocks, the unit of time, the output.

The unit of time is one pass: K.reshape(M·n, n) @ α over the whole stack of kernels in
full float64 storage, measured in the same process. Ratios to it say the same on a slow
machine and on a fast one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import resource
import time
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from mklopt import data
from mklopt.util import style
from mklopt.util.tables import markdown
from mklopt.util.threads import available, threads

Array = np.ndarray
Found = TypeVar("Found")
VERSIONS = (
    "mklopt", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel", "ecos",
    "scs", "skglm", "celer", "MKLpy",
)  # fmt: skip


# ---- problems ----------------------------------------------------------------


def subset_gaussians(n: int, M: int, seed: int = 0) -> tuple[Array, Array]:
    """Gaussian kernels on random subsets of 20 features, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    K = np.empty((M, n, n))
    for m in range(M):
        Z = X[:, rng.choice(20, size=5, replace=False)]
        square = np.sum(Z**2, axis=1)
        distance = np.maximum(square[:, None] + square - 2 * Z @ Z.T, 0.0)
        K[m] = np.exp(-distance / (2 * rng.uniform(0.5, 3.0) ** 2))
        K[m] = (K[m] + K[m].T) / 2
    return K, np.sign(X[:, 0] + 0.3 * rng.normal(size=n))


# ---- clocks ------------------------------------------------------------------


def medians(*functions: Callable[[], object], rounds: int = 15) -> list[float]:
    """Median times; the functions take turns, so that all see the same machine."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, record in zip(functions, seconds):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return [float(np.median(record)) for record in seconds]


def timed(function: Callable[[], Found]) -> tuple[Found, float]:
    """What a function returns, and its seconds."""
    begun = time.perf_counter()
    found = function()
    return found, time.perf_counter() - begun


def one_pass(K: Array) -> Callable[[], Array]:
    """A function that makes one pass over (M, n, n) kernels."""
    M, n = K.shape[:2]
    return partial(np.matmul, K.reshape(M * n, n), np.ones(n))


def pass_time(K: Array, rounds: int = 7) -> float:
    """Seconds of one pass."""
    return medians(one_pass(K), rounds=rounds)[0]


# ---- processes ---------------------------------------------------------------


def alone(function: Callable[..., Found], *arguments: Any) -> Found:
    """What a function returns, in a process of its own: its peak of memory is its own.

    It has all cores; a child of multiprocessing has one thread by default.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(on_all_cores, (function, *arguments))


def on_all_cores(function: Callable[..., Found], *arguments: Any) -> Found:
    """What a function returns, with all cores."""
    with threads(available()):
        return function(*arguments)


def peak_memory() -> float:
    """The peak of memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


# ---- arguments and output ----------------------------------------------------


def parser(about: str | None) -> argparse.ArgumentParser:
    """A parser of options; --help shows the docstring of the benchmark."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=about, formatter_class=form)


def positive(text: str) -> int:
    """A whole number ≥ 1 from the command line."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; give a whole number ≥ 1")
    return int(text)


def needs_data(main: Callable[[], None]) -> Callable[[], None]:
    """A benchmark that ends with one sentence where its data are missing."""

    @wraps(main)
    def inside() -> None:
        try:
            main()
        except data.DataNotFound as missing:
            raise SystemExit(str(missing)) from None

    return inside


def console(width: int = 120) -> Console:
    """The terminal as it is; a file or a pipe gets lines of a fixed width."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(width=width, highlight=False)


def verdict(good: bool, line: str) -> str:
    """A line that says whether a requirement is met."""
    return f"{'pass' if good else 'FAIL'}  {line}"


def at_most(what: str, number: float, most: float) -> str:
    """A line about a number and its limit."""
    return verdict(number <= most, f"{what}: {number:.2f} ≤ {most:g}")


def report(
    shown: Console,
    name: str,
    about: str | None,
    tables: Sequence[Table],
    lines: Sequence[str] = (),
) -> None:
    """Show tables and lines, and write them to name.md (see `save`)."""
    for table in tables:
        shown.print(table)
    for line in lines:
        shown.print(line, markup=False)
    shown.print(f"written: {save(name, about, tables, lines)}")


def save(
    name: str,
    about: str | None,
    tables: Sequence[Table],
    lines: Sequence[str],
    **settings: object,
) -> Path:
    """Tables and lines as name.md in the folder of figures, with the machine.

    about: the docstring of the benchmark; its second paragraph goes into the file
    """
    known = {**machine(), **settings}
    versions = ", ".join(f"{key} {value}" for key, value in known.items())
    text = [f"Measured with: {versions}.", *(about or "").split("\n\n")[1:2]]
    for table in tables:
        text += [f"**{table.title}**", markdown(table)]
    text += ["\n".join(f"* {line}" for line in lines)]
    return write(f"{name}.md", "\n\n".join(text).rstrip())


def write(name: str, text: str) -> Path:
    """A text file in the folder of figures."""
    style.FOLDER.mkdir(parents=True, exist_ok=True)
    path = style.FOLDER / name
    path.write_text(text + "\n")
    return path


def machine() -> dict[str, str]:
    """What a benchmark ran on: processor, threads, versions, day."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = [
        line.split(":")[1].strip() for line in info.split("\n") if "model name" in line
    ]
    found = {
        "processor": model[0] if model else platform.processor() or platform.machine(),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for name in VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found | {"day": time.strftime("%Y-%m-%d")}
