"""MKLClassifier: two classes, or several jointly or one against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..formulations import Loss
from ..problem import Problem
from ..run.loop import solve
from ..run.result import Result
from ..tasks.one_vs_rest import one_vs_rest
from .base import MKLEstimator, Sample, keep_parameters, loss_of

Array = np.ndarray
JOINT = {"hinge": "multiclass_hinge", "logistic": "multinomial"}  # of several classes
PROBABLE = {"logistic", "multinomial"}  # losses that are negative log-likelihoods


def _probable(self: Any) -> bool:
    """Whether the loss of an estimator says how likely a class is."""
    name = getattr(self.loss, "name", self.loss)
    if name in PROBABLE:
        return True
    raise AttributeError(
        f"predict_proba needs loss='logistic'; loss = {self.loss!r} has no likelihood"
    )


class MKLClassifier(ClassifierMixin, MKLEstimator):
    """Multiple kernel learning for two or more classes, with any labels.

    See mklopt.estimators for the parameters that all estimators share.

    loss: "hinge", "logistic", or another loss of −1/+1 labels for one against the rest
    multi_class: "joint", all classes with one set of kernel weights, or "ovr", a binary
        problem with weights of its own for each class; two classes are one problem
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "hinge",
        C: float = 1.0,
        bias: bool = True,
        multi_class: str = "joint",
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
    ):
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
        X, y = self._labelled(X, y)
        sample, fitted, problem = self._task(X, y, sample_weight)
        self._settle(self._solved(problem), sample, fitted)
        return self

    def _labelled(self, X: Any, y: Any) -> tuple[Array, Array]:
        X, y = self._checked(X, y)
        check_classification_targets(y)
        return X, y

    def _task(
        self, X: Array, y: Array, sample_weight: Any
    ) -> tuple[Sample, Any, Problem]:
        """The samples, the kernels on them and the problem; sets classes_."""
        _, places = np.unique(y, return_inverse=True)
        sample = self._sample(X, places, sample_weight)
        used = np.unique(sample.y).astype(int)
        self.classes_ = np.unique(y)[used]
        if len(used) < 2:
            raise ValueError(
                f"y has one class, {self.classes_[0]}; a classifier needs at least 2 "
                "classes"
            )
        labels = np.searchsorted(used, sample.y)
        fitted = self._fitted_kernels(sample)
        loss, labels = self._coded(labels)
        return sample, fitted, self._problem(sample, fitted, loss, labels)

    def _coded(self, labels: Array) -> tuple[Loss, Array]:
        """The loss for this number of classes, and labels as it needs them."""
        loss = loss_of(self.loss)
        if self.multi_class not in ("joint", "ovr"):
            raise ValueError(
                f"multi_class = {self.multi_class!r}; choose 'joint' or 'ovr'"
            )
        if loss.labels == "classes" or (len(self.classes_) > 2 and self._rest):
            joint = loss if loss.labels == "classes" else loss_of("multiclass_hinge")
            return joint, labels
        if len(self.classes_) == 2:
            return loss, 2.0 * labels - 1
        if loss.name not in JOINT:
            raise ValueError(
                f"loss = {loss.name!r} has no joint form for {len(self.classes_)} "
                f"classes; choose one of {', '.join(JOINT)}, or multi_class='ovr'"
            )
        return loss_of(JOINT[loss.name]), labels

    @property
    def _rest(self) -> bool:
        return self.multi_class == "ovr" and loss_of(self.loss).labels != "classes"

    def _solved(self, problem: Problem) -> list[Result]:
        if len(self.classes_) > 2 and self._rest:
            loss = loss_of(self.loss)
            return [*one_vs_rest(problem, loss=loss, **self._solve_options()).results]
        return [solve(problem, **self._solve_options())]

    def decision_function(self, X: Any) -> Array:
        """f: one number per sample for two classes, one per class for more."""
        f = self._outputs(X)
        if len(self.classes_) > 2:
            return f
        return f[:, 0] if f.shape[1] == 1 else f[:, 1] - f[:, 0]

    def predict(self, X: Any) -> Array:
        f = self.decision_function(X)
        places = (f > 0).astype(int) if f.ndim == 1 else np.argmax(f, axis=1)
        return self.classes_[places]

    @available_if(_probable)
    def predict_proba(self, X: Any) -> Array:
        """What the logistic or multinomial model says of each class."""
        f = self.decision_function(X)
        if f.ndim == 1:
            return np.column_stack([expit(-f), expit(f)])
        if not self._rest:
            return softmax(f, axis=1)
        alone = expit(f)
        return alone / np.maximum(alone.sum(axis=1, keepdims=True), 1e-300)

    @available_if(_probable)
    def predict_log_proba(self, X: Any) -> Array:
        return np.log(self.predict_proba(X))
