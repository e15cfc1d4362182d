"""What a solve will cost, before it begins: reads of the kernels, time and memory.

    seconds ≈ reads · (seconds of a read) + SVMs · (seconds of an SVM)
    reads   ≈ first + more · log10(1/tol)

A read is one quad, combine or matvec over all kernels, in half a pass if they are
packed. The numbers of reads are medians over runs (READS). The time of a read
is measured on some of these very kernels (run/read_time.py). Every two reads need one
SVM, which takes about as long as SVM_CHOLESKYS Cholesky factorizations of its matrix.
Of kernels that are read by rows (kernels/by_rows.py), the matrix is that of a block,
and a read has the rows of all samples; a run reads those of support vectors alone.

How good it is. Reads of the default solver are within a factor of 3; those of slow
solvers depend on C and the kernels, and can be off by 10. Time is as good as reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..grams.stack import GramStack
from ..problem import Problem
from ..run.clock import in_words
from ..run.read_time import seconds_of_cholesky, seconds_of_read
from ..solvers import Solver, find
from ..solvers.auto import auto, plan
from ..solvers.machines.by_rows import LARGEST
from ..util.checks import real_number

# Reads up to a gap of 1, and more for each digit: with a smooth Ω*, and without; None:
# too slow to be measured. Lines near the medians of runs to gaps from 1e-2 to 1e-6 with
# hinge, logistic and squared loss, C = 1 and 100, n = 120 and 300, M = 40 and 130. At
# 1e-6 default solvers were between 0.5 and 1.9 times this, slow ones up to 7 times.
READS: dict[str, tuple[tuple[float, float] | None, tuple[float, float] | None]] = {
    "active": ((7.0, 0.4), (7.0, 0.4)),  # Newton in a working set
    "analytic": ((3.0, 0.7), (0.0, 50.0)),  # Newton in log θ; else Anderson
    "fista": ((0.0, 33.0), (0.0, 500.0)),  # 20 steps per iterate
    "hessian": ((9.0, 0.7), (9.0, 0.7)),  # Newton in θ
    "interleaved": ((0.0, 25.0), (0.0, 170.0)),  # rows, one after the other
    "ista": ((0.0, 24.0), (0.0, 500.0)),
    "lp_newton": ((0.0, 7.0), None),  # linear convergence
    "mirror": (None, (0.0, 25.0)),
    "pgd": (None, (0.0, 62.0)),
    "silp": (None, (0.0, 68.0)),  # a cut per SVM
    "simple": (None, (0.0, 150.0)),  # line searches with many SVMs
    "smo_mkl": ((12.0, 3.4), None),  # rows, one after the other
    "spg": (None, (0.0, 45.0)),
    "spicy": ((8.0, 4.5), (15.0, 4.3)),  # Newton inside proximal steps
}
UNKNOWN = (0.0, 100.0)  # reads where the table has no entry
SVM_CHOLESKYS = 6.0
IN_MEMORY = ("packed", "full", "factors")
PRODUCTS = 5  # arrays of M n k numbers that solvers and certificates hold at once …
VECTORS = 20  # … of M numbers, and …
SQUARES = 10  # … of n² numbers


@dataclass(frozen=True)
class Estimate:
    """What a solve will cost.

    It is printed as a few lines.

    Parameters
    ----------
    solver : str
        The solver; for "auto" the one that is to reach the tolerance.
    tol : float
        The relative gap to reach.
    reads : float
        How often all kernels will be read, or computed.
    read_seconds : float
        The time of one read, measured on some of the kernels.
    read_bytes : float
        What one read touches.
    svm_seconds : float
        The time of one inner problem.
    kernel_bytes : float
        The memory of the kernels; 0 if they are not in memory.
    solver_bytes : float
        The memory of products and sums that a solver keeps at once.
    known : bool
        Whether the number of reads comes from runs of this solver.
    """

    solver: str
    tol: float
    reads: float
    read_seconds: float
    read_bytes: float
    svm_seconds: float
    kernel_bytes: float
    solver_bytes: float
    known: bool

    @property
    def seconds(self) -> float:
        """The time of the whole solve."""
        return self.reads * (self.read_seconds + 0.5 * self.svm_seconds)

    @property
    def memory(self) -> float:
        """Bytes: kernels, and what a solver keeps."""
        return self.kernel_bytes + self.solver_bytes

    def __str__(self) -> str:
        place = "" if self.kernel_bytes else ", not in memory"
        doubt = "" if self.known else "; there is no experience with this solver"
        return (
            f"{self.solver} to a gap of {self.tol:.0e}: about {in_words(self.seconds)}"
            f"{doubt}\n"
            f"  {self.reads:.0f} reads of all kernels, {in_words(self.read_seconds)} "
            f"each ({in_bytes(self.read_bytes)}{place})\n"
            f"  memory about {in_bytes(self.memory)}: kernels "
            f"{in_bytes(self.kernel_bytes)}, solver {in_bytes(self.solver_bytes)}"
        )


def estimate(
    problem: Problem, solver: str | Solver = "auto", *, tol: float = 1e-6
) -> Estimate:
    """What `solve` will cost: reads of the kernels, time and memory.

    It measures the time of a read on some of the kernels, in about a second or less.

    Parameters
    ----------
    problem : Problem
        The problem.
    solver : str or Solver
        As in `solve`.
    tol : float
        As in `solve`.

    Returns
    -------
    Estimate
        Printed, it is a few lines.

    Raises
    ------
    ValueError
        If the solver cannot solve the problem, or tol is not between 0 and 1.

    Examples
    --------
    >>> from mklopt.formulations import LpNorm
    >>> problem = Problem(np.eye(2)[None], [1, -1], formulation=LpNorm(p=2))
    >>> estimate(problem).solver
    'analytic'
    """
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        raise ValueError(f"estimate takes a Problem first, got {kind}")
    tol = real_number(tol, "tol")
    if not 0 < tol < 1:
        raise ValueError(f"tol = {tol}; an estimate needs a gap between 0 and 1")
    method = solver if isinstance(solver, Solver) else find(solver, problem)
    if method is auto:
        method = next(stage.solver for stage in plan(problem) if not stage.until)
    smooth, other = READS.get(method.name, (None, None))
    known = smooth if "smooth_dual" in problem.formulation.traits else other
    first, more = known or UNKNOWN
    grams = problem.grams
    touched = 8.0 * grams.full_read * grams.M * grams.n**2
    inside = grams.storage in IN_MEMORY
    return Estimate(
        solver=method.name,
        tol=tol,
        reads=first + more * math.log10(1 / tol),
        read_seconds=seconds_of_read(grams),
        read_bytes=touched,
        svm_seconds=SVM_CHOLESKYS * seconds_of_cholesky(_side(grams)),
        kernel_bytes=touched if inside else 0.0,
        solver_bytes=_kept(problem, inside),
        known=known is not None,
    )


def _kept(problem: Problem, inside: bool) -> float:
    """Bytes that a solver keeps; no products where the kernels are not in memory."""
    M, n, k = problem.grams.M, problem.grams.n, int(np.prod(problem.shape[1:]))
    products = PRODUCTS * M * n * k if inside else 0
    rows = problem.grams.kept_rows  # of kernels that are read by rows
    return 8.0 * (products + VECTORS * M + SQUARES * _side(problem.grams) ** 2) + rows


def _side(grams: GramStack) -> int:
    """The samples of a matrix that an SVM solver has: all, or those of a block."""
    return min(grams.n, LARGEST) if grams.by_rows else grams.n


def in_bytes(count: Any) -> str:
    """A number of bytes as people say it: "800 kB", "1.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            digits = 1 if count < 10 and unit != "bytes" else 0
            return f"{count:.{digits}f} {unit}"
        count /= 1000
    raise AssertionError
