"""GramStack: the only way to touch kernel matrices, and a counter of passes over them.

    quad(A)         (tr AᵀK_mA)_m          A is (n,) or (n, k)
    against(S)      (⟨K_m, S⟩)_m           S is symmetric
    combine(theta)  Σ θ_m K_m
    matvec(A)       (K_m A)_m              apply(B)  (K_m B_m)_m, one B_m per kernel
    rows(i)         (M, n) rows i          diag()  (M, n)       kernel(m)  (n, n)
    subset(active)  some of the kernels, without a copy

One pass = touching M n² numbers of float64 once; packed storage needs half of it.
The last few results of quad and combine are remembered by content (read-only); matvec
knows quad, too.

What the numbers mean. GramStack(K): the stored entries are the kernels, exactly (in
float32 as rounded). GramStack.from_factors(L): the factors are the data and K_m := L_m
L_mᵀ, positive semi-definite by construction and never multiplied out. `shift` is the δ
of the kernels K_m + δ_m I that are certified; `proof` says why they are positive
semi-definite (psd.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..util.arrays import real_array
from ..util.rounding import gamma
from .psd import proved_shift
from .storage import Factors, Triangles

Array = np.ndarray


@dataclass
class _Count:
    passes: float = 0.0


class GramStack:
    """M symmetric kernel matrices of size n × n, validated and read-only.

    K: an (M, n, n) array, or any sequence or iterator of (n, n) matrices
    storage: "packed" (upper triangles), or "full" for solvers that read rows
    dtype: "float64", or "float32" for half the memory (entries are rounded to it)
    """

    def __init__(
        self, K: Any, *, storage: str = "packed", dtype: Any = "float64"
    ) -> None:
        if isinstance(K, GramStack):
            raise ValueError("this is a GramStack already; use it as it is")
        if storage not in ("packed", "full"):
            raise ValueError(f"storage = {storage!r}; choose 'packed' or 'full'")
        if str(np.dtype(dtype)) not in ("float64", "float32"):
            raise ValueError(f"dtype = {dtype!r}; choose 'float64' or 'float32'")
        store = _stored(K, storage, np.dtype(dtype))
        self._become(store, np.arange(len(store.P)), np.zeros(len(store.P)), "")

    def _become(self, store: Any, index: Array, shift: Array, proof: str) -> None:
        self._store, self._index = store, index
        self.M, self.n = len(index), store.n
        self.shift = _frozen(shift)
        self.proof = proof  # why the kernels are positive semi-definite; "": assumed
        self._count, self._share = _Count(), 1.0
        self._whole: tuple[GramStack, Array] | None = None  # of a subset
        self._memory: dict[str, deque] = {
            name: deque(maxlen=store.remembered) for name in ("quad", "combine")
        }

    @classmethod
    def from_factors(cls, factors: Sequence[Array]) -> GramStack:
        """Kernels K_m = L_m L_mᵀ from factors L_m (n × r_m): they are the data."""
        if factors is None or not hasattr(factors, "__iter__"):
            raise ValueError(
                "factors must be a list of (n, r) matrices, one per kernel"
            )
        factors = [real_array(L, "a factor", "an (n, r) matrix") for L in factors]
        if not factors or any(
            L.ndim != 2 or len(L) != len(factors[0]) or 0 in L.shape for L in factors
        ):
            shapes = [L.shape for L in factors]
            raise ValueError(
                f"factors have shapes {shapes}; give one (n, r) matrix per kernel, "
                "all with the same n"
            )
        for m, L in enumerate(factors):
            if not np.all(np.isfinite(L)):
                raise ValueError(
                    f"factor {m} has NaN or infinite entries; clean the data it "
                    "comes from"
                )
        stack = cls.__new__(cls)
        M = len(factors)
        stack._become(Factors(factors), np.arange(M), np.zeros(M), "factors")
        return stack

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        return f"GramStack(M={self.M}, n={self.n}, {self.storage})"

    @property
    def storage(self) -> str:
        """How the kernels are kept: "packed", "full", "factors" or "lazy"."""
        return str(self._store.storage)

    @property
    def factors(self) -> list[Array] | None:
        """The factors that are the data, when they are."""
        if self.storage != "factors":
            return None
        return [self._store.factor(m) for m in self._index]

    @property
    def passes(self) -> float:
        """Passes so far, of this stack and of all subsets taken from it."""
        return self._count.passes

    def forget(self) -> None:
        """Forget all remembered results."""
        for results in self._memory.values():
            results.clear()

    # ---- the operations -----------------------------------------------------------

    def _touch(self, columns: int = 1) -> None:
        self._count.passes += self._share * self._store.cost * columns

    def quad(self, A: Array) -> Array:
        if self._whole is not None:
            whole, index = self._whole
            for known, result in whole._memory["quad"]:
                if np.array_equal(known, A):
                    return _frozen(result[index])
        return self._remembered("quad", A, self._quad)

    def combine(self, theta: Array) -> Array:
        if self._whole is None:
            return self._remembered("combine", theta, self._combine)
        whole, index = self._whole  # which remembers it for all its subsets
        filled = np.zeros(whole.M)
        filled[index] = theta
        return whole.combine(filled)

    def _remembered(self, name: str, key: Array, compute: Callable) -> Array:
        key = np.array(key, dtype=float, order="C")
        for known, result in self._memory[name]:
            if np.array_equal(known, key):
                return result
        result = _frozen(compute(key))
        self._memory[name].append((key, result))
        return result

    def _quad(self, A: Array) -> Array:
        self._touch()
        return np.asarray(self._store.quad(self._index, A.reshape(self.n, -1)))

    def _combine(self, theta: Array) -> Array:
        used = np.flatnonzero(theta)
        self._count.passes += self._share * self._store.cost * len(used) / self.M
        if len(used) == 0:
            return np.zeros((self.n, self.n))
        return np.asarray(self._store.combine(self._index[used], theta[used]))

    def matvec(self, A: Array) -> Array:
        A = np.array(A, float)
        out = self._multiply(A[None], A.shape)
        if self.storage != "factors":  # where quad is sharper, and cheaper
            self._memory["quad"].append((A, _frozen(self.inner(A, out))))
        return out

    def apply(self, B: Array) -> Array:
        B = np.asarray(B, float)
        used = np.flatnonzero(np.any(B.reshape(self.M, -1) != 0, axis=1))
        if len(used) == self.M:
            return self._multiply(B, B.shape[1:])
        out = np.zeros(B.shape)  # kernels with no coefficients are not touched
        if len(used):
            out[used] = self.subset(used).apply(B[used])
        return out

    def _multiply(self, blocks: Array, shape: tuple[int, ...]) -> Array:
        columns = blocks.reshape(len(blocks), self.n, -1)
        self._touch(columns.shape[2])
        return np.asarray(
            self._store.matvec(self._index, columns).reshape(self.M, *shape)
        )

    def against(self, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S: quad(A) is against(A Aᵀ)."""
        S = np.ascontiguousarray(S, dtype=float)
        if S.shape != (self.n, self.n):
            raise ValueError(
                f"S has shape {S.shape}; expected ({self.n}, {self.n}), symmetric"
            )
        self._touch()
        return np.asarray(self._store.against(self._index, S))

    def inner(self, A: Array, KA: Array) -> Array:
        """(⟨A, K_m A⟩)_m from what matvec returned; sharper from factors: ‖L_mᵀA‖²."""
        if self.storage == "factors":
            return np.asarray(self._store.quad(self._index, A.reshape(self.n, -1)))
        return np.asarray(KA.reshape(self.M, A.size) @ A.ravel())

    def rows(self, i: int | Array) -> Array:
        which = np.atleast_1d(np.arange(self.n)[np.asarray(i)])  # checks the range
        self._count.passes += self._share * len(which) / self.n
        found = self._store.rows(self._index, which)
        return np.asarray(found[:, 0] if np.ndim(i) == 0 else found)

    def count_rows(self, rows: float) -> None:
        """Count rows of all kernels that a solver read from `dense()` itself."""
        self._count.passes += self._share * rows / self.n

    def kernel(self, m: int) -> Array:
        """One kernel as a plain matrix."""
        return np.asarray(self._store.kernel(self._index[m]))

    def diag(self) -> Array:
        return self._diag

    @cached_property
    def _diag(self) -> Array:
        return _frozen(self._store.diag(self._index))

    def root_diag(self, shift: Array) -> Array:
        """Upper bounds of √(K_ii + δ): by Cauchy–Schwarz they bound |K_ij|, i ≠ j."""
        if not np.any(shift):
            return self._root_diag
        return self._root(shift)

    @cached_property
    def _root_diag(self) -> Array:
        return _frozen(self._root(np.zeros(self.M)))

    def _root(self, shift: Array) -> Array:
        bound = np.maximum(self._diag, 0.0) * (1 + gamma(self.chain(self.n)))
        return np.asarray(np.sqrt(bound + shift[:, None]) * (1 + gamma(4)))

    def chain(self, terms: int) -> int:
        """|error of matvec(A)| ≤ γ_chain |K||A| when A has so many non-zero rows."""
        return int(self._store.chain(terms))

    def subset(self, active: Array) -> GramStack:
        """The stack of the kernels named by indices or a mask; nothing is copied."""
        index = np.arange(self.M)[active]
        part = GramStack.__new__(GramStack)
        part._become(self._store, self._index[index], self.shift[index], self.proof)
        part._count, part._share = self._count, self._share * len(index) / self.M
        if len(np.unique(index)) == len(index):
            part._whole = (self, index)
        return part

    def apart(self) -> GramStack:
        """The same kernels, uncopied, with a count and a memory of their own."""
        stack = GramStack.__new__(GramStack)
        stack._become(self._store, self._index, self.shift, self.proof)
        return stack

    def full(self) -> GramStack:
        """The same kernels in full storage, for a solver that reads them by rows."""
        if self.storage == "full":
            return self
        return self._full

    @cached_property
    def _full(self) -> GramStack:
        kernels = (self.kernel(m) for m in range(self.M))  # one at a time
        store = _stored(kernels, "full", np.dtype(float), self.M)
        # The product of factors is rounded: what was true of them is not proved of it.
        proof = "" if self.storage == "factors" else self.proof
        stack = GramStack.__new__(GramStack)
        stack._become(store, np.arange(self.M), self.shift, proof)
        stack._count, stack._share = self._count, self._share
        self._touch()
        return stack

    def dense(self) -> Array:
        """(M, n, n), read-only: the memory itself in full storage, a copy otherwise."""
        whole = self.storage == "full" and len(self._store.P) == self.M
        if whole and np.all(np.diff(self._index) == 1):
            return _frozen(self._store.P.reshape(self.M, self.n, self.n).view())
        return _frozen(np.stack([self.kernel(m) for m in range(self.M)]))

    def content(self) -> Iterable[Array]:
        """The numbers that define the kernels, the same for packed and full storage."""
        if self.storage == "factors":
            return iter(self.factors or [])
        return (self._store.triangle(m) for m in self._index)

    # ---- positive semi-definiteness -------------------------------------------------

    def verify_psd(self) -> Array:
        """Prove K_m + δ_m I ⪰ 0 and return δ, as small as the proof allows."""
        if not self.proof:
            kernels = ((m, self.kernel(m)) for m in range(self.M))
            delta = [proved_shift(K, f"kernel {m}") for m, K in kernels]
            self.shift, self.proof = _frozen(np.array(delta)), "Cholesky"
        return self.shift


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _stored(K: Any, storage: str, dtype: np.dtype, count: int | None = None) -> Any:
    """The kernels validated and stored, one after the other."""
    if isinstance(K, np.ndarray) or not hasattr(K, "__iter__"):
        K = _outer(K)
    elif count is None and not hasattr(K, "__len__"):
        K = list(K)
    M, store = count or len(K), None
    for m, given in enumerate(K):
        kernel = _matrix(given, m, None if store is None else store.n)
        store = store or Triangles(len(kernel), M, storage, dtype)
        single = getattr(given, "dtype", None) in (np.float32, np.float16)
        top, skew, lowest, nan = store.store(m, kernel)
        close = (1e-4 if single else 1e-10) * top  # how far rounding may spoil symmetry
        if nan != 0 or not np.isfinite(top):
            raise ValueError(
                f"kernel {m} has NaN or infinite entries; clean the data it comes from"
            )
        if skew > close:
            raise ValueError(
                f"kernel {m} is not symmetric; pass (K + K.transpose(0, 2, 1))/2 if "
                "the difference is only rounding"
            )
        if lowest < -close:
            raise ValueError(
                f"kernel {m} has a negative diagonal entry, so it is not positive "
                "semi-definite; check how it was computed"
            )
        if top > np.finfo(dtype).max:
            raise ValueError(f"kernel {m} is too large for {dtype}; rescale it")
    if store is None:
        raise ValueError("there are no kernels; expected (M, n, n) with M ≥ 1")
    return store


def _outer(K: Any) -> Array:
    K = K if isinstance(K, np.ndarray) else np.asarray(K)
    if K.ndim != 3 or K.shape[1] != K.shape[2] or 0 in K.shape:
        raise ValueError(
            f"K has shape {K.shape}; expected (M, n, n), one square matrix per kernel "
            "(a single kernel is K[None])"
        )
    return K


def _matrix(given: Any, m: int, n: int | None) -> Array:
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
