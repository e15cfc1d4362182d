"""Kernels as a table: a few arrays for any number of them, no object for each.

A kernel m is a rule of the numbers t of its base; kernels on the same columns share it:

    kinds     int8 (M,)       GAUSSIAN exp(t · (−1/scale)), POWER (t + offset)^degree,
                              or FUNCTION, a user's own
    degrees   int32 (M,)      of a power; 0 for others
    numbers   float64 (M,)    scale of a Gaussian (NaN: the mean of t), offset of a
                              power
    base      int32 (M,)      which base; bases are in the order of their first kernel
    bases     int8 (B,)       t: PRODUCTS ⟨x, z⟩, DISTANCES ‖x − z‖², GIVEN distances,
                              or OWN, a user's function
    views     int32 (B,)      the view that a base is on, counted from 0
    columns   int32, ends int64 (B + 1,)      columns[ends[b]:ends[b + 1]], as rows of
                              all views, one above the other: points X.T (d_total, n)

What depends on data, −1/scale and the divisors of normalizations, is in fitted.py. A
Kernel and a name are made when they are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple, Self, overload

import numpy as np

from ..util.arrays import Array
from .functions import Function, Gaussian, Kernel, Power

Sizes = Mapping[str | int, int]  # the number of features of each view
Maker = Callable[[int], str]  # the name of kernel i of a part

GAUSSIAN, POWER, FUNCTION = 0, 1, 2
PRODUCTS, DISTANCES, GIVEN, OWN = 0, 1, 2, 3
SHOWN = 200  # names that are printed
MOVED = 2**16  # bases whose columns are moved at a time


class Names(Sequence[str]):
    """The names of kernels, each made when it is asked for; equal to lists of text."""

    def __init__(self, parts: Iterable[tuple[int, Maker]], index: Array | None = None):
        self._parts = [(count, make) for count, make in parts if count]
        self._ends = list(accumulate(count for count, _ in self._parts))
        self._index = index

    @classmethod
    def of(cls, given: Iterable[str]) -> Self:
        """Names that are there already."""
        names = tuple(given)
        return cls([(len(names), names.__getitem__)])

    def __len__(self) -> int:
        if self._index is not None:
            return len(self._index)
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._name(m) for m in range(len(self))[at]]
        try:
            return self._name(range(len(self))[at])
        except IndexError:
            raise IndexError(f"there is no name {at} of {len(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return map(self._name, range(len(self)))

    def _name(self, m: int) -> str:
        m = m if self._index is None else int(self._index[m])
        part = bisect_right(self._ends, m)
        count, make = self._parts[part]
        return make(m - (self._ends[part] - count))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Names | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if len(self) <= SHOWN:
            return repr(list(self))
        return f"[{self[0]!r}, {self[1]!r}, …, {self[-1]!r}]"

    def take(self, index: Array) -> Names:
        """The names with these numbers."""
        before = self._index
        return Names(self._parts, index if before is None else before[index])

    def under(self, prefix: str) -> Names:
        """The same names, with a prefix and a colon."""
        return Names([(len(self), partial(_joined, prefix, self))])

    @classmethod
    def joined(cls, several: Sequence[Names]) -> Names:
        """Names one after the other."""
        if len(several) == 1:
            return several[0]
        return cls([(len(names), names.__getitem__) for names in several])


def _joined(prefix: str, names: Names, i: int) -> str:
    return f"{prefix}: {names[i]}"


class KernelTable(Sequence[Kernel]):
    """Kernels on data with given numbers of features, in arrays.

    Parameters
    ----------
    kinds, degrees, numbers, base : arrays (M,)
        As in the docstring of this module.
    bases, views : arrays (B,)
    columns : array of int32
    ends : array (B + 1,)
    sizes : dict of int
        The number of features of each view.
    names : Names
    functions : dict
        The users' functions, by base.
    """

    def __init__(
        self,
        kinds: Any,
        degrees: Any,
        numbers: Any,
        base: Any,
        bases: Any,
        views: Any,
        columns: Any,
        ends: Any,
        sizes: Sizes,
        names: Names,
        functions: Mapping[int, Function] | None = None,
    ) -> None:
        self.kinds = np.asarray(kinds, np.int8)
        self.degrees = np.asarray(degrees, np.int32)
        self.numbers = np.asarray(numbers, float)
        self.base = np.asarray(base, np.int32)
        self.bases, self.views = np.asarray(bases, np.int8), np.asarray(views, np.int32)
        self.columns, self.ends = np.asarray(columns, np.int32), np.asarray(ends, int)
        self.sizes, self.names = dict(sizes), names
        self.functions = dict(functions or {})

    @classmethod
    def of(cls, kernels: Iterable[Kernel], sizes: Sizes) -> KernelTable:
        """The table of a list of kernels."""
        kernels = list(kernels)
        starts = starts_of(sizes)
        columns = [_numbers(k, sizes) + starts[k.view] for k in kernels]
        ends = [0, *accumulate(map(len, columns))]
        rules = [rule_of(k.rule) for k in kernels]
        places = list(sizes)
        table = cls(
            *([rule[i] for rule in rules] for i in range(3)),
            np.arange(len(kernels)),
            [rule.base for rule in rules],
            [places.index(k.view) for k in kernels],
            np.concatenate([[], *columns]).astype(np.int32),
            ends,
            sizes,
            Names.of(k.name for k in kernels),
            {m: k.rule for m, k in enumerate(kernels) if isinstance(k.rule, Function)},
        )
        return table._shared()

    @classmethod
    def joined(cls, tables: Sequence[KernelTable]) -> KernelTable:
        """The kernels of several tables for the same data, one after the other."""
        if len(tables) == 1:
            return tables[0]._shared()
        before = np.cumsum([0, *(len(table.bases) for table in tables)]).tolist()
        widths = np.concatenate([np.diff(table.ends) for table in tables])
        return cls(
            *(
                np.concatenate([getattr(table, name) for table in tables])
                for name in ("kinds", "degrees", "numbers")
            ),
            np.concatenate([table.base + b for table, b in zip(tables, before)]),
            *(
                np.concatenate([getattr(table, name) for table in tables])
                for name in ("bases", "views", "columns")
            ),
            np.concatenate([[0], np.cumsum(widths)]),
            tables[0].sizes,
            Names.joined([table.names for table in tables]),
            {
                own + b: rule
                for table, b in zip(tables, before)
                for own, rule in table.functions.items()
            },
        )._shared()

    # ---- kernels, one at a time ----------------------------------------------------

    def __len__(self) -> int:
        return len(self.kinds)

    def __repr__(self) -> str:
        return f"KernelTable(M={len(self)}, bases={len(self.bases)})"

    @overload
    def __getitem__(self, at: int) -> Kernel: ...
    @overload
    def __getitem__(self, at: slice) -> KernelTable: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.take(np.arange(len(self))[at])
        m = range(len(self))[at]
        view, columns = self.place(int(self.base[m]))
        return Kernel(self.names[m], self.rule(m), columns, view)

    def rule(self, m: int) -> Gaussian | Power | Function:
        """The rule of one kernel."""
        base, number = int(self.base[m]), float(self.numbers[m])
        if self.kinds[m] == FUNCTION:
            return self.functions[base]
        if self.kinds[m] == POWER:
            return Power(int(self.degrees[m]), number)
        scale = None if np.isnan(number) else number
        return Gaussian(scale, given=bool(self.bases[base] == GIVEN))

    def place(self, base: int) -> tuple[str | int, tuple[int, ...] | slice]:
        """The view of a base, and its columns there; a slice if it has all in order."""
        view = list(self.sizes)[self.views[base]]
        start, d = starts_of(self.sizes)[view], self.sizes[view]
        columns = self.columns[self.ends[base] : self.ends[base + 1]] - start
        if len(columns) == d and np.array_equal(columns, np.arange(d)):
            return view, slice(None)
        return view, tuple(columns.tolist())

    @cached_property
    def direct(self) -> Array:
        """(M,): made from points by a rule of ours, and positive semi-definite."""
        gaussian = (self.kinds == GAUSSIAN) & (self.bases[self.base] == DISTANCES)
        return gaussian | ((self.kinds == POWER) & (self.numbers >= 0))

    @property
    def apart(self) -> Array:
        """(B,): whether t are distances, not products."""
        return np.asarray(self.bases == DISTANCES)

    # ---- tables from tables ----------------------------------------------------------

    def take(self, index: Array) -> KernelTable:
        """The kernels with these numbers, and the bases that they use."""
        used, base = np.unique(self.base[index], return_inverse=True)
        columns = [self.columns[self.ends[b] : self.ends[b + 1]] for b in used]
        place = {int(b): i for i, b in enumerate(used)} if self.functions else {}
        return KernelTable(
            self.kinds[index],
            self.degrees[index],
            self.numbers[index],
            base,
            self.bases[used],
            self.views[used],
            np.concatenate([np.empty(0, np.int32), *columns]),
            np.cumsum([0, *map(len, columns)]),
            self.sizes,
            self.names.take(index),
            {place[b]: rule for b, rule in self.functions.items() if b in place},
        )

    def on(
        self, name: str, view: str | int, group: Array, sizes: Sizes
    ) -> KernelTable:
        """The same kernels of one view on a group of columns of a view of other data.

        Parameters
        ----------
        name : str
            Of the group; names of kernels begin with it.
        view : str or int
        group : array of int (d,)
            The column of the view for each column of this table.
        sizes : dict of int
            The number of features of each view of the other data.

        Returns
        -------
        KernelTable
        """
        places = np.asarray(group + starts_of(sizes)[view], np.int32)
        return KernelTable(
            self.kinds,
            self.degrees,
            self.numbers,
            self.base,
            self.bases,
            np.full(len(self.bases), list(sizes).index(view)),
            places[self.columns],
            self.ends,
            sizes,
            self.names.under(name),
            self.functions,
        )

    def _shared(self) -> KernelTable:
        """The same kernels, with every base only once; this table is used up."""
        first = self._first_of_equals()
        keep = first == np.arange(len(first))
        if np.all(keep):
            return self
        place = np.cumsum(keep) - 1
        return KernelTable(
            self.kinds,
            self.degrees,
            self.numbers,
            place[first[self.base]],
            self.bases[keep],
            self.views[keep],
            _moved(self.columns, self.ends, keep),
            np.concatenate([[0], np.cumsum(np.diff(self.ends)[keep])]),
            self.sizes,
            self.names,
            {int(place[b]): own for b, own in self.functions.items() if keep[b]},
        )

    def _first_of_equals(self) -> Array:
        """(B,): for each base the first one that is equal to it.

        Equal bases are found by hashes. Two that differ and have the same hash stay
        apart, so that hashes decide nothing but time and memory.
        """
        columns, own = memoryview(self.columns).cast("B"), self.functions
        places = zip(self.bases.tolist(), self.views.tolist(), 4 * self.ends[:-1], 4 * self.ends[1:])
        hashes = (
            hash((kind, view, columns[a:b].tobytes(), m in own and own[m].shared))
            for m, (kind, view, a, b) in enumerate(places)
        )
        found = np.fromiter(hashes, np.int64, len(self.bases))
        _, index, inverse = np.unique(found, return_index=True, return_inverse=True)
        first = index[inverse]
        for b in np.flatnonzero(first != np.arange(len(first))):
            if not self._equal(int(first[b]), int(b)):
                first[b] = b
        return first

    def _equal(self, a: int, b: int) -> bool:
        own = [self.functions[c].shared for c in (a, b) if c in self.functions]
        return (
            self.bases[a] == self.bases[b]
            and self.views[a] == self.views[b]
            and own[:1] == own[1:]
            and np.array_equal(
                self.columns[self.ends[a] : self.ends[a + 1]],
                self.columns[self.ends[b] : self.ends[b + 1]],
            )
        )


# ---- parts of tables -------------------------------------------------------------------


class Rule(NamedTuple):
    """A rule in numbers."""

    kind: int
    degree: int
    number: float
    base: int


def rule_of(rule: Gaussian | Power | Function) -> Rule:
    """A rule in numbers; a user's function has none."""
    if isinstance(rule, Gaussian):
        scale = np.nan if rule.scale is None else rule.scale
        return Rule(GAUSSIAN, 0, scale, GIVEN if rule.given else DISTANCES)
    if isinstance(rule, Power):
        return Rule(POWER, rule.degree, rule.offset, PRODUCTS)
    return Rule(FUNCTION, 0, 0.0, OWN)


def starts_of(sizes: Sizes) -> dict[str | int, int]:
    """The first row of each view, if all of them are one above the other."""
    return dict(zip(sizes, accumulate(sizes.values(), initial=0)))


def _numbers(kernel: Kernel, sizes: Sizes) -> Array:
    """The columns of a kernel in its view, as numbers."""
    return np.arange(sizes[kernel.view], dtype=np.int32)[kernel.columns,]


def _moved(columns: Array, ends: Array, keep: Array) -> Array:
    """The columns of the bases to keep, moved to the front of the same memory."""
    end, widths = 0, np.diff(ends)
    for b in range(0, len(keep), MOVED):
        some = slice(b, b + MOVED)
        part = columns[ends[b] : ends[min(b + MOVED, len(keep))]]
        part = part[np.repeat(keep[some], widths[some])]
        columns[end : end + len(part)] = part
        end += len(part)
    return columns[:end]
