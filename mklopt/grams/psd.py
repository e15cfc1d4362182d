"""Where positive semi-definiteness is proved: by Cholesky, rounding included.

Guarantee of `proved_shift`: K + δI ⪰ 0 in exact arithmetic for the δ it returns.
Reference: Rump (2006), "Verification of positive definiteness".
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..util.rounding import gamma

Array = np.ndarray
MAX_DOUBLINGS = 60  # of δ: 2^60 γ_n tr K is larger than every eigenvalue


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


def proved_shift(K: Array, name: str) -> float:
    """The smallest δ of a few values tried for which K + δI ⪰ 0 is proved.

    A Cholesky factorization of K − cI that runs to completion in floating point proves
    K ⪰ 0 when c ≥ γ_{n+1} tr K / (1 − γ_{n+1}) (Rump). We take twice that, because the
    subtraction of c is rounded, too. Where the factorization breaks down, δ is doubled.
    """
    n, delta = len(K), 0.0
    bound = gamma(n + 2) / (1 - 2 * gamma(n + 2))
    trace = float(np.sum(np.maximum(np.diag(K), 0.0)))
    if not np.isfinite(trace):
        raise ValueError(f"{name} is too large for float64; rescale it")
    for attempt in range(MAX_DOUBLINGS):
        delta = 0.0 if attempt == 0 else 2.0**attempt * bound * trace
        # tr(K + δI) enters the bound, and so does rounding when δ − c is added.
        c = 2 * bound * (trace + n * delta) + 1e-300
        if _cholesky_runs(K, delta - c):
            break
    if delta > 1e-6 * trace or (trace == 0 and np.any(K)):
        raise ValueError(
            f"{name} is not positive semi-definite: it would take a shift "
            f"of {delta:.1e} on a trace of {trace:.1e}; check how it was "
            "computed, or clip its negative eigenvalues"
        )
    return delta


def _cholesky_runs(K: Array, shift: float) -> bool:
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    _, info = scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
    return bool(info == 0)
