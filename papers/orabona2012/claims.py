"""What the paper states, as checks. Margins are written where they are used.

In the paper's units the objective is λ times ours, and f(0) = 1 for the hinges.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mklopt import GramStack, Problem, reference, solve
from mklopt.claims.items import Finding, Scale, claim, decide
from mklopt.formulations import BlockNorm, Ivanov
from mklopt.formulations.norms import dual_exponent, norm, norm_gradient
from mklopt.judge.rates import RateCheck, check_mean

from . import stand_ins, studies

Array = np.ndarray
KEY = "orabona2012"


# ---- the problem -----------------------------------------------------------------


def sizes(blocks: Array) -> Array:
    return np.linalg.norm(blocks, axis=1)


def gradient(blocks: Array, exponent: float, factor: float) -> Array:
    """factor · [(‖w^j‖/‖w‖)^{exponent − 2} w^j]_j: properties 1 and 2 of lemma 1."""
    u = sizes(blocks)
    share = u / norm(u, exponent)
    return factor * share[:, None] ** (exponent - 2) * blocks


@claim(KEY, "Lemma 1", wrong="the factor 1/q of ∇h* is left out")
def the_gradients_of_h_and_its_conjugate(scale: Scale, wrong: bool = False) -> Finding:
    """For h = (q/2)‖w‖²_{2,p} on the ball of radius B: ∇h and ∇h* have closed forms,
    ∇h* being a scaling of each block and a projection; ‖w‖_{2,p} = ‖∇h(w)‖_{2,q}/q.
    """
    rng, off = scale.rng("lemma 1"), []
    for p in (1.05, 1.5, 2.0):
        q = dual_exponent(p)
        for B in (0.1, 1.0, np.inf):
            for theta in rng.normal(size=(20, 4, 3)):
                w = gradient(theta, q, 1.0 if wrong else 1 / q)
                w = min(1.0, B / norm(sizes(w), p)) * w
                back = gradient(w, p, q)
                held = min(1.0, q * B / norm(sizes(theta), q))  # line 10
                off.append(np.max(np.abs(back - held * theta)) / np.max(np.abs(theta)))
                length = norm(sizes(back), q) / q
                off.append(abs(length - norm(sizes(w), p)) / length)
                off.append(_slope_error(w, p, back))
    worst = float(np.max(off))
    return decide(
        worst <= 1e-6,
        f"∇h(∇h*(θ)) is θ, or θ scaled to the ball, norms agree and differences of h "
        f"have the slope ∇h: to {worst:.0e} in {len(off)} cases.",
        off=worst,
    )


def _slope_error(w: Array, p: float, slope: Array, step: float = 1e-4) -> float:
    """Differences of h beside ⟨∇h, d⟩, d small beside each entry of w; relatively."""
    q = dual_exponent(p)
    d = step * w * np.linspace(-1, 1, w.size).reshape(w.shape)
    up, down = (0.5 * q * norm(sizes(w + s * d), p) ** 2 for s in (1, -1))
    return abs((up - down) / 2 - float(np.sum(slope * d))) / (step * up)


@claim(KEY, "Section 2.2", wrong="the modulus is λ, whatever p")
def the_problem_is_strongly_convex(scale: Scale, wrong: bool = False) -> Finding:
    """λ/2 ‖w‖²_{2,p} is λ/q-strongly convex in its own norm, 1 < p ≤ 2: the modulus
    vanishes as p tends to 1.
    """
    rng, least = scale.rng("strong"), {}
    for p in (1.05, 1.25, 1.5, 2.0):
        pairs = list(rng.uniform(0.01, 1.0, size=(scale.of(200, 2000, 20000), 2, 4)))
        pairs.append(np.array([[1.0, 1, 1, 1], [1.001, 0.999, 1.001, 0.999]]))
        form = BlockNorm(p)
        found = []
        for u, v in pairs:
            slope = norm(u, p) * norm_gradient(u, p)
            bregman = form.value(v) - form.value(u) - float((v - u) @ slope)
            found.append(bregman / (0.5 * norm(np.abs(v - u), p) ** 2))
        least[p] = min(found) * (1.0 if wrong else dual_exponent(p))
    worst = min(least.values())
    words = ", ".join(f"{x:.3f} at p = {p:g}" for p, x in least.items())
    return decide(
        worst >= 1,
        f"The least curvature found, in units of the claimed modulus, is {words}; the "
        "sharp modulus is λ(p − 1) = (λ/q)·p, up to twice the paper's.",
        **{f"p={p:g}": x for p, x in least.items()},
    )


@claim(KEY, "Section 5", wrong="the same p in both")
def p_norm_mkl_is_the_same_problem(scale: Scale, wrong: bool = False) -> Finding:
    """(5) is the p-norm MKL problem of Kloft et al. with p/(2 − p) for their exponent
    of the kernel weights, and C = 1/(λN).
    """
    grams, off = stand_ins.toy(30, seed=scale.seed), {}
    for p in (1.1, 1.5, 1.8):
        problem = stand_ins.three(grams, p, 1.0)
        ours = solve(problem, tol=1e-8).certificate
        weights = Ivanov(p if wrong else p / (2 - p))
        theirs = reference.solve(problem.with_(formulation=weights), tol=1e-7)
        apart = max(theirs.lower - ours.upper, ours.lower - theirs.upper)
        off[f"p={p:g}"] = max(apart, 0.0) / ours.upper
        off[f"width p={p:g}"] = (theirs.upper - theirs.lower) / ours.upper
    worst = max(x for name, x in off.items() if name[0] == "p")
    wide = max(x for name, x in off.items() if name[0] == "w")
    return decide(
        worst <= 1e-7 and wide <= 1e-5,
        f"The interval of f* of the program written with kernel weights and that of "
        f"(5) are {worst:.1e} apart, relatively; they are {wide:.0e} wide.",
        **off,
    )


@claim(KEY, "Section 2.2", wrong="p = 1.5 in place of 2")
def p_2_is_the_unweighted_sum(scale: Scale, wrong: bool = False) -> Finding:
    """With p = 2 the problem is the one of a single kernel, the unweighted sum."""
    task = stand_ins.views(scale, scale.of(60, 200, 500), scale.seed)
    problem = task.problem(1.5 if wrong else 2.0, 1.0)
    total = GramStack(np.sum(task.grams.dense(), axis=0)[None])
    alone = Problem(total, task.y, "multiclass_hinge", BlockNorm(2.0), 1.0, bias=False)
    many, one = (solve(x, tol=1e-8).certificate for x in (problem, alone))
    off = abs(many.upper - one.upper) / one.upper
    return decide(
        off <= 1e-7,
        f"{task.name}, {task.grams.M} kernels: the two optimal values differ by "
        f"{off:.1e}, relatively, both known to 1e-8.",
        off=off,
    )


@claim(KEY, "Section 2.2", wrong="p = 1.5 taken for close to 1", figure="sparser")
def p_near_1_is_near_the_sparse_problem(scale: Scale, wrong: bool = False) -> Finding:
    """p decides how sparse the solution is: the nearer to 1, the sparser, and at the
    end it is that of the sparse problem (2).
    """
    rows = studies.sparsity(scale).set_index("p")
    sparse, near = rows.loc[1.0], rows.loc[1.5 if wrong else 1.01]
    grows = bool(np.all(np.diff(rows.used) > 0))
    off = sparse.upper / near.lower - 1
    more = near.used / sparse.used - 1
    return decide(
        grows and off <= 0.05 and more <= 0.1,
        f"Kernels in use, (Σu)²/Σu², are {sparse.used:.2f} for the sparse problem, "
        f"{near.used:.2f} for p = {near.name:g} and {rows.used.iloc[-1]:.2f} of 16 for "
        f"p = 2; the optimal value at p = {near.name:g} is {100 * off:.1f} % below the "
        "sparse one.",
        used=list(rows.used), off=off,
    )  # fmt: skip


# ---- lemma 2, theorem 3 ----------------------------------------------------------


@claim(KEY, "Lemma 2", wrong="the bound divided by ten")
def the_regret_of_stage_2_is_bounded(scale: Scale, wrong: bool = False) -> Finding:
    """On every run, whatever the samples: the regret of stage 2 against any w in the
    ball is at most what its own step sizes add up to.
    """
    rows = studies.regret(scale)
    slack = rows.bound / rows.regret / (10 if wrong else 1)
    known = slack[rows.regret > 0]
    return decide(
        np.all(known >= 1),
        f"Against w*, after every epoch of {rows.groupby(['p', 'C']).ngroups} runs "
        f"(p from 1.1 to 2, C from 0.1 to 1000): the bound is {known.min():.1f} to "
        f"{known.max():.0f} times the regret. It is half of the printed right side at "
        "the ξ that the algorithm itself plays.",
        least=known.min(), most=known.max(),
    )  # fmt: skip


def theorem_3(
    rows: pd.DataFrame, wrong: bool, C: list[float], iterate: str
) -> dict[tuple, RateCheck]:
    """The check of a mean, for each p and C: mean over seeds, all T together."""
    found = {}
    part = rows[rows.C.isin(C) & (rows.iterate == iterate)]
    for cell, one in part.groupby(["p", "C"]):
        values = one.pivot(index="seed", columns="T", values="value")
        bound = one.groupby("T").bound.first().to_numpy() / (1000 if wrong else 1)
        ends = (one.lower.iloc[0], one.upper.iloc[0])
        start = {"start": one.start.iloc[0]}
        T = values.columns.to_numpy()
        found[cell] = check_mean(T, values.to_numpy(), bound, *ends, **start)
    return found


def together(found: dict[tuple, RateCheck], about: str) -> Finding:
    """Refuted if one is violated; vacuous if none says anything."""
    states = [v.status for v in found.values()]
    status = "holds" if "holds" in states else "vacuous"
    if "violated" in states or "not testable" in states:
        status = "violated" if "violated" in states else "not testable"
    each = "; ".join(
        f"p = {p:g}, C = {C:g}: {v.status}, power {v.slack:.0f}"
        for (p, C), v in found.items()
    )
    verdict = {"holds": "confirmed", "violated": "refuted"}.get(status, status)
    slack = {f"p={p:g} C={C:g}": v.slack for (p, C), v in found.items()}
    power = (
        "The power is the factor by which a smaller bound would have been refuted, at "
        "level 0.05 for all T together."
    )
    return Finding(verdict, f"{about} {each}. {power}", slack)


@claim(KEY, "Theorem 3", wrong="the bound divided by 1000", figure="theorem_3_over_T")
def the_mean_converges_as_theorem_3_says(scale: Scale, wrong: bool = False) -> Finding:
    """In expectation, T steps of stage 2 are within c√(q(1 + ln T)) ·
    min(c√(q(1 + ln T))/(λT), 4R/√T) of the optimum, c = λR + L: for the mean of
    w_1 … w_T, which is what the proof gives, at C = 0.01 and C = 1.
    """
    found = theorem_3(studies.expectation(scale), wrong, [0.01, 1.0], "average")
    return together(found, "The mean of w_1 … w_T:")


@claim(KEY, "Theorem 3", wrong="the bound divided by 1000", figure="theorem_3_over_T")
def theorem_3_at_the_C_of_the_experiments(scale: Scale, wrong: bool = False) -> Finding:
    """The same bound for C = 100, inside the range that section 5 searches."""
    found = theorem_3(studies.expectation(scale), wrong, [100.0], "average")
    words = "Vacuous means: it holds, but never falls below f(0) − f*, what w = 0 has."
    return together(found, words)


@claim(KEY, "Theorem 3", wrong="the bound divided by 1000", figure="theorem_3_over_T")
def the_last_iterate_obeys_the_bound_too(scale: Scale, wrong: bool = False) -> Finding:
    """As printed the theorem is about w_T itself, the last iterate."""
    found = theorem_3(studies.expectation(scale), wrong, [0.01], "last")
    return together(found, "The last iterate w_T, for which it is not proved:")


def growth(values: Array, sizes: Array) -> float:
    """The exponent e of values ~ sizes^e from the first to the last."""
    return float(np.log(values[-1] / values[0]) / np.log(sizes[-1] / sizes[0]))


@claim(KEY, "Section 3.1", wrong="quadratic in N", figure="linear_time")
def a_step_is_linear_in_N(scale: Scale, wrong: bool = False) -> Finding:
    """A step of the multi-class hinge costs O(NFM), so that training time is linear in
    the number of samples.
    """
    rows = studies.step_cost(scale)
    table = rows.pivot(index="n", columns="k", values="seconds_per_step")
    n = table.index.to_numpy()
    found = {int(k): growth(took.to_numpy(), n) for k, took in table.items()}
    wanted = 2.0 if wrong else 1.0
    classes = float((table[10] / table[3]).iloc[-1])
    return decide(
        max(abs(e - wanted) for e in found.values()) < 0.5,
        f"Time of an update from N = {n[0]} to {n[-1]} grows like N^e with e = "
        f"{found[3]:.2f} for 3 and {found[10]:.2f} for 10 classes (|e − {wanted:g}| < "
        f"0.5 was asked for). Ten classes take {classes:.2f} times as long as three: "
        "with predictions kept up to date a step touches two classes, not M.",
        **{f"M={k}": e for k, e in found.items()}, classes=classes,
    )  # fmt: skip


@claim(
    KEY,
    "Section 4, after Theorem 3",
    wrong="p = 2 in place of q = 2 ln F",
    figure="many_kernels",
)
def useless_kernels_cost_a_logarithm(scale: Scale, wrong: bool = False) -> Finding:
    """For p near 1 the dependence on the number of kernels is strongly sublinear:
    qL² = 2qF^{2/q} is O(ln F) for q = 2 ln F.
    """
    rows = studies.noise(scale)
    rows["left"] = rows.value - 0.5 * (rows.lower + rows.upper)
    part = rows[rows.choice == ("p = 2" if wrong else "2 ln F")]
    left = part.groupby(["F", "T"]).left.mean().unstack()
    more = (left.iloc[-1] / left.iloc[0]).max()
    F = left.index.to_numpy()
    allowed = np.log(F[-1]) / np.log(F[0])
    return decide(
        more <= allowed,
        f"Four kernels that matter; with F = {F[-1]} instead of {F[0]} kernels, the "
        f"others noise, what is left after the same steps is at most {more:.2f} times "
        f"as much; logarithms allow {allowed:.1f}, proportion {F[-1] / F[0]:.0f}.",
        more=more, allowed=allowed,
    )  # fmt: skip


@claim(KEY, "Sections 3 and 6", wrong="the squared loss among them")
def any_lipschitz_loss_will_do(scale: Scale, wrong: bool = False) -> Finding:
    """The algorithm takes any convex Lipschitz loss as it is, binary, multi-class or of
    regression.
    """
    rows = studies.losses(scale)
    rows = rows if wrong else rows[rows.loss.isin(studies.LIPSCHITZ)]
    left = rows.set_index("loss").left.fillna(np.inf)
    each = ", ".join(f"{100 * x:.2g} ({name})" for name, x in left.items())
    return decide(
        np.all(left <= 0.05),
        f"Of the way from f(0) to f* there is left, in %: {each}; 5 were allowed.",
        **{str(name): x for name, x in left.items()},
    )


# ---- stage 1 ---------------------------------------------------------------------


@claim(KEY, "Section 4.1", wrong="R = ‖w‖, its loss left out", figure="radius")
def R_bounds_the_norm_of_the_solution(scale: Scale, wrong: bool = False) -> Finding:
    """Whenever stage 1 is stopped, R² = ‖w‖² + 2/(λN) Σ ℓ is at least ‖w*‖²."""
    rows = studies.radii(scale)
    ratio = (rows.norm if wrong else rows.R) / rows.most
    return decide(
        np.all(ratio >= 1),
        f"In {len(rows)} cases (p, C, epochs of stage 1) R is {ratio.min():.2f} to "
        f"{ratio.max():.0f} times ‖w*‖, which is known from a certified solution.",
        least=ratio.min(), most=ratio.max(),
    )  # fmt: skip


@claim(KEY, "Theorem 4", wrong="both bounds divided by four", figure="stage_1")
def stage_1_ends_within_theorem_4(scale: Scale, wrong: bool = False) -> Finding:
    """On separable samples stage 1 makes at most q(2/η + L²)‖v‖² updates, v any
    separator, and returns R ≤ (2 + ηL²)‖v‖.
    """
    rows = studies.separable(scale)
    by = 4 if wrong else 1
    updates = rows.most_updates / by / rows.updates
    radius = rows.most_R / by / rows.R
    good = rows.separated.all() and min(updates.min(), radius.min()) >= 1
    return decide(
        good,
        f"{len(rows)} runs with v of least norm, certified: the bound is "
        f"{updates.min():.1f} to {updates.max():.0f} times the updates, and "
        f"{radius.min():.1f} to {radius.max():.0f} times R.",
        updates=updates.min(), R=radius.min(),
    )  # fmt: skip


@claim(KEY, "Theorem 4", wrong="the bound halved")
def stage_1_competes_with_any_w(scale: Scale, wrong: bool = False) -> Finding:
    """Separable or not, with A = q(2/η + L²)‖u‖² the updates are at most A + Σℓ(u) +
    √(A Σℓ(u)) for every u, the losses summed over the updates.
    """
    rows = studies.mistakes(scale)
    slack = rows.bound / rows.updates / (2 if wrong else 1)
    return decide(
        slack.min() >= 1,
        f"After each epoch, for three p, three η and u = w* of three C: the bound is "
        f"{slack.min():.3f} to {slack.max():.0f} times the updates.",
        least=slack.min(),
    )


@claim(
    KEY,
    "Section 4.1, after Theorem 4",
    wrong="R does not depend on η, to a tenth",
    figure="stage_1",
)
def eta_trades_speed_for_R(scale: Scale, wrong: bool = False) -> Finding:
    """A larger η ends stage 1 sooner and makes the estimate R worse."""
    rows = studies.separable(scale).groupby(["p", "eta"])[["updates", "R"]].mean()
    fewer = all(np.all(np.diff(one.updates) <= 0) for _, one in rows.groupby("p"))
    worse = all(np.all(np.diff(one.R) >= 0) for _, one in rows.groupby("p"))
    spread = max(one.R.max() / one.R.min() for _, one in rows.groupby("p"))
    first, last = rows.loc[1.1].iloc[0], rows.loc[1.1].iloc[-1]
    return decide(
        spread <= 1.1 if wrong else fewer and worse,
        f"For each p, means over seeds: from η = 0.1 to 10 updates only fall and R "
        f"only grows; at p = 1.1 {first.updates:.0f} → {last.updates:.0f} updates, R = "
        f"{first.R:.2f} → {last.R:.2f}.",
        updates=[first.updates, last.updates], R=[first.R, last.R], spread=spread,
    )  # fmt: skip


@claim(
    KEY,
    "Section 4.1, after Theorem 4",
    wrong="kernels that are divided by their number, so that their sum stays as large",
)
def more_kernels_separate_with_less(scale: Scale, wrong: bool = False) -> Finding:
    """When kernels are added, the least norm of a separator cannot increase."""
    falls, words = [], []
    for p, one in studies.nested(scale).groupby("p"):
        longer = np.sqrt(one.F.to_numpy()) if wrong else 1.0
        low, high = longer * one.least.to_numpy(), longer * one.most.to_numpy()
        falls.append(np.all(low[1:] <= high[:-1]))
        words.append(f"{high[0]:.3f} → {high[-1]:.3f} at p = {p:g}")
    return decide(
        all(falls),
        f"Certified least norms for 1, 2, 4, 8, 16 kernels: {', '.join(words)}.",
        falls=int(sum(falls)),
    )


@claim(KEY, "Section 4.1, on separability", wrong="without the Gaussian kernel")
def one_kernel_of_full_rank_separates(scale: Scale, wrong: bool = False) -> Finding:
    """Separable is the usual case: one kernel of full rank, as a Gaussian, is enough
    when no sample comes twice, whatever the labels.
    """
    n = scale.of(40, 80, 200)
    rng = scale.rng("full rank")
    X, y = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 3)
    apart = np.sum((X[:, None] - X) ** 2, axis=2)
    linear = 1 + X @ X.T
    linear /= np.max(linear)
    kinds = [linear, linear**2] if wrong else [linear, linear**2, np.exp(-5 * apart)]
    problem = Problem(
        GramStack(np.array(kinds)), y, "multiclass_hinge", BlockNorm(1.25), bias=False
    )
    try:
        _, high = reference.hard_margin(problem, tol=1e-3).norm
    except ValueError as reason:
        return decide(False, f"Random labels of {n} points: {reason}.")
    run = studies.descent(problem, scale.seed)
    epochs = studies.first_stage(run, 100 * studies.MOST, 1.0)
    return decide(
        run.separated,
        f"Random labels of {n} points, two kernels of low rank and a Gaussian: the "
        f"least norm of a separator is {high:.4g}, and stage 1 finds one in {epochs} "
        "epochs.",
        norm=high, epochs=epochs,
    )  # fmt: skip


# ---- the conditions of theorem 4 -------------------------------------------------


def slope_of(loss: str, f: Array, y: int) -> tuple[float, Array]:
    """The loss of the predictions of one sample and a subgradient in them.

    hinge, logistic: f has one entry and y = ±1; multi-class: y is a class.
    """
    if loss == "multi-class":
        rival = np.where(np.arange(len(f)) == y, -np.inf, f)
        value = 1 - f[y] + np.max(rival)
        slope = (np.arange(len(f)) == np.argmax(rival)) - 1.0 * (np.arange(len(f)) == y)
        return (value, slope) if value > 0 else (0.0, 0 * f)
    margin = y * f[0]
    if loss == "logistic":
        return float(np.logaddexp(0, -margin)), -y / (1 + np.exp(margin + 0 * f))
    return (1 - margin, -y + 0 * f) if margin < 1 else (0.0, 0 * f)


def violations(loss: str, rng: np.random.Generator, count: int) -> dict[str, float]:
    """By how much the three conditions of theorem 4 fail, at most, on random samples.

    F kernels with ‖φ^j(x)‖ ≤ 1; w and u are (F, d, M), predictions Σ_j w^jᵀφ^j(x).
    """
    worst = dict.fromkeys(("length", "margin", "own"), -np.inf)
    for _ in range(count):
        F, d = int(rng.integers(1, 9)), 3
        M = int(rng.integers(2, 6)) if loss == "multi-class" else 1
        p = rng.uniform(1.01, 2.0)
        q = dual_exponent(p)
        phi = rng.normal(size=(F, d))
        phi /= np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0)
        scales = np.exp(rng.uniform(-2, 3, 2))[:, None, None, None]
        w, u = scales * rng.normal(size=(2, F, d, M))
        y = int(rng.integers(M)) if M > 1 else int(rng.choice([-1, 1]))
        f, g = (np.einsum("jdm,jd->m", v, phi) for v in (w, u))
        value, slope = slope_of(loss, f, y)
        z = phi[:, :, None] * slope  # ∂ℓ, one block for each kernel
        longest = (np.sqrt(2) if M > 1 else 1.0) * F ** (1 / q)
        length = norm(np.linalg.norm(z.reshape(F, -1), axis=1), q)
        worst["length"] = max(worst["length"], length / longest - 1)
        if value > 0:
            lost = 1 + float(np.sum(u * z)) - slope_of(loss, g, y)[0]
            worst["margin"] = max(worst["margin"], lost)
        worst["own"] = max(worst["own"], -1 - float(np.sum(w * z)))
    return worst


@claim(KEY, "Theorem 4 and Section 4", wrong="the logistic loss among them")
def both_losses_meet_the_conditions_of_theorem_4(
    scale: Scale, wrong: bool = False
) -> Finding:
    """The hinge and the multi-class hinge meet its three conditions: ‖∂ℓ(w)‖_{2,q} ≤ L,
    with L = F^{1/q} and √2 F^{1/q} for kernels of length 1; ℓ(u) ≥ 1 + u·∂ℓ(w) where
    ℓ(w) > 0; w·∂ℓ(w) ≥ −1.
    """
    rng, count = scale.rng("theorem 4"), scale.of(200, 5000, 50_000)
    found = {loss: violations(loss, rng, count) for loss in ("hinge", "multi-class")}
    other = violations("logistic", rng, count)
    judged = [*found.values(), *([other] if wrong else [])]
    worst = max(max(one.values()) for one in judged)
    each = "; ".join(
        f"{loss}: " + ", ".join(f"{x:.1e}" for x in one.values())
        for loss, one in found.items()
    )
    return decide(
        worst <= 1e-9,
        f"On {count} random samples, w and u with up to 8 kernels and 5 classes the "
        f"three conditions fail by at most (negative: they hold with so much to spare) "
        f"{each}. The logistic loss fails the second by {other['margin']:.2g}.",
        worst=worst, logistic=other["margin"],
    )  # fmt: skip
