"""Kernels with many samples, by rows: no n × n array, and only rows of α_i ≠ 0.

The store behind a LazyStack whose sums Σθ_mK_m would need more than MATRIX_BYTES as a
matrix. Kernels on the same features are functions of the same numbers t, distances or
products (a base). Whole rows of t are kept in float64, at most `cache` bytes of them;
every kernel and every θ uses the same ones.

    product(θ, A)       Σθ_mK_mA           rows of A that are 0 are never computed
    between(θ, I, J)    Σθ_mK_m between some samples
    quad, matvec        each kernel by itself, from the same rows

Σθ_mk_m(t) over the kernels of one base is one function of t. Where there are MANY such
kernels it is tabulated, by polynomials of degree 5 on equal cells, to TABLE_ERROR: an
entry of the sum costs one look-up instead of an exponential per kernel.

Guarantee. Entries in quad and matvec, on which certificates rest, are those that
fitted.grams() stores, to the last bit. Tabulated sums differ by TABLE_ERROR of their
largest number, which is measured between the nodes. No result depends on the number of
threads, or on which rows were kept. Memory: `cache`, a few CHUNK_BYTES, and points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..util.compiled import compiled, inlined
from ..util.exponential import exp
from ..util.sweeps import report
from ..util.threads import blas_alone, spread
from .building import BY_SQUARES
from .pairwise import pairs
from .streams import Streams, checked
from .sweeps import Direct

if TYPE_CHECKING:
    from .fitted import FittedKernels

Array = np.ndarray
MATRIX_BYTES = 2_000_000_000  # of an n × n matrix; above it kernels are read by rows
CHUNK_BYTES = 2**26  # of rows that are computed together
FEW_BASES = 8  # whose rows are kept; of more bases, rows of the last sum are kept
STRIP = 256  # samples at a time in a loop
MANY = 4  # kernels of one base, for a table
NODES, FIRST_CELLS, MOST_CELLS = 6, 64, 2**16  # of a table
TABLE_ERROR = 1e-13  # relative to the largest number in the table


def by_rows(fitted: FittedKernels, limit: int) -> ByRows | None:
    """The store of these kernels, with `limit` bytes of rows; None: not here."""
    direct = set(fitted.normalize) <= BY_SQUARES and bool(np.all(fitted.kernels.direct))
    if not direct or 8 * fitted.n**2 <= MATRIX_BYTES:
        return None
    store = ByRows(Direct.of(fitted), limit, fitted)
    checked(store, fitted)
    return store


class RowTable:
    """Rows of n numbers, at most `limit` bytes; those not used longest make room.

    fetch(which) computes the rows with these numbers, (r, n).
    """

    def __init__(self, n: int, limit: int, fetch: Callable[[Array], Array]):
        self.fetch, self.chunk = fetch, max(CHUNK_BYTES // (8 * n), 8)
        capacity = min(max(limit // (8 * n), self.chunk), n)
        self.rows = np.empty((capacity, n))  # memory that is never written costs none
        self.place, self.owner = np.full(n, -1), np.full(capacity, -1)
        self.used, self.time = np.zeros(capacity, np.int64), 0

    def chunks(self, which: Array) -> Iterator[tuple[Array, Array]]:
        """(numbers, their places in `rows`), a few at a time, in order.

        Sums over rows do not depend on what is kept. Of more rows than there is room
        for the last ones make room for each other, so that the first ones stay.
        """
        room = len(self.rows)
        stay = room if len(which) <= room else room - self.chunk
        for first in range(0, len(which), self.chunk):
            some = which[first : first + self.chunk]
            yield some, self.places(some, first + len(some) <= stay)

    def places(self, which: Array, stay: bool = True) -> Array:
        """Where these rows are; at most `chunk` of them."""
        self.time += 1
        here, missing = self.place[which], which[self.place[which] < 0]
        self.used[here[here >= 0]] = self.time
        if len(missing):
            age = np.where(self.owner < 0, -1, self.used)
            room = np.argsort(age, kind="stable")[: len(missing)]
            before = self.owner[room]
            self.place[before[before >= 0]], self.owner[room] = -1, -1
            self.rows[room] = self.fetch(missing)
            self.owner[room], self.used[room] = missing, self.time if stay else 0
            self.place[missing] = room
        return self.place[which]


class Table(NamedTuple):
    """A function of t on equal cells, each with the coefficients of a polynomial."""

    low: float
    per_cell: float  # 1/width
    coefficients: Array  # (cells, NODES)


class Group(NamedTuple):
    """The kernels of a sum that have one base, with their rules and weights."""

    base: int
    theta: Array
    plan: Direct  # of these kernels alone


class ByRows(Streams):
    """M kernels by rows, with the operations of storage.py and two more."""

    remembered, sized, by_rows = 4, False, True

    def __init__(
        self, kernels: Direct, limit: int, fitted: FittedKernels | None = None
    ):
        super().__init__(kernels, 0, fitted)
        self.limit = limit
        self._forget()

    def _forget(self) -> None:
        self._bases: dict[int, RowTable] = {}
        self._sum: tuple[Array, Array, list, RowTable | None] | None = None

    def __getstate__(self) -> dict:
        return {**super().__getstate__(), "_bases": {}, "_sum": None}

    @property
    def cost(self) -> float:
        """The cost of reading all rows, in passes: 1 is M n² numbers."""
        return 1.0

    # ---- rows of bases ---------------------------------------------------------------

    def _base(self, b: int) -> RowTable:
        """The rows of a base; kept, if there are few bases."""
        if b in self._bases:
            return self._bases[b]
        given = self.kernels
        columns = given.columns[given.ends[b] : given.ends[b + 1]]
        whole = np.array_equal(columns, np.arange(len(given.X)))
        Z = given.X if whole else np.ascontiguousarray(given.X[columns])
        apart, few = bool(given.apart[b]), len(given.apart) <= FEW_BASES

        def fetch(which: Array) -> Array:
            return pairs(np.ascontiguousarray(Z[:, which].T), Z, apart)

        share = self.limit // len(given.apart) if few else 0
        table = RowTable(self.n, share, fetch)
        if few:
            self._bases[b] = table
        return table

    def _groups(self, index: Array, theta: Array) -> list[Group]:
        """Kernels by base, those of weight 0 left out."""
        used = np.flatnonzero(theta)
        plan, order = self._plan(index[used])
        weights = theta[used][order].astype(float)
        starts = np.flatnonzero(np.diff(plan.base, prepend=-1))
        ends = [*starts[1:], len(plan.base)]
        return [
            Group(int(plan.base[a]), weights[a:z], _part(plan, slice(a, z)))
            for a, z in zip(starts, ends)
        ]

    # ---- sums over kernels -----------------------------------------------------------

    def product(self, index: Array, theta: Array, A: Array) -> Array:
        """Σθ_mK_mA for an (n, k) matrix A, from the rows where it is not 0."""
        rows, out = np.flatnonzero(np.any(A, axis=1)), np.zeros((self.n, A.shape[1]))
        every = np.arange(self.n)
        with blas_alone():
            for some, K in self._blocks(index, theta, rows, every):
                out += K.T @ A[some]
        return out

    def between(self, index: Array, theta: Array, rows: Array, columns: Array) -> Array:
        """Σθ_mK_m between some samples and others, (r, c)."""
        out, place = np.empty((len(rows), len(columns))), np.empty(self.n, np.int64)
        place[rows] = np.arange(len(rows))
        for some, K in self._blocks(index, theta, rows, columns):
            out[place[some]] = K
        return out

    def _blocks(
        self, index: Array, theta: Array, rows: Array, columns: Array
    ) -> Iterator[tuple[Array, Array]]:
        """Blocks of the sum: the numbers of their rows, and (r, c) entries."""
        groups, summed = self._last_sum(index, theta)
        if summed is not None:
            for some, places in summed.chunks(rows):
                yield some, summed.rows[places][:, columns]
        elif len(groups) == 1:
            base = self._base(groups[0][0].base)
            for some, places in base.chunks(rows):
                yield some, self._filled(groups, base, some, places, columns)
        else:
            step = max(CHUNK_BYTES // (8 * self.n), 8)
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                yield some, self._summed(groups, some, columns)

    def _last_sum(self, index: Array, theta: Array) -> tuple[list, RowTable | None]:
        """The groups of a sum with their tables; rows of it, if bases are not kept."""
        last = self._sum
        if last and np.array_equal(last[0], index) and np.array_equal(last[1], theta):
            return last[2], last[3]
        groups = [(group, self._table(group)) for group in self._groups(index, theta)]
        summed = None
        if len(self.kernels.apart) > FEW_BASES:
            every = np.arange(self.n)
            fetch = lambda some: self._summed(groups, some, every)  # noqa: E731
            summed = RowTable(self.n, self.limit, fetch)
        self._sum = (index.copy(), theta.copy(), groups, summed)
        return groups, summed

    def _summed(self, groups: list, rows: Array, columns: Array) -> Array:
        """Rows of a sum over several bases."""
        out = np.zeros((len(rows), len(columns)))
        for one in groups:
            base = self._base(one[0].base)
            first = 0
            for some, places in base.chunks(rows):
                block = self._filled([one], base, some, places, columns)
                out[first : first + len(some)] += block
                first += len(some)
        return out

    def _filled(
        self, groups: list, base: RowTable, rows: Array, places: Array, columns: Array
    ) -> Array:
        """Σθ_mk_m of one base for some rows, tabulated or not."""
        (group, table), shape = groups[0], (len(rows), len(columns))
        out, work = np.empty(shape), 8 * len(rows) * len(columns)
        if table is None:
            given = (base.rows, rows, places, columns, group.theta, group.plan, out)
            spread(fill_sums, *given, count=len(rows), work=work * len(group.theta))
        else:
            given = (base.rows, places, columns, *table, out)
            spread(look_up, *given, count=len(rows), work=work)
        return out

    def _table(self, group: Group) -> Table | None:
        """The sum of a base as a table; None if it is not worth while or too large."""
        if len(group.theta) < MANY or np.any(group.plan.place >= 0):
            return None
        low, high = self._range(group.base)
        cells = FIRST_CELLS
        while cells <= MOST_CELLS:
            found = _tabulated(partial_sums(group), low, high, cells)
            if found is not None:
                return found
            cells *= 4
        return None

    def _range(self, b: int) -> tuple[float, float]:
        """Bounds of t: ‖x − z‖² ≤ 4 max‖x − c‖², |⟨x, z⟩| ≤ max‖x‖²."""
        given = self.kernels
        X = given.X[given.columns[given.ends[b] : given.ends[b + 1]]]
        centre = X.mean(axis=1, keepdims=True) if given.apart[b] else 0.0
        most = float(np.max(np.sum((X - centre) ** 2, axis=0)))
        most = max((4 if given.apart[b] else 1) * most * (1 + 1e-6), 1e-300)
        return (0.0, most) if given.apart[b] else (-most, most)

    # ---- every kernel by itself ----------------------------------------------------

    def quad(self, index: Array, A: Array) -> Array:
        """(tr AᵀK_mA)_m for an (n, k) matrix A, from its rows that are not 0."""
        rows = np.flatnonzero(np.any(A, axis=1))
        found = self.products_at(index, A[None], rows)
        return np.einsum("mck,ck->m", found, A[rows])

    def matvec(self, index: Array, A: Array) -> Array:
        """(K_m A_m)_m for A of shape (1 or M, n, k)."""
        return self.products_at(index, A, np.arange(self.n))

    def products_at(self, index: Array, A: Array, columns: Array) -> Array:
        """(K_m A_m)_m at some samples: (M, c, k), for A of shape (1 or M, n, k)."""
        rows = np.flatnonzero(np.any(A, axis=(0, 2)))
        out = np.zeros((len(index), A.shape[2], len(columns)))
        every = self._groups(index, np.ones(len(index)))
        place = np.argsort(self._plan(index)[1])  # of each kernel among sorted ones
        done, work = 0, 8 * len(rows) * len(columns)
        for group in every:
            count = len(group.theta)
            mine = np.flatnonzero((done <= place) & (place < done + count))
            mine = mine[np.argsort(place[mine])]
            sums = np.zeros((count, A.shape[2], len(columns)))
            B, base = A if len(A) == 1 else A[mine], self._base(group.base)
            for some, places in base.chunks(rows):
                sides = np.ascontiguousarray(B[:, some])
                given = (base.rows, some, places, columns, sides, group.plan, sums)
                spread(add_products, *given, count=len(columns), work=work, unit=STRIP)
            out[mine] = sums
            done += count
            report(done, len(index))
        return np.ascontiguousarray(out.transpose(0, 2, 1))


def _part(plan: Direct, some: slice) -> Direct:
    """Some of the kernels of a plan."""
    names = ("base", "common", "degrees", "numbers", "divisors", "inside", "place")
    cut = {name: np.ascontiguousarray(getattr(plan, name)[some]) for name in names}
    return plan._replace(**cut)


def partial_sums(group: Group) -> Callable[[Array], Array]:
    """Σθ_mk_m as a function of numbers t."""
    nothing, first = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def values(t: Array) -> Array:
        out, columns = np.empty((1, len(t))), np.arange(len(t))
        plan = group.plan._replace(spheres=np.zeros_like(group.plan.spheres))
        fill_sums(t[None], nothing, first, columns, group.theta, plan, out, 0, 1)
        return out[0]

    return values


def _tabulated(
    function: Callable[[Array], Array], low: float, high: float, cells: int
) -> Table | None:
    """A function on so many cells; None if its error is too large there."""
    width, nodes = (high - low) / cells, np.arange(NODES) / (NODES - 1) - 0.5
    middle = low + width * (np.arange(cells) + 0.5)
    values = function((middle[:, None] + width * nodes).ravel()).reshape(cells, NODES)
    found = np.linalg.solve(np.vander(nodes, increasing=True), values.T).T
    table = Table(low, 1 / width, np.ascontiguousarray(found))
    between = (middle[:, None] + width * (nodes[:-1] + 0.1)).ravel()
    out = np.empty((1, len(between)))
    one = np.zeros(1, np.int64)
    look_up(between[None], one, np.arange(len(between)), *table, out, 0, 1)
    error = np.max(np.abs(out[0] - function(between)))
    return table if error <= TABLE_ERROR * np.max(np.abs(values)) else None


# ---- compiled loops -----------------------------------------------------------


@inlined()
def _kernel(plan, e, t, i, columns, left, v):
    """Kernel e of a row i for the numbers t of some columns, with the stored bits."""
    degree, number = plan.degrees[e], plan.numbers[e]
    if degree == 0:
        for j in range(len(v)):
            v[j] = exp(t[j] * number)
    else:
        for j in range(len(v)):
            v[j] = t[j] + number
        for _ in range(degree - 1):
            for j in range(len(v)):
                v[j] *= t[j] + number
    for s in range(plan.divisors.shape[1]):
        if plan.place[e, s] >= 0:
            roots = plan.roots[plan.place[e, s]]
            for j in range(len(v)):
                v[j] /= roots[i] * roots[columns[left + j]]
        elif plan.divisors[e, s] != 1.0:
            for j in range(len(v)):
                v[j] /= plan.divisors[e, s]
        if plan.spheres[s]:
            for j in range(len(v)):
                v[j] = 1.0 if columns[left + j] == i else v[j]


@compiled(error_model="numpy")
def fill_sums(T, rows, places, columns, theta, plan, out, first, last):
    """out[r, j] = Σ_e θ_e k_e between rows[r] and columns[j], for some rows r."""
    memory = np.empty((2, STRIP))
    for r in range(first, last):
        given = T[places[r]]
        for left in range(0, len(columns), STRIP):
            size = min(STRIP, len(columns) - left)
            t, v = memory[0, :size], memory[1, :size]
            total = out[r, left : left + size]
            for j in range(size):
                t[j] = given[columns[left + j]]
                total[j] = 0.0
            for e in range(len(theta)):
                _kernel(plan, e, t, rows[r], columns, left, v)
                weight = theta[e]
                for j in range(size):
                    total[j] += weight * v[j]


@compiled(error_model="numpy")
def add_products(T, rows, places, columns, A, plan, out, first, last):
    """out[e, c, j] += Σ_r k_e(rows[r], columns[j]) A[e, r, c], for some columns j."""
    memory, count = np.empty((2, STRIP)), len(plan.degrees)
    for left in range(first, last, STRIP):
        size = min(STRIP, last - left)
        t, v = memory[0, :size], memory[1, :size]
        for r in range(len(rows)):
            given = T[places[r]]
            for j in range(size):
                t[j] = given[columns[left + j]]
            for e in range(count):
                _kernel(plan, e, t, rows[r], columns, left, v)
                for c in range(A.shape[2]):
                    a = A[e if len(A) > 1 else 0, r, c]
                    total = out[e, c, left : left + size]
                    for j in range(size):
                        total[j] += a * v[j]


@compiled(error_model="numpy")
def look_up(T, places, columns, low, per_cell, table, out, first, last):
    """out[r, j] = the tabulated function at T[places[r], columns[j]], for some rows."""
    cells = len(table)
    for r in range(first, last):
        given = T[places[r]]
        for j in range(len(columns)):
            x = (given[columns[j]] - low) * per_cell
            k = min(max(int(x), 0), cells - 1)
            x -= k + 0.5
            p = table[k]
            y = p[3] + x * (p[4] + x * p[5])
            out[r, j] = p[0] + x * (p[1] + x * (p[2] + x * y))
