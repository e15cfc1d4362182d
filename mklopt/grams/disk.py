"""DiskStore: kernels in a file, read in order and ahead of the loops that use them.

    grams = mklopt.GramStack.open("kernels.npy", memory="1GB")

It has the operations of storage.py. A sweep over many kernels reads the file in batches
(disk_format.py): while compiled loops work on one batch, three threads read the next
ones and check them. Few kernels, the working set of a solver, are read once and stay in
memory (kernel_cache.py), at most `memory` bytes of them.

Guarantee. Results have the bits of the same kernels in packed storage: batches are
multiples of TOGETHER kernels in the order of `index`, and sums go on where the batch
before ended. Memory: `memory`, four buffers (40 MB each, or five kernels if these are
larger), what the kernel cache needs on the way, and what is returned. The page cache is
not used, so that other programs keep it. A kernel that is not what was written is
refused when it is read, with its number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import loops
from .disk_format import BUFFERS, Buffer, Path, ahead, stored_in
from .kernel_cache import Kept
from .storage import REMEMBERED, Triangles

Array = np.ndarray


class DiskStore:
    """The kernels of a file; what operations compute is documented in stack.py."""

    storage, remembered, sized = "disk", REMEMBERED, True

    def __init__(self, path: Path, memory: int):
        self.path, self.memory, self.file = path, memory, stored_in(path)
        self.n, self.M, self.dtype = self.file.n, self.file.M, self.file.dtype
        self.root_sizes = self.file.root_sizes
        self.like = Triangles(self.n, 0, "packed", self.dtype)  # in memory, but empty
        one = self.like.size * self.dtype.itemsize
        self.kept = Kept(self.n, self.dtype, min(memory, one * self.M), self.fetch)
        self._free: list[list[Buffer]] = []  # buffers that no sweep uses now

    def __reduce__(self) -> tuple:
        return DiskStore, (self.path, self.memory)

    @property
    def cost(self) -> float:
        """The cost of reading everything, in passes: 1 is M n² numbers of float64."""
        return self.like.cost

    @property
    def bytes_read(self) -> int:
        """The bytes read so far."""
        return self.file.file.bytes_read

    def identity(self) -> bytes:
        """A name of all kernels: shape, checksums of rows, and bounds of sizes."""
        shape = np.array([self.M, self.n, self.dtype.itemsize])
        return shape.tobytes() + self.file.checksums() + self.root_sizes.tobytes()

    # ---- reading ---------------------------------------------------------------------

    def _sweep(self, index: Array) -> Iterator[tuple[slice, Triangles, Array]]:
        """The kernels in batches: places in `index`, the batch, numbers in the batch.

        A batch is valid until the next one is asked for.
        """
        step = self.file.batch
        parts = [
            slice(k, min(k + step, len(index))) for k in range(0, len(index), step)
        ]
        buffers = self._free.pop() if self._free else [Buffer() for _ in range(BUFFERS)]
        try:
            load = lambda part, buffer: self.file.load(index[part], buffer)  # noqa: E731
            for part, found in ahead(load, parts, buffers):
                yield part, found, np.arange(part.stop - part.start)
        finally:
            self._free.append(buffers)

    def fetch(self, numbers: Array, P: Array) -> None:
        """Write the packed triangles of these kernels to the rows of P."""
        for part, found, _ in self._sweep(numbers):
            P[part] = found.P[:, : self.like.size]

    # ---- what a store does -----------------------------------------------------------

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A."""
        return self._dots(index, *self.like.folded(A, np.empty(self.like.size)))

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        w = np.empty(self.like.size)
        loops.fold(S, w)
        return self._dots(index, w, self.like.all_pieces)

    def _dots(self, index: Array, w: Array, pieces: Array) -> Array:
        kept = self.kept.ask("dots", index, w, pieces)
        if kept is not None:
            return np.asarray(kept)
        out = np.empty(len(index))
        for part, found, some in self._sweep(index):
            out[part] = found.dots(some, w, pieces)
        return out

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m K_m."""
        kept = self.kept.ask("combine", index, theta)
        if kept is not None:
            return np.asarray(kept)
        flat = np.zeros(self.like.size)
        for part, found, some in self._sweep(index):
            found.add(some, theta[part], flat, False)
        return self.like.square(flat)

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        kept = self.kept.ask("matvec", index, A)
        if kept is not None:
            return np.asarray(kept)
        out = np.empty((len(index), *A.shape[1:]))
        for part, found, some in self._sweep(index):
            out[part] = found.matvec(some, A[part] if len(A) > 1 else A)
        return out

    def inside(self, index: Array, A: Array) -> Array:
        """(K_m A)_m where rows of A are not 0, and 0 elsewhere; A is (1, n, k)."""
        kept = self.kept.ask("inside", index, A)
        if kept is not None:
            return np.asarray(kept)
        out = np.empty((len(index), *A.shape[1:]))
        for part, found, some in self._sweep(index):
            out[part] = found.inside(some, A)
        return out

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers; whole kernels are read."""
        kept = self.kept.ask("rows", index, which)
        if kept is not None:
            return np.asarray(kept)
        out = np.empty((len(index), len(which), self.n))
        for part, found, some in self._sweep(index):
            out[part] = found.rows(some, which)
        return out

    def samples(self, index: Array, which: Array) -> Triangles:
        """The kernels between some of the samples, in order, packed, in memory."""
        out = Triangles(len(which), len(index), "packed", self.dtype)
        for part, found, some in self._sweep(index):
            out.P[part] = found.samples(some, which).P
        return out

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals, which the file holds apart."""
        return self.file.diag(index)

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row, in float64."""
        with self.kept.lock:
            found = self.kept.of(np.array([m])) if m in self.kept else None
            if found is not None:
                return found[0].triangle(int(found[1][0]))
        return self.file.load(np.array([m]), Buffer()).triangle(0)

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel."""
        return self.like.square(self.triangle(m))

    def share_of(self, A: Array) -> float:
        """As in memory, for the same count of passes; the file is read as a whole."""
        return self.like.share_of(A)

    def quad_chain(self, columns: int) -> int:
        """The k for which the error of `quad` is at most γ_k Σ|K_ij||A_i||A_j|."""
        return self.like.quad_chain(columns)

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        return self.like.chain(terms)
