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
added in the same order. Divisors of Gaussians are left out of sums; the caller divides. Sums do not depend on the number of threads: every loop runs over units
(blocks × parts of the tiles) that do not depend on it.
"""

from typing import NamedTuple

import numpy as np

from ..util.compiled import compiled, inlined
from ..util.exponential import exp
from ..util.lanes import WIDTH, add_rows, dot_rows, rows_of_zeros

Array = np.ndarray
BLOCK = 1024  # kernels
ANY_ORDER = {"reassoc", "nsz"}
# What a segment is: where its sum begins, its columns, where the sum is saved (0: it is
# complete, and belongs to the kernels from FIRST to LAST).
SOURCE, BEGIN, END, TARGET, FIRST, LAST = range(6)


class Plan(NamedTuple):
    """The kernels of a sweep, sorted; bases are numbered as in the table of kernels."""

    X: Array  # (d, n) points
    columns: Array  # int32, the features of all bases
    ends: Array  # (B + 1,) where those of each base begin and end
    apart: Array  # (B,) distances or products
    base: Array  # (K,) of each kernel
    common: Array  # (K,) features shared with the base before; −1: the same base
    degrees: Array  # (K,) 0: a Gaussian
    numbers: Array  # (K,) −1/scale, or the offset
    divisors: Array  # (K, steps) of normalizations
    inside: Array  # (K,) whether entries are divided, and not the sums of them
    rooted: Array  # (K,) the row of `roots` of a kernel; −1: divisors are all
    roots: Array  # (R, n) k is divided by r_i r_j …
    step: int  # … in place of this divisor, the one of spherical; −1: there is none


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


class Memory(NamedTuple):
    """What one thread works on."""

    distances: Array  # T of distances
    products: Array  # T of products
    sums: Array  # sums[f]: the sum that was saved after f features; sums[0] is 0
    t: Array
    v: Array  # values of a kernel
    I: Array  # the pairs of the tile
    J: Array
    segments: Array  # of the block
    saved: Array  # for `_segments`
    used: Array  # features of distances, features of products


@inlined()
def _memory(plan):
    d, most = len(plan.X), 0
    for b in range(len(plan.apart)):
        most = max(most, plan.ends[b + 1] - plan.ends[b])
    return Memory(
        rows_of_zeros(d),
        rows_of_zeros(d),
        rows_of_zeros(most + 1),
        rows_of_zeros(1),
        rows_of_zeros(1),
        np.empty(WIDTH, np.int64),
        np.empty(WIDTH, np.int64),
        np.empty((6, 2 * BLOCK), np.int64),
        np.empty(most + 1, np.int64),
        np.empty((2, d), np.bool_),
    )


@inlined()
def _features(plan, first, last, used):
    """used[0]: features of distances of these kernels; used[1]: of products."""
    used[:] = False
    for k in range(first, last):
        b = plan.base[k]
        for c in plan.columns[plan.ends[b] : plan.ends[b + 1]]:
            used[0 if plan.apart[b] else 1, c] = True


@inlined()
def _segments(plan, first, last, memory):
    """The segments of some kernels, at the end of the array; returns the first one.

    From the last base to the first: `saved` are the numbers of features after which the
    sum of this base is needed by later ones. This base saves those that are beyond what
    it has in common with the base before, which saved the others.
    """
    _features(plan, first, last, memory.used)
    out, saved, top = memory.segments, memory.saved, 0
    at, following, group_end = out.shape[1], -1, last
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
        high, target, place = end - begin, 0, top - 1
        while True:
            low = saved[place] if place >= 0 and saved[place] > common else common
            at -= 1
            out[SOURCE, at], out[TARGET, at] = low, target
            out[BEGIN, at], out[END, at] = begin + low, begin + high
            out[FIRST, at], out[LAST, at] = k, group_end
            if low == common:
                break
            high, target, place = low, low, place - 1
        following, group_end = common, k
    return at


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
def _terms(X, memory):
    """The rows of T, for the features in use."""
    I, J, used = memory.I, memory.J, memory.used
    left = J[0]
    in_line = I[0] == I[WIDTH - 1] and J[WIDTH - 1] - left == WIDTH - 1
    for f in range(len(X)):
        if not (used[0, f] or used[1, f]):
            continue
        x, d, p = X[f], memory.distances[f], memory.products[f]
        if in_line:  # most tiles of large kernels: this loop is vectorized
            a, z = x[I[0]], x[left : left + WIDTH]
            for e in range(WIDTH):
                d[e] = (a - z[e]) * (a - z[e])
            if used[1, f]:
                for e in range(WIDTH):
                    p[e] = a * z[e]
        else:
            for e in range(WIDTH):
                a, b = x[I[e]], x[J[e]]
                d[e] = (a - b) * (a - b)
                p[e] = a * b


@inlined()
def _advance(plan, memory, s):
    """Work on a segment; whether t is the complete sum of a base now."""
    segments, sums, t, columns = memory.segments, memory.sums, memory.t, plan.columns
    source, target = segments[SOURCE, s], segments[TARGET, s]
    begin, end = segments[BEGIN, s], segments[END, s]
    if plan.apart[plan.base[segments[FIRST, s]]]:
        if target:
            add_rows(sums, source, memory.distances, columns, begin, end, sums, target)
        else:
            add_rows(sums, source, memory.distances, columns, begin, end, t, 0)
    elif target:
        add_rows(sums, source, memory.products, columns, begin, end, sums, target)
    else:
        add_rows(sums, source, memory.products, columns, begin, end, t, 0)
    return target == 0


@inlined()
def _kernels(memory, s):
    """The kernels of a segment that is complete."""
    return range(memory.segments[FIRST, s], memory.segments[LAST, s])


@inlined()
def _evaluate(plan, k, t, v, I, J):
    """The rule of kernel k, divided if its entries are divided."""
    degree, number = plan.degrees[k], plan.numbers[k]
    if degree == 0:
        for e in range(WIDTH):
            v[0, e] = exp(t[0, e] * number)
    else:
        for e in range(WIDTH):
            v[0, e] = t[0, e] + number
        for _ in range(degree - 1):
            for e in range(WIDTH):
                v[0, e] *= t[0, e] + number
    if plan.inside[k]:
        _normalize(plan, k, v, I, J)


@inlined()
def _normalize(plan, k, v, I, J):
    """All steps, in order; after `plan.step`, on the sphere, diagonals are 1."""
    for s in range(plan.divisors.shape[1]):
        if s == plan.step and plan.rooted[k] >= 0:
            roots = plan.roots[plan.rooted[k]]
            for e in range(WIDTH):
                v[0, e] /= roots[I[e]] * roots[J[e]]
        else:
            for e in range(WIDTH):
                v[0, e] /= plan.divisors[k, s]
        if s == plan.step:
            for e in range(WIDTH):
                v[0, e] = 1.0 if I[e] == J[e] else v[0, e]


@inlined()
def _factors(A, S, I, J, count, w, twice):
    """Factors of the entries in ⟨K, A Aᵀ⟩, or ⟨K, S⟩ if A has no columns.

    twice[e]: how often the entry is in K, which is 0 behind the last pair.
    """
    for e in range(WIDTH):
        i, j = I[e], J[e]
        twice[0, e] = 0.0 if e >= count else 1.0 if i == j else 2.0
        total = 0.0 if A.shape[1] else S[i, j]
        for c in range(A.shape[1]):
            total += A[i, c] * A[j, c]
        w[0, e] = twice[0, e] * total


@inlined()
def _square(v, twice, product):
    """Σ twice·v²."""
    for e in range(WIDTH):
        product[0, e] = v[0, e] * twice[0, e]
    return dot_rows(v, 0, product, 0)


@compiled(error_model="numpy")
def dots(plan, area, bounds, A, S, measured, out, squares, first, last):
    """out[part, k] = ⟨K_k, A Aᵀ⟩ or ⟨K_k, S⟩ over the tiles of a part; also Σ K_ij².

    Unit u is block u // parts and part u % parts; part p has the tiles from bounds[p]
    to bounds[p + 1]. Squares are summed only if they are `measured`.
    """
    memory, parts = _memory(plan), len(bounds) - 1
    t, v, I, J = memory.t, memory.v, memory.I, memory.J
    w, twice, spare = rows_of_zeros(1), rows_of_zeros(1), rows_of_zeros(1)
    for unit in range(first, last):
        part, low = unit % parts, unit // parts * BLOCK
        high = min(low + BLOCK, len(plan.base))
        begin = _segments(plan, low, high, memory)
        out[part, low:high] = 0.0
        squares[part, low:high] = 0.0
        for tile in range(bounds[part], bounds[part + 1]):
            count = _pairs(area, plan.X.shape[1], tile, I, J)
            _terms(plan.X, memory)
            _factors(A, S, I, J, count, w, twice)
            for s in range(begin, 2 * BLOCK):
                if _advance(plan, memory, s):
                    for k in _kernels(memory, s):
                        _evaluate(plan, k, t, v, I, J)
                        out[part, k] += dot_rows(v, 0, w, 0)
                        if measured:
                            squares[part, k] += _square(v, twice, spare)


@compiled(error_model="numpy")
def combine(plan, area, bounds, theta, blocks, out, first, last):
    """out += Σ θ_k K_k over some blocks, for the tiles of the parts first to last."""
    memory, total = _memory(plan), rows_of_zeros(1)
    t, v, I, J = memory.t, memory.v, memory.I, memory.J
    for part in range(first, last):
        for block in range(blocks[0], blocks[1]):
            low, high = block * BLOCK, min((block + 1) * BLOCK, len(plan.base))
            begin = _segments(plan, low, high, memory)
            for tile in range(bounds[part], bounds[part + 1]):
                count = _pairs(area, plan.X.shape[1], tile, I, J)
                _terms(plan.X, memory)
                total[:] = 0.0
                for s in range(begin, 2 * BLOCK):
                    if _advance(plan, memory, s):
                        for k in _kernels(memory, s):
                            _evaluate(plan, k, t, v, I, J)
                            weight = theta[k]
                            for e in range(WIDTH):
                                total[0, e] += weight * v[0, e]
                for e in range(count):
                    out[tile * WIDTH + e] += total[0, e]


@compiled(error_model="numpy")
def fill(plan, area, bounds, order, out, first, last):
    """out[order[k]] = the entries of kernel k, in the order of the area; units: dots"""
    memory, parts = _memory(plan), len(bounds) - 1
    t, v, I, J = memory.t, memory.v, memory.I, memory.J
    for unit in range(first, last):
        part, low = unit % parts, unit // parts * BLOCK
        high = min(low + BLOCK, len(plan.base))
        begin = _segments(plan, low, high, memory)
        for tile in range(bounds[part], bounds[part + 1]):
            count = _pairs(area, plan.X.shape[1], tile, I, J)
            _terms(plan.X, memory)
            for s in range(begin, 2 * BLOCK):
                if _advance(plan, memory, s):
                    for k in _kernels(memory, s):
                        _evaluate(plan, k, t, v, I, J)
                        if not plan.inside[k]:
                            _normalize(plan, k, v, I, J)
                        place = out[order[k], tile * WIDTH : tile * WIDTH + count]
                        for e in range(count):
                            place[e] = v[0, e]


@inlined()
def _runs(I, count, ends):
    """Where the rows of a tile end; returns how many rows there are."""
    rows = 0
    for e in range(1, count + 1):
        if e == count or I[e] != I[e - 1]:
            ends[rows] = e
            rows += 1
    return rows


@inlined(fastmath=ANY_ORDER)
def _row_product(v, begin, end, a, y, i, j):
    """Entries v[begin:end] of row i, from column j on: y_i and y_j get their products.

    The diagonal counts once.
    """
    if i == j:
        y[i] += v[begin] * a[i]
        begin, j = begin + 1, j + 1
    p, x, o = v[begin:end], a[j : j + end - begin], y[j : j + end - begin]
    total, b = 0.0, a[i]
    for e in range(len(p)):
        total += p[e] * x[e]
        o[e] += p[e] * b
    y[i] += total


@compiled(error_model="numpy")
def matvec(plan, area, bounds, A, order, out, first, last):
    """out[part, order[k]] += K_k A_k, (columns, n) each; A has one block, or K of them.

    Units: as in `dots`.
    """
    memory, parts, ends = _memory(plan), len(bounds) - 1, np.empty(WIDTH, np.int64)
    t, v, I, J = memory.t, memory.v, memory.I, memory.J
    for unit in range(first, last):
        part, low = unit % parts, unit // parts * BLOCK
        high = min(low + BLOCK, len(plan.base))
        begin = _segments(plan, low, high, memory)
        for tile in range(bounds[part], bounds[part + 1]):
            count = _pairs(area, plan.X.shape[1], tile, I, J)
            runs = _runs(I, count, ends)
            _terms(plan.X, memory)
            for s in range(begin, 2 * BLOCK):
                if _advance(plan, memory, s):
                    for k in _kernels(memory, s):
                        _evaluate(plan, k, t, v, I, J)
                        m = order[k]
                        for c in range(A.shape[1]):
                            a, y = A[m if len(A) > 1 else 0, c], out[part, m, c]
                            left = 0
                            for r in range(runs):
                                _row_product(
                                    v[0], left, ends[r], a, y, I[left], J[left]
                                )
                                left = ends[r]


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
                o[i] = 1.0 if s == plan.step else o[i] / plan.divisors[k, s]
