"""GramStack: the only way to touch kernel matrices, and a counter of passes over them.

    quad(A)         (tr AᵀK_mA)_m          A is (n,) or (n, k)
    norms(A)        √(quad(A) + δ_m‖A‖²)   the norms ‖A‖ in the kernels K_m + δ_m I
    against(S)      (⟨K_m, S⟩)_m           S is symmetric
    combine(theta)  Σ θ_m K_m              product(theta, A)  Σ θ_m K_m A (sums.py)
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

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..util.arrays import real_array
from ..util.checks import byte_count, check_list, check_whole
from ..util.counted import counted
from . import norms
from .disk import DiskStore
from .disk_format import Path
from .disk_writer import Matrices, Parts, write_kernels
from .factors import Factors, Panel
from .norm_reads import NormReads
from .norms import StackNorms, frozen
from .psd import proved_shift
from .storage import Triangles
from .sums import StackSums
from .validation import check_kind, matrices, stored, wrong_with

Array = np.ndarray
# Factors are used as they are from so many samples on, if the samples are at least so
# many times as many as their columns.
FEATURE_SAMPLES, FEATURE_SHARE = 1000, 2


@dataclass
class _Count:
    passes: float = 0.0


class GramStack(StackNorms, StackSums):
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
        self._count, self._share = _Count(), 1.0
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
        store = _factors(factors, ranks, np.dtype(dtype))
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
    def factors(self) -> list[Array] | None:
        """The factors L_m given to `from_factors`, read-only; None for other stacks."""
        if self.storage != "factors":
            return None
        return [frozen(self._store.factor(m)) for m in self._index]

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
                    return frozen(result[np.concatenate([[], *kept]).astype(int)])
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

    @property
    def bytes_read(self) -> int:
        """The bytes read from disk so far, for this file; 0 for kernels in memory."""
        return int(getattr(self._store, "bytes_read", 0))

    def forget(self) -> None:
        """Forget all remembered results, so that the next ones are computed anew."""
        # Tuples are replaced, not changed: another thread may be reading one.
        kinds = ("quad", "combine", "product", "products", "fold", "unfold")
        self._memory: dict[str, tuple] = dict.fromkeys(kinds, ())
        self._reads = NormReads.none(self.M)

    # ---- the operations -----------------------------------------------------------

    def _touch(self, columns: float = 1) -> None:
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
                    return frozen(result[index])
        return None

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

    def remembers_combine(self, theta: Array) -> bool:
        """Whether combine(theta) costs no pass.

        Parameters
        ----------
        theta : array (M,)

        Returns
        -------
        bool
        """
        return any(np.array_equal(known, theta) for known, _ in self._memory["combine"])

    def _remembered(self, name: str, key: Array, compute: Callable) -> Array:
        key = np.array(key, dtype=float, order="C")
        for known, result in self._memory[name]:
            if np.array_equal(known, key):
                return result
        return self._remember(name, key, compute(key))

    def _remember(self, name: str, key: Array, result: Array) -> Array:
        known = (*self._memory[name], (key, frozen(result)))
        self._memory[name] = known[-self._store.remembered :]
        return result

    def _quad(self, A: Array) -> Array:
        if self.storage == "factors":  # from LᵀA, which may be remembered
            return self._squares(self.fold(A))
        columns = A.reshape(self.n, -1)
        self._touch(self._rows_of(columns) ** 2)
        return np.asarray(self._store.quad(self._index, columns))

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
        if out.size <= norms.LARGEST_KEPT:
            whole._memory["products"] = ((A, index, frozen(out)),)
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
                return frozen(found[order[np.searchsorted(those[order], numbers)]])
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
        rows = self._rows_of(np.any(columns, axis=0)) if self.by_rows else 1
        self._touch(columns.shape[2] * rows)
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

    def sample_rows(self) -> Any:
        """What computes rows at few samples from points, for `BlockReader` (rows.py).

        None if the kernels are stored, or have to be asked for `rows`.
        """
        make = getattr(self._store, "sample_rows", None)
        return None if make is None else make(self._index)

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

        Each NumPy operation on it counts as passes (util/counted.py); a plain array
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
            delta = self._by_theorem()
            others = np.flatnonzero(~np.isfinite(delta))
            for m in others.tolist():
                delta[m] = proved_shift(self.kernel(m), f"kernel {m}")
            self.shift = frozen(delta)
            self.proof = "Cholesky" if len(others) else "theorem"
            self._roots = self._trace = None
            self.forget()
        return self.shift

    def _by_theorem(self) -> Array:
        """δ that a store knows: K_m + δ_m I ⪰ 0 by a theorem; ∞ where it knows none."""
        known = getattr(self._store, "theorem", None)  # (M,), of all its kernels
        return np.full(self.M, np.inf) if known is None else known[self._index].copy()


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
        found.P[:] = store.P[index]
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
