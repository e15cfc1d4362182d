"""The compiled loops over factors: rows of one (n, R) array, in fixed blocks of rows.

    times     F w          one sum per row
    against   FᵀA          one sum per block of BLOCK rows and column
    ascend    steps of dual coordinate ascent, one row after the other

`runs` are ranges of columns (first, last): those of the kernels concerned. Numbers in
single precision are converted as they are read; all sums are in float64.

Rounding. A row of `times` is summed in any order: its error is at most γ_{R+1} |F||w|.
A block of `against` is summed in any order, and the blocks one after the other: the
error is at most γ_k |F|ᵀ|A| with k = BLOCK + the number of blocks + 1.
"""

import numpy as np

from ..util.compiled import compiled, inlined

BLOCK = 1024  # rows that share a sum
ANY_ORDER = {"reassoc", "contract", "nsz"}


# Slices begin at 0: the compiler knows that no index counts from the end.


@inlined(fastmath=ANY_ORDER)
def _dot(row, w):
    total = 0.0
    for j in range(len(w)):
        total += row[j] * w[j]
    return total


@inlined(fastmath=ANY_ORDER)
def _size(row, w):
    total = 0.0
    for j in range(len(w)):
        total += abs(row[j] * w[j])
    return total


@inlined(fastmath=ANY_ORDER)
def _four_dots(p, q, r, s, w):
    a = b = c = d = 0.0
    for j in range(len(w)):
        a += p[j] * w[j]
        b += q[j] * w[j]
        c += r[j] * w[j]
        d += s[j] * w[j]
    return a, b, c, d


@compiled()
def times(F, runs, W, out, first, last):
    """out[i, c] = Σ_j F[i, j] W[c, j]."""
    out[first:last] = 0.0
    fours = first + (last - first) // 4 * 4
    for k in range(len(runs)):
        left, right = runs[k, 0], runs[k, 1]
        for c in range(len(W)):
            w = W[c, left:right]
            for i in range(first, fours, 4):
                p, q = F[i, left:right], F[i + 1, left:right]
                r, s = F[i + 2, left:right], F[i + 3, left:right]
                a, b, d, e = _four_dots(p, q, r, s, w)
                out[i, c] += a
                out[i + 1, c] += b
                out[i + 2, c] += d
                out[i + 3, c] += e
            for i in range(fours, last):
                out[i, c] += _dot(F[i, left:right], w)


@compiled()
def times_sizes(F, runs, W, out, first, last):
    """out[i, c] = Σ_j |F[i, j] W[c, j]|."""
    for i in range(first, last):
        for c in range(len(W)):
            total = 0.0
            for r in range(len(runs)):
                left, right = runs[r, 0], runs[r, 1]
                total += _size(F[i, left:right], W[c, left:right])
            out[i, c] = total


@inlined(fastmath=ANY_ORDER)
def _add(o, p, a):
    for j in range(len(o)):
        o[j] += a * p[j]


@inlined(fastmath=ANY_ORDER)
def _add_four(o, p, q, r, s, a, b, c, d):
    for j in range(len(o)):
        o[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]


@compiled()
def against(F, runs, A, out, first, last):
    """out[block, c, j] = Σ_i F[i, j] A[i, c] over the rows i of each block."""
    for start in range(first, last, BLOCK):
        end = min(start + BLOCK, last)
        fours = start + (end - start) // 4 * 4
        out[start // BLOCK] = 0.0
        for k in range(len(runs)):
            left, right = runs[k, 0], runs[k, 1]
            for c in range(A.shape[1]):
                o = out[start // BLOCK, c, left:right]
                for i in range(start, fours, 4):
                    a, b, d, e = A[i, c], A[i + 1, c], A[i + 2, c], A[i + 3, c]
                    if a != 0.0 or b != 0.0 or d != 0.0 or e != 0.0:
                        p, q = F[i, left:right], F[i + 1, left:right]
                        r, s = F[i + 2, left:right], F[i + 3, left:right]
                        _add_four(o, p, q, r, s, a, b, d, e)
                for i in range(fours, end):
                    _add(o, F[i, left:right], A[i, c])


@inlined(fastmath=ANY_ORDER)
def _add_sizes(o, p, a):
    for j in range(len(o)):
        o[j] += abs(a * p[j])


@compiled()
def against_sizes(F, runs, A, out, first, last):
    """out[block, c, j] = Σ_i |F[i, j] A[i, c]| over the rows i of each block."""
    for start in range(first, last, BLOCK):
        for c in range(A.shape[1]):
            out[start // BLOCK, c] = 0.0
            for r in range(len(runs)):
                left, right = runs[r, 0], runs[r, 1]
                o = out[start // BLOCK, c, left:right]
                for i in range(start, min(start + BLOCK, last)):
                    if A[i, c] != 0.0:
                        _add_sizes(o, F[i, left:right], A[i, c])


@compiled()
def gather(F, runs, rows, out, first, last):
    """out[i] = the columns of the runs in row rows[i] of F, for first ≤ i < last."""
    for i in range(first, last):
        place = 0
        for r in range(len(runs)):
            part = F[rows[i], runs[r, 0] : runs[r, 1]]
            o = out[i, place : place + len(part)]
            for j in range(len(part)):
                o[j] = part[j]
            place += len(part)


@compiled()
def gather_scaled(F, runs, rows, scale, out):
    """out[i] = scale[i] times row rows[i] of F, the columns of the runs, and a 1."""
    for i in range(len(rows)):
        place, s = 0, scale[i]
        for r in range(len(runs)):
            part = F[rows[i], runs[r, 0] : runs[r, 1]]
            o = out[i, place : place + len(part)]
            for j in range(len(part)):
                o[j] = s * part[j]
            place += len(part)
        out[i, place] = s


@inlined(fastmath=ANY_ORDER)
def _square(row, scale):
    total = 0.0
    for j in range(len(row)):
        total += scale[j] * row[j] * row[j]
    return total


@inlined(fastmath=ANY_ORDER)
def _add_scaled(o, row, scale, a):
    for j in range(len(o)):
        o[j] += a * (scale[j] * row[j])


@inlined()
def _best(linear, kink, ridge, low, high, square, g, a):
    """The best α_i between its bounds if all others stay; g: the prediction now."""
    t, curve = linear - g + square * a, square + ridge
    t = t - kink if t > kink else (t + kink if t < -kink else 0.0)
    if t == 0.0:
        return min(max(0.0, low), high)
    if abs(t) >= curve * max(abs(low), abs(high)):
        return high if t > 0.0 else low
    return min(max(t / curve, low), high)


@compiled()
def ascend(F, runs, rows, scale, form, alpha, w, squares):
    """Maximize over α_i for each of the rows in turn; w = scale ∘ Fᵀα follows.

    form: ℓ, κ, r, low and high of each row, (5, n); squares: Σ_j scale_j F_ij², or -1
    where it is not known yet. Returns by how much the dual value has risen, and the
    number of α_i that are at a bound now.
    """
    gain, bounded = 0.0, 0
    for i in rows:
        g, square = 0.0, squares[i]
        for k in range(len(runs)):
            left, right = runs[k, 0], runs[k, 1]
            g += _dot(F[i, left:right], w[left:right])
        if square < 0.0:
            square = 0.0
            for k in range(len(runs)):
                left, right = runs[k, 0], runs[k, 1]
                square += _square(F[i, left:right], scale[left:right])
            squares[i] = square
        linear, kink, ridge = form[0, i], form[1, i], form[2, i]
        low, high, a = form[3, i], form[4, i], alpha[i]
        best = _best(linear, kink, ridge, low, high, square, g, a)
        bounded += best in (low, high)
        move = best - a
        if move != 0.0:
            alpha[i] = best
            slope = linear - g - 0.5 * ridge * (best + a) - 0.5 * square * move
            gain += move * slope - kink * (abs(best) - abs(a))
            for k in range(len(runs)):
                left, right = runs[k, 0], runs[k, 1]
                _add_scaled(w[left:right], F[i, left:right], scale[left:right], move)
    return gain, bounded


@compiled()
def unusual(F, first, last):
    """0 if all numbers of these rows are finite, NaN otherwise."""
    total = 0.0
    for i in range(first, last):
        for j in range(F.shape[1]):
            total += 0.0 * np.float64(F[i, j])
    return total
