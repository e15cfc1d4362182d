"""GramStack: the only way to touch kernel matrices, and a counter of passes over them.

    quad(A)         (tr AᵀK_mA)_m          A is (n,) or (n, k)
    norms(A)        √(quad(A) + δ_m‖A‖²)   the norms ‖A‖ in the kernels K_m + δ_m I
    against(S)      (⟨K_m, S⟩)_m           S is symmetric
    combine(theta)  Σ θ_m K_m              product(theta, A)  Σ θ_m K_m A (sums.py)
    matvec(A)       (K_m A)_m              apply(B)  (K_m B_m)_m, one B_m per kernel
    inside(A)       (K_m A)_m where A is not 0
    rows(i)         (M, n) rows i          diag()  (M, n)       kernel(m)  (n, n)
    subset(active)  some of the kernels, without a copy

One pass = touching M n² numbers of float64 once; packed storage needs half of it. quad
and inside read, and count, the rows of the triangles in which A is not 0.
The last few results of quad and combine are remembered: asking for the same argument
again costs no pass. matvec and inside remember quad, too. What is remembered is
read-only.

What the numbers mean. GramStack(K): the stored entries are the kernels, exactly; in
float32 these are the rounded entries. GramStack.from_factors(L): the factors are the
data and K_m := L_m L_mᵀ, positive semi-definite by construction and never multiplied
out. `shift` is the δ of the kernels K_m + δ_m I that are certified; `proof` says why
they are positive semi-definite (psd.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..util.checks import byte_count
from .counted import counted
from .disk import DiskStore
from .disk_format import Path
from .disk_writer import Matrices, Parts, write_kernels
from .features import StackFeatures
from .norms import StackNorms, frozen
from .products import Count, StackProducts
from .psd import proved_shifts
from .storage import Triangles
from .sums import StackSums
from .validation import check_kind, matrices, stored, stored_factors, wrong_with

Array = np.ndarray
# Factors are used as they are from so many samples on, if the samples are at least so
# many times as many as their columns.
FEATURE_SAMPLES, FEATURE_SHARE = 1000, 2


class GramStack(StackProducts, StackNorms, StackSums, StackFeatures):
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
        Why the kernels are positive semi-definite: "factors", "Cholesky", "theorem"
        (families of kernels), or "" as long as it is only assumed.

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
        check_kind(storage, dtype)
        store = stored(K, storage, np.dtype(dtype), screened=True)
        self._set(store, np.arange(len(store.P)), np.zeros(len(store.P)), "")
        self._measure()

    def _measure(self) -> None:
        """Measure the sizes of kernels, so that no solver has to."""
        if self.bounds_norms:
            _ = self._store.root_sizes

    def _set(self, store: Any, index: Array, shift: Array, proof: str) -> None:
        self._store, self._index = store, index
        self.M, self.n = len(index), store.n
        self.shift, self.proof = frozen(shift), proof
        self._count, self._share = Count(), 1.0
        self._whole = None
        self._roots = self._trace = None
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
        store = stored(matrices, "packed", np.dtype(float))
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
        check_kind("packed", dtype)
        store = stored_factors(factors, ranks, np.dtype(dtype))
        M = len(store.ends) - 1
        return _made(store, np.arange(M), np.zeros(M), "factors")

    @staticmethod
    def write(path: Path, kernels: Any, dtype: Any = None) -> None:
        """Write kernels to a file, for `open`, with little memory.

        The file is written whole or not at all. If a write is stopped, also by a kill,
        the next one of the same kernels to this path goes on where it was.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is replaced when the new one is complete.
        kernels : GramStack, FittedKernels, LazyStack, array (M, n, n), or iterable
            The kernels; an iterable of (n, n) arrays is read once, one at a time.
        dtype : {"float64", "float32"}, optional
            "float32" takes half the space; entries are rounded to it. By default that
            of a stack, else float64.

        Raises
        ------
        ValueError
            If a kernel is not a finite, symmetric matrix of the size of the first one.
        RuntimeError
            If another process is writing to this path.
        """
        stack = kernels if isinstance(kernels, GramStack) else None
        kind = np.dtype(float) if stack is None else stack.dtype
        if dtype is not None:
            check_kind("packed", dtype)
            kind = np.dtype(dtype)
        write_kernels(path, _parts(kernels, kind), kind)

    @classmethod
    def open(cls, path: Path, memory: Any = "1GB") -> GramStack:
        """The kernels in a file, read when they are needed and not kept.

        Results have the bits of the same kernels in packed storage.

        Parameters
        ----------
        path : str or path
            A file of `write`, or an array (M, n, n) in a .npy of anybody.
        memory : int or str
            For kernels in use, which are read once: a number of bytes, or text such as
            "500MB". Reading takes about 100 MB more, or twelve kernels.

        Returns
        -------
        GramStack
            Its storage is "disk".

        Raises
        ------
        ValueError
            If the file does not hold kernels, or was cut or changed; the sentence
            names the kernel. What is changed later is refused when it is read.
        """
        store = DiskStore(path, byte_count(memory, "memory"))
        return _made(store, np.arange(store.M), np.zeros(store.M), "")

    def __len__(self) -> int:
        return self.M

    def __repr__(self) -> str:
        return f"GramStack(M={self.M}, n={self.n}, {self.storage})"

    @property
    def storage(self) -> str:
        """How the kernels are stored: "packed", "full", "factors", "lazy", "disk"."""
        return str(self._store.storage)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers that are stored: float64, or float32."""
        return self._store.dtype

    @property
    def in_feature_space(self) -> bool:
        """Whether SVMs and certificates work with the factors, without n × n matrices.

        They do if there are many samples and the factors together have far fewer
        columns.
        """
        if self.storage != "factors" or self.n < FEATURE_SAMPLES:
            return False
        return FEATURE_SHARE * int(np.sum(self.ranks)) <= self.n

    # ---- the operations -----------------------------------------------------------

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

    def chain(self, terms: int) -> int:
        """The k for which every entry of matvec(A) has an error of at most γ_k |K| |A|.

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
        """The kernels between some of the samples; for stored kernels only.

        They are copied, unless these are the last samples and the kernels are packed in
        memory. Passes count with those of this stack.

        Parameters
        ----------
        which : array of int
            The numbers of the samples, in order.

        Returns
        -------
        GramStack
        """
        which, index = np.asarray(which, np.int64), self._index
        count, first = len(which), np.arange(self.M)
        last = np.array_equal(which, np.arange(self.n - count, self.n))
        if uncopied := last and self.storage == "packed":
            store, first = self._store.last(count), index
        else:
            store = self._store.samples(index, which)
        if self.bounds_norms:  # no part of a kernel is larger than the whole
            sizes = self._store.root_sizes
            store.root_sizes = sizes if uncopied else sizes[index]
        part = _made(store, first, self.shift, self.proof)
        part._count, part._share = self._count, self._share * (count / self.n) ** 2
        part._touch(0 if uncopied else 1)
        return part

    def apart(self) -> GramStack:
        """The same kernels, not copied, with their own count of passes and memory."""
        return _made(self._store, self._index, self.shift, self.proof)

    @contextmanager
    def asking(self, wrap: Callable[[Any], Any]) -> Iterator[None]:
        """Inside a with block, ask wrap(store) for results instead of the store.

        Parameters
        ----------
        wrap : function
            It takes what holds the kernels, with the operations of storage.py, and
            returns something that has the same operations, such as a recorder.
        """
        stacks = [self]
        while (part := stacks[-1]._whole) is not None:  # it is asked for combine
            stacks.append(part[0])
        before = self._store
        recorder = wrap(before)
        try:
            for stack in stacks:
                stack._store = recorder
            yield
        finally:
            for stack in stacks:
                stack._store = before

    def identity(self) -> str:
        """A hash of what defines the kernels, as 64 hex digits.

        A store that is not in memory may have a cheap one: `store.identity()`, bytes
        that define all of its kernels. Otherwise all kernels are read.
        """
        h = hashlib.sha256(f"{self.storage} {self.M} {self.n} {self.dtype}".encode())
        if hasattr(self._store, "identity"):
            h.update(self._store.identity())
            h.update(np.ascontiguousarray(self._index).data)
        else:
            for array in self.content():
                h.update(np.ascontiguousarray(array).data)
        h.update(np.ascontiguousarray(self.shift).data)
        return h.hexdigest()

    def full(self) -> GramStack:
        """The same kernels in full storage, for solvers that read rows; made once."""
        return self if self.storage == "full" else self._full

    @cached_property
    def _full(self) -> GramStack:
        kernels = (self.kernel(m) for m in range(self.M))  # one at a time
        store = stored(kernels, "full", np.dtype(float), self.M)
        # Products of factors are rounded: they need a proof of their own.
        proof = "" if self.storage == "factors" else self.proof
        stack = _made(store, np.arange(self.M), self.shift, proof)
        stack._count, stack._share = self._count, self._share
        self._touch()
        return stack

    def dense(self) -> Array:
        """All kernels as an (M, n, n) array, read-only, that counts what is read of it.

        Each NumPy operation on it counts as passes (counted.py); a plain array
        np.asarray(K) does not. In full storage of float64 it is the memory of the
        stack itself, otherwise a copy.
        """
        size = self.M * self.n**2

        def count(numbers: int) -> None:
            self._count.passes += self._share * numbers / size

        return counted(self.uncounted(), count)

    def uncounted(self) -> Array:
        """The same array for compiled code, which counts its reads: `count_rows`."""
        if self.storage == "full" and self._store.whole(self._index):
            return frozen(self._store.P.reshape(self.M, self.n, self.n).view())
        return frozen(np.stack([self.kernel(m) for m in range(self.M)]))

    def content(self) -> Iterable[Array]:
        """The arrays that define the kernels: factors, or upper triangles.

        They are the same for packed and full storage. A store may know better ones.
        """
        if self.storage == "factors":
            return iter(self.factors or [])
        if hasattr(self._store, "content"):
            return self._store.content(self._index)
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
            delta, self.proof = self._proved()
            self.shift = frozen(delta)
            self._roots = self._trace = None
            self.forget()
        return self.shift

    def _proved(self) -> tuple[Array, str]:
        """δ, and what proves it."""
        names = np.arange(self.M)
        delta, by_theorem = proved_shifts(self._store, self._index, names)
        return delta, "theorem" if by_theorem else "Cholesky"


def _made(store: Any, index: Array, shift: Array, proof: str) -> GramStack:
    """A stack of some of the kernels of a store."""
    stack = GramStack.__new__(GramStack)
    stack._set(store, index, shift, proof)
    return stack


def _parts(kernels: Any, dtype: np.dtype) -> Parts | Matrices:
    """What GramStack.write writes, as packed triangles of this type."""
    if isinstance(kernels, GramStack):  # a LazyStack knows the family it is of
        kernels = getattr(kernels, "kernels", kernels)
    if isinstance(kernels, GramStack):
        return Parts(kernels.M, kernels.n, dtype, partial(_packed, kernels, dtype))
    if hasattr(kernels, "subset") and hasattr(kernels, "grams"):  # fitted on data
        return Parts(kernels.M, kernels.n, dtype, partial(_built, kernels, dtype))
    if isinstance(kernels, np.ndarray) or not hasattr(kernels, "__iter__"):
        kernels = matrices(kernels)
    return Matrices(kernels, dtype)


def _packed(stack: GramStack, dtype: np.dtype, first: int, last: int) -> Triangles:
    """The kernels first, …, last − 1 of a stack, with the bounds it has of them."""
    store, index = stack._store, stack._index[first:last]
    found = Triangles(stack.n, len(index), "packed", dtype)
    if isinstance(store, Triangles) and store.storage == "packed":
        found.P[:] = store.numbers[index]
    else:
        for k, m in enumerate(index):
            found.store(k, store.kernel(m))
    if store.dtype == dtype and store.storage in ("packed", "disk"):
        found.root_sizes = store.root_sizes[index]
    return found


def _built(fitted: Any, dtype: np.dtype, first: int, last: int) -> Triangles:
    """The kernels first, …, last − 1 of a fitted family.

    Sums of NumPy have another order for one column: bounds of the sizes of one kernel
    alone would have other last bits than in the stack of all.
    """
    numbers = np.arange(first, last)
    if len(numbers) == 1 < fitted.M:
        numbers = np.repeat(numbers, 2)
    store = fitted.subset(numbers).grams(dtype=dtype)._store
    found = Triangles(store.n, last - first, "packed", dtype, store.P[: last - first])
    found.root_sizes = store.root_sizes[: last - first]
    return found


def filled_stack(
    squares: Array, fill: Callable[[Triangles], None], storage: str, dtype: Any
) -> GramStack:
    """A stack of kernels that fill(store) writes, with the diagonals `squares` (M, n).

    They have to be positive semi-definite by a theorem. Then |K_ij|² ≤ K_ii K_jj, so
    that diagonals are all that is checked; 1e-10 is for rounding.
    """
    check_kind(storage, dtype)
    kind = np.dtype(dtype)
    for m, diagonal in enumerate(squares):
        top = float(np.max(np.abs(diagonal))) * (1 + 1e-10)
        if wrong := wrong_with(top, 0.0, diagonal.min(), 0.0, False, kind):
            raise ValueError(f"kernel {m} {wrong}")
    M, n = squares.shape
    store = Triangles(n, M, storage, kind)
    fill(store)
    store.P[:, store.starts] = squares
    stack = _made(store, np.arange(M), np.zeros(M), "")
    stack._measure()
    return stack
