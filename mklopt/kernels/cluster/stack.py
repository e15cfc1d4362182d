"""ClusterStack: kernels spread over the workers of a Dask cluster.

    client = distributed.Client("tcp://scheduler:8786")
    grams = mklopt.ClusterStack(client, kernels.gaussians([1, 3, 10]).fit(X))
    grams = mklopt.ClusterStack(client, "kernels.grams")     # a file that workers see
    grams = mklopt.ClusterStack(client, K)                   # arrays, sent once
    grams = mklopt.ClusterStack(client, kernels.nystroem(family, 200).fit(X))
    grams = mklopt.ClusterStack(client, GramStack.from_factors(L))

The last two spread the rows of factors, all others whole kernels.

It is a GramStack in every other way: solvers, certificates, races and paths take it as
it is. How it works is in store.py, and in factors.py for factors; what moves over the
network in traffic.py.

Guarantee. Results have the same bits for any number of workers, any schedule, and
whatever workers die on the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...grams.stack import GramStack
from ...util.checks import byte_count, check_choice, short
from ..fitted import FittedKernels
from ..low_rank import LowRankKernels
from ..streaming import LazyStack
from .factors import ClusterFactors
from .sources import FactorSource, FamilySource, FileSource, PointSource, StackSource
from .store import Cluster
from .traffic import Traffic

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

    def _proved(self) -> tuple[Array, str]:
        """δ, which is proved on the workers."""
        return self._store.shifts(self._index), "theorem or Cholesky"

    def content(self) -> Iterable[Array]:
        """Upper triangles or factors, which are brought here; as GramStack.content."""
        if self.storage == "factors":
            yield from super().content()
            return
        size = max(1, BATCH // (4 * self.n * (self.n + 1)))
        for first in range(0, self.M, size):
            some = self._index[first : first + size]
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
