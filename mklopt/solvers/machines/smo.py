"""The move of SMO, compiled: which coordinates move, how far, and the gap.

    min over α   ½ αᵀKα + Σ_i ½ r_i α_i² − ℓ_i α_i + κ_i |α_i|
    subject to   low_i ≤ α_i ≤ high_i,  and Σ α_i = 0 when there is a bias

Step. Second-order choice of the working set (Fan, Chen and Lin 2005): the coordinate i
with the steepest slope, and the partner j with which it gains most; without a bias i
moves alone (j = i). A step ends at a bound or at a kink.

    pick      i, its direction, and the slope there
    mate      j, and slope and curvature of the move
    longest   how far both can go
    shift     α after the move

`smo` makes such moves with one kernel matrix. Solvers that keep K_mα of all kernels
(interleaved, smo_mkl) use the same four parts with rows of the whole stack.
"""

import numpy as np

from ...util.compiled import compiled, inlined


@compiled()
def inner_gap(linear, kink, ridge, low, high, bias, alpha, g):
    """The sum of Fenchel–Young terms, and the bias: the middle of its interval."""
    n = len(alpha)
    b = 0.0
    if bias:
        top, bottom = -np.inf, np.inf
        for k in range(n):
            a, slope, bend = alpha[k], g[k], kink[k]
            if a < high[k]:
                top = max(top, -(slope + (bend if a >= 0 else -bend)))
            if a > low[k]:
                bottom = min(bottom, -(slope + (bend if a > 0 else -bend)))
        if np.isfinite(top) and np.isfinite(bottom):
            b = 0.5 * (top + bottom)
        elif np.isfinite(top):
            b = top
        elif np.isfinite(bottom):
            b = bottom
    total = 0.0
    for k in range(n):
        a, bend, r = alpha[k], kink[k], ridge[k]
        pull = -(g[k] - r * a) - b  # ℓ − f − b, the residual of the sample
        here = 0.5 * r * a * a + bend * abs(a) - pull * a
        over = pull - bend if pull > bend else min(pull + bend, 0.0)
        if over != 0:
            t = high[k] if over > 0 else low[k]
            if r != 0:
                t = min(t, over / r) if over > 0 else max(t, over / r)
            here += t * over - 0.5 * r * t * t
        total += max(here, 0.0)
    return total, b


@inlined()
def _steepest(g, kink, alpha, high):
    """The coordinate with the steepest slope upwards: a loop that stays this short."""
    best, i = -np.inf, -1
    for k in range(len(alpha)):
        a, bend = alpha[k], kink[k]
        if a < high[k]:
            slope = -(g[k] + (bend if a >= 0 else -bend))
            if slope > best:
                best, i = slope, k
    return i, 1.0, best


@inlined()
def _best_alone(g, kink, ridge, alpha, low, high, diag):
    """The coordinate that gains most by itself."""
    gain, i, way, fall = 0.0, -1, 1.0, 0.0
    for k in range(len(alpha)):
        a, rise, u = alpha[k], g[k], kink[k]
        up, down = -(rise + (u if a >= 0 else -u)), rise + (u if a > 0 else -u)
        slope, room, side = 0.0, 0.0, 1.0
        if up > 0 and a < high[k]:
            slope, room = up, high[k] - a
        elif down > 0 and a > low[k]:
            slope, room, side = down, a - low[k], -1.0
        if slope > 0:
            bend = max(diag[k] + ridge[k], 1e-300)
            t = min(slope / bend, room)
            won = t * (slope - 0.5 * t * bend)
            if won > gain:
                gain, i, way, fall = won, k, side, slope
    return i, way, fall


@compiled()
def pick(g, kink, ridge, alpha, low, high, diag, bias):
    """i, its direction (1 or −1) and its slope; i = −1: no coordinate can move.

    With a bias: the coordinate with the steepest slope upwards; its partner will move
    down. Without: the coordinate that gains most by itself.
    """
    if bias:
        return _steepest(g, kink, alpha, high)
    return _best_alone(g, kink, ridge, alpha, low, high, diag)


@compiled()
def mate(i, slope, g, kink, ridge, alpha, low, row, diag, bias):
    """The j that gains most by moving down while i moves up; slope and curvature.

    row is row i of the kernel, diag its diagonal. j = −1: there is no gain; j = i: i
    moves alone.
    """
    own = diag[i] + ridge[i]
    if not bias:
        return i, slope, max(own, 1e-300)
    gain, j, fall, curve = 0.0, -1, 0.0, 1.0
    for k in range(len(alpha)):
        a, u = alpha[k], kink[k]
        if a > low[k] and k != i:
            both = slope + g[k] + (u if a > 0 else -u)
            if both > 0:
                bend = own + diag[k] + ridge[k] - 2 * row[k]
                bend = max(bend, 1e-12 * (own + 1e-300))
                if both * both > gain * bend:
                    gain, j, fall, curve = both * both / bend, k, both, bend
    return j, fall, curve


@compiled()
def longest(i, j, way, kink, low, high, alpha):
    """How far i can move in its direction (1 or −1), and j in the other one.

    A coordinate that rises ends at its upper bound, or at 0 if there is a kink.
    """
    step, alone = np.inf, j == i
    if way > 0 or not alone:
        k = i if way > 0 else j
        a = alpha[k]
        step = -a if kink[k] > 0 and a < 0 else high[k] - a
    if way < 0 or not alone:
        k = j if way > 0 else i
        a = alpha[k]
        step = min(step, a if kink[k] > 0 and a > 0 else a - low[k])
    return step


@inlined()
def _moved(x, step, low, high):
    """x + step, landing exactly on bounds and on 0."""
    y = min(max(x + step, low), high)
    if abs(y) < 1e-15 * abs(x):
        return 0.0
    return y


@compiled()
def shift(i, j, step, low, high, alpha):
    """Move α_i by the step and α_j by minus the step, in place."""
    alpha[i] = _moved(alpha[i], step, low[i], high[i])
    if j != i:
        alpha[j] = _moved(alpha[j], -step, low[j], high[j])


@compiled()
def smo(K, linear, kink, ridge, low, high, bias, alpha, g, tol, most):
    """Make at most so many moves, in place; their number, the gap and the bias.

    g is the gradient of the smooth part. When α_i moves up, the objective changes at
    the rate g_i ± κ_i; the sign depends on the side of 0.
    """
    n = len(alpha)
    diag = np.empty(n)
    for k in range(n):
        diag[k] = K[k, k]
    moves, stuck = 0, False
    while True:
        if moves % n == 0 or moves >= most or stuck:
            gap, b = inner_gap(linear, kink, ridge, low, high, bias, alpha, g)
            if gap <= tol or moves >= most or stuck:
                return moves, gap, b
        i, way, slope = pick(g, kink, ridge, alpha, low, high, diag, bias)
        j = -1
        if i >= 0:
            j, fall, bend = mate(i, slope, g, kink, ridge, alpha, low, K[i], diag, bias)
        if j < 0:
            stuck = True
            continue
        step = way * min(fall / bend, longest(i, j, way, kink, low, high, alpha))
        shift(i, j, step, low, high, alpha)
        first, second = K[i], K[j]
        if j == i:
            for k in range(n):
                g[k] += step * first[k]
        else:
            for k in range(n):
                g[k] += step * (first[k] - second[k])
            g[j] -= step * ridge[j]
        g[i] += step * ridge[i]
        moves += 1


# ---- rows of all kernels at once -------------------------------------------------


@compiled()
def combined_row(K, read, theta, i, row):
    """Row i of Σθ_mK_m, written into `row`; read[0] counts rows of the stack."""
    read[0] += 1
    row[:] = 0.0
    for m in range(len(theta)):
        t, own = theta[m], K[m, i]
        if t > 0:
            for k in range(len(row)):
                row[k] += t * own[k]


@compiled()
def add_rows(K, read, theta, i, j, step, images, g):
    """Update all K_mα, and Σθ_mK_mα in g, after α_i rose and α_j fell by a step."""
    read[0] += 1 if j == i else 2
    for m in range(len(theta)):
        t, first, second, image = theta[m], K[m, i], K[m, j], images[m]
        if j == i:  # outside of the loops: inside, it would slow both down
            for k in range(len(g)):
                change = step * first[k]
                image[k] += change
                g[k] += t * change
        else:
            for k in range(len(g)):
                change = step * (first[k] - second[k])
                image[k] += change
                g[k] += t * change
