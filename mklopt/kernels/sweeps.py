"""Compiled loops over kernels that are computed when needed and never stored.

A *tile* is WIDTH pairs (i, j) that follow each other in the upper triangle, row by row.
A *block* is BLOCK kernels. For each block and each tile, while all is in the cache:

    T[f]   (x_if − x_jf)² or x_if x_jf of the pairs, for all features f in use
    t      Σ T[f] over the features of a base, in their order
    k(t)   exp(t · (−1/scale)) or (t + offset)^degree

Kernels are sorted by their features. Neighbours begin with the same features, and the
sums over these are computed once: in a row of *segments*, each of which adds some rows
of T to a sum that was saved before. Sorted, 10⁶ random subsets of 60 features need 16
additions each instead of 30.

Guarantee. An entry is the number that building.py stores, to the last bit: terms are
added in the same order. Divisors of Gaussians are left out of sums; the caller divides.
Sums do not depend on the number of threads: every loop runs over units (blocks × parts
of the tiles) that do not depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..util.compiled import compiled, inlined
from ..util.lanes import (
    WIDTH,
    add_multiple,
    add_product,
    add_rows,
    dot_rows,
    exp_row,
    rows_of_zeros,
    squares_of_row,
)

if TYPE_CHECKING:
    from .fitted import FittedKernels

Array = np.ndarray
BLOCK = 1024  # kernels
# A segment: the sum that it begins with, its columns, the first row of T that they
# count from, and where the sum is saved. The last place is for complete sums, of the
# kernels from FIRST to LAST.
SOURCE, BEGIN, END, START, TARGET, FIRST, LAST = range(7)


class Direct(NamedTuple):
    """Kernels that are functions of distances or products of points, in arrays.

    The kernels of a sweep are sorted, and have `common` and `inside`, too.
    """

    X: Array  # (d, n) points
    columns: Array  # int32, the features of all bases
    ends: Array  # (B + 1,) where those of each base begin and end
    apart: Array  # (B,) distances or products
    base: Array  # (M,) of each kernel
    degrees: Array  # (M,) of a power; 0: a Gaussian
    numbers: Array  # (M,) −1/scale, or the offset
    divisors: Array  # (M, steps) of normalizations
    place: Array  # (M, steps) a row of `roots` in place of a divisor; −1: none
    roots: Array  # (R, n) k is divided by r_i r_j: of spheres whose squares differ
    spheres: Array  # (steps,) after which diagonals are 1
    common: Any = None  # (M,) features shared with the base before; −1: the same base
    inside: Any = None  # (M,) whether entries are divided, and not the sums of them

    @classmethod
    def of(cls, fitted: FittedKernels) -> Direct:
        """The kernels of a family; what is not known yet is learned."""
        fitted.learn()
        table, (divisors, place, roots) = fitted.kernels, fitted.divisors()
        names = fitted.normalize or ("",)
        spheres = np.array([step == "spherical" for step in names])
        roots = roots if roots.size else np.empty((0, fitted.n))
        return cls(
            *(fitted.points, table.columns, table.ends, table.apart, table.base),
            *fitted.rules(),
            np.ascontiguousarray(divisors.T),
            np.ascontiguousarray(place.T),
            np.ascontiguousarray(roots),
            spheres,
        )

    def sorted_part(self, some: Array) -> Direct:
        """These kernels, which are sorted, for a sweep."""
        base, common = self.base[some].astype(np.int64), np.empty(len(some), np.int64)
        common_features(self.columns, self.ends, self.apart, base, common)
        degrees, divisors = self.degrees[some].astype(np.int64), self.divisors[some]
        # Sums of powers could overflow, and diagonals on the sphere are exactly 1.
        inside = (degrees > 0) | np.any(divisors[:, self.spheres] != 1, axis=1)
        return self._replace(
            base=base,
            degrees=degrees,
            numbers=self.numbers[some],
            divisors=divisors,
            place=self.place[some],
            common=common,
            inside=inside,
        )


class Area(NamedTuple):
    """The pairs of a sweep: rows[r] with the columns from lefts[r] to n − 1."""

    rows: Array
    lefts: Array
    starts: Array  # how many pairs are in the rows before; the last one: in all rows


@compiled()
def common_features(columns, ends, apart, base, common):
    """What `common` of a plan is, for the bases of sorted kernels."""
    common[0] = 0
    for k in range(1, len(base)):
        a, b = base[k - 1], base[k]
        shared = 0
        if apart[a] == apart[b]:
            most = min(ends[a + 1] - ends[a], ends[b + 1] - ends[b])
            while shared < most:
                if columns[ends[a] + shared] != columns[ends[b] + shared]:
                    break
                shared += 1
        common[k] = -1 if a == b else shared


@compiled()
def sort_keys(columns, ends, apart, keys):
    """A number per base: bits of its features below 63, and its kind in front."""
    for b in range(len(apart)):
        key = np.uint64(0) if apart[b] else np.uint64(1) << np.uint64(63)
        for c in columns[ends[b] : ends[b + 1]]:
            if c < 63:
                key |= np.uint64(1) << np.uint64(62 - c)
        keys[b] = key


@inlined()
def _most(plan):
    """The largest number of features of a base."""
    most = 0
    for b in range(len(plan.apart)):
        most = max(most, plan.ends[b + 1] - plan.ends[b])
    return most


@inlined()
def _row():
    return rows_of_zeros(1)[0]


@inlined()
def _unit(plan, unit, parts, block):
    """Part, first kernel and last one of a unit: see `dots`."""
    low = unit // parts * block
    return unit % parts, low, min(low + block, len(plan.base))


@inlined()
def _memory(plan):
    """What every sweep needs: n, the place of complete sums, terms, sums, a tile."""
    complete = _most(plan) + 1
    T, sums = rows_of_zeros(2 * len(plan.X)), rows_of_zeros(complete + 1)
    I, J = np.empty(WIDTH, np.int64), np.empty(WIDTH, np.int64)
    return plan.X.shape[1], complete, T, sums, _row(), I, J


@inlined()
def _features(plan, first, last):
    """The rows of T that these kernels need: d for distances, d for products."""
    used = np.zeros(2 * len(plan.X), np.bool_)
    for k in range(first, last):
        b = plan.base[k]
        start = 0 if plan.apart[b] else len(plan.X)
        for c in plan.columns[plan.ends[b] : plan.ends[b + 1]]:
            used[start + c] = True
    return np.flatnonzero(used)


@inlined()
def _segments(plan, first, last, complete):
    """The segments of some kernels; a sum at the place `complete` is complete.

    From the last base to the first: `saved` are the numbers of features after which the
    sum of this base is needed by later ones. This base saves those that are beyond what
    it has in common with the base before, which saved the others.
    """
    out, at = np.empty((2 * (last - first), 7), np.int64), 2 * (last - first)
    saved, top, following, group_end = np.empty(complete, np.int64), 0, -1, last
    for k in range(last - 1, first - 1, -1):
        common = 0 if k == first else plan.common[k]
        if common < 0:
            continue
        begin, end = plan.ends[plan.base[k]], plan.ends[plan.base[k] + 1]
        while top > 0 and saved[top - 1] >= following:
            top -= 1
        if following > 0:
            saved[top] = following
            top += 1
        high, target, place = end - begin, complete, top - 1
        while True:
            low = saved[place] if place >= 0 and saved[place] > common else common
            at -= 1
            out[at, SOURCE], out[at, TARGET] = low, target
            out[at, BEGIN], out[at, END] = begin + low, begin + high
            out[at, START] = 0 if plan.apart[plan.base[k]] else len(plan.X)
            out[at, FIRST], out[at, LAST] = k, group_end
            if low == common:
                break
            high, target, place = low, low, place - 1
        following, group_end = common, k
    return out[at:]


@inlined()
def _pairs(area, n, tile, I, J):
    """The pairs of a tile; returns their number, and the last pair fills the rest."""
    start, size = tile * WIDTH, area.starts[-1]
    r = np.searchsorted(area.starts, start, side="right") - 1
    i, j = area.rows[r], area.lefts[r] + start - area.starts[r]
    for e in range(WIDTH):
        I[e], J[e] = i, j
        j += 1
        if j == n:
            if r + 1 < len(area.rows):
                r += 1
                i, j = area.rows[r], area.lefts[r]
            else:
                j = n - 1
    return min(WIDTH, size - start)


@inlined()
def _terms(X, I, J, used, T):
    """The rows of T that are used."""
    i, left = I[0], J[0]
    in_line = I[WIDTH - 1] == i and J[WIDTH - 1] - left == WIDTH - 1
    for r in used:
        apart = r < len(X)
        x, o = X[r if apart else r - len(X)], T[r]
        if in_line and apart:  # most tiles of large kernels: vectorized
            z = x[left : left + WIDTH]
            for e in range(WIDTH):
                o[e] = (x[i] - z[e]) * (x[i] - z[e])
        elif in_line:
            z = x[left : left + WIDTH]
            for e in range(WIDTH):
                o[e] = x[i] * z[e]
        else:
            for e in range(WIDTH):
                a, b = x[I[e]], x[J[e]]
                o[e] = (a - b) * (a - b) if apart else a * b


@inlined()
def _extended(plan, segment, T, sums, complete):
    """Add the terms of a segment to the sums; whether kernels end with it."""
    add_rows(
        sums, segment[SOURCE], T, segment[START], plan.columns,
        segment[BEGIN], segment[END], segment[TARGET],
    )  # fmt: skip
    return segment[TARGET] == complete


@inlined()
def _evaluate(sums, complete, degree, number, v):
    """The rule of a kernel: v = k(t) with t = sums[complete]."""
    if degree == 0:
        exp_row(sums, complete, number, v)
        return
    for e in range(WIDTH):
        v[e] = sums[complete, e] + number
    for _ in range(degree - 1):
        for e in range(WIDTH):
            v[e] *= sums[complete, e] + number


@inlined()
def _normalize(plan, k, v, I, J):
    """All steps, in order; on the sphere diagonals are 1."""
    for s in range(plan.divisors.shape[1]):
        if plan.place[k, s] >= 0:
            roots = plan.roots[plan.place[k, s]]
            for e in range(WIDTH):
                v[e] /= roots[I[e]] * roots[J[e]]
        else:
            for e in range(WIDTH):
                v[e] /= plan.divisors[k, s]
        if plan.spheres[s]:
            for e in range(WIDTH):
                v[e] = 1.0 if I[e] == J[e] else v[e]


@inlined()
def _factors(A, S, I, J, count, w, twice):
    """Factors of the entries in ⟨K, A Aᵀ⟩, or ⟨K, S⟩ if A has no columns.

    twice[e]: how often the entry is in K, which is 0 behind the last pair.
    """
    for e in range(WIDTH):
        i, j = I[e], J[e]
        twice[e] = 0.0 if e >= count else 1.0 if i == j else 2.0
        total = 0.0 if A.shape[1] else S[i, j]
        for c in range(A.shape[1]):
            total += A[i, c] * A[j, c]
        w[e] = twice[e] * total


@compiled(error_model="numpy")
def dots(plan, area, bounds, A, S, measured, out, squares, first, last):
    """out[part, k] = ⟨K_k, A Aᵀ⟩ or ⟨K_k, S⟩ over the tiles of a part; also Σ K_ij².

    Unit u is block u // parts and part u % parts; part p has the tiles from bounds[p]
    to bounds[p + 1]. Squares are summed only if they are `measured`.
    """
    n, complete, T, sums, v, I, J = _memory(plan)
    degrees, numbers, inside = plan.degrees, plan.numbers, plan.inside
    w, twice = _row(), _row()
    parts = len(bounds) - 1
    for unit in range(first, last):
        part, low, high = _unit(plan, unit, parts, BLOCK)
        segments = _segments(plan, low, high, complete)
        used = _features(plan, low, high)
        out[part, low:high] = 0.0
        squares[part, low:high] = 0.0
        for tile in range(bounds[part], bounds[part + 1]):
            count = _pairs(area, n, tile, I, J)
            _terms(plan.X, I, J, used, T)
            _factors(A, S, I, J, count, w, twice)
            for s in range(len(segments)):
                if not _extended(plan, segments[s], T, sums, complete):
                    continue
                for k in range(segments[s, FIRST], segments[s, LAST]):
                    _evaluate(sums, complete, degrees[k], numbers[k], v)
                    if inside[k]:
                        _normalize(plan, k, v, I, J)
                    out[part, k] += dot_rows(v, 0, w, 0)
                    if measured:
                        squares[part, k] += squares_of_row(v, twice)


@compiled(error_model="numpy")
def combine(plan, area, bounds, theta, blocks, out, first, last):
    """out += Σ θ_k K_k over some blocks, for the tiles of the parts first to last."""
    n, complete, T, sums, v, I, J = _memory(plan)
    degrees, numbers, inside = plan.degrees, plan.numbers, plan.inside
    total = _row()
    for part in range(first, last):
        for block in range(blocks[0], blocks[1]):
            low, high = block * BLOCK, min((block + 1) * BLOCK, len(plan.base))
            segments = _segments(plan, low, high, complete)
            used = _features(plan, low, high)
            for tile in range(bounds[part], bounds[part + 1]):
                count = _pairs(area, n, tile, I, J)
                _terms(plan.X, I, J, used, T)
                total[:] = 0.0
                for s in range(len(segments)):
                    if not _extended(plan, segments[s], T, sums, complete):
                        continue
                    for k in range(segments[s, FIRST], segments[s, LAST]):
                        _evaluate(sums, complete, degrees[k], numbers[k], v)
                        if inside[k]:
                            _normalize(plan, k, v, I, J)
                        add_multiple(total, theta[k], v)
                for e in range(count):
                    out[tile * WIDTH + e] += total[e]


@compiled(error_model="numpy")
def fill(plan, area, bounds, order, out, first, last):
    """out[order[k]] = the entries of kernel k, in the order of the area; units: dots"""
    n, complete, T, sums, v, I, J = _memory(plan)
    degrees, numbers = plan.degrees, plan.numbers
    parts, steps = len(bounds) - 1, plan.divisors.shape[1]
    for unit in range(first, last):
        part, low, high = _unit(plan, unit, parts, BLOCK)
        segments = _segments(plan, low, high, complete)
        used = _features(plan, low, high)
        for tile in range(bounds[part], bounds[part + 1]):
            count = _pairs(area, n, tile, I, J)
            _terms(plan.X, I, J, used, T)
            for s in range(len(segments)):
                if not _extended(plan, segments[s], T, sums, complete):
                    continue
                for k in range(segments[s, FIRST], segments[s, LAST]):
                    _evaluate(sums, complete, degrees[k], numbers[k], v)
                    if steps > 0:
                        _normalize(plan, k, v, I, J)
                    place = out[order[k], tile * WIDTH : tile * WIDTH + count]
                    for e in range(count):
                        place[e] = v[e]


@inlined()
def _runs(I, count, ends):
    """Where the rows of a tile end; returns how many rows there are."""
    rows = 0
    for e in range(1, count + 1):
        if e == count or I[e] != I[e - 1]:
            ends[rows] = e
            rows += 1
    return rows


@inlined()
def _sides(A, m, I, J, runs, ends, right, down):
    """Factors of the entries of a tile in K a, for each run of pairs in one row.

    With row i and the columns j of run r, and zeros elsewhere: right[r] = a_j, for the
    product of row i; down[r] = a_i, for the products of rows j, the diagonal left out.
    For column c of A they are in the rows c·WIDTH + r.
    """
    for c in range(A.shape[1]):
        for r in range(runs):
            row = c * WIDTH + r
            for e in range(WIDTH):
                here = (r == 0 or e >= ends[r - 1]) and e < ends[r]
                right[row, e] = A[m, c, J[e]] if here else 0.0
                down[row, e] = A[m, c, I[e]] if here and I[e] != J[e] else 0.0


@compiled(error_model="numpy")
def matvec(plan, area, bounds, A, order, block, out, first, last):
    """out[part, order[k]] = K_k A_k, (columns, n) each; A has one block, or K of them.

    A row of y has room for WIDTH numbers on both sides: runs are added with zeros
    around them. Units: as in `dots`, with blocks of `block` kernels, so that y stays in
    the cache.
    """
    n, complete, T, sums, v, I, J = _memory(plan)
    degrees, numbers, inside = plan.degrees, plan.numbers, plan.inside
    ends, count_A = np.empty(WIDTH, np.int64), A.shape[1]
    right, down = rows_of_zeros(count_A * WIDTH), rows_of_zeros(count_A * WIDTH)
    parts, width = len(bounds) - 1, n + 2 * WIDTH
    y = np.empty((block, count_A, width))
    for unit in range(first, last):
        part, low, high = _unit(plan, unit, parts, block)
        segments = _segments(plan, low, high, complete)
        used = _features(plan, low, high)
        y[:] = 0.0
        for tile in range(bounds[part], bounds[part + 1]):
            count = _pairs(area, n, tile, I, J)
            _terms(plan.X, I, J, used, T)
            runs = _runs(I, count, ends)
            if len(A) == 1:
                _sides(A, 0, I, J, runs, ends, right, down)
            for s in range(len(segments)):
                if not _extended(plan, segments[s], T, sums, complete):
                    continue
                for k in range(segments[s, FIRST], segments[s, LAST]):
                    _evaluate(sums, complete, degrees[k], numbers[k], v)
                    if inside[k]:
                        _normalize(plan, k, v, I, J)
                    if len(A) > 1:
                        _sides(A, order[k], I, J, runs, ends, right, down)
                    for c in range(count_A):
                        start = ((k - low) * count_A + c) * width + WIDTH
                        left = 0
                        for r in range(runs):
                            row = c * WIDTH + r
                            total = dot_rows(v, 0, right, row)
                            y[k - low, c, WIDTH + I[left]] += total
                            add_product(y, start + J[left] - left, down, row, v)
                            left = ends[r]
        for k in range(low, high):
            out[part, order[k]] = y[k - low, :, WIDTH : WIDTH + n]


@compiled(error_model="numpy")
def diagonals(plan, order, out, first, last):
    """out[order[k]] = the diagonal of kernel k."""
    for k in range(first, last):
        b, degree, number = plan.base[k], plan.degrees[k], plan.numbers[k]
        columns, o = plan.columns[plan.ends[b] : plan.ends[b + 1]], out[order[k]]
        o[:] = 1.0  # of a Gaussian
        if degree > 0:
            o[:] = 0.0
            for c in columns:
                for i in range(len(o)):
                    o[i] += plan.X[c, i] * plan.X[c, i]
            for i in range(len(o)):
                factor = o[i] + number
                o[i] = factor
                for _ in range(degree - 1):
                    o[i] *= factor
        for s in range(plan.divisors.shape[1]):
            for i in range(len(o)):
                o[i] = 1.0 if plan.spheres[s] else o[i] / plan.divisors[k, s]
