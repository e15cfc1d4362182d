"""A working set of kernels, grown by pricing, and Newton's method inside it.

Problem. Formulations that leave most kernels unused and have weights on simplices or
an orthant (ℓ1, VSKL and CKL that sum inside groups, group lasso, elastic net), with a
loss that has an inner solver (machines/).

Algorithm. Repeat two steps. (1) Solve the problem restricted to the working set W,
until its gap is a small part of the gap of the whole problem. (2) Price all kernels
(certificates/pricing.py) with the product K_mα that the certificate needs anyway. The
next W has the kernels in use, and those that would come into use if α were a little
longer; the number of new ones is limited by the number in use. The first W comes from
the inner problem with equal weights: the kernels with the largest v = ‖α‖_{K_m}, per
group where there are groups. Inside W: Newton's method in the weights
(weight_newton.py), on simplices (simplex_oracle.py) or the orthant (orthant_oracle.py).

Many samples. θ and a large W come first from the problem on a quarter of the samples
(fewer_samples.py). Every step on all samples then says which kernels of W are needed.

Many kernels. The first W is that of the problem on some of them, which in turn begins
with fewer of them (fewer_kernels.py): their passes are a small part of one pass.

Guarantee. W changes until pricing asks for no kernel outside it; then the gap of W is
the gap of the whole problem. No kernel is dropped for good: all are priced before every
certificate. So none is missed, and no rule for safe elimination is needed.

Reference: Chapelle and Rakotomamonjy (2008) for Newton's method in the weights.
"""

from collections.abc import Generator
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.pricing import LONGER, enough_norms, priced, read_where
from ..formulations.base import Groups
from ..problem import Problem
from .base import Array, Iterate, Steps, certify_iterate, solver
from .machines.factory import machine_for
from .machines.machine import Machine
from .start import Start, weights_of
from .steps.fewer_kernels import MANY, coarse, on_kernels, sizes, spread
from .steps.fewer_samples import on_all, on_samples, samples_of
from .steps.orthant_oracle import Orthant
from .steps.simplex_oracle import Oracle
from .steps.weight_newton import newton
from .steps.working_set import at_most, restricted

# The first working set: a quarter of the kernels, but not fewer and not more than this.
FIRST_SHARE, FEWEST, LARGEST_FIRST = 4, 30, 100
# On an orthant the size of the first weights is unknown. A good size makes predictions
# of about GOOD_PREDICTION, where the loss is small. At most SIZE_SOLVES inner problems
# are solved to find it, until it changes by less than SIZE_FACTOR.
GOOD_PREDICTION, SIZE_SOLVES, SIZE_FACTOR = 4.0, 6, 3.0
COARSE_GAP, COARSE_ITERATES = 1e-2, 8  # where the problem on fewer samples ends
# As LONGER, and how many new kernels it asks for: many, because its v are not those of
# all samples. A kernel that is missing costs another round of pricing and Newton steps.
COARSE_LONGER, COARSE_MOST = 1.5, 90
# From a gap of SHRINK_GAP on W loses kernels, if the others are at most FEWER of it. α
# is taken longer by the gap, but at least by LEAST_LONGER.
SHRINK_GAP, FEWER, LEAST_LONGER = 0.1, 0.97, 0.01
# The gap and the iterates on all samples after which v says which of them are needed.
FIRST_GAP, FIRST_ITERATES = 2e-2, 5
# The relative gap from which on the next Newton step may be the last one.
NEAR = 1e-3
GROWTH = 4  # of MANY kernels: new ones in a round, relative to those in use
# The first weights are proportional to v to this power: of matrices, and of factors
# with few columns, where more kernels stay in use.
FIRST_POWER, FEATURE_POWER = 4, 2
# The gap inside W relative to the whole gap: while W changes, and once it is complete.
SHARE, FINAL_SHARE = 0.01, 1e-3
# The gap of the inner solver relative to the whole gap: of SMO, and of Newton's method,
# which ends well below its tolerance.
SHARPNESS, SMOOTH_SHARPNESS = 1e-5, 1e-4


def promised(problem: Problem) -> float:
    """1e-6; 1e-5 at q = ∞: ‖α‖_K of silent groups has only half of the digits."""
    return 1e-6 if simplices(problem)[1] < np.inf else 1e-5


@solver(
    "active",
    needs={"simplex or sums or orthant"},
    losses={"quadratic", "twice_differentiable", "features"},
    accuracy=promised,
    reference="chapelle2008",
    guarantee="the problem of the working set is the whole problem at the end",
)
def active(problem: Problem, *, start: object = None) -> Steps:
    """Working sets of kernels, and Newton's method in their weights."""
    certificate, theta = None, np.zeros(problem.grams.M)
    smooth = problem.loss.twice_differentiable
    sharpness = SMOOTH_SHARPNESS if smooth else SHARPNESS
    machine = machine_for(problem, None, sharpness, second_order=True)
    if start is None and problem.grams.M > MANY:
        start = from_fewer_kernels(problem)
    if start is not None:
        at = Start.of(problem, start)
        theta = at.weights if at.certificate is None else weights_of(at.certificate)
        alpha = np.zeros(problem.shape) if at.dual is None else at.dual
        certificate = yield Iterate(alpha, theta)
        machine.alpha = certificate.alpha
        asked = asked_for(problem, theta, certificate)
    which = samples_of(problem) if start is None else None
    if which is not None:
        theta, asked, certificate = from_fewer_samples(problem, machine, which)
    solved, share, often = certificate is not None and start is None, SHARE, False
    if not np.any(theta):
        theta = opening(problem, machine)
        asked = np.flatnonzero(theta)
        if machine.work > 1:
            certificate = yield Iterate(machine.point, theta)
    while True:
        W = np.union1d(np.flatnonzero(theta), asked)
        steps = Inside(problem, machine, W, theta, certificate, solved)
        goal = None if certificate is None else share * certificate.gap
        certificate = yield from steps.until(goal, often)
        theta, solved = weights_of(certificate), True
        asked = asked_for(problem, theta, certificate)
        complete = bool(np.all(np.isin(asked, steps.W)))
        share = FINAL_SHARE if complete else SHARE
        often = complete and problem.grams.bounds_norms
        often = often and certificate.relative_gap <= NEAR


# ---- the working set -----------------------------------------------------------------


def asked_for(problem: Problem, theta: Array, certificate: Certificate) -> Array:
    """The kernels that a longer α would use; at most as many new ones as used ones.

    At least FEWEST new ones may come; of MANY kernels GROWTH times as many.
    """
    v = enough_norms(problem, certificate.alpha, theta)
    longer = longer_at(problem, certificate)
    return some_of(problem, theta, v, min(LONGER, longer))


def longer_at(problem: Problem, certificate: Certificate) -> float:
    """How much longer α is taken: by the gap, because v is wrong by as much.

    Of MANY kernels LONGER: another round costs more than a larger W.
    """
    least = LEAST_LONGER if problem.grams.M <= MANY else LONGER - 1
    return 1 + max(certificate.relative_gap, least)


def some_of(
    problem: Problem,
    theta: Array,
    v: Array,
    longer: float = LONGER,
    fewest: int = FEWEST,
) -> Array:
    """The kernels that `longer` times α would use, but not too many new ones."""
    used, found = theta > 0, priced(problem, v, theta, longer)[1]
    times = GROWTH if problem.grams.M > MANY else 1
    most = max(fewest, times * int(np.count_nonzero(used)))
    new = at_most(np.where(used, 0.0, found), most)
    return np.flatnonzero((new > 0) | (used & (found > 0)))


def from_fewer_kernels(problem: Problem) -> tuple[Array, Array]:
    """θ and α of problems on more and more of the kernels (fewer_kernels.py)."""
    M = problem.grams.M
    theta, alpha = np.zeros(M), np.zeros(problem.shape)
    for count in sizes(M):
        kernels = np.union1d(spread(M, count), np.flatnonzero(theta))
        small = on_kernels(problem, kernels)
        start = (theta[kernels], alpha * small.scale) if np.any(theta) else None
        steps = active.steps(small.problem, start=start)
        found = coarse(small.problem, steps, COARSE_GAP, COARSE_ITERATES)
        theta, alpha = np.zeros(M), problem.feasible(found.alpha / small.scale)
        theta[kernels] = weights_of(found)
    return theta, alpha


def from_fewer_samples(
    problem: Problem, machine: Machine, which: Array
) -> tuple[Array, Array, Certificate | None]:
    """θ and W from the problem on some samples, then from steps on all samples.

    Also returned is the certificate of θ inside the first W. It is None, and θ = 0, if
    no kernel is in use.
    """
    small, theta = on_samples(problem, which), np.zeros(problem.grams.M)
    found = coarse(small, active.steps(small), COARSE_GAP, COARSE_ITERATES)
    own, machine.alpha = weights_of(found), on_all(problem, which, found.alpha)
    asked = lambda v: priced(small, v, own, COARSE_LONGER)[0]  # noqa: E731
    v = read_where(small, found.alpha, own > 0, asked)[0]
    W = some_of(small, own, v, COARSE_LONGER, COARSE_MOST)
    W = np.union1d(W, np.flatnonzero(own))
    if not np.any(own):
        return theta, W, None
    steps = Inside(problem, machine, W, own, None, False)
    for _ in range(FIRST_ITERATES):
        first = steps.advance()
        if first.relative_gap <= FIRST_GAP:
            break
        steps.shrink(first)
    theta[steps.W] = weights_of(first)
    few = steps.needed(first)
    return theta, few, first if np.any(theta) else None


def nearest(problem: Problem, v: Array) -> Array:
    """The kernels that prox_γΩ(v) uses first as γ falls, found by bisection in γ."""
    few = min(max(FEWEST, len(v) // FIRST_SHARE), LARGEST_FIRST)
    prox = problem.formulation.prox
    low, high = 0.0, max(float(np.max(v)), 1e-300)
    for _ in range(40):
        gamma = 0.5 * (low + high)
        found = np.flatnonzero(prox(v, gamma) > 0)
        if few <= len(found) <= 1.2 * few:
            return found
        low, high = (low, gamma) if len(found) < few else (gamma, high)
    return found if len(found) else np.arange(len(v))


def opening(problem: Problem, machine: Machine) -> Array:
    """The first θ, from the inner problem with equal weights."""
    M, orthant = problem.grams.M, "orthant" in problem.formulation.traits
    K = machine.combined(np.ones(M))
    size = first_size(problem, K) if orthant else 1 / M
    for _ in range(SIZE_SOLVES):
        alpha = machine.solve(np.full(M, size), K=size * K)
        if not orthant:
            break
        times = resized(problem, float(np.sum(alpha * (machine.K @ alpha))), size * M)
        size *= times
        if 1 / SIZE_FACTOR < times < SIZE_FACTOR or machine.work > 1:
            break
    v = problem.grams.norms(machine.point)
    theta, first = np.zeros(M), nearest(problem, v)
    power = FEATURE_POWER if problem.grams.in_feature_space else FIRST_POWER
    share = v[first] ** power
    share = share if np.any(share) else np.ones(len(first))  # all v are 0
    theta[first] = size * M * share / np.sum(share)
    return theta


def first_size(problem: Problem, K: Any) -> float:
    """The common weight for which predictions are about GOOD_PREDICTION.

    α is taken along a = −C V'(0), with the length that an average kernel allows:
    ‖α‖_K² = M.
    """
    slope = problem.loss.gradient(np.zeros(problem.shape), problem.y)
    a = problem.feasible(-problem.spread_costs * slope)
    Ka = K @ a
    length = np.sqrt(max(float(np.sum(a * Ka)), 1e-300) / problem.grams.M)
    return GOOD_PREDICTION * float(length) / max(float(np.mean(np.abs(Ka))), 1e-300)


def resized(problem: Problem, length: float, total: float) -> float:
    """The factor for all weights that minimizes J + cΣt, if J is as its inverse."""
    price = problem.formulation.orthant[0] * total
    return float(np.sqrt(max(0.5 * length / price, 1e-12)))


# ---- inside it -----------------------------------------------------------------------


def newton_inside(
    machine: Machine, theta: Array, certificate: Certificate | None, solved: bool
) -> Steps:
    """Newton's method in the weights of the working set, from θ on.

    solved: the inner problem is solved at θ
    """
    part = machine.problem
    if "orthant" in part.formulation.traits:
        oracle: Any = Orthant(part, machine)
        x = oracle.of_weights(theta)
    else:
        # θ_k = λ_kθ_j: λ is known up to a factor per group; the oracle gets the θ_j
        oracle = Oracle(part, *simplices(part), machine=machine)
        sums = oracle.sums(theta)
        if np.all(sums > 0):
            oracle.theta = sums
        x = np.where(sums[oracle.owner] > 0, theta, 1.0)
        solved = solved and bool(np.all(sums > 0)) and oracle.q < np.inf
    if certificate is not None:
        oracle.set_tolerance(certificate)
    return newton(oracle, x, solved)


def simplices(problem: Problem) -> tuple[Groups, float]:
    """The groups of kernels and q across them; a single simplex is one group."""
    M = problem.grams.M
    if "sums" in problem.formulation.traits:
        return problem.formulation.simplices(M)
    return (tuple(range(M)),), 1.0


class Inside:
    """Newton steps inside W, from θ on; W loses the kernels that are not needed.

    found: the certificate of θ, and `solved`: the inner problem is solved there
    """

    def __init__(
        self,
        problem: Problem,
        machine: Machine,
        W: Array,
        theta: Array,
        found: Certificate | None,
        solved: bool,
    ):
        self.problem, self.machine = problem, machine
        self._enter(W, theta[W], found, solved)

    def _enter(
        self, W: Array, theta: Array, found: Certificate | None, solved: bool
    ) -> None:
        self._last: Certificate | None = None
        self.W = W
        self.machine.enter(restricted(self.problem, W), W)
        self._steps = newton_inside(self.machine, theta, found, solved)

    def advance(self) -> Certificate:
        """The certificate inside W after one more iterate."""
        self.iterate = self._steps.send(self._last)  # type: ignore[arg-type]
        found = certify_iterate(self.machine.problem, self.iterate)
        self._last = found
        return found

    def needed(self, found: Certificate) -> Array:
        """The kernels of W in use, and those that a longer α would use."""
        theta, longer = weights_of(found), longer_at(self.problem, found)
        used = priced(self.machine.problem, self.machine.v, theta, longer)[0]
        return self.W[used | (theta > 0)]

    def shrink(self, found: Certificate) -> None:
        """Go on with the kernels that are needed, if these are far fewer."""
        W, few = self.needed(found), FEWER * len(self.W)
        if 0 < len(W) <= few and found.relative_gap <= SHRINK_GAP:
            theta = weights_of(found)[np.isin(self.W, W)]
            self._steps.close()
            self._enter(W, theta, found, True)

    def until(
        self, goal: float | None, often: bool
    ) -> Generator[Iterate, Certificate, Certificate]:
        """Iterates until the gap inside W is at most the goal; then the whole one.

        Without a goal it is SHARE of the first gap. `often`: the whole certificate
        after every iterate, which needs few reads near the end.
        """
        shown, before = self.machine.work, np.inf
        while True:
            found = self.advance()
            goal = SHARE * found.gap if goal is None else goal
            done = found.gap <= goal
            if done or often or self.machine.work >= shown + 1:
                info = self.iterate.info
                certificate = yield _enlarged(self.problem, self.W, found, info)
                shown = self.machine.work
            if done:
                return certificate
            if found.gap < before and found.weights is not None:
                self.shrink(found)
            before = found.gap


def _enlarged(problem: Problem, W: Array, found: Certificate, info: dict) -> Iterate:
    """A point of the restricted problem as a point of the whole problem."""
    if found.weights is not None or problem.grams.is_large:
        theta = np.zeros(problem.grams.M)
        theta[W] = weights_of(found)
        return Iterate(found.alpha, theta, info=info)
    if found.features is not None:
        owner = problem.grams.owner
        w = np.zeros((len(owner), *found.features.shape[1:]))
        w[np.isin(owner, W)] = found.features
        return Iterate(found.alpha, features=w, info=info)
    B = np.zeros((problem.grams.M, *problem.shape))
    B[W] = found.expansion
    return Iterate(found.alpha, coefficients=B, info=info)
