"""Kernels on the workers of a Dask cluster, with the operations of storage.py.

    store = Cluster(client, source)       source: see blocks.py

Each block of kernels (partition.py) has one worker that keeps it in memory. A task asks
a worker for all of its blocks at once. What moves is in traffic.py: quad sends α and
brings one number per kernel; combine adds triangles by the tree, each partial sum on a
worker that has one of its two terms, and brings one triangle.

Kernels in use. A solver of a sparse problem asks for few kernels again and again. They
are brought here once, as triangles (Kept). An operation on r kernels is done here if

    r ≤ M/8,  and r triangles fit in `memory`,  and r ≤ 256 for quad and against

The last one because quad needs so little traffic that bringing many kernels for it
does not pay. The rule does not look at workers or at the past: results have the same
bits in every run.

Failures. A worker that dies is noticed by the scheduler, which gives its tasks to
others; these make the blocks again from the source. What is left of the blocks stays
where it is. If the scheduler is gone, or no worker comes back, or tasks end their
workers again and again, then the operation raises ClusterLost. From then on operations
are done in this process, one block at a time and with the same bits, so that the best
point of a run can still be certified.

Guarantee. Results have the same bits for any workers, any schedule and any failures.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import cached_property
from typing import Any

import numpy as np

from .blocks import Blocks, Missing, Request, Source, packed, unpacked
from .kept import Kept
from .partition import Node, Piece, share_out
from .storage import REMEMBERED, Triangles
from .traffic import HEADER, Moved, Traffic, model, nbytes

try:
    from dask import config
    from distributed import Client, Future, KilledWorker, get_worker
    from distributed.client import ClosedClientError
    from distributed.diagnostics.plugin import WorkerPlugin
except ImportError as error:
    raise ImportError(
        "ClusterStack needs Dask; install it with: pip install 'mklopt[cluster]'"
    ) from error

Array = np.ndarray
Owners = dict[int, tuple[str, int]]  # of each block: the address of a worker, a thread
SHARE = 8  # one kernel of so many, at most, is a working set
MOST_QUAD = 256  # kernels that are brought here for a quad
ATTEMPTS = 8  # of one operation
LOOK, PAUSE = 1.0, 0.1  # seconds between two looks at tasks, and at workers
RECONNECT = 5.0  # seconds that a scheduler may be out of reach
ANSWER = 10.0  # seconds for the first answer of a scheduler
LARGE = "1TB"  # of a task: Dask's own warning is for graphs of thousands of tasks
BROKEN = (
    *(CancelledError, asyncio.CancelledError, KilledWorker, ClosedClientError),
    *(OSError, TimeoutError),
)


class ClusterLost(ConnectionError):
    """The cluster does not answer; what follows is computed in this process."""


def connected(address: str) -> Client:
    """A client of the scheduler at this address; OSError if none answers."""
    try:
        return Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, TimeoutError, ValueError):
        raise ClusterLost(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS --nthreads 1`"
        ) from None


# ---- on a worker ---------------------------------------------------------------------


class Placed(WorkerPlugin):
    """What a worker gets once, when it joins: the source of the kernels."""

    def __init__(self, name: str, blocks: Blocks):
        self.name, self.blocks = name, blocks

    def teardown(self, worker: Any) -> None:
        """Free the memory."""
        self.blocks.stores.clear()


class NoAnswer:
    """Why a worker has no answer: an error, or kernels that it does not have."""

    def __init__(self, error: Exception | None):
        self.error, self.where = error, get_worker().address


def _blocks(name: str) -> Blocks | None:
    here: Any = get_worker().plugins.get(name)
    return None if here is None else here.blocks


def answer(name: str, request: bytes) -> Any:
    """What the blocks of this worker answer; every error is an answer, too."""
    try:
        blocks = _blocks(name)
        return (
            NoAnswer(None) if blocks is None else blocks.answer(pickle.loads(request))
        )
    except Exception as error:
        return NoAnswer(error)


def put(name: str, block: int, P: Array) -> None:
    """Give a worker the kernels of a block."""
    blocks = _blocks(name)
    if blocks is not None:
        blocks.put(block, P)


def add(left: Any, right: Any) -> Any:
    """The sum of two triangles."""
    failed = next((x for x in (left, right) if isinstance(x, NoAnswer)), None)
    return left + right if failed is None else failed


# ---- here ----------------------------------------------------------------------------


class Cluster:
    """Kernels in blocks on workers; the operations are documented in stack.py."""

    storage, remembered, sized = "cluster", REMEMBERED, True

    def __init__(
        self, client: Client, source: Source, memory: int, patience: float = 60.0
    ):
        self.client, self.source, self.patience = client, source, patience
        self.address = getattr(client.scheduler, "address", "an unknown address")
        self.n, self.M = source.n, source.M
        self.name = f"mklopt-{uuid.uuid4().hex}"
        self.here = Blocks(source, keep=False)
        self.cut, self.traffic = self.here.cut, Traffic()
        self.sample = source.store(0, min(4, source.M))
        self.dtype, self.cost = self.sample.dtype, self.sample.cost
        self.owners: Owners = {}
        self.lost = ""  # why operations are done in this process
        me = weakref.ref(self)  # no cycle: the workers are freed at once
        fetch = lambda numbers, P: me()._fetch(numbers, P)  # type: ignore  # noqa: E731
        self.kept = Kept(self.n, self.dtype, memory, fetch)
        self._begin()
        weakref.finalize(self, _release, client, self.name).atexit = False

    def __repr__(self) -> str:
        where = f"in this process: {self.lost}" if self.lost else self.address
        return f"Cluster(M={self.M}, n={self.n}, {where})"

    def _begin(self) -> None:
        """Register; again if a worker dies meanwhile, which the scheduler tells us."""
        for attempt in range(ATTEMPTS):
            try:
                return self._register()
            except BROKEN as error:
                self._reconnect(error)
                if attempt == ATTEMPTS - 1:
                    raise self._lose(error) from None
                _pause()

    def _register(self) -> None:
        """Send the source to all workers, those that join later included."""
        plugin = Placed(self.name, Blocks(self.source))
        workers, size = len(self._workers()), len(pickle.dumps(plugin))
        self.client.register_plugin(plugin, name=self.name)
        self.traffic.add("source", Moved(1, workers, size, 0, size, 0, size * workers))

    # ---- tasks, and what can go wrong ------------------------------------------------

    def _workers(self) -> dict[str, int]:
        """The workers and their threads, as the scheduler says."""
        if self.client.status != "running":
            raise ConnectionError("the client has no connection")
        return self.client.nthreads(callback_timeout=RECONNECT)

    def _owners(self) -> Owners:
        """Who has which block now; waits for workers if there is none."""
        for _ in range(1 + int(self.patience / PAUSE)):
            if found := self._workers():
                break
            _pause()
        else:
            raise self._lose(f"there was no worker for {self.patience:g} s")
        present = [(who, i) for who in sorted(found) for i in range(found[who])]
        if set(present) != set(self.owners.values()):
            self.owners = share_out(self.owners, self.cut.count, present)
        return self.owners

    def _submit(self, owner: tuple[str, int], request: Request, moved: Moved) -> Future:
        message = pickle.dumps(request, protocol=5)
        moved.tasks, moved.sent = moved.tasks + 1, moved.sent + len(message)
        return self._task(owner, answer, self.name, message)

    def _task(self, owner: tuple[str, int], function: Callable, *given: Any) -> Future:
        with config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            return self.client.submit(
                function,
                *given,
                workers=[owner[0]],
                allow_other_workers=True,
                pure=False,
            )

    def _results(
        self, plan: Callable[[Owners, Moved], list[Future]], name: str
    ) -> list:
        """The results of the tasks that plan(owners) submits, whatever happens."""
        error: Any = None
        for _ in range(ATTEMPTS):
            moved = Moved()
            try:
                futures = plan(self._owners(), moved)
                self._wait(futures)
                found = self.client.gather(futures)
                moved.received = nbytes(found)
                self.traffic.add(name, moved)
                if not (failed := [x for x in found if isinstance(x, NoAnswer)]):
                    return found
                self._supply(failed)
            except ClusterLost:
                raise
            except BROKEN as broken:
                error = broken
                self._reconnect(error)
        raise self._lose(error or "workers lost kernels again and again")

    def _wait(self, futures: list[Future]) -> None:
        """Wait for tasks as long as there are workers, or some may come back.

        Each future asks its own client: `distributed.wait` asks the default one, and
        where there are several clients it is not woken when a task is done.
        """
        alone = 0.0  # seconds without a worker
        for future in futures:
            while True:
                try:
                    error = future.exception(timeout=LOOK)
                except TimeoutError:
                    alone = 0.0 if self._workers() else alone + LOOK
                    if alone > self.patience:
                        why = f"there was no worker for {self.patience:g} s"
                        raise self._lose(why) from None
                else:
                    break
            if error is not None:
                raise error

    def _supply(self, failed: list[NoAnswer]) -> None:
        """Give workers what they need for an answer; their other errors are raised."""
        for found in failed:
            if found.error is None:
                self._register()
            elif not isinstance(found.error, Missing):
                raise found.error
        for found in failed:
            for block in getattr(found.error, "blocks", []):
                P = self.source.packed(*self.cut.ends(block))
                data = self.client.scatter(P, workers=[found.where], hash=False)
                done = self.client.submit(
                    *(put, self.name, block, data), workers=[found.where], pure=False
                )
                self._wait([done])
                self.client.gather(done)
                self.traffic.add("kernels", Moved(1, 1, P.nbytes, 0, P.nbytes))

    def _reconnect(self, error: BaseException) -> None:
        """Wait a little for the scheduler, if it does not answer."""
        for _ in range(int(RECONNECT / PAUSE)):
            if self.client.status in ("running", "closed"):
                break
            _pause()
        if self.client.status != "running":
            raise self._lose(error) from None

    def _lose(self, why: Any) -> ClusterLost:
        """The error that ends a run; operations are done in this process from now."""
        if isinstance(why, KilledWorker):
            why = "its workers end again and again, perhaps because memory runs out"
        elif isinstance(why, BaseException):
            why = "its scheduler does not answer any more"
        self.lost = str(why)
        return ClusterLost(
            f"the cluster at {self.address} is lost: {why}; kernels are computed in "
            "this process from now on"
        )

    # ---- operations on all blocks ----------------------------------------------------

    def _each(
        self,
        operation: str,
        index: Array,
        *shared: Array,
        own: tuple = (),
        **about: Any,
    ) -> Array:
        """The answers for these kernels, in their order."""
        pieces = self.cut.pieces(index)
        if self.lost:
            groups = [[piece] for piece in pieces]
            asked = [self._request(operation, g, shared, own) for g in groups]
            found = [self.here.answer(request) for request in asked]
        else:
            groups = []

            def plan(owners: Owners, moved: Moved) -> list[Future]:
                mine = _grouped(pieces, owners)
                groups[:] = mine.values()
                self._expect(operation, index, list(mine.values()), moved, **about)
                return [
                    self._submit(owner, self._request(operation, g, shared, own), moved)
                    for owner, g in mine.items()
                ]

            found = self._results(plan, operation)
        return _placed(found, groups, len(index))

    def _request(
        self, operation: str, pieces: list[Piece], shared: tuple, own: tuple = ()
    ) -> Request:
        """One task: what is asked of these pieces."""
        blocks = np.array([piece.block for piece in pieces], np.uint16)
        places = np.concatenate([piece.places for piece in pieces])
        mine = tuple(array[places] for array in own)
        if all(piece.numbers is None for piece in pieces):
            return Request(operation, blocks, None, None, shared, mine)
        counts = np.array([len(piece.places) for piece in pieces], np.int32)
        some = [self._numbers(piece) for piece in pieces]
        numbers = np.concatenate(some).astype(np.int32)
        return Request(operation, blocks, counts, numbers, shared, mine)

    def _numbers(self, piece: Piece) -> Array:
        return np.arange(len(piece.places)) if piece.numbers is None else piece.numbers

    def _expect(
        self,
        operation: str,
        index: Array,
        groups: list[list[Piece]],
        moved: Moved,
        **about: Any,
    ) -> None:
        """Add what the model says about an operation."""
        moved.calls += 1
        sizes = dict(itemsize=self.dtype.itemsize) | about
        sent, moved.model_received = model(
            operation, self.n, len(index), len(groups), **sizes
        )
        moved.model_sent = sent + sum(map(_addresses, groups))

    def combine(self, index: Array, theta: Array) -> Array:
        """Σ θ_m K_m."""
        theta = np.ascontiguousarray(theta, float)
        if self._small(index):
            return self.kept.ask("combine", index, theta)
        pieces = {piece.block: piece for piece in self.cut.pieces(index)}
        if self.lost:
            request = self._request("combine", list(pieces.values()), (), (theta,))
            return unpacked(self.here.answer(request), self.n)

        def plan(owners: Owners, moved: Moved) -> list[Future]:
            return [self._tree(owners, pieces, theta, moved)]

        return unpacked(self._results(plan, "combine")[0], self.n)

    def _tree(
        self, owners: Owners, pieces: dict[int, Piece], theta: Array, moved: Moved
    ) -> Future:
        """The tasks of a sum: one for each subtree of one owner, and those above."""
        groups: list[list[Piece]] = []

        def leaf(node: Node) -> tuple[Future, tuple[str, int]] | None:
            mine = [pieces[b] for b in range(*node) if b in pieces]
            whose = {owners[piece.block] for piece in mine}
            if len(whose) != 1:
                return None
            request = self._request("combine", mine, (), (theta,))
            request.node, owner = node, whose.pop()
            groups.append(mine)
            return self._submit(owner, request, moved), owner

        def join(left: Any, right: Any) -> Any:
            moved.tasks += 1
            moved.model_between += (
                4 * self.n * (self.n + 1) * (left[1][0] != right[1][0])
            )
            return self._task(left[1], add, left[0], right[0]), left[1]

        found = self.cut.total(self.cut.root, leaf, join)
        assert found is not None
        index = np.concatenate([piece.places for piece in pieces.values()])
        self._expect("combine", index, groups, moved)
        return found[0]

    # ---- the operations of a store ---------------------------------------------------

    def _small(self, index: Array, most: int | None = None) -> bool:
        """Whether these kernels are brought here, by the rule at the top."""
        few = len(index) <= self.M // SHARE and self.kept.fits(index)
        return few and (most is None or len(index) <= most)

    def _fetch(self, numbers: Array, P: Array) -> None:
        P[:] = self._each("triangles", numbers)

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A."""
        if self._small(index, MOST_QUAD):
            return self.kept.ask("quad", index, A)
        return self._each("quad", index, A, columns=A.shape[1])

    def against(self, index: Array, S: Array) -> Array:
        """(⟨K_m, S⟩)_m for a symmetric S."""
        if self._small(index, MOST_QUAD):
            return self.kept.ask("against", index, S)
        return self._each("against", index, packed(S))

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        if self._small(index):
            return self.kept.ask("matvec", index, A)
        if len(A) == 1:
            return self._each("matvec", index, A, columns=A.shape[2])
        return self._each("matvec", index, own=(A,), columns=A.shape[2], separate=True)

    def rows(self, index: Array, which: Array) -> Array:
        """(M, r, n): the rows with these numbers."""
        if self._small(index):
            return self.kept.ask("rows", index, which)
        return self._each("rows", index, which, columns=len(which))

    def diag(self, index: Array) -> Array:
        """(M, n): the diagonals."""
        return self._each("diag", index)

    @cached_property
    def root_sizes(self) -> Array:
        """Upper bounds of √λ_max(K_m)."""
        return self._each("root_sizes", np.arange(self.M))

    def traces(self, index: Array) -> Array:
        """Σ_i max(K_ii, 0) of each kernel: no diagonal comes here."""
        return self._each("traces", index)

    def shifts(self, index: Array) -> Array:
        """δ_m for which K_m + δ_m I is proved to be positive semi-definite."""
        return self._each("shifts", index)

    def samples(self, index: Array, which: Array) -> Triangles:
        """The kernels between some of the samples, in order, packed; they come here."""
        P = self._each("samples", index, which, columns=len(which))
        return Triangles(len(which), len(P), "packed", self.dtype, P)

    def triangle(self, m: int) -> Array:
        """The upper triangle, row after row."""
        return self._each("triangles", np.array([m]))[0].astype(float)

    def kernel(self, m: int) -> Array:
        """(n, n): one kernel."""
        return unpacked(self.triangle(m), self.n)

    def chain(self, terms: int) -> int:
        """The largest number of additions that one product takes part in."""
        here = Triangles(self.n, 0, "packed", self.dtype)  # kernels in use
        return max(int(self.sample.chain(terms)), here.chain(terms))

    def quad_chain(self, columns: int) -> int:
        """The k for which the error of `quad` is at most γ_k Σ|K_ij||A_i||A_j|."""
        here = Triangles(self.n, 0, "packed", self.dtype)
        return max(int(self.sample.quad_chain(columns)), here.quad_chain(columns))

    def close(self) -> None:
        """Free the memory of the workers; the stack cannot be used any more."""
        if not self.lost and self.client.status == "running":
            self.client.unregister_worker_plugin(self.name)
        self.lost = "it was closed"


def _pause() -> None:
    threading.Event().wait(PAUSE)


def _release(client: Client, name: str) -> None:
    """Free the memory of workers when nobody has the stack any more."""
    if client.status == "running" and client.loop is not None:
        client.loop.add_callback(client.unregister_worker_plugin, name)


def _grouped(pieces: list[Piece], owners: Owners) -> dict[tuple[str, int], list[Piece]]:
    """The pieces of each owner."""
    found: dict[tuple[str, int], list[Piece]] = {}
    for piece in pieces:
        found.setdefault(owners[piece.block], []).append(piece)
    return found


def _placed(found: list[Array], groups: list[list[Piece]], count: int) -> Array:
    """The answers of tasks in the order of the index."""
    out = np.empty((count, *found[0].shape[1:]), found[0].dtype)
    for answers, pieces in zip(found, groups):
        out[np.concatenate([piece.places for piece in pieces])] = answers
    return out


def _addresses(pieces: list[Piece]) -> int:
    """The bytes that say which kernels a task is about."""
    size = HEADER + 2 * len(pieces)
    if any(piece.numbers is not None for piece in pieces):
        size += 4 * len(pieces) + 4 * sum(len(piece.places) for piece in pieces)
    return size


def batches(index: Array, size: int) -> Iterator[Array]:
    """An index in parts of at most `size` kernels."""
    return (index[k : k + size] for k in range(0, len(index), size))
