"""One forward–backward step on the coefficients of all kernels.

The smooth part of the objective is g(w) = min over b of C Σ V(f_i + b): the bias is
eliminated exactly. It is convex with the gradient −Σ_i α_i ψ_m(x_i), α = −C V'(f + b),
so that Σα = 0 holds in every step, and its Lipschitz constant is that of the loss
without a bias, L = max C · Lip(V') · λ_max(Σ K_m). (The paper gives the bias its own
step γ_b; but blocks that share f need a common constant.)

    X_m = Y_m + α/L,   s_m = ‖X_m‖_{K_m},   z = prox of Ω/L at s,   W_m = (z_m/s_m) X_m

costs one product K_mα with every kernel; the products K_mY_m and K_mW_m follow by
linearity. L is found by backtracking: it is doubled until

    g(W) ≤ g(Y) − ⟨α, f_W − f_Y⟩ + (L/2) Σ ‖W_m − Y_m‖²,

which needs no further product. With relax < 1 it may fall again between steps.

Reference: Suzuki and Tomioka (2009), section 4.1; Beck and Teboulle (2009).
"""

import numpy as np
from scipy.sparse.linalg import eigsh

from ...grams.stack import GramStack
from ...problem import Problem
from ...util.checks import check_choice
from ..base import Array, Iterate

CERTIFIED_EVERY = 20  # steps between certificates: ten passes over packed kernels
FIRST_L = 1 / 64  # of the bound: where backtracking begins
SMALL = 20  # rows up to which all eigenvalues are computed, instead of one


class Forward:
    """The step, and the constant L that it has found so far.

    Its states are arrays (2, M, n, k): the coefficients of all kernels, and their
    products with the kernels.
    """

    def __init__(self, problem: Problem, backtracking: bool, relax: float = 1.0):
        self.backtracking = check_choice(backtracking, "backtracking", (True, False))
        self.problem, self.relax = problem, relax
        self.C = problem.spread_costs
        self.bound = lipschitz(problem)
        self.L = FIRST_L * self.bound if backtracking else self.bound

    def smooth(self, f: Array) -> tuple[float, Array]:
        """g and α at the predictions f without their bias."""
        loss, y, C = self.problem.loss, self.problem.y, self.problem.costs
        if self.problem.bias:
            f = f + loss.best_bias(f, y, C)
        return float(C @ loss.value(f, y)), -self.C * loss.gradient(f, y)

    def predictions(self, state: Array) -> Array:
        """f without the bias."""
        return np.sum(state[1], axis=0).reshape(self.problem.shape)

    def step(self, at: Array) -> Array:
        """One step from a state; L is raised if it has to be."""
        grams, formulation = self.problem.grams, self.problem.formulation
        f = self.predictions(at)
        value, alpha = self.smooth(f)
        A = alpha.reshape(grams.n, -1)
        push = np.stack(np.broadcast_arrays(A, grams.matvec(A)))
        if self.backtracking:
            self.L *= self.relax
        while True:
            X = at + push / self.L
            s = np.sqrt(np.maximum(np.sum(X[0] * X[1], axis=(1, 2)), 0.0))
            z = formulation.prox(s, 1 / self.L)
            scale = np.where(z > 0, z / np.maximum(s, 1e-300), 0.0)[:, None, None]
            new = scale * X
            if not self.backtracking or self.bound <= self.L:
                return new
            g = self.predictions(new)
            model = value - float(np.sum(alpha * (g - f)))
            model += 0.5 * self.L * float(np.vdot(*(new - at)))
            if self.smooth(g)[0] <= model + 1e-13 * abs(value):
                return new
            self.L *= 2

    def iterate(self, state: Array) -> Iterate:
        """The state, and α there, as a candidate."""
        _, alpha = self.smooth(self.predictions(state))
        shape = (self.problem.grams.M, *self.problem.shape)
        return Iterate(alpha, coefficients=state[0].reshape(shape))


def lipschitz(problem: Problem) -> float:
    """max C · Lip(V') · λ_max(ΣK_m)."""
    smoothness = problem.loss.smoothness
    assert smoothness is not None
    top = 1.001 * smoothness * float(np.max(problem.costs)) * largest(problem.grams)
    return max(top, 1e-300)


def largest(grams: GramStack) -> float:
    """λ_max(ΣK_m): one combine, then Lanczos; of factors F that of FᵀF."""
    if grams.in_feature_space:
        grams.count_reads(1)
        K = grams.panel().gram(np.arange(grams.n), np.ones(grams.n))[:-1, :-1]
    else:
        K = grams.combine(np.ones(grams.M))
    if not np.all(np.isfinite(K)):
        raise OverflowError("the sum of the kernels leaves the range of float64")
    if len(K) < SMALL or not np.any(K):
        return float(np.linalg.eigvalsh(K)[-1])
    # any start but 1: kernels of centred data map 1 to 0
    start = np.random.default_rng(0).normal(size=len(K))
    return float(eigsh(K, k=1, v0=start, return_eigenvectors=False)[0])


def begin(problem: Problem, B: Array) -> Array:
    """A state from coefficients: one product with each kernel."""
    blocks = np.array(B, float).reshape(problem.grams.M, problem.grams.n, -1)
    return np.stack([blocks, problem.grams.apply(blocks)])
