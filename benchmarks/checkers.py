"""The two checkers of certificate files: `make bench NAME=checkers`.

`make checker` builds the second one first. Processor seconds and memory of whole runs
of each program, on files of several sizes. The limits: 10 s for the standard-library
checker with n = 200, M = 20, and 60 s for the compiled one with n = 1000, M = 100
kernels by factors. Both have to prove their files.

    python -m benchmarks checkers --quick      # n = 200, M = 20 only
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import harness
from mklopt import kernels
from mklopt.certificates.certificate import certify
from mklopt.certificates.portable import save_certificate
from mklopt.formulations import LpNorm
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.util.tables import plain_table

ROOT = Path(__file__).resolve().parents[1]
PYTHON = [sys.executable, "-I", "-S", str(ROOT / "mklopt/certificates/checker.py")]
COMPILED = [str(ROOT / "checker-cpp" / "certificate-checker")]
FEATURES = 10  # of points
LARGE = 500  # samples from which on only the compiled checker runs


class Case(NamedTuple):
    """A file: its kernels, their storage, and how long the checkers may take."""

    storage: str
    n: int
    M: int
    seconds: dict[str, float]

    def write(self, path: Path) -> None:
        """A certificate of an arbitrary point: it takes as long as a good one."""
        rng = np.random.default_rng(0)
        y, fitted = np.where(rng.normal(size=self.n) > 0, 1.0, -1.0), None
        if self.storage == "factors":
            columns = 100 if self.n >= LARGE else 20
            L = rng.normal(size=(self.M, self.n, columns)) / np.sqrt(columns)
            grams = GramStack.from_factors(L)
        else:
            family = kernels.gaussians(np.linspace(0.5, 5, self.M))
            fitted = family.fit(rng.normal(size=(self.n, FEATURES)))
            grams = fitted.grams()
        problem = Problem(grams, y, "hinge", LpNorm(4 / 3))
        alpha = -problem.loss.gradient(0.3 * rng.normal(size=self.n), y)
        found = certify(problem, alpha, np.full(self.M, 0.01))
        save_certificate(found, path, fitted if self.storage == "rules" else None)


CASES = (
    Case("entries", 200, 20, {"Python": 10, "C++": 10}),
    Case("factors", 200, 20, {"Python": 10, "C++": 10}),
    Case("rules", 200, 20, {"Python": 10, "C++": 10}),
    Case("factors", 1000, 100, {"C++": 60}),
    Case("entries", 1000, 20, {"C++": 60}),
    Case("rules", 1000, 20, {"C++": 60}),
)


# A small process of its own: a child begins with the peak memory of its parent.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def run(command: list[str]) -> tuple[bool, float, float]:
    """Whether a file is proved, processor seconds, and megabytes."""
    how = [sys.executable, "-I", "-S", "-c", MEASURE, *command]
    done = subprocess.run(how, check=True, capture_output=True, text=True)
    code, seconds, memory = done.stdout.split()
    return code == "0", float(seconds), float(memory)


def main() -> None:
    """A row for each file and checker, and whether the limits hold."""
    parser = harness.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="the small files only")
    given = parser.parse_args()
    if not Path(COMPILED[0]).is_file():
        raise SystemExit("there is no second checker: run `make checker` first")
    numbers = ("file, MB", "checker", "seconds", "memory, MB", "limit, s")
    table, wrong = plain_table("checkers", ["kernels"], numbers), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.cert"
        for case in CASES[:3] if given.quick else CASES:
            case.write(path)
            size = path.stat().st_size / 1e6
            name = f"{case.storage}, n = {case.n}, M = {case.M}"
            for checker, limit in case.seconds.items():
                how = {"Python": PYTHON, "C++": COMPILED}[checker]
                proved, seconds, memory = run([*how, str(path)])
                wrong += [] if proved and seconds <= limit else [f"{name}, {checker}"]
                row = f"{size:.2g}", checker, f"{seconds:.2f}", f"{memory:.0f}"
                table.add_row(name, *row, f"{limit:g}")
    line = f"not proved, or above the limit: {', '.join(wrong) or 'none'}"
    verdict = harness.verdict(not wrong, line)
    harness.report(harness.console(), "checkers", __doc__, [table], [verdict])


if __name__ == "__main__":
    main()
