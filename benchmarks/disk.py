"""Kernels on disk: `make bench NAME=disk`.

The size of kloft2011, figure 6: M Gaussians on random subsets of 20 features, between
n = 1000 points (10,000 of them: 74 GB as whole matrices). They are written to a file in
the folder given (20 GB in float32) and solved from there to 1e-3, ℓ1 and ℓ4/3, each in
a process of its own. For each:

    read        what the solve read from the disk
    bandwidth   of plain reads of the same file, one after the other, past the page
                cache, before and after the solve
    ratio       seconds of the solve ÷ (read ÷ bandwidth): at most 1.5
    peak        of memory: at most 3 GB

By default M = 1000; --kernels 10000 is the size of the paper. With --check the kernels
are solved in memory, too: the certificates must have the same bits. With --streamed
they are also solved on the fly, in float64: memory at most 3 GB, the time is shown.
--limit 2GB is a limit of the address space of the solves from the file. The file is
deleted at the end, or kept with --keep.
"""

from __future__ import annotations

import mmap
import os
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import harness
from mklopt import GramStack, kernels
from mklopt.formulations.lp_norm import LpNorm
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util.checks import byte_count
from mklopt.util.tables import plain_table

TOL, MOST_RATIO, MOST_MEMORY = 1e-3, 1.5, 3e9
EXPONENTS = {"ℓ1": 1.0, "ℓ4/3": 4 / 3}
SAMPLE_BYTES = 8 * 2**30  # of a measurement of the bandwidth, at most
BLOCK = 2**25
DIRECT = getattr(os, "O_DIRECT", 0)


@dataclass
class Row:
    """One solve: what it cost, and its certificate."""

    name: str
    seconds: float
    read: float  # bytes
    bandwidth: float  # bytes per second
    memory: float  # bytes at the peak
    bits: tuple[str, ...]
    gap: float

    @property
    def ratio(self) -> float:
        """Seconds per second of plain reading; 0 if nothing is read."""
        return self.seconds * self.bandwidth / self.read if self.read else 0.0


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n points with 20 features, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    return X, np.sign(X[:, 0] + 0.3 * rng.normal(size=n))


def family(n: int, M: int) -> Any:
    """M Gaussians on subsets of the features."""
    return kernels.subset_gaussians(M).fit(points(n)[0])


def bandwidth(path: Path) -> float:
    """Bytes per second of plain reads past the page cache."""
    size = min(path.stat().st_size, SAMPLE_BYTES)
    file, memory = os.open(path, os.O_RDONLY | DIRECT), mmap.mmap(-1, BLOCK)

    def read() -> None:
        for at in range(0, size, BLOCK):
            os.preadv(file, [memory], at)

    try:
        return size / harness.timed(read)[1]
    finally:
        os.close(file)


def run(path: Path, name: str, memory: str, limit: int = 0) -> Row:
    """Solve from the file, in this process; a small solve before compiles the loops."""
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        small = Path(folder) / "small.npy"
        GramStack.write(small, family(200, 40), dtype=GramStack.open(path).dtype)
        on_file(small, name, "0MB")
        on_file(small, name, memory)
    before = bandwidth(path)
    grams = GramStack.open(path, memory)
    found, seconds = harness.timed(lambda: solved(grams, name))
    speed = 2 / (1 / before + 1 / bandwidth(path))
    read = grams.bytes_read
    return Row(
        name,
        seconds,
        read,
        speed,
        harness.peak_memory(),
        bits(found),
        found.relative_gap,
    )


def streamed(n: int, M: int, name: str) -> Row:
    """Solve with kernels that are computed on the fly, in this process."""
    solved(family(200, 40).lazy("0MB"), name)  # compiles the loops
    found, seconds = harness.timed(lambda: solved(family(n, M).lazy(), name))
    gap = found.relative_gap
    return Row(
        f"{name}, on the fly",
        seconds,
        0,
        np.inf,
        harness.peak_memory(),
        bits(found),
        gap,
    )


def on_file(path: Path, name: str, memory: str) -> Any:
    """The result from a file."""
    return solved(GramStack.open(path, memory), name)


def solved(grams: GramStack, name: str) -> Any:
    """The result for the labels of the points."""
    y = points(grams.n)[1]
    return solve(Problem(grams, y, "hinge", LpNorm(EXPONENTS[name])), tol=TOL)


def bits(found: Any) -> tuple[str, ...]:
    """A certificate, to the last bit."""
    c = found.certificate
    return tuple(float(v).hex() for v in (c.primal, c.dual, c.lower, c.upper))


def in_memory(n: int, M: int, dtype: str, name: str) -> tuple[str, ...]:
    """The certificate of the same kernels in memory."""
    return bits(solved(family(n, M).grams(dtype=dtype), name))


def table(rows: list[Row], title: str) -> Table:
    """One line for each solve."""
    numbers = ("solve", "read", "bandwidth", "ratio", "gap", "peak")
    out = plain_table(title, ("formulation",), numbers)
    for r in rows:
        took = (f"{r.seconds:.1f} s", f"{r.read / 1e9:.1f} GB")
        speed = (f"{r.bandwidth / 1e9:.2f} GB/s", f"{r.ratio:.2f}")
        speed = speed if r.read else ("", "")
        out.add_row(r.name, *took, *speed, f"{r.gap:.1e}", f"{r.memory / 1e9:.2f} GB")
    return out


def verdicts(row: Row, same: tuple[str, ...] | None) -> list[str]:
    """Whether a solve keeps the limits."""
    ratio = f"{row.name}: {row.ratio:.2f} ≤ {MOST_RATIO} times the time of reading"
    memory = f"{row.name}: {row.memory / 1e9:.2f} GB ≤ {MOST_MEMORY / 1e9:g} GB"
    proved = f"{row.name}: gap {row.gap:.1e} ≤ {TOL:g}"
    lines = [harness.verdict(row.ratio <= MOST_RATIO, ratio)] if row.read else []
    lines.append(harness.verdict(row.memory <= MOST_MEMORY, memory))
    lines.append(harness.verdict(row.gap <= TOL, proved))
    if same is not None:
        words = f"{row.name}: the certificate has the bits of that in memory"
        lines.append(harness.verdict(same == row.bits, words))
    return lines


def main() -> None:
    """Write the file, solve from it, compare."""
    parser, count = harness.parser(__doc__), harness.positive
    parser.add_argument("--kernels", type=count, default=1000, help="M")
    parser.add_argument("--samples", type=count, default=1000, help="n")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--memory", default="1GB", help="for kernels in use")
    parser.add_argument("--folder", default=".", help="where the file goes")
    parser.add_argument("--only", choices=list(EXPONENTS), help="one formulation")
    parser.add_argument("--check", action="store_true", help="solve in memory, too")
    parser.add_argument("--streamed", action="store_true", help="solve on the fly, too")
    parser.add_argument("--limit", default="0MB", help="of the address space")
    parser.add_argument("--keep", action="store_true", help="keep the file")
    given = parser.parse_args()
    n, M, dtype = given.samples, given.kernels, given.dtype
    path = Path(given.folder) / f"kernels-{M}-{n}-{dtype}.npy"
    limit = byte_count(given.limit, "limit")
    lines, rows = [], []
    if not path.exists():
        seconds = harness.timed(
            lambda: GramStack.write(path, family(n, M), dtype=dtype)
        )[1]
        size = path.stat().st_size
        lines.append(f"written: {size / 1e9:.1f} GB in {seconds:.0f} s")
    try:
        for name in [given.only] if given.only else list(EXPONENTS):
            rows.append(harness.alone(run, path, name, given.memory, limit))
            same = harness.alone(in_memory, n, M, dtype, name) if given.check else None
            lines += verdicts(rows[-1], same)
            if given.streamed:
                rows.append(harness.alone(streamed, n, M, name))
                lines += verdicts(rows[-1], None)
    finally:
        if not given.keep:
            path.unlink()
    tables = [table(rows, f"n = {n}, M = {M}, {dtype}, to {TOL:g}")]
    harness.report(harness.console(110), "disk", __doc__, tables, lines)


if __name__ == "__main__":
    main()
