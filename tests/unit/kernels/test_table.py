"""Kernels as arrays: names and kernels on demand, shared bases, subsets."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from mklopt import kernels
from mklopt.kernels import table as tables
from mklopt.kernels.functions import Function, Gaussian, Kernel, Power
from mklopt.kernels.table import (
    DISTANCES,
    FUNCTION,
    GAUSSIAN,
    GIVEN,
    OWN,
    POWER,
    PRODUCTS,
    KernelTable,
    Names,
    ends_of,
    rule_of,
    starts_of,
)

SIZES: Any = {"a": 3, "b": 2}
TWICE = Function(lambda A, B: 2 * A @ B.T, "twice")
KERNELS = [
    Kernel("one", Gaussian(2.0), (2, 0), "a"),
    Kernel("two", Power(3, 0.5), slice(None), "b"),
    Kernel("three", Gaussian(None), (2, 0), "a"),
    Kernel("four", TWICE, (1,), "b"),
    Kernel("five", Power(1, 1.0), (), "a"),
    Kernel("six", Gaussian(1.0), (0, 2), "a"),
]


def test_a_table_is_its_kernels():
    table = KernelTable.of(KERNELS, SIZES)
    assert len(table) == 6 and list(table) == KERNELS
    assert table[-1] == KERNELS[-1] and list(table[1:3]) == KERNELS[1:3]
    with pytest.raises(IndexError):
        table[6]


def test_the_arrays_are_those_that_loops_read():
    table = KernelTable.of(KERNELS, SIZES)
    assert table.kinds.tolist() == [
        GAUSSIAN,
        POWER,
        GAUSSIAN,
        FUNCTION,
        POWER,
        GAUSSIAN,
    ]
    assert table.degrees.tolist() == [0, 3, 0, 0, 1, 0]
    np.testing.assert_array_equal(table.numbers, [2.0, 0.5, np.nan, 0.0, 1.0, 1.0])
    assert table.base.tolist() == [0, 1, 0, 2, 3, 4]  # the order of columns counts
    assert table.bases.tolist() == [DISTANCES, PRODUCTS, OWN, PRODUCTS, DISTANCES]
    assert table.views.tolist() == [0, 1, 1, 0, 0]
    assert table.columns.tolist() == [2, 0, 3, 4, 4, 0, 2]
    assert table.ends.tolist() == [0, 2, 4, 5, 5, 7]
    assert table.functions == {2: TWICE}
    assert table.apart.tolist() == [True, False, False, False, True]
    assert table.direct.tolist() == [True, True, True, False, True, True]
    types: list[Any] = [
        table.kinds,
        table.degrees,
        table.base,
        table.columns,
        table.ends,
    ]
    assert [x.dtype.name for x in types] == ["int8", "int32", "int32", "int32", "int64"]


def test_some_of_the_kernels_have_their_bases_only():
    table = KernelTable.of(KERNELS, SIZES)
    part = table.take(np.array([5, 3, 3]))
    assert list(part) == [KERNELS[5], KERNELS[3], KERNELS[3]]
    assert len(part.bases) == 2 and len(part.columns) == 3
    again = part.take(np.array([1, 0]))
    assert again.names == ["four", "six"] and list(again) == [KERNELS[3], KERNELS[5]]


def test_tables_one_after_the_other_share_bases():
    one, two = KernelTable.of(KERNELS[:4], SIZES), KernelTable.of(KERNELS[2:], SIZES)
    both = KernelTable.joined([one, two])
    assert list(both) == KERNELS[:4] + KERNELS[2:]
    assert len(both.bases) == 5 and both.base[2] == both.base[4]
    both = KernelTable.joined([both[::2], both[1::2]])
    assert (
        list(both)
        == (KERNELS[:4] + KERNELS[2:])[::2] + (KERNELS[:4] + KERNELS[2:])[1::2]
    )


def test_bases_with_the_same_hash_stay_apart(monkeypatch):
    monkeypatch.setattr(tables, "hash", lambda key: 7, raising=False)
    table = KernelTable.of(KERNELS, SIZES)
    assert list(table) == KERNELS  # only the time and memory of sharing are lost


def test_columns_are_moved_in_parts(monkeypatch):
    monkeypatch.setattr(tables, "MOVED", 3)
    many = [Kernel(f"{m}", Gaussian(1.0 + m), (m % 3, m % 2)) for m in range(40)]
    table = KernelTable.of(many, {"": 4})
    assert list(table) == many and len(table.bases) == 6


def test_a_table_moves_to_a_view_of_other_data():
    inner = KernelTable.of([Kernel("k", Gaussian(1.0), (1, 0))], {"": 2})
    moved = inner.on("shape", "b", np.array([0, 1]), SIZES)
    assert list(moved) == [Kernel("shape: k", Gaussian(1.0), (1, 0), "b")]
    assert moved.columns.tolist() == [4, 3]


def test_rules_and_places_in_numbers():
    assert rule_of(Gaussian(None, given=True)).base == GIVEN
    assert (
        np.isnan(rule_of(Gaussian(None)).number) and rule_of(Gaussian(3.0)).number == 3
    )
    assert rule_of(Power(2, 0.5)) == (POWER, 2, 0.5, PRODUCTS)
    assert starts_of(SIZES) == {"a": 0, "b": 3}
    assert ends_of([2, 0, 1]).tolist() == [0, 2, 2, 3] and ends_of([]).tolist() == [0]


# ---- names ---------------------------------------------------------------------------


def test_names_are_a_sequence_like_a_list():
    names = Names([(3, "abc".__getitem__), (0, str), (2, "k{}".format)])
    listed = ["a", "b", "c", "k0", "k1"]
    assert names == listed and listed == names and names == tuple(listed)
    assert names != listed[:4] and names != [*listed[:4], "x"] and names != 3
    assert names[3] == names[-2] == "k0" and names[1:4] == ["b", "c", "k0"]
    assert repr(names) == repr(listed) and "k1" in names and names.index("c") == 2
    assert names.take(np.array([4, 0])).take(np.array([1])) == ["a"]
    assert names.under("view")[4] == "view: k1"
    with pytest.raises(IndexError, match="no name 5 of 5"):
        names[5]
    assert Names([]) == [] and len(Names([])) == 0


def test_many_names_are_not_printed():
    names = Names([(10**12, "k{}".format)])
    assert repr(names) == "['k0', 'k1', …, 'k999999999999']"


def test_it_survives_pickling():
    family = kernels.rakotomamonjy() + kernels.subset_gaussians(5) + kernels.constant()
    table = kernels.views(family, {"x": range(4)}).expand({"": 5})
    again = pickle.loads(pickle.dumps(table))
    assert again.names == table.names and list(again) == list(table)
