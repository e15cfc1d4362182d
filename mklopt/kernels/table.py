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


class Rules(NamedTuple):
    """The rules of M kernels: one array (M,) each."""

    kinds: Any
    degrees: Any
    numbers: Any
    base: Any


class Bases(NamedTuple):
    """What B bases are made of."""

    kinds: Any
    views: Any
    columns: Any
    ends: Any


class KernelTable(Sequence[Kernel]):
    """Kernels on data with given numbers of features, in arrays.

    Parameters
    ----------
    rules : Rules
        kinds, degrees, numbers and base, as in the docstring of this module.
    bases : Bases
        bases, views, columns and ends.
    sizes : dict of int
        The number of features of each view.
    names : Names
    functions : dict
        The users' functions, by base.
    """

    def __init__(
        self,
        rules: Rules,
        bases: Bases,
        sizes: Sizes,
        names: Names,
        functions: Mapping[int, Function] | None = None,
    ) -> None:
        self.kinds = np.asarray(rules.kinds, np.int8)
        self.degrees = np.asarray(rules.degrees, np.int32)
        self.numbers = np.asarray(rules.numbers, float)
        self.base = np.asarray(rules.base, np.int32)
        self.bases = np.asarray(bases.kinds, np.int8)
        self.views = np.asarray(bases.views, np.int32)
        self.columns = np.asarray(bases.columns, np.int32)
        self.ends = np.asarray(bases.ends, np.int64)
        self.sizes, self.names = dict(sizes), names
        self.functions = dict(functions or {})

    @classmethod
    def of(cls, kernels: Iterable[Kernel], sizes: Sizes) -> KernelTable:
        """The table of a list of kernels."""
        kernels, places = list(kernels), list(sizes)
        starts = starts_of(sizes)
        columns = [_numbers(k, sizes) + np.int32(starts[k.view]) for k in kernels]
        found = [rule_of(k.rule) for k in kernels]
        kinds, degrees, numbers, bases = np.array(found).reshape(-1, 4).T
        views = [places.index(k.view) for k in kernels]
        return cls(
            Rules(kinds, degrees, numbers, np.arange(len(kernels))),
            Bases(bases, views, *_ended(columns)),
            sizes,
            Names.of(k.name for k in kernels),
            {m: k.rule for m, k in enumerate(kernels) if isinstance(k.rule, Function)},
        )._shared()

    @classmethod
    def joined(cls, tables: Sequence[KernelTable]) -> KernelTable:
        """The kernels of several tables for the same data, one after the other."""
        if len(tables) == 1:
            return tables[0]._shared()

        def all_of(name: str) -> Array:
            return np.concatenate([getattr(table, name) for table in tables])

        before = list(accumulate((len(table.bases) for table in tables), initial=0))
        base = np.concatenate([table.base + b for table, b in zip(tables, before)])
        widths = np.concatenate([np.diff(table.ends) for table in tables])
        return cls(
            Rules(all_of("kinds"), all_of("degrees"), all_of("numbers"), base),
            Bases(all_of("bases"), all_of("views"), all_of("columns"), ends_of(widths)),
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
            Rules(self.kinds[index], self.degrees[index], self.numbers[index], base),
            Bases(self.bases[used], self.views[used], *_ended(columns)),
            self.sizes,
            self.names.take(index),
            {place[b]: rule for b, rule in self.functions.items() if b in place},
        )

    def on(self, name: str, view: str | int, group: Array, sizes: Sizes) -> KernelTable:
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
        views = np.full(len(self.bases), list(sizes).index(view))
        return KernelTable(
            Rules(self.kinds, self.degrees, self.numbers, self.base),
            Bases(self.bases, views, places[self.columns], self.ends),
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
        columns = _moved(self.columns, self.ends, keep)
        ends, base = ends_of(np.diff(self.ends)[keep]), place[first[self.base]]
        return KernelTable(
            Rules(self.kinds, self.degrees, self.numbers, base),
            Bases(self.bases[keep], self.views[keep], columns, ends),
            self.sizes,
            self.names,
            {int(place[b]): own for b, own in self.functions.items() if keep[b]},
        )

    def _first_of_equals(self) -> Array:
        """(B,): for each base the first one that is equal to it.

        Equal bases are found by hashes. Two that differ and have the same hash stay
        apart, so that hashes decide nothing but time and memory.
        """
        numbers = range(len(self.bases))
        hashes = np.fromiter(map(hash, map(self._key, numbers)), np.int64, len(numbers))
        _, index, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        first = index[inverse]
        for b in np.flatnonzero(first != np.arange(len(first))).tolist():
            if self._key(int(first[b])) != self._key(b):
                first[b] = b
        return first

    def _key(self, b: int) -> tuple:
        """Equal for equal bases."""
        own = self.functions[b].shared if b in self.functions else None
        part = self.columns[self.ends[b] : self.ends[b + 1]].tobytes()
        return int(self.bases[b]), int(self.views[b]), own, part


# ---- parts of tables -----------------------------------------------------------------


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


def ends_of(widths: Any) -> Array:
    """Where parts of these lengths begin, one after the other; and their end."""
    ends = np.zeros(len(widths) + 1, np.int64)
    np.cumsum(widths, out=ends[1:])
    return ends


def _ended(parts: list[Array]) -> tuple[Array, Array]:
    """Columns one after the other, and where each part begins and ends."""
    joined = np.concatenate([np.empty(0, np.int32), *parts])
    return joined, ends_of([len(part) for part in parts])


def _moved(columns: Array, ends: Array, keep: Array) -> Array:
    """The columns of the bases to keep, moved to the front of the same memory."""
    end, widths = 0, np.diff(ends)
    for b in range(0, len(keep), MOVED):
        some = slice(b, b + MOVED)
        part = columns[ends[b] : ends[min(b + MOVED, len(keep))]]
        part = part[np.repeat(keep[some], widths[some])]
        columns[end : end + len(part)] = part
        end += len(part)
    return columns[:end] if 2 * end > len(columns) else columns[:end].copy()
