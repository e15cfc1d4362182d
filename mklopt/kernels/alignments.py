"""Alignment of kernels with each other and with a target.

A(K, L) = ⟨K, L⟩ / (‖K‖ ‖L‖) in the Frobenius product; centred, of HKH and HLH with
H = I − 11ᵀ/n. The target is L = yyᵀ.

Reference: Cortes et al. (2012), centred alignment.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..grams.stack import GramStack
from ..util.arrays import Array, real_array
from ..util.checks import check_flag
from .normalizations import TINY

SLAB_ENTRIES = 2**22  # numbers in memory at a time (32 MB)
FEWEST_ROWS = 64  # that are read at a time


def alignment(grams: Any, centred: bool = True) -> Array:
    """Alignments of the kernels with each other.

    Parameters
    ----------
    grams : GramStack, or array (M, n, n)
        Kernels, symmetric matrices.
    centred : bool
        Whether kernels are centred first: HKH with H = I − 11ᵀ/n.

    Returns
    -------
    array (M, M)

    Raises
    ------
    ValueError
        If a kernel is zero, or is zero when centred.

    Examples
    --------
    >>> alignment(np.stack([np.eye(2), np.ones((2, 2))]), centred=False)
    array([[1.        , 0.70710678],
           [0.70710678, 1.        ]])
    """
    check_flag(centred, "centred")
    stack = grams if hasattr(grams, "rows") else GramStack(grams)
    products = np.zeros((stack.M, stack.M))
    for _, rows in _slabs(stack, centred):
        flat = rows.reshape(stack.M, -1)
        products += flat @ flat.T
    norms = _norms(np.diag(products), stack.n)
    result = products / np.outer(norms, norms)
    np.fill_diagonal(result, 1.0)
    return result


def target_alignment(grams: Any, y: Any, centred: bool = True) -> Array:
    """Alignments of the kernels with the target yyᵀ.

    Parameters
    ----------
    grams : GramStack, or array (M, n, n)
        Kernels, symmetric matrices.
    y : array (n,) or (n, k)
        One number per sample; for classes 0 … k−1 the (n, k) matrix numpy.eye(k)[y].
    centred : bool
        Whether kernels and target are centred first.

    Returns
    -------
    array (M,)

    Raises
    ------
    ValueError
        If y has the wrong shape or is the same for all samples, or a kernel is zero.
    """
    check_flag(centred, "centred")
    stack = grams if hasattr(grams, "rows") else GramStack(grams)
    Y = real_array(y, "y", "numbers, one or one row per sample")
    if Y.ndim not in (1, 2) or len(Y) != stack.n:
        raise ValueError(
            f"y has shape {Y.shape} but the kernels are {stack.n} × {stack.n}; give "
            "one label, or one row, per sample"
        )
    Y = Y.reshape(stack.n, -1) / (np.max(np.abs(Y)) or 1.0)
    Y = Y - Y.mean(axis=0) if centred else Y
    size = float(np.linalg.norm(Y.T @ Y))
    if not size > TINY * stack.n:
        raise ValueError("y is the same for all samples; give labels that differ")
    dots, squares = np.zeros(stack.M), np.zeros(stack.M)
    together = max(1, SLAB_ENTRIES // (FEWEST_ROWS * stack.n))
    for m in range(0, stack.M, together):  # a million have rows beyond all memory
        part = np.arange(m, min(m + together, stack.M))
        for i, rows in _slabs(stack.subset(part), centred):
            KY = rows.reshape(-1, stack.n) @ Y
            dots[part] += KY.reshape(len(part), -1) @ Y[i].ravel()
            squares[part] += np.einsum("mij,mij->m", rows, rows)
    return np.asarray(dots / (_norms(squares, stack.n) * size))


def _slabs(stack: Any, centred: bool) -> Iterator[tuple[Array, Array]]:
    """Rows i of all kernels, (M, r, n), scaled to a largest entry of 1, and centred.

    Centring comes before the products: terms of the expanded ⟨HKH, HLH⟩ would cancel.
    """
    size = max(1, SLAB_ENTRIES // (stack.M * stack.n))
    parts = np.split(np.arange(stack.n), range(size, stack.n, size))
    top, means = np.zeros(stack.M), np.empty((stack.M, stack.n))
    for i in parts:
        rows = stack.rows(i)
        top = np.maximum(top, np.abs(rows).max(axis=(1, 2)))
        means[:, i] = rows.mean(axis=2)
    top[top == 0] = 1.0
    means /= top[:, None]
    for i in parts:
        rows = stack.rows(i) / top[:, None, None]
        if centred:
            rows -= means[:, i, None] + means[:, None, :]
            rows += means.mean(axis=1)[:, None, None]
        yield i, rows


def _norms(squares: Array, n: int) -> Array:
    norms = np.sqrt(squares)
    if not np.all(norms > TINY * n):
        raise ValueError(
            f"kernel {np.argmin(norms > TINY * n)} is zero, or the same at all points "
            "and so zero when centred; it has no alignment: drop it"
        )
    return norms
