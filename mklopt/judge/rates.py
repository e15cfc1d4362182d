"""Where a rate is checked: what a theorem claims of a run, against the run.

A claim is an inequality with constants that are known before the first step,

    F(w_t) − f* ≤ bound(t, constants(problem))        on every iterate,

and f* is an interval, lower ≤ f* ≤ upper. So a check has one of four results:

    holds          F(w_t) − lower ≤ bound(t) everywhere; `slack` is the least quotient
    violated       F(w_t) − upper > bound(t) at some t, which is named
    vacuous        it holds, and says no more than F(w_t) ≤ F(w_0)
    not testable   a constant does not exist here, or the interval is too wide to tell

A slope is never fitted: √(log t / t) fits −0.44, and an error of 1e-4 in f* turns −1
into −0.75. Superlinear claims are checked by ratios of errors that are far above the
width of the interval; claims in expectation by the mean over seeds, with one-sided
t intervals at all checkpoints together (Bonferroni) and the power of the test. The
bound itself can be compared with the exact worst case (worst_case.py).

The radius. Theorems speak of ‖w_0 − w*‖. With w_0 = 0, Ω(u*) ≤ f* ≤ F(0) and, for
every s > 0, ⟨v, u⟩ ≤ (Ω(u) + Ω*(sv))/s, so that with v = 1 and v = e_m

    ‖w*‖² ≤ Σu* · max u* ≤ min_s (F(0) + Ω*(s1))/s · max_m min_s (F(0) + Ω*(s e_m))/s.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from ..problem import Problem
from ..run.loop import solve
from ..run.trace import Trace
from ..solvers import Unsupported
from ..solvers.mirror import lipschitz as gradient_bound
from ..solvers.steps.proximal_step import CERTIFIED_EVERY, lipschitz
from .worst_case import METHODS, NotTestable, WorstCase, worst_case

Array = np.ndarray
Constants = dict[str, float]
ROUNDING = 1e-12  # relative error of a value in the trace
NOISE_WIDTHS = 100.0  # an error below so many widths of the interval is noise
MAX_SUPERLINEAR_RATIO = 0.1  # where the ratios of errors must end

RENAMED = {  # names of version 0.1, for one release
    "Claim": "RateClaim",
    "Verdict": "RateCheck",
    "judge": "check_bound",
    "judge_mean": "check_mean",
    "judge_monotone": "check_monotone",
    "judge_superlinear": "check_superlinear",
}


if not TYPE_CHECKING:  # to type checkers, names that are not here are errors

    def __getattr__(name: str) -> Any:
        if name not in RENAMED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        said = f"mklopt.rates.{name} is now {RENAMED[name]}; the old name goes with "
        warnings.warn(f"{said}the next release", DeprecationWarning, stacklevel=2)
        return globals()[RENAMED[name]]


@dataclass(frozen=True)
class RateCheck:
    """A checked rate.

    Parameters
    ----------
    claim : str
        The name of the claim.
    status : str
        "holds", "violated", "vacuous" or "not testable".
    reason : str
        Why, in words, with the numbers.
    slack : float
        The least bound/error; below 1 where it is violated.
    at : int or None
        The t of that iterate.
    constants : dict of str to float
        The constants in the bound.
    """

    claim: str
    status: str
    reason: str
    slack: float = float("nan")
    at: int | None = None
    constants: Constants = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.claim}: {self.status} ({self.reason})"


_unnamed = partial(RateCheck, "")  # the claim adds its own name


# ---- checks of single statements -------------------------------------------------


def check_bound(
    t: Array, value: Array, bound: Array, lower: float, upper: float
) -> RateCheck:
    """Check value(t) − f* ≤ bound(t) for t ≥ 1; value[0] is where the run began.

    Parameters
    ----------
    t, value, bound : array
        Step numbers, objective values and the claimed bound, of equal length.
    lower, upper : float
        lower ≤ f* ≤ upper.

    Returns
    -------
    RateCheck
    """
    t, value, bound = np.asarray(t), np.asarray(value, float), np.asarray(bound, float)
    if not np.any(t >= 1):
        return _unnamed("not testable", "the trace has no iterate after the first")
    noise = ROUNDING * np.abs(value)
    start = float(value[0] + noise[0] - lower)
    most, least = value + noise - lower, value - noise - upper
    t, most, least, bound = (x[t >= 1] for x in (t, most, least, bound))
    status = _status(least, most, bound, start)
    if status == "violated":
        first = int(np.argmax(least > bound))
        at, beyond = int(t[first]), float(least[first] / bound[first])
        reason = f"at t = {at} the error is at least {beyond:.3g} times the bound"
        return _unnamed(status, reason, 1 / beyond, at)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(most > 0, bound / most, np.inf)
    worst = int(np.argmin(quotient))
    slack, at = float(quotient[worst]), int(t[worst])
    reasons = {
        "not testable": f"f* is known to {upper - lower:.1e}, too wide at t = {at}",
        "vacuous": f"the bound never falls below the error at the start, {start:.3g}",
        "holds": f"on all of {len(t)} iterates, by a factor of {slack:.3g} or more",
    }
    return _unnamed(status, reasons[status], slack, at)


def _status(least: Array, most: Array, bound: Array, start: float | None) -> str:
    """What errors between least and most say of a bound; start: the first error."""
    if np.any(least > bound):
        return "violated"
    if np.any(most > bound):
        return "not testable"
    vacuous = start is not None and np.all(bound >= start)
    return "vacuous" if vacuous else "holds"


def check_monotone(value: Array) -> RateCheck:
    """Check that no value is above the one before it.

    Parameters
    ----------
    value : array
        The values, one per iterate.

    Returns
    -------
    RateCheck
        Holds, or violated at the largest rise.
    """
    value = np.asarray(value, float)
    if len(value) < 2:
        return _unnamed("not testable", "the trace has fewer than two iterates")
    rises = np.diff(value) - ROUNDING * np.abs(value[:-1])
    worst = int(np.argmax(rises))
    if rises[worst] > 0:
        reason = f"at t = {worst + 1} the value rises by {rises[worst]:.2e}"
        return _unnamed("violated", reason, at=worst + 1)
    return _unnamed("holds", f"over {len(value)} iterates no value rises")


def check_superlinear(value: Array, lower: float, upper: float) -> RateCheck:
    """Check e_{t+1}/e_t → 0: ratios of errors above the noise fall, and end small.

    `slack` is the last ratio over the first: how far they have fallen.

    Parameters
    ----------
    value : array
        The values, one per iterate.
    lower, upper : float
        The interval that f* lies in.

    Returns
    -------
    RateCheck
        What the ratios say.
    """
    errors = np.asarray(value, float) - lower
    noisy = errors <= NOISE_WIDTHS * (upper - lower)
    errors = errors[: int(np.argmax(noisy))] if np.any(noisy) else errors
    ratios = errors[1:] / errors[:-1]
    if len(ratios) < 4:
        reason = f"only {len(ratios)} ratios of errors are above the noise"
        return _unnamed("not testable", reason)
    half, fallen = len(ratios) // 2, float(ratios[-1] / ratios[0])
    rising = np.flatnonzero(np.diff(ratios[half:]) >= 0)
    if len(rising):
        at = half + int(rising[0]) + 1
        words = f"{ratios[at - 1]:.3g} to {ratios[at]:.3g}"
        reason = f"at t = {at} the ratio of errors goes from {words}"
        return _unnamed("violated", reason, fallen, at)
    if ratios[-1] > MAX_SUPERLINEAR_RATIO:
        reason = f"ratios fall, but only to {ratios[-1]:.2g} before the noise"
        return _unnamed("not testable", reason, fallen)
    reason = f"{len(ratios)} ratios of errors, from {ratios[0]:.2g} to {ratios[-1]:.2g}"
    return _unnamed("holds", reason, fallen)


def check_mean(
    t: Array,
    values: Array,
    bound: Array,
    lower: float,
    upper: float,
    *,
    start: float | None = None,
    level: float = 0.05,
) -> RateCheck:
    """Check E[value(t)] − f* ≤ bound(t) from values[seed, checkpoint].

    All checkpoints together have the level. `slack` is the power: the same test would
    have refuted a bound smaller by this factor at the checkpoint `at`.

    Parameters
    ----------
    t, bound : array
        Step numbers and the claimed bound, one per checkpoint.
    values : array
        Objective values, one row per seed.
    lower, upper : float
        lower ≤ f* ≤ upper.
    start : float, optional
        The value where the runs began: with it a bound may be vacuous.
    level : float
        The probability to refute a true claim, at most.

    Returns
    -------
    RateCheck
    """
    t, values, bound = np.asarray(t), np.asarray(values, float), np.asarray(bound)
    seeds, checkpoints = values.shape
    if seeds < 2:
        return _unnamed("not testable", "one seed says nothing of a mean")
    mean = np.mean(values, axis=0)
    spread = uncertainty(values, level) + ROUNDING * np.abs(mean)
    high, low = mean + spread - lower, mean - spread - upper
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(low > 0, bound / low, np.inf)
    best = int(np.argmin(power))
    slack, at = float(power[best]), int(t[best])
    status = _status(low, high, bound, None if start is None else start - lower)
    reasons = {
        "violated": f"at t = {at} the mean error is above the bound",
        "not testable": "the interval of the mean contains the bound",
        "vacuous": "the bound never falls below the error at the start",
        "holds": f"a bound {slack:.3g} times smaller would have been refuted",
    }
    about = f"{seeds} seeds, {checkpoints} checkpoints, level {level:g}"
    return _unnamed(status, f"{about}: {reasons[status]}", slack, at)


def uncertainty(values: Array, level: float = 0.05) -> Array:
    """How far means over seeds may be off at all checkpoints together, one-sided.

    Parameters
    ----------
    values : array (seeds, checkpoints)
        One value per seed and checkpoint.
    level : float
        The probability that a mean is further off.

    Returns
    -------
    array (checkpoints,)
        The half-widths, by Student's t and Bonferroni.
    """
    seeds, checkpoints = values.shape
    width = float(-stdtrit(seeds - 1, level / checkpoints))  # Bonferroni
    return np.asarray(width * np.std(values, axis=0, ddof=1) / np.sqrt(seeds))


# ---- constants -------------------------------------------------------------------


def start_value(problem: Problem) -> float:
    """F(0), with the best bias: an upper bound of f* and so of Ω(u*).

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    float
        The value.
    """
    f, loss = np.zeros(problem.shape), problem.loss
    if problem.bias:
        f = f + loss.best_bias(f, problem.y, problem.costs)
    return float(problem.costs @ loss.value(f, problem.y))


def radius_squared(problem: Problem) -> float:
    """A bound of ‖w*‖² that is known before the first step.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    NotTestable
        If the formulation does not bound ‖w*‖.
    """
    M, value = problem.grams.M, start_value(problem)
    total = _sup_on_level_set(problem, np.ones(M), value)
    single = max(_sup_on_level_set(problem, v, value) for v in np.eye(M))
    if not np.isfinite(total * single):
        raise NotTestable(f"{problem.formulation.name} does not bound ‖w*‖")
    return total * single


def _sup_on_level_set(problem: Problem, v: Array, value: float) -> float:
    """sup ⟨v, u⟩ over Ω(u) ≤ value, from above: min over s of (value + Ω*(sv))/s."""
    from scipy.optimize import minimize_scalar

    def bound(log_s: float) -> float:
        s = np.exp(log_s)
        return min((value + problem.formulation.conjugate(s * v)) / s, 1e300)

    grid = np.linspace(-20.0, 20.0, 81)
    best = int(np.argmin([bound(x) for x in grid]))
    ends = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = min(bound(grid[best]), minimize_scalar(bound, bounds=ends).fun)
    return float(found) if found < 1e300 else np.inf  # every s gives a bound


def no_constants(problem: Problem) -> Constants:
    """For claims without constants.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    dict of str to float
        Nothing.
    """
    return {}


def forward_constants(problem: Problem) -> Constants:
    """L and ‖w*‖² of proximal gradient steps.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    dict of str to float
        "L" and "R²".

    Raises
    ------
    NotTestable
        If the loss has no Lipschitz gradient.
    """
    if problem.loss.smoothness is None:
        raise NotTestable(f"the gradient of {problem.loss.name} has no constant")
    return {"L": lipschitz(problem), "R²": radius_squared(problem)}


def mirror_constants(problem: Problem) -> Constants:
    """L, Γ and σ of mirror descent on a product of simplices.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    dict of str to float
        "L", "Γ" and "σ".

    Raises
    ------
    NotTestable
        If the gradient has no bound.
    """
    groups, _ = problem.formulation.simplices(problem.grams.M)
    try:
        L = gradient_bound(problem)
    except ValueError as reason:
        raise NotTestable(str(reason)) from None
    sizes = [len(group) for group in groups]
    return {"L": L, "Γ": float(np.sum(np.log(sizes))), "σ": 1 / len(sizes)}


def mirror_bound(t: Array, c: Constants) -> Array:
    """(Γ + Σs²L²/(2σ))/Σs with the steps s_t = √(2Γσ/t)/L.

    Parameters
    ----------
    t : array of int
        The numbers of steps.
    c : dict of str to float
        What `mirror_constants` returned.

    Returns
    -------
    array
        The bound after each number of steps.
    """
    last = int(np.max(t, initial=1))
    steps = np.sqrt(2 * c["Γ"] * c["σ"] / np.arange(1, last + 1)) / c["L"]
    above = c["Γ"] + np.cumsum(steps**2) * c["L"] ** 2 / (2 * c["σ"])
    return (above / np.cumsum(steps))[np.maximum(t, 1) - 1]


# ---- the claims ------------------------------------------------------------------

Decide = Callable[[Trace, Constants, float, float], RateCheck]


@dataclass(frozen=True)
class RateClaim:
    """A statement about the runs of one solver, with the check that can refute it.

    Parameters
    ----------
    name, paper, statement : str
        What it is called, where it is printed, and the inequality.
    solver : str
        The solver whose runs it speaks of.
    options : dict
        The options of the solver for which it is claimed.
    iterates : int
        The number of iterates that a run is checked over.
    decide : callable
        (trace, constants, lower, upper) → RateCheck.
    constants : callable
        problem → the constants in the bound, known before the first step.
    method : str
        The method of `worst_case` whose bound is claimed; empty: none of them.
    """

    name: str
    paper: str
    statement: str
    solver: str
    options: dict[str, Any]
    iterates: int
    decide: Decide
    constants: Callable[[Problem], Constants] = no_constants
    method: str = ""

    def check(
        self, problem: Problem, lower: float, upper: float, **options: Any
    ) -> RateCheck:
        """Run the solver on a problem, and check the claim on its trace.

        Parameters
        ----------
        problem : Problem
            What the solver is run on.
        lower, upper : float
            lower ≤ f* ≤ upper, from a reference or a certificate.
        **options
            Other options of the solver than those of the claim.

        Returns
        -------
        RateCheck
        """
        try:
            known = self.constants(problem)
            limits: dict[str, Any] = {"tol": 0.0, "max_iter": self.iterates}
            run = solve(problem, self.solver, **limits, **{**self.options, **options})
        except (NotTestable, Unsupported) as reason:
            return RateCheck(self.name, "not testable", str(reason))
        found = self.decide(run.trace, known, lower, upper)
        return replace(found, claim=self.name, constants=known)

    def worst_case(self, t: int) -> WorstCase:
        """Compare the claimed bound with the exact worst case after t steps.

        Parameters
        ----------
        t : int
            The number of steps, at least 1.

        Returns
        -------
        WorstCase

        Raises
        ------
        NotTestable
            If no worst case is known for this claim, or PEPit is not installed.
        """
        if not self.method:
            raise NotTestable(f"no worst case is known for the claim {self.name!r}")
        return worst_case(self.method, t)


def bounded(
    bound: Callable[[Array, Constants], Array], every: int = 1, first: int = 0
) -> Decide:
    """The check of value(t) − f* ≤ bound(t): row k of the trace is t = first + every·k.

    The value is the best so far: what the solver would return.

    Parameters
    ----------
    bound : callable
        (t, constants) → the bound after each number of steps.
    every : int
        Steps between two iterates.
    first : int
        The number of steps at the first iterate.

    Returns
    -------
    callable
        (trace, constants, lower, upper) → RateCheck.
    """

    def decide(trace: Trace, known: Constants, lower: float, upper: float) -> RateCheck:
        t = first + every * trace.iteration
        limit = np.full(len(t), np.inf)
        limit[t >= 1] = bound(t[t >= 1], known)
        return check_bound(t, np.minimum.accumulate(trace.primal), limit, lower, upper)

    return decide


def _as_in_worst_case(method: str) -> Decide:
    """The bound that worst_case.py has for L = ‖w*‖ = 1, times L‖w*‖²."""
    _, bound = METHODS[method]
    return bounded(lambda t, c: c["L"] * c["R²"] * bound(t), every=CERTIFIED_EVERY)


def claims() -> dict[str, RateClaim]:
    """The claims about single runs, by name."""
    ista, fista = "proximal gradient", "accelerated proximal gradient"
    found = (
        RateClaim(
            "ista",
            "Beck and Teboulle (2009), theorem 3.1; suzuki2009, section 4.1",
            "F(w_t) − f* ≤ L‖w*‖²/(2t)",
            "ista",
            {"backtracking": False},
            60,
            _as_in_worst_case(ista),
            forward_constants,
            ista,
        ),
        RateClaim(
            "fista",
            "Beck and Teboulle (2009), theorem 4.4",
            "F(w_t) − f* ≤ 2L‖w*‖²/(t + 1)²",
            "fista",
            {"backtracking": False, "restart": False},
            60,
            _as_in_worst_case(fista),
            forward_constants,
            fista,
        ),
        RateClaim(
            "mirror",
            "aflalo2011, theorem 3.1 item 3, with the constant of papers/ERRATA.md",
            "min over s ≤ t of G(λ_s) − G* ≤ (Γ + Σs²L²/(2σ))/Σs, a priori L",
            "mirror",
            {"step": "lipschitz", "scale": 1.0, "iterate": "last", "polish": False},
            60,
            bounded(mirror_bound, first=1),
            mirror_constants,
        ),
        RateClaim(
            "analytic descent",
            "kloft2011, theorem 4",
            "with exact SVM solutions the objective never rises",
            "analytic",
            {"accelerate": None},
            60,
            lambda trace, *_: check_monotone(trace.primal),
        ),
        RateClaim(
            "spicy superlinear",
            "suzuki2009, section 3.1",
            "errors shrink by a factor that goes to 0 as γ_t grows",
            "spicy",
            {"schedule": "geometric", "gamma": 0.01, "growth": 3.0, "precision": 1e-6},
            12,
            lambda trace, _, *ends: check_superlinear(trace.primal[1:], *ends),
        ),
        RateClaim(
            "spg",
            "jain2012, section 4",
            "the objective tends to its minimum; no rate is claimed",
            "spg",
            {},
            1,
            lambda *_: _unnamed("not testable", "the paper claims convergence alone"),
        ),
    )
    return {claim.name: claim for claim in found}
