"""Hypotheses that change the problem: another C, loss, Ω, bias, kernels or samples.

Each says for which other problem the candidate is certified (hypotheses.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ...formulations import Formulation, Loss, losses_by_name
from ...formulations.block_norm import BlockL1, BlockNorm
from ...formulations.fixed_weights import FixedWeights
from ...formulations.group_lasso import GroupLasso
from ...formulations.ivanov import Tikhonov
from ...formulations.losses.margin import SquaredHinge
from ...formulations.losses.residual import Squared
from ...formulations.lp_norm import LpNorm
from ...formulations.norms import INF, block_exponent
from ...grams.stack import GramStack
from ...problem import Problem
from ...util.tables import shown
from .answer import Candidate
from .case import (
    EXPLAINED,
    Case,
    Explanation,
    Explanations,
    error_of,
)

Array = np.ndarray
UNBOUNDED = 1e4  # times C: as good as no bound on α
SAME_FACTOR = 1e-6  # relative: factors of C closer than this are the same
MAX_NUMBERS = 10**7  # in kernels that are normalized for a hypothesis
MAX_ROUNDED_ERROR = 1e-2  # a larger error does not come from single precision


def known_factors(problem: Problem) -> dict[str, float]:
    """The factors by which C is often wrong, by name."""
    n, M, square = problem.grams.n, problem.grams.M, np.mean(problem.costs) ** 2
    return {
        "C/n": 1 / n, "n·C": n, "C/2": 0.5, "2·C": 2.0, "C/M": 1 / M, "M·C": M,
        "C/√2": 0.5**0.5, "√2·C": 2**0.5, "C/4": 0.25, "4·C": 4.0,
        "1/C": 1 / square, "1/(n·C)": 1 / (n * square), "1/(2·C)": 1 / (2 * square),
        "1/(2·n·C)": 1 / (2 * n * square), "C/(2·n)": 1 / (2 * n),
    }  # fmt: skip


HINTS = {  # how another C comes about
    "C/n": "the loss was averaged over the samples",
    "1/C": "C was taken for λ of λ Ω + Σ V",
    "1/(n·C)": "λ = 1/(nC): C was taken for λ of λ Ω + (1/n) Σ V",
    "C/2": "a factor ½ was lost or added",
    "2·C": "a factor ½ was lost or added",
}


def other_C(case: Case) -> Explanations:
    """The usual factors, and the C′ that α itself shows: −α = C′ V'(f)."""
    problem, C = case.problem, np.asarray(case.problem.C)
    if C.ndim:
        words = "optimal with the mean of C for every sample: C per sample is ignored"
        yield Explanation("other C", words, case.under(C=float(np.mean(C))))
    names, visible = known_factors(problem), _visible_factors(case)
    if visible and visible[0] > 1:
        words = f"C too large or α unbounded: optimal for every C′ ≥ {visible[0]:.4g}·C"
        such = [name for name, x in names.items() if x >= visible[0]]
        words += f", such as {', '.join(such)}" if such else ""
        found = Explanation("other C", words, case.under(C=UNBOUNDED * C))
        yield found
        if found.error <= case.explained:  # then it is optimal for many of those below
            return
    for factor in (*names.values(), *visible):
        if not 0 < factor < INF or abs(factor - 1) < SAME_FACTOR:
            continue
        close = [k for k, x in names.items() if abs(x / factor - 1) < SAME_FACTOR]
        name = " = ".join(close) if close else f"{factor:.6g}·C"
        words = f"objective of another C: optimal for C′ = {name}"
        hints = [HINTS[name] for name in close if name in HINTS]
        words += f", as if {' or '.join(hints)}" if hints else ""
        error = min(case.under(C=factor * C), case.stretched(factor))
        yield Explanation("other C", words, error)


def _visible_factors(case: Case) -> list[float]:
    """max |α|/C, and the median of α/(−C V'(f)) where that is not 0."""
    problem = case.problem
    if len(problem.shape) > 1:
        return []
    slope = -problem.costs * problem.loss.gradient(case.predictions, problem.y)
    pulled = np.abs(slope) > 1e-6 * np.max(np.abs(slope), initial=1e-300)
    ratios = case.dual[pulled] / slope[pulled]
    found = [float(np.max(np.abs(case.dual) / problem.costs))]
    return [*found, float(np.median(ratios))] if len(ratios) else found


def other_C_per_class(case: Case) -> Explanations:
    """Another C for the samples of either label, as large as α shows."""
    problem, y = case.problem, case.problem.y
    if problem.loss.labels != "binary" or case.given.dual is None:
        return
    shares = np.abs(case.dual) / problem.costs
    tops = [float(np.max(shares[y == label], initial=0.0)) for label in (1, -1)]
    shares = [len(y) / max(2 * int(np.sum(y == label)), 1) for label in (1, -1)]
    pairs = [shares, tops, [tops[0], 1.0], [1.0, tops[1]]]
    for plus, minus in [p for p in pairs if abs(p[0] - p[1]) > SAME_FACTOR]:
        words = (
            f"optimal for C′ = {plus:.6g}·C where y = 1 and {minus:.6g}·C where y = −1"
        )
        if np.allclose([plus, minus], shares, rtol=1e-6):
            words += ", which are balanced class weights, n/(2 n_class)"
        if min(plus, minus) > 0:
            C = problem.costs * np.where(y > 0, plus, minus)
            yield Explanation("other C per class", words, case.under(C=C))


def bias(case: Case) -> Explanations:
    """Optimal without the bias, or with one, or with a penalty on it."""
    if case.problem.bias:
        words = "bias missing: optimal for the problem without one"
        found = Explanation("bias missing", words, case.under(bias=False))
        yield found
        if found.error > case.explained:  # no bias is one with an infinite price
            yield from _bias_with_a_price(case)
    elif case.problem.loss.bias_allowed:
        words = "bias added: optimal for the problem with a bias; it has none"
        yield Explanation("bias added", words, case.under(bias=True))


def _bias_with_a_price(case: Case) -> Explanations:
    """α of λb²/2 + …: it solves the SVM without a bias on Σθ_mK_m + 1/λ."""
    problem, total = case.problem, float(np.sum(case.dual))
    if len(problem.shape) > 1 or case.given.dual is None or total == 0:
        return
    K = problem.grams.combine(np.maximum(case.weights, 0.0))
    f = K @ case.dual
    b = float(problem.loss.best_bias(f, problem.y, problem.costs))
    fixed: Any = {"bias": False, "formulation": FixedWeights((1.0,))}
    for inverse in (1.0, b / total):
        if not 1e-12 < inverse < 1e12:
            continue
        raised = problem.with_(grams=GramStack((K + inverse)[None]), **fixed)
        words = (
            f"bias regularized: α solves the SVM with {1 / inverse:.4g}/2·b² added, at "
            f"these weights; Σα = {total:.3g}"
        )
        error = error_of(raised, Candidate(case.dual, np.ones(1)))
        yield Explanation("bias regularized", words, error)


def other_formulation(case: Case) -> Explanations:
    """Optimal for a formulation that is easily mistaken for this one."""
    own = case.problem.formulation
    for other, hint in _neighbours(own, case):
        if other != own:
            words = "objective of another formulation: optimal for "
            words += f"{shown(other)}, not {shown(own)}" + f" ({hint})" * bool(hint)
            kind = "wrong groups" if "groups" in hint else "other formulation"
            yield Explanation(kind, words, case.under(formulation=other))


def _neighbours(own: Any, case: Case) -> Iterator[tuple[Formulation, str]]:
    p, q = (float(getattr(own, name, math.nan)) for name in "pq")
    as_block_norm = "p was taken for the exponent of the block norm"
    if 1 <= p < INF:
        seen = _visible_exponent(case)
        exponents = {
            "q = 2p/(p+1) was taken for the exponent of the weights": block_exponent(p),
            as_block_norm: p / (2 - p) if p < 2 else math.nan,
            "the dual exponent was taken": p / (p - 1) if p > 1 else INF,
            "the weights follow another p": seen,
            "the weights follow p rounded to one decimal": round(seen, 1),
        }
        for hint, x in exponents.items():
            if x >= 1:
                yield replace(own, p=x), hint
        if p >= 2:
            yield BlockNorm(p), as_block_norm
    if 1 <= q < INF:
        for x in (q / (q - 1) if q > 1 else INF, 2 * q, max(q / 2, 1.0)):
            yield replace(own, q=x), "another q"
    if getattr(own, "groups", None):
        for groups, hint in _other_groups(own.groups):
            yield replace(own, groups=groups), hint
    yield LpNorm(INF), "uniform weights: none were learned"
    yield BlockL1(), "the squared norm" if isinstance(own, GroupLasso) else ""
    yield GroupLasso(), "the norm is not squared" if p == 1 else ""
    yield LpNorm(2.0), ""
    yield Tikhonov(p if p >= 1 else 1.0), "weights penalized, not bounded"


def _other_groups(groups: tuple) -> Iterator[tuple[tuple, str]]:
    M = sum(map(len, groups))
    for way in (1, -1):
        moved = tuple(tuple((k + way) % M for k in group) for group in groups)
        yield moved, f"groups moved on by {way:+d} kernel"
    yield (tuple(range(M)),), "all kernels in one of the groups"
    yield tuple((k,) for k in range(M)), "groups of one kernel each"


def _visible_exponent(case: Case) -> float:
    """The p for which θ ∝ v^{2/(p−1)}, from the slope of log θ over log v."""
    theta, v = case.weights, case.v
    used = (theta > 1e-9 * np.max(theta)) & (v > 1e-9 * np.max(v))
    x, z = np.log(v[used]), np.log(theta[used])
    if len(x) < 4 or np.ptp(x) < 1e-3:
        return math.nan
    slope, shift = np.polyfit(x, z, 1)
    fits = np.max(np.abs(slope * x + shift - z)) < 0.01 * np.ptp(z) + 1e-9
    return 1 + 2 / slope if fits and slope > 1e-6 else math.nan


def other_loss(case: Case) -> Explanations:
    """Optimal for a loss with other parameters, or for another loss."""
    own, C = case.problem.loss, np.asarray(case.problem.C)
    for other in _other_losses(own):
        if other != own:
            words = "objective of another loss: optimal for "
            words += f"{shown(other, other.name)}, not {shown(own, own.name)}"
            yield Explanation("other loss", words, case.under(loss=other))
            if isinstance(other, Squared | SquaredHinge):
                error, words = (
                    case.under(loss=other, C=2 * C),
                    words + ", without its ½",
                )
                yield Explanation("other loss", words, error)


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
    if own.labels == "binary":
        yield from (SquaredHinge(), Squared())


def other_kernels(case: Case) -> Explanations:
    """Optimal for kernels that are normalized; θ for these, or for the given ones."""
    grams, given = case.problem.grams, case.given
    if grams.M * grams.n**2 > MAX_NUMBERS:
        return
    K = np.asarray(grams.dense())
    for name, change in NORMALIZATIONS.items():
        with np.errstate(all="ignore"):
            changed = change(K)
        if not np.all(np.isfinite(changed)) or np.allclose(changed, K):
            continue
        words = f"kernels normalized inside: optimal for kernels {name}"
        stack = GramStack((changed + changed.transpose(0, 2, 1)) / 2)
        yield Explanation("kernels normalized", words, case.under(grams=stack))
        scales = np.max(np.abs(changed), axis=(1, 2)) / np.max(np.abs(K), axis=(1, 2))
        if given.weights is not None and np.allclose(
            changed, scales[:, None, None] * K
        ):
            back = replace(given, weights=given.weights / scales)
            error = error_of(case.problem.with_(grams=stack), back)
            words += ", with weights for the kernels as given"
            yield Explanation("kernels normalized", words, error)


def _traces(K: Array) -> Array:
    return np.einsum("mii->m", K)[:, None, None]


def _to_sphere(K: Array) -> Array:
    roots = np.sqrt(np.einsum("mii->mi", K))
    return K / (roots[:, :, None] * roots[:, None])


def _centred(K: Array) -> Array:
    rows = np.mean(K, axis=1, keepdims=True)
    return K - rows - rows.transpose(0, 2, 1) + np.mean(rows, axis=2, keepdims=True)


def _variances(K: Array) -> Array:
    return _traces(_centred(K)) / K.shape[1]


NORMALIZATIONS: dict[str, Callable[[Array], Array]] = {
    "of trace n": lambda K: K * K.shape[1] / _traces(K),
    "of trace 1": lambda K: K / _traces(K),
    "with a unit diagonal": _to_sphere,
    "that are centred": _centred,
    "of variance 1": lambda K: K / _variances(K),
    "that are centred, of trace n": lambda K: _centred(K) / _variances(K),
    "that are centred, of trace 1": lambda K: (
        _centred(K) / (_variances(K) * K.shape[1])
    ),
    "of Frobenius norm 1": lambda K: K / np.linalg.norm(K, axis=(1, 2))[:, None, None],
    "with the largest entry 1": lambda K: K / np.max(K, axis=(1, 2))[:, None, None],
}


def ignored_kernels(case: Case) -> Explanations:
    """Optimal for the stack without the kernels of weight 0."""
    used = case.weights > 1e-12 * np.max(case.weights, initial=0.0)
    if np.all(used) or not np.any(used):
        return
    theta, B = case.given.weights, case.given.coefficients
    theta, B = (None if part is None else part[used] for part in (theta, B))
    other = case.problem.with_(grams=case.problem.grams.subset(used))
    missed = case.best_weights > 1e-3 * np.max(case.best_weights)
    names = ", ".join(map(str, np.flatnonzero(missed & ~used)))
    words = f"kernel {names} is ignored: optimal for the stack without it"
    error = error_of(other, replace(case.given, weights=theta, coefficients=B))
    yield Explanation("kernel ignored", words, error)


def ignored_samples(case: Case) -> Explanations:
    """Optimal without the samples that pay a loss and yet have α = 0."""
    problem, given = case.problem, case.given
    if len(problem.shape) > 1 or given.weights is None or given.dual is None:
        return
    slope = problem.loss.gradient(case.predictions, problem.y)
    loss = problem.loss.value(case.predictions, problem.y)
    silent = (given.dual == 0) & (slope != 0) & (loss > 1e-3 * np.max(loss))
    keep = ~silent
    if not np.any(silent) or np.sum(silent) > len(keep) // 4:
        return
    grams = GramStack(problem.grams.dense()[:, keep][:, :, keep])
    other = problem.with_(grams=grams, y=problem.y[keep], C=problem.costs[keep])
    names = ", ".join(map(str, np.flatnonzero(silent)))
    words = f"sample {names} takes no part: optimal for the data without it"
    error = error_of(other, replace(given, dual=given.dual[keep]))
    yield Explanation("sample ignored", words, error)


def single_precision(case: Case) -> Explanations:
    """α of kernels rounded to float32, or numbers that are all float32."""
    problem, dual, theta = case.problem, case.given.dual, case.weights
    if case.error > MAX_ROUNDED_ERROR:
        return
    given = [a for a in (dual, case.given.weights) if a is not None and np.any(a)]
    if given and all(_is_single(a) for a in given):
        words = f"single precision: all numbers given are float32, gap {case.error:.1e}"
        yield Explanation("single precision", words, 0.0)
    if dual is None:
        return
    K = problem.grams.combine(theta).astype(np.float32).astype(float)
    one = problem.with_(grams=GramStack(K[None]), formulation=FixedWeights((1.0,)))
    rounded = error_of(one, Candidate(dual, np.ones(1)))
    exact = case.of_svm(dual, theta)
    if rounded <= EXPLAINED * exact:
        words = (
            f"single precision: α solves the SVM on Σθ_mK_m rounded to float32 "
            f"to {rounded:.1e}, in double precision only to {exact:.1e}"
        )
        yield Explanation("single precision", words, min(rounded, case.explained))


def _is_single(a: Array) -> bool:
    """Every number is a float32, and not because it is a short binary fraction."""
    short = np.round(a * 2**12) == a * 2**12
    return bool(np.all(a == a.astype(np.float32)) and not np.all(short))
