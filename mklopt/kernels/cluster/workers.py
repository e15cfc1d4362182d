"""Blocks of kernels, or of rows, on the workers of a Dask cluster, whatever happens.

Each block (blocks.py) has one worker that keeps it in memory. A task asks a worker for
all of its blocks at once. Sums follow the tree of partition.py: each partial sum is
made on a worker that has one of its two terms.

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
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from ...grams.partition import Node, share_out
from ...util.extras import MissingExtra, missing
from .blocks import Blocks, Missing
from .traffic import Moved, Traffic, nbytes

if said := missing("dask", "distributed"):
    raise MissingExtra(said)

from dask import config
from distributed import Client, Future, KilledWorker, get_worker
from distributed.client import ClosedClientError
from distributed.diagnostics.plugin import WorkerPlugin

Array = np.ndarray
Owners = dict[int, tuple[str, int]]  # of each block: the address of a worker, a thread
ATTEMPTS = 8  # of one operation
LOOK, PAUSE = 1.0, 0.1  # seconds between two looks at tasks, and at workers
MOST_STUCK = 2  # looks that find workers, but no task with any of them
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


class Workers:
    """Blocks on workers, and tasks about them, whatever happens to the workers."""

    contents = "kernels"  # of blocks

    def __init__(self, client: Client, here: Blocks, patience: float):
        """Here: the blocks of this process, made when all else is lost."""
        self.client, self.patience = client, patience
        self.here, self.source, self.cut = here, here.source, here.cut
        self.address = getattr(client.scheduler, "address", "an unknown address")
        self.n, self.M = self.source.n, self.source.M
        self.name = f"mklopt-{uuid.uuid4().hex}"
        self.traffic = Traffic()
        self.owners: Owners = {}
        self.lost = ""  # why operations are done in this process
        self._begin()
        weakref.finalize(self, _release, client, self.name).atexit = False

    def __repr__(self) -> str:
        where = f"in this process: {self.lost}" if self.lost else self.address
        return f"{type(self).__name__}(M={self.M}, n={self.n}, {where})"

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
        plugin = Placed(self.name, type(self.here)(self.source))
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

    def _submit(self, owner: tuple[str, int], request: Any, moved: Moved) -> Future:
        message = pickle.dumps(request, protocol=5)
        moved.tasks, moved.sent = moved.tasks + 1, moved.sent + len(message)
        return self._task(owner, answer, self.name, message)

    def _task(self, owner: tuple[str, int], function: Callable, *given: Any) -> Future:
        """Where the owner is gone, another worker does it: see `_stuck`."""
        with config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            return self.client.submit(
                function,
                *given,
                workers=[owner[0]],
                allow_other_workers=True,
                key=self._key(),
            )

    def _key(self) -> str:
        """A new name of a task."""
        return f"{self.name}-{uuid.uuid4().hex}"

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
                found = self._gather(futures)
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
        look = self._looks()
        for future in futures:
            while True:
                try:
                    error = future.exception(timeout=LOOK)
                except TimeoutError:
                    look(LOOK)
                else:
                    break
            if error is not None:
                raise error

    def _gather(self, futures: list[Future]) -> list:
        """The results of tasks that are done; they are lost if their worker dies now.

        The scheduler makes lost ones again, or waits: see `_stuck`.
        """
        look, seconds = self._looks(), LOOK

        async def results() -> list:
            return await self.client.gather(futures, asynchronous=True)

        while True:
            try:
                return self.client.sync(results, callback_timeout=seconds)
            except TimeoutError:
                look(seconds)
                seconds *= 2  # large results take long, and come from the beginning

    def _looks(self) -> Callable[[float], None]:
        """A function to call again and again after so many seconds without a result.

        It raises an error when there is no use in waiting.
        """
        alone, stuck = 0.0, 0  # seconds without a worker; looks that found no task

        def look(seconds: float) -> None:
            nonlocal alone, stuck
            alone = 0.0 if self._workers() else alone + seconds
            if alone > self.patience:
                why = f"there was no worker for {self.patience:g} s"
                raise self._lose(why) from None
            stuck = stuck + 1 if self._stuck() else 0
            if stuck == MOST_STUCK:
                raise ConnectionError("no worker has these tasks") from None

        return look

    def _stuck(self) -> bool:
        """Whether there are workers, but none has a task of ours.

        A task whose owner is gone while no other worker is there waits for this owner,
        also when others come: the scheduler looks at it again only for the address that
        was asked for.
        """
        held = self.client.processing()
        return bool(held) and not any(
            str(key).startswith(self.name) for keys in held.values() for key in keys
        )

    def _supply(self, failed: list[NoAnswer]) -> None:
        """Give workers what they need for an answer; their other errors are raised."""
        for found in failed:
            if found.error is None:
                self._register()
            elif not isinstance(found.error, Missing):
                raise found.error
        for found in failed:
            for block in getattr(found.error, "blocks", []):
                self._send(block, found.where)

    def _send(self, block: int, where: str) -> None:
        """Send a block to a worker; the scheduler has a KeyError if it just died."""
        P = self.source.packed(*self.cut.ends(block))
        try:
            data = self.client.scatter(P, workers=[where], hash=False)
        except KeyError:
            raise ConnectionError(f"the worker at {where} is gone") from None
        given = (put, self.name, block, data)
        self._wait([self.client.submit(*given, workers=[where], key=self._key())])
        self.traffic.add(self.contents, Moved(1, 1, P.nbytes, 0, P.nbytes))

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
            f"the cluster at {self.address} is lost: {why}; {self.contents} are "
            "computed in this process from now on"
        )

    def _tree(
        self,
        owners: Owners,
        held: list[int],
        asked: Callable[[Node, list[int]], Any],
        size: int,
        moved: Moved,
    ) -> Future:
        """The tasks of a sum: one for each subtree of one owner, and those above.

        held: the blocks that take part; asked(node, blocks): the request for a subtree;
        size: the bytes of a sum
        """

        def leaf(node: Node) -> tuple[Future, tuple[str, int]] | None:
            mine = [b for b in held if node[0] <= b < node[1]]
            whose = {owners[b] for b in mine}
            if len(whose) != 1:
                return None
            owner = whose.pop()
            return self._submit(owner, asked(node, mine), moved), owner

        def join(left: Any, right: Any) -> Any:
            moved.tasks += 1
            moved.model_between += size * (left[1][0] != right[1][0])
            return self._task(left[1], add, left[0], right[0]), left[1]

        found = self.cut.total(self.cut.root, leaf, join)
        assert found is not None
        return found[0]

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


def by_owner(blocks: list[int], owners: Owners) -> dict[tuple[str, int], list[int]]:
    """The blocks of each owner."""
    found: dict[tuple[str, int], list[int]] = {}
    for block in blocks:
        found.setdefault(owners[block], []).append(block)
    return found
