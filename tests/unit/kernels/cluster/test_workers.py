"""Parts of the workers that need no cluster; see test_stack.py."""

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from mklopt.kernels.cluster import workers
from mklopt.kernels.cluster.workers import ClusterLost, by_owner, connected


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
