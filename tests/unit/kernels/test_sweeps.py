"""Plans of sweeps: what is computed once, and that every base gets its features."""

import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels import sweeps
from mklopt.kernels.streams import Streams, triangle
from mklopt.kernels.sweeps import Direct
from mklopt.util.lanes import WIDTH

rng = np.random.default_rng(8)
X = rng.normal(size=(40, 12))


def plan_of(family):
    store = Streams(Direct.of(family.fit(X)), 0)
    return store._plan(np.arange(len(store.kernels.base)))[0]


def features(plan, b):
    return plan.columns[plan.ends[b] : plan.ends[b + 1]].tolist()


def followed(plan, segments, complete):
    """The features that each kernel's sum has, by the rules of segments."""
    d, saved, found = len(plan.X), {0: list[int]()}, dict[int, list[int]]()
    for source, begin, end, start, target, first, last in segments.tolist():
        total = saved[source] + [start + c for c in plan.columns[begin:end].tolist()]
        if target == complete:
            found.update((k, total) for k in range(first, last))
        else:
            saved[target] = total
    return {k: [c % d for c in total] for k, total in found.items()}, saved


FAMILIES = {
    "subsets": kernels.subset_gaussians(300),
    "shared": kernels.gaussians([1, 2, 3], on="both") + kernels.linear(on="both"),
    "mixed": kernels.constant()
    + kernels.polynomials([1, 2])
    + kernels.views(kernels.gaussians([1, 4]), [[3, 1], [3, 1, 0], [3], [7, 3]]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_segments_give_every_base_its_features_in_order(name):
    plan = plan_of(FAMILIES[name])
    K = len(plan.base)
    complete = int(np.max(np.diff(plan.ends))) + 1
    for first, last in ((0, K), (K // 3, K), (K // 3, 2 * K // 3 + 1)):
        segments = sweeps._segments.py_func(plan, first, last, complete)
        found, _ = followed(plan, segments, complete)
        assert sorted(found) == list(range(first, last))
        for k, total in found.items():
            assert total == features(plan, plan.base[k])
        saving = segments[segments[:, sweeps.TARGET] != complete]
        assert np.all(saving[:, sweeps.END] > saving[:, sweeps.BEGIN])
        starts = segments[:, sweeps.START]
        apart = plan.apart[plan.base[segments[:, sweeps.FIRST]]]
        np.testing.assert_array_equal(starts == 0, apart)


def test_features_that_sorted_kernels_share_are_added_once():
    plan = plan_of(kernels.subset_gaussians(1000))
    segments = sweeps._segments.py_func(plan, 0, 1000, 13)
    done = np.sum(segments[:, sweeps.END] - segments[:, sweeps.BEGIN])
    prefixes = {
        tuple(features(plan, b)[:k])
        for b in plan.base
        for k in range(1, len(features(plan, b)) + 1)
    }
    assert done == len(prefixes) < 0.6 * sum(len(features(plan, b)) for b in plan.base)


def test_a_base_is_computed_once_for_all_its_kernels():
    plan = plan_of(kernels.gaussians(range(1, 9)))
    segments = sweeps._segments.py_func(plan, 0, 8, 13)
    assert len(segments) == 1
    assert segments[0, [sweeps.FIRST, sweeps.LAST]].tolist() == [0, 8]


def test_kernels_are_sorted_by_kind_and_features():
    plan = plan_of(FAMILIES["shared"])
    kinds = plan.apart[plan.base]
    assert np.all(np.diff(kinds.astype(int)) <= 0)
    assert np.count_nonzero(plan.common < 0) == 3 * 13 - 13
    changed = np.flatnonzero(np.diff(kinds.astype(int)))[0] + 1
    assert plan.common[changed] == 0


@pytest.mark.parametrize("n", [1, 2, 9, 33, 70])
def test_tiles_have_every_pair_once(n):
    area, pairs = triangle(n), []
    I, J = np.empty((2, WIDTH), np.int64)
    for tile in range(-(-(n * (n + 1) // 2) // WIDTH)):
        count = sweeps._pairs.py_func(area, n, tile, I, J)
        assert np.all((I >= 0) & (I <= J) & (n > J))
        pairs += list(zip(I[:count].tolist(), J[:count].tolist()))
    assert pairs == list(zip(*(x.tolist() for x in np.triu_indices(n))))
