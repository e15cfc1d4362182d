"""Appendix A: Rademacher complexities, generalization bounds, and their worth.

    H^p = { h = Σ_m √θ_m ⟨w_m, ψ_m⟩ : ‖w‖ ≤ 1, θ ≥ 0, ‖θ‖_p ≤ 1 }        (no bias)
        = { h = Σ_m ⟨w_m, ψ_m⟩ : ‖w‖_{2,q} ≤ 1 },  q = 2p/(p+1),  p* = p/(p−1)

Given the sample, the supremum over h is closed: with x_m = σᵀK_mσ

    sup over H^p of 1/n Σσ_i h(x_i) = 1/n √‖x‖_{p*},    R(H^p) = 1/n E √‖x‖_{p*},

so that a complexity is a mean over signs σ, which Monte Carlo finds (`complexity`).

Theorem 6 is ‖x‖_{p*} ≤ M^{1/p*} ‖x‖_∞. Theorem 8, derived anew: for whole r ≥ 1

    E(σᵀKσ)^r ≤ (2r−1)!! tr(K)^r ≤ (r tr K)^r.

With K = AAᵀ, t_j = Σ_i A_ij² and s_j = (Aᵀσ)_j, σᵀKσ/tr K is the mean of s_j²/t_j with
weights t_j/tr K; Jensen, and E s_j^{2r} ≤ (2r−1)!! t_j^r (Khintchine: compare
coefficients, (2k)! ≥ 2^k k!), give the first step; the mean of the odd numbers
1 … 2r−1, which is r, the second. Let k_m(x, x) ≤ R². For p = 1, ‖x‖_∞ ≤ ‖x‖_r and
Jensen give R(H^1) ≤ √(r M^{1/r} R²/n), and r = ⌈log M⌉ has M^{1/r} ≤ e: theorem 8,
without its factor 23/22. For p > 1 the moment of order p* is at most that of order
⌈p*⌉, hence

    R(H^p) ≤ √( ⌈p*⌉ M^{1/p*} R²/n )          with no log M (`direct_bound`):

the conjecture of footnote 20. Logarithms are natural throughout.

Reference: Kloft et al. (2011), appendix A; Cortes et al. (2010), theorems 2 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

import mklopt
from mklopt import data
from mklopt.claims.items import Finding, Scale, claim, decide, study
from mklopt.formulations import LpNorm
from mklopt.formulations.norms import block_exponent, dual_exponent

Array = np.ndarray
INF = np.inf
CORTES = 23 / 22  # the constant c of theorem 8
DELTA = 0.05  # bounds hold with probability 1 − δ
GAMMAS = 4.0 / 2.0 ** np.arange(8)  # margins that are tried: each gets δ/8


# ---- the formulas -------------------------------------------------------------------


def conversion(M: int, p: float) -> float:
    """√(M^{1/p*}): how much larger R(H^p) can be than R(H^1) (theorem 6)."""
    return float(np.sqrt(M ** (1 / dual_exponent(p))))


def sparse_bound(n: int, M: int, R: float = 1.0, c: float = CORTES) -> float:
    """R(H^1) ≤ √(c e ⌈log M⌉ R²/n) for M > 1 kernels with k(x, x) ≤ R² (theorem 8)."""
    if M < 2:
        raise ValueError(f"M = {M}; the bound is for at least two kernels: ⌈log 1⌉ = 0")
    return float(np.sqrt(c * math.e * math.ceil(math.log(M)) * R**2 / n))


def complexity_bound(n: int, M: int, p: float, R: float = 1.0) -> float:
    """R(H^p) ≤ √(c e M^{1/p*} ⌈log M⌉ R²/n): theorems 6 and 8 together."""
    return conversion(M, p) * sparse_bound(n, M, R)


def cortes_bound(n: int, M: int, p: float, R: float = 1.0) -> float:
    """R(H^p) ≤ √(c e p* M^{1/p*} R²/n) for whole p*, as the paper quotes it.

    The factor e has no business here (see above); the bound holds with it.
    """
    r = dual_exponent(p)
    if not _whole(r):
        raise ValueError(f"p = {p:g} has p* = {r:g}; the bound is for whole p*")
    return float(np.sqrt(CORTES * math.e * r * M ** (1 / r) * R**2 / n))


def direct_bound(n: int, M: int, p: float, R: float = 1.0) -> float:
    """R(H^p) ≤ √(⌈p*⌉ M^{1/p*} R²/n) for p > 1: derived above, no log M."""
    r = dual_exponent(p)
    return float(np.sqrt(math.ceil(r - 1e-9) * M ** (1 / r) * R**2 / n))


def risk_bound(
    empirical: float,
    n: int,
    M: int,
    p: float,
    *,
    lipschitz: float = 1.0,
    C: float = 1.0,
    R: float = 1.0,
    delta: float = DELTA,
) -> float:
    """Right side of (33), and of (35) when ‖w‖_{2,q} ≤ C."""
    capacity = 2 * lipschitz * C * complexity_bound(n, M, p, R)
    return empirical + capacity + math.sqrt(math.log(2 / delta) / (2 * n))


def margin_loss(margins: Array, gamma: float) -> float:
    """1/n Σ min(1, [1 − y_i h(x_i)/γ]_+), which is 1/γ-Lipschitz."""
    return float(np.mean(np.clip(1 - margins / gamma, 0.0, 1.0)))


def radius_margin_bound(
    margins: Array, gamma: float, M: int, p: float, delta: float = DELTA
) -> float:
    """Right side of (34): y_i h(x_i) of an h in H^p, and γ fixed beforehand."""
    loss = margin_loss(margins, gamma)
    return risk_bound(loss, len(margins), M, p, lipschitz=1 / gamma, delta=delta)


def best_margin_bound(margins: Array, M: int, p: float) -> tuple[float, float]:
    """The smallest (34) over a fixed list of γ, each with its share of δ, and its γ."""
    delta = DELTA / len(GAMMAS)
    found = [radius_margin_bound(margins, g, M, p, delta) for g in GAMMAS]
    best = int(np.argmin(found))
    return found[best], float(GAMMAS[best])


def radius(ones: int, p: float) -> float:
    """‖(1, …, 1, 0, …, 0)‖_q with q = 2p/(p+1): the C that lets this w into ^C H^p."""
    return float(ones ** ((1 + 1 / p) / 2))


def example_term(n: int, M: int, p: float, ones: int) -> float:
    """The p-dependent term of (35), L = R = 1, at the smallest C that has w in it.

    2√(c e s M (s/M)^{1/p} ⌈log M⌉/n) for s ones: without p for s = M (example 1),
    smallest at p = 1 otherwise (example 2 is s = 1).
    """
    return 2 * radius(ones, p) * complexity_bound(n, M, p)


# ---- measured complexities ----------------------------------------------------------


def suprema(quads: Array, n: int, p: float) -> Array:
    """1/n √‖x‖_{p*} for every row x = (σᵀK_mσ)_m."""
    r = dual_exponent(p)
    top = np.max(quads, axis=1)
    if r == INF:
        return np.asarray(np.sqrt(top) / n)
    parts = (
        quads / np.where(top > 0, top, 1.0)[:, None]
    )  # σ may miss a kernel of rank 1
    size = top * np.sum(parts**r, axis=1) ** (1 / r)
    return np.asarray(np.sqrt(size) / n)


def sign_quads(features: Iterable[Array], signs: Array) -> Array:
    """(σᵀK_mσ)_m with K_m = F_m F_mᵀ, for every row σ of signs."""
    return np.column_stack([np.sum((signs @ F) ** 2, axis=1) for F in features])


def complexity(quads: Array, n: int, p: float) -> tuple[float, float]:
    """The Rademacher complexity of H^p on this sample, and its standard error."""
    found = suprema(quads, n, p)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def _families(scale: Scale, n: int, M: int) -> dict[str, list[Array]]:
    """Factors of M kernels with unit diagonal on n points."""
    X = scale.rng("points", n).standard_normal((n, M))
    coins = np.where(X > 0, 1.0, -1.0)
    found = {"linear": [coins[:, [m]] for m in range(M)]}
    found["copies"] = [coins[:, [0]]] * M
    if M <= 64:
        waves = scale.rng("waves", n).standard_normal((2, M))
        found["cosine"] = [_cosine(X[:, m], waves[:, m]) for m in range(M)]
    return found


def _cosine(x: Array, waves: Array) -> Array:
    """Factors of k(x, z) = ½ Σ_j cos(a_j (x − z)): a stationary kernel of rank four."""
    phase = np.outer(x, waves)
    return np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(2)


PS = (1.0, 10 / 9, 4 / 3, 2.0, 4.0, INF)


@study("kloft2011")
def complexities(scale: Scale) -> pd.DataFrame:
    """Rademacher complexities of H^p by Monte Carlo, beside every bound on them."""
    n = scale.of(64, 100, 200)
    draws = scale.of(400, 1000, 4000)
    rows = []
    for M in scale.of(
        (2, 16, 256), (2, 4, 16, 64, 256, 1024), (2, 4, 16, 64, 256, 1024, 4096)
    ):
        signs = scale.rng("signs", M).choice([-1.0, 1.0], (draws, n))
        for family, factors in _families(scale, n, M).items():
            quads = sign_quads(factors, signs)
            for p in PS:
                value, error = complexity(quads, n, p)
                row = dict(kernels=family, n=n, M=M, p=p, value=value, error=error)
                row["bound"] = complexity_bound(n, M, p)
                row["direct"] = direct_bound(n, M, p) if p > 1 else sparse_bound(n, M)
                rows.append(row)
    return pd.DataFrame(rows)


# ---- measured risks -----------------------------------------------------------------


@study("kloft2011")
def risks(scale: Scale) -> pd.DataFrame:
    """Test error and the bounds (33) and (34), spherical linear kernels, no bias."""
    sizes = scale.of(
        (50, 200), (50, 100, 200, 400, 800), (50, 100, 200, 400, 800, 1600)
    )
    rows = []
    for nu in scale.of((0.0, 0.98), (0.0, 0.64, 0.98), (0.0, 0.64, 0.92, 0.98)):
        test = _signs(
            data.load("kloft_toy", n=scale.of(4000, 20000, 20000), nu=nu, seed=10**6)
        )
        for n in sizes:
            for seed in range(scale.of(1, 2, 5)):
                train = _signs(
                    data.load("kloft_toy", n=n, nu=nu, seed=scale.seed + seed)
                )
                for p in (1.0, 4 / 3, 2.0, INF):
                    found = _judged(train, test, p)
                    rows.append(dict(nu=nu, n=n, seed=seed, p=p, **found))
    return pd.DataFrame(rows)


def _signs(toy: Any) -> tuple[Array, Array]:
    """A linear kernel on one feature, spherically normalized, is that of its sign."""
    return np.where(toy.X > 0, 1.0, -1.0), toy.y


def _judged(train: tuple[Array, Array], test: tuple[Array, Array], p: float) -> dict:
    """The h of ℓp-norm MKL at C = 0.01, scaled into H^p, and its bound (34).

    The bound holds for all h of the class at once, so that C and the solver's tolerance
    may be anything.
    """
    (X, y), (X_test, y_test) = train, test
    M = X.shape[1]
    grams = mklopt.GramStack.from_factors([X[:, [m]] for m in range(M)])
    problem = mklopt.Problem(grams, y, "hinge", LpNorm(p), 0.01, bias=False)
    found = mklopt.solve(problem, tol=1e-2)
    w = np.einsum("mi,im->m", found.certificate.expansion.reshape(M, -1), X)
    w /= np.linalg.norm(w, block_exponent(p))
    margins = y * (X @ w)
    bound, gamma = best_margin_bound(margins, M, p)
    return {
        "bound": bound,
        "gamma": gamma,
        "loss": margin_loss(margins, gamma),
        "train": float(np.mean(margins <= 0)),
        "test": float(np.mean(y_test * (X_test @ w) <= 0)),
    }


def _of_most_kernels(rows: pd.DataFrame) -> pd.DataFrame:
    """Independent linear kernels, as many as there are."""
    most = rows.M.max()
    return rows[(rows.kernels == "linear") & rows.M.eq(most)]


# ---- claims on complexities ---------------------------------------------------------


@claim("kloft2011", "Theorem 6", wrong="M^{1/p} in place of M^{1/p*}",
       figure="rademacher_complexities")  # fmt: skip
def complexities_convert_from_l1_to_lp(scale: Scale, wrong: bool = False) -> Finding:
    """The complexity of the ℓp class is at most √(M^{1/p*}) times that of the ℓ1 class.

    With M copies of one kernel the two sides are equal.
    """
    rows = complexities(scale)
    keys = ["kernels", "M"]
    sparse = rows[rows.p == 1].set_index(keys).value
    rows["ratio"] = rows.value / rows.set_index(keys).index.map(sparse)
    rows["factor"] = [
        conversion(M, dual_exponent(p) if wrong else p) for M, p in zip(rows.M, rows.p)
    ]
    used = rows.ratio / rows.factor
    copies = used[rows.kernels == "copies"]
    good = used.max() <= 1 + 1e-12 and copies.min() >= 1 - 1e-12
    words = (
        f"R(H^p)/R(H^1) is between {used.min():.2f} and {used.max():.2f} of the factor "
        f"on {len(rows)} families and norms, drawn with the same signs; with copies of "
        f"one kernel from {copies.min():.4f}"
    )
    return decide(good, words, largest=used.max(), smallest=used.min())


@claim("kloft2011", "Theorem 8", wrong="the bound halved",
       figure="rademacher_complexities")  # fmt: skip
def l1_complexity_is_below_theorem_8(scale: Scale, wrong: bool = False) -> Finding:
    """The complexity of ℓ1-norm MKL is at most √(c e ⌈log M⌉ R²/n) with c = 23/22."""
    rows = complexities(scale)
    rows = rows[rows.p == 1]
    used = (rows.value + 3 * rows.error) / (rows.bound * (0.5 if wrong else 1.0))
    words = (
        f"Monte-Carlo complexities plus three standard errors reach {used.max():.2f} "
        f"of the bound for {rows.M.min()} … {rows.M.max()} kernels with k(x, x) = 1; "
        "the derivation in bounds.py gives it with c = 1"
    )
    return decide(
        used.max() <= 1, words, used=used.max(), without_c=used.max() * np.sqrt(CORTES)
    )


@claim("kloft2011", "Corollary of theorems 6 and 8", wrong="without M^{1/p*}",
       figure="rademacher_complexities")  # fmt: skip
def lp_complexity_is_below_its_bound(scale: Scale, wrong: bool = False) -> Finding:
    """For every p the complexity is at most √(c e M^{1/p*} ⌈log M⌉ R²/n).

    (Printed for H^1; the display is that of H^p.)
    """
    rows = complexities(scale)
    bound = [
        sparse_bound(n, M) if wrong else complexity_bound(n, M, p)
        for n, M, p in zip(rows.n, rows.M, rows.p)
    ]
    used = (rows.value + 3 * rows.error) / bound
    words = (
        f"complexities plus three standard errors are {used.min():.2f} to "
        f"{used.max():.2f} of the bound over {len(rows)} families and norms"
    )
    return decide(used.max() <= 1, words, used=used.max(), loosest=used.min())


@claim("kloft2011", "Footnote 20", wrong="the same said of p = 1",
       figure="rademacher_complexities")  # fmt: skip
def bounds_for_larger_p_carry_a_log_too_much(
    scale: Scale, wrong: bool = False
) -> Finding:
    """For p > 1 the bound is a factor √log M too large; conversion from ℓ1 is to blame.

    Conjectured in the paper. Here: complexities stay below √(⌈p*⌉ M^{1/p*} R²/n), which
    is proved in bounds.py, while the printed bound over the measured value grows.
    """
    rows = complexities(scale)
    rows = rows[(rows.kernels == "linear") & (rows.p == (1.0 if wrong else 2.0))]
    rows = rows.sort_values("M")
    plain = rows.value * np.sqrt(rows.n) / [conversion(M, 2.0) for M in rows.M]
    if wrong:
        plain = rows.value * np.sqrt(rows.n)
    loose = (rows.bound / rows.value).to_numpy()
    grown = loose[-1] / loose[0]
    log = np.sqrt(math.ceil(math.log(rows.M.max())))
    good = plain.max() <= np.sqrt(2) and grown >= 0.7 * log
    words = (
        f"R(H^p) √n / √M^(1/p*) is at most {plain.max():.3f} for M up to "
        f"{rows.M.max()} (proved: √2 at p = 2), and bound over value grows by "
        f"{grown:.2f} where √⌈log M⌉ grows by {log:.2f}"
    )
    return decide(good, words, largest=plain.max(), grown=grown, log=log)


@claim("kloft2011", "Appendix A, comparison with Cortes et al.",
       wrong="the two bounds swapped")  # fmt: skip
def near_p_1_the_converted_bound_is_the_smaller_one(
    scale: Scale, wrong: bool = False
) -> Finding:
    """As p falls to 1 the bound of Cortes et al. diverges, the converted one does not.

    It tends to the ℓ1 bound; at p = 2 the two differ by √(⌈log M⌉/2) only.
    """
    n, M = 100, 1000
    orders = np.array([2, 8, 32, 128, 512])
    ours = np.array([complexity_bound(n, M, r / (r - 1)) for r in orders])
    theirs = np.array([cortes_bound(n, M, r / (r - 1)) for r in orders])
    ours, theirs = (theirs, ours) if wrong else (ours, theirs)
    limit = abs(ours[-1] / sparse_bound(n, M) - 1)
    log = math.sqrt(math.ceil(math.log(M)) / 2)
    good = limit < 0.01 and theirs[-1] > 5 * ours[-1]
    good = good and abs(ours[0] / theirs[0] / log - 1) < 1e-12
    words = (
        f"M = {M}: at p* = 512 the ratio is {theirs[-1] / ours[-1]:.1f} and the "
        f"converted bound is within {limit:.1e} of that for p = 1; at p = 2 it is "
        f"{ours[0] / theirs[0]:.3f} = √(⌈log M⌉/2) of the other"
    )
    return decide(good, words, at_512=theirs[-1] / ours[-1], at_2=ours[0] / theirs[0])


@claim("kloft2011", "Appendix A, the case p ≥ 2",
       wrong="said of 2 < p < ∞ only")  # fmt: skip
def only_the_converted_bound_covers_p_of_2_and_more(
    scale: Scale, wrong: bool = False
) -> Finding:
    """The bound of Cortes et al., which is for whole p*, covers no p ≥ 2."""
    ps = [2.0, *np.geomspace(2.001, 1e6, scale.of(20, 200, 2000)), INF]
    covered = [p for p in (ps[1:-1] if wrong else ps) if _whole(dual_exponent(p))]
    words = f"of {len(ps)} exponents p ≥ 2 those with whole p* are: "
    words += ", ".join(f"p = {p:g} (p* = {dual_exponent(p):g})" for p in covered)
    words += "" if covered else "none: 1 < p* < 2"
    return decide(not covered, words, covered=len(covered))


def _whole(r: float) -> bool:
    return r < INF and abs(r - round(r)) < 1e-9


# ---- claims on risks ----------------------------------------------------------------


@claim("kloft2011", "Corollaries 9 and 10", wrong="all but the loss divided by 50",
       figure="bounds_and_test_errors")  # fmt: skip
def no_test_error_exceeds_the_margin_bound(
    scale: Scale, wrong: bool = False
) -> Finding:
    """With probability 1 − δ the risk is below margin loss, complexity and deviation.

    Judged on the toy data with spherical linear kernels and no bias, as h ranges over
    what ℓp-norm MKL finds; γ is chosen from a list fixed beforehand, by a union bound.
    """
    rows = risks(scale)
    shrink = 50.0 if wrong else 1.0
    bound = rows.loss + (rows.bound - rows.loss) / shrink
    broken = int(np.sum(rows.test > bound))
    useful = int(np.sum(bound < 0.5))
    verdict = "refuted" if broken else ("confirmed" if useful else "vacuous")
    few = bound[rows.n == 50]
    words = (
        f"{broken} of {len(rows)} test errors exceed the bound (δ = {DELTA}); it is "
        f"below ½, the risk of a coin, in {useful} cases, and test errors are "
        f"{(rows.test / bound).max():.2f} of it at most; at n = 50, the size of "
        f"section 5.1, it is {few.min():.2f} to {few.max():.2f}"
    )
    return Finding(verdict, words, {"broken": broken, "useful": useful})


@claim("kloft2011", "Appendix A.1, example 1", wrong="C = M^{(p+1)/p}",
       figure="examples_of_a1")  # fmt: skip
def a_uniform_truth_has_the_same_bound_for_all_p(
    scale: Scale, wrong: bool = False
) -> Finding:
    """If w = (1, …, 1) must be in the class, bound (35) does not depend on p.

    The smallest C that admits w is M^{(p+1)/2p}, and C² M^{1/p*} = M².
    """
    n, M = 100, 50
    terms = np.array([
        example_term(n, M, p, M) * (radius(M, p) if wrong else 1.0) for p in PS
    ])  # fmt: skip
    spread = np.ptp(terms) / terms.mean()
    words = f"the terms for p = 1 … ∞ differ by {spread:.1e}, relatively (M = {M})"
    return decide(spread < 1e-12, words, spread=spread, term=terms[0])


@claim("kloft2011", "Appendix A.1, example 1, conclusion",
       wrong="all kernels are copies of one", figure="examples_of_a1")  # fmt: skip
def a_uniform_truth_prefers_no_norm(scale: Scale, wrong: bool = False) -> Finding:
    """With a uniform truth no norm is more promising than another before the data come.

    The bound does not depend on p. Judged here by what it bounds: C R(H^p) with
    C = M^{(p+1)/2p}, for kernels on different features.
    """
    rows = complexities(scale)
    rows = rows[rows.kernels == ("copies" if wrong else "linear")]
    rows = rows[rows.M.max() == rows.M].sort_values("p")
    need = np.array([radius(M, p) * v for M, p, v in zip(rows.M, rows.p, rows.value)])
    ratio = need.max() / need.min()
    words = (
        f"C R(H^p) at p = 1 is {need[0] / need[-1]:.2f} times that at p = ∞, and its "
        f"largest value {ratio:.2f} times its smallest (M = {rows.M.max()}; "
        f"√(2 log M) = {np.sqrt(2 * np.log(rows.M.max())):.2f})"
    )
    return decide(ratio < 1.1, words, ratio=ratio)


@claim("kloft2011", "Appendix A.1, example 2", wrong="p = ∞ in place of p = 1",
       figure="examples_of_a1")  # fmt: skip
def a_sparse_truth_prefers_p_1(scale: Scale, wrong: bool = False) -> Finding:
    """If w = (1, 0, …, 0) must be in the class, C = 1 for all p, and p = 1 is the best.

    Bound (35) and the measured complexity are both smallest there.
    """
    rows = complexities(scale)
    rows = _of_most_kernels(rows)
    best = INF if wrong else 1.0
    n, M = int(rows.n.iloc[0]), int(rows.M.max())
    terms = {p: example_term(n, M, p, 1) for p in PS}
    value = rows.set_index("p").value
    good = min(terms, key=terms.__getitem__) == best and value.idxmin() == best
    words = (
        f"M = {M}: the term of p = ∞ is {terms[INF] / terms[1.0]:.1f} times that of "
        f"p = 1, its complexity {value[INF] / value[1.0]:.1f} times"
    )
    return decide(good, words, bound=terms[INF] / terms[1.0])


@claim("kloft2011", "Section 6, on the bounds", wrong="said of the bound itself",
       figure="examples_of_a1")  # fmt: skip
def only_the_bounds_prefer_p_1_everywhere(scale: Scale, wrong: bool = False) -> Finding:
    """The bounds put ℓ1 first whatever the sparsity; tighter ones would not.

    The paper's conjecture. Here with the complexity itself: for w with s ones among M,
    the p that makes C R(H^p) smallest grows with s, from 1 to ∞, through p in between.
    """
    rows = _of_most_kernels(complexities(scale))
    n, M = int(rows.n.iloc[0]), int(rows.M.iloc[0])
    best = []
    for s in (1, M // 16, M // 4, M):
        cost = [
            example_term(n, M, p, s) if wrong else radius(s, p) * v
            for p, v in zip(rows.p, rows.value)
        ]
        best.append(float(rows.p.iloc[int(np.argmin(np.round(cost, 12)))]))
    good = best[0] == 1 and best[-1] == INF and best == sorted(best)
    good = good and any(1 < p < INF for p in best)
    words = "best p for s ones: " + ", ".join(
        f"s = {s}: {p:.3g}" for s, p in zip((1, M // 16, M // 4, M), best)
    )
    words += (
        f" (M = {M}); by the bound it is p = 1 for every s < M, and any p for s = M"
    )
    return decide(good, words, best=best)
