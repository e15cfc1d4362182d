"""The oracle of VSKL: for in-group weights λ, the best α and the best γ across groups.

    G(λ) = max over α, γ   gain(α) − ½ Σ_j D_j/γ_j,   D_j = Σ_{k∈j} λ_k αᵀK_kα,
           γ ≥ 0, ‖γ‖_{q*} ≤ 1

With K_j = Σ_{k∈j} λ_k K_k this is MKL with the block norm 2q, one kernel per group, and
θ_j = 1/γ_j are its kernel weights: "outer" below is that block norm.

Algorithm (Aflalo et al. 2011, algorithm 2). Block coordinate ascent: the machine on
Σθ_jK_j for α; then γ_j = D_j^{1/(q*+1)} / (Σ D^{q*/(q*+1)})^{1/q*} (proposition 3.3).

For q = ∞ a group whose block norm stays below the largest costs nothing: γ_j → 0,
K_jα → 0, and w_j is not θ_j Σα_iψ_j for any finite θ_j. Such a group is called silent:
its θ_j is held, and its w_j = Σ(β_i + θ_jα_i)ψ_j carries explicit coefficients β, the
multipliers of K_jα = 0, with the step β ← β + θ_jα (method of multipliers).

Guarantee. value ≤ G(λ) ≤ value + error: error is the gap of the machine plus the
Fenchel–Young gap of the outer norm, Ω(u) + Ω*(v) − Σ_j ⟨w_j, Σα_iψ_j⟩ at v = √D. The
inner product is u_jv_j, u_j = θ_jv_j, but in silent groups, where it is
(β_j + θ_jα)ᵀ Σ_{k∈j} λ_kK_kα and smaller. An estimate of the rounding of αᵀKα is
added to it.

The gradient of G is −½θ_jv_k² and, where the free coordinates F of α do not change,
with E = ∂θ/∂D and c_j = (K_jα)_F,

    ∂²G/∂λ_k∂λ_l = B_kᵀ S⁻¹ B_l − ½ v_k² E_jj' v_l²
    S = Σθ_jK_j + ridge + 2 Σ c_j E_ji c_iᵀ,    B_k = θ_j(K_kα)_F + Σ_i c_i E_ij v_k²
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..formulations.base import Groups, owners
from ..formulations.block_norm import BlockNorm
from ..problem import Problem
from .base import Iterate
from .wrapper import Machine

Array = np.ndarray
EPS = 2.0**-52
MOST, PATIENCE = 500, 0.3  # rounds and seconds in one call
SILENT = 1e4  # θ_j above this many times the smallest …
BELOW = 0.99  # … and a norm below this part of the largest: a silent group


class Oracle:
    """α and θ = 1/γ at given λ, warm-started from one λ to the next."""

    def __init__(
        self,
        problem: Problem,
        groups: Groups,
        q: float,
        alpha: Array | None = None,
        sharpness: float = 1e-3,
        machine: Machine | None = None,
    ):
        self.problem, self.outer, J = problem, BlockNorm(2 * q), len(groups)
        self.owner = owners(groups)
        self.machine = machine or Machine(problem, alpha, sharpness)
        self.wanted, self.rounds, self.patience = 10 * self.machine.tol, 0, PATIENCE
        self.theta = self.outer.dual_weights(np.ones(J))
        self.beta = np.zeros((J, problem.grams.n))  # of silent groups
        self.silent = np.zeros(J, bool)
        self._foreseen = False

    def sums(self, per_kernel: Array) -> Array:
        """Sums over each group."""
        return np.bincount(self.owner, per_kernel, minlength=len(self.theta))

    def solve(self, lam: Array) -> None:
        """Algorithm 2, until the error across groups is as small as wanted.

        Where machines take long it ends early, so that a limit on time can be kept.
        """
        self.lam, begun = lam, time.perf_counter()
        for _ in range(MOST):
            if self.rounds and not self._foreseen:
                self._advance()
            self._foreseen = False
            self.machine.solve(self.weights, self._offset())
            self.rounds += 1
            late = time.perf_counter() - begun > self.patience
            if late or self.apart <= self.wanted:
                return

    def _advance(self) -> None:
        """Proposition 3.3; silent groups keep their θ and move on in β."""
        theta = self.outer.reweight(self.theta, np.sqrt(self.D))
        if self.outer.q == np.inf and len(theta) > 1:
            theta = self._listen(theta)
            self.beta[self.silent] += np.outer(self.theta, self.alpha)[self.silent]
        self.theta = np.where(self.silent, self.theta, theta)

    @property
    def alpha(self) -> Array:
        return self.machine.point

    @property
    def weights(self) -> Array:
        """θ of every kernel: λ_k/γ_j."""
        return np.asarray(self.lam * self.theta[self.owner])

    @property
    def D(self) -> Array:
        return self.sums(self.lam * self.machine.v**2)

    @property
    def value(self) -> float:
        """max over γ of f_λ(α, γ): a lower bound of G(λ)."""
        return self.problem.gain(self.alpha) - self.outer.conjugate(np.sqrt(self.D))

    @property
    def norms(self) -> Array:
        """√Σ_{k∈j} ‖w_k‖²/λ_k of each group."""
        found = self.theta * np.sqrt(self.D)
        if np.any(self.silent):
            found[self.silent] = self._explicit_norms()[self.silent]
        return found

    @property
    def error(self) -> float:
        """How far value may be below G(λ)."""
        size, K = np.abs(self.alpha), np.abs(self.machine.K)
        rounding = EPS * float(size @ K @ size)  # counts where θ_j is very large
        return self.machine.gap + self.apart + rounding

    @property
    def apart(self) -> float:
        """The Fenchel–Young gap of the outer norm."""
        u, v, inner = self.norms, np.sqrt(self.D), self.theta * self.D
        if np.any(self.silent):
            inner = inner + np.where(self.silent, self._explicit_products(), 0.0)
        gap = self.outer.value(u) + self.outer.conjugate(v) - float(np.sum(inner))
        return max(gap, 0.0)

    @property
    def slope(self) -> Array:
        """∂G/∂λ at α and the best γ for it."""
        theta = self.outer.reweight(self.theta, np.sqrt(self.D))
        return np.asarray(-0.5 * theta[self.owner] * self.machine.v**2)

    def iterate(self, **more: Any) -> Iterate:
        info = {"svm_solves": self.machine.solves, "rounds": self.rounds, **more}
        if not np.any(self.silent):
            return Iterate(self.alpha, self.weights, info=info)
        return Iterate(self.alpha, coefficients=self.coefficients(), info=info)

    def heed(self, certificate: Certificate) -> None:
        """Tie both tolerances to the true gap."""
        self.machine.heed(certificate)
        self.wanted = 1e-2 * max(certificate.gap, 0.0)

    # ---- silent groups -------------------------------------------------------------

    def coefficients(self) -> Array:
        """(M, n): w_k = Σ_i coefficients[k, i] ψ_k(x_i)."""
        explicit = self.lam[:, None] * self.beta[self.owner]
        return explicit + np.multiply.outer(self.weights, self.alpha)

    def _offset(self) -> Array | None:
        """What the explicit parts predict."""
        if not np.any(self.silent):
            return None
        which = np.flatnonzero(self.silent[self.owner])
        B = self.lam[which, None] * self.beta[self.owner[which]]
        return np.sum(self.problem.grams.subset(which).apply(B), axis=0)

    def _explicit_products(self) -> Array:
        """β_jᵀ Σ_{k∈j} λ_kK_kα."""
        which = np.flatnonzero(self.silent[self.owner] & (self.lam > 0))
        image = self.problem.grams.subset(which).matvec(self.alpha)
        products = np.zeros(len(self.lam))
        explicit = self.beta[self.owner[which]]
        products[which] = self.lam[which] * np.sum(explicit * image, axis=1)
        return self.sums(products)

    def _explicit_norms(self) -> Array:
        which = np.flatnonzero(self.silent[self.owner] & (self.lam > 0))
        whole = (self.beta + np.outer(self.theta, self.alpha))[self.owner]
        image = self.problem.grams.subset(which).apply(whole[which])
        squares = np.zeros(len(self.lam))
        squares[which] = self.lam[which] * np.sum(whole[which] * image, axis=1)
        return np.sqrt(np.maximum(self.sums(squares), 0.0))

    def _listen(self, theta: Array) -> Array:
        """Find the silent groups; the θ of those on the way there grows no further."""
        norms, low = self.norms, np.min(self.theta)
        loud = np.max(norms[~self.silent])
        back = self.silent & (norms >= loud)
        self.beta[back] = 0.0
        below = norms < BELOW * loud
        self.silent = (self.silent & ~back) | (below & (self.theta > SILENT * low))
        # Above 100 · SILENT a norm θ√D is rounding: such a group is silent, too.
        most = np.where(below, 10 * SILENT, 100 * SILENT) * low
        return np.minimum(theta, most)

    # ---- second order --------------------------------------------------------------

    def hessian(self, which: Array) -> Array:
        """∂²G/∂λ² for some kernels: one product with each kernel in use."""
        machine = self.machine
        squares, owner = machine.v[which] ** 2, self.owner[which]
        E = self._bend()
        used = np.union1d(which, np.flatnonzero(self.lam))
        images = machine.forces(used)
        groups = np.zeros((len(used), len(E)))
        groups[np.arange(len(used)), self.owner[used]] = self.lam[used]
        c = images @ groups
        own = images[:, np.searchsorted(used, which)]
        B = self.theta[owner] * own + (c @ E)[:, owner] * squares
        self._columns = self._answer(B, c, E)
        H = self._columns.T @ B
        H -= 0.5 * np.outer(squares, squares) * E[np.ix_(owner, owner)]
        return np.asarray(0.5 * (H + H.T))

    def _answer(self, B: Array, c: Array, E: Array) -> Array:
        """S⁻¹B: `respond` is the inverse without 2cEcᵀ, which has a low rank."""
        if not np.any(E):
            return self.machine.respond(B)
        found = self.machine.respond(np.hstack([B, c]))
        plain, inverse = found[:, : B.shape[1]], found[:, B.shape[1] :]
        small = np.eye(len(E)) + 2 * E @ (c.T @ inverse)
        return plain - inverse @ np.linalg.solve(small, 2 * E @ (c.T @ plain))

    def foresee(self, which: Array, step: Array) -> None:
        """Where α and θ go to first order when λ moves, after `hessian` of the same.

        For q = ∞ θ has kinks, and silent groups go their own way: nothing is foreseen.
        """
        if self.outer.q == np.inf:
            return
        move = -self._columns @ step
        lam = self.lam.copy()
        lam[which] += step
        used = np.flatnonzero(lam)
        squares = np.zeros(len(lam))
        squares[used] = self.machine.v[used] ** 2
        squares[used] += 2 * (move @ self.machine.forces(used))
        D = np.maximum(self.sums(lam * squares), 0.1 * self.D)
        self.theta = self.outer.reweight(self.theta, np.sqrt(D))
        self.machine.foresee(move)
        self._foreseen = True

    def _bend(self) -> Array:
        """E = ∂θ/∂D, zero where θ is held."""
        D = np.maximum(self.D, 1e-300)
        E = self.outer.elasticities(self.theta, np.sqrt(D))[1]
        E = self.theta[:, None] * E / (2 * D)
        if self.outer.q == 2 or len(D) == 1:
            return np.zeros_like(E)
        E[self.silent] = E[:, self.silent] = 0.0
        return np.asarray(0.5 * (E + E.T))
