"""What sections 5.1 to 5.4 of the paper measure: toy data, and stand-ins for its data.

A study measures one repeat: the data that belong to the seed of the scale. The paper's
biological kernels cannot be had. The stand-ins are chosen for the role that the data
play there:

    localization (5.2)   redundant kernels, one against the rest, MCC: Gaussians of four
                         widths on parts of the features (wine, wdbc), on views (mfeat)
                         and on windows of the sequence (splice)
    gene starts (5.3)    five kernels of very different worth, AUC against n: windows
                         around the splice site or not (splice)
    gene network (5.4)   three moderately correlated kernels, AUC: Fourier, Zernike and
                         morphological features of digits (mfeat)

Kernels are normalized as in the paper: (25) for 5.1 and 5.2, (26) for 5.3 and 5.4. The
studies of section 5.5 are in timing.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mklopt
from mklopt import data, kernels
from mklopt.claims.items import Scale, study
from mklopt.formulations import LpNorm

Array = np.ndarray
INF = np.inf
NORMS = (1.0, 4 / 3, 2.0, 4.0, INF)  # of section 5.1
FEATURES, RHO = 50, 1.75


def name(p: float) -> str:
    """p as the paper writes it."""
    parts = {8 / 7: "8/7", 10 / 9: "10/9", 16 / 15: "16/15", 32 / 31: "32/31"}
    known = {INF: "∞", 4 / 3: "4/3", **parts}
    return next((text for q, text in known.items() if np.isclose(p, q)), f"{p:g}")


# ---- section 5.1: the toy experiment ------------------------------------------------


def bayes_error() -> float:
    """Φ(−ρ), whatever the fraction of noise."""
    from scipy.special import ndtr

    return float(ndtr(-RHO))


def risk(w: Array, b: float, truth: Array) -> float:
    """The exact test error of sign(⟨w, x⟩ + b), x ~ N(±ρ θ/‖θ‖, I): no test set."""
    from scipy.special import ndtr

    if not np.any(w):
        return 0.5
    mean = RHO * w @ truth / np.linalg.norm(truth)
    return float(np.mean(ndtr(-np.array([mean + b, mean - b]) / np.linalg.norm(w))))


def model_error(theta: Array, truth: Array) -> float:
    """‖θ̂/‖θ̂‖ − θ/‖θ‖‖."""
    theta, truth = theta / np.linalg.norm(theta), truth / np.linalg.norm(truth)
    return float(np.linalg.norm(theta - truth))


class Toy(NamedTuple):
    X: Array
    y: Array
    truth: Array  # the binary θ

    @classmethod
    def drawn(cls, n: int, nu: float, seed: int) -> Toy:
        found = data.load("kloft_toy", n=n, nu=nu, rho=RHO, d=FEATURES, seed=seed)
        truth = np.arange(FEATURES) < round((1 - nu) * FEATURES)
        return cls(found.X, found.y, truth.astype(float))


def best_along_C(
    toy: Toy, p: float, Cs: Any, mix: Array | None = None, **options: Any
) -> dict:
    """ℓp-norm MKL, a linear kernel per column of X·mix, normalized by (25); best C."""
    mix = np.eye(toy.X.shape[1]) if mix is None else mix
    X, truth = toy.X @ mix, toy.truth
    spread = X.std(axis=0)
    grams = mklopt.GramStack.from_factors(list((X / spread).T[:, :, None]))
    problem = mklopt.Problem(grams, toy.y, "hinge", LpNorm(p), 1.0)
    rows = []
    for found in mklopt.path(problem, Cs, **options):
        parts = found.certificate.expansion.reshape(X.shape[1], -1)
        w = mix @ (np.einsum("mi,im->m", parts, X) / spread**2)
        row = {"C": float(found.problem.C), "error": risk(w, float(found.bias), truth)}
        if X.shape[1] == len(truth):
            row["model_error"] = model_error(found.weights, truth)
        row["used"] = int(np.sum(found.weights > 1e-3 * found.weights.max()))
        rows.append({**row, "gap": found.relative_gap})
    return min(rows, key=lambda row: row["error"])


NOISE = (0.0, 0.44, 0.64, 0.82, 0.92, 0.98)  # fractions of noise kernels
GRID = 10.0 ** np.arange(-4.0, 0.1, 0.5)  # of C, as in the paper


def _noise(scale: Scale) -> list[dict]:
    return [{"nu": nu} for nu in NOISE]


def tuned(scale: Scale, n: int, nu: float) -> list[dict]:
    """The best C of each norm on one data set, by its exact test error."""
    drawn = Toy.drawn(n, nu, scale.seed)
    Cs, rows = scale.of(GRID[4:8:2], GRID, GRID), []
    for p in NORMS:
        # p > 1 starts from uniform weights, and stays there when stopped early (see
        # `stopping`); p = 1 finds its few kernels first.
        found = best_along_C(drawn, p, Cs, tol=1e-3 if p == 1 else 1e-5)
        rows.append({"n": n, "nu": nu, "p": p, **found})
    return rows


@study("kloft2011", parts=_noise)
def toy_small(scale: Scale, nu: float) -> list[dict]:
    """Exact test errors and model errors on a toy data set with n = 50, C tuned."""
    return tuned(scale, 50, nu)


@study("kloft2011", parts=_noise)
def toy_large(scale: Scale, nu: float) -> list[dict]:
    """The same with n = 800."""
    return tuned(scale, scale.of(100, 800, 800), nu)


@study("kloft2011")
def stopping(scale: Scale) -> pd.DataFrame:
    """ℓ4/3 on toy data from uniform weights at every C, stopped at several gaps."""
    drawn = Toy.drawn(50, 0.64, scale.seed)
    rows = []
    for C in scale.of(GRID[:4:3], GRID, GRID):
        for tol in (1e-3, 1e-6, 1e-8):
            found = best_along_C(drawn, 4 / 3, [C], tol=tol, solver="analytic")
            rows.append({"tol": tol, **found})
    return pd.DataFrame(rows)


def redundant() -> Array:
    """One kernel on the informative feature, 48 on the same noise and a little own."""
    mix = 0.3 * np.eye(FEATURES)[:, 1:]
    mix[:, 0] = np.eye(FEATURES)[0]
    mix[1, 1:] = 1.0
    return mix


@study("kloft2011")
def alignment_and_gain(scale: Scale) -> pd.DataFrame:
    """Mean alignment of kernels, and errors of ℓ1 and the sum, two toy designs."""
    rows = []
    cases = {"complementary": (0.0, np.eye(FEATURES)), "redundant": (0.98, redundant())}
    Cs = scale.of(GRID[4:7:2], GRID[4:8], GRID[4:8])
    for which, (nu, mix) in cases.items():
        toy = Toy.drawn(50, nu, scale.seed)
        A = kernels.alignment([np.outer(x, x) for x in (toy.X @ mix).T])
        error = {p: best_along_C(toy, p, Cs, mix, tol=1e-3)["error"]
                 for p in (1.0, INF)}  # fmt: skip
        row = {"kernels": which, "alignment": A[np.triu_indices(len(A), 1)].mean()}
        rows.append({**row, "l1": error[1.0], "sum": error[INF]})
    return pd.DataFrame(rows)


# ---- sections 5.2 to 5.4: stand-ins -------------------------------------------------


class Split(NamedTuple):
    """Kernels of training points, and of test with training points; their labels."""

    grams: Any
    cross: Array
    y: Array
    y_test: Array
    names: list[str]


def split_of(family: Any, given: Any, size: int, seed: int, normalize: str) -> Split:
    """A random split; features and kernels are scaled on the training part."""
    train, test = given.split(size, seed)
    if not np.isin(given.X, (0.0, 1.0)).all():  # one-hot features are left alone
        train, test = train.standardized(), test.standardized(by=train)
    X, X_test = (train.views, test.views) if given.views else (train.X, test.X)
    fitted = family.fit(X, normalize)
    names = [text.split(":")[0] for text in fitted.names]
    return Split(fitted.grams(), fitted.cross(X_test), train.y, test.y, names)


def decisions(
    split: Split, y: Array, p: float, Cs: Sequence[float], tol: float = 1e-3
) -> Iterator[tuple[float, Array, Array]]:
    """C, f on the test points and weights, along C."""
    problem = mklopt.Problem(split.grams, y, "hinge", LpNorm(p), 1.0)
    for found in mklopt.path(problem, Cs, tol=tol):
        yield float(found.problem.C), found.decision(split.cross), found.weights


def windows(given: Any, edges: Sequence[int]) -> dict[str, Array]:
    """Windows of positions of the one-hot splice sequences, by name."""
    ends = _positions(given.X)
    return {
        f"{a - 30:+d} … {b - 31:+d}": given.X[:, ends[a] : ends[b]]
        for a, b in itertools.pairwise(edges)
    }


def _positions(X: Array) -> list[int]:
    """Where the 60 positions begin: each has exactly one 1 in every row."""
    ends, sums = [0], np.zeros(len(X))
    for j in range(X.shape[1]):
        sums += X[:, j]
        if np.all(sums == 1):
            ends.append(j + 1)
            sums[:] = 0.0
    return ends


def _with_views(given: Any, views: dict[str, Array], y: Array | None = None) -> Any:
    """The same samples with these views; labels ±1 when given."""
    kind, y = (given.kind, given.y) if y is None else ("binary", y)
    return data.Dataset(given.name, given.X, y, views, kind, given.source)


WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of Gaussians: so many times √d


def _widths(d: int) -> Any:
    return kernels.gaussians([w * np.sqrt(d) for w in WIDTHS])


def localization_data(which: str) -> tuple[Any, Any]:
    """A stand-in of section 5.2 and its redundant kernels: four widths on each part."""
    given = data.load(which)
    if which == "splice":
        given = _with_views(given, windows(given, (0, 15, 30, 45, 60)))
    if given.views:
        each = [_widths(view.shape[1]) for view in given.views.values()]
        return given, kernels.views(each, given.views)
    d = given.X.shape[1]
    thirds = {f"part {i}": list(map(int, part)) for i, part in
              enumerate(np.array_split(np.arange(d), 3))}  # fmt: skip
    each = [_widths(len(part)) for part in thirds.values()]
    return given, kernels.views(each, thirds)


LOCALIZATION = (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 16.0, INF)
COSTS = (1 / 32, 1 / 8, 1 / 2, 1.0, 2.0, 4.0, 8.0, 32.0, 128.0)  # C of section 5.2
LOCATED = ("wine", "wdbc", "mfeat", "splice")


def _located(scale: Scale) -> list[dict]:
    return [{"which": name} for name in LOCATED]


@study("kloft2011", parts=_located)
def localization(scale: Scale, which: str) -> list[dict]:
    """MCC, one against the rest, per norm, a split of a set with redundant kernels.

    C is the best of the paper's grid on the test part for each norm, as in the paper.
    """
    from sklearn.metrics import matthews_corrcoef

    given, family = localization_data(which)
    part, rows = _some(given, scale.of(140, 500, 1500), scale.seed), []
    size = min(scale.of(60, 150, 400), round(0.85 * len(part.y)))
    split = split_of(family, part, size, scale.seed, "multiplicative")
    for p in scale.of(LOCALIZATION[::3], LOCALIZATION, LOCALIZATION):
        found: dict[float, list[float]] = {}
        for target in _targets(split.y, scale.of(3, 3, 10)):
            sign, sign_test = (_signs(y, target) for y in (split.y, split.y_test))
            for C, f, _ in decisions(
                split, sign, p, scale.of(COSTS[2::4], COSTS[::2], COSTS)
            ):
                guess = np.where(f > 0, 1.0, -1.0)
                mcc = float(matthews_corrcoef(sign_test, guess))
                found.setdefault(C, []).append(mcc)
        best = max(found, key=lambda C: np.mean(found[C]))
        row = {"data": which, "M": split.grams.M, "n": len(split.y), "p": p}
        rows.append({**row, "C": best, "mcc": float(np.mean(found[best]))})
    return rows


def _some(given: Any, most: int, seed: int) -> Any:
    """At most so many samples, drawn at random."""
    return given if len(given.y) <= most else given.split(most, 10_000 + seed)[0]


def _targets(y: Array, most: int) -> list[float]:
    """The classes that are set against the rest."""
    found = np.unique(y)
    return [1.0] if len(found) == 2 else found[:most].tolist()


def _signs(y: Array, target: float) -> Array:
    return np.where(y == target, 1.0, -1.0)


STARTS = ("before", "after", "upstream", "downstream", "far away")


def gene_start_data() -> tuple[Any, Any]:
    """Splice site or not: cubic kernels on six positions to either side of the site,
    which are good on their own, and linear ones on three windows further away."""
    given = data.load("splice")
    cut = list(windows(given, (0, 10, 24, 30, 36, 50, 60)).values())
    views = dict(zip(STARTS, (cut[2], cut[3], cut[1], cut[4], cut[5])))
    given = _with_views(given, views, np.where(given.y == 2, -1.0, 1.0))
    rules = [*[kernels.polynomials(3)] * 2, *[kernels.linear()] * 3]
    return given, kernels.views(rules, views)


def _auc(y: Array, f: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, f))


STARTED = (60, 120, 240, 480, 960)


def _started(scale: Scale) -> list[dict]:
    return [{"n": n} for n in scale.of(STARTED[:2], STARTED[:4], STARTED)]


@study("kloft2011", parts=_started)
def gene_starts(scale: Scale, n: int) -> list[dict]:
    """AUC and kernel weights against the number of samples, five kernels (splice)."""
    given, family = gene_start_data()
    part = _some(given, n + scale.of(600, 2000, 2000), scale.seed)
    split = split_of(family, part, n, scale.seed, "spherical")
    return [{"n": n, "p": p, **row} for p in NORMS for row in _tuned(split, p, scale)]


def _tuned(split: Split, p: float, scale: Scale) -> list[dict]:
    """AUC on one half of the test points at the C that is best on the other half."""
    half = np.arange(len(split.y_test)) % 2 == 0
    best: tuple[float, float, Array] | None = None
    for _, f, theta in decisions(
        split,
        split.y,
        p,
        scale.of((1.0,), *[2.0 ** np.arange(-2, 6)] * 2),  # type: ignore[arg-type]
    ):
        valid = _auc(split.y_test[half], f[half])
        if best is None or valid > best[0]:
            best = (valid, _auc(split.y_test[~half], f[~half]), theta)
    assert best is not None
    theta = best[2] / np.sum(best[2])
    return [
        {"kernel": k, "auc": best[1], "weight": t} for k, t in zip(split.names, theta)
    ]


NETWORK = ("fou", "zer", "mor")
NETWORK_NORMS = (1.0, 4 / 3, 2.0, 4.0, 8.0, 10.0, INF)


def network_data() -> tuple[Any, Any]:
    """Digits by Fourier, Zernike and morphological features; Gaussians, mean width."""
    given = data.load("mfeat")
    given = _with_views(given, {view: given.views[view] for view in NETWORK})
    return given, kernels.views(kernels.gaussians("mean"), given.views)


@study("kloft2011")
def network(scale: Scale) -> pd.DataFrame:
    """AUC of single kernels, of norms, and of norms with product kernels (mfeat)."""
    given, family = network_data()
    part = _some(given, scale.of(300, 1000, 2000), scale.seed)
    split = split_of(family, part, scale.of(60, 100, 534), scale.seed, "spherical")
    targets = range(scale.of(2, 10, 10))
    return pd.DataFrame(
        {"target": target, **row} for target in targets
        for row in _network_rows(split, target)
    )  # fmt: skip


def _network_rows(split: Split, target: int) -> Iterator[dict]:
    y, y_test = _signs(split.y, target), _signs(split.y_test, target)
    K, cross = split.grams.dense(), split.cross
    for m, kernel in enumerate(split.names):
        yield {"method": kernel, **_scored(K[[m]], cross[[m]], y, y_test, INF)}
    for p in NETWORK_NORMS:
        yield {"method": f"ℓ{name(p)}", **_scored(K, cross, y, y_test, p)}
    pairs = [(i, j) for i in range(len(K)) for j in range(i)]
    K = np.concatenate([K, [K[i] * K[j] for i, j in pairs]])
    cross = np.concatenate([cross, [cross[i] * cross[j] for i, j in pairs]])
    for p in NETWORK_NORMS:
        yield {"method": f"ℓ{name(p)}, products", **_scored(K, cross, y, y_test, p)}


def _scored(K: Array, cross: Array, y: Array, y_test: Array, p: float) -> dict:
    split = Split(mklopt.GramStack(K), cross, y, y_test, [])
    (found,) = decisions(split, y, p, [1.0])
    return {"p": p, "auc": _auc(y_test, found[1])}


@study("kloft2011")
def alignments(scale: Scale) -> pd.DataFrame:
    """Centred alignments of the kernels of 5.3 and 5.4, and with the labels."""
    rows = []
    for which, (given, family) in {
        "gene starts": gene_start_data(),
        "gene network": network_data(),
    }.items():
        part = _some(given, scale.of(200, 1500, 1500), scale.seed)
        size = scale.of(100, 1000, 1000)
        split = split_of(family, part, size, scale.seed, "spherical")
        A = kernels.alignment(split.grams)
        y = (
            split.y
            if given.kind == "binary"
            else np.eye(int(split.y.max()) + 1)[split.y]
        )
        fit = kernels.target_alignment(split.grams, y)
        for i, a in enumerate(split.names):
            row = {"data": which, "kernel": a, "target": fit[i]}
            rows += [
                {**row, "other": b, "alignment": A[i, j]}
                for j, b in enumerate(split.names)
            ]
    return pd.DataFrame(rows)
