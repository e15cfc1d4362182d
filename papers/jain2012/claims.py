"""Formulas of Jain et al. (2012), each with a check that can fail.

What the paper says of runs is in experiment_claims.py.
"""

from __future__ import annotations

import numpy as np

from mklopt import kernels
from mklopt.claims.items import Finding, Scale, claim, decide
from mklopt.gmkl.problem import Envelope, KernelFamilyProblem
from mklopt.gmkl.regularizers import SquaredNorm

from . import formula_studies as studies
from .settings import KEY

Array = np.ndarray


# ---- section 3: the formulation --------------------------------------------------


@claim(KEY, "Section 3, T and W", wrong="αᵀHα in the dual without its ½")
def primal_and_dual_values_agree_at_every_d(
    scale: Scale, wrong: bool = False
) -> Finding:
    """Strong duality: for fixed d the primal value T(d), with the loss on f, equals the
    dual value W(d) = r(d) + max 1ᵀα − ½αᵀHα, H = YK(d)Y, for sums and products."""
    rows = studies.gradients(scale)
    W = rows["W"] - 0.5 * rows["energy"] * wrong
    off = float(np.max(np.abs(rows["T"] / W - 1)))
    return decide(
        off <= 1e-7,
        f"T and W differ by {off:.1e} at most, over sums and "
        f"products with three r(d), both values certified",
        off=off,
    )


@claim(KEY, "Section 3, ∇W", wrong="the factor ½ left out")
def danskin_gives_the_gradient_of_W(scale: Scale, wrong: bool = False) -> Finding:
    """W is differentiable where the dual optimum α is unique, and its gradient is
    ∇r − ½ αᵀ(∂H/∂d)α at that α: one machine gives value and gradient."""
    rows = studies.gradients(scale)
    slope = rows["price"] - (1.0 if wrong else 0.5) * rows["bend"]
    size = np.maximum(np.abs(rows["price"]), np.abs(rows["measured"]))
    off = float(np.max(np.abs(slope - rows["measured"]) / size))
    return decide(
        off <= 1e-4,
        f"{len(rows)} derivatives differ by {off:.1e} at most from "
        "central differences of W as another solver (OSQP) finds it",
        off=off,
    )


@claim(KEY, "Section 1, the only restriction", wrong="α is unique as well")
def derivatives_alone_make_W_differentiable(
    scale: Scale, wrong: bool = False
) -> Finding:
    """The only thing asked of kernel and regularizer is that their derivatives exist
    and are jointly continuous with α (the introduction; section 3 adds uniqueness)."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    line = Line(np.array([1.0, 2.0 if wrong else 1.0, -1.0, -2.0 if wrong else -1.0]))
    problem = KernelFamilyProblem(line, y, "hinge", SquaredNorm(2.0), 100.0)
    envelope, h = Envelope(problem, tune=False), 1e-4
    at = [envelope.precisely(np.array([1 + k * h]))[0] for k in (-1, 0, 1)]
    left, right = (at[1] - at[0]) / h, (at[2] - at[1]) / h
    return decide(
        abs(right - left) <= 1e-2,
        "for four points with the feature a + (d − 1)b, whose kernel is smooth in d, W "
        f"has slopes {left:.3f} and {right:.3f} on the two sides of d = 1"
        + ("" if wrong else ", where two points coincide and share their α at will"),
        left=left,
        right=right,
    )


class Line:
    """K(d) of one feature a + (d − 1) b; where two a coincide, α is not unique."""

    M, n = 1, 4

    def __init__(self, a: Array):
        self.a, self.b = a, np.array([1.0, -1.0, 0.0, 0.0])

    def combine(self, d: Array) -> Array:
        features = self.a + (d[0] - 1) * self.b
        return np.outer(features, features)

    def gradient(self, d: Array, alpha: Array) -> Array:
        at = self.a + (d[0] - 1) * self.b
        return np.array([2 * (alpha @ at) * (alpha @ self.b)])


@claim(KEY, "Section 5, linear MKL", wrong="C not divided by √2; μ = 1 for ½")
def sums_are_known_convex_problems(scale: Scale, wrong: bool = False) -> Finding:
    """Sums Σ d_m K_m can be made convex by a change of variables and have the solution
    of the specialized formulations: with r(d) = Σd the group lasso at C/√2, with
    ½‖d‖_p² the penalized ℓp form with μ = ½."""
    rows = studies.maps(scale)
    rows = rows[rows["which"] == ("other" if wrong else "right")]
    off = np.maximum(rows["lower"] - rows["W"], rows["W"] - rows["upper"])
    worst = float(np.max(np.maximum(off, 0.0) / rows["upper"]))
    return decide(
        worst <= 1e-6,
        "min W lies outside the certified interval of the convex optimum by "
        f"{worst:.1e} (relative) at most, for {len(rows)} r(d)",
        worst=worst,
    )


@claim(KEY, "Section 5.3, products", wrong="along no segment is W of products convex")
def products_are_not_convex_and_sums_are(scale: Scale, wrong: bool = False) -> Finding:
    """Products of kernels make W a non-convex function of d; for sums it is convex."""
    rows = studies.segments(scale)
    above = rows["above"] > 1e-6 * rows["W"]
    kind = rows["problem"].str.split(",").str[0]
    each = int(np.sum(kind == "sum"))
    seen = {k: int(np.sum(above[kind == k])) for k in ("sum", "product")}
    least = each if wrong else 1
    return decide(
        seen["sum"] == 0 and seen["product"] >= least,
        f"W in the middle of two random d exceeds the mean of their W in "
        f"{seen['sum']} of {each} segments for sums and {seen['product']} of "
        f"{each} for products",
        **seen,
    )


# ---- section 4: the algorithm ----------------------------------------------------


@claim(KEY, "Section 4, spectral step", wrong="of a model around the new iterate")
def slopes_that_match_fix_the_spectral_step(
    scale: Scale, wrong: bool = False
) -> Finding:
    """The quadratic model of W around the previous iterate, with Hessian I/λ, has the
    directional derivative of W at the current point for λ = ⟨s, s⟩/⟨s, y⟩ only."""
    rng = scale.rng("spectral")
    before, now = rng.uniform(size=(2, 6))
    H = (lambda A: A @ A.T)(rng.normal(size=(6, 6)))
    s, y = now - before, H @ (now - before)
    right = float(s @ s) / float(s @ y)
    around = now if wrong else before

    def mismatch(length: float) -> float:
        slope = H @ around + (now - around) / length
        return abs(float(s @ (slope - H @ now))) / abs(float(s @ H @ now))

    off = {k: mismatch(k * right) for k in (0.5, 1.0, 2.0)}
    return decide(
        off[1.0] <= 1e-10 and min(off[0.5], off[2.0]) > 1e-3,
        "along the last step the slope of the model at the current point is off by "
        f"{off[0.5]:.1e}, {off[1.0]:.1e}, {off[2.0]:.1e} for half, once and twice "
        "⟨s,s⟩/⟨s,y⟩",
        half=off[0.5],
        once=off[1.0],
        twice=off[2.0],
    )


@claim(KEY, "Section 4, descent direction", wrong="trials up to s = 4 are feasible")
def trials_need_no_further_projection(scale: Scale, wrong: bool = False) -> Finding:
    """Along d − s p with p = d − P(d − λ∇W) one projection is enough for a step: all
    trials s = 1, ½, … are feasible."""
    rng, least = scale.rng("feasible"), np.inf
    longest = 4.0 if wrong else 1.0
    for _ in range(scale.of(40, 400, 4000)):
        d = np.maximum(rng.normal(size=8), 0.0)
        p = d - np.maximum(d - 10 ** rng.uniform(-3, 3) * rng.normal(size=8), 0.0)
        for s in longest * 0.5 ** np.arange(4):
            least = min(least, float(np.min(d - s * p)))
    return decide(
        least >= -1e-12,
        f"the smallest d tried along random steps, with s up to {longest:g}, is "
        f"{least:.1g}",
        least=least,
    )


@claim(KEY, "Table 1", wrong="13 kernels per dimension, none on all of them")
def the_recipe_has_13_kernels_on_each_feature_and_on_all(
    scale: Scale, wrong: bool = False
) -> Finding:
    """Small sets have ten Gaussians and three polynomials for each feature and for all
    of them together: 13 (dimensions + 1) kernels in the column of sums."""
    printed = {6: 91, 8: 117, 10: 143, 14: 195, 34: 455, 60: 793}
    rng = scale.rng("recipe")
    made = {
        d: len(kernels.rakotomamonjy().fit(rng.normal(size=(5, d)))) for d in printed
    }
    found = {d: k - 13 * wrong for d, k in made.items()}
    return decide(
        found == printed,
        f"our recipe makes {list(found.values())} kernels for "
        f"{list(found)} dimensions; printed: {list(printed.values())}",
    )
