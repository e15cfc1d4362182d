"""Parts of the workers that need no cluster; see test_stack.py."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from mklopt.grams.partition import Partition
from mklopt.kernels.cluster import workers
from mklopt.kernels.cluster.blocks import Missing
from mklopt.kernels.cluster.workers import ClusterLost, Workers, by_owner, connected


def test_blocks_go_to_their_owners():
    owners = {0: ("a", 0), 1: ("b", 0), 2: ("a", 0), 3: ("a", 1)}
    assert by_owner([0, 1, 2, 3], owners) == {
        ("a", 0): [0, 2],
        ("b", 0): [1],
        ("a", 1): [3],
    }


def test_a_sum_with_a_worker_that_has_no_answer_has_none():
    failed = workers.NoAnswer.__new__(workers.NoAnswer)
    assert workers.add(np.ones(2), failed) is failed
    assert workers.add(failed, np.ones(2)) is failed
    np.testing.assert_array_equal(workers.add(np.ones(2), np.ones(2)), [2.0, 2.0])


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_an_address_where_nobody_answers(address, monkeypatch):
    monkeypatch.setattr(workers, "ANSWER", 0.3)
    with pytest.raises(ClusterLost, match=f"no Dask scheduler answers at {address}"):
        connected(address)


class Scheduler:
    """A client whose scheduler has these workers, with these tasks."""

    status = "running"

    def __init__(self, held: dict):
        self.held = held

    def nthreads(self, **about: Any) -> dict:
        return dict.fromkeys(self.held, 1)

    def processing(self) -> dict:
        return self.held


def looking(held: dict, patience: float = 3.0) -> tuple[Any, Any]:
    found: Any = Workers.__new__(Workers)
    found.client, found.patience, found.name = Scheduler(held), patience, "own"
    found.address, found.lost = "tcp://here", ""
    return found, found._looks()


def test_tasks_that_no_worker_has_are_asked_again():
    _, look = looking({"a": ("other-1",), "b": ()})
    look(1.0)
    with pytest.raises(ConnectionError, match="no worker has these tasks"):
        look(1.0)


def test_tasks_of_a_worker_are_waited_for():
    store, look = looking({"a": ("other-1",), "b": ("own-1",)})
    for _ in range(20):
        look(1.0)
    assert store.lost == ""


def test_without_workers_patience_ends():
    store, look = looking({})
    for _ in range(3):
        look(1.0)
    with pytest.raises(ClusterLost, match="there was no worker for 3 s"):
        look(1.0)
    assert store.lost


def test_a_worker_that_died_before_its_block_was_sent():
    class Gone(Scheduler):
        def scatter(self, *given: Any, **about: Any) -> None:
            raise KeyError("tcp://gone")  # as the scheduler does

    class Source:
        def packed(self, first: int, last: int) -> np.ndarray:
            return np.zeros((last - first, 3))

    store, _ = looking({"a": ()})
    store.client, store.source, store.cut = Gone({}), Source(), Partition(5)
    failed = workers.NoAnswer.__new__(workers.NoAnswer)
    failed.error, failed.where = Missing([0]), "tcp://gone"
    with pytest.raises(workers.BROKEN, match="the worker at tcp://gone is gone"):
        store._supply([failed])
