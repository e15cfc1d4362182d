"""MKLRegressor: regression with several kernels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from ..problem import loss_from
from ..util.arrays import real_array
from .base import MKLEstimator, share_parameters


@share_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class MKLRegressor(RegressorMixin, MKLEstimator):
    """Multiple kernel learning for real targets.

    It minimizes C Σ V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖) to a certified gap.

    Parameters
    ----------
    {kernels to C}
    {solver to warm_start}
    loss : str or Loss, default="squared"
        "squared", "eps_insensitive", "huber", "quantile", or an instance with its
        parameters, such as EpsInsensitive(0.01).
    {bias}

    Attributes
    ----------
    {weights_}
    {certificate_}
    {n_active_kernels_}
    {kernel_names_}
    {n_iter_}
    {result_}

    Examples
    --------
    >>> import numpy as np
    >>> from mklopt import MKLRegressor
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = MKLRegressor(loss="huber", C=10.0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.9
    True
    """

    loss: Any = "squared"
    bias: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the problem of these samples.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n, M) for precomputed kernels
        y : array of shape (n,)
            Real targets.
        sample_weight : array of shape (n,), optional
            Numbers ≥ 0 that multiply C.

        Returns
        -------
        MKLRegressor
            The estimator itself.
        """
        X, y = self._checked(X, y, y_numeric=True)
        loss = loss_from(self.loss)
        if loss.labels != "real":
            raise ValueError(
                f"loss = {loss.name!r} is for classes; choose 'squared', "
                "'eps_insensitive', 'huber' or 'quantile'"
            )
        sample = self._sample(X, real_array(y, "y", "numbers"), sample_weight)
        fitted, problem = self._problem(sample, loss, sample.y)
        self._store(self._solved([problem]), sample, fitted)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f of new samples.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,)
        """
        return self._outputs(X)[:, 0]
