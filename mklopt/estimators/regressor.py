"""MKLRegressor: regression with several kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..problem import loss_from
from ..run.loop import solve
from ..util.arrays import real_array
from .base import MKLEstimator, keep_parameters, share_parameters

Array = np.ndarray


@share_parameters
class MKLRegressor(RegressorMixin, MKLEstimator):
    """Multiple kernel learning for real targets.

    It minimizes C Σ V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖) to a certified gap.

    Parameters
    ----------
    {kernels}
    {normalize}
    {formulation}
    {p}
    loss : str or Loss, default="squared"
        "squared", "eps_insensitive", "huber", "quantile", or an instance with its
        parameters, such as EpsInsensitive(0.01).
    {C}
    {bias}
    {solver}
    {tol}
    {options}

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

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "squared",
        C: float = 1.0,
        bias: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
    ):
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
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
        self._store([solve(problem, **self._solve_options())], sample, fitted)
        return self

    def predict(self, X: Any) -> Array:
        """f of new samples.

        Parameters
        ----------
        X : array of shape (n, n_features), or (n, n_train, M) for precomputed kernels

        Returns
        -------
        array of shape (n,)
        """
        return self._outputs(X)[:, 0]
