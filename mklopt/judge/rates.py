"""Rates: what a theorem claims of a run, held against the run.

A claim is an inequality with constants that are known before the first step,

    F(w_t) − f* ≤ bound(t, constants(problem))        on every iterate,

and f* is an interval, lower ≤ f* ≤ upper, so that there are four verdicts:

    holds          F(w_t) − lower ≤ bound(t) everywhere; `slack` is the least quotient
    violated       F(w_t) − upper > bound(t) at some t, which is named
    vacuous        it holds, and says no more than F(w_t) ≤ F(w_0)
    not testable   a constant does not exist here, or the interval is too wide to tell

A slope is never fitted: √(log t / t) fits −0.44, and an error of 1e-4 in f* turns −1
into −0.75. Superlinear claims are judged by ratios of errors that are far above the
width of the interval; claims in expectation by the mean over seeds, with one-sided
t intervals at all checkpoints together (Bonferroni) and the power of the test.

The radius. Theorems speak of ‖w_0 − w*‖. With w_0 = 0, Ω(u*) ≤ f* ≤ F(0) and, for
every s > 0, ⟨v, u⟩ ≤ (Ω(u) + Ω*(sv))/s, so that with v = 1 and v = e_m

    ‖w*‖² ≤ Σu* · max u* ≤ min_s (F(0) + Ω*(s1))/s · max_m min_s (F(0) + Ω*(s e_m))/s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import stdtrit

from ..problem import Problem
from ..run.loop import solve
from ..run.trace import Trace
from ..solvers import Unsupported
from ..solvers.mirror import lipschitz as gradient_bound
from ..solvers.steps.proximal_step import CERTIFIED_EVERY, lipschitz

Array = np.ndarray
Constants = dict[str, float]
ROUNDING = 1e-12  # of a value in the trace
FLOOR = 100.0  # widths of the interval below which an error is noise


class NotTestable(ValueError):
    """Why a claim says nothing about this problem."""


@dataclass(frozen=True)
class Verdict:
    claim: str
    status: str  # holds, violated, vacuous, not testable
    reason: str
    slack: float = float("nan")  # the least bound/error; below 1 where it is violated
    at: int | None = None  # the t of that iterate
    constants: Constants = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.claim}: {self.status} ({self.reason})"


# ---- the judges ----------------------------------------------------------------


def judge(t: Array, value: Array, bound: Array, lower: float, upper: float) -> Verdict:
    """value(t) − f* ≤ bound(t) for t ≥ 1; value[0] is where the run began."""
    t, value, bound = np.asarray(t), np.asarray(value, float), np.asarray(bound, float)
    noise = ROUNDING * np.abs(value)
    most, least = value + noise - lower, value - noise - upper
    start, later = float(most[0]), t >= 1
    if not np.any(later):
        return Verdict("", "not testable", "the trace has no iterate after the first")
    t, most, least, bound = t[later], most[later], least[later], bound[later]
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(most > 0, bound / most, np.inf)
    worst = int(np.argmin(quotient))
    slack, at = float(quotient[worst]), int(t[worst])
    broken = np.flatnonzero(least > bound)
    if len(broken):
        at = int(t[broken[0]])
        beyond = least[broken[0]] / bound[broken[0]]
        reason = f"at t = {at} the error is at least {beyond:.3g} times the bound"
        return Verdict("", "violated", reason, 1 / float(beyond), at)
    if np.any(most > bound):
        reason = f"f* is known to {upper - lower:.1e} only, too wide at t = {at}"
        return Verdict("", "not testable", reason, slack, at)
    if np.all(bound >= start):
        reason = f"the bound never falls below the error at the start, {start:.3g}"
        return Verdict("", "vacuous", reason, slack, at)
    reason = f"on all of {len(t)} iterates, by a factor of {slack:.3g} or more"
    return Verdict("", "holds", reason, slack, at)


def judge_monotone(value: Array) -> Verdict:
    """No value is above the one before it."""
    value = np.asarray(value, float)
    if len(value) < 2:
        return Verdict("", "not testable", "the trace has fewer than two iterates")
    rises = np.diff(value) - ROUNDING * np.abs(value[:-1])
    worst = int(np.argmax(rises))
    if rises[worst] > 0:
        reason = f"at t = {worst + 1} the value rises by {rises[worst]:.2e}"
        return Verdict("", "violated", reason, at=worst + 1)
    return Verdict("", "holds", f"over {len(value)} iterates no value rises")


def judge_superlinear(value: Array, lower: float, upper: float) -> Verdict:
    """e_{t+1}/e_t → 0: ratios of errors above the noise that fall, and end small.

    `slack` is the last ratio over the first: how far they have fallen.
    """
    errors = np.asarray(value, float) - lower
    noisy = errors <= FLOOR * (upper - lower)
    errors = errors[: int(np.argmax(noisy))] if np.any(noisy) else errors
    ratios = errors[1:] / errors[:-1]
    if len(ratios) < 4:
        reason = f"only {len(ratios)} ratios of errors are above the noise"
        return Verdict("", "not testable", reason)
    half = len(ratios) // 2
    fallen = float(ratios[-1] / ratios[0])
    rising = np.flatnonzero(np.diff(ratios[half:]) >= 0)
    if len(rising):
        at = half + int(rising[0]) + 1
        words = f"{ratios[at - 1]:.3g} to {ratios[at]:.3g}"
        reason = f"at t = {at} the ratio of errors goes from {words}"
        return Verdict("", "violated", reason, fallen, at)
    if ratios[-1] > 0.1:
        reason = f"ratios fall, but only to {ratios[-1]:.2g} before the noise"
        return Verdict("", "not testable", reason, fallen)
    reason = f"{len(ratios)} ratios of errors, from {ratios[0]:.2g} to {ratios[-1]:.2g}"
    return Verdict("", "holds", reason, fallen)


def judge_mean(
    t: Array,
    values: Array,
    bound: Array,
    lower: float,
    upper: float,
    *,
    start: float | None = None,
    level: float = 0.05,
) -> Verdict:
    """E[value(t)] − f* ≤ bound(t) from values[seed, checkpoint].

    All checkpoints together have the level. `slack` is the power: the same test would
    have refuted a bound smaller by this factor at the checkpoint `at`.
    """
    t, values, bound = np.asarray(t), np.asarray(values, float), np.asarray(bound)
    seeds, checkpoints = values.shape
    if seeds < 2:
        return Verdict("", "not testable", "one seed says nothing of a mean")
    mean = np.mean(values, axis=0)
    spread = uncertainty(values, level) + ROUNDING * np.abs(mean)
    high, low = mean + spread - lower, mean - spread - upper
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(low > 0, bound / low, np.inf)
    best = int(np.argmin(power))
    slack, at = float(power[best]), int(t[best])
    about = f"{seeds} seeds, {checkpoints} checkpoints, level {level:g}"
    if slack < 1:
        reason = f"{about}: at t = {at} the mean error is above the bound"
        return Verdict("", "violated", reason, slack, at)
    if np.any(high > bound):
        reason = f"{about}: the interval of the mean contains the bound"
        return Verdict("", "not testable", reason, slack, at)
    if start is not None and np.all(bound >= start - lower):
        reason = f"{about}: the bound never falls below the error at the start"
        return Verdict("", "vacuous", reason, slack, at)
    reason = f"{about}: a bound {slack:.3g} times smaller would have been refuted"
    return Verdict("", "holds", reason, slack, at)


def uncertainty(values: Array, level: float = 0.05) -> Array:
    """How far means over seeds may be off at all checkpoints together, one-sided."""
    seeds, checkpoints = values.shape
    width = float(-stdtrit(seeds - 1, level / checkpoints))  # Bonferroni
    return np.asarray(width * np.std(values, axis=0, ddof=1) / np.sqrt(seeds))


# ---- constants -------------------------------------------------------------------


def start_value(problem: Problem) -> float:
    """F(0), with the best bias: an upper bound of f* and so of Ω(u*)."""
    f, loss = np.zeros(problem.shape), problem.loss
    if problem.bias:
        f = f + loss.best_bias(f, problem.y, problem.costs)
    return float(problem.costs @ loss.value(f, problem.y))


def radius_squared(problem: Problem) -> float:
    """A bound of ‖w*‖² that is known before the first step."""
    M, budget = problem.grams.M, start_value(problem)
    total = _reach(problem, np.ones(M), budget)
    single = max(_reach(problem, v, budget) for v in np.eye(M))
    if not np.isfinite(total * single):
        raise NotTestable(f"{problem.formulation.name} does not bound ‖w*‖")
    return total * single


def _reach(problem: Problem, v: Array, budget: float) -> float:
    """sup ⟨v, u⟩ over Ω(u) ≤ budget, from above: min over s of (budget + Ω*(sv))/s."""
    conjugate = problem.formulation.conjugate
    price = lambda s: (budget + conjugate(np.exp(s) * v)) / np.exp(s)  # noqa: E731
    grid = np.linspace(-20.0, 20.0, 81)
    prices = np.array([price(s) for s in grid])
    best = int(np.argmin(prices))
    ends = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(lambda s: min(price(s), 1e300), bounds=ends)
    return float(min(prices[best], found.fun))  # every s gives a bound


def forward_constants(problem: Problem) -> Constants:
    if problem.loss.smoothness is None:
        raise NotTestable(f"the gradient of {problem.loss.name} has no constant")
    return {"L": lipschitz(problem), "R²": radius_squared(problem)}


def mirror_constants(problem: Problem) -> Constants:
    groups, _ = problem.formulation.simplices(problem.grams.M)
    try:
        L = gradient_bound(problem)
    except ValueError as reason:
        raise NotTestable(str(reason)) from None
    sizes = [len(group) for group in groups]
    return {"L": L, "Γ": float(np.sum(np.log(sizes))), "σ": 1 / len(sizes)}


def mirror_bound(t: Array, c: Constants) -> Array:
    """(Γ + Σs²L²/(2σ))/Σs with the steps s_t = √(2Γσ/t)/L."""
    last = int(np.max(t, initial=1))
    steps = np.sqrt(2 * c["Γ"] * c["σ"] / np.arange(1, last + 1)) / c["L"]
    above = c["Γ"] + np.cumsum(steps**2) * c["L"] ** 2 / (2 * c["σ"])
    return (above / np.cumsum(steps))[np.maximum(t, 1) - 1]


# ---- the claims ------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A statement about the runs of one solver, with the judge that can refute it."""

    name: str
    paper: str
    statement: str
    solver: str
    options: dict[str, Any]
    iterates: int
    decide: Callable[[Trace, Constants, float, float], Verdict]
    constants: Callable[[Problem], Constants] = lambda problem: {}  # a priori

    def check(
        self, problem: Problem, lower: float, upper: float, **options: Any
    ) -> Verdict:
        """Run the solver on a problem with lower ≤ f* ≤ upper, and judge the run."""
        try:
            known = self.constants(problem)
            limits: dict[str, Any] = {"tol": 0.0, "max_iter": self.iterates}
            run = solve(problem, self.solver, **limits, **{**self.options, **options})
        except (NotTestable, Unsupported) as reason:
            return Verdict(self.name, "not testable", str(reason))
        verdict = self.decide(run.trace, known, lower, upper)
        return replace(verdict, claim=self.name, constants=known)


def bounded(
    bound: Callable[[Array, Constants], Array], every: int = 1, first: int = 0
) -> Callable[[Trace, Constants, float, float], Verdict]:
    """The judge of value(t) − f* ≤ bound(t): row k of the trace is t = first + every·k.

    The value is the best so far: what the solver would return.
    """

    def decide(trace: Trace, known: Constants, lower: float, upper: float) -> Verdict:
        t = first + every * trace.iteration
        limit = np.full(len(t), np.inf)
        limit[t >= 1] = bound(t[t >= 1], known)
        return judge(t, np.minimum.accumulate(trace.primal), limit, lower, upper)

    return decide


def claims() -> dict[str, Claim]:
    """The claims about single runs, by name."""
    fixed = {"backtracking": False}
    found = (
        Claim(
            "ista",
            "Beck and Teboulle (2009), theorem 3.1; suzuki2009, section 4.1",
            "F(w_t) − f* ≤ L‖w*‖²/(2t)",
            "ista",
            fixed,
            60,
            bounded(lambda t, c: c["L"] * c["R²"] / (2 * t), every=CERTIFIED_EVERY),
            forward_constants,
        ),
        Claim(
            "fista",
            "Beck and Teboulle (2009), theorem 4.4",
            "F(w_t) − f* ≤ 2L‖w*‖²/(t + 1)²",
            "fista",
            {**fixed, "restart": False},
            60,
            bounded(
                lambda t, c: 2 * c["L"] * c["R²"] / (t + 1.0) ** 2,
                every=CERTIFIED_EVERY,
            ),
            forward_constants,
        ),
        Claim(
            "mirror",
            "aflalo2011, theorem 3.1 item 3, with the constant of papers/ERRATA.md",
            "min over s ≤ t of G(λ_s) − G* ≤ (Γ + Σs²L²/(2σ))/Σs, a priori L",
            "mirror",
            {"step": "lipschitz", "scale": 1.0, "iterate": "last", "polish": False},
            60,
            bounded(mirror_bound, first=1),
            mirror_constants,
        ),
        Claim(
            "analytic descent",
            "kloft2011, theorem 4",
            "with exact machines the objective never rises",
            "analytic",
            {"accelerate": None},
            60,
            lambda trace, known, lower, upper: judge_monotone(trace.primal),
        ),
        Claim(
            "spicy superlinear",
            "suzuki2009, section 3.1",
            "errors shrink by a factor that goes to 0 as γ_t grows",
            "spicy",
            {"schedule": "geometric", "gamma": 0.01, "growth": 3.0, "precision": 1e-6},
            12,
            lambda trace, known, lower, upper: judge_superlinear(
                trace.primal[1:], lower, upper
            ),
        ),
        Claim(
            "spg",
            "jain2012, section 4",
            "the objective tends to its minimum; no rate is claimed",
            "spg",
            {},
            1,
            lambda trace, known, lower, upper: Verdict(
                "", "not testable", "the paper states no rate, only convergence"
            ),
        ),
    )
    return {claim.name: claim for claim in found}
