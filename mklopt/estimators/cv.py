"""MKLClassifierCV: C chosen by cross-validation along paths with warm starts."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight

from ..kernels.low_rank import LowRankKernels
from ..tasks.path import path
from ..util.arrays import real_array
from ..util.checks import short
from .base import Sample, share_parameters
from .classifier import MKLClassifier

Array = np.ndarray
MAX_VALUES = 10_000  # of C, in one path
MAX_HELD_OUT = 10**8  # numbers in the kernels of the samples held out in a fold: 800 MB


@share_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifierCV(MKLClassifier):
    """MKLClassifier with C chosen by cross-validation along a warm-started path.

    In each fold the kernels are computed once, and each C starts from the solution of
    the one before it: the same scores as a grid search, in less time.

    Parameters
    ----------
    {kernels to p}
    {solver to warm_start}
    loss : str or Loss, default="hinge"
        As in MKLClassifier.
    {bias}
    multi_class : "joint" or "ovr", default="joint"
        As in MKLClassifier.
    class_weight : dict, "balanced" or None, default=None
        As in MKLClassifier, from the training samples of each fold. Scores do not have
        these weights.
    Cs : int or list of float, default=10
        Values of C, or how many of them from 1e-3 to 1e3.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None: five, stratified.
    scoring : str, callable or None, default=None
        The score, as in scikit-learn; None: the accuracy. It is weighted when samples
        are.
    n_jobs : int or None, default=None
        How many folds are solved at the same time.

    Attributes
    ----------
    C_ : float
        The smallest C with the best mean score.
    Cs_ : array of shape (n_Cs,)
        The values of C, in increasing order.
    scores_ : array of shape (n_folds, n_Cs)
        The score of each C on the samples held out.
    {weights_}
    {certificate_}
    {n_active_kernels_}
    {kernel_names_}
    {n_iter_}
    {result_}
    classes_ : array of shape (n_classes,)
        The labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mklopt import MKLClassifierCV
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> MKLClassifierCV(["linear"], Cs=[0.1, 1.0], cv=3).fit(X, y).scores_.shape
    (3, 2)
    """

    C: float = field(default=1.0, init=False)  # each of Cs in turn
    Cs: Any = 10
    cv: Any = None
    scoring: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C by cross-validation, then solve the problem of all samples."""
        X, y = self._labelled(X, y)
        self.Cs_ = _values(self.Cs)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        jobs = (delayed(self._scores)(fold, X, y, sample_weight) for fold in folds)
        self.scores_ = np.array(Parallel(n_jobs=self.n_jobs)(jobs))
        self.C_ = float(self.Cs_[np.argmax(np.mean(self.scores_, axis=0))])
        best = self._at(self.C_)
        sample, fitted, problem = best._task(X, y, sample_weight)
        self.classes_ = best.classes_
        self._store(best._solve_all(problem), sample, fitted)
        return self

    def _at(self, C: float) -> MKLClassifier:
        """The estimator for one C."""
        same = MKLClassifier().get_params(deep=False)
        chosen = {k: getattr(self, k) for k in same if k != "C"}
        found = MKLClassifier(**chosen, C=C)
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        if hasattr(self, "result_"):
            found.result_ = self.result_  # where warm_start begins
        return found

    def _scores(
        self, fold: tuple, X: Array, y: Array, sample_weight: Any
    ) -> list[float]:
        """The score of each C on the samples held out, from kernels computed once."""
        model, (train, test) = self._at(1.0), fold
        rows = np.ix_(train, train) if model._precomputed else train
        weight = None if sample_weight is None else sample_weight[train]
        sample, fitted, problem = model._task(X[rows], y[train], weight)
        if _predicts_itself(fitted, len(test)):
            task = (sample, fitted, problem)
            return self._own_scores(model, task, X, y, test, sample_weight)
        if fitted is None:
            held_out = X[np.ix_(test, train[sample.place >= 0])]
        else:
            held_out = np.moveaxis(fitted.cross(X[test]), 0, -1)
        # A second estimator takes these kernel values, of new and training points.
        same = model.get_params(deep=False)
        view = MKLClassifier(**{**same, "kernels": "precomputed"})
        view.classes_, view.n_features_in_ = model.classes_, len(sample.y)
        scorer = check_scoring(view, self.scoring)
        weighing = {} if weight is None else {"sample_weight": sample_weight[test]}
        given = Sample(held_out, sample.y, sample.weight, np.arange(len(sample.y)))
        scale, options = float(np.max(problem.costs)), model._solve_options()
        Cs = scale * self.Cs_
        paths = [path(one, Cs, **options) for one in model._problems(problem)]
        scores = []
        for results in zip(*paths):
            view._store(list(results), given, None)
            scores.append(float(scorer(view, held_out, y[test], **weighing)))
        return scores

    def _own_scores(
        self, model: Any, task: tuple, X: Array, y: Array, test: Array, weights: Any
    ) -> list[float]:
        """The scores of a model that predicts from X itself."""
        sample, fitted, problem = task
        scorer, scores = check_scoring(model, self.scoring), []
        weighing = {} if weights is None else {"sample_weight": weights[test]}
        Cs = float(np.max(problem.costs)) * self.Cs_
        options, model.n_features_in_ = model._solve_options(), X.shape[1]
        paths = [path(one, Cs, **options) for one in model._problems(problem)]
        for results in zip(*paths):
            model._store(list(results), sample, fitted)
            scores.append(float(scorer(model, X[test], y[test], **weighing)))
        return scores


def _predicts_itself(fitted: Any, held_out: int) -> bool:
    """Whether kernels of the samples held out are not stored: features, or too many."""
    if fitted is None or isinstance(fitted, LowRankKernels):
        return fitted is not None
    return bool(fitted.M * fitted.n * held_out > MAX_HELD_OUT)


def _values(Cs: Any) -> Array:
    whole = isinstance(Cs, int | np.integer) and not isinstance(Cs, bool)
    if whole and 0 < Cs <= MAX_VALUES:
        return np.geomspace(1e-3, 1e3, Cs)
    try:
        given = np.empty(0) if whole else real_array(Cs, "Cs", "numbers")
    except ValueError:
        given = np.empty(0)
    right = given.ndim == 1 and len(given) > 0
    if not right or not np.all(np.isfinite(given) & (given > 0)):
        said = f"Cs = {short(Cs)}; give a number of values, or positive numbers"
        raise ValueError(said)
    return np.unique(given)
