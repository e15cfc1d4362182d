"""GramStack: the only way to touch kernel matrices, and a counter of passes over them.

    quad(A)         (tr AᵀK_mA)_m          A is (n,) or (n, k)
    norms(A)        √(quad(A) + δ_m‖A‖²)   the norms ‖A‖ in the kernels K_m + δ_m I
    against(S)      (⟨K_m, S⟩)_m           S is symmetric
    combine(theta)  Σ θ_m K_m
    matvec(A)       (K_m A)_m              apply(B)  (K_m B_m)_m, one B_m per kernel
    rows(i)         (M, n) rows i          diag()  (M, n)       kernel(m)  (n, n)
    subset(active)  some of the kernels, without a copy

One pass = touching M n² numbers of float64 once; packed storage needs half of it.
The last few results of quad and combine are remembered: asking for the same argument
again costs no pass. matvec remembers quad, too. Remembered results are read-only.

What the numbers mean. GramStack(K): the stored entries are the kernels, exactly; in
float32 these are the rounded entries. GramStack.from_factors(L): the factors are the
data and K_m := L_m L_mᵀ, positive semi-definite by construction and never multiplied
out. `shift` is the δ of the kernels K_m + δ_m I that are certified; `proof` says why
they are positive semi-definite (psd.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..util.arrays import real_array
from ..util.checks import check_choice, check_list, check_whole, short
from ..util.rounding import TINY, U, gamma
from . import norm_reads
from .factors import Factors, Panel
from .norm_reads import NormReads
from .psd import ROUNDING, SINGLE_ROUNDING, indefinite, proved_shift
from .storage import Triangles

Array = np.ndarray
# Factors are used as they are from so many samples on, if the samples are at least so
# many times as many as their columns.
FEATURE_SAMPLES, FEATURE_SHARE = 1000, 2
DTYPES = (np.float64, np.float32, "float64", "float32", np.dtype("f8"), np.dtype("f4"))


@dataclass
class _Count:
    passes: float = 0.0


class GramStack:
    """M symmetric kernel matrices of size n × n, validated and read-only.

    Parameters
    ----------
    K : array (M, n, n), or a sequence or iterator of (n, n) arrays
        The kernels: finite, symmetric, with a non-negative diagonal. They are copied.
    storage : {"packed", "full"}
        Upper triangles, or whole matrices for solvers that read rows.
    dtype : {"float64", "float32"}
        "float32" takes half the memory; entries are rounded to it.

    Attributes
    ----------
    M, n : int
        The numbers of kernels and of samples.
    shift : array (M,)
        δ of the certified kernels K_m + δ_m I; zero unless `verify_psd` needed it.
    proof : str
        Why the kernels are positive semi-definite: "factors", "Cholesky", or "" as
        long as it is only assumed.

    Raises
    ------
    ValueError
        If a kernel is not a finite, symmetric matrix of the size of the first one.

    Examples
    --------
    >>> stack = GramStack(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> stack.quad(np.array([1.0, -1.0, 0.0]))
    array([2., 0.])
    """

    def __init__(
        self, K: Any, *, storage: str = "packed", dtype: Any = "float64"
    ) -> None:
        if isinstance(K, GramStack):
            raise ValueError("K is a GramStack already; use it as it is")
        _check_kind(storage, dtype)
        store = _stored(K, storage, np.dtype(dtype), screened=True)
        self._set(store, np.arange(len(store.P)), np.zeros(len(store.P)), "")
        self._measure()

    def _measure(self) -> None:
        """Measure the sizes of kernels, so that no solver has to."""
        if self.bounds_norms:
            _ = self._store.root_sizes

    def _set(self, store: Any, index: Array, shift: Array, proof: str) -> None:
        self._store, self._index = store, index
        self.M, self.n = len(index), store.n
        self.shift, self.proof = _frozen(shift), proof
        self._count, self._share = _Count(), 1.0
        self._whole: tuple[GramStack, Array] | None = None  # of a subset
        self._roots: Array | None = None  # root_diag(self.shift)
        self.forget()

    @classmethod
    def of_symmetric(cls, matrices: Any) -> GramStack:
        """A stack of symmetric matrices that need not be kernels, such as distances.

        Parameters
        ----------
        matrices : array (M, n, n), or list of (n, n) arrays

        Returns
        -------
        GramStack
            Packed, in float64. Certificates need kernels: do not solve with it.
        """
        store = _stored(matrices, "packed", np.dtype(float))
        stack = cls.__new__(cls)
        stack._set(store, np.arange(len(store.P)), np.zeros(len(store.P)), "")
        return stack

    @classmethod
    def from_factors(
        cls,
        factors: Any,
        *,
        ranks: Sequence[int] | None = None,
        dtype: Any = "float64",
    ) -> GramStack:
        """The stack of K_m = L_m L_mᵀ: the factors are the data.

        Parameters
        ----------
        factors : sequence of arrays (n, r_m), or array (n, R) with `ranks`
            One factor L_m per kernel; ranks r_m may differ. Factors are copied. One
            array of all factors side by side is not, if it has the right dtype and
            order: do not change it afterwards.
        ranks : sequence of int, optional
            The number of columns r_m of each factor, for one array (n, R).
        dtype : {"float64", "float32"}
            "float32" takes half the memory: the rounded factors are the data.

        Returns
        -------
        GramStack
            Positive semi-definite by construction (`proof` is "factors").

        Raises
        ------
        ValueError
            If factors have different numbers of rows, or entries that are not finite.
        """
        _check_kind("packed", dtype)
        store = _factors(factors, ranks, np.dtype(dtype))
        M = len(store.ends) - 1
        return _made(store, np.arange(M), np.zeros(M), "factors")

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        return f"GramStack(M={self.M}, n={self.n}, {self.storage})"

    @property
    def storage(self) -> str:
        """How the kernels are stored: "packed", "full", "factors" or "lazy"."""
        return str(self._store.storage)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers that are stored: float64, or float32."""
        return self._store.dtype

    @property
    def factors(self) -> list[Array] | None:
        """The factors L_m given to `from_factors`, read-only; None for other stacks."""
        if self.storage != "factors":
            return None
        return [_frozen(self._store.factor(m)) for m in self._index]

    @property
    def in_feature_space(self) -> bool:
        """Whether SVMs and certificates work with the factors, without n × n matrices.

        They do if there are many samples and the factors together have far fewer
        columns.
        """
        if self.storage != "factors" or self.n < FEATURE_SAMPLES:
            return False
        return FEATURE_SHARE * int(np.sum(self.ranks)) <= self.n

    @property
    def ranks(self) -> Array:
        """The numbers of columns of the factors, (M,)."""
        return np.asarray(self._store.ranks(self._index))

    @property
    def owner(self) -> Array:
        """The kernel that each of the R feature weights belongs to, (R,)."""
        return np.repeat(np.arange(self.M), self.ranks)

    def panel(self) -> Panel:
        """The factors side by side, with products (factors.py)."""
        return self._store.panel(self._index)  # type: ignore[no-any-return]

    def fold(self, A: Array) -> Array:
        """L_mᵀA of all kernels, one below the other; one read of the factors.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (R,) or (R, k)
            Read-only, and remembered.
        """
        if self._whole is not None:
            whole, index = self._whole
            for known, result in whole._memory["fold"]:
                if np.array_equal(known, A):
                    starts = np.cumsum([0, *whole.ranks])
                    kept = [np.arange(starts[m], starts[m + 1]) for m in index]
                    return _frozen(result[np.concatenate(kept)])
        return self._remembered("fold", A, self._fold)

    def _fold(self, A: Array) -> Array:
        self._touch()
        found = self.panel().fold(A.reshape(self.n, -1))
        return found.reshape(-1, *A.shape[1:])

    def unfold(self, w: Array) -> Array:
        """The predictions Σ_m L_m w_m; kernels with w_m = 0 are not read.

        Parameters
        ----------
        w : array (R,) or (R, k)
            The feature weights of all kernels, one below the other.

        Returns
        -------
        array (n,) or (n, k)
            Read-only, and remembered.
        """
        return self._remembered("unfold", w, self._unfold)

    def _unfold(self, w: Array) -> Array:
        columns, owner = w.reshape(len(w), -1), self.owner
        used = np.unique(owner[np.any(columns != 0, axis=1)])
        if len(used) == 0:
            return np.zeros((self.n, *w.shape[1:]))
        part = self.subset(used)
        part._touch()
        found = part.panel().unfold(columns[np.isin(owner, used)])
        return found.reshape(self.n, *w.shape[1:])

    def feature_norms(self, w: Array) -> Array:
        """The norms ‖w_m‖ of feature weights.

        Parameters
        ----------
        w : array (R,) or (R, k)

        Returns
        -------
        array (M,)
        """
        return np.sqrt(self._squares(w))

    def _squares(self, w: Array) -> Array:
        squares = np.sum(w.reshape(len(w), -1) ** 2, axis=1)
        return np.bincount(self.owner, squares, minlength=self.M)

    def count_reads(self, share: float) -> None:
        """Add reads of a share of all stored numbers to the count of passes.

        Parameters
        ----------
        share : float
            1 is one read of every number.
        """
        self._count.passes += self._share * self._store.cost * share

    @property
    def passes(self) -> float:
        """Passes so far, of this stack and of all its subsets together."""
        return self._count.passes

    @property
    def full_read(self) -> float:
        """The passes of reading every stored number once: 1/2 in packed storage."""
        return self._share * self._store.cost

    def forget(self) -> None:
        """Forget all remembered results, so that the next ones are computed anew."""
        # Tuples are replaced, not changed: another thread may be reading one.
        kinds = ("quad", "combine", "products", "fold", "unfold")
        self._memory: dict[str, tuple] = dict.fromkeys(kinds, ())
        self._reads = NormReads.none(self.M)

    # ---- the operations -----------------------------------------------------------

    def _touch(self, columns: int = 1) -> None:
        self._count.passes += self._share * self._store.cost * columns

    def quad(self, A: Array) -> Array:
        """The quadratic forms (tr AᵀK_mA)_m, one pass.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (M,)
            Read-only, and remembered.
        """
        found = self._quad_of_whole(A)
        if found is None:
            found = self._remembered("quad", A, self._quad)
        self._read(np.array(A, float), found)
        return found

    def _quad_of_whole(self, A: Array) -> Array | None:
        """What the stack that this one is a part of remembers."""
        if self._whole is not None:
            whole, index = self._whole
            for known, result in whole._memory["quad"]:
                if np.array_equal(known, A):
                    return _frozen(result[index])
        return None

    def norms(self, A: Array, KA: Array | None = None) -> Array:
        """The norms √(tr AᵀK_mA + δ_m‖A‖²) of A in the certified kernels K_m + δ_m I.

        δ is the `shift` of the stack. Negative sums, which are rounding, count as 0.

        Parameters
        ----------
        A : array (n,) or (n, k)
        KA : array (M, n) or (M, n, k), optional
            What `matvec(A)` returned: then no pass is needed.

        Returns
        -------
        array (M,)
        """
        squares = self.quad(A) if KA is None else self.inner(A, KA)
        return np.sqrt(np.maximum(squares + self.shift * np.sum(A**2), 0.0))

    def norms_above(self, A: Array) -> tuple[Array, Array, Array]:
        """What is known of the norms of A without a pass (norm_reads.py).

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        three arrays (M,)
            The norms in plain float64, ∞ where a kernel was not read at A; upper bounds
            of them in exact arithmetic, ∞ where nothing is known; whether the kernel
            was read at A.
        """
        whole, index = self._of_whole()
        if not self.bounds_norms:
            nothing = np.full(self.M, np.inf)
            return nothing, nothing, np.zeros(self.M, bool)
        sizes = self._store.root_sizes[self._index]
        with np.errstate(over="ignore"):
            sizes = np.sqrt(sizes**2 + self.shift) * (1 + 8 * U)
        reads = whole._reads
        part = reads._replace(
            last=reads.last[index], plain=reads.plain[index], bound=reads.bound[index]
        )
        return part.above(A, sizes)

    @property
    def bounds_norms(self) -> bool:
        """Whether norms can be bounded without a read, and reading takes long."""
        whole = self._of_whole()[0]
        stored = self.storage in ("packed", "full")
        return stored and whole.M * self.n**2 >= norm_reads.WORTH

    def _of_whole(self) -> tuple[GramStack, Array]:
        """The stack that this one is a part of, and the numbers of its kernels."""
        if self._whole is None:
            return self, np.arange(self.M)
        whole, index = self._whole
        whole, numbers = whole._of_whole()
        return whole, numbers[index]

    @np.errstate(all="ignore")  # a bound that overflows is infinite: nothing is known
    def _read(self, A: Array, squares: Array) -> None:
        """Remember that ⟨A, K_mA⟩ was read, with a bound of its rounding error."""
        if not self.bounds_norms:
            return
        columns, roots = np.abs(A).reshape(self.n, -1), self.root_diag(self.shift)
        k = columns.shape[1]
        sums = np.sum((roots @ columns + TINY) ** 2, axis=1)
        error = gamma(self._store.quad_chain(k) + 8) * sums
        # Products α_iα_j that underflow lose at most 2^-1074, K_ij times in the sum.
        error += k * np.sum(roots, axis=1) ** 2 * 2.0**-1070
        error += TINY * (np.sum(columns) + 4)
        shifted = self.shift * np.sum(A**2)
        plain = np.sqrt(np.maximum(squares + shifted, 0.0))
        above = (np.maximum(squares, 0.0) + error) * (1 + 8 * U)
        above = np.sqrt(above + shifted * (1 + gamma(A.size + 8))) * (1 + 8 * U) + TINY
        whole, index = self._of_whole()
        whole._reads = whole._reads.add(A, index, plain, above)

    def combine(self, theta: Array) -> Array:
        """The sum Σ θ_m K_m; kernels of weight 0 are not read.

        Parameters
        ----------
        theta : array (M,)

        Returns
        -------
        array (n, n)
            Read-only, and remembered.
        """
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
        return self._remember(name, key, compute(key))

    def _remember(self, name: str, key: Array, result: Array) -> Array:
        known = (*self._memory[name], (key, _frozen(result)))
        self._memory[name] = known[-self._store.remembered :]
        return result

    def _quad(self, A: Array) -> Array:
        if self.storage == "factors":  # from LᵀA, which may be remembered
            return self._squares(self.fold(A))
        self._touch()
        return np.asarray(self._store.quad(self._index, A.reshape(self.n, -1)))

    def _combine(self, theta: Array) -> Array:
        used = np.flatnonzero(theta)
        self._count.passes += self._share * self._store.cost * len(used) / self.M
        if len(used) == 0:
            return np.zeros((self.n, self.n))
        return np.asarray(self._store.combine(self._index[used], theta[used]))

    def matvec(self, A: Array) -> Array:
        """The products (K_m A)_m, one pass for each column of A.

        Parameters
        ----------
        A : array (n,) or (n, k)

        Returns
        -------
        array (M, n) or (M, n, k)
            Read-only; the last one is remembered for `products`.
        """
        A = np.array(A, float)
        out = self._multiply(A[None], A.shape)
        whole, index = self._of_whole()
        if self.storage != "lazy":  # there they may be larger than all else
            whole._memory["products"] = ((A, index, _frozen(out)),)
        if self.storage != "factors":  # there quad is more accurate, and cheaper
            self._read(A, self._remember("quad", A, self.inner(A, out)))
        return out

    def products(self, A: Array, kernels: Array) -> Array:
        """The products K_mA with some of the kernels, remembered or computed.

        Parameters
        ----------
        A : array (n,) or (n, k)
        kernels : array of int (r,)
            The numbers of the kernels.

        Returns
        -------
        array (r, n) or (r, n, k)
            Read-only.
        """
        whole, index = self._of_whole()
        numbers = index[kernels]
        for known, those, found in whole._memory["products"]:
            if np.array_equal(known, A) and np.all(np.isin(numbers, those)):
                order = np.argsort(those)
                return _frozen(found[order[np.searchsorted(those[order], numbers)]])
        return self.subset(kernels).matvec(A)

    def apply(self, B: Array) -> Array:
        """The products (K_m B_m)_m; kernels with B_m = 0 are not read.

        Parameters
        ----------
        B : array (M, n) or (M, n, k)

        Returns
        -------
        array of the shape of B
        """
        B = np.asarray(B, float)
        used = np.flatnonzero(np.any(B.reshape(self.M, -1) != 0, axis=1))
        if len(used) == self.M:
            return self._multiply(B, B.shape[1:])
        out = np.zeros(B.shape)
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
        """The products (⟨K_m, S⟩)_m, one pass: quad(A) is against(A Aᵀ).

        Parameters
        ----------
        S : array (n, n)
            A symmetric matrix.

        Returns
        -------
        array (M,)

        Raises
        ------
        ValueError
            If S does not have the shape (n, n).
        """
        S = np.ascontiguousarray(S, dtype=float)
        if S.shape != (self.n, self.n):
            raise ValueError(
                f"S has shape {S.shape}; expected ({self.n}, {self.n}), symmetric"
            )
        self._touch()
        return np.asarray(self._store.against(self._index, S))

    def inner(self, A: Array, KA: Array) -> Array:
        """(⟨A, K_m A⟩)_m from what `matvec` returned, without a pass.

        From factors it is ‖L_mᵀA‖² instead, where nothing cancels.

        Parameters
        ----------
        A : array (n,) or (n, k)
        KA : array (M, n) or (M, n, k)

        Returns
        -------
        array (M,)
        """
        if self.storage == "factors":
            return np.asarray(self._store.quad(self._index, A.reshape(self.n, -1)))
        return np.asarray(KA.reshape(self.M, A.size) @ A.ravel())

    def rows(self, i: int | Array) -> Array:
        """Rows of all kernels.

        Parameters
        ----------
        i : int or array of int (r,)
            Negative numbers count from the end.

        Returns
        -------
        array (M, n), or (M, r, n) for an array of numbers

        Raises
        ------
        IndexError
            If there is no such row.
        """
        which = np.atleast_1d(np.arange(self.n)[np.asarray(i)])  # checks the range
        self._count.passes += self._share * len(which) / self.n
        found = self._store.rows(self._index, which)
        return np.asarray(found[:, 0] if np.ndim(i) == 0 else found)

    def count_rows(self, rows: float) -> None:
        """Add rows that a solver read from `dense()` itself to the count of passes.

        Parameters
        ----------
        rows : float
            The number of rows, each read in all M kernels.
        """
        self._count.passes += self._share * rows / self.n

    def kernel(self, m: int) -> Array:
        """One kernel as an array.

        Parameters
        ----------
        m : int

        Returns
        -------
        array (n, n)
            A copy.
        """
        return np.asarray(self._store.kernel(self._index[m]))

    def diag(self) -> Array:
        """The diagonals, (M, n), read-only."""
        return self._diag

    @cached_property
    def _diag(self) -> Array:
        if self._whole is not None:  # memory is read in lines: this is expensive
            return _frozen(self._whole[0].diag()[self._whole[1]])
        return _frozen(self._store.diag(self._index))

    def root_diag(self, shift: Array) -> Array:
        """Upper bounds r of √(K_ii + δ): |K_ij| ≤ r_i r_j for i ≠ j (Cauchy–Schwarz).

        Parameters
        ----------
        shift : array (M,)
            δ, for which K_m + δ_m I is positive semi-definite.

        Returns
        -------
        array (M, n)
            Rounding is included in the bounds.
        """
        if shift is not self.shift:
            return self._root_diag(shift)
        if self._roots is None:
            if self._whole is None:
                roots = self._root_diag(shift)
            else:
                whole, index = self._whole
                roots = whole.root_diag(whole.shift)[index]
            self._roots = _frozen(roots)
        return self._roots

    def _root_diag(self, shift: Array) -> Array:
        bound = np.maximum(self._diag, 0.0) * (1 + gamma(self.chain(self.n))) + TINY
        return np.asarray(np.sqrt(bound + shift[:, None]) * (1 + gamma(4)))

    def chain(self, terms: int) -> int:
        """The k for which every entry of matvec(A) has an error of at most γ_k |K||A|.

        Parameters
        ----------
        terms : int
            How many rows of A are not zero.

        Returns
        -------
        int
        """
        return int(self._store.chain(terms))

    def subset(self, active: Array) -> GramStack:
        """Some of the kernels as a stack; nothing is copied.

        Its passes count with those of this stack, and it knows what this stack
        remembers.

        Parameters
        ----------
        active : array of int, or of bool (M,)
            The numbers of the kernels, or a mask.

        Returns
        -------
        GramStack
        """
        index = np.arange(self.M)[active]
        part = _made(self._store, self._index[index], self.shift[index], self.proof)
        part._count, part._share = self._count, self._share * len(index) / self.M
        if len(np.unique(index)) == len(index):
            part._whole = (self, index)
        return part

    def samples(self, which: Array) -> GramStack:
        """The kernels between some of the samples, copied; for stored kernels only.

        Its passes count with those of this stack.

        Parameters
        ----------
        which : array of int
            The numbers of the samples, in order.

        Returns
        -------
        GramStack
        """
        which = np.asarray(which, np.int64)
        store = self._store.samples(self._index, which)
        part = _made(store, np.arange(self.M), self.shift, self.proof)
        part._count = self._count
        part._share = self._share * (len(which) / self.n) ** 2
        part._touch()
        return part

    def apart(self) -> GramStack:
        """The same kernels, not copied, with their own count of passes and memory."""
        return _made(self._store, self._index, self.shift, self.proof)

    def full(self) -> GramStack:
        """The same kernels in full storage, for solvers that read rows; made once."""
        return self if self.storage == "full" else self._full

    @cached_property
    def _full(self) -> GramStack:
        kernels = (self.kernel(m) for m in range(self.M))  # one at a time
        store = _stored(kernels, "full", np.dtype(float), self.M)
        # Products of factors are rounded: they need a proof of their own.
        proof = "" if self.storage == "factors" else self.proof
        stack = _made(store, np.arange(self.M), self.shift, proof)
        stack._count, stack._share = self._count, self._share
        self._touch()
        return stack

    def dense(self) -> Array:
        """All kernels as an (M, n, n) array, read-only.

        In full storage of float64 it is the memory of the stack itself, otherwise a
        copy.
        """
        if self.storage == "full" and self._store.whole(self._index):
            return _frozen(self._store.P.reshape(self.M, self.n, self.n).view())
        return _frozen(np.stack([self.kernel(m) for m in range(self.M)]))

    def content(self) -> Iterable[Array]:
        """The arrays that define the kernels: factors, or upper triangles.

        They are the same for packed and full storage.
        """
        if self.storage == "factors":
            return iter(self.factors or [])
        return (self._store.triangle(m) for m in self._index)

    # ---- positive semi-definiteness -------------------------------------------------

    def verify_psd(self) -> Array:
        """Prove K_m + δ_m I ⪰ 0 with δ as small as the proof allows.

        From then on certificates are for the kernels K_m + δ_m I, without assumptions.

        Returns
        -------
        array (M,)
            δ, which is also the new `shift`.

        Raises
        ------
        ValueError
            If a kernel is not positive semi-definite.
        """
        if not self.proof:
            kernels = ((m, self.kernel(m)) for m in range(self.M))
            delta = [proved_shift(K, f"kernel {m}") for m, K in kernels]
            self.shift, self.proof = _frozen(np.array(delta)), "Cholesky"
            self._roots = None
            self.forget()
        return self.shift


def _made(store: Any, index: Array, shift: Array, proof: str) -> GramStack:
    """A stack of some of the kernels of a store."""
    stack = GramStack.__new__(GramStack)
    stack._set(store, index, shift, proof)
    return stack


def _factors(given: Any, ranks: Any, dtype: np.dtype) -> Factors:
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


def filled_stack(
    squares: Array, fill: Callable[[Triangles], None], storage: str, dtype: Any
) -> GramStack:
    """A stack of kernels that fill(store) writes, with the diagonals `squares` (M, n).

    They have to be positive semi-definite by a theorem. Then |K_ij|² ≤ K_ii K_jj, so
    that diagonals are all that is checked; 1e-10 is for rounding.
    """
    _check_kind(storage, dtype)
    kind = np.dtype(dtype)
    for m, diagonal in enumerate(squares):
        top = float(np.max(np.abs(diagonal))) * (1 + 1e-10)
        if wrong := _wrong(top, 0.0, diagonal.min(), 0.0, False, kind):
            raise ValueError(f"kernel {m} {wrong}")
    M, n = squares.shape
    store = Triangles(n, M, storage, kind)
    fill(store)
    store.P[:, store.starts] = squares
    stack = _made(store, np.arange(M), np.zeros(M), "")
    stack._measure()
    return stack


def _check_kind(storage: Any, dtype: Any) -> None:
    check_choice(storage, "storage", ("packed", "full"))
    if not isinstance(dtype, str | type | np.dtype) or dtype not in DTYPES:
        raise ValueError(f"dtype = {short(dtype)}; choose 'float64' or 'float32'")


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _stored(
    K: Any,
    storage: str,
    dtype: np.dtype,
    count: int | None = None,
    screened: bool = False,
) -> Any:
    """A store of the kernels, validated one after the other."""
    if isinstance(K, np.ndarray) or not hasattr(K, "__iter__"):
        K = _outer(K)
    elif count is None and not isinstance(K, Sequence):
        K = check_list(K, "K", "an array (M, n, n), or a list of (n, n) matrices")
    M, store, coarse = count or len(K), None, dtype == np.float32
    for m, given in enumerate(K):
        kernel = _matrix(given, m, None if store is None else store.n)
        store = store or Triangles(len(kernel), M, storage, dtype)
        single = getattr(given, "dtype", None) in (np.float32, np.float16)
        if wrong := _wrong(*store.store(m, kernel), single, dtype):
            raise ValueError(f"kernel {m} {wrong}")
        coarse |= single
    if store is None:
        raise ValueError("there are no kernels; expected (M, n, n) with M ≥ 1")
    if screened and (
        wrong := indefinite(store, SINGLE_ROUNDING if coarse else ROUNDING)
    ):
        raise ValueError(wrong)
    return store


def _wrong(
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
