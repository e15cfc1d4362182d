"""The oracle of VSKL: for in-group weights λ, the best α and the best γ across groups.

    G(λ) = max over α, γ   dual_loss(α) − ½ Σ_j D_j/γ_j,   D_j = Σ_{k∈j} λ_k αᵀK_kα,
           γ ≥ 0, ‖γ‖_{q*} ≤ 1

With K_j = Σ_{k∈j} λ_k K_k this is MKL with the block norm 2q, one kernel per group, and
θ_j = 1/γ_j are its kernel weights: "outer" below is that block norm.

Algorithm (Aflalo et al. 2011, algorithm 2). Block coordinate ascent: the SVM with the
kernel Σθ_jK_j for α; then γ_j = D_j^{1/(q*+1)} / (Σ D^{q*/(q*+1)})^{1/q*}
(proposition 3.3).

For q = ∞ a group whose block norm stays below the largest one costs nothing: γ_j → 0,
K_jα → 0, and w_j is not θ_j Σα_iψ_j for any finite θ_j. Such a group is called silent.
The ascent converges to this at the rate ‖w_j‖/max ‖w‖. If θ_j gets too large, or after
too many rounds, proximal minimization of the same problem, with one kernel per group,
finishes it (proximal_minimization.py). It works on factors K_j = L_jL_jᵀ: a group that
is not quite silent costs max ‖w‖ · ‖L_jᵀα‖, and the root of αᵀK_jα has only half of the
digits. Every group then has explicit coefficients, w_j = Σβ_jiψ_j, β_j in the range of
K_j.

Guarantee. gap = gap of the SVM + Fenchel–Young gap of the outer norm, Ω(u) + Ω*(v) −
⟨u, v⟩ at v = √D, u = θv, or the gap of proximal minimization; in float64. In exact
arithmetic, for the kernels as they are stored, |G(λ) − value| ≤ error: the enclosure of
certificate.py for the penalty `FixedInside`. With factors its relative size is that of
rounding in float64; with silent groups of kernels stored as matrices, the square root
of this.

The gradient of G is −½θ_jv_k² and, where the free coordinates F of α do not change,
with E = ∂θ/∂D and c_j = (K_jα)_F,

    ∂²G/∂λ_k∂λ_l = B_kᵀ S⁻¹ B_l − ½ v_k² E_jj' v_l²
    S = Σθ_jK_j + ridge + 2 Σ c_j E_ji c_iᵀ,    B_k = θ_j(K_kα)_F + Σ_i c_i E_ij v_k²

Sums inside groups and an exponent 1 < 2q < 2 across them (CKL) have the same oracle,
with min over θ, ‖θ‖_{q/(1−q)} ≤ 1, instead of max over γ. G is then not convex, but
J(λ_kθ_j) is convex in the products, and where all θ_j > 0 both are stationary at the
same points. E is then positive semi-definite, and the model keeps the first term only.
"""

from typing import Any

import numpy as np

from ...certificates.certificate import Certificate, certify
from ...formulations.base import Groups, owners
from ...formulations.block_norm import BlockNorm
from ...formulations.fixed_weights import FixedInside
from ...grams.psd import root
from ...grams.stack import GramStack
from ...problem import Problem
from ..base import Array, Iterate, Steps, certify_iterate
from ..machines.factory import machine_for
from ..machines.machine import Machine
from ..start import Start
from .proximal_minimization import proximal_minimization

MAX_ROUNDS = 500  # rounds for one λ
MAX_ROUNDS_SILENT = 50  # rounds for q = ∞; then proximal minimization takes over
SHOWN_EVERY = 10  # its Newton steps between two iterates that are yielded
MAX_NEWTON_STEPS = 150  # its Newton steps for one λ
SILENT_RATIO = 1e5  # θ_j above this many times the smallest: a silent group
ROUNDING_GAP = 1e-12  # a smaller relative gap is rounding
APART = 1e-2  # the error across groups that is allowed, relative to the certified gap


class Oracle:
    """α and θ = 1/γ for a sequence of λ, each time from the last α and θ."""

    def __init__(
        self,
        problem: Problem,
        groups: Groups,
        q: float,
        alpha: Array | None = None,
        sharpness: float = 1e-3,
        machine: Machine | None = None,
    ):
        self.problem, self.groups, self.q = problem, groups, q
        self.outer, self.owner = BlockNorm(2 * q), owners(groups)
        self.machine = machine or machine_for(problem, alpha, sharpness)
        self.wanted, self.rounds = 10 * self.machine.tol, 0
        self.theta = self.outer.dual_weights(np.ones(len(groups)))
        self.held = np.zeros(len(groups), bool)  # groups whose θ is bounded
        self.beta: Array | None = None  # (J, n), if there are silent groups
        self.found: Start | None = None  # the last point of proximal minimization
        self._extrapolated = False

    def sums(self, per_kernel: Array) -> Array:
        """The sum over each group."""
        return np.bincount(self.owner, per_kernel, minlength=len(self.groups))

    def solve(self, lam: Array) -> Steps:
        """Algorithm 2, until the error across groups is as small as wanted.

        Long runs yield iterates, so that time limits can be kept.
        """
        self.lam, never = lam, len(self.groups) == 1 or self.q < np.inf
        shown = self.machine.work
        for count in range(1, MAX_ROUNDS + 1):
            self.round()
            if self.apart <= self.wanted:
                return
            if not never and (np.any(self.held) or count >= MAX_ROUNDS_SILENT):
                yield from self._finish()
                return
            if self.machine.work >= shown + 1:
                yield self.iterate()
                shown = self.machine.work

    def round(self) -> None:
        """Proposition 3.3, and the inner problem; for q = ∞ the θ_j are bounded."""
        if self.rounds and not self._extrapolated:
            self.theta = self.outer.reweight(self.theta, np.sqrt(self._squares))
        if self.q == np.inf:
            most = SILENT_RATIO * np.min(self.theta)
            self.held = self.theta > most
            self.theta = np.minimum(self.theta, most)
        self._extrapolated = False
        self.machine.solve(self.weights)
        self._look()

    def enter(self, lam: Array) -> None:
        """Continue at λ, where the inner problem is solved."""
        self.lam = lam
        self._look()

    def _look(self) -> None:
        self.beta, self.D = None, self._squares
        self.rounds += 1

    @property
    def _squares(self) -> Array:
        """D from the stored kernels."""
        return self.sums(self.lam * self.machine.v**2)

    @property
    def alpha(self) -> Array:
        """α of the inner problem."""
        return self.machine.point

    @property
    def weights(self) -> Array:
        """θ of every kernel: λ_k/γ_j."""
        return np.asarray(self.lam * self.theta[self.owner])

    @property
    def value(self) -> float:
        """The maximum over γ at α: a lower bound of G(λ)."""
        across = self.outer.conjugate(np.sqrt(self.D))
        return self.problem.dual_loss(self.alpha) - across

    @property
    def apart(self) -> float:
        """The Fenchel–Young gap of the outer norm."""
        v = np.sqrt(self.D)
        both = self.outer.value(self.theta * v) + self.outer.conjugate(v)
        return max(both - float(self.theta @ self.D), 0.0)

    @property
    def gap(self) -> float:
        """G(λ) − value is at most this, in float64."""
        if self.beta is not None:
            assert self.found is not None and self.found.certificate is not None
            return self.found.certificate.gap
        return self.machine.gap + self.apart

    @property
    def bounds(self) -> Certificate:
        """lower ≤ G(λ) ≤ upper, in exact arithmetic."""
        held = FixedInside(self.groups, self.q, tuple(self.lam.tolist()))
        problem, alpha = self.problem.with_(formulation=held), self.alpha
        if self.beta is None:
            return certify(problem, alpha, self.weights, remembered=True)
        return certify(problem, alpha, coefficients=self.coefficients())

    @property
    def error(self) -> float:
        """|G(λ) − value| is at most this."""
        lower, upper = self.bounds.enclosure[:2]
        return max(upper - self.value, self.value - lower)

    @property
    def slope(self) -> Array:
        """∂G/∂λ at α and the best γ for it."""
        theta = self.outer.reweight(self.theta, np.sqrt(self.D))
        stored = self._squares  # equal to D, except in silent groups: D is more precise
        share = np.divide(self.D, stored, out=np.zeros_like(stored), where=stored > 0)
        return np.asarray(-0.5 * (theta * share)[self.owner] * self.machine.v**2)

    def coefficients(self) -> Array:
        """(M, n): w_k = Σ_i coefficients[k, i] ψ_k(x_i)."""
        if self.beta is None:
            return np.multiply.outer(self.weights, self.alpha)
        blocks = self.beta[self.owner]
        return self.lam.reshape(-1, *[1] * (blocks.ndim - 1)) * blocks

    def iterate(self, **more: Any) -> Iterate:
        """α with θ or coefficients as a candidate."""
        info = {"svm_solves": self.machine.solves, "rounds": self.rounds, **more}
        if self.beta is None:
            return Iterate(self.alpha, **self.machine.primal_point(), info=info)
        return Iterate(self.alpha, coefficients=self.coefficients(), info=info)

    def set_tolerance(self, certificate: Certificate) -> None:
        """Set both tolerances to parts of the certified gap."""
        self.machine.set_tolerance(certificate)
        self.wanted = APART * max(certificate.gap, 0.0)

    # ---- silent groups -------------------------------------------------------------

    def _finish(self) -> Steps:
        """Proximal minimization with one kernel per group."""
        factors, before = self._factors(), (self.rounds, self.machine.solves)
        grams = GramStack.from_factors(factors)
        problem = self.problem.with_(grams=grams, formulation=self.outer)
        steps, best, shown = proximal_minimization(problem, start=self.found), None, 0
        certificate: Any = None
        while True:
            iterate = steps.send(certificate)
            certificate = certify_iterate(problem, iterate)
            best = certificate if best is None else certificate.best_of(best)
            taken = iterate.info.get("svm_solves", 0)
            self.rounds, self.machine.solves = (b + taken for b in before)
            enough = max(self.wanted, ROUNDING_GAP * abs(best.primal))
            if best.gap <= enough or taken >= MAX_NEWTON_STEPS:
                break
            if taken >= shown + SHOWN_EVERY:
                self._adopt(best, factors)
                yield self.iterate()
                shown = taken
        steps.close()
        self._adopt(best, factors)

    def _adopt(self, best: Certificate, factors: list[Array]) -> None:
        """Take α, θ and β of the best point that proximal minimization has found."""
        alpha = best.shrink * best.alpha
        v = np.array([np.linalg.norm(L.T @ alpha) for L in factors])
        least = np.max(v) / SILENT_RATIO
        self.D, self.held = v**2, v <= least
        self.theta = self.outer.dual_weights(np.maximum(v, least))
        # the shortest β_j with the same w_j = L_jᵀβ_j
        if best.features is None:
            w = [L.T @ beta for L, beta in zip(factors, best.expansion)]
        else:
            w = np.split(best.features, np.cumsum([L.shape[1] for L in factors])[:-1])
        pairs = zip((L.T for L in factors), w)
        self.beta = np.stack([np.linalg.lstsq(*p, rcond=1e-12)[0] for p in pairs])
        self.machine.adopt(alpha, self.weights)
        self.found = Start(self.theta, alpha, best.bias, best)

    def _factors(self) -> list[Array]:
        """L_j with Σ_{k∈j} λ_kK_k = L_jL_jᵀ."""
        given, found = self.problem.grams.factors, []
        for j, group in enumerate(self.groups):
            used = [k for k in group if self.lam[k] > 0]
            if given is not None:
                found.append(np.hstack([np.sqrt(self.lam[k]) * given[k] for k in used]))
            else:
                own = np.where(self.owner == j, self.lam, 0.0)
                found.append(root(self.problem.grams.combine(own)))
        return found

    # ---- second order --------------------------------------------------------------

    def hessian(self, which: Array) -> Array:
        """∂²G/∂λ² for some kernels, with one product per kernel in use."""
        machine = self.machine
        squares, owner = machine.v[which] ** 2, self.owner[which]
        E = self._bend()
        used = np.union1d(which, np.flatnonzero(self.lam))
        images = machine.products_of(used)
        groups = self.lam[used, None] * np.eye(len(E))[self.owner[used]]
        c = images @ groups
        own = images[:, np.searchsorted(used, which)]
        B = self.theta[owner] * own + (c @ E)[:, owner] * squares
        rest = c @ np.where(self.held, 0.0, self._best_theta(self.D) - self.theta)
        found = self._answer(np.column_stack([B, rest]), c, E)
        self._columns, self._rest = found[:, :-1], found[:, -1]
        H = self._columns.T @ B
        if self.q > 1:  # E = 0 at q = 1
            H -= 0.5 * np.outer(squares, squares) * E[np.ix_(owner, owner)]
        return np.asarray(0.5 * (H + H.T))

    def _answer(self, B: Array, c: Array, E: Array) -> Array:
        """S⁻¹B: `sensitivity` is the inverse without 2cEcᵀ, which has low rank."""
        if not np.any(E):
            return self.machine.sensitivity(B)
        found = self.machine.sensitivity(np.hstack([B, c]))
        plain, inverse = found[:, : B.shape[1]], found[:, B.shape[1] :]
        small = np.eye(len(E)) + 2 * E @ (c.T @ inverse)
        return plain - inverse @ np.linalg.solve(small, 2 * E @ (c.T @ plain))

    def extrapolate(self, which: Array, step: Array, share: Array) -> None:
        """Predict α and θ after a step in λ, of which `share` has an effect on α.

        `hessian` must be called before. Nothing is predicted for q = ∞, where θ has
        kinks and groups may be silent.
        """
        if self.outer.q == np.inf:
            return
        move = -self._columns @ (share * step) - self._rest
        lam = self.lam.copy()
        lam[which] += step
        used = np.flatnonzero(lam)
        squares = np.zeros(len(lam))
        cross = move @ self.machine.products_of(used)
        squares[used] = self.machine.v[used] ** 2 + 2 * cross
        D = np.maximum(self.sums(lam * squares), 0.1 * self.D)
        self.theta = np.where(self.held, self.theta, self._best_theta(D))
        self.machine.extrapolate(move)
        self._extrapolated = True

    def _best_theta(self, D: Array) -> Array:
        """The fixed point of `reweight` at D."""
        return self.outer.dual_weights(np.sqrt(np.maximum(D, 1e-300)))

    def _bend(self) -> Array:
        """E = ∂θ/∂D; 0 where θ is bounded."""
        D = np.maximum(self.D, 1e-300)
        by_theta, by_v = self.outer.elasticities(self.theta, np.sqrt(D))
        E = np.linalg.solve(np.eye(len(D)) - by_theta, by_v)  # at the fixed point
        E = self.theta[:, None] * E / (2 * D)
        if self.outer.q == 2 or len(D) == 1:
            return np.zeros_like(E)
        E[self.held] = E[:, self.held] = 0.0
        return np.asarray(0.5 * (E + E.T))
