"""Matrices that become kernels of a stack: checked one after the other, then stored.

A kernel has to be finite and symmetric, with a non-negative diagonal, and of the size
of the first one. All kinds of stacks refuse others with the same sentences, which name
the kernel by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..util.arrays import real_array
from ..util.checks import check_choice, check_list, check_whole, short
from .factors import Factors
from .psd import ROUNDING, SINGLE_ROUNDING, indefinite
from .storage import Triangles

Array = np.ndarray
DTYPES = (np.float64, np.float32, "float64", "float32", np.dtype("f8"), np.dtype("f4"))
NO_KERNELS = "there are no kernels; expected (M, n, n) with M ≥ 1"


def check_kind(storage: Any, dtype: Any) -> None:
    """Refuse a storage or a type of numbers that there is not."""
    check_choice(storage, "storage", ("packed", "full"))
    if not isinstance(dtype, str | type | np.dtype) or dtype not in DTYPES:
        raise ValueError(f"dtype = {short(dtype)}; choose 'float64' or 'float32'")


def stored(
    K: Any,
    storage: str,
    dtype: np.dtype,
    count: int | None = None,
    screened: bool = False,
) -> Any:
    """A store of the kernels, validated one after the other."""
    if isinstance(K, np.ndarray) or not hasattr(K, "__iter__"):
        K = matrices(K)
    elif count is None and not isinstance(K, Sequence):
        K = check_list(K, "K", "an array (M, n, n), or a list of (n, n) matrices")
    M, store, coarse = count or len(K), None, dtype == np.float32
    for m, given in enumerate(K):
        kernel = matrix(given, m, None if store is None else store.n)
        store = store or Triangles(len(kernel), M, storage, dtype)
        coarse |= place(store, m, given, kernel, m)
    if store is None:
        raise ValueError(NO_KERNELS)
    if screened:
        refuse_indefinite(store, coarse)
    return store


def place(store: Triangles, m: int, given: Any, kernel: Array, number: int) -> bool:
    """Put a kernel in place m of a store; refuse what is none, by its number.

    kernel: `given` as `matrix` returned it
    returns: whether the entries were given in less than float64
    """
    single = getattr(given, "dtype", None) in (np.float32, np.float16)
    if wrong := wrong_with(*store.store(m, kernel), single, store.dtype):
        raise ValueError(f"kernel {number} {wrong}")
    return single


def refuse_indefinite(store: Triangles, coarse: bool, first: int = 0) -> None:
    """Refuse kernels that are clearly indefinite; the first one has this number."""
    if wrong := indefinite(store, SINGLE_ROUNDING if coarse else ROUNDING, first):
        raise ValueError(wrong)


def wrong_with(
    top: float, skew: float, lowest: float, nan: float, single: bool, dtype: np.dtype
) -> str:
    """What is wrong with a kernel, by the measures of loops.store; "" if nothing is."""
    close = (1e-4 if single else 1e-10) * top  # rounding of symmetric entries
    if nan != 0 or not np.isfinite(top):
        return "has NaN or infinite entries; clean the data it comes from"
    if skew > close:
        mean = "pass (K + K.transpose(0, 2, 1))/2"
        return f"is not symmetric; {mean} if the difference is only rounding"
    if lowest < -close:
        psd = "so it is not positive semi-definite"
        return f"has a negative diagonal entry, {psd}; check how it was computed"
    largest = float(np.finfo(dtype).max)  # compared in float64
    return f"is too large for {dtype}; rescale it" if top > largest else ""


def matrices(K: Any) -> Array:
    """Kernels as one array (M, n, n); others are refused by their shape."""
    K = K if isinstance(K, np.ndarray) else np.asarray(K)
    if K.ndim != 3 or K.shape[1] != K.shape[2] or 0 in K.shape:
        raise ValueError(
            f"K has shape {K.shape}; expected (M, n, n), one square matrix per kernel "
            "(a single kernel is K[None])"
        )
    return K


def matrix(given: Any, m: int, n: int | None) -> Array:
    """One kernel as contiguous float64; copied only when it is not."""
    plain = isinstance(given, np.ndarray) and not isinstance(given, np.ma.MaskedArray)
    if plain and given.dtype == np.float64:
        kernel = np.ascontiguousarray(given)
    else:
        kernel = real_array(given, f"kernel {m}", "an (n, n) matrix of numbers")
    if kernel.ndim != 2 or 0 in kernel.shape or kernel.shape != (n or len(kernel),) * 2:
        size = "square" if n is None else f"{n} × {n} like the first"
        raise ValueError(
            f"kernel {m} has shape {kernel.shape}; expected a {size} matrix"
        )
    return kernel


def stored_factors(given: Any, ranks: Any, dtype: np.dtype) -> Factors:
    """A store of factors, validated."""
    if ranks is None:
        given = check_list(given, "factors", "(n, r) matrices, one per kernel")
        given = [real_array(L, "a factor", "an (n, r) matrix") for L in given]
        shapes = [L.shape for L in given]
        one_n = len({shape[:1] for shape in shapes}) == 1
        if not one_n or any(len(shape) != 2 or 0 in shape for shape in shapes):
            raise ValueError(
                f"factors have shapes {shapes}; give one (n, r) matrix per kernel, "
                "all with the same n"
            )
        store = Factors([L.astype(dtype, copy=False) for L in given])
    else:
        if not isinstance(given, np.ndarray) or given.dtype != dtype:
            given = real_array(given, "factors", "an (n, R) matrix").astype(dtype)
        counts = [check_whole(r, "a rank", 1) for r in ranks]
        if given.ndim != 2 or not given.size or given.shape[1] != sum(counts):
            raise ValueError(
                f"factors have shape {given.shape}; with ranks that sum to "
                f"{sum(counts)} give one (n, {sum(counts)}) matrix"
            )
        store = Factors(given, np.array(counts))
    if not store.finite:
        for m in range(len(store.ends) - 1):
            if not np.all(np.isfinite(store.factor(m))):
                raise ValueError(
                    f"factor {m} has NaN or infinite entries; clean the data it "
                    "comes from"
                )
    return store
