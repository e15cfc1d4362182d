"""Parts of the cluster store that need no cluster; see kernels/test_cluster.py."""

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from mklopt.grams import cluster
from mklopt.grams.cluster import ClusterLost, connected
from mklopt.grams.partition import Partition


def test_answers_are_put_in_the_order_of_the_index():
    index = np.array([17, 3, 0, 9])
    pieces = Partition(20).pieces(index)
    groups = [pieces[1:], pieces[:1]]
    found = [
        np.concatenate([index[piece.places] for piece in group]) for group in groups
    ]
    np.testing.assert_array_equal(cluster._placed(found, groups, 4), index)


def test_pieces_go_to_their_owners():
    pieces = Partition(16).pieces(np.arange(16))
    owners = {0: ("a", 0), 1: ("b", 0), 2: ("a", 0), 3: ("a", 1)}
    found = cluster._grouped(pieces, owners)
    blocks = {who: [piece.block for piece in some] for who, some in found.items()}
    assert blocks == {("a", 0): [0, 2], ("b", 0): [1], ("a", 1): [3]}


def test_a_sum_with_a_worker_that_has_no_answer_has_none():
    failed = cluster.NoAnswer.__new__(cluster.NoAnswer)
    assert cluster.add(np.ones(2), failed) is failed
    assert cluster.add(failed, np.ones(2)) is failed
    np.testing.assert_array_equal(cluster.add(np.ones(2), np.ones(2)), [2.0, 2.0])


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_an_address_where_nobody_answers(address, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER", 0.3)
    with pytest.raises(ClusterLost, match=f"no Dask scheduler answers at {address}"):
        connected(address)
