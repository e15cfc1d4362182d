"""What is measured for Aflalo et al. (2011).

The theorems are held against small problems with well-conditioned kernels, sparsity and
the oracle against mfeat, six views of handwritten digits (in tests the quadrants of
scikit-learn's digits). Figures 1 and 2, table 1 and the complexity are in
experiments.py. No run has a limit on time: the same seed gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from mklopt import GramStack, Problem, data, kernels, reference, solve
from mklopt.claims.items import Scale, study
from mklopt.formulations import VSKL, BlockNorm, Composite
from mklopt.formulations.base import Formulation
from mklopt.formulations.norms import dual_exponent
from mklopt.solvers.mirror import lipschitz, softmax, width
from mklopt.solvers.steps.simplex_oracle import Oracle

from .settings import full_rank

KEY = "aflalo2011"
Array = np.ndarray
INF = float("inf")
QS = (1.0, 1.5, 2.0, 3.0, INF)
NOISE = 2  # views of noise, beside those of the data
WIDTHS = (0.05, 0.2, 0.5, 1.0, 3.0)  # of Gaussians, in units of √d
ROUNDS = 15  # of block coordinate ascent, followed one by one


# ---- small problems with well-conditioned kernels ------------------------------------


def well_conditioned(scale: Scale, q: float, C: float = 1.0) -> Problem:
    """Two groups of Gaussian kernels with eigenvalues between ¼ and about 10."""
    n, M = scale.of((24, 6), (40, 8), (60, 12))
    grams, y = full_rank(n, M)
    return Problem(grams, y, "hinge", VSKL((range(M // 2), range(M // 2, M)), q), C)


def aligned(scale: Scale, q: float, C: float) -> Problem:
    """Two groups of ¼I + ¾zzᵀ/n: z = y for one kernel of each, z ⟂ y for the others.

    While C is small all α_i are C, and the constants of the theorem are nearly met.
    """
    n, size = 40, scale.of(3, 4, 8)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    basis = np.column_stack([y, scale.rng("aligned").normal(size=(n, size - 1))])
    Z = np.linalg.qr(basis)[0]
    group = [0.25 * np.eye(n) + 0.75 * np.outer(z, z) for z in Z.T]
    form = VSKL((range(size), range(size, 2 * size)), q)
    return Problem(GramStack(np.stack(2 * group)), y, "hinge", form, C)


def oracle_of(problem: Problem, tol: float = 1e-9) -> Oracle:
    """Algorithm 2 for a problem, to this error."""
    found = Oracle(problem, *problem.formulation.simplices(problem.grams.M))
    found.machine.tol = found.wanted = tol
    return found


def settle(oracle: Oracle, lam: Array) -> Oracle:
    """(α, γ) at λ."""
    for _ in oracle.solve(lam):
        pass
    return oracle


def uniform(oracle: Oracle) -> Array:
    return softmax(np.zeros(len(oracle.owner)), oracle)


def random_lambda(oracle: Oracle, rng: np.random.Generator, sharp: float) -> Array:
    """A point of the product of simplices; the sharper, the nearer to a corner."""
    return softmax(sharp * rng.normal(size=len(oracle.owner)), oracle)


def best_lambda(problem: Problem) -> Array:
    """λ near the minimum of G."""
    theta = solve(problem, "mirror", tol=1e-9, max_iter=500).weights
    sums = oracle_of(problem).sums(theta)
    return np.asarray(theta / sums[oracle_of(problem).owner])


def partial_dual(problem: Problem) -> tuple[float, float]:
    """An interval around the minimum of G, from (D) alone.

    From above G at some λ; from below, at the (α, γ) that belongs to it, the minimum
    over λ of f_λ(α, γ) = 1ᵀα − ½ Σ_j Σ_k λ_jk αᵀQ_jkα/γ_j: the best kernel per group.
    """
    o = settle(oracle_of(problem, 1e-10), best_lambda(problem))
    gamma = best_gamma(o.D, dual_exponent(o.q))
    largest = np.array([np.max(o.machine.v[list(g)] ** 2) for g in o.groups])
    return problem.dual_loss(o.alpha) - 0.5 * float(
        np.sum(largest / gamma)
    ), o.bounds.upper


def best_gamma(D: Array, star: float) -> Array:
    """Proposition 3.3."""
    if star == INF:
        return np.ones_like(D)
    gamma = D ** (1 / (star + 1))
    return np.asarray(gamma / np.sum(gamma**star) ** (1 / star))


@study(KEY)
def duality(scale: Scale) -> pd.DataFrame:
    """Intervals of the optimum: of (P) by a conic program, of (D) by its own terms."""
    rows = []
    for q in QS:
        for C in scale.of((1.0,), (0.1, 1.0, 10.0), (0.01, 0.1, 1.0, 10.0, 100.0)):
            problem = well_conditioned(scale, q, C)
            exact = reference.solve(problem, tol=1e-8)
            other = well_conditioned(scale, dual_exponent(q), C)
            both = *partial_dual(problem), *partial_dual(other)
            rows.append((q, C, exact.lower, exact.upper, *both))
    names = ["q", "C", "primal_lower", "primal_upper", "dual_lower", "dual_upper"]
    return pd.DataFrame(rows, columns=[*names, "swapped_lower", "swapped_upper"])


@study(KEY)
def special_cases(scale: Scale) -> pd.DataFrame:
    """Optimal values of VSKL_q for one group, two, and one kernel a group.

    As certified intervals; beside them what they should be: block ℓ1, block norm 2q.
    """
    rows = []
    for q in QS:
        problem = well_conditioned(scale, q)
        M = problem.grams.M
        cases: dict[str, Formulation] = {
            "one group": VSKL((range(M),), q),
            "two groups": problem.formulation,
            "singletons": VSKL([[k] for k in range(M)], q),
            "block l1": BlockNorm(1.0),
            "block 2q": BlockNorm(2 * q),
            "block 2": BlockNorm(2.0),
        }
        for name, formulation in cases.items():
            found = reference.solve(problem.with_(formulation=formulation), tol=1e-8)
            rows.append((q, name, found.lower, found.upper))
    return pd.DataFrame(rows, columns=["q", "case", "lower", "upper"])


@study(KEY)
def slopes(scale: Scale) -> pd.DataFrame:
    """∂G/∂λ by central differences, as appendix A prints it, and with 1/(q*+1)."""
    h, rows = 1e-4, []
    for q in QS[1:]:
        o = oracle_of(well_conditioned(scale, q), 1e-12)
        lam = random_lambda(o, scale.rng("slopes", q), 1.0)
        settle(o, lam)
        star, D, squares = dual_exponent(q), o.D.copy(), o.machine.v**2
        total = np.sum(D ** (star / (star + 1))) ** (1 / star)
        for k, j in enumerate(o.owner):
            ends = [settle(o, lam + s * h * np.eye(len(lam))[k]).value for s in (1, -1)]
            measured = (ends[0] - ends[1]) / (2 * h)
            printed = -0.5 * squares[k] * total / D[j] ** (1 / star)
            right = -0.5 * squares[k] * total / D[j] ** (1 / (star + 1))
            rows.append((q, k, measured, printed, right))
    return pd.DataFrame(rows, columns=["q", "kernel", "measured", "printed", "right"])


@study(KEY)
def constants(scale: Scale) -> pd.DataFrame:
    """‖G'‖∞ at random λ beside the two Lipschitz constants, and G between two λ.

    The kernels "identity" are 2e-7 times the identity with C = 1e6: every α_i is C, and
    nothing is left to estimate.
    """
    m, most, small = 100, 1e6, 2e-7
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    stack, rows = GramStack(np.stack([small * np.eye(m)] * 4)), []
    for q in QS:
        plain = Problem(stack, y, "hinge", VSKL(((0, 1), (2, 3)), q), most)
        cases = {"identity": plain, "gaussian": well_conditioned(scale, q)}
        for name, problem in cases.items():
            rng, o = scale.rng("constants", name, q), oracle_of(problem, 1e-8)
            both = printed_lipschitz(problem), lipschitz(problem)
            for draw in range(scale.of(3, 8, 30)):
                here, there = (random_lambda(o, rng, 3.0) for _ in range(2))
                rows.append((q, name, draw, *_between(o, here, there), *both))
    names = ["q", "kernels", "draw", "steepest", "middle_lower", "mean_upper"]
    return pd.DataFrame(rows, columns=[*names, "printed", "right"])


def _between(o: Oracle, here: Array, there: Array) -> tuple[float, float, float]:
    """‖G'(here)‖∞, G half-way from below, and the mean of both ends from above."""
    steepest = float(np.max(np.abs(settle(o, here).slope)))
    above = o.bounds.upper
    mean = 0.5 * (above + settle(o, there).bounds.upper)
    return steepest, settle(o, 0.5 * (here + there)).bounds.lower, mean


def printed_lipschitz(problem: Problem) -> float:
    """L_G of appendix A, with the number of support vectors as large as it can be."""
    q = problem.formulation.q  # type: ignore[attr-defined]
    ends = [np.linalg.eigvalsh(K)[[0, -1]] for K in problem.grams.dense()]
    mu, tau = float(np.max(ends)), float(np.min(ends) / np.max(ends))
    square = mu * float(np.sum(problem.costs**2))
    if q == 1:
        return 0.5 * square
    star, n = dual_exponent(q), len(problem.formulation.groups)  # type: ignore[attr-defined]
    power = (star * (star + 1) - 1) / (star * (star + 1))
    return float(0.5 * (n / tau) ** (1 / star) * square**power)


# ---- theorem 3.1 ---------------------------------------------------------------------

Length = Callable[[int, Oracle], float]


def walk(problem: Problem, steps: int, length: Length) -> Iterator[tuple[float, ...]]:
    """Algorithm 3 with an oracle that is exact to 1e-9 and any rule for the steps.

    Yields t, s_t, ‖G'‖∞, and G from below and above.
    """
    o = oracle_of(problem)
    lam = uniform(o)
    for t in range(1, steps + 1):
        settle(o, lam)
        slope, s = o.slope, length(t, o)
        yield t, s, float(np.max(np.abs(slope))), o.value, o.bounds.upper
        lam = softmax(np.log(np.maximum(lam, 1e-300)) - s * slope, o)


def rules(problem: Problem, steps: int) -> dict[str, Length]:
    """Steps of section 3.2.1 (A = 1), of theorem 3.1 item 3, and summable ones."""
    gamma, sigma = width(oracle_of(problem))
    L = lipschitz(problem)

    def by_gradient(t: int, o: Oracle) -> float:
        return float(np.sqrt(gamma * sigma / t) / np.max(np.abs(o.slope)))

    return {
        "gradient": by_gradient,
        "lipschitz": lambda t, o: float(np.sqrt(2 * gamma * sigma / t) / L),
        "horizon": lambda t, o: float(np.sqrt(2 * gamma * sigma / steps) / L),
        "summable": lambda t, o: by_gradient(t, o) / t**1.5,
    }


@study(KEY)
def walks(scale: Scale) -> pd.DataFrame:
    """Mirror descent step by step, with all that theorem 3.1 speaks of."""
    rows, steps = [], scale.of(40, 60, 400)
    for q in scale.of((1.0, 2.0, INF), (1.0, 2.0, INF), QS):
        for C in scale.of((1.0,), (0.01, 1.0), (0.01, 1.0, 100.0)):
            problem = well_conditioned(scale, q, C)
            gamma, sigma = width(oracle_of(problem))
            best = best_lambda(problem)
            o = settle(oracle_of(problem), best)
            star = solve(problem, "mirror", tol=1e-9, max_iter=500).certificate
            known = (divergence(best, uniform(o)), gamma, sigma, lipschitz(problem))
            ends = (o.value, star.lower, star.upper)
            for name, rule in rules(problem, steps).items():
                for row in walk(problem, steps, rule):
                    rows.append((q, C, name, *row, *known, *ends))
    names = ["q", "C", "rule", "t", "step", "steepest", "value", "upper", "divergence"]
    names += ["Gamma", "sigma", "L", "at_best", "star_lower", "star_upper"]
    return pd.DataFrame(rows, columns=names)


def divergence(a: Array, b: Array) -> float:
    """B_Φ(a, b) = Σ a log(a/b) on the product of simplices."""
    used = a > 0
    return float(np.sum(a[used] * np.log(a[used] / b[used])))


# ---- the oracle ----------------------------------------------------------------------


@study(KEY)
def ascent(scale: Scale) -> pd.DataFrame:
    """Block coordinate ascent round by round at random λ, with G(λ) as an interval.

    "swapped" takes γ from Δ_{n,q}; γ begins at its uniform value.
    """
    rows = []
    for q in QS:
        for draw in range(scale.of(2, 5, 20)):
            problem = well_conditioned(scale, q, 10.0)
            lam = random_lambda(oracle_of(problem), scale.rng("ascent", q, draw), 1.0)
            exact = settle(oracle_of(problem, 1e-11), lam).bounds
            for name, used in (("printed", q), ("swapped", dual_exponent(q))):
                for t, value in enumerate(_rounds(problem, used, q, lam), start=1):
                    rows.append((q, draw, name, t, value, exact.lower, exact.upper))
    names = ["q", "draw", "gamma", "round", "value", "lower", "upper"]
    return pd.DataFrame(rows, columns=names)


def _rounds(problem: Problem, used: float, q: float, lam: Array) -> list[float]:
    """f_λ(α, γ) with γ of the exponent `used`, scaled into Δ_{n,q*}, round by round."""
    o = Oracle(problem, problem.formulation.groups, used)  # type: ignore[attr-defined]
    o.machine.tol, o.lam, values = 1e-11, lam, []
    for _ in range(ROUNDS):
        o.round()
        gamma = best_gamma(o.D, dual_exponent(used))
        size = np.linalg.norm(gamma, dual_exponent(q))
        spent = 0.5 * float(np.sum(o.D / (gamma / size)))
        values.append(problem.dual_loss(o.alpha) - spent)
    return values


@study(KEY)
def rounds(scale: Scale) -> pd.DataFrame:
    """Rounds of the oracle until f_λ changes by less than 1e-4 of itself.

    In every step of mirror descent, warm-started, on views of digits as in table 1.
    """
    rows = []
    for q in QS:
        problem = next(_binary(scale, scale.seed, 100.0))
        problem = problem.with_(formulation=VSKL(groups_of(problem), q))
        o, t = oracle_of(problem, 1e-6), 0
        lam = uniform(o)
        for t in range(1, scale.of(5, 10, 50) + 1):
            rows.append((q, t, _rounds_until(o, lam, 1e-4)))
            size = np.sqrt(np.prod(width(o)) / t) / np.max(np.abs(o.slope))
            lam = softmax(np.log(np.maximum(lam, 1e-300)) - size * o.slope, o)
    return pd.DataFrame(rows, columns=["q", "t", "rounds"])


def _rounds_until(o: Oracle, lam: Array, change: float) -> int:
    o.lam, last = lam, -INF
    for count in range(1, 200):
        o.round()
        if abs(o.value - last) <= change * abs(o.value):
            return count
        last = o.value
    return 200


# ---- table 1: views of digits --------------------------------------------------------


def digits(scale: Scale, seed: int, noisy: int) -> tuple[data.Dataset, ...]:
    """(training, validation, test) sets with views, standardized, and views of noise.

    mfeat: six views of 2000 handwritten numerals. Tiny: the four quadrants of
    scikit-learn's digits.
    """
    if scale.mode == "tiny":
        plain = data.load("digits")
        image = plain.X.reshape(-1, 8, 8)
        cut = {f"{i}{j}": image[:, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
               for i in (0, 1) for j in (0, 1)}  # fmt: skip
        views = {name: part.reshape(len(image), -1) for name, part in cut.items()}
        found = data.Dataset("digits", plain.X, plain.y, views, "classes")
        found = _first_classes(found, 4)
    else:
        found = data.load("mfeat")
    rng = scale.rng("noise", seed)
    noise = {f"noise {k}": rng.normal(size=(len(found.y), 20)) for k in range(noisy)}
    found = data.Dataset(
        found.name, found.X, found.y, {**found.views, **noise}, "classes"
    )
    train, rest = found.split(scale.of(60, 100, 400), seed=seed)
    valid, test = rest.split(scale.of(200, 300, 300), seed=seed)
    return tuple(part.standardized(by=train) for part in (train, valid, test))


def _first_classes(found: data.Dataset, many: int) -> data.Dataset:
    rows = found.y < many
    views = {name: part[rows] for name, part in found.views.items()}
    return data.Dataset(found.name, found.X[rows], found.y[rows], views, "classes")


def view_kernels(train: data.Dataset) -> kernels.FittedKernels:
    """Five Gaussians of each view, unit trace."""
    sizes = [np.sqrt(part.shape[1]) for part in train.views.values()]
    family = [kernels.gaussians(np.array(WIDTHS) * size) for size in sizes]
    return kernels.views(family, train.views).fit(train.views, normalize="unit_trace")


def groups_of(problem: Problem) -> tuple[range, ...]:
    k = len(WIDTHS)
    return tuple(range(j, j + k) for j in range(0, problem.grams.M, k))


def methods(groups: tuple[range, ...]) -> dict[str, tuple[Formulation, str]]:
    """The columns of table 1: a formulation and its solver."""
    every = [k for group in groups for k in group]
    found: dict[str, tuple[Formulation, str]] = {
        f"VSKL q={'∞' if q == INF else f'{q:g}'}": (VSKL(groups, q), "mirror")
        for q in (1.0, 2.0, 3.0, INF)
    }
    found["MKL"] = VSKL((every,), 1.0), "mirror"
    found["SVM"] = BlockNorm(2.0), "analytic"
    for q in (0.75, 0.85, 0.99):
        found[f"CKL q={q:g}"] = Composite(groups, 1.0, 2 * q), "analytic"
    return found


def _binary(scale: Scale, seed: int, C: float) -> Iterator[Problem]:
    """Some classes against the rest, on the views of table 1."""
    train = digits(scale, seed, NOISE)[0]
    grams = view_kernels(train).grams()
    for c in range(scale.of(2, 3, 10)):
        y = np.where(train.y == c, 1.0, -1.0)
        yield Problem(grams, y, "hinge", BlockNorm(2.0), C)


@study(KEY)
def sparsity(scale: Scale) -> pd.DataFrame:
    """Which kernels and groups the formulations use, at a certified gap of 1e-6.

    A kernel is used if ‖w_k‖ exceeds 1e-4 of the largest; evenness is the smallest over
    the largest Σ_k ‖w_jk‖ of the groups.
    """
    rows = []
    for c, problem in enumerate(_binary(scale, scale.seed, 100.0)):
        groups = groups_of(problem)
        forms: dict[str, Formulation] = {
            name: form for name, (form, _) in methods(groups).items()
        }
        for name, form in forms.items():
            rows.append((c, name, len(groups), *_used(problem, form, groups)))
        for many in _divisors(len(groups)):
            cut = np.array_split(np.arange(problem.grams.M), many)
            merged = VSKL([tuple(map(int, part)) for part in cut], 2.0)
            rows.append((c, "grouped", many, *_used(problem, merged, groups)))
        single = VSKL([[k] for k in range(problem.grams.M)], 2.0)
        rows.append((c, "grouped", problem.grams.M, *_used(problem, single, groups)))
    names = ["class", "method", "groups", "kernels_used", "views_used", "evenness"]
    return pd.DataFrame(rows, columns=[*names, "kernels", "gap"])


def _divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]


def _used(problem: Problem, form: Formulation, groups: Any) -> tuple[Any, ...]:
    found = solve(problem.with_(formulation=form), tol=1e-6, max_iter=3000)
    u = found.certificate.norms
    used = u > 1e-4 * np.max(u)
    sums = np.array([np.sum(u[list(group)]) for group in groups])
    active = sum(bool(np.any(used[list(group)])) for group in groups)
    even = float(np.min(sums) / np.max(sums))
    return int(np.sum(used)), active, even, problem.grams.M, found.relative_gap
