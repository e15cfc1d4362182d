"""Where positive semi-definiteness is proved, by Cholesky, and where it is screened.

Guarantee of `proved_shift`: K + δI ⪰ 0 in exact arithmetic for the δ it returns.
Reference: Rump (2006), "Verification of positive definiteness".

Guarantee of `indefinite`: the kernel that it names is not positive semi-definite: a
quadratic form zᵀKz is negative, far beyond rounding. That it names none proves nothing
about the other samples: it factorizes the kernels of some of them, so many that this
takes no longer than a pass, or a few milliseconds where there are few samples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from ..util.rounding import TINY, gamma

if TYPE_CHECKING:
    from .storage import Triangles

Array = np.ndarray
MAX_DOUBLINGS = 60  # of δ: 2^60 γ_n tr K is larger than every eigenvalue
FEWEST_SAMPLES, MOST_SAMPLES = 64, 256  # to look at, of n; between them n^⅔
ROUNDING, SINGLE_ROUNDING = 1e-6, 1e-4  # zᵀKz/zᵀz above −this · tr K may be rounding


def indefinite(store: Triangles, rounding: float, first: int = 0) -> str:
    """A sentence about a stored kernel that is not positive semi-definite, or "".

    first: the number of the first kernel
    """
    n = store.n
    count = min(n, max(FEWEST_SAMPLES, round(n ** (2 / 3))), MOST_SAMPLES)
    which = np.linspace(0, n - 1, count).astype(np.int64)
    for m in map(int, np.flatnonzero(~store.screen(which, rounding))):
        K = store.kernel(m)[np.ix_(which, which)]
        unit = float(np.max(np.abs(K)))
        form, trace = np.linalg.eigvalsh(K / unit)[0], np.trace(K / unit)
        if form < -rounding * trace:
            return (
                f"kernel {first + m} is not positive semi-definite: zᵀKz = "
                f"{form * unit:.3g} for a unit vector z with {count} entries, where "
                f"the diagonal sums to {trace * unit:.3g}; use another kernel, or clip "
                "its negative eigenvalues"
            )
    return ""


def root(K: Array, shift: float = 0.0, drop: float = 1e-13) -> Array:
    """L with K + δI = L Lᵀ, from eigenvectors.

    Eigenvalues below `drop` times the largest are rounding and left out.
    """
    values, vectors = scipy.linalg.eigh(K)
    if values[0] < -1e-8 * max(values[-1], -values[0]):
        raise ValueError(
            f"a kernel is not positive semi-definite: its smallest eigenvalue is "
            f"{values[0]:.3g}, its largest {values[-1]:.3g}; check how it was "
            "computed, or clip its negative eigenvalues"
        )
    values = values + shift
    keep = values > drop * max(values[-1], 0.0)
    if not np.any(keep):
        return np.zeros((len(K), 1))
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))


def proved_shifts(store: Any, index: Array, names: Array) -> tuple[Array, bool]:
    """δ of some kernels of a store, and whether a theorem was enough for all of them.

    names: the numbers that messages call the kernels by
    """
    known = getattr(store, "theorem", None)  # of all kernels, ∞ where there is none
    delta = np.full(len(index), np.inf) if known is None else known[index].copy()
    others = np.flatnonzero(~np.isfinite(delta))
    for place in others.tolist():
        name = f"kernel {names[place]}"
        delta[place] = proved_shift(np.asarray(store.kernel(index[place])), name)
    return delta, len(others) == 0


def proved_shift(K: Array, name: str) -> float:
    """The smallest δ of a few values tried for which K + δI ⪰ 0 is proved.

    A Cholesky factorization of K − cI that runs to completion in floating point proves
    K ⪰ 0 when c ≥ γ_{n+1} tr K / (1 − γ_{n+1}) (Rump). We take twice that, because the
    subtraction of c is rounded, too. Where the factorization breaks down, δ is doubled.
    K is scaled to a trace of about 1 by a power of two: entries that underflow then are
    much smaller than c.
    """
    trace = float(np.sum(np.maximum(np.diag(K), 0.0)))
    if not np.isfinite(trace):
        raise ValueError(f"{name} is too large for float64; rescale it")
    unit = 2.0 ** max(math.frexp(trace)[1] - 1, -1000)
    delta, total = 0.0, trace / unit
    bound = gamma(len(K) + 2) / (1 - 2 * gamma(len(K) + 2))
    for attempt in range(MAX_DOUBLINGS):
        delta = 0.0 if attempt == 0 else 2.0**attempt * bound * total
        # tr(K + δI) enters the bound, and so does rounding when δ − c is added.
        c = 2 * bound * (total + len(K) * delta) + TINY
        if _cholesky_runs(K / unit, delta - c):
            break
    if delta > 1e-6 * total or (trace == 0 and np.any(K)):
        raise ValueError(
            f"{name} is not positive semi-definite: it would take a shift "
            f"of {delta * unit:.1e} on a trace of {trace:.1e}; check how it was "
            "computed, or clip its negative eigenvalues"
        )
    shift = delta * unit
    return shift if shift / unit >= delta else math.nextafter(shift, math.inf)


def _cholesky_runs(K: Array, shift: float) -> bool:
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    _, info = scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
    return bool(info == 0)
