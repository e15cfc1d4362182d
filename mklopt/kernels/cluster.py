"""ClusterStack: kernels spread over the workers of a Dask cluster.

    client = distributed.Client("tcp://scheduler:8786")
    grams = mklopt.ClusterStack(client, kernels.gaussians([1, 3, 10]).fit(X))
    grams = mklopt.ClusterStack(client, "kernels.grams")     # a file that workers see
    grams = mklopt.ClusterStack(client, K)                   # arrays, sent once
    grams = mklopt.ClusterStack(client, kernels.nystroem(family, 200).fit(X))
    grams = mklopt.ClusterStack(client, GramStack.from_factors(L))

The last two spread the rows of factors, all others whole kernels.

It is a GramStack in every other way: solvers, certificates, races and paths take it as
it is. How it works is in grams/cluster.py, and in grams/cluster_factors.py for factors;
what moves over the network in grams/traffic.py. It is here and not in grams, because it
is made of fitted kernels.

Guarantee. Results have the same bits for any number of workers, any schedule, and
whatever workers die on the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from ..grams.cluster import Cluster, batches
from ..grams.cluster_factors import ClusterFactors
from ..grams.factors import Factors
from ..grams.stack import GramStack
from ..grams.storage import Triangles
from ..grams.traffic import Traffic
from ..util.checks import byte_count, check_choice, short
from .fitted import FittedKernels
from .low_rank import LowRankKernels
from .streaming import LazyStack

Array = np.ndarray
MOST_PACKED = 4 * 10**9  # bytes of all kernels that workers keep as triangles
KINDS = ("float64", "float32")  # of features
BATCH = 2**26  # bytes of kernels that are brought here at a time


class ClusterStack(GramStack):
    """M kernels spread over the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster. Workers need mklopt, and one thread each.
    kernels : FittedKernels, LowRankKernels, path, GramStack, or array (M, n, n)
        Fitted kernels are sent once to every worker, which computes its own part. A
        path names a file that GramStack.write wrote and every worker can read. A stack
        or an array stays in this process as well. Of low-rank kernels workers get the
        landmarks and some of the points, and compute the features of these; features
        and stacks of factors are spread by rows.
    storage : {"packed", "lazy"}, optional
        "packed": workers keep their kernels in memory. "lazy": they compute them when
        needed, or read them from the file. By default "packed" up to 4 GB in all; an
        array is always packed. It is not for factors.
    dtype : {"float64", "float32"}, optional
        For low-rank kernels alone, as in their `grams`.
    memory : int or str
        The memory for kernels in use in this process: a number of bytes, or text such
        as "500MB".
    patience : float
        Seconds to wait for a worker if there is none.

    Attributes
    ----------
    traffic : Traffic
        The bytes sent and received so far, by operation, beside those of a model.

    Raises
    ------
    ValueError
        If kernels are not one of these, or not valid.
    ClusterLost
        If the scheduler does not answer, or there is no worker. In a run, the best
        point so far is certified in this process and returned. It is a
        ConnectionError, too.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> grams = ClusterStack(client, family.fit(X))  # doctest: +SKIP
    >>> mklopt.solve(mklopt.Problem(grams, y))  # doctest: +SKIP
    """

    def __init__(
        self,
        client: Any,
        kernels: Any,
        *,
        storage: str | None = None,
        dtype: Any = None,
        memory: Any = "500MB",
        patience: float = 60.0,
    ) -> None:
        if not hasattr(client, "register_plugin"):
            raise ValueError(
                f"client = {short(client)}; give a distributed.Client first, then the "
                "kernels"
            )
        if storage is not None:
            check_choice(storage, "storage", ("packed", "lazy"))
        limit = byte_count(memory, "memory")
        factors = _factor_source(kernels, storage, dtype)
        store: Any = None
        if factors is not None:
            source, shift, proof = factors, np.zeros(factors.M), "factors"
            store = ClusterFactors(client, source, float(patience))
        else:
            source, shift, proof = _source(kernels, storage)
            store = Cluster(client, source, limit, float(patience))
        self._set(store, np.arange(source.M), shift, proof)

    @property
    def traffic(self) -> Traffic:
        """The bytes sent and received so far, beside those of the model."""
        return self._store.traffic

    def verify_psd(self) -> Array:
        """Prove K_m + δ_m I ⪰ 0 on the workers; see GramStack.verify_psd.

        Returns
        -------
        array (M,)
            δ, which is also the new `shift`.
        """
        if not self.proof:
            delta = self._store.shifts(self._index)
            delta.flags.writeable = False
            self.shift, self.proof = delta, "theorem or Cholesky"
            self._roots = self._trace = None
            self.forget()
        return self.shift

    def content(self) -> Iterable[Array]:
        """Upper triangles or factors, which are brought here; as GramStack.content."""
        if self.storage == "factors":
            yield from super().content()
            return
        size = max(1, BATCH // (4 * self.n * (self.n + 1)))
        for some in batches(self._index, size):
            yield from self._store._each("triangles", some).astype(float)

    def close(self) -> None:
        """Free the memory of the workers. The stack cannot be used any more."""
        self._store.close()


def _source(given: Any, storage: str | None) -> tuple[Any, Array, str]:
    """What the workers make kernels from; shift and proof of the stack."""
    if isinstance(given, LazyStack):
        given, storage = given.kernels, storage or "lazy"
    if isinstance(given, str | os.PathLike):
        return _file(given, storage)
    if isinstance(given, FittedKernels):
        source: Any = FamilySource(given, storage or _usual(given.M, given.n))
        return source, np.zeros(given.M), ""
    if storage == "lazy":
        raise ValueError("arrays are kept as they are; leave out storage='lazy'")
    stack = given if isinstance(given, GramStack) else GramStack(given)
    if stack.storage not in ("packed", "full"):
        raise ValueError(
            f"a stack with storage {stack.storage!r} cannot be spread over workers; "
            "give fitted kernels, or a GramStack of matrices"
        )
    return StackSource(stack), stack.shift, stack.proof


def _factor_source(given: Any, storage: str | None, dtype: Any) -> Any:
    """What the workers make factors from; None for other kernels."""
    low_rank = isinstance(given, LowRankKernels)
    if dtype is not None and not low_rank:
        raise ValueError("dtype is for low-rank kernels; leave it out")
    if not low_rank and getattr(given, "storage", None) != "factors":
        return None
    if storage is not None:
        raise ValueError("factors are kept by rows; leave out storage")
    if low_rank:
        kind = check_choice(np.dtype(dtype or float).name, "dtype", KINDS)
        return PointSource(given, np.dtype(kind))
    return FactorSource(given)


def _usual(M: int, n: int) -> str:
    """The storage that depends on the size of the kernels alone."""
    return "packed" if 4 * M * n * (n + 1) <= MOST_PACKED else "lazy"


def _file(path: str | os.PathLike, storage: str | None) -> tuple[Any, Array, str]:
    stack = GramStack.open(path, memory=0)
    source = FileSource(path, stack.M, stack.n, storage or _usual(stack.M, stack.n))
    return source, stack.shift, stack.proof


class FamilySource:
    """Kernels that are computed from data."""

    def __init__(self, fitted: FittedKernels, storage: str):
        fitted.subset(np.arange(1))  # what has to be learned is learned here, once
        self.fitted, self.storage = fitted, storage
        self.M, self.n = fitted.M, fitted.n

    def store(self, first: int, last: int) -> Any:
        """Some neighbouring kernels, in memory or computed when needed."""
        some = self.fitted.subset(np.arange(first, last))
        stack = some.grams() if self.storage == "packed" else some.lazy(cache=0)
        return stack._store

    def packed(self, first: int, last: int) -> Array:
        """Not needed: every worker can compute them."""
        raise NotImplementedError


class StackSource:
    """Kernels that are in the memory of one process, and sent to others."""

    def __init__(self, stack: GramStack | None, M: int = 0, n: int = 0):
        self.stack = stack
        self.M = M if stack is None else stack.M
        self.n = n if stack is None else stack.n

    def __reduce__(self) -> tuple:
        return StackSource, (None, self.M, self.n)  # without the kernels

    def store(self, first: int, last: int) -> Any:
        """Some neighbouring kernels, where the stack is."""
        if self.stack is None:
            return None
        samples = np.arange(self.n)
        return self.stack._store.samples(self.stack._index[first:last], samples)

    def packed(self, first: int, last: int) -> Array:
        """Their packed triangles."""
        return self.store(first, last).P


class FactorSource:
    """Factors in the memory of one process, whose rows are sent to others."""

    local = True

    def __init__(self, stack: GramStack):
        panel = stack.panel()
        if panel.width > panel.R or len(panel.runs) > 1:  # a part of the kernels
            panel = panel.rows(np.arange(stack.n))
        self.F, self.ranks = panel.F, stack.ranks
        self.M, self.n, self.dtype = stack.M, stack.n, stack.dtype

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"F": None}  # without the factors

    def store(self, first: int, last: int) -> Any:
        """Some rows, where the factors are."""
        return None if self.F is None else Factors(self.F[first:last], self.ranks)

    def packed(self, first: int, last: int) -> Array:
        """Some rows, to be sent."""
        return self.F[first:last]

    def made(self, sent: Array) -> Factors:
        """Factors of rows that were sent, in an array that can be written."""
        return Factors(np.array(sent), self.ranks)


class PointSource:
    """Features of points: the points of a piece are sent, features are made there."""

    local = False

    def __init__(self, fitted: LowRankKernels, dtype: np.dtype):
        self.features, self.ranks = fitted.compact(), fitted.ranks
        self.M, self.n, self.dtype = fitted.M, fitted.n, dtype
        self.views = dict(fitted.exact.blocks)
        self.widths = [np.shape(block)[1] for block in self.views.values()]
        self.names = list(self.views)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"views": None}  # without the points

    def packed(self, first: int, last: int) -> Array:
        """The points of some rows, all views side by side."""
        return np.hstack([block[first:last] for block in self.views.values()])

    def made(self, sent: Array) -> Factors:
        """The features of points."""
        cuts = np.cumsum(self.widths)[:-1]
        parts = np.split(np.array(sent), cuts, axis=1)
        views = {
            name: np.ascontiguousarray(part) for name, part in zip(self.names, parts)
        }
        F = self.features.cross_features(views).astype(self.dtype)
        ranks = self.ranks.tolist()
        return GramStack.from_factors(F, ranks=ranks, dtype=self.dtype)._store

    def store(self, first: int, last: int) -> Any:
        """The features of some points, where the points are."""
        return None if self.views is None else self.made(self.packed(first, last))


class FileSource:
    """Kernels in a file that every worker can read."""

    def __init__(self, path: str | os.PathLike, M: int, n: int, storage: str):
        self.path, self.M, self.n, self.storage = os.path.abspath(path), M, n, storage

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "file"}

    @cached_property
    def file(self) -> Any:
        """The store of the file, opened once in each process."""
        return GramStack.open(self.path, memory=0)._store

    def store(self, first: int, last: int) -> Any:
        """Some neighbouring kernels, read into memory or when needed."""
        if self.storage == "lazy":
            return Neighbours(self.file, first)
        store = Triangles(self.n, last - first, "packed", self.file.dtype)
        self.file.fetch(np.arange(first, last), store.P)
        store.root_sizes = self.file.root_sizes[first:last]
        return store

    def packed(self, first: int, last: int) -> Array:
        """Not needed: every worker can read them."""
        raise NotImplementedError


class Neighbours:
    """The kernels of a store from a number on, as a store."""

    OPERATIONS = ("quad", "against", "combine", "matvec", "rows", "samples", "diag")

    def __init__(self, store: Any, first: int):
        self.whole, self.first = store, first
        self.root_sizes = store.root_sizes[first:]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.whole, name)
        if name in self.OPERATIONS:
            return lambda index, *given: found(index + self.first, *given)
        if name in ("kernel", "triangle"):
            return lambda m: found(m + self.first)
        return found
