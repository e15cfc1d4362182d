"""How well the estimators predict: `make bench NAME=estimators`.

Beside them the unweighted sum of the kernels, EasyMKL and gradient boosting. All
methods share the outer folds and the kernels: those of the estimators, one Gaussian per
view for sets with views, fitted on the training samples of a fold. Whatever a method
can choose, it chooses by three inner folds of these samples:

    MKL        MKLClassifierCV, MKLRegressor: p in {1, 4/3, 2, ∞} and C; more than
               twenty classes one against the rest
    boosting   scikit-learn's HistGradientBoosting on the standardized columns, views
               side by side: learning rate in {0.03, 0.1, 0.3} and 7 or 31 leaves
    sum        scikit-learn's SVC (SVR for regression) on the mean of the kernels, C
    EasyMKL    MKLpy's weights, and SVC on their sum, C; one against the rest for more
               than two classes; no regression

Scores are accuracies, R² for regression: means over the outer folds. A difference is
within noise when it is less than two standard errors, those of Nadeau and Bengio (2003)
for folds that share samples: variance · (1/folds + test/training samples).

    python -m benchmarks estimators --data sonar wdbc --repeats 1
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.svm import SVC, SVR

from benchmarks import harness
from benchmarks.rivals import easy_weights
from mklopt import data, kernels
from mklopt.estimators.cv import MKLClassifierCV
from mklopt.estimators.regressor import MKLRegressor
from mklopt.kernels.text import usual_family
from mklopt.util.tables import plain_table

Array = np.ndarray
SETS = ("wdbc", "sonar", "ionosphere", "heart", "pima", "mfeat", "flowers17",
        "100leaves", "msrc-v1", "3sources", "diabetes")  # fmt: skip
COSTS = (0.1, 1.0, 10.0, 100.0)
PS = (1.0, 4 / 3, 2.0, np.inf)
FOLDS, INNER = 5, 3
RATES, LEAVES = (0.03, 0.1, 0.3), (7, 31)  # of gradient boosting
LARGE, TRAINING = 1000, 400  # EasyMKL solves a quadratic program for each class
JOINTLY = 20  # classes
Scores = dict[str, list[float]]


class Fold(NamedTuple):
    """The samples of an outer fold: kernels, standardized columns, training labels."""

    K: Array
    cross: Array
    X: Array
    X_new: Array
    y: Array
    real: bool


def fold_of(found: data.Dataset, train: Array, test: Array) -> Fold:
    """One fold, with all that methods may use."""
    X = (found.X - found.X[train].mean(0)) / _spread(found.X[train])
    parts = stacks(found, train, test)
    return Fold(*parts, X[train], X[test], found.y[train], found.kind == "real")


def stacks(found: data.Dataset, train: Array, test: Array) -> tuple[Array, Array]:
    """Kernels of the training samples, and of the test samples against them."""
    if found.views:
        parts = {k: (V - V[train].mean(0)) / _spread(V[train]) for k, V in
                 found.views.items()}  # fmt: skip
        here = {k: V[train] for k, V in parts.items()}
        there = {k: V[test] for k, V in parts.items()}
        family = kernels.views(kernels.gaussians("mean"), here)
        fitted: Any = family.fit(here, normalize="spherical")  # type: ignore[arg-type]
        return fitted.grams().dense(), fitted.cross(there)
    X = (found.X - found.X[train].mean(0)) / _spread(found.X[train])
    family = usual_family(X[train], np.ones(len(train)))
    fitted = family.fit(X[train], normalize="spherical")
    return fitted.grams().dense(), fitted.cross(X[test])


def _spread(X: Array) -> Array:
    return np.maximum(X.std(0), 1e-12)


def first(K: Array) -> Array:
    """Samples first, as estimators want precomputed kernels."""
    return np.ascontiguousarray(np.moveaxis(K, 0, -1))


def inner_folds(real: bool) -> Any:
    """The folds by which a method chooses."""
    kind = KFold if real else StratifiedKFold
    return kind(INNER, shuffle=True, random_state=1)


# ---- the methods: what they predict ------------------------------------------


def mkl(fold: Fold) -> Array:
    """Our estimators, the best p and C."""
    K, cross, y, models = fold.K, fold.cross, fold.y, []
    several = "joint" if len(np.unique(y)) <= JOINTLY else "ovr"
    for p in PS:
        if fold.real:
            model: Any = GridSearchCV(
                MKLRegressor("precomputed", p=p), {"C": COSTS}, cv=inner_folds(True)
            ).fit(first(K), y)
            score = model.best_score_
        else:
            folds = inner_folds(False)
            model = MKLClassifierCV(
                "precomputed", p=p, Cs=COSTS, cv=folds, multi_class=several
            )
            score = float(np.max(np.mean(model.fit(first(K), y).scores_, axis=0)))
        models.append((score, model))
    best = max(models, key=lambda pair: pair[0])[1]
    return np.asarray(best.predict(first(cross)))


def plain_sum(fold: Fold) -> Array:
    """An SVM on the mean of the kernels, the best C."""
    K, cross, y, real = fold.K, fold.cross, fold.y, fold.real
    svm = SVR(kernel="precomputed") if real else SVC(kernel="precomputed")
    found = GridSearchCV(svm, {"C": COSTS}, cv=inner_folds(real))
    scale = float(np.std(y)) if real else 1.0
    return scale * found.fit(np.mean(K, 0), y / scale).predict(np.mean(cross, 0))


def boosting(fold: Fold) -> Array:
    """Gradient boosting on the columns, the best rate and size."""
    kinds = HistGradientBoostingClassifier, HistGradientBoostingRegressor
    grid = {"learning_rate": RATES, "max_leaf_nodes": LEAVES}
    found = GridSearchCV(
        kinds[fold.real](random_state=0), grid, cv=inner_folds(fold.real)
    )
    return np.asarray(found.fit(fold.X, fold.y).predict(fold.X_new))


def easy(fold: Fold) -> Array:
    """An SVM on the kernels with the weights of EasyMKL, the best C."""
    K, cross, y = fold.K, fold.cross, fold.y
    classes = np.unique(y)
    rest = classes if len(classes) > 2 else classes[1:]
    margins = []
    for one in rest:
        sign = np.where(y == one, 1.0, -1.0)
        theta = easy_weights(K, sign)
        svm = GridSearchCV(
            SVC(kernel="precomputed"), {"C": COSTS}, cv=inner_folds(False)
        ).fit(np.tensordot(theta, K, 1), sign)
        margins.append(svm.decision_function(np.tensordot(theta, cross, 1)))
    if len(rest) == 1:
        return np.where(margins[0] > 0, classes[1], classes[0])
    return classes[np.argmax(margins, axis=0)]


METHODS: dict[str, Callable[[Fold], Array]] = {
    "MKL": mkl,
    "sum": plain_sum,
    "EasyMKL": easy,
    "boosting": boosting,
}


# ---- comparing ---------------------------------------------------------------


def outer_folds(found: data.Dataset, repeats: int) -> list[tuple[Array, Array]]:
    """(training, test) samples, the same for all methods."""
    if found.kind == "real":
        split: Any = RepeatedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=0)
    elif len(found.y) > LARGE:
        split = StratifiedShuffleSplit(
            FOLDS * repeats, train_size=TRAINING, random_state=0
        )
    else:
        split = RepeatedStratifiedKFold(
            n_splits=FOLDS, n_repeats=repeats, random_state=0
        )
    return list(split.split(found.X, found.y))


def compare(name: str, methods: list[str], repeats: int) -> tuple[Scores, float, float]:
    """Scores of all methods, test over training samples, and seconds."""
    found, begun = data.load(name), time.time()
    scores: Scores = {method: [] for method in methods}
    real = found.kind == "real"
    for train, test in outer_folds(found, repeats):
        fold = fold_of(found, train, test)
        for method in methods:
            if real and method == "EasyMKL":
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                f = METHODS[method](fold)
            scores[method].append(score(f, found.y[test], real))
    return scores, len(test) / len(train), time.time() - begun


def score(f: Array, y: Array, real: bool) -> float:
    """The accuracy, or R² for real targets."""
    if not real:
        return float(np.mean(f == y))
    return 1 - float(np.sum((f - y) ** 2) / np.sum((y - np.mean(y)) ** 2))


def noise(a: list[float], b: list[float], share: float) -> float:
    """The standard error of a mean difference over folds that share samples."""
    return float(np.std(np.subtract(a, b), ddof=1) * np.sqrt(1 / len(a) + share))


def shown(scores: Scores, method: str, share: float) -> str:
    """A mean, with the difference to MKL and its standard error."""
    mine, own = scores[method], scores["MKL"]
    if not mine:
        return "–"
    if method == "MKL":
        return f"{np.mean(own):.3f}"
    apart = np.mean(own) - np.mean(mine)
    return f"{np.mean(mine):.3f} ({apart:+.3f} ± {noise(own, mine, share):.3f})"


def requirements(name: str, scores: Scores, share: float) -> list[str]:
    """MKL must not lose to another method by more than two standard errors."""
    lines = []
    for method, mine in scores.items():
        if method == "MKL" or not mine:
            continue
        apart = float(np.mean(scores["MKL"]) - np.mean(mine))
        least = -2 * noise(scores["MKL"], mine, share)
        line = f"{name}: MKL minus {method} {apart:+.3f} ≥ {least:+.3f}"
        lines.append(harness.verdict(apart >= least, line))
    return lines


@harness.needs_data
def main() -> None:
    """All methods on all data sets."""
    parser = harness.parser(__doc__)
    parser.add_argument("--repeats", type=harness.positive, default=2)
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    console, lines = harness.console(), []
    methods = list(METHODS)
    if importlib.util.find_spec("MKLpy") is None:
        methods.remove("EasyMKL")
        console.print("EasyMKL is left out: MKLpy is not installed here")
    title = f"{FOLDS} folds, {options.repeats} times; MKL minus the other ± its error"
    out = plain_table(title, ("data",), (*methods, "seconds"))
    for name in options.data:
        scores, share, took = compare(name, methods, options.repeats)
        cells = [shown(scores, m, share) for m in methods]
        out.add_row(name, *cells, f"{took:.0f}")
        lines += requirements(name, scores, share)
        console.print(f"[dim]{name} done[/]")
    harness.report(console, "estimators", __doc__, [out], lines)


if __name__ == "__main__":
    main()
