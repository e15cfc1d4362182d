"""Hypotheses: what may be wrong with a candidate, each of them certified.

A hypothesis changes one thing: the problem (another C, Ω, loss, no bias, one kernel or
sample left out) or the candidate (a sign, a factor, an order, the α that belongs to the
weights). It explains a failure when the changed pair is certified a hundred times
better, or thirty times and to ten times the tolerance. Then the words are not a guess:
they state for which problem the candidate IS optimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...certificates.certificate import certify
from ...formulations import Formulation, Loss, losses_by_name
from ...formulations.block_norm import BlockL1, BlockNorm
from ...formulations.fixed_weights import FixedWeights
from ...formulations.group_lasso import GroupLasso
from ...formulations.ivanov import Tikhonov
from ...formulations.lp_norm import LpNorm
from ...formulations.norms import INF, block_exponent
from ...grams.stack import GramStack
from ...problem import Problem
from ...util.tables import shown
from .case import Case, badness, distance
from .sandbox import Point

Array = np.ndarray
BETTER = 0.01  # α fits kernels in single precision so much better than the true ones
ANEW = 0.6  # what it counts when α or θ was computed anew
FREE = 1e4  # times C: as good as no bound on α
NEAR = 1e-3  # relative: numbers closer than this are called by the same name


@dataclass(frozen=True)
class Finding:
    """One explanation: what kind, in words, and what the changed pair is certified to.

    An observation without a changed pair certifies nothing: its badness is NaN. Where α
    or θ was computed anew the change is large and a success says less: share < 1.
    """

    kind: str
    words: str
    badness: float = math.nan
    share: float = 1.0


# ---- another problem ---------------------------------------------


def known_factors(problem: Problem) -> dict[str, float]:
    n, M = problem.grams.n, problem.grams.M
    return {
        "C/n": 1 / n, "n·C": n, "C/2": 0.5, "2·C": 2.0, "C/M": 1 / M, "M·C": M,
        "C/√2": 0.5**0.5, "√2·C": 2**0.5, "C/4": 0.25, "4·C": 4.0,
        "1/C": float(np.mean(problem.costs)) ** -2,
    }  # fmt: skip


def other_C(case: Case) -> Iterator[Finding]:
    """The usual suspects, and the C′ that α itself shows: −α = C′ V'(f)."""
    problem, C = case.problem, case.problem.costs
    if np.ndim(problem.C):
        words = "optimal with the mean of C for every sample: C per sample is ignored"
        yield Finding("other C", words, case.under(C=float(np.mean(C))))
    names, visible = known_factors(problem), _visible_factors(case)
    if visible and visible[0] > 1:
        words = f"C too large or α unbounded: optimal for every C′ ≥ {visible[0]:.4g}·C"
        found = Finding("other C", words, case.under(C=FREE * np.asarray(problem.C)))
        yield found
        if found.badness <= case.bar:  # then it is optimal for many of those below
            return
    for factor in (*names.values(), *visible):
        if not 0 < factor < INF or abs(factor - 1) < NEAR:
            continue
        close = [k for k, x in names.items() if abs(x / factor - 1) < NEAR]
        name = f"C′ = {close[0]}" if close else f"C′ = {factor:.4g}·C"
        words = f"objective of another C: optimal for {name}"
        if close and close[0] in ("C/2", "2·C"):
            words += ", as with a factor ½ lost or added"
        plain = case.under(C=factor * np.asarray(problem.C))
        yield Finding("other C", words, min(plain, case.stretched(factor)))


def _visible_factors(case: Case) -> list[float]:
    problem = case.problem
    if len(problem.shape) > 1:
        return []
    slope = -problem.costs * problem.loss.gradient(case.predictions, problem.y)
    pulled = np.abs(slope) > 1e-6 * np.max(np.abs(slope), initial=1e-300)
    ratios = case.dual[pulled] / slope[pulled]
    found = [float(np.max(np.abs(case.dual) / problem.costs))]
    return [*found, float(np.median(ratios))] if len(ratios) else found


def bias(case: Case) -> Iterator[Finding]:
    problem = case.problem
    if problem.bias:
        words = "bias missing: optimal for the problem without one"
        yield Finding("bias missing", words, case.under(bias=False))
    elif problem.loss.bias_allowed:
        words = "optimal for the problem with a bias, which has none"
        yield Finding("bias added", words, case.under(bias=True))


def other_formulation(case: Case) -> Iterator[Finding]:
    own = case.problem.formulation
    for other, hint in _neighbours(own, case):
        if other != own:
            words = "objective of another formulation: optimal for "
            words += f"{shown(other)}, not {shown(own)}"
            found = case.under(formulation=other)
            kind = "wrong groups" if "groups" in hint else "other formulation"
            yield Finding(kind, words + (f" ({hint})" if hint else ""), found)


def _neighbours(own: Formulation, case: Case) -> Iterator[tuple[Formulation, str]]:
    p = float(getattr(own, "p", math.nan))
    if 1 <= p < INF:
        exponents = {
            "q = 2p/(p+1) was taken for the exponent of the weights": block_exponent(p),
            "p was taken for the exponent of the block norm": p / (2 - p)
            if p < 2
            else 0,
            "the dual exponent was taken": p / (p - 1) if p > 1 else INF,
            "the weights follow another p": _visible_exponent(case),
        }
        for hint, x in exponents.items():
            if 1 <= x <= INF:
                yield replace(own, p=x), hint  # type: ignore[call-arg]
        if p >= 2:
            yield BlockNorm(p), "p was taken for the exponent of the block norm"
    q = float(getattr(own, "q", math.nan))
    if 1 <= q < INF:
        for x in (q / (q - 1) if q > 1 else INF, 2 * q, max(q / 2, 1.0)):
            yield replace(own, q=x), "another q"  # type: ignore[call-arg]
    if getattr(own, "groups", None):
        yield from _other_groups(own)
    yield LpNorm(INF), "uniform weights: none were learned"
    yield BlockL1(), "the squared norm" if isinstance(own, GroupLasso) else ""
    yield GroupLasso(), "the norm is not squared" if p == 1 else ""
    yield LpNorm(2.0), ""
    yield Tikhonov(p if p >= 1 else 1.0), "weights penalized, not bounded"


def _other_groups(own: Any) -> Iterator[tuple[Formulation, str]]:
    M = sum(map(len, own.groups))
    for way in (1, -1):
        moved = [tuple((k + way) % M for k in group) for group in own.groups]
        yield replace(own, groups=tuple(moved)), f"groups moved on by {way:+d} kernel"
    yield replace(own, groups=(tuple(range(M)),)), "all kernels in one of the groups"
    single = tuple((k,) for k in range(M))
    yield replace(own, groups=single), "groups of one kernel each"


def _visible_exponent(case: Case) -> float:
    """The p for which θ ∝ v^{2/(p−1)}, from the slope of log θ over log v."""
    theta, v = case.weights, case.v
    used = (theta > 1e-9 * np.max(theta)) & (v > 1e-9 * np.max(v))
    x, z = (
        np.log(np.where(used, v, 1.0))[used],
        np.log(np.where(used, theta, 1.0))[used],
    )
    if len(x) < 4 or np.ptp(x) < 1e-3:
        return math.nan
    slope, shift = np.polyfit(x, z, 1)
    fits = np.max(np.abs(slope * x + shift - z)) < 0.01 * np.ptp(z) + 1e-9
    return 1 + 2 / slope if fits and slope > 1e-6 else math.nan


def other_loss(case: Case) -> Iterator[Finding]:
    own = case.problem.loss
    for other in _other_losses(own):
        if other != own:
            words = "objective of another loss: optimal for "
            words += f"{shown(other, other.name)}, not {shown(own, own.name)}"
            yield Finding("other loss", words, case.under(loss=other))


def _other_losses(own: Loss) -> Iterator[Loss]:
    for field in fields(own):
        x = getattr(own, field.name)
        for value in (0.0, 1 - x, 2 * x, x / 2, 1.0, x**2):
            try:
                yield replace(own, **{field.name: value})
            except ValueError:
                continue
    for kind in losses_by_name().values():
        if kind.labels == own.labels:
            yield kind()


def ignored_kernels(case: Case) -> Iterator[Finding]:
    """Optimal for the stack without the kernels of weight 0."""
    used = case.weights > 1e-12 * np.max(case.weights, initial=0.0)
    if np.all(used) or not np.any(used):
        return
    B = case.point.coefficients
    part = replace(
        case.point,
        weights=None if case.point.weights is None else case.weights[used],
        coefficients=None if B is None else B[used],
    )
    try:
        other = case.problem.with_(grams=case.problem.grams.subset(used))
    except ValueError:  # a formulation with one parameter per kernel
        return
    missed = case.reference.weights > 1e-3 * np.max(case.reference.weights)
    names = ", ".join(map(str, np.flatnonzero(missed & ~used)))
    words = f"kernel {names} is ignored: optimal for the stack without it"
    yield Finding("kernel ignored", words, badness(other, part))


def ignored_samples(case: Case) -> Iterator[Finding]:
    """Optimal without the samples that pay a loss and yet have α = 0."""
    problem, point = case.problem, case.point
    if len(problem.shape) > 1 or point.weights is None or point.dual is None:
        return
    slope = problem.loss.gradient(case.predictions, problem.y)
    loss = problem.loss.value(case.predictions, problem.y)
    silent = (point.dual == 0) & (slope != 0) & (loss > 1e-3 * np.max(loss))
    keep = ~silent
    if not np.any(silent) or np.sum(silent) > len(keep) // 4:
        return
    try:
        other = Problem(
            GramStack(problem.grams.dense()[:, keep][:, :, keep]),
            problem.y[keep], problem.loss, problem.formulation, problem.costs[keep],
            bias=problem.bias,
        )  # fmt: skip
    except ValueError:  # a class may be left without samples
        return
    names = ", ".join(map(str, np.flatnonzero(silent)))
    words = f"sample {names} takes no part: optimal for the data without it"
    part = replace(point, dual=point.dual[keep])
    yield Finding("sample ignored", words, badness(other, part))


def single_precision(case: Case) -> Iterator[Finding]:
    """α of kernels rounded to float32, or numbers that are all float32."""
    problem, point = case.problem, case.point
    rounded = [a for a in (point.dual, point.weights) if a is not None and np.any(a)]
    if rounded and all(_is_single(a) for a in rounded) and case.badness < 1e-2:
        words = (
            f"single precision: all numbers given are float32, gap {case.badness:.1e}"
        )
        yield Finding("single precision", words, 0.0)
    if point.dual is None or case.badness > 1e-2:
        return
    K = problem.grams.combine(case.weights).astype(np.float32).astype(float)
    one = problem.with_(grams=GramStack(K[None]), formulation=FixedWeights((1.0,)))
    found = badness(one, Point(point.dual, np.ones(1)))
    fixed = problem.with_(formulation=FixedWeights(case.weights))
    inner = badness(fixed, Point(point.dual, case.weights))
    if found <= BETTER * inner:
        words = (
            f"single precision: α solves the machine on Σθ_mK_m rounded to float32 "
            f"to {found:.1e}, in double precision only to {inner:.1e}"
        )
        yield Finding("single precision", words, min(found, case.bar))


def _is_single(a: Array) -> bool:
    """Every number is a float32, and not because it is a short binary fraction."""
    short = np.round(a * 2**12) == a * 2**12
    return bool(np.all(a == a.astype(np.float32)) and not np.all(short))


# ---- another candidate -------------------------------------------


def wrong_sign(case: Case) -> Iterator[Finding]:
    dual, y = case.point.dual, case.problem.y
    if dual is None:
        return
    if case.problem.loss.labels == "binary":
        words = "α is given without the sign of the label: multiply it by y"
        yield Finding("label sign dropped", words, case.with_point(dual=y * dual))
        fixed = case.problem.with_(formulation=FixedWeights(case.weights))
        found = badness(fixed, Point(y * dual, case.weights))
        words += "; so it solves the machine at these weights, which are wrong too"
        yield Finding("label sign dropped", words, found, ANEW)
    words = "the sign of α is reversed: −α is certified"
    yield Finding("sign reversed", words, case.with_point(dual=-dual))


def infeasible(case: Case) -> Iterator[Finding]:
    """Right after repair: clipped and centred α is certified, the given one is not."""
    if case.point.dual is None:
        return
    off, words = distance(case.problem, case.point.dual)
    repaired = case.problem.feasible(case.point.dual)
    found = case.with_point(dual=repaired)
    if off**2 > case.tol:
        words = f"dual infeasible: {words}; repaired, the gap is {found:.1e}"
        yield Finding("dual infeasible", words, found)


def scaled_weights(case: Case) -> Iterator[Finding]:
    """θ = cθ₀, given so at the end (α is right) or used so all along (C′ = cC).

    The machine at cθ₀ with C is the one at θ₀ with cC, its α divided by c; and
    u = θ‖α‖_K is the same for both, so that c is θ over the weights that u asks for.
    """
    theta, problem = case.weights, case.problem
    if not np.any(theta) or case.point.weights is None:
        return
    asked = problem.formulation.weights(theta * case.v)
    good = (theta > 1e-6 * np.max(theta)) & np.isfinite(asked) & (asked > 0)
    ratios = [float(np.median(theta[good] / asked[good]))] if np.any(good) else []
    for c in (*ratios, _best_scale(case)):
        if not 1e-12 < c < 1e12 or abs(c - 1) < NEAR:
            continue
        words = f"weights not normalized: they are {c:.4g} times the right ones"
        yield Finding("not normalized", words, case.with_point(weights=theta / c))
        found = case.stretched(c)
        yield Finding(
            "not normalized", f"{words}, which acts like C′ = {c:.4g}·C", found
        )


def _best_scale(case: Case) -> float:
    """The c for which θ/c makes the best primal point."""

    def primal(log: float) -> float:
        weights = case.weights * math.exp(-log)
        return min(certify(case.problem, case.dual, weights).primal, 1e300)

    if case.point.dual is None or not np.all(case.weights >= 0):
        return 1.0
    found = minimize_scalar(primal, bounds=(-12.0, 12.0), method="bounded")
    return float(math.exp(found.x))


def permuted_weights(case: Case) -> Iterator[Finding]:
    """The right weights in another order, found by their ranks."""
    theta, right = case.weights, case.reference.weights
    if case.point.weights is None or len(theta) < 2:
        return
    order = np.empty(len(theta), int)
    order[np.argsort(right, kind="stable")] = np.argsort(theta, kind="stable")
    for way, name in ((order, ""), *_rolls(len(theta))):
        moved = theta[way]
        far = np.abs(moved - theta) > NEAR * np.max(np.abs(theta))
        if np.any(far):
            names = ", ".join(map(str, np.flatnonzero(far)))
            words = f"weights at the wrong kernels: {names} {name or 'change places'}"
            found = case.with_point(weights=moved)
            yield Finding("weights permuted", words, found)


def _rolls(M: int) -> Iterator[tuple[Array, str]]:
    for way in (1, -1):
        yield np.roll(np.arange(M), way), f"moved on by {-way}"


def stale(case: Case) -> Iterator[Finding]:
    """The machine solved again at θ is certified, or the weights that α asks for."""
    problem, point = case.problem, case.point
    if point.dual is None:
        return
    found, (off, words) = case.solved_again, distance(problem, point.dual)
    if off**2 > case.tol:
        words = f"dual infeasible: {words}; solved again, the gap is {found:.1e}"
        yield Finding("dual infeasible", words, found, ANEW)
    else:
        yield Finding("stale dual", _stale_words(case, found), found, ANEW)
    if "smooth_dual" in problem.formulation.traits:
        found = case.with_own_weights(problem)
        words = (
            "stale weights: those that belong to the dual are certified to "
            f"{found:.1e}, those returned to {case.badness:.1e}"
        )
        yield Finding("stale weights", words, found, ANEW)


def _stale_words(case: Case, found: float) -> str:
    for back, theta in enumerate(reversed(case.answer.earlier), 1):
        fixed = case.problem.with_(formulation=FixedWeights(theta))
        if badness(fixed, Point(case.point.dual, theta)) <= case.bar:
            which = "the iterate before" if back == 1 else f"{back} iterates before"
            return f"stale dual: it belongs to the weights of {which}"
    return (
        "stale or inexact dual: solved again at the returned weights, the machine "
        f"brings the gap from {case.badness:.1e} to {found:.1e}"
    )


HYPOTHESES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    wrong_sign, infeasible, bias, other_C, other_formulation, other_loss,
    scaled_weights, permuted_weights, ignored_kernels, ignored_samples,
    single_precision, stale,
)  # fmt: skip
