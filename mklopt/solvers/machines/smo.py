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

from ...util.compiled import compiled


@compiled()
def inner_gap(linear, kink, ridge, low, high, bias, alpha, g):
    """The sum of Fenchel–Young terms, and the bias: the middle of its interval."""
    n = len(alpha)
    b = 0.0
    if bias:
        top, bottom = -np.inf, np.inf
        for k in range(n):
            if alpha[k] < high[k]:
                top = max(top, -(g[k] + (kink[k] if alpha[k] >= 0 else -kink[k])))
            if alpha[k] > low[k]:
                bottom = min(bottom, -(g[k] + (kink[k] if alpha[k] > 0 else -kink[k])))
        if np.isfinite(top) and np.isfinite(bottom):
            b = 0.5 * (top + bottom)
        elif np.isfinite(top):
            b = top
        elif np.isfinite(bottom):
            b = bottom
    total = 0.0
    for k in range(n):
        a = alpha[k]
        pull = -(g[k] - ridge[k] * a) - b  # ℓ − f − b, the residual of the sample
        here = 0.5 * ridge[k] * a * a + kink[k] * abs(a) - pull * a
        if pull > kink[k]:
            t = high[k] if ridge[k] == 0 else min(high[k], (pull - kink[k]) / ridge[k])
            here += t * (pull - kink[k]) - 0.5 * ridge[k] * t * t
        elif pull < -kink[k]:
            t = low[k] if ridge[k] == 0 else max(low[k], (pull + kink[k]) / ridge[k])
            here += t * (pull + kink[k]) - 0.5 * ridge[k] * t * t
        total += max(here, 0.0)
    return total, b


@compiled()
def _steepest(g, kink, alpha, high):
    """The coordinate with the steepest slope upwards: a loop that stays this short."""
    best, i = -np.inf, -1
    for k in range(len(alpha)):
        if alpha[k] < high[k]:
            slope = -(g[k] + (kink[k] if alpha[k] >= 0 else -kink[k]))
            if slope > best:
                best, i = slope, k
    return i, 1.0, best


@compiled()
def _best_alone(g, kink, ridge, alpha, low, high, diag):
    """The coordinate that gains most by itself."""
    gain, i, way, fall = 0.0, -1, 1.0, 0.0
    for k in range(len(alpha)):
        up = -(g[k] + (kink[k] if alpha[k] >= 0 else -kink[k]))
        down = g[k] + (kink[k] if alpha[k] > 0 else -kink[k])
        slope, room, side = 0.0, 0.0, 1.0
        if up > 0 and alpha[k] < high[k]:
            slope, room = up, high[k] - alpha[k]
        elif down > 0 and alpha[k] > low[k]:
            slope, room, side = down, alpha[k] - low[k], -1.0
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
        if alpha[k] > low[k] and k != i:
            both = slope + g[k] + (kink[k] if alpha[k] > 0 else -kink[k])
            if both > 0:
                bend = own + diag[k] + ridge[k] - 2 * row[k]
                bend = max(bend, 1e-12 * (own + 1e-300))
                if both * both > gain * bend:
                    gain, j, fall, curve = both * both / bend, k, both, bend
    return j, fall, curve


@compiled()
def _room(a, way, kink, low, high):
    """How far a coordinate can move up (way = 1) or down to a bound or its kink."""
    if way > 0:
        return -a if kink > 0 and a < 0 else high - a
    return a if kink > 0 and a > 0 else a - low


@compiled()
def longest(i, j, way, kink, low, high, alpha):
    """How far i can move in its direction, and j in the other one."""
    step = _room(alpha[i], way, kink[i], low[i], high[i])
    if j != i:
        step = min(step, _room(alpha[j], -way, kink[j], low[j], high[j]))
    return step


@compiled()
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
    diag = np.diag(K).copy()
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
