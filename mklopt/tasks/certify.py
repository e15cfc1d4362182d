"""Certificates of what people have: weights, α, w, predictions; the rest is computed.

The core (certificates/certificate.py) takes a primal and a dual candidate. Here half a
candidate is completed first, with u_m = ‖w_m‖ and v_m = ‖α‖_{K_m}:

    weights θ alone     α is that of the SVM at θ, and w_m = θ_m Σ_i α_i ψ_m(x_i)
    α alone             the best w with w_m in the span of Σ_i α_i ψ_m(x_i): the same
                        problem with factors K_mα/v_m of one column (k for k outputs)
    coefficients or w   α of the SVM at the weights u/∂Ω(u), or −C V'(f), by value
    f and θ             of all w with predictions f, the one with the least
                        Σ‖w_m‖²/θ_m: w_m = θ_m Σ_i c_i ψ_m(x_i), Σθ_mK_m c = f − b, and
                        Σc = 0 for a free b. Noise in f would make c explode, so that
                        (Σθ_mK_m + ε I) c = f − b is solved with the ε of the best value
    f and norms u       the same with θ = u/∂Ω(u), which is optimal where u is

Guarantee. Whatever was completed, the bounds are those of the core for the completed
point: lower ≤ f* ≤ upper rests on nothing that was given. How far the predictions of
the completed point are from a given f is said in `Certificate.completed`, and so is a
claimed value CΣV(f) + Ω(u) below `lower`: then no w has these predictions and norms.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..certificates.certificate import (
    Certificate,
    checked,
    feature_shape,
    primal_at,
    primal_value,
)
from ..certificates.certificate import certify as certify_pair
from ..formulations import Formulation
from ..formulations.derive.epigraph import DerivationError
from ..formulations.fixed_weights import FixedWeights
from ..grams.stack import GramStack
from ..problem import Problem
from ..run.loop import solve
from ..solvers.machines.at_weights import dual_at_weights, has_inner_solver

Array = np.ndarray
BY_POSITION = ("dual", "weights")  # the order of version 0.1
RIDGES = 10.0 ** np.arange(-14, 1)  # times the largest eigenvalue: ε, all are tried
SAME = 1e-6  # relative: predictions nearer than this are those that were given
TOLERANCE = 1e-10  # of the small problem for α alone …
MAX_SECONDS = 20.0  # … which may take so long
NOT_DERIVED = (ArithmeticError, ValueError, DerivationError)


class Point(NamedTuple):
    """A primal candidate for the core, weights near it, and what was done."""

    parts: dict[str, Any]  # weights, coefficients or features
    theta: Array = np.zeros(0)
    words: str = ""
    duals: tuple[Array, ...] = ()
    claimed: float = np.nan  # CΣV(f) + Ω(u) of f and u as they were given


def certify(
    problem: Problem,
    *positional: Any,
    dual: Any = None,
    weights: Any = None,
    coefficients: Any = None,
    w: Any = None,
    maps: Any = None,
    f: Any = None,
    norms: Any = None,
    b: Any = None,
    features: Any = None,
    remembered: bool = False,
) -> Certificate:
    """Two bounds dual ≤ f* ≤ primal from whatever a solver or a paper gives.

    Give a dual candidate, a primal candidate, or both, by name. What is missing is
    computed, and `Certificate.completed` says how. `lower` and `upper` of the result
    hold in exact arithmetic, whatever was given.

    Parameters
    ----------
    problem : Problem
    *positional
        Deprecated: dual and weights by position.
    dual : array (n,) or (n, k), optional
        α, with the sign of the label; any finite numbers are allowed. Alone: the best
        primal point that it gives is computed.
    weights : array (M,), optional
        θ ≥ 0, for the primal point w_m = θ_m Σ_i α_i ψ_m(x_i). Alone: α is that of the
        SVM at these weights. With f: see there.
    coefficients : array (M, n) or (M, n, k), optional
        Instead of weights, for w_m = Σ_i coefficients[m, i] ψ_m(x_i).
    w : list of M arrays (r_m,) or (r_m, k), or array (R,) or (R, k), optional
        The feature weights of every kernel, or all of them one below the other: for
        kernels given as factors, or with `maps`.
    maps : list of M arrays (n, r_m), optional
        The features that w belongs to, if the kernels are not given as factors: kernel
        m is maps[m] @ maps[m].T. For a linear kernel this is X.
    f : array (n,) or (n, k), optional
        Predictions on the training samples, with their bias; with `weights` or `norms`.
    norms : array (M,), optional
        The block norms ‖w_m‖ of the predictions f.
    b : float or array (k,), optional
        The bias; by default the best one.
    features : array (R,) or (R, k), optional
        The same as w in one array.
    remembered : bool
        Whether products that the stack remembers may be used; it saves passes.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If a candidate has the wrong shape or is not finite, if weights are negative, or
        if no point, or more than one, is described.

    Examples
    --------
    >>> from mklopt.formulations import LpNorm
    >>> y = np.array([1.0, -1.0])
    >>> problem = Problem(np.eye(2)[None], y, formulation=LpNorm(p=2), C=10)
    >>> certify(problem, dual=y, weights=[1.0]).relative_gap < 1e-12
    True
    >>> certify(problem, weights=[1.0]).relative_gap < 1e-12
    True
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"certify takes a Problem first, got {type(problem).__name__}")
    if positional:
        dual, weights = _by_name(positional, dual, weights)
    if features is not None:
        features = checked(features, feature_shape(problem), "features")
        w = features if w is None else w
    given = {"weights": weights, "coefficients": coefficients, "w": w, "f": f}
    _check_names(given, dual, maps, norms)
    if dual is not None:
        dual = checked(dual, problem.shape, "dual")
    with np.errstate(all="ignore"):  # what overflows is infinite
        point = _point(problem, dual, given, maps, norms, b)
    more: Any = {"bias": b, "remembered": remembered}
    if dual is not None:
        found = certify_pair(problem, dual, **point.parts, **more)
        found = replace(found, completed=point.words) if point.words else found
    else:
        found = _with_best_dual(problem, point, more)
    return _with_claim(found, point.claimed)


def _with_claim(found: Certificate, claimed: float) -> Certificate:
    """What is known of a claimed value, added to what was completed."""
    if not np.isfinite(claimed):
        return found
    words = f"f and the norms as given would have the value {claimed:.9g}"
    if claimed < found.lower:
        words += (
            ", which is below the lower bound: no w has these predictions and norms"
        )
    return replace(found, completed=f"{found.completed}; {words}")


def _by_name(positional: tuple, dual: Any, weights: Any) -> tuple[Any, Any]:
    """Arguments of version 0.1, which were taken by position."""
    if len(positional) > len(BY_POSITION):
        raise TypeError(
            f"certify takes a problem and names, got {len(positional)} more"
        )
    warnings.warn(
        "certify(problem, dual, weights) by position is deprecated, because the two "
        "are easily swapped; write certify(problem, dual=…, weights=…)",
        DeprecationWarning,
        stacklevel=3,
    )
    found = dict(zip(BY_POSITION, positional))
    return found["dual"], found.get("weights", weights)


def _check_names(given: dict[str, Any], dual: Any, maps: Any, norms: Any) -> None:
    """ValueError unless exactly one primal point, or a dual alone, is described."""
    named = [name for name, value in given.items() if value is not None]
    if "f" in named:
        other = [n for n in named if n != "f"] + ["norms"] * (norms is not None)
        if other not in (["weights"], ["norms"]):
            raise ValueError(
                "f= describes a point together with one of weights= and norms=; "
                f"got {', '.join(other) or 'f alone'}"
            )
        return
    if norms is not None or (maps is not None and given["w"] is None):
        raise ValueError("norms= belongs to f=, and maps= to w=")
    if len(named) > 1 or not (named or dual is not None):
        raise ValueError(
            "give dual= alone, or one of weights=, coefficients=, w= and f=, with or "
            f"without dual=; got {' and '.join(named) or 'none of them'}"
        )


def _point(
    problem: Problem, dual: Any, given: dict[str, Any], maps: Any, norms: Any, b: Any
) -> Point:
    M = problem.grams.M
    weights, coefficients, w, f = given.values()
    if weights is not None:
        weights = checked(weights, (M,), "weights", nonneg=True)
    if f is not None:
        return _of_predictions(problem, f, weights, norms, b)
    if weights is not None:
        words = "" if dual is not None else "α is that of the SVM at these weights"
        return Point({"weights": weights}, weights, words)
    if w is not None:
        return _of_feature_weights(problem, w, maps, dual is None)
    if coefficients is not None:
        B = checked(coefficients, (M, *problem.shape), "coefficients")
        return _of_coefficients(problem, B, dual is None)
    return _best_primal(problem, problem.feasible(dual))


def _with_best_dual(
    problem: Problem, point: Point, more: dict[str, Any]
) -> Certificate:
    """The point with the best of several α: that of the SVM, −C V'(f), and others."""
    tried = [
        certify_pair(problem, a, **point.parts, **more) for a in _duals(problem, point)
    ]
    best = max(tried, key=lambda found: found.dual)
    if "weights" in point.parts:
        return replace(best, completed=point.words)
    words = [point.words, "α is that of the SVM at the weights of this point"]
    if best is not tried[0]:
        words[1] = "α is −C V'(f), or what the predictions give"
    return replace(best, completed="; ".join(filter(None, words)))


def _duals(problem: Problem, point: Point) -> Iterator[Array]:
    yield svm_dual(problem, point.theta)
    yield from point.duals


def svm_dual(problem: Problem, weights: Array) -> Array:
    """α of the SVM at these weights; losses without an inner solver take the loop."""
    if has_inner_solver(problem):
        return dual_at_weights(problem, weights)
    fixed = problem.with_(formulation=FixedWeights(weights))
    return solve(fixed, tol=TOLERANCE, time_limit=MAX_SECONDS).dual


# ---- primal points -------------------------------------------------------------------


def weights_of_norms(formulation: Formulation, u: Array) -> Array:
    """u/∂Ω(u), and 0 where that is not a number ≥ 0; equal weights where Ω has none."""
    with np.errstate(all="ignore"):
        try:
            theta = np.asarray(formulation.weights(u), float)
        except NOT_DERIVED:
            theta = np.where(u > 0, 1.0, 0.0)
    return np.where(np.isfinite(theta) & (theta > 0) & (u > 0), theta, 0.0)


def _of_coefficients(problem: Problem, B: Array, alone: bool) -> Point:
    grams = problem.grams
    if not alone:
        return Point({"coefficients": B})
    KB = grams.apply(B) + grams.shift.reshape(-1, *[1] * (B.ndim - 1)) * B
    u = np.sqrt(np.maximum((B * KB).reshape(len(B), -1).sum(axis=1), 0.0))
    theta = weights_of_norms(problem.formulation, u)
    slopes = _slopes(problem, KB.sum(axis=0), u)
    return Point({"coefficients": B}, theta, "", slopes)


def _slopes(problem: Problem, f: Array, u: Array) -> tuple[Array, ...]:
    """−C V'(f) with the best bias, made feasible."""
    b = primal_at(problem, f, u)[1]
    try:
        slope = problem.loss.gradient(f + b, problem.y)
    except NotImplementedError:
        return ()
    return (problem.feasible(-problem.spread_costs * slope),)


def _of_feature_weights(problem: Problem, w: Any, maps: Any, alone: bool) -> Point:
    """w of factors as it is; with maps Ψ_m as coefficients B_m, Ψ_mᵀB_m = w_m.

    Of w_m the part that no sample sees is lost: it adds to the norm and not to f.
    """
    grams, k = problem.grams, problem.shape[1:]
    if maps is None:
        shape = feature_shape(problem)
        w = checked(_stacked(w, [int(r) for r in grams.ranks], k), shape, "w")
        if not alone:
            return Point({"features": w})
        theta = weights_of_norms(problem.formulation, grams.feature_norms(w))
        slopes = _slopes(problem, grams.unfold(w), grams.feature_norms(w))
        return Point({"features": w}, theta, "", slopes)
    maps = [np.asarray(psi, float) for psi in maps]
    if len(maps) != grams.M or any(psi.shape[:1] != (grams.n,) for psi in maps):
        raise ValueError(
            f"maps has {len(maps)} arrays of shapes {[p.shape for p in maps][:3]}…; "
            f"expected {grams.M} of shape ({grams.n}, r)"
        )
    ranks = [psi.shape[1] for psi in maps]
    w = checked(_stacked(w, ranks, k), (sum(ranks), *k), "w")
    parts = np.split(w, np.cumsum(ranks)[:-1])
    B = np.array([np.linalg.lstsq(psi.T, x)[0] for psi, x in zip(maps, parts)])
    point = _of_coefficients(problem, B, alone)
    f, given = grams.apply(B).sum(axis=0), sum(p @ x for p, x in zip(maps, parts))
    return point._replace(words=_difference("w", f, np.asarray(given)))


def _stacked(w: Any, ranks: list[int], k: tuple[int, ...]) -> Any:
    """A list of w_m as one array; an array as it is."""
    if not isinstance(w, list | tuple) or np.ndim(w[0]) == 0:
        return w
    shapes = [np.shape(x) for x in w]
    expected = [(r, *k) for r in ranks]
    if shapes != expected:
        wrong = next(
            (m for m, s in enumerate(zip(shapes, expected)) if s[0] != s[1]), 0
        )
        raise ValueError(
            f"w has {len(w)} arrays, number {wrong} of shape {shapes[wrong]}; expected "
            f"{len(ranks)}, of shape {expected[wrong]} there"
        )
    return np.concatenate([np.asarray(x, float) for x in w])


def _difference(name: str, f: Array, given: Array) -> str:
    """How far the predictions of the completed point are from those that were given."""
    far = float(np.max(np.abs(f - given), initial=0.0))
    if far <= SAME * max(1.0, float(np.max(np.abs(given), initial=0.0))):
        return ""
    return (
        f"the predictions of the point differ from those of {name} by up to {far:.1e}"
    )


def _of_predictions(
    problem: Problem, f: Any, weights: Array | None, norms: Any, b: Any
) -> Point:
    """The point of least norm near predictions f, for weights or block norms."""
    f, claimed = checked(f, problem.shape, "f"), np.nan
    if weights is None:
        u = checked(norms, (problem.grams.M,), "norms", nonneg=True)
        weights, claimed = (
            weights_of_norms(problem.formulation, u),
            primal_value(problem, f, u),
        )
    if not np.any(weights):
        return Point({"weights": weights}, weights, "all weights are 0, and so is w")
    c, reached = _least_norm(problem, f, weights, b)
    words = ["w has the least norm at the weights for predictions near f"]
    words.append(_difference("f", reached, f))
    parts, said = {"coefficients": np.multiply.outer(weights, c)}, filter(None, words)
    return Point(parts, weights, "; ".join(said), (problem.feasible(c),), claimed)


def _least_norm(
    problem: Problem, f: Array, weights: Array, b: Any
) -> tuple[Array, Array]:
    """c of (K + ε I) c = f − b with the ε of the best value, and its predictions."""
    grams = problem.grams
    K = grams.combine(weights) + float(weights @ grams.shift) * np.eye(grams.n)
    values, Q = np.linalg.eigh(K)
    fixed = None if b is None else 0.0  # what the second step may add to b
    tried: list[Any] = []
    for ridge in RIDGES * max(float(values[-1]), 1e-300):
        inverse = 1 / (np.maximum(values, 0.0) + ridge)
        c, bias = _solved(problem, Q, inverse, f, b)
        again, more = _solved(problem, Q, inverse, f - K @ c - bias, fixed)
        c, bias = c + again, bias + more
        value, bias = primal_at(problem, K @ c, weights * grams.norms(c), b)
        tried.append((value, len(tried), c, K @ c + bias))
    return min(tried)[2:]


def _solved(
    problem: Problem, Q: Array, inverse: Array, f: Array, b: Any
) -> tuple[Array, Any]:
    """c = A(f − b) with A = Q diag(inverse) Qᵀ; a free b makes Σc = 0."""

    def times(x: Array) -> Array:
        return (Q * inverse) @ (Q.T @ x)

    if not problem.bias:
        return times(f), 0.0
    if b is None:
        ones = times(np.ones(len(f)))
        b = np.sum(times(f), axis=0) / np.sum(ones)
    return times(f - b), b


def _best_primal(problem: Problem, alpha: Array) -> Point:
    """The best w with w_m in the span of the k functions Σ_i α_ij ψ_m(x_i).

    These have the Gram matrix G = αᵀK_mα (k × k): with G = RRᵀ, the factor K_mα R⁻ᵀ
    has one column for each, and a solution W of the small problem is B_m = α R⁻ᵀ W.
    """
    grams = problem.grams
    A = alpha.reshape(grams.n, -1)
    KA = grams.matvec(A) + grams.shift[:, None, None] * A
    roots = [_inverse_root(A.T @ one) for one in KA]
    factors = [one @ root for one, root in zip(KA, roots)]
    small = problem.with_(grams=GramStack.from_factors(factors))
    found = solve(small, tol=TOLERANCE, time_limit=MAX_SECONDS)
    words = "w is the best one in the span of α"
    W = found.features.reshape(grams.M, A.shape[1], -1)
    B = np.einsum("nk,mkj,mjl->mnl", A, np.array(roots), W)
    theta = np.array([float(root[0, 0]) for root in roots]) * W[:, 0, 0]
    if A.shape[1] == 1 and np.all(theta >= 0):
        return Point({"weights": theta}, theta, words)
    return Point({"coefficients": B.reshape(grams.M, *problem.shape)}, theta, words)


def _inverse_root(G: Array) -> Array:
    """G^{−1/2} on the range of G, and 0 elsewhere."""
    values, Q = np.linalg.eigh((G + G.T) / 2)
    used = values > 1e-14 * max(float(values[-1]), 1e-300)
    scale = np.where(used, 1 / np.sqrt(np.where(used, values, 1.0)), 0.0)
    return (Q * scale) @ Q.T
