"""MKLClassifierCV: C chosen by cross-validation along paths with warm starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight

from ..problem import Problem
from ..run.result import Result
from ..tasks.path import path
from .base import Sample, keep_parameters, loss_of
from .classifier import MKLClassifier

Array = np.ndarray


class MKLClassifierCV(MKLClassifier):
    """MKLClassifier with C chosen by cross-validation along a warm-started path.

    In each fold the kernels are computed once, and each C starts from the solution of
    the one before it: the same scores as a grid search, in less time.

    Cs: values of C, or how many of them from 1e-3 to 1e3
    cv, scoring, n_jobs: as in scikit-learn; scores are weighted when samples are

    After fit also `C_`, the smallest C with the best mean score; `Cs_`; and `scores_`,
    (folds, Cs).
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "hinge",
        Cs: Any = 10,
        cv: Any = None,
        scoring: Any = None,
        bias: bool = True,
        multi_class: str = "joint",
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
        n_jobs: int | None = None,
    ):
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifierCV:
        X, y = self._labelled(X, y)
        self.Cs_ = _values(self.Cs)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_path_scores)(self._at(1.0), self.Cs_, self.scoring, fold,
                                  X, y, sample_weight)
            for fold in folds
        )  # fmt: skip
        self.scores_ = np.array(scores)
        self.C_ = float(self.Cs_[np.argmax(np.mean(self.scores_, axis=0))])
        best = self._at(self.C_)
        task = best._task(X, y, sample_weight)
        self.classes_ = best.classes_
        self._settle(best._solved(task[2]), *task[:2])
        return self

    def _at(self, C: float) -> MKLClassifier:
        """The estimator for one C."""
        same = MKLClassifier().get_params(deep=False)
        chosen = {k: getattr(self, k) for k in same if k != "C"}
        found = MKLClassifier(**chosen, C=C)
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found


def _values(Cs: Any) -> Array:
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool) and Cs > 0:
        return np.geomspace(1e-3, 1e3, Cs)
    found = np.unique(np.asarray(Cs, float)) if np.ndim(Cs) == 1 else np.empty(0)
    if not len(found) or not np.all(np.isfinite(found) & (found > 0)):
        raise ValueError(f"Cs = {Cs!r}; give a number of values, or positive numbers")
    return found


def _path_scores(
    model: MKLClassifier, Cs: Array, scoring: Any, fold: tuple, X: Array, y: Array,
    sample_weight: Any,
) -> list[float]:  # fmt: skip
    """The score of each C on the samples held out, from kernels computed once."""
    train, test = fold
    rows = np.ix_(train, train) if model._given else train
    weight = None if sample_weight is None else sample_weight[train]
    sample, fitted, problem = model._task(X[rows], y[train], weight)
    if fitted is None:
        held_out = X[np.ix_(test, train[sample.place >= 0])]
    else:
        held_out = np.moveaxis(fitted.cross(X[test]), 0, -1)
    weighing = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
    scorer = check_scoring(model, scoring)
    given = Sample(held_out, sample.y, sample.weight, np.arange(len(sample.y)))
    model.kernels = "precomputed"  # from here on: its kernels are in held_out
    model.n_features_in_ = len(sample.y)
    scores = []
    for results in _along(model, problem, Cs):
        model._settle(results, given, None)
        scores.append(float(scorer(model, held_out, y[test], **weighing)))
    return scores


def _along(model: MKLClassifier, problem: Problem, Cs: Array) -> Iterator[list[Result]]:
    """The results of each C, one against the rest or in one problem."""
    scale = float(np.max(problem.costs))
    problems = [problem]
    if len(model.classes_) > 2 and model._rest:
        loss, k = loss_of(model.loss), len(model.classes_)
        signs = [np.where(problem.y == c, 1.0, -1.0) for c in range(k)]
        problems = [problem.with_(y=sign, loss=loss) for sign in signs]
    paths = [path(one, scale * Cs, **model._solve_options()) for one in problems]
    return (list(results) for results in zip(*paths))
