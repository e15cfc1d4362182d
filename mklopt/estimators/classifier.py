"""MKLClassifier: two classes, or several jointly or one against the rest."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from ..formulations import Loss
from ..problem import Problem, loss_from
from ..run.result import Result
from ..tasks.one_vs_rest import binary_problems
from ..util.checks import check_choice
from .base import MKLEstimator, Sample, share_parameters

Array = np.ndarray
JOINT = {"hinge": "multiclass_hinge", "logistic": "multinomial"}  # of several classes
LIKELIHOODS = {"logistic", "multinomial"}  # losses that are negative log-likelihoods


def _has_likelihood(self: Any) -> bool:
    """Whether the loss of an estimator says how likely a class is."""
    if getattr(self.loss, "name", self.loss) in LIKELIHOODS:
        return True
    raise AttributeError(
        f"predict_proba needs loss='logistic'; loss = {self.loss!r} has no likelihood. "
        "scikit-learn's CalibratedClassifierCV(estimator) makes probabilities of any f"
    )


@share_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifier(ClassifierMixin, MKLEstimator):
    """Multiple kernel learning for two or more classes, with any labels.

    It minimizes C Σ V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖) to a certified gap.

    Parameters
    ----------
    {kernels to C}
    {solver to warm_start}
    loss : str or Loss, default="hinge"
        "hinge" or "logistic", which have a joint form for several classes; a loss of
        classes; or any loss of −1/+1 labels for two classes, or one against the rest.
    {bias}
    multi_class : "joint" or "ovr", default="joint"
        For three or more classes. "joint": all of them with one set of kernel weights.
        "ovr": a binary problem with weights of its own for each class against the rest.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for the samples of each class. "balanced": n over the number of
        classes times the number of samples of the class.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    {weights_}
    {certificate_}
    {n_active_kernels_}
    {kernel_names_}
    {n_iter_}
    {result_}

    Examples
    --------
    >>> import numpy as np
    >>> from mklopt import MKLClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = MKLClassifier(["gaussian(1)", "linear"], p=4/3, C=10.0).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    loss: Any = "hinge"
    bias: bool = True
    multi_class: str = "joint"
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the problem of these samples.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n, M) for precomputed kernels
        y : array of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array of shape (n,), optional
            Numbers ≥ 0 that multiply C.

        Returns
        -------
        MKLClassifier
            The estimator itself.
        """
        X, y = self._labelled(X, y)
        sample, fitted, problem = self._task(X, y, sample_weight)
        self._store(self._solve_all(problem), sample, fitted)
        return self

    def _labelled(self, X: Any, y: Any) -> tuple[Array, Array]:
        X, y = self._checked(X, y)
        check_classification_targets(y)
        return X, y

    def _task(
        self, X: Array, y: Array, sample_weight: Any
    ) -> tuple[Sample, Any, Problem]:
        """The samples, the kernels on them and the problem; sets classes_."""
        classes, places = np.unique(y, return_inverse=True)
        if self.class_weight is not None:
            each = compute_sample_weight(self.class_weight, y)
            sample_weight = each * _check_sample_weight(sample_weight, X, dtype=float)
        sample = self._sample(X, places, sample_weight)
        used = np.unique(sample.y).astype(int)
        self.classes_ = classes[used]
        if len(used) < 2:
            raise ValueError(
                f"y has one class, {self.classes_[0]}; a classifier needs at least 2 "
                "classes"
            )
        loss, labels = self._coded(np.searchsorted(used, sample.y))
        return sample, *self._problem(sample, loss, labels)

    def _coded(self, labels: Array) -> tuple[Loss, Array]:
        """The loss for this number of classes, and labels as it needs them."""
        loss = loss_from(self.loss)
        check_choice(self.multi_class, "multi_class", ("joint", "ovr"))
        if loss.labels == "classes":
            return loss, labels
        if len(self.classes_) == 2:
            return loss, 2.0 * labels - 1
        if self._one_vs_rest:  # `_problems` puts the binary loss back
            return loss_from("multiclass_hinge"), labels
        if loss.name not in JOINT:
            raise ValueError(
                f"loss = {loss.name!r} has no joint form for {len(self.classes_)} "
                f"classes; choose one of {', '.join(JOINT)}, or multi_class='ovr'"
            )
        return loss_from(JOINT[loss.name]), labels

    @property
    def _one_vs_rest(self) -> bool:
        several = len(self.classes_) > 2 and self.multi_class == "ovr"
        return several and loss_from(self.loss).labels != "classes"

    def _problems(self, problem: Problem) -> list[Problem]:
        """What is solved: the problem itself, or one per class."""
        if self._one_vs_rest:
            return binary_problems(problem, loss_from(self.loss))
        return [problem]

    def _solve_all(self, problem: Problem) -> list[Result]:
        return self._solved(self._problems(problem))

    def decision_function(self, X: Any) -> Array:
        """f of new samples.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,) for two classes, (n, n_classes) for more
        """
        f = self._outputs(X)
        if len(self.classes_) > 2:
            return f
        return f[:, 0] if f.shape[1] == 1 else f[:, 1] - f[:, 0]

    def predict(self, X: Any) -> Array:
        """The class with the largest f.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,)
            Labels of `classes_`.
        """
        f = self.decision_function(X)
        places = (f > 0).astype(int) if f.ndim == 1 else np.argmax(f, axis=1)
        return self.classes_[places]

    @available_if(_has_likelihood)
    def predict_proba(self, X: Any) -> Array:
        """What the logistic or multinomial model says of each class.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities in the order of `classes_`.
        """
        f = self.decision_function(X)
        if f.ndim == 1:
            return np.column_stack([expit(-f), expit(f)])
        if not self._one_vs_rest:
            return softmax(f, axis=1)
        alone = expit(f)
        return alone / np.maximum(alone.sum(axis=1, keepdims=True), 1e-300)

    @available_if(_has_likelihood)
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n, n_classes)
        """
        return np.log(self.predict_proba(X))
