"""Chains: features, Δ, and the oracle against the list of all outputs."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.structured.chains import Chain


@pytest.mark.parametrize("T", [1, 2, 5])
def test_viterbi_finds_what_the_list_of_all_outputs_has_best(T):
    rng, chain = np.random.default_rng(3), Chain(3)
    Z = chain.outputs(T)
    assert Z is not None and len({tuple(z) for z in Z}) == 3**T
    for truth in (None, rng.integers(3, size=T)):
        scores, weights = rng.normal(size=(T, 3)), rng.normal(size=9)
        value = scores[np.arange(T), Z].sum(axis=1) + chain.features(Z) @ weights
        if truth is not None:
            value = value + chain.delta(truth, Z)
        found = chain.argmax(scores, weights, truth)
        np.testing.assert_array_equal(found, Z[np.argmax(value)])
    assert Chain(3, most=3**T - 1).outputs(T) is None


def test_features_count_neighbours_and_delta_wrong_labels():
    chain, y = Chain(2), np.array([0, 1, 1, 1])
    np.testing.assert_array_equal(chain.features(y), [0, 1, 0, 2])  # 00, 01, 10, 11
    several = np.array([y, 1 - y])
    np.testing.assert_array_equal(chain.features(several), [[0, 1, 0, 2], [2, 0, 1, 0]])
    np.testing.assert_array_equal(chain.delta(y, several), [0, 4])
    assert chain.features(np.array([1])).shape == (4,)
