"""What a user waits for, from X to a certified solution: `make bench NAME=from_x`.

Building: nanoseconds per distinct entry of n(n + 1)/2 · M, from X to a packed stack of
unit trace, with one thread and with all cores; best of the rounds, because the first
one pays for fresh memory. Solving: from X to a relative gap of 1e-6. Starting: the
first solve of a new process, with an empty cache of compiled code and with a full one,
and the first command of the README.

    python -m benchmarks from_x --rounds 2
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import mklopt
from benchmarks import harness
from benchmarks.harness import at_most
from mklopt import kernels
from mklopt.formulations import LpNorm
from mklopt.util.tables import plain_table

ONE_AND_ALL = {"one thread": 1, "all cores": None}
SECOND_CORE = 0.6  # of the time of one thread
FIRST = """
import numpy as np, mklopt
from mklopt import kernels
from mklopt.formulations import LpNorm
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 8))
y = np.sign(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=500))
grams = kernels.gaussians(np.geomspace(0.3, 10, 40)).fit(X).grams()
result = mklopt.solve(mklopt.Problem(grams, y, "hinge", LpNorm(2.0)))
assert result.converged
"""
README_COMMAND = (
    'mklopt solve wdbc --kernels "gaussian(2),linear" --formulation lp:p=2 '
    "--loss hinge --C 1"
)


def on_subsets(n: int, M: int) -> Callable[[], Any]:
    """A function that builds M Gaussians, each on ten features of its own."""
    X = np.random.default_rng(0).normal(size=(n, 30))
    parts = [np.random.default_rng(m).choice(30, 10, replace=False) for m in range(M)]
    views = [np.ascontiguousarray(X[:, part]) for part in parts]
    family = kernels.views([kernels.gaussians([2.0])] * M, list(range(M)))
    return lambda: family.fit(views, "unit_trace").grams()


def points(n: int) -> np.ndarray:
    """n random points with ten features."""
    return np.random.default_rng(0).normal(size=(n, 10))


def of_widths(n: int, M: int) -> Callable[[], Any]:
    """A function that builds Gaussians of M widths on the same ten features."""
    X, widths = points(n), np.geomspace(0.3, 30, M)
    return lambda: kernels.gaussians(widths).fit(X, "unit_trace").grams()


BUILDING = {  # what, and the most nanoseconds per entry with one thread
    "10 features of each kernel, n = 5000, M = 20": (on_subsets, 5000, 20, 5.0),
    "50 widths, 10 features, n = 2000": (of_widths, 2000, 50, 3.0),
}


def best(function: Callable[[], Any], rounds: int) -> float:
    """The least seconds of some rounds, after one that is not counted."""
    function()
    return min(harness.timed(function)[1] for _ in range(rounds))


def building(rounds: int) -> tuple[list, list[str]]:
    """Nanoseconds per entry with one thread and with all cores, and the verdicts."""
    rows: list[tuple] = []
    lines: list[str] = []
    for what, (make, n, M, most) in BUILDING.items():
        build, entries, took = make(n, M), M * n * (n + 1) / 2, []
        for k in ONE_AND_ALL.values():
            with mklopt.threads(k):
                took.append(1e9 * best(build, rounds) / entries)
        rows.append((what, *took))
        lines.append(at_most(f"{what}: ns per entry, one thread", took[0], most))
        share = took[1] / took[0]
        lines.append(at_most(f"{what}: all cores to one", share, SECOND_CORE))
    return rows, lines


def solving(rounds: int, n: int = 2000, M: int = 50) -> tuple[list, list[str]]:
    """Seconds from X to 1e-6: ℓ2 norm of the weights, hinge, C = 10, noisy labels."""
    rng, build = np.random.default_rng(1), of_widths(n, M)
    y = np.sign(points(n)[:, 0] + 0.3 * rng.normal(size=n))

    def both() -> None:
        problem = mklopt.Problem(build(), y, "hinge", LpNorm(2.0), C=10.0)
        assert mklopt.solve(problem, tol=1e-6).converged

    took = []
    for k in ONE_AND_ALL.values():
        with mklopt.threads(k):
            took.append(best(both, rounds))
    what = f"from X to 1e-6, n = {n}, {M} widths, ℓ2"
    return [(what, *took)], [at_most(f"{what}: seconds, one thread", took[0], 1.1)]


def starting(code: str = FIRST) -> tuple[list, list[str]]:
    """Seconds of the first solve of a new process, cold and warm; a command, warm."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"NUMBA_CACHE_DIR": folder}
        cold, warm, again = (_seconds([sys.executable, "-c", code], env) for _ in "123")
    program, *words = shlex.split(README_COMMAND)
    command = [str(Path(sys.executable).with_name(program)), *words]
    first, told = (_seconds(command, dict(os.environ)) for _ in "12")
    warm = min(warm, again)
    rows = [("first solve", cold, warm), ("README's command", first, told)]
    lines = [
        at_most("first solve of a new process, cold: seconds", cold, 8.0),
        at_most("first solve of a new process, warm: seconds", warm, 1.0),
        at_most("README's first command, warm: seconds", told, 2.5),
    ]
    return rows, lines


def _seconds(command: list[str], env: dict[str, str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[:3]} failed: {done.stderr[-500:]}")
    return time.perf_counter() - begun


def main() -> None:
    """Building, solving, starting."""
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=harness.positive, default=5)
    options = parser.parse_args()
    tables: list[Table] = []
    lines: list[str] = []
    for title, names, (rows, found) in (
        ("building, ns per entry", tuple(ONE_AND_ALL), building(options.rounds)),
        ("solving, seconds", tuple(ONE_AND_ALL), solving(options.rounds)),
        ("starting, seconds", ("first", "again"), starting()),
    ):
        table = plain_table(title, ("what",), names)
        for what, *numbers in rows:
            table.add_row(what, *(f"{number:.2f}" for number in numbers))
        tables.append(table)
        lines += found
    harness.report(harness.console(), "from_x", __doc__, tables, lines)


if __name__ == "__main__":
    main()
