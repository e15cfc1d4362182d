"""MKLOneClass: outlier detection with several kernels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _check_sample_weight

from ..problem import loss_from
from ..util.checks import short
from .base import MKLEstimator, share_parameters

Array = np.ndarray


@share_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class MKLOneClass(OutlierMixin, MKLEstimator):
    """The smallest Ω(‖w_1‖, …, ‖w_M‖) with f ≥ 1 on most samples: what is unusual?

    There is no bias: with one the problem is trivial.

    Parameters
    ----------
    {kernels to p}
    C : float, default=0.1
        The weight of the loss.
    {solver to warm_start}
    contamination : float or "auto", default="auto"
        The share of outliers among the samples, which sets `offset_`. "auto": a sample
        is an outlier where f < 1 − √tol (at f = 1 lies the margin, and the samples on
        it are found within √tol).

    Attributes
    ----------
    nu_ : float
        Σα / ΣC: at most this share of the weight lies below f = 1.
    offset_ : float
        A sample is an outlier where f < `offset_`.
    {weights_}
    {certificate_}
    {n_active_kernels_}
    {kernel_names_}
    {n_iter_}
    {result_}

    Examples
    --------
    >>> import numpy as np
    >>> from mklopt import MKLOneClass
    >>> X = np.append(np.random.default_rng(0).normal(size=39), 30.0)[:, None]
    >>> MKLOneClass(["gaussian(1)"], contamination=0.1).fit(X).predict([[30.0]])
    array([-1])
    """

    C: float = 0.1
    contamination: Any = "auto"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve the problem of these samples.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n, M) for precomputed kernels
        y : ignored
        sample_weight : array of shape (n,), optional
            Numbers ≥ 0 that multiply C.

        Returns
        -------
        MKLOneClass
            The estimator itself.
        """
        X = self._checked(X)
        share = self._share()
        sample = self._sample(X, np.ones(len(X)), sample_weight)
        fitted, problem = self._problem(sample, loss_from("one_class"), sample.y)
        (result,) = self._solved([problem])
        self._store([result], sample, fitted)
        self.nu_ = float(np.sum(result.dual) / np.sum(problem.costs))
        self.offset_ = 1.0 - float(np.sqrt(self.tol))
        if share is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            end = _lower_end(self._decision(X)[:, 0], weight, share)
            # Samples on the margin are equal but for rounding: all of them are in.
            self.offset_ = end - 1e-8 * max(1.0, abs(end))
        return self

    def _share(self) -> float | None:
        if isinstance(self.contamination, str) and self.contamination == "auto":
            return None
        number = isinstance(self.contamination, float | int | np.number)
        if not number or not 0 < self.contamination <= 0.5:
            raise ValueError(
                f"contamination = {short(self.contamination)}; give 'auto', or a share "
                "between 0 and 0.5"
            )
        return float(self.contamination)

    def score_samples(self, X: Any) -> Array:
        """f: the larger, the more usual.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,)
        """
        return self._outputs(X)[:, 0]

    def decision_function(self, X: Any) -> Array:
        """f − `offset_`: negative for outliers.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for usual samples, −1 for outliers.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


def _lower_end(f: Array, weight: Array, share: float) -> float:
    """The largest of the values f below which lies at most this share of the weight."""
    order = np.argsort(f, kind="stable")
    below = np.cumsum(weight[order])
    return float(f[order][np.argmax(below > share * below[-1] * (1 + 1e-12))])
